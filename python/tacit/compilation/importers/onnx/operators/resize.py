"""Resampling of images and of signals.

Every mode is a sum of nearby elements with public factors, one axis after the other: a matrix for
each axis, or an index if one element is taken."""

import math
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.operators.shapes import as_list
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements

#: Greatest size of a resampled axis.
MOST_PLACES = 1 << 16

ROUNDED: dict[str, Any] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@implements("Resize", known=(1, 2, 3))
def resize(
    node: Node, x: torch.Tensor, region: Any = None, scales: Any = None, sizes: Any = None
) -> torch.Tensor:
    """Resizes to sizes, or by scales."""
    axes = [axis % x.ndim for axis in node.integers("axes") or range(x.ndim)]
    factors, wanted = _extent(node, [x.shape[axis] for axis in axes], scales, sizes)
    if max(wanted, default=0) > MOST_PLACES:
        raise NotImportedError(
            f"it makes {max(wanted)} places along an axis", f"up to {MOST_PLACES} are imported"
        )
    if (mode := _as_torch(node, x, axes, factors, wanted)) is not None:
        align = node.text("coordinate_transformation_mode", "half_pixel") == "align_corners"
        return functional.interpolate(x, wanted[-2:], mode=mode, align_corners=align)
    outside: torch.Tensor | None = None
    for at, axis in enumerate(axes):
        size = x.shape[axis]
        if wanted[at] == size and factors[at] == 1.0 and not region:
            continue
        ends = (region[at], region[at + len(axes)]) if region else (0.0, 1.0)
        places = _places(node, size, factors[at], wanted[at], ends)
        x = _sampled(node, x, axis, places, factors[at])
        if node.text("coordinate_transformation_mode") == "tf_crop_and_resize":
            beyond = torch.from_numpy((places < 0) | (places > size - 1))
            beyond = beyond.reshape([-1] + [1] * (x.ndim - 1 - axis))
            outside = beyond if outside is None else outside | beyond
    if outside is None:
        return x
    return torch.where(outside, node.number("extrapolation_value", 0.0), x)


def _extent(node: Node, have: list[int], scales: Any, sizes: Any) -> tuple[list[float], list[int]]:
    """Returns scale and size along each axis."""
    if sizes:
        sizes = as_list(sizes)
        ratios = [want / size for want, size in zip(sizes, have, strict=True)]
        policy = node.text("keep_aspect_ratio_policy", "stretch")
        if policy == "stretch":
            return ratios, sizes
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        return [ratio] * len(have), [math.floor(ratio * size + 0.5) for size in have]
    scales = [float(each) for each in as_list(scales or [])]
    if any(not 0 < each < math.inf for each in scales):
        raise ValueError(f"its scales are {scales}")
    return scales, [math.floor(size * scale) for size, scale in zip(have, scales, strict=True)]


def _as_torch(
    node: Node, x: torch.Tensor, axes: list[int], factors: list[float], wanted: list[int]
) -> str | None:
    """Returns the mode of PyTorch's own function that does the same, or ``None`` if there is
    none."""
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(node.text("mode", "nearest"))
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    if (
        mode is None
        or x.ndim != 4
        or axes[-2:] != [2, 3]
        or wanted[:-2] != list(x.shape[: len(axes) - 2])
    ):
        return None
    exact = all(factors[at - 2] == wanted[at - 2] / x.shape[at + 2] for at in range(2))
    known = coordinates in ("half_pixel", "align_corners") or (
        coordinates == "pytorch_half_pixel" and min(wanted[-2:]) > 1
    )
    other = (
        node.flag("antialias")
        or node.flag("exclude_outside")
        or node.number("cubic_coeff_a", -0.75) != -0.75
    )
    return mode if exact and known and not other else None


def _places(node: Node, size: int, factor: float, wanted: int, ends: tuple[float, float]) -> Any:
    """Returns the position of each new element among the old ones."""
    mode = node.text("coordinate_transformation_mode", "half_pixel")
    y, extent = np.arange(wanted, dtype=np.float64), factor * size
    match mode:
        case "half_pixel":
            return (y + 0.5) / factor - 0.5
        case "pytorch_half_pixel":
            return (y + 0.5) / factor - 0.5 if extent != 1 else np.full(wanted, -0.5)
        case "half_pixel_symmetric":
            return size / 2 * (1 - wanted / extent) + (y + 0.5) / factor - 0.5
        case "align_corners":
            return y * (size - 1) / (extent - 1) if extent != 1 else np.zeros(wanted)
        case "asymmetric":
            return y / factor
        case "tf_crop_and_resize":
            span = (ends[1] - ends[0]) * (size - 1)
            along = y * span / (extent - 1) if extent != 1 else np.full(wanted, span / 2)
            return along + ends[0] * (size - 1)
    raise NotImportedError(f"its coordinates {mode[:30]} are not known", "use half_pixel")


def _sampled(node: Node, x: torch.Tensor, axis: int, places: Any, factor: float) -> torch.Tensor:
    mode, size = node.text("mode", "nearest"), x.shape[axis]
    if mode == "nearest":
        rounded = node.text("nearest_mode", "round_prefer_floor")
        if rounded not in ROUNDED:
            raise NotImportedError(f"its nearest_mode {rounded[:30]} is not known", "use floor")
        index = np.clip(ROUNDED[rounded](places), 0, size - 1).astype(np.int64)
        return torch.index_select(x, axis, torch.from_numpy(index))
    matrix = torch.from_numpy(_matrix(node, size, places, factor).astype(np.float32))
    return torch.movedim(torch.matmul(torch.movedim(x, axis, -1), matrix.t()), -1, axis)


def _matrix(node: Node, size: int, places: Any, factor: float) -> Any:
    """Returns the factor of each old element in each new one."""
    cubic = node.text("mode", "nearest") == "cubic"
    squeeze = min(factor, 1.0) if node.flag("antialias") else 1.0
    reach = math.ceil((2 if cubic else 1) / squeeze)
    if (2 * reach + 1) * len(places) > MOST_PLACES * 64:
        raise NotImportedError("it shrinks too much at once", "use several steps")
    near = np.floor(places)[:, None] + np.arange(-reach, reach + 2)
    distances = np.abs(near - places[:, None]) * squeeze
    weights = (
        _cubic(distances, node.number("cubic_coeff_a", -0.75))
        if cubic
        else np.maximum(1 - distances, 0)
    )
    if node.flag("exclude_outside"):
        weights = np.where((near < 0) | (near >= size), 0.0, weights)
    weights = weights / weights.sum(1, keepdims=True)
    matrix = np.zeros((len(places), size))
    rows = np.broadcast_to(np.arange(len(places))[:, None], near.shape)
    np.add.at(matrix, (rows, np.clip(near, 0, size - 1).astype(np.int64)), weights)
    return matrix


def _cubic(distance: Any, sharpness: float) -> Any:
    """Keys' cubic kernel (1981)."""
    a, d = sharpness, distance
    inner = ((a + 2) * d - (a + 3)) * d * d + 1
    outer = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, inner, np.where(d < 2, outer, 0.0))


@implements("GridSample", folds=False)
def grid_sample(node: Node, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    """Samples at the positions of a grid."""
    mode = node.text("mode", "linear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return functional.grid_sample(
        x, grid, mode, node.text("padding_mode", "zeros"), node.flag("align_corners")
    )


@implements("AffineGrid", known=(1,))
def affine_grid(node: Node, theta: torch.Tensor, size: list[int]) -> torch.Tensor:
    """Returns the grid that an affine map makes."""
    return functional.affine_grid(theta, size, node.flag("align_corners"))
