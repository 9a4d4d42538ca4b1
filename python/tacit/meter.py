"""Meter of a party's bytes, messages, rounds and waiting, by label."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
