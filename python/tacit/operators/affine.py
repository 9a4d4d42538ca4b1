"""Affine maps: sums of convolutions, or of linear layers, of a bias and of other tensors, which are
truncated once; and the greater of that and zero, whose sign may start beside the truncation."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit import fixed
from tacit.operators.convolution import geometry_of
from tacit.operators.dispatch import custom_ops
from tacit.operators.dispatch.operands import (
    as_factors,
    lifted,
    operand_scale,
    rectified_to_zero,
    rescaled,
)
from tacit.operators.dispatch.scales import of_affine
from tacit.operators.dispatch.table import implements
from tacit.sharings import shares
from tacit.sharings.bilinear_shapes import Matrices
from tacit.sharings.shares import Addend, Parts, Term
from tacit.tensor import SecretTensor

#: Inputs or weights.
Operands = Sequence[Any]


@implements(torch.ops.tacit.affine.default, scale=of_affine)
def affine(
    x: Operands, weight: Operands, bias: Any, addends: Operands, geometry: Sequence[int]
) -> Any:
    """Σ x·weight + bias + Σ addends. The rounds of a product that is truncated."""
    custom_ops.check_affine(x, weight, geometry)
    fused = _fused(x, weight, bias, addends, geometry, is_rectified=False)
    return _composed(x, weight, bias, addends, geometry) if fused is None else fused


@implements(torch.ops.tacit.rectified_affine.default, scale=of_affine)
def rectified_affine(
    x: Operands, weight: Operands, bias: Any, addends: Operands, geometry: Sequence[int]
) -> Any:
    """max(0, .) of the same; of a value that is nearer to zero than a unit that may be zero too."""
    custom_ops.check_affine(x, weight, geometry)
    fused = _fused(x, weight, bias, addends, geometry, is_rectified=True)
    return torch.relu(_composed(x, weight, bias, addends, geometry)) if fused is None else fused


def _composed(
    x: Operands, weight: Operands, bias: Any, addends: Operands, geometry: Sequence[int]
) -> Any:
    """By other operators. That their sum is narrow says nothing of each."""
    (secret, *_) = (
        each for each in (*x, *weight, bias, *addends) if isinstance(each, SecretTensor)
    )
    with secret._session.using(narrow=0):
        return custom_ops.composed(x, weight, bias, addends, geometry)


def _fused(
    x: Operands,
    weight: Operands,
    bias: Any,
    addends: Operands,
    geometry: Sequence[int],
    *,
    is_rectified: bool,
) -> SecretTensor | None:
    """All of it in one; nothing where an operand is public or no fraction, or has so many fraction
    bits that
    a result could not keep them: other operators do that."""
    if not all(
        isinstance(each, SecretTensor) and each.dtype.is_floating_point for each in (*x, *weight)
    ):
        return None
    session = x[0]._session
    factors = [as_factors(*each) for each in zip(x, weight, strict=True)]
    scale = session.scale
    drop, brought = fixed.of_products([(a._scale, b._scale) for a, b in factors], scale)
    more = [each for each in (bias, *addends) if each is not None]
    if drop <= 0 or any(operand_scale(each, scale).bits > scale.bits for each in more):
        return None
    # Products are added up at one scale: an input is brought to it for nothing.
    factors = [(rescaled(a, finer), b) for (a, b), finer in zip(factors, brought, strict=True)]
    product = _Layers(factors) if weight[0].dim() == 2 else _Convolutions(factors, geometry)
    added = [product.added(lifted(session, each, scale), is_bias=each is bias) for each in more]
    comparison = rectified_to_zero(session, scale) if is_rectified else None
    shift = session.numerics.shift(drop)
    result = shares.affine(session, product.terms, added, product.shape, shift, comparison)
    return x[0].like(product.given(result), scale)


class _Convolutions:
    """Terms that are convolutions of images."""

    def __init__(
        self, factors: Sequence[tuple[SecretTensor, SecretTensor]], geometry: Sequence[int]
    ) -> None:
        self.terms = []
        for (image, weight), how in zip(factors, custom_ops.Steps.all_of(geometry), strict=True):
            shape, self.shape = geometry_of(
                tuple(image.shape), tuple(weight.shape), how[:3], how.groups
            )
            self.terms.append(Term(image._parts, weight._parts, shape))

    def added(self, parts: Parts, *, is_bias: bool) -> Addend:
        """A summand: of channels, or as the result lies."""
        if is_bias:
            return Addend(parts, math.prod(self.shape[2:]))
        return Addend(tuple(part.expand(self.shape) for part in parts))

    def given(self, parts: Parts) -> Parts:
        """The result as it is wanted."""
        return parts


class _Layers:
    """Terms that are linear layers, whose weights lie transposed."""

    def __init__(self, factors: Sequence[tuple[SecretTensor, SecretTensor]]) -> None:
        self._rows = tuple(factors[0][0].shape[:-1])
        many, outputs = math.prod(self._rows), factors[0][1].shape[0]
        self.shape = (many, outputs)
        self.terms = []
        for x, weight in factors:
            inner = x.shape[-1]
            rows = tuple(part.reshape(1, many, inner) for part in x._parts)
            columns = tuple(part.unsqueeze(0) for part in weight._parts)
            self.terms.append(
                Term(rows, columns, Matrices((1, many, inner, outputs), is_transposed=True))
            )

    def added(self, parts: Parts, *, is_bias: bool) -> Addend:
        """A summand: of columns, or as the result lies."""
        return Addend(parts if is_bias else tuple(part.reshape(self.shape) for part in parts))

    def given(self, parts: Parts) -> Parts:
        """The result as it is wanted."""
        return tuple(part.reshape(*self._rows, self.shape[1]) for part in parts)
