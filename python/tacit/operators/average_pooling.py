"""Average pooling in two and three dimensions, and its gradients.

PyTorch turns pooling in one dimension into pooling in two. Each operator takes local sums and one
truncated product by public numbers.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from tacit import checks
from tacit.operators.dispatch.operands import each, times_public
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics.averages import as_fractions, averaged
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _check_fractions(x: SecretTensor) -> None:
    if not x.dtype.is_floating_point:
        unsupported("averages of integers", "convert them to floats")


def _average_pool(forward: Any, backward: Any, plain: Any, dims: int) -> None:
    """Enters average pooling over windows, and its gradient, into the table."""

    def reciprocals(sizes: torch.Size, windows: tuple[Any, ...], *counting: Any) -> torch.Tensor:
        """Returns the factor by which the sum of each window is multiplied."""
        ones = torch.ones((1, 1, *sizes), dtype=torch.float64)
        average = plain(ones, *windows, *counting)
        factors: torch.Tensor = (average / plain(ones, *windows, divisor_override=1))[0, 0]
        return factors

    @implements(forward, scale=of_session)
    def average_pool(
        x: SecretTensor,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> SecretTensor:
        """Averages over windows. At most six rounds."""
        _check_fractions(x)
        kernel = each(kernel_size, dims)
        windows = (kernel, each(stride, dims, kernel), each(padding, dims), ceil_mode)
        flat = (part.reshape(-1, 1, *x.shape[-dims:]) for part in x._parts)
        sums = [plain(part, *windows, divisor_override=1) for part in flat]
        factors = reciprocals(x.shape[-dims:], windows, count_include_pad, divisor_override)
        shape = (*x.shape[:-dims], *factors.shape)
        return averaged(
            x.like(tuple(part.reshape(shape) for part in sums)), factors, torch.Size(kernel).numel()
        )

    @implements(backward, scale=of_session)
    def average_pool_backward(
        gradient: torch.Tensor,
        x: torch.Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> torch.Tensor:
        """Adds each window's gradient, divided, to each element of the window.

        At most six rounds.
        """
        kernel, sizes = each(kernel_size, dims), x.shape[-dims:]
        windows = (kernel, each(stride, dims, kernel), each(padding, dims), ceil_mode)
        if not isinstance(gradient, SecretTensor):
            like = gradient.new_empty(x.shape)
            plain_result: torch.Tensor = backward(
                gradient, like, *windows, count_include_pad, divisor_override
            )
            return plain_result
        factors = reciprocals(sizes, windows, count_include_pad, divisor_override)
        shared = times_public(as_fractions(gradient), factors, gradient.dtype)
        like = torch.empty((x.shape[:-dims].numel(), 1, *sizes), dtype=torch.int64)
        flat = (part.reshape(-1, 1, *factors.shape) for part in shared._parts)
        parts = (backward(part, like, *windows, False, 1) for part in flat)
        return shared.like(tuple(part.reshape(x.shape) for part in parts))


_average_pool(aten.avg_pool2d.default, aten.avg_pool2d_backward.default, functional.avg_pool2d, 2)
_average_pool(aten.avg_pool3d.default, aten.avg_pool3d_backward.default, functional.avg_pool3d, 3)


# Windows that cover the image evenly
# -----------------------------------------------------------------------


def covering(size: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns where ``outputs`` windows that evenly cover ``size`` elements begin and end."""
    steps = torch.arange(outputs)
    return steps * size // outputs, -((-(steps + 1) * size) // outputs)


def _reciprocals(sizes: Sequence[int], outputs: Sequence[int]) -> tuple[torch.Tensor, int]:
    """Returns one over the number of elements of each window, and the largest such number."""
    counts = torch.ones((), dtype=torch.int64)
    for size, number in zip(sizes, outputs, strict=True):
        starts, ends = covering(size, number)
        counts = counts.unsqueeze(-1) * (ends - starts)
    return 1.0 / counts.to(torch.float64), int(counts.max()) if counts.numel() else 1


@implements(
    aten._adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool3d.default,
    aten.adaptive_avg_pool3d.default,
    scale=of_session,
)
def adaptive_average_pool(x: SecretTensor, output_size: Sequence[int]) -> SecretTensor:
    """Averages over windows that cover the image evenly.

    Takes differences of prefix sums, then one product: at most six rounds.
    """
    _check_fractions(x)
    parts, dims = x._parts, len(output_size)
    windows = zip(x.shape[-dims:], output_size, strict=True)
    checks.hold_summands(
        x._session, parts, math.prod(size // max(1, of) + 2 for size, of in windows)
    )
    for dim in range(-dims, 0):
        starts, ends = covering(x.shape[dim], output_size[dim])
        prefixes = tuple(_prefix_sums(part, dim) for part in parts)
        parts = tuple(
            sums.index_select(dim, ends) - sums.index_select(dim, starts) for sums in prefixes
        )
    return averaged(x.like(parts), *_reciprocals(x.shape[-dims:], output_size))


def _prefix_sums(part: torch.Tensor, dim: int) -> torch.Tensor:
    zero = part.new_zeros(
        [1 if at == dim % part.dim() else size for at, size in enumerate(part.shape)]
    )
    return torch.cat([zero, part.cumsum(dim)], dim)


def _adaptive_gradient(overload: Any, dims: int) -> None:
    @implements(overload, scale=of_session)
    def adaptive_average_pool_backward(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Adds each window's gradient, divided, to each element of the window.

        The gradient is added at the window's start and subtracted at its end, followed by prefix
        sums. At most six rounds.
        """
        if not isinstance(gradient, SecretTensor):
            spread: torch.Tensor = overload(gradient, gradient.new_empty(x.shape))
            return spread
        factors, _ = _reciprocals(x.shape[-dims:], gradient.shape[-dims:])
        shared = times_public(as_fractions(gradient), factors, gradient.dtype)
        parts = shared._parts
        windows = zip(x.shape[-dims:], gradient.shape[-dims:], strict=True)
        checks.hold_summands(
            shared._session, parts, math.prod(of // max(1, size) + 2 for size, of in windows)
        )
        for dim in range(-dims, 0):
            starts, ends = covering(x.shape[dim], gradient.shape[dim])
            parts = tuple(_spread(part, dim, x.shape[dim], starts, ends) for part in parts)
        return shared.like(parts)


def _spread(
    part: torch.Tensor, dim: int, size: int, starts: torch.Tensor, ends: torch.Tensor
) -> torch.Tensor:
    shape = list(part.shape)
    shape[dim] = size + 1
    steps = part.new_zeros(shape).index_add_(dim, starts, part).index_add_(dim, ends, -part)
    return steps.cumsum(dim).narrow(dim, 0, size)


_adaptive_gradient(aten._adaptive_avg_pool2d_backward.default, 2)
_adaptive_gradient(aten._adaptive_avg_pool3d_backward.default, 3)
