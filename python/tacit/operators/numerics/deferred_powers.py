"""Powers of inverse roots of sums of squares, deferred in a backward pass.

PyTorch multiplies gradients of roots by powers of the root, r³ for rsqrt. These powers overflow for
small rows and vanish for large ones. In the end they are multiplied by the numbers that were
squared, and each product by one r has the magnitude of other numbers. So a power, and a gradient
times a power, are kept as their factors until they are multiplied by a number, or until an operator
asks for their values. What is deferred follows from the program alone, so all parties defer and
compute the same.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit.fixed import Scale
from tacit.operators.dispatch.operands import number, rescaled, result_dtype
from tacit.operators.dispatch.table import writes
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Offset, sizes and strides of a view of the tensor of all roots.
Place = tuple[Any, ...]


def place(y: SecretTensor) -> Place:
    """Returns which view of the tensor of all roots y is."""
    part = y._parts[0]
    sizes = zip(part.shape, part.stride(), strict=True)
    return part.storage_offset(), *((size, stride) for size, stride in sizes if size > 1)


class Powers:
    """A lazily computed gradient factor · weight · r^power, with an inverse root r for each row."""

    def __init__(
        self,
        inverse: SecretTensor,
        power: int,
        factor: float,
        weight: SecretTensor | None,
        scale: Scale,
        shape: Sequence[int],
        of: tuple[SecretTensor, Place],
    ) -> None:
        self.inverse, self.power, self.factor, self.weight = inverse, power, factor, weight
        self._scale = scale
        #: The inverse root with all of its bits, as other powers of it share it, and the view of it
        #: that these powers belong to.
        self.of = of
        #: Shape of the values, to which inverse root and weight are broadcast.
        self.shape = tuple(shape)
        #: The values, once an operator asked for them. It may have written to them.
        self.computed: Parts = ()
        #: How often other values were written over these.
        self.written = 0
        #: The powers that this expands, whose writes show here; their shape then, and how often
        #: they had been written to.
        self.repeats: tuple[Powers, Sequence[int], int] | None = None

    @property
    def is_left(self) -> bool:
        """Whether the values were not computed, and the factors are still those of the values."""
        if self.computed or self.repeats is None:
            return not self.computed
        whole, _, written = self.repeats
        return whole.is_left and whole.written == written

    def is_beside(self, y: SecretTensor, inverse: SecretTensor) -> bool:
        """Whether these are powers of the inverse roots that correspond to y elementwise."""
        own, view = self.of
        return own is inverse and view == place(y)

    def parts(self) -> Parts:
        """Computes the values at the scale of the moment when they were deferred.

        All views share the components."""
        if self.repeats is not None:
            whole, before, _ = self.repeats
            self.computed = tuple(part.reshape(before).expand(self.shape) for part in whole.parts())
            return self.computed
        session = self.inverse._session
        operator, session.operator = session.operator, session.operator or "a power of a root"
        try:
            with torch.no_grad(), session.using(scale=self._scale):
                if not self.computed:
                    found = rescaled(self._times(self.weight, self.power), self._scale)
                    self.computed = tuple(
                        part.expand(self.shape).contiguous() for part in found._parts
                    )
        finally:
            session.operator = operator
        return self.computed

    def _times(self, found: SecretTensor | None, times: int) -> SecretTensor:
        """Returns factor · found · r^times."""
        if found is None:
            found, times = self.inverse, times - 1
        for _ in range(times):
            found = found * self.inverse
        return found if self.factor == 1.0 else found * self.factor

    def times(self, x: SecretTensor, y: Any) -> SecretTensor | None:
        """Multiplies x, the tensor of these powers, by y.

        Returns ``None`` if y is public and changes the shape or the dtype."""
        if not isinstance(y, SecretTensor):
            return multiple(x, y)
        if self.weight is None and y.shape == x.shape and y.dtype == x.dtype:
            return self.weighted(y, x.shape)
        return self.met_by(y, x.shape)

    def met_by(self, z: Any, shape: Sequence[int]) -> SecretTensor:
        """Multiplies z by these powers, seen as the given shape.

        Both z and the weight are multiplied by an inverse root first, so that neither overflows."""
        whole = torch.broadcast_shapes(z.shape, shape)  # type: ignore[no-untyped-call]
        z = z if z.shape == whole else z.expand(whole)
        rest = (
            None
            if self.weight is None and self.power == 1
            else self._times(self.weight, self.power - 1)
        )
        found: SecretTensor = z * self._seen_as(self.inverse, shape)
        if rest is None:
            return found if self.factor == 1.0 else found * self.factor
        return found * self._seen_as(rest, shape)

    def _seen_as(self, one: SecretTensor, shape: Sequence[int]) -> SecretTensor:
        """Views a factor, which broadcasts to the shape of the values, as another shape of them."""
        return one if tuple(shape) == self.shape else one.expand(self.shape).reshape(shape)

    def scaled(self, factor: float, shape: Sequence[int], power: int | None = None) -> SecretTensor:
        """Multiplies these powers by a public number; ``power`` replaces the exponent."""
        inverse, weight = (
            None if one is None else self._seen_as(one, shape)
            for one in (self.inverse, self.weight)
        )
        return self._left(inverse, weight, shape, power or self.power, self.factor * factor)

    def weighted(self, weight: SecretTensor, shape: Sequence[int]) -> SecretTensor:
        """Multiplies these powers by a gradient of their shape."""
        weight = weight.like(tuple(part.clone() for part in weight._parts))
        return self._left(
            self._seen_as(self.inverse, shape), weight, shape, self.power, self.factor
        )

    def masked(self, mask: Any, shape: Sequence[int]) -> SecretTensor:
        """Returns these powers with 0 where a mask is true."""
        assert self.weight is not None
        weight = self._seen_as(self.weight, shape).masked_fill(mask, 0.0)
        inverse: Any = self._seen_as(self.inverse, shape)
        return self._left(inverse, weight, shape, self.power, self.factor)

    def become(self, other: "Powers") -> None:
        """Overwrites these with other powers of the same shape, in all views of them."""
        self.inverse, self.power, self.factor, self.weight = (
            other.inverse, other.power, other.factor, other.weight
        )  # fmt: skip
        self.of = other.of
        self.repeats, self.written = None, self.written + 1

    def expanded(self, before: Sequence[int], shape: Sequence[int]) -> SecretTensor:
        """Expands these powers, seen as the shape ``before``, to another shape."""
        inverse, weight = (
            None if one is None else self._seen_as(one, before)
            for one in (self.inverse, self.weight)
        )
        assert inverse is not None
        later = Powers(inverse, self.power, self.factor, weight, self._scale, shape, self.of)
        later.repeats = self, before, self.written
        return SecretTensor(
            (), self._scale, inverse._session, inverse.dtype, shape=shape, later=later
        )

    def _left(
        self,
        inverse: SecretTensor | None,
        weight: SecretTensor | None,
        shape: Sequence[int],
        power: int,
        factor: float,
    ) -> SecretTensor:
        assert inverse is not None
        session = inverse._session
        later = Powers(inverse, power, factor, weight, session.scale, shape, self.of)
        return SecretTensor((), session.scale, session, inverse.dtype, shape=shape, later=later)


def powers_of(x: Any) -> Powers | None:
    """Returns the deferred powers that x is; ``None`` if it is not, or if they were computed."""
    later = x._later if isinstance(x, SecretTensor) else None
    return later if isinstance(later, Powers) and later.is_left else None


def expanded(x: Any, shape: Sequence[int]) -> SecretTensor | None:
    """Expands deferred powers along dimensions; ``None`` for other tensors."""
    powers = powers_of(x)
    if powers is None:
        return None
    return powers.expanded(x.shape, torch.empty(x.shape, device="meta").expand(*shape).shape)


def masked(x: Any, mask: Any, value: Any) -> SecretTensor | None:
    """Fills deferred powers with 0 where a mask is true; ``None`` for other tensors and values."""
    powers = powers_of(x)
    if powers is None or powers.weight is None or number(value) != 0.0 or mask.shape != x.shape:
        return None
    return powers.masked(mask, x.shape)


@writes
def written(target: SecretTensor, value: Any) -> bool:
    """Writes deferred powers into a target that is deferred powers too; says whether it did."""
    if target._session.dependencies.are_there:
        # Views of the target would depend on flags that they do not record.
        return False
    mine, other = powers_of(target), powers_of(value)
    if mine is None or other is None or not tuple(target.shape) == mine.shape == other.shape:
        return False
    mine.become(other)
    return True


def multiple(x: Any, factor: Any, *, divided: bool = False) -> SecretTensor | None:
    """Multiplies or divides deferred powers by a public number; ``None`` for other tensors."""
    powers = powers_of(x)
    by = None if powers is None else number(factor)
    if powers is None or not by or not math.isfinite(by) or not _keeps(x, factor):
        return None
    return powers.scaled(1.0 / by if divided else by, x.shape)


def _keeps(x: SecretTensor, factor: Any) -> bool:
    """Whether the product of x and a public factor has the shape and the dtype of x."""
    return result_dtype(x, factor) == x.dtype and (
        not isinstance(factor, torch.Tensor) or factor.dim() <= x.dim()
    )
