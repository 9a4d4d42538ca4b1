"""What a program costs on a network that it is not run on: rounds and bytes as the meter of a run
in memory counts them, which are those of any run, and seconds by the network's delay and
bandwidth."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tacit.errors import MisuseError
from tacit.meter import Reading
from tacit.parties.launch import launch
from tacit.providers import DEFAULT, LIVE, PROTOCOLS, consumes, has_dealer, quoted, rehearsed
from tacit.rehearsal.subject import Subject, parts_of
from tacit.sessions import session

#: Longest wait for one message, in seconds: correlations may take long.
TIMEOUT = 1800.0

#: The meter's label of what a party does outside of modules.
OUTSIDE = ""


@dataclass(frozen=True)
class Network:
    """What lies between the parties."""

    round_trip: float
    """Seconds for a message there and one back."""
    bandwidth: float
    """Bytes a second that a party can send to all others together, and receive from them."""

    @staticmethod
    def of(text: str) -> "Network":
        """Of the name of one in ``NETWORKS``, or of ``RTT,MBIT`` in milliseconds and megabits a
        second.

        Raises:
            MisuseError: it is neither.
        """
        try:
            round_trip, megabits = (float(number) for number in NETWORKS.get(text, text).split(","))
        except ValueError:
            round_trip = megabits = -1.0
        if not (round_trip >= 0 and megabits > 0):
            raise MisuseError(
                f"{text!r} is no network: lan, wan, or milliseconds of a round trip and megabits a "
                f"second, "
                "such as 20,100"
            )
        return Network(round_trip / 1e3, megabits * 1e6 / 8)

    def seconds(self, rounds: int, sent: int) -> float:
        """What messages take: each round waits for one to arrive, half a round trip."""
        return rounds * self.round_trip / 2 + sent / self.bandwidth

    def __str__(self) -> str:
        return f"{self.round_trip * 1e3:g} ms round trip, {self.bandwidth * 8 / 1e6:g} Mbit/s"


#: Networks with a name: a room, and two cities.
NETWORKS = {"lan": "0.5,1000", "wan": "40,100"}


@dataclass(frozen=True)
class Line:
    """What a module costs, or what the program does outside of any."""

    bytes_sent: int
    """By the party that sends most in all, with frame headers."""
    rounds: int
    """Of the party that has most in all."""


@dataclass(frozen=True)
class Cost:
    """What ``tacit.cost`` found."""

    protocol: str
    parties: int
    source: str | None
    """Of the correlations that are counted, if any are."""
    network: Network
    layers: dict[str, Line]
    """By label, as in the meter."""
    bytes_sent: list[int]
    """By each party, with frame headers, before TLS."""
    payload_bytes: list[int]
    """The same without headers."""
    rounds: int
    """Of the party that has most."""
    correlation_bytes: int
    """What making correlations has the party send or receive that does so most."""
    local_seconds: float
    """Time of a core that a party computes."""

    @property
    def network_seconds(self) -> float:
        """What messages take, correlations aside."""
        return self.network.seconds(self.rounds, max(self.bytes_sent))

    @property
    def seconds(self) -> float:
        """All of it, one after the other."""
        return (
            self.network_seconds
            + self.correlation_bytes / self.network.bandwidth
            + self.local_seconds
        )

    def as_json(self) -> dict[str, Any]:
        """All of it by name."""
        return {**asdict(self), "network_seconds": self.network_seconds, "seconds": self.seconds}

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
    """Runs a program once on this machine, between parties in memory, and says what it costs on a
    network. Rounds and bytes are exactly those of a real run: both follow from shapes, never from
    values or time. A module's are those of a program in which party 0 shares it and party 1 its
    inputs in order, that calls it, and reveals what it returns to party 1; called as a part of
    another module, frames have its longer path in their headers.

    Seconds are rounds · half a round trip + bytes / bandwidth + what one core computes for a party;
    on links that carry while a party computes it is less, on a machine with more cores too.

    Args:
        subject: a module, or what every party runs.
        example: of a module's inputs, as ``tacit.check`` takes them.
        network: "lan" (0.5 ms, 1000 Mbit/s), "wan" (40 ms, 100 Mbit/s), or "RTT,MBIT".
        protocol: "replicated", or "additive".
        parties: by default 3, or 2 with additive sharing.
        source: of the correlations of additive sharing, "ot", "he" or "dealer": they are made in
            the rehearsal, which may take long, and counted. If it is not given they are not
            counted.

    Raises:
        MisuseError: the network is none, or there is no such protocol.
    """
    between = Network.of(network)
    parties = parties or (PROTOCOLS[protocol].usual_parties if protocol in PROTOCOLS else 2)
    made_by = rehearsed(protocol, source)
    parts = parts_of(subject, example)
    found = launch(
        _metered,
        parts,
        parties=parties,
        protocol=protocol,
        source=made_by,
        timeout=TIMEOUT,
        threads=1,
    )
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
        computed / (parties + has_dealer(made_by)),
    )


class _Metered(NamedTuple):
    """What a party found."""

    by_label: dict[str, Reading]
    total: Reading
    correlations: Reading
    started: float
    ended: float
    """Time of all cores that this process, in which all parties are, has computed."""


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
    return _Metered(lines, meter.total, meter.correlations, started, time.process_time())


def _lines(found: list[_Metered]) -> dict[str, Line]:
    """By label; what a party has under one label another may have under the next, so each column is
    one's."""
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
            f"not counted: correlations; source {quoted(LIVE)} makes them in the rehearsal too"
        )
    return lines
