"""Pooling over windows and over all positions."""

from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.operators.convolution import (
    CONVOLUTIONS,
    padded,
    padding,
    spatial,
    spread,
)
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements

MAXIMA: dict[int, Any] = {
    1: functional.max_pool1d,
    2: functional.max_pool2d,
    3: functional.max_pool3d,
}
MEANS: dict[int, Any] = {
    1: functional.avg_pool1d,
    2: functional.avg_pool2d,
    3: functional.avg_pool3d,
}


class Windows:
    """Positions of the windows of a pooling."""

    def __init__(self, node: Node, x: torch.Tensor) -> None:
        self.dims = spatial(x)
        self.sizes = list(x.shape[2:])
        self.kernel = node.integers("kernel_shape") or []
        if len(self.kernel) != self.dims:
            raise ValueError(f"kernel_shape {self.kernel} does not fit {tuple(x.shape)}")
        self.strides = spread(node, "strides", self.dims)
        self.dilations = spread(node, "dilations", self.dims)
        self.begins, self.ends = padding(
            node, self.sizes, self.kernel, self.strides, self.dilations
        )
        self.ceil = node.flag("ceil_mode")
        self.wanted = self._counts(self.ends, self.ceil)

    def _counts(self, ends: list[int], ceil: bool) -> list[int]:
        """Returns the number of windows along each dimension; none begins after the elements."""
        counts = []
        for at in range(self.dims):
            begin, stride = self.begins[at], self.strides[at]
            covered = (
                self.sizes[at] + begin + ends[at] - (self.kernel[at] - 1) * self.dilations[at] - 1
            )
            count = (-(-covered // stride) if ceil else covered // stride) + 1
            if ceil and (count - 1) * stride >= self.sizes[at] + begin:
                count -= 1
            counts.append(count)
        return counts

    def as_torch(self) -> bool | None:
        """Returns the ceil_mode with which PyTorch has the same windows, or more at the end;
        ``None`` if there is none.

        PyTorch pads both ends alike."""
        halves = zip(self.begins, self.kernel, strict=True)
        if any(begin > width // 2 or begin < 0 for begin, width in halves):
            return None
        for ceil in (False, True):
            counts = zip(self._counts(self.begins, ceil), self.wanted, strict=True)
            if all(count >= want for count, want in counts):
                return ceil
        return None

    def cut(self, y: torch.Tensor) -> torch.Tensor:
        """Removes surplus windows at the end."""
        for at, want in enumerate(self.wanted):
            if y.shape[2 + at] != want:
                y = y.narrow(2 + at, 0, want)
        return y

    def put_around(self, x: torch.Tensor, value: float) -> torch.Tensor:
        """Pads the end so far that all windows lie inside."""
        ends = [
            max(end, (want - 1) * stride + (width - 1) * far + 1 - size - begin)
            for end, want, stride, width, far, size, begin in zip(
                self.ends, self.wanted, self.strides, self.kernel, self.dilations, self.sizes, self.begins,
                strict=True,
            )
        ]  # fmt: skip
        return padded(x, self.begins, ends, value)

    def sums(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the sum over each window, as a convolution with ones."""
        flat = x.reshape(-1, 1, *x.shape[2:])
        ones = torch.ones(1, 1, *self.kernel, dtype=x.dtype)
        found = CONVOLUTIONS[self.dims](flat, ones, None, self.strides, 0, self.dilations)
        return self.cut(found.reshape(*x.shape[:2], *found.shape[2:]))


@implements("MaxPool", folds=False)
def max_pool(node: Node, x: torch.Tensor) -> Any:
    """Returns the maximum of each window, and its position if the file uses it."""
    windows = Windows(node, x)
    given, kind = x, x.dtype
    if not x.is_floating_point():
        x = x.to(torch.float32)
    ceil = windows.as_torch()
    begins, ceil_mode = windows.begins, bool(ceil)
    if ceil is None:
        x, begins = windows.put_around(x, -torch.inf), [0] * windows.dims
    pool = MAXIMA[windows.dims]
    arguments = (windows.kernel, windows.strides, begins, windows.dilations)
    if node.results == 1:
        return windows.cut(pool(x, *arguments, ceil_mode)).to(kind)
    if ceil is None:
        raise NotImportedError("it gives places and pads unevenly", "pad alike at both ends")
    found, places = pool(x, *arguments, ceil_mode, True)
    return windows.cut(found).to(kind), _counted(
        windows.cut(places), given, node.flag("storage_order")
    )


def _counted(places: torch.Tensor, x: torch.Tensor, by_columns: bool) -> torch.Tensor:
    """Converts positions in a channel to positions in the whole tensor, by rows or by columns."""
    area = x[0, 0].numel()
    if by_columns:
        sizes, parts, rest = list(x.shape[2:]), [], places
        for size in reversed(sizes):
            parts.append(rest % size)
            rest = torch.div(rest, size, rounding_mode="floor")
        places, step = torch.zeros_like(places), 1
        for size, part in zip(sizes, reversed(parts), strict=True):
            places, step = places + part * step, step * size
    channels = torch.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * (x.ndim - 2))
    return places + channels * area


@implements("AveragePool", folds=False)
def average_pool(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the mean of each window, without or with the padding."""
    windows, padding_counts = Windows(node, x), node.flag("count_include_pad")
    symmetric = windows.begins == windows.ends and all(each == 1 for each in windows.dilations)
    if symmetric and windows.as_torch() is not None:
        return MEANS[windows.dims](
            x, windows.kernel, windows.strides, windows.begins, windows.ceil, padding_counts
        )
    total = windows.sums(windows.put_around(x, 0.0))
    inside = torch.ones(1, 1, *x.shape[2:])
    if padding_counts:
        inside = padded(inside, windows.begins, windows.ends, 1.0)
        rest = [0] * windows.dims
        missing = [
            have - size
            for have, size in zip(
                windows.put_around(x, 0.0).shape[2:], inside.shape[2:], strict=True
            )
        ]
        return total * (1 / windows.sums(padded(inside, rest, missing)))
    return total * (1 / windows.sums(windows.put_around(inside, 0.0)))


@implements("LpPool", folds=False)
def norm_pool(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the p-norm of each window."""
    windows, order = Windows(node, x), node.integer("p", 2)
    sums = windows.sums(windows.put_around(torch.abs(x) ** order, 0.0))
    return torch.sqrt(sums) if order == 2 else sums ** (1 / order)


@implements("GlobalAveragePool", folds=False)
def global_average_pool(_: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the mean over all positions."""
    if x.ndim == 4:
        return functional.adaptive_avg_pool2d(x, 1)
    return torch.mean(x, list(range(2, x.ndim)), keepdim=True)


@implements("GlobalMaxPool", folds=False)
def global_max_pool(_: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the maximum over all positions."""
    return torch.amax(x, list(range(2, x.ndim)), keepdim=True)


@implements("GlobalLpPool", folds=False)
def global_norm_pool(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the p-norm over all positions."""
    order = node.integer("p", 2)
    return torch.sum(torch.abs(x) ** order, list(range(2, x.ndim)), keepdim=True) ** (1 / order)


@implements("MaxUnpool", known=(2,), folds=False)
def max_unpool(
    node: Node, x: torch.Tensor, places: torch.Tensor, shape: list[int] | None = None
) -> torch.Tensor:
    """Writes each value at its position in the whole tensor, and zero elsewhere."""
    dims = spatial(x)
    kernel, strides = node.integers("kernel_shape") or [], spread(node, "strides", dims)
    pads = node.integers("pads") or [0] * (2 * dims)
    natural = list(x.shape[:2])
    for at in range(dims):
        natural.append(
            (x.shape[2 + at] - 1) * strides[at] + kernel[at] - pads[at] - pads[dims + at]
        )
    elements = 1
    for size in natural:
        elements *= size
    found = (
        torch.zeros(elements, dtype=x.dtype)
        .scatter(0, places.reshape(-1), x.reshape(-1))
        .reshape(natural)
    )
    if shape is None:
        return found
    more = [want - have for want, have in zip(shape[2:], natural[2:], strict=True)]
    return padded(found, [0] * dims, more)
