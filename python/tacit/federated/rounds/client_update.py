"""What a client has learned, and what it sends of it: trained numbers less those that they were
trained from, times a factor. None of it is written out on the way to the words that leave: see
``crates/mpc/src/client_update.rs``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from tacit import _core
from tacit.errors import EncodingError

#: What trained numbers are sent from as they are; others are brought to the last of these.
_DTYPES = (torch.float32, torch.float64)


class Update(NamedTuple):
    """What a client sends, written out: a vector [parameters], and its weight."""

    vector: torch.Tensor
    weight: float


class Change:
    """Trained numbers by name, in a row, less those that they were trained from."""

    def __init__(
        self, trained: Mapping[str, torch.Tensor], start: torch.Tensor | None = None
    ) -> None:
        """Where no start is given, from zeros; it has single precision."""
        self.trained = {name: value.detach().reshape(-1) for name, value in trained.items()}
        self.start = start
        self._measured: tuple[float, float] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.trained.values()))

    @property
    def pieces(self) -> list[np.ndarray[Any, Any]]:
        """The trained numbers as memory."""
        return [
            value.contiguous().to(value.dtype if value.dtype in _DTYPES else _DTYPES[-1]).numpy()
            for value in self.trained.values()
        ]

    @property
    def from_there(self) -> np.ndarray[Any, Any] | None:
        """What they were trained from as memory."""
        return None if self.start is None else self.start.contiguous().numpy()

    def values(self) -> torch.Tensor:
        """The differences, in double precision."""
        wide = [value.to(torch.float64) for value in self.trained.values()]
        row = torch.cat([torch.empty(0, dtype=torch.float64), *wide])
        return row if self.start is None else row.sub_(self.start)

    def measured(self) -> tuple[float, float]:
        """The norm, and the greatest magnitude.

        Raises:
            EncodingError: a value is NaN or infinite; which, by its name.
        """
        if self._measured is None:
            self._measured = _core.measured(self.pieces, self.from_there)
        if math.isnan(self._measured[1]):
            values = self.values()
            place = int((~torch.isfinite(values)).nonzero()[0])
            raise EncodingError(
                f"{self.called(place)} is {values[place].item()}, which is no finite number"
            )
        return self._measured

    def called(self, place: int) -> str:
        """What the value at a place is called."""
        for name, value in self.trained.items():
            if place < len(value):
                return f"value {place} of {name}"
            place -= len(value)
        raise IndexError(place)


@dataclass(frozen=True)
class Outgoing:
    """What a client is about to send: a change times a factor, and a weight."""

    change: Change
    weight: float
    factor: float = 1.0
    #: What a norm above the bound was multiplied by to be the bound; 1 for one that was not.
    shortened: float = 1.0

    @staticmethod
    def of(update: Update) -> "Outgoing":
        """Of a vector that is written out, as a step makes it that looks at values."""
        return Outgoing(Change({"the update": update.vector}), update.weight)

    @property
    def norm(self) -> float:
        """Of what is sent. Raises as :meth:`Change.measured`."""
        return self.change.measured()[0] * self.factor

    @property
    def greatest(self) -> float:
        """The greatest magnitude of what is sent. Raises as :meth:`Change.measured`."""
        return self.change.measured()[1] * self.factor

    def by(self, factor: float) -> "Outgoing":
        """The same times that."""
        return replace(self, factor=self.factor * factor)

    def update(self) -> Update:
        """Written out."""
        return Update(self.change.values().mul_(self.factor), self.weight)
