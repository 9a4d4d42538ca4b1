"""What goes into a program."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import fx

from tacit.compilation.graph import Interval


class Input(NamedTuple):
    """What somebody gives the program."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    interval: Interval | None
    """Within which its owner promises all numbers to be; widths were proved from it."""


class Weight(NamedTuple):
    """What the owner of the model gives."""

    shape: tuple[int, ...]
    bits: int
    """Fraction bits; 0 of booleans, which say on which side of zero numbers are kept."""

    @property
    def dtype(self) -> torch.dtype:
        """As files have them."""
        return torch.float32 if self.bits else torch.bool


class Runnable(Protocol):
    """All of a program that running it takes."""

    @property
    def graph(self) -> fx.Graph:
        """What it computes."""

    @property
    def scale(self) -> int:
        """Fraction bits of the session in which it runs."""

    @property
    def inputs(self) -> dict[str, Input]:
        """By placeholder, in the order in which they are given."""

    @property
    def weights(self) -> dict[str, Weight]:
        """By placeholder."""

    @property
    def constants(self) -> dict[str, torch.Tensor]:
        """Public ones, by placeholder."""

    @property
    def digest(self) -> str:
        """Its hash."""


class Owned(Protocol):
    """The weights of a program, at their owner."""

    @property
    def values(self) -> Mapping[str, torch.Tensor]:
        """By placeholder."""

    def check(self, program: Any) -> None:
        """Raises where they are another program's."""
