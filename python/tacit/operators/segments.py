"""Reductions of consecutive segments of public sizes (``torch.segment_reduce``)."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit.operators.dispatch.operands import Number, public
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: What each reduction is called by ``scatter_reduce``, and its value for no elements. An extremum
#: and a mean of no elements have none.
REDUCTIONS: dict[str, tuple[str, float | None]] = {
    "sum": ("sum", 0.0),
    "mean": ("sum", None),
    "prod": ("prod", 1.0),
    "max": ("amax", None),
    "min": ("amin", None),
}


@implements(aten.segment_reduce.default, scale=of_session)
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    indices: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,  # noqa: ARG001
    initial: Number | None = None,
) -> Any:
    """Returns the sum, mean, product, maximum or minimum of each segment along an axis.

    Sizes are public, and are checked even with ``unsafe``. ``initial`` is reduced along with each
    segment; a segment without elements needs it, except in sums and products. No interaction for
    sums, at most two rounds for means; maxima, minima and products are trees over the longest
    segment.
    """
    if indices is not None:
        unsupported("segment_reduce by indices", "give lengths or offsets")
    if isinstance(lengths, SecretTensor) or isinstance(offsets, SecretTensor):
        unsupported("segment_reduce with secret sizes", "make segments of public sizes")
    return reduced(data, reduce, sizes_of(data, lengths, offsets, axis), axis, initial)


def sizes_of(
    data: Any, lengths: torch.Tensor | None, offsets: torch.Tensor | None, axis: int
) -> torch.Tensor:
    """Returns the public size of each segment, (…, segments), after checking them."""
    if offsets is not None:
        sizes = public(offsets).diff(dim=-1)
    else:
        assert lengths is not None, "PyTorch has checked that one of both is given"
        sizes = public(lengths)
    axis %= data.dim()
    if sizes.shape[:-1] != data.shape[:axis] or bool((sizes < 0).any()):
        unsupported(
            f"segment_reduce along axis {axis} of shape {tuple(data.shape)} by sizes of shape "
            f"{tuple(sizes.shape)}",
            "give nonnegative sizes whose dimensions before the last are those of the data before "
            "the axis",
        )
    if bool((sizes.sum(-1) != data.shape[axis]).any()):
        unsupported(
            "segment_reduce by sizes that do not add up to all elements",
            f"make the sizes of all segments add up to {data.shape[axis]}",
        )
    return sizes


def reduced(data: Any, reduce: str, sizes: torch.Tensor, axis: int, initial: Number | None) -> Any:
    """Reduces segments of public sizes by operators that autograd differentiates."""
    axis %= data.dim()
    operation, of_none = REDUCTIONS[reduce]
    if initial is None and of_none is None and bool((sizes == 0).any()):
        unsupported(f"the {reduce} of a segment without elements", "give an initial value")
    shape = (*sizes.shape, *data.shape[axis + 1 :])
    start = of_none if initial is None else float(initial)
    target = torch.full(shape, 0.0 if start is None else start, dtype=data.dtype)
    index = _numbers(sizes, data.shape[axis]).reshape(
        *data.shape[: axis + 1], *[1] * (data.dim() - axis - 1)
    )
    found = target.scatter_reduce(
        axis, index.expand(data.shape), data, operation, include_self=initial is not None
    )
    if reduce != "mean":
        return found
    counts = sizes.clamp(min=1).reshape(*sizes.shape, *[1] * (data.dim() - axis - 1))
    return found * (1.0 / counts.to(torch.float64)).to(data.dtype)


def _numbers(sizes: torch.Tensor, count: int) -> torch.Tensor:
    """Returns the number of each element's segment, (…, elements)."""
    rows = sizes.reshape(math.prod(sizes.shape[:-1]), sizes.shape[-1])
    numbers = torch.arange(sizes.shape[-1])
    each: Sequence[torch.Tensor] = [torch.repeat_interleave(numbers, row) for row in rows]
    return torch.cat([torch.empty(0, dtype=torch.int64), *each]).reshape(*sizes.shape[:-1], count)
