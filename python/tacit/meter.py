"""What a party sent and how long it waited, by label."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tacit import _core


@dataclass(frozen=True)
class Reading:
    """One line of a meter."""

    payload_bytes: int
    """Bytes of messages sent by this party."""
    bytes_sent: int
    """The same with frame headers, before TLS."""
    bytes_received: int
    """The same of what this party received."""
    frames: int
    """Messages sent by this party."""
    rounds: int
    """Growth of the longest chain of messages each of which waited for the one before."""
    waiting_seconds: float
    """Time spent waiting for messages."""

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
    """Live readings of a session by label.

    While a module of ``torch.nn`` runs on secret tensors, its path in the model is the label; what
    happens outside any module stands under ``""``.
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
        """What making correlations ahead of need has sent, apart from all else."""
        return Reading.of(self._core.correlations()[0])

    @property
    def waited_for_correlations(self) -> float:
        """Seconds that computing has waited for correlations."""
        return self._core.correlations()[1]

    @property
    def total(self) -> Reading:
        """Readings over all labels."""
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
