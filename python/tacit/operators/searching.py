"""Searches of values among others: ``searchsorted``, ``bucketize`` and ``isin``.

All values are compared with all others in one batch. So the rounds are those of one comparison and
of converting bits to ring elements, however many values there are.
"""

from typing import Any

import torch

from tacit.operators.comparison import eq, ge, lt
from tacit.operators.dispatch.table import implements
from tacit.operators.logical import logical_not
from tacit.operators.reduction import any_of, sum_dims
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.searchsorted.Tensor, aten.searchsorted.Scalar)
def searchsorted(
    boundaries: Any,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> SecretTensor:
    """Returns how many boundaries are less than each value, or at most it with ``right``.

    Boundaries or values may be public. At most ten rounds.
    """
    if sorter is not None:
        boundaries = boundaries.gather(-1, sorter)
    values = x.unsqueeze(-1) if isinstance(x, torch.Tensor) else x
    if boundaries.dim() > 1 or not isinstance(x, torch.Tensor):
        boundaries = boundaries.unsqueeze(-2) if isinstance(x, torch.Tensor) else boundaries
    reached = ge(values, boundaries) if right or side == "right" else lt(boundaries, values)
    counts = sum_dims(reached, [-1])
    return counts.like(counts._parts, dtype=torch.int32) if out_int32 else counts


@implements(aten.bucketize.Tensor, aten.bucketize.Scalar)
def bucketize(
    x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False
) -> SecretTensor:
    """Returns how many boundaries are less than each value, or at most it with ``right``.

    Boundaries or values may be public. At most ten rounds.
    """
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


@implements(aten.isin.Tensor_Tensor, aten.isin.Tensor_Scalar, aten.isin.Scalar_Tensor)
def isin(
    elements: Any,
    tested: Any,
    *,
    assume_unique: bool = False,  # noqa: ARG001
    invert: bool = False,
) -> SecretTensor:
    """Returns whether each element is among the tested ones. At most sixteen rounds."""
    elements = elements.unsqueeze(-1) if isinstance(elements, torch.Tensor) else elements
    tested = tested.reshape(-1) if isinstance(tested, torch.Tensor) else tested
    equal = eq(elements, tested)
    if not isinstance(elements, torch.Tensor) or not isinstance(tested, torch.Tensor):
        equal = equal.unsqueeze(-1) if equal.dim() == 0 else equal
    found = any_of(equal, -1)
    return logical_not(found) if invert else found
