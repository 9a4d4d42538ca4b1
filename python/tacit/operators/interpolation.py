"""Interpolation of images to other sizes: linear, cubic and antialiased.

Each dimension is multiplied by a public matrix, which PyTorch's own operator gives when it is
applied to single points. Each dimension whose size changes takes at most two truncations.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.linear import mm
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _weights(
    interpolate: Callable[..., torch.Tensor], at: int, dims: int, size: int, result: int, *rest: Any
) -> torch.Tensor:
    """Returns the matrix (result, size) by which dimension ``at`` of ``dims`` is multiplied."""
    align_corners, *scales = rest
    # Each point has a channel, which is one there and zero elsewhere. The other dimensions keep
    # size 2, since PyTorch's antialiased operators are wrong for size 1.
    shape, sizes = [1] * dims, [2] * dims
    shape[at], sizes[at] = size, result
    points = torch.eye(size, dtype=torch.float64).reshape(size, *shape)
    points = points.expand(size, *(size if place == at else 2 for place in range(dims)))
    others = [scale if place == at else None for place, scale in enumerate(scales)]
    made = interpolate(points.unsqueeze(0).contiguous(), sizes, align_corners, *others)[0]
    for place in range(dims):
        made = made if place == at else made.narrow(1 + place, 0, 1)
    return made.reshape(size, result).t().contiguous()


def along(x: SecretTensor, dim: int, weights: torch.Tensor) -> SecretTensor:
    """Returns the product of a public matrix and x along a dimension."""
    moved = tuple(part.movedim(dim, 0) for part in x._parts)
    rows = x.like(tuple(part.reshape(part.shape[0], -1) for part in moved))
    product = mm(weights, rows)
    shape = (weights.shape[0], *moved[0].shape[1:])
    parts = tuple(part.reshape(shape).movedim(0, dim).contiguous() for part in product._parts)
    return product.like(parts, dtype=x.dtype)


def _enter(overload: Any, dims: int) -> None:
    @implements(overload, scale=of_session)
    def interpolate(
        x: SecretTensor, output_size: Sequence[int], align_corners: bool, *scales: float | None
    ) -> SecretTensor:
        if not x.dtype.is_floating_point:
            unsupported("interpolation of integers", "convert them to floats, or take the nearest")
        result, places = x, [*scales, *[None] * (dims - len(scales))]
        for at in range(dims):
            size = x.shape[2 + at]
            weights = _weights(overload, at, dims, size, output_size[at], align_corners, *places)
            if not (
                size == output_size[at] and weights.equal(torch.eye(size, dtype=torch.float64))
            ):
                result = along(result, 2 + at, weights)
        return result


for _overload, _dims in (
    (aten.upsample_linear1d.default, 1),
    (aten.upsample_bilinear2d.default, 2),
    (aten.upsample_bicubic2d.default, 2),
    (aten.upsample_trilinear3d.default, 3),
    (aten._upsample_bilinear2d_aa.default, 2),
    (aten._upsample_bicubic2d_aa.default, 2),
):
    _enter(_overload, _dims)
