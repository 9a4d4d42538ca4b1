"""Normalisation of rows by their own statistics: layer and group norm.

Squares of deviations keep their bits until their mean is taken, so that small variances are as exact as large
ones. Off by 2^−12 relative and two units of the result's scale. The rounds of an inverse square root and at
most sixteen, however large the rows are. Variances are below 2^22, whatever the session's scale.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tacit import fixed, ranges, shares
from tacit.fixed import Scale
from tacit.operators.approximation import rsqrt
from tacit.operators.arithmetic import add, any_product, sub
from tacit.operators.averages import mean
from tacit.operators.linear import bmm
from tacit.operators.operands import at_session_scale, fraction, rescaled, times_public
from tacit.operators.scales import of_session
from tacit.operators.table import implements
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Of variances, and of the inverses of their roots.
VARIANCE_SCALE = Scale(24)

Optional = torch.Tensor | None

Normalised = tuple[Any, Any, Any]


@dataclass
class _Rescaled:
    """Numbers that a gradient may take, at a scale that it does not choose: its own session's is another."""

    x: SecretTensor
    scale: Scale

    def parts(self) -> Parts:
        """The components; at most two rounds."""
        return rescaled(self.x, self.scale)._parts


def variance(deviations: SecretTensor) -> SecretTensor:
    """The mean of the squares in each row, with 24 fraction bits where they have as many: at most six
    rounds."""
    session, count = deviations._session, deviations.shape[1]
    # The sum of so many is shifted down at once, and stays in range wherever their mean is.
    shift = math.floor(math.log2(count))
    drop, scale = fixed.of_square(deviations._scale, VARIANCE_SCALE)
    rows = tuple(part.unsqueeze(1) for part in deviations._parts)
    sums = shares.matmul(session, rows, tuple(part.mT for part in rows), drop + shift)
    found = deviations.like(tuple(part.reshape(-1, 1) for part in sums), scale)
    if session.is_plain:
        ranges.check_value(session, found._parts[0], found._scale)
    with session.at_scale(found._scale):
        rest = torch.tensor(2.0**shift / count, dtype=torch.float64)
        return times_public(found, rest, found.dtype, gain=2.0)


def normalised(x: SecretTensor, eps: float) -> tuple[SecretTensor, SecretTensor, SecretTensor]:
    """Rows (x − mean)·r with r = 1 / √(variance + ε), the means, and r with 24 fraction bits. An ε that is
    positive is a unit of that at least."""
    x = at_session_scale(fraction(x))
    means = mean(x, [1], True)
    deviations = sub(x, means)
    raised = add(variance(deviations), max(eps, 2.0**-VARIANCE_SCALE.bits) if eps > 0 else eps)
    inverse = rsqrt(raised, positive=True, scale=VARIANCE_SCALE)
    # Each row by one number: as a product of matrices, it is masked once.
    product = bmm(_unsqueezed(deviations), _unsqueezed(inverse))
    return product.like(tuple(part.squeeze(2) for part in product._parts)), means, inverse


def _unsqueezed(x: SecretTensor) -> SecretTensor:
    return x.like(tuple(part.unsqueeze(2) for part in x._parts))


def _of_rows(x: SecretTensor, rows: int, shape: Sequence[int], eps: float) -> Normalised:
    """All of x in that many rows, with statistics of that shape."""
    session = x._session
    if not x.numel():
        nothing = x.like(tuple(part.new_zeros(shape) for part in x._parts), session.scale)
        return at_session_scale(fraction(x)), nothing, nothing
    product, means, inverse = normalised(x.reshape(rows, -1), eps)
    later = SecretTensor(
        (), session.scale, session, x.dtype, shape=shape, later=_Rescaled(inverse, session.scale)
    )
    return product.reshape(x.shape), means.reshape(shape), later


def _transformed(x: Any, weight: Optional, bias: Optional) -> Any:
    """x·weight + bias, where there are."""
    if weight is not None:
        x = any_product(x, weight)
    return x if bias is None else x + bias


@implements(aten.native_layer_norm.default, scale=of_session)
def layer_norm(
    x: Any, normalized_shape: Sequence[int], weight: Optional, bias: Optional, eps: float
) -> Normalised:
    """By the statistics of the last dimensions; those of public data are public. Variances are below 2^22."""
    if isinstance(x, SecretTensor):
        kept = x.shape[: x.dim() - len(normalized_shape)]
        found = _of_rows(x, math.prod(kept), [*kept, *[1] * len(normalized_shape)], eps)
    else:
        found = aten.native_layer_norm.default(x, normalized_shape, None, None, eps)
    return _transformed(found[0], weight, bias), found[1], found[2]


@implements(aten.native_group_norm.default, scale=of_session)
def group_norm(
    x: Any,
    weight: Optional,
    bias: Optional,
    batch: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> Normalised:
    """By the statistics of groups of channels; those of public data are public. Variances are below 2^22."""
    if isinstance(x, SecretTensor):
        found = _of_rows(x, batch * groups, [batch, groups], eps)
    else:
        found = aten.native_group_norm.default(x, None, None, batch, channels, size, groups, eps)
    shape = (1, channels, *[1] * (x.dim() - 2))
    weight, bias = (None if one is None else one.reshape(shape) for one in (weight, bias))
    return _transformed(found[0], weight, bias), found[1], found[2]
