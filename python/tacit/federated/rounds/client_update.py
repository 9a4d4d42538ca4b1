"""A client's change and what it sends of it.

The change is the trained numbers less those that training started from, times a factor. It is
encoded directly into the words that are sent, without an intermediate tensor: see
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

#: Dtypes of trained numbers that are read as they are; others are converted to the last of these.
_DTYPES = (torch.float32, torch.float64)


class Update(NamedTuple):
    """A client's update as tensors: a vector [parameters], and its weight."""

    vector: torch.Tensor
    weight: float


class Change:
    """Trained numbers by name, in a row, less those that training started from."""

    def __init__(
        self, trained: Mapping[str, torch.Tensor], start: torch.Tensor | None = None
    ) -> None:
        """Takes the trained numbers and their start, float32; zeros if no start is given."""
        self.trained = {name: value.detach().reshape(-1) for name, value in trained.items()}
        self.start = start
        self._measured: tuple[float, float] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.trained.values()))

    @property
    def pieces(self) -> list[np.ndarray[Any, Any]]:
        """The trained numbers as arrays, for the core."""
        return [
            value.contiguous().to(value.dtype if value.dtype in _DTYPES else _DTYPES[-1]).numpy()
            for value in self.trained.values()
        ]

    @property
    def from_there(self) -> np.ndarray[Any, Any] | None:
        """The numbers that training started from as an array, for the core."""
        return None if self.start is None else self.start.contiguous().numpy()

    def values(self) -> torch.Tensor:
        """Computes the differences, in double precision."""
        wide = [value.to(torch.float64) for value in self.trained.values()]
        row = torch.cat([torch.empty(0, dtype=torch.float64), *wide])
        return row if self.start is None else row.sub_(self.start)

    def measured(self) -> tuple[float, float]:
        """Returns the norm and the greatest magnitude.

        Raises:
            EncodingError: a value is NaN or infinite; the error names it.
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
        """Returns the name of the value at the given place, for messages."""
        for name, value in self.trained.items():
            if place < len(value):
                return f"value {place} of {name}"
            place -= len(value)
        raise IndexError(place)


@dataclass(frozen=True)
class Outgoing:
    """A change that is about to be sent: it is multiplied by a factor, and has a weight."""

    change: Change
    weight: float
    factor: float = 1.0
    #: The factor that shortened a norm above the bound to the bound; 1 if the norm was not above
    #: it.
    shortened: float = 1.0
    #: The number of values that were cut off at the greatest one that can be sent.
    cut: int = 0
    #: The factor that shortened it besides, since rounding to steps made it longer than the bound.
    by_rounding: float = 1.0

    @staticmethod
    def of(update: Update) -> "Outgoing":
        """Makes it from an update given as tensors, as a step does that reads the values."""
        return Outgoing(Change({"the update": update.vector}), update.weight)

    @property
    def norm(self) -> float:
        """The norm of what is sent. Raises as :meth:`Change.measured`."""
        return self.change.measured()[0] * self.factor

    @property
    def greatest(self) -> float:
        """The greatest magnitude of what is sent. Raises as :meth:`Change.measured`."""
        return self.change.measured()[1] * self.factor

    def by(self, factor: float) -> "Outgoing":
        """Returns it with its values multiplied by ``factor``."""
        return replace(self, factor=self.factor * factor)

    def update(self) -> Update:
        """Computes the update as tensors."""
        return Update(self.change.values().mul_(self.factor), self.weight)
