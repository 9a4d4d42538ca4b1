"""Samples of volumes at points of a grid (``grid_sample`` of five dimensions).

At a point, each axis gives weights to its places. If the grid is public, these are at most two
places, which are read. If it is secret, every place of an axis gets a weight, most of which are 0,
so that no place is read by a secret index: a point takes D + H + W weights, and not D·H·W.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch

from tacit.operators.dispatch.operands import in_full, session_of
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: PyTorch's numbers of the interpolations and of the paddings.
LINEAR, NEAREST = 0, 1
ZEROS, BORDER, REFLECTION = 0, 1, 2


@implements(aten.grid_sampler_3d.default, scale=of_session)
def grid_sampler_3d(volumes: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    """Returns volumes (N, C, D, H, W) at the points of a grid (N, d, h, w, 3), of coordinates x, y
    and z from −1 to 1.

    With a public grid at most two rounds. With a secret one the rounds of an absolute value and of
    a ReLU (of ``==`` for the nearest places), and three products; with reflection also those of a
    remainder.
    """
    if mode not in (LINEAR, NEAREST):
        unsupported("grid_sample of volumes by this interpolation", "take bilinear or nearest")
    with in_full(session_of(volumes, grid)):
        return sampled(volumes, grid, mode, padding, corners)


def sampled(volumes: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    """Computes ``grid_sampler_3d`` by operators that autograd differentiates."""
    sizes = volumes.shape[2:]
    # The last coordinate of a point is that of the first axis.
    places = [
        _place(grid[..., 2 - axis].flatten(1), size, padding, corners)
        for axis, size in enumerate(sizes)
    ]
    if isinstance(grid, SecretTensor):
        found = _by_weights(
            volumes, [_weights(*each, mode) for each in zip(places, sizes, strict=True)]
        )
    else:
        found = _by_corners(volumes, places, mode)
    return found.reshape(*volumes.shape[:2], *grid.shape[1:4])


def _place(x: Any, size: int, padding: int, corners: bool) -> Any:
    """Maps coordinates from −1 to 1 to places of an axis, which begin at 0."""
    place = (x + 1.0) * ((size - 1) / 2) if corners else (x + 1.0) * (size / 2) - 0.5
    if padding == REFLECTION:
        low, span = (0.0, float(size - 1)) if corners else (-0.5, float(size))
        if span == 0.0:
            return place * 0.0
        place = span - ((place - low).remainder(2 * span) - span).abs() + low
    return place if padding == ZEROS else place.clamp(0.0, float(size - 1))


def _weights(place: Any, size: int, mode: int) -> Any:
    """Returns the weight of each place of an axis, (N, points, size)."""
    away = place.unsqueeze(-1)
    numbers = torch.arange(size, dtype=place.dtype)
    if mode == NEAREST:
        return (away.round() == numbers).to(place.dtype)
    return torch.relu(1.0 - (away - numbers).abs())


def _by_weights(volumes: Any, weights: Sequence[Any]) -> Any:
    """Sums all elements of a volume, each times its three weights: (N, C, points)."""
    count, channels, *sizes = volumes.shape
    points = weights[0].shape[1]
    # One axis after the other, the last one for all points alike, the others for each point.
    found = volumes.reshape(count, -1, sizes[2]) @ weights[2].mT
    found = found.reshape(count, channels, *sizes[:2], points)
    for of_axis in (weights[1], weights[0]):
        found = (found * of_axis.mT.reshape(count, 1, *[1] * (found.dim() - 4), -1, points)).sum(-2)
    return found


def _by_corners(volumes: Any, places: Sequence[torch.Tensor], mode: int) -> Any:
    """Sums the elements around each public point, each times its weight: (N, C, points)."""
    sizes = volumes.shape[2:]
    flat = volumes.flatten(2)
    steps = (0,) if mode == NEAREST else (0, 1)
    lows = [place.round() if mode == NEAREST else place.floor() for place in places]
    found: Any = 0
    for step in product(steps, repeat=3):
        index = torch.zeros(places[0].shape, dtype=torch.int64)
        weight = torch.ones(places[0].shape, dtype=torch.float64)
        for at, low, place, size in zip(step, lows, places, sizes, strict=True):
            corner = low + at
            if mode == LINEAR:
                weight = weight * (1.0 - (place.double() - corner).abs())
            weight = weight * ((corner >= 0) & (corner < size))
            index = index * size + corner.clamp(0, size - 1).long()
        read = flat.gather(2, index.unsqueeze(1).expand(-1, flat.shape[1], -1))
        found = found + read * weight.to(places[0].dtype).unsqueeze(1)
    return found
