"""Predicts what a program costs on a network without running it there.

Rounds and bytes come from the meter of a run in memory, and are those of any run. Seconds follow
from the network's delay and bandwidth.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tacit.meter import Reading, Verification, verification_lines, verification_of
from tacit.parties.launch import rehearse
from tacit.parties.network import Network
from tacit.providers import DEFAULT, DEFAULT_SOURCE, LIVE, PROTOCOLS, consumes, has_dealer, quoted
from tacit.rehearsal.subject import Subject, parts_of
from tacit.sessions import session

#: The meter's label of the work outside modules.
OUTSIDE = ""


@dataclass(frozen=True)
class Line:
    """Cost of one module, or of the work outside all modules."""

    #: Bytes sent by the party that sends most in total, with frame headers.
    bytes_sent: int
    #: Rounds of the party that has most in total.
    rounds: int


@dataclass(frozen=True)
class Cost:
    """Result of ``tacit.cost``."""

    protocol: str
    parties: int
    #: Source of the correlations, if they are counted.
    source: str | None
    network: Network
    #: Costs by label, as in the meter.
    layers: dict[str, Line]
    #: Bytes sent by each party, with frame headers, before TLS.
    bytes_sent: list[int]
    #: Bytes sent by each party, without frame headers.
    payload_bytes: list[int]
    #: Rounds of the party that has most.
    rounds: int
    #: Bytes that the party with the most such traffic sends or receives to make correlations.
    #:
    #: The larger of the two directions counts.
    correlation_bytes: int
    #: Seconds that a party computes, on one core.
    local_seconds: float
    #: The entry on verification in the rehearsal, if the protocol verifies.
    verified: dict[str, Any]

    @property
    def network_seconds(self) -> float:
        """Seconds that messages take, without correlations."""
        return self.network.seconds(self.rounds, max(self.bytes_sent))

    @property
    def seconds(self) -> float:
        """Seconds of messages, correlations and computing, one after the other."""
        return (
            self.network_seconds
            + self.correlation_bytes / self.network.bandwidth
            + self.local_seconds
        )

    def as_json(self) -> dict[str, Any]:
        """Returns all results by name."""
        fields = asdict(self)
        verified = fields.pop("verified")
        return {
            **fields,
            **verified,
            "network_seconds": self.network_seconds,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        return "\n".join([*_table(self), *_summary(self)])


def cost(
    subject: Subject,
    example: Any = None,
    *,
    network: str = "lan",
    protocol: str = DEFAULT,
    parties: int | None = None,
    source: str | None = None,
) -> Cost:
    """Runs a program once on this machine, between parties in memory, and predicts its cost.

    Rounds and bytes are exactly those of a real run: both follow from shapes, never from values or
    time. For a module they are those of a program in which party 0 shares the module and party 1
    its inputs in order, and that calls the module and reveals what it returns to party 1. If the
    module is part of another module, frame headers hold its longer path. With source "he",
    correlations are those over links of unknown bandwidth, for which layouts are chosen.

    Seconds are rounds · half a round trip + bytes / bandwidth + the time that one core computes for
    a party. On links that transfer while a party computes it takes less, and so it does on a
    machine with more cores.

    Args:
        subject: a module, or a function that every party runs.
        example: inputs of a module, as ``tacit.check`` takes them.
        network: "lan" (1 ms, 1000 Mbit/s), "wan" (40 ms, 100 Mbit/s), or "RTT,MBIT".
        protocol: "replicated", "replicated-malicious", or "additive".
        parties: number of parties; by default 3, or 2 with additive sharing.
        source: source of the correlations of additive sharing: "ot", "he" or "dealer". They are
            made in the rehearsal, which may take long, and counted. Without a source, the cost is
            that of source "ot", without its correlations. Checked mode among three and more parties
            of additive sharing needs source="dealer".

    Raises:
        MisuseError: the network is not valid, or there is no such protocol.
    """
    between = Network.of(network)
    parties = parties or (PROTOCOLS[protocol].usual_parties if protocol in PROTOCOLS else 2)
    parts = parts_of(subject, example)
    found = rehearse(_metered, parts, parties=parties, protocol=protocol, source=source)
    totals, made = [each.total for each in found], [each.correlations for each in found]
    computed = max(each.ended for each in found) - min(each.started for each in found)
    return Cost(
        protocol,
        parties,
        source,
        between,
        _lines(found),
        [total.bytes_sent for total in totals],
        [total.payload_bytes for total in totals],
        max(total.rounds for total in totals),
        max(max(one.bytes_sent, one.bytes_received) for one in made) if source else 0,
        computed / (parties + has_dealer(source)),
        verification_of([each.verification for each in found]),
    )


class _Metered(NamedTuple):
    """Measurements of one party."""

    by_label: dict[str, Reading]
    total: Reading
    correlations: Reading
    verification: Verification | None
    started: float
    #: Time that all cores have computed for this process, which runs all parties.
    ended: float


def _metered(parts: Callable[[], Iterator[str]]) -> _Metered:
    started, meter = time.process_time(), session().meter
    lines, named, before = dict(meter), dict[str, Reading](), meter[OUTSIDE]
    for name in parts():
        now = meter[OUTSIDE]
        if name:
            named[name] = now - before
        lines |= dict(meter) | named
        before = now
    for reading in named.values():
        lines[OUTSIDE] -= reading
    return _Metered(
        lines, meter.total, meter.correlations, meter.verification, started, time.process_time()
    )


def _lines(found: list[_Metered]) -> dict[str, Line]:
    """Returns costs by label.

    What one party meters under one label another may meter under the next. So each column comes
    from a single party.
    """
    sends = max(found, key=lambda each: each.total.bytes_sent).by_label
    waits = max(found, key=lambda each: each.total.rounds).by_label
    lines = {
        label: Line(
            sends[label].bytes_sent if label in sends else 0,
            waits[label].rounds if label in waits else 0,
        )
        for label in dict.fromkeys([*sends, *waits])
    }
    return {label: line for label, line in lines.items() if line.bytes_sent or line.rounds}


def _table(found: Cost) -> list[str]:
    width = max(map(len, ["(outside)", *found.layers]))
    lines = [f"{'layer':<{width}} {'MB':>10} {'rounds':>7} {'network s':>10}"]
    for label, line in found.layers.items():
        seconds = found.network.seconds(line.rounds, line.bytes_sent)
        lines.append(
            f"{label or '(outside)':<{width}} {line.bytes_sent / 1e6:>10.3f} {line.rounds:>7} "
            f"{seconds:>10.3f}"
        )
    lines.append(
        f"{'total':<{width}} {max(found.bytes_sent) / 1e6:>10.3f} {found.rounds:>7} "
        f"{found.network_seconds:>10.3f}"
    )
    return lines


def _summary(found: Cost) -> list[str]:
    lines = [
        f"{found.protocol} sharing, {found.parties} parties; {found.network}; MB of the party that "
        f"sends "
        "most, before TLS",
        f"predicted: {found.seconds:.2f} s = {found.rounds} rounds · half a round trip + "
        f"{max(found.bytes_sent) / 1e6:.2f} MB / bandwidth ({found.network_seconds:.2f} s) "
        f"+ {found.local_seconds:.2f} s of computing, on one core as fast as this machine's",
    ]
    if found.source:
        made = found.correlation_bytes
        lines[-1] += (
            f" + correlations: {made / 1e6:.2f} MB ({made / found.network.bandwidth:.2f} s)"
        )
    elif consumes(found.protocol):
        lines.append(
            f"as with source {quoted([DEFAULT_SOURCE])}; not counted: correlations; source "
            f"{quoted(LIVE)} makes them in the rehearsal too"
        )
    return [*lines, *verification_lines(found.verified)]
