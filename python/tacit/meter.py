"""Meter of a party's bytes, messages, rounds and waiting, by label, and of verification."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit import _core


@dataclass(frozen=True)
class Reading:
    """Counts of a party's communication under one label, or in total."""

    #: Bytes that this party sent, without frame headers.
    payload_bytes: int
    #: Bytes that this party sent, with frame headers, before TLS.
    bytes_sent: int
    #: Bytes that this party received, with frame headers, before TLS.
    bytes_received: int
    #: Number of messages that this party sent.
    frames: int
    #: Rounds: the growth of the longest chain of messages that each wait for the one before.
    rounds: int
    #: Seconds that this party waited for messages.
    waiting_seconds: float

    @staticmethod
    def of(entries: Mapping[str, float]) -> "Reading":
        return Reading(
            int(entries["payload_bytes"]),
            int(entries["bytes_sent"]),
            int(entries["bytes_received"]),
            int(entries["frames"]),
            int(entries["rounds"]),
            float(entries["waiting_seconds"]),
        )

    def __sub__(self, earlier: "Reading") -> "Reading":
        return Reading(
            self.payload_bytes - earlier.payload_bytes,
            self.bytes_sent - earlier.bytes_sent,
            self.bytes_received - earlier.bytes_received,
            self.frames - earlier.frames,
            self.rounds - earlier.rounds,
            self.waiting_seconds - earlier.waiting_seconds,
        )


@dataclass(frozen=True)
class Verification:
    """What it took this party to verify that all parties follow the protocol.

    The bytes and rounds are part of those of the labels."""

    #: Seconds that this party spent on it, waiting included.
    seconds: float
    #: Bytes that this party sent for it.
    bytes_sent: int
    #: Rounds that it added.
    rounds: int

    def since(self, earlier: "Verification | None") -> "Verification":
        """Returns what was taken since an earlier reading."""
        if earlier is None:
            return self
        return Verification(
            self.seconds - earlier.seconds,
            self.bytes_sent - earlier.bytes_sent,
            self.rounds - earlier.rounds,
        )


def verification_of(
    parties: Sequence[Verification | None], runs: int = 1
) -> dict[str, dict[str, Any]]:
    """Returns the entry of reports on what verification took, by its key.

    It is empty under protocols that verify nothing, so that their reports have no such key.

    Args:
        parties: what each party read.
        runs: the number of runs in that. The entry is of one run.
    """
    read = [each for each in parties if each is not None]
    if not read:
        return {}
    entry = {
        "seconds": max(each.seconds for each in read) / runs,
        "bytes_sent_per_party": [each.bytes_sent // runs for each in read],
        "rounds": max(each.rounds for each in read) // runs,
    }
    return {"verification": entry}


def attestation_of(parties: Sequence[Mapping[str, Any] | None]) -> dict[str, dict[str, Any]]:
    """Returns the entry of reports on what attestation did, by its key.

    It is empty if the parties did not attest, so that reports then have no such key. Else it has
    ``kind``; ``verified``, by party, the number of members whose evidence it accepted;
    ``signatures`` of all parties; and ``seconds`` of the party that spent most.

    Args:
        parties: what ``Session.attestation`` is in each party.
    """
    found = [each for each in parties if each is not None]
    if len(found) < len(parties):
        return {}
    entry = {
        "kind": found[0]["kind"],
        "verified": [each["verified"] for each in found],
        "signatures": sum(each["signatures"] for each in found),
        "seconds": max(each["seconds"] for each in found),
    }
    return {"attestation": entry}


def verification_lines(report: Mapping[str, Any]) -> list[str]:
    """Returns the line of printed reports on that entry, if the report has it."""
    entry = report.get("verification")
    if entry is None:
        return []
    return [
        f"of which verification: {entry['seconds']:.3f} s, "
        f"{max(entry['bytes_sent_per_party']) / 1e6:.3f} MB a party at most, "
        f"{entry['rounds']} rounds"
    ]


class Meter(Mapping[str, Reading]):
    """A live mapping from labels to the readings of a session.

    While a ``torch.nn`` module runs on secret tensors, the label is the module's path in the model.
    The label ``""`` is for everything outside modules.
    """

    def __init__(self, core: _core.Session) -> None:
        self._core = core

    def __getitem__(self, label: str) -> Reading:
        return Reading.of(self._core.meter()[label])

    def __iter__(self) -> Iterator[str]:
        return iter(self._core.meter())

    def __len__(self) -> int:
        return len(self._core.meter())

    @property
    def correlations(self) -> Reading:
        """Reading of correlations that were made ahead of need; labels do not include it."""
        return Reading.of(self._core.correlations()[0])

    @property
    def waited_for_correlations(self) -> float:
        """Seconds that the online computation has waited for correlations."""
        return self._core.correlations()[1]

    @property
    def verification(self) -> Verification | None:
        """What verification has taken so far; None under a protocol that verifies nothing."""
        taken = self._core.verification()
        return None if taken is None else Verification(*taken)

    def verification_since(self, earlier: Verification | None) -> Verification | None:
        """Returns what verification has taken since an earlier reading."""
        now = self.verification
        return None if now is None else now.since(earlier)

    @property
    def total(self) -> Reading:
        """Sum of the readings of all labels."""
        return Reading.of(self._core.totals())

    def __str__(self) -> str:
        lines = [f"{'label':<32} {'MB sent':>10} {'rounds':>8} {'waiting s':>10}"]
        rows = [*self.items(), ("total", self.total)]
        lines += [
            f"{label or '(outside)':<32} {r.bytes_sent / 1e6:>10.3f} {r.rounds:>8} "
            f"{r.waiting_seconds:>10.3f}"
            for label, r in rows
        ]
        return "\n".join(lines)
