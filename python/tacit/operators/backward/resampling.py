"""Gradients of interpolation.

Interpolation is a product by a public matrix along each dimension. Its gradient is the product by
the transposed matrices. Each dimension that changes takes two rounds. The gradient of
nearest-neighbour interpolation only adds up, and takes none.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch

from tacit.modes import outside_trace
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.interpolation import along

aten = torch.ops.aten

#: A plain interpolation along one dimension: (images, size, corners, scale).
Form = Callable[[torch.Tensor, int, bool, float | None], torch.Tensor]


def _linear(rows: torch.Tensor, size: int, corners: bool, scale: float | None) -> torch.Tensor:
    return aten.upsample_linear1d(rows, [size], corners, scale)


def _cubic(rows: torch.Tensor, size: int, corners: bool, scale: float | None) -> torch.Tensor:
    return aten.upsample_bicubic2d(rows.unsqueeze(2), [1, size], corners, None, scale).squeeze(2)


def _smoothed(interpolate: Any) -> Form:
    def smoothed(rows: torch.Tensor, size: int, corners: bool, scale: float | None) -> torch.Tensor:
        # PyTorch's antialiased operators are wrong if a dimension has size 1.
        images = rows.unsqueeze(2).expand(-1, -1, 2, -1).contiguous()
        found: torch.Tensor = interpolate(images, [2, size], corners, None, scale)
        return found[:, :, 0]

    return smoothed


def _nearest(rows: torch.Tensor, size: int, _: bool, scale: float | None) -> torch.Tensor:
    return aten.upsample_nearest1d(rows, [size], scale)


def _exact(rows: torch.Tensor, size: int, _: bool, scale: float | None) -> torch.Tensor:
    return aten._upsample_nearest_exact1d(rows, [size], scale)


@outside_trace
@cache
def _matrix(form: Form, have: int, size: int, corners: bool, scale: float | None) -> torch.Tensor:
    """Returns the matrix (have, size) of the weight of each input in each output.

    A matrix of whole numbers is returned as integers, whose products need no interaction.
    """
    eye = torch.eye(have, dtype=torch.float64).unsqueeze(1)
    matrix = form(eye, size, corners, scale).squeeze(1)
    return matrix.to(torch.int64) if bool((matrix == matrix.round()).all()) else matrix


def _enter(overload: Any, form: Form, has_corners: bool) -> None:
    @implements(overload, scale=of_session)
    def backward(gradient: Any, sizes: Sequence[int], shape: Sequence[int], *args: Any) -> Any:
        """Returns the gradient of the images, by the transposed matrix along each dimension."""
        corners, given = (bool(args[0]), args[1:]) if has_corners else (False, args)
        scales = [*given, *[None] * (len(sizes) - len(given))]
        for at, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
            dim = at + 2
            gradient = along(gradient, dim, _matrix(form, shape[dim], size, corners, scale))
        return gradient


for _dimensions, _smooth in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    _enter(getattr(aten, f"upsample_{_smooth}_backward").default, _linear, True)
    _enter(getattr(aten, f"upsample_nearest{_dimensions}d_backward").default, _nearest, False)
    _enter(getattr(aten, f"_upsample_nearest_exact{_dimensions}d_backward").default, _exact, False)
_enter(aten.upsample_bicubic2d_backward.default, _cubic, True)
for _smooth in ("bilinear2d", "bicubic2d"):
    _smoothing = _smoothed(getattr(aten, f"_upsample_{_smooth}_aa").default)
    _enter(getattr(aten, f"_upsample_{_smooth}_aa_backward").default, _smoothing, True)
