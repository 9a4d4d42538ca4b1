"""Shapes of the core's bilinear maps, as they are and as numbers, which
operators of PyTorch take."""

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
        """The same for the core."""
        return _core.Convolution(**vars(self))

    @property
    def numbers(self) -> list[int]:
        """The same as numbers, of which ``of`` makes it again."""
        single = (self.batch, self.groups, self.in_channels, self.out_channels)
        return [*single, *self.input, *self.kernel, *self.stride, *self.padding, *self.dilation]

    @staticmethod
    def of(numbers: Sequence[int]) -> "Geometry":
        """Of its numbers."""
        batch, groups, in_channels, out_channels, *rest = numbers
        pairs = zip(rest[::2], rest[1::2], strict=True)
        return Geometry(batch, groups, in_channels, out_channels, *pairs)


class Matrices(NamedTuple):
    """Sizes of a product of matrices."""

    sizes: tuple[int, int, int, int]
    """(batch, m, k, n): (batch, m, k) by (batch, k, n)."""
    is_transposed: bool = False
    """Whether the right one lies transposed, (batch, n, k), as weights do."""

    @property
    def core(self) -> tuple[tuple[int, int, int, int], bool]:
        """The same for the core."""
        return self.sizes, self.is_transposed

    @property
    def numbers(self) -> list[int]:
        """The same as numbers."""
        return [*self.sizes, int(self.is_transposed)]


#: Numbers that say the shape of a product of matrices.
OF_MATRICES = 5


def shape_of(numbers: Any) -> Any:
    """Of a term, as itself or as its numbers."""
    if isinstance(numbers, Geometry | Matrices):
        return numbers
    if len(numbers) == OF_MATRICES:
        *sizes, is_transposed = numbers
        return Matrices(tuple(sizes), bool(is_transposed))
    return Geometry.of(numbers)
