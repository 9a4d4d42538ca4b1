"""Pooling. Averages are local sums and one truncated product by public numbers; maxima are tournaments
along rows, then along columns, in which no padding takes part."""

from collections.abc import Sequence

import torch
from torch.nn import functional

from tacit import shares
from tacit.fixed import WHOLE
from tacit.operators.averages import averaged
from tacit.operators.operands import compared
from tacit.operators.scales import of_session
from tacit.operators.table import implements
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _pair(values: Sequence[int] | int, default: Sequence[int] = ()) -> tuple[int, int]:
    values = [values] if isinstance(values, int) else list(values) or list(default)
    return values[0], values[-1]


@implements(aten.max_pool2d_with_indices.default)
def max_pool2d(
    x: SecretTensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
) -> tuple[SecretTensor, SecretTensor]:
    """The maxima, and in the place of indices a tensor that no operator takes."""
    kernel = _pair(kernel_size)
    stride, padding, dilation = _pair(stride, kernel), _pair(padding), _pair(dilation)
    shape = functional.max_pool2d(  # the shape, and PyTorch's own checks of the arguments
        torch.empty(x.shape, device="meta"), kernel, stride, padding, dilation, ceil_mode
    ).shape
    parts = x._parts
    for dim, axis in ((-1, 1), (-2, 0)):
        taps = _taps(x.shape[dim], shape[dim], kernel[axis], stride[axis], padding[axis], dilation[axis])
        parts = _greatest(x, parts, dim, taps)
    return x.like(parts), SecretTensor((), WHOLE, x._session, torch.int64)


def _taps(
    size: int, outputs: int, kernel: int, stride: int, padding: int, dilation: int
) -> list[torch.Tensor]:
    """For each place of the window the index that it takes at each output; places in the padding take
    an index of the same window instead, which changes no maximum."""
    starts = torch.arange(outputs) * stride - padding
    indices = starts.unsqueeze(0) + (torch.arange(kernel) * dilation).unsqueeze(1)
    inside = (indices >= 0) & (indices < size)
    first_inside = indices.gather(0, inside.int().argmax(0, keepdim=True))
    return list(torch.where(inside, indices, first_inside).unbind(0))


def _greatest(x: SecretTensor, parts: Parts, dim: int, taps: list[torch.Tensor]) -> Parts:
    slices = [tuple(part.index_select(dim, tap) for part in parts) for tap in taps]
    while len(slices) > 1:
        half = len(slices) // 2
        left = tuple(torch.stack([one[i] for one in slices[:half]]) for i in range(len(parts)))
        right = tuple(torch.stack([one[i] for one in slices[half : 2 * half]]) for i in range(len(parts)))
        winners = shares.maximum(x._session, left, right, compared(x._session, x._scale))
        slices = [tuple(part[i] for part in winners) for i in range(half)] + slices[2 * half :]
    return slices[0]


@implements(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(x: SecretTensor, output_size: Sequence[int]) -> tuple[SecretTensor, SecretTensor]:
    """Maxima over windows that cover the image evenly."""
    parts = x._parts
    for dim, outputs in ((-1, output_size[-1]), (-2, output_size[0])):
        size = parts[0].shape[dim]
        starts, ends = _windows(size, outputs)
        widest = int((ends - starts).max())
        taps = [torch.minimum(starts + place, ends - 1) for place in range(widest)]
        parts = _greatest(x, parts, dim, taps)
    return x.like(parts), SecretTensor((), WHOLE, x._session, torch.int64)


def _windows(size: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    steps = torch.arange(outputs)
    return steps * size // outputs, -((-(steps + 1) * size) // outputs)


@implements(aten.avg_pool2d.default, scale=of_session)
def avg_pool2d(
    x: SecretTensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> SecretTensor:
    """Averages over windows."""
    kernel = _pair(kernel_size)
    stride, padding = _pair(stride, kernel), _pair(padding)
    windows = (kernel, stride, padding, ceil_mode)
    flat = tuple(part.reshape(-1, 1, *part.shape[-2:]) for part in x._parts)
    sums = tuple(functional.avg_pool2d(part, *windows, divisor_override=1) for part in flat)
    ones = torch.ones((1, 1, *x.shape[-2:]), dtype=torch.float64)
    average = functional.avg_pool2d(ones, *windows, count_include_pad, divisor_override)
    reciprocals = average / functional.avg_pool2d(ones, *windows, divisor_override=1)
    shape = (*x.shape[:-2], *sums[0].shape[-2:])
    windows_of_x = x.like(tuple(part.reshape(shape) for part in sums))
    return averaged(windows_of_x, reciprocals[0, 0], kernel[0] * kernel[1])


@implements(aten._adaptive_avg_pool2d.default, aten.adaptive_avg_pool2d.default, scale=of_session)
def adaptive_avg_pool2d(x: SecretTensor, output_size: Sequence[int]) -> SecretTensor:
    """Averages over windows that cover the image evenly: differences of prefix sums, then one product."""
    parts, counts = x._parts, torch.ones((1, 1), dtype=torch.float64)
    for dim, outputs in ((-1, output_size[-1]), (-2, output_size[0])):
        starts, ends = _windows(x.shape[dim], outputs)
        prefixes = tuple(_prefix_sums(part, dim) for part in parts)
        parts = tuple(sums.index_select(dim, ends) - sums.index_select(dim, starts) for sums in prefixes)
        lengths = (ends - starts).to(torch.float64)
        counts = counts * (lengths if dim == -1 else lengths.unsqueeze(1))
    return averaged(x.like(parts), 1.0 / counts, int(counts.max()))


def _prefix_sums(part: torch.Tensor, dim: int) -> torch.Tensor:
    zero = torch.zeros_like(part.narrow(dim, 0, 1))
    return torch.cat([zero, part.cumsum(dim)], dim)
