"""Histograms and counts of values.

All values are compared with all edges in one batch. So the rounds are those of one comparison and
of converting bits to ring elements, however many values and edges there are.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tacit import fixed
from tacit.fixed import WHOLE, Scale
from tacit.operators.comparison import eq, ge, lt
from tacit.operators.conversion import to_copy
from tacit.operators.dispatch.operands import Number, common_scale, is_secret, rescaled, session_of
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.extremum import max_all, min_all
from tacit.operators.logical import logical_xor
from tacit.operators.reduction import sum_dims
from tacit.operators.selection import one_hot, target
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _members(x: SecretTensor, edges: Any) -> SecretTensor:
    """Returns booleans that say in which bin each value is.

    The bins are along a new first dimension. A bin includes its lower edge. The last bin also
    includes its upper edge.
    """
    if not is_secret(edges) and x._scale != WHOLE:
        # Edges are rounded as the values are, so that a value on an edge stays on it.
        edges = fixed.decode(fixed.encode(edges, x._scale), x._scale, torch.float64)
    flat = x.reshape(-1)
    reached = ge(flat, edges[:-1].unsqueeze(-1))
    beyond = lt(edges[-1:].unsqueeze(-1), flat)
    # A value that has reached an edge has reached all edges before it.
    return logical_xor(reached, torch.cat([reached[1:], beyond]))


def _counted(members: SecretTensor, weight: Any, dtype: torch.dtype, scale: Scale) -> SecretTensor:
    """Returns the count, or the total weight, of each bin at the given scale."""
    if weight is None:
        counts = sum_dims(members, [-1])
    else:
        counts = to_copy(members, dtype=dtype) @ weight.reshape(-1, 1).to(dtype)
        counts = counts.squeeze(-1)
    return rescaled(counts.like(counts._parts, dtype=dtype), scale)


def _edges(x: SecretTensor, bins: int, low: float, high: float, margin: float) -> Any:
    """Returns the edges of equal bins between public ends.

    If the ends are equal, the bins lie between the smallest and the largest value. If these are
    equal too, a margin is added on both sides.
    """
    if low != high:
        return torch.linspace(low, high, bins + 1, dtype=torch.float64)
    if not x.numel():
        return torch.linspace(low, high + 1, bins + 1, dtype=torch.float64)
    least, greatest = min_all(x), max_all(x)
    equal = to_copy(eq(least, greatest), dtype=x.dtype) * margin
    least, greatest = least - equal, greatest + equal
    inner = least + (greatest - least) * torch.linspace(0, 1, bins + 1, dtype=torch.float64)[1:-1]
    # The ends are exact, so that all values lie between them.
    edges: Any = torch.cat([least.reshape(1), inner, greatest.reshape(1)])
    return to_copy(edges, dtype=x.dtype)


def _of_histogram(session: Scale, *operands: Scale, **named: Scale) -> Scale:
    """Returns the largest scale among the operands and the session, whose scale the edges have."""
    return fixed.of_sum([session, *operands, *named.values()])


@implements(aten.histc.default, scale=_of_histogram)
def histc(x: SecretTensor, bins: int = 100, min: Number = 0, max: Number = 0) -> SecretTensor:  # noqa: A002
    """Counts the values in each of ``bins`` equal bins.

    The bins lie between public ends, or between the smallest and the largest value. Edges are
    rounded to fixed point. At most ten rounds; without public ends also those of the extrema, and
    four.
    """
    members = _members(x, _edges(x, bins, float(min), float(max), 1))
    return _counted(members, None, x.dtype, _scale(x))


def _scale(x: SecretTensor, *others: Any) -> Scale:
    operands = [other for other in others if isinstance(other, torch.Tensor)]
    return fixed.of_sum([x._session.scale, common_scale(x, *operands)])


def _check_density(density: bool) -> None:
    if density:
        unsupported(
            "a histogram with density=True",
            "divide the counts by their sum, and by the bins' widths",
        )


@implements(aten.histogram.bin_ct, scale=_of_histogram)
def histogram(
    x: Any,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,  # noqa: A002
    weight: Any = None,
    density: bool = False,
) -> tuple[SecretTensor, torch.Tensor]:
    """Returns the counts of ``histc``, or total weights, and the edges.

    The edges are secret unless their ends are public.
    """
    _check_density(density)
    low, high = range or (0.0, 0.0)
    x = target(x, session_of(x, weight))
    edges, scale = _edges(x, bins, low, high, 0.5), _scale(x, weight)
    edges = rescaled(edges, scale) if is_secret(edges) else edges.to(x.dtype)
    return _counted(_members(x, edges), weight, x.dtype, scale), edges


@implements(aten.histogram.bins_tensor, scale=_of_histogram)
def histogram_between(
    x: Any, bins: Any, *, weight: Any = None, density: bool = False
) -> tuple[SecretTensor, torch.Tensor]:
    """Returns the counts or weights between given edges, public or secret, and the edges."""
    _check_density(density)
    x = target(x, session_of(x, bins, weight))
    scale = _scale(x, bins, weight)
    members = _members(x, bins)
    return _counted(members, weight, x.dtype, scale), rescaled(bins, scale) if is_secret(
        bins
    ) else bins


@implements(aten.bincount.default)
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> SecretTensor:
    """Returns how often each number from 0 to ``minlength`` − 1 occurs, or how much weight it has.

    The number of bins must not depend on the values, so all other numbers are ignored. Takes the
    rounds of one-hot vectors and two, or four with weights.
    """
    if not minlength:
        unsupported(
            "bincount, whose size depends on the values,",
            "give the number of bins as minlength; greater numbers are not counted",
        )
    members = one_hot(target(x, session_of(x, weights)), minlength).T
    if weights is None:
        return sum_dims(members, [-1])
    dtype = weights.dtype if weights.dtype.is_floating_point else torch.float64
    return _counted(members, weights, dtype, common_scale(x, weights))
