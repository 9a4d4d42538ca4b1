"""Affine maps that are truncated once, with an optional ReLU.

An affine map is the sum of convolutions, or of linear layers, of a bias and of other tensors. The
comparison of the ReLU may start in the same round as the truncation.
"""

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
from tacit.sharings import bilinear
from tacit.sharings.bilinear import Addend, Term
from tacit.sharings.bilinear_shapes import Matrices
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Inputs or weights.
Operands = Sequence[Any]


@implements(torch.ops.tacit.affine.default, scale=of_affine)
def affine(
    x: Operands, weight: Operands, bias: Any, addends: Operands, geometry: Sequence[int]
) -> Any:
    """Computes Σ x·weight + bias + Σ addends, in the rounds of one truncated product."""
    custom_ops.check_affine(x, weight, geometry)
    fused = _fused(x, weight, bias, addends, geometry, is_rectified=False)
    return _composed(x, weight, bias, addends, geometry) if fused is None else fused


@implements(torch.ops.tacit.rectified_affine.default, scale=of_affine)
def rectified_affine(
    x: Operands, weight: Operands, bias: Any, addends: Operands, geometry: Sequence[int]
) -> Any:
    """Computes max(0, Σ x·weight + bias + Σ addends).

    A result between zero and one unit of the scale may become zero.
    """
    custom_ops.check_affine(x, weight, geometry)
    fused = _fused(x, weight, bias, addends, geometry, is_rectified=True)
    return torch.relu(_composed(x, weight, bias, addends, geometry)) if fused is None else fused


def _composed(
    x: Operands, weight: Operands, bias: Any, addends: Operands, geometry: Sequence[int]
) -> Any:
    """Computes the affine map with other operators.

    That the whole sum is promised to be narrow says nothing about its summands, so that promise is
    suspended.
    """
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
    """Computes the affine map with one truncation, or returns ``None`` if that is not possible.

    It is not possible if an operand is public, is not a fraction, or has more fraction bits than
    the result can keep. Other operators compute the map then.
    """
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
    # Products are added at one scale. Raising an input to that scale needs no interaction.
    factors = [(rescaled(a, finer), b) for (a, b), finer in zip(factors, brought, strict=True)]
    product = _Layers(factors) if weight[0].dim() == 2 else _Convolutions(factors, geometry)
    added = [product.added(lifted(session, each, scale), is_bias=each is bias) for each in more]
    comparison = rectified_to_zero(session, scale) if is_rectified else None
    shift = session.numerics.shift(drop)
    result = bilinear.affine(session, product.terms, added, product.shape, shift, comparison)
    return x[0].like(product.given(result), scale)


class _Convolutions:
    """The terms of an affine map whose weights are convolution filters."""

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
        """Returns a summand: one number per channel for the bias, else the result's shape."""
        if is_bias:
            return Addend(parts, math.prod(self.shape[2:]))
        return Addend(tuple(part.expand(self.shape) for part in parts))

    def given(self, parts: Parts) -> Parts:
        """Returns the result in its final shape."""
        return parts


class _Layers:
    """The terms of an affine map whose weights are those of linear layers, stored transposed."""

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
        """Returns a summand: one number per column for the bias, else the result's shape."""
        return Addend(parts if is_bias else tuple(part.reshape(self.shape) for part in parts))

    def given(self, parts: Parts) -> Parts:
        """Returns the result in its final shape."""
        return tuple(part.reshape(*self._rows, self.shape[1]) for part in parts)
