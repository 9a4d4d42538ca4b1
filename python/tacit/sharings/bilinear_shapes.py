"""Shapes of the core's bilinear maps, as classes and as lists of integers for PyTorch operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit import _core

Pair = tuple[int, int]


@dataclass(frozen=True)
class Geometry:
    """The shape of a convolution of images with filters; pairs are height before width."""

    batch: int
    groups: int
    in_channels: int
    out_channels: int
    input: Pair
    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair

    @property
    def core(self) -> _core.Convolution:
        """The shape as the core's object."""
        return _core.Convolution(**vars(self))

    @property
    def numbers(self) -> list[int]:
        """The shape as integers; ``of`` is the inverse."""
        single = (self.batch, self.groups, self.in_channels, self.out_channels)
        return [*single, *self.input, *self.kernel, *self.stride, *self.padding, *self.dilation]

    @staticmethod
    def of(numbers: Sequence[int]) -> "Geometry":
        """Builds a shape from its integers."""
        batch, groups, in_channels, out_channels, *rest = numbers
        pairs = zip(rest[::2], rest[1::2], strict=True)
        return Geometry(batch, groups, in_channels, out_channels, *pairs)


class Matrices(NamedTuple):
    """Sizes of a batched matrix product."""

    #: (batch, m, k, n) for the product of (batch, m, k) and (batch, k, n).
    sizes: tuple[int, int, int, int]
    #: Whether the right matrix is stored transposed, (batch, n, k), as weights are.
    is_transposed: bool = False

    @property
    def core(self) -> tuple[tuple[int, int, int, int], bool]:
        """The sizes as the core's arguments."""
        return self.sizes, self.is_transposed

    @property
    def numbers(self) -> list[int]:
        """The sizes as integers; ``shape_of`` is the inverse."""
        return [*self.sizes, int(self.is_transposed)]


#: Number of integers that describe a matrix product.
OF_MATRICES = 5


def shape_of(numbers: Any) -> Any:
    """Returns the shape of a term that is given as a shape or as its integers."""
    if isinstance(numbers, Geometry | Matrices):
        return numbers
    if len(numbers) == OF_MATRICES:
        *sizes, is_transposed = numbers
        return Matrices(tuple(sizes), bool(is_transposed))
    return Geometry.of(numbers)
