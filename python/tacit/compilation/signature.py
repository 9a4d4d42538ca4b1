"""Inputs and weights of a program, as its signature states them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import fx

from tacit.compilation.graph import Interval

#: Greatest magnitude of an exponent by which the owner of an input scales a column.
MOST_EXPONENT = 64


class Input(NamedTuple):
    """An input of a program."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    #: Interval within which the owner promises all numbers to be. Widths were proved from it.
    interval: Interval | None
    #: Exponents of two: the owner multiplies each column by that power before it shares the input.
    #: The interval is that of the products. No exponents if columns stay as they are.
    exponents: tuple[int, ...] = ()

    def scaled(self, values: torch.Tensor) -> torch.Tensor:
        """Returns the input as the program takes it. One of another shape stays as it is, and is
        refused where shapes are checked."""
        if not self.exponents or values.shape[-1:] != (len(self.exponents),):
            return values
        return values * torch.ldexp(torch.ones(len(self.exponents)), torch.tensor(self.exponents))


class Weight(NamedTuple):
    """A weight of a program, which the owner of the model passes."""

    shape: tuple[int, ...]
    #: Fraction bits; 0 for booleans, which say on which side of zero numbers are kept.
    bits: int

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the weight in files."""
        return torch.float32 if self.bits else torch.bool


class Runnable(Protocol):
    """The parts of a program that running it needs."""

    @property
    def graph(self) -> fx.Graph:
        """Graph of the computation."""

    @property
    def scale(self) -> int:
        """Fraction bits of the session in which it runs."""

    @property
    def inputs(self) -> dict[str, Input]:
        """Inputs by placeholder, in the order in which they are passed."""

    @property
    def weights(self) -> dict[str, Weight]:
        """Weights by placeholder."""

    @property
    def constants(self) -> dict[str, torch.Tensor]:
        """Public constants by placeholder."""

    @property
    def digest(self) -> str:
        """Hash of the program."""


class Owned(Protocol):
    """The weights of a program, at their owner."""

    @property
    def values(self) -> Mapping[str, torch.Tensor]:
        """Weights by placeholder."""

    def check(self, program: Any) -> None:
        """Raises if these are the weights of another program."""
