"""Normalisation of rows by their own statistics: layer, group and RMS norm.

Means keep 24 fraction bits. Roots of means of squares come from ``inverse_roots``, so rows of any
magnitude are equally exact.

Error: 2^−12 relative, plus two units of the result's scale, plus a unit of the mean, 2^−24, divided
by the standard deviation. Domain: the norm √Σ (x − mean)² of a row is below 2^22, whatever the
session's scale. For an RMS norm √Σ x² is below 2^30 at the default scale.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tacit import checks, fixed
from tacit.fixed import Scale
from tacit.operators.arithmetic import any_product, sub
from tacit.operators.composed import composes
from tacit.operators.dispatch.operands import at_session_scale, fraction, moved, rescaled, summed
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.linear import bmm
from tacit.operators.numerics.averages import averaged, mean
from tacit.operators.numerics.inverse_roots import inverse_roots
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Least scale of deviations from means.
DEVIATIONS = Scale(24)

Optional = torch.Tensor | None

Normalised = tuple[Any, Any, Any]


@dataclass
class FromRows:
    """Inverse roots of rows, converted to the session's scale only when they are asked for.

    Gradients use the inverse roots with all of their bits, and the rows multiplied by them.
    """

    inverse: SecretTensor
    normal: Callable[[], SecretTensor]
    scale: Scale

    def parts(self) -> Parts:
        """Returns the components. At most two rounds."""
        return rescaled(self.inverse, self.scale)._parts


def centred(x: SecretTensor, dims: Sequence[int]) -> tuple[SecretTensor, SecretTensor]:
    """Returns deviations from means along dimensions, and the means at x's own scale.

    The means are off by up to a unit. So the mean of the remaining deviations is subtracted too,
    which makes the deviations as exact as ``DEVIATIONS`` allows. At most twelve rounds.
    """
    session = x._session
    means = mean(x, dims, True)
    rough = sub(x, means)
    count = math.prod(x.shape[dim] for dim in dims)
    sums = summed(rough, count, lambda part: part.sum(list(dims), keepdim=True))
    fine = fixed.of_sum([DEVIATIONS, session.scale])
    with session.using(scale=fine):
        rest = averaged(sums, torch.tensor(1.0 / count, dtype=torch.float64), count)
        deviations = sub(rescaled(rough, fine), rest)
    # Several products take them. They are held once, and not by each product.
    checks.hold_result(session, deviations._parts, checks.WORD)
    return deviations, means


def by_rows(x: Any, inverse: Any) -> Any:
    """Multiplies each row, (rows, n), by one number, (rows, 1).

    As a product of matrices it masks each of these numbers only once.
    """
    product = bmm(_unsqueezed(x), _unsqueezed(inverse))
    return moved(product, lambda part: part.squeeze(2))


def deferred_inverse(
    inverse: SecretTensor, normal: Callable[[], SecretTensor], shape: Sequence[int]
) -> SecretTensor:
    """Returns inverse roots as a lazily computed tensor, which PyTorch keeps for the gradient."""
    session = inverse._session
    later = FromRows(inverse, normal, session.scale)
    return SecretTensor((), session.scale, session, inverse.dtype, shape=shape, later=later)


def normalised(x: SecretTensor, eps: float) -> tuple[SecretTensor, SecretTensor, SecretTensor]:
    """Returns rows (x − mean)·r with r = 1 / √(variance + ε), the means, and r."""
    deviations, means = centred(at_session_scale(fraction(x)), [1])
    inverse = inverse_roots(deviations, eps).found
    return by_rows(deviations, inverse), means, inverse


def _unsqueezed(x: SecretTensor) -> SecretTensor:
    return moved(x, lambda part: part.unsqueeze(2))


def _of_rows(x: SecretTensor, rows: int, shape: Sequence[int], eps: float) -> Normalised:
    """Normalises x as ``rows`` rows, and returns statistics of shape ``shape``."""
    session = x._session
    if not x.numel():
        nothing = x.like(tuple(part.new_zeros(shape) for part in x._parts), session.scale)
        return at_session_scale(fraction(x)), nothing, nothing
    product, means, inverse = normalised(x.reshape(rows, -1), eps)
    return (
        product.reshape(x.shape),
        means.reshape(shape),
        deferred_inverse(inverse, lambda: product, shape),
    )


def _transformed(x: Any, weight: Optional, bias: Optional) -> Any:
    """Returns x·weight + bias. Either may be ``None``."""
    if weight is not None:
        x = any_product(x, weight)
    return x if bias is None else x + bias


@implements(aten.native_layer_norm.default, scale=of_session)
def layer_norm(
    x: Any, normalized_shape: Sequence[int], weight: Optional, bias: Optional, eps: float
) -> Normalised:
    """Normalises by the statistics of the last dimensions. Statistics of public data are public."""
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
    """Normalises by the statistics of groups of channels. Statistics of public data are public."""
    if isinstance(x, SecretTensor):
        found = _of_rows(x, batch * groups, [batch, groups], eps)
    else:
        found = aten.native_group_norm.default(x, None, None, batch, channels, size, groups, eps)
    shape = (1, channels, *[1] * (x.dim() - 2))
    weight, bias = (None if one is None else one.reshape(shape) for one in (weight, bias))
    return _transformed(found[0], weight, bias), found[1], found[2]


@implements(torch.ops.tacit.rms_norm.default, scale=of_session)
def rms_norm(
    x: SecretTensor, dims: int, weight: Optional, eps: float
) -> tuple[SecretTensor, SecretTensor]:
    """Returns x·r·weight along the last ``dims`` dimensions, and r = 1 / √(mean of x² + ε)."""
    session, x = x._session, at_session_scale(fraction(x))
    kept = x.shape[: x.dim() - dims]
    shape = [*kept, *[1] * dims]
    if not x.numel():
        nothing = x.like(tuple(part.new_zeros(shape) for part in x._parts), session.scale)
        return _transformed(x, weight, None), nothing
    rows = x.reshape(math.prod(kept), -1)
    inverse = inverse_roots(rows, eps).found
    product = by_rows(rows, inverse)
    later = deferred_inverse(inverse, lambda: product, shape)
    return _transformed(product.reshape(x.shape), weight, None), later


@composes(aten.rms_norm.default)
def rms_norm_of_secrets(
    x: Any, normalized_shape: Sequence[int], weight: Optional = None, eps: float | None = None
) -> Any:
    """Computes RMS norm as one operator.

    PyTorch composes it of squares, whose mean would lose the bits of small rows.
    """
    if not isinstance(x, SecretTensor) or not x.dtype.is_floating_point:
        return NotImplemented
    dims, expected = len(normalized_shape), tuple(normalized_shape)
    if (
        not dims
        or tuple(x.shape[-dims:]) != expected
        or (weight is not None and weight.shape != expected)
    ):
        # PyTorch's own composition reports the error.
        return NotImplemented
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    return torch.ops.tacit.rms_norm(x, dims, weight, eps)[0]
