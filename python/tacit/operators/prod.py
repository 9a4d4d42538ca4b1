"""Products along dimensions, ``prod`` and ``cumprod``, as trees of log2(n) levels.

Each intermediate product of neighbours must be in range, not only the last. One that is nearer to 0
than a unit of the scale makes every product that contains it 0.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from tacit.fixed import WHOLE, Scale
from tacit.operators.arithmetic import mul
from tacit.operators.conversion import to_copy
from tacit.operators.dispatch.operands import as_words, may_be_unreduced, moved, rescaled
from tacit.operators.dispatch.scales import of_power, of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.numerics.averages import reduced
from tacit.operators.reduction import sum_dims
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def of_products(session: Scale, x: Scale, *_: Scale, **__: Scale) -> Scale:
    """Returns the scale of products of any number of factors."""
    return of_power(session, x, WHOLE)


def _factors(x: SecretTensor, dtype: torch.dtype | None) -> SecretTensor:
    """Returns the factors. PyTorch converts smaller integers to 64 bits first."""
    if dtype is None:
        dtype = x.dtype if x.dtype.is_floating_point else torch.int64
    return as_words(to_copy(x, dtype=dtype))


def product(x: SecretTensor) -> SecretTensor:
    """Multiplies the elements along the first dimension. At most two rounds for each level."""
    session, scale = x._session, of_products(x._session.scale, x._scale)
    if not x.shape[0]:
        ones = shares.trivial(session, torch.ones(x.shape[1:], dtype=torch.int64) << scale.bits)
        return x.like(ones, scale)

    def join(left: Parts, right: Parts, odd: Parts) -> Parts:
        nonlocal x
        factors = [x.like(half, unreduced=x._unreduced) for half in (left, right, odd)]
        both, rest = rescaled(mul(*factors[:2]), scale), rescaled(factors[2], scale)
        x = x.like(
            shares.joined(both._parts, rest._parts), scale, unreduced=may_be_unreduced(x.dtype)
        )
        return x._parts

    # Scale and ``unreduced`` are those of the level that was joined last.
    whole = shares.tree(x._parts, join)
    return rescaled(x.like(whole, unreduced=x._unreduced), scale)


def _slice(x: SecretTensor, start: int, end: int) -> SecretTensor:
    return moved(x, lambda part: part[start:end])


@implements(aten.prod.default, scale=of_products)
def prod_all(x: SecretTensor, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """Returns the product of all elements. At most two rounds for each of log2(n) levels."""
    return product(moved(_factors(x, dtype), lambda part: part.reshape(-1)))


@implements(aten.prod.dim_int, scale=of_products)
def prod_dim(
    x: SecretTensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Returns products along a dimension. At most two rounds for each of log2(n) levels."""
    if not x.dim():
        return prod_all(x, dtype=dtype)
    result = product(moved(_factors(x, dtype), lambda part: part.movedim(dim, 0)))
    return moved(result, lambda part: part.reshape(reduced(x.shape, [dim % x.dim()], keepdim)))


@implements(aten.cumprod.default, scale=of_products)
def cumprod(x: SecretTensor, dim: int, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """Returns cumulative products along a dimension, by doubling.

    At most two rounds for each of log2(n) levels.
    """
    x = _factors(x, dtype)
    x = rescaled(x, of_products(x._session.scale, x._scale))
    if not x.dim():
        return x
    x, distance = moved(x, lambda part: part.movedim(dim, 0)), 1
    while distance < x.shape[0]:
        earlier, later = _slice(x, 0, len(x) - distance), _slice(x, distance, len(x))
        first = tuple(part[:distance] for part in x._parts)
        x = x.like(
            shares.joined(first, mul(earlier, later)._parts), unreduced=may_be_unreduced(x.dtype)
        )
        distance *= 2
    return moved(x, lambda part: part.movedim(0, dim))


@implements(aten._trilinear.default, scale=of_session)
def trilinear(
    first: Any,
    second: Any,
    third: Any,
    expand_first: Sequence[int],
    expand_second: Sequence[int],
    expand_third: Sequence[int],
    sum_dim: Sequence[int],
    unroll_dim: int = 1,  # noqa: ARG001
) -> SecretTensor:
    """Returns sums of products of three factors. At most four rounds."""
    operands = []
    for operand, dims in ((first, expand_first), (second, expand_second), (third, expand_third)):
        for dim in dims:
            operand = moved(operand, partial(torch.unsqueeze, dim=dim))
        operands.append(operand)
    secret = sorted(operands, key=lambda operand: isinstance(operand, SecretTensor))
    # Public factors come first, since their product needs no interaction.
    both = (
        secret[0] * secret[1]
        if not isinstance(secret[1], SecretTensor)
        else mul(secret[0], secret[1])
    )
    return sum_dims(mul(both, secret[2]), sum_dim)
