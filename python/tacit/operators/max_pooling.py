"""Max pooling in two and three dimensions, its gradients, and unpooling.

PyTorch turns pooling in one dimension into pooling in two. Maxima are tournaments along one
dimension after another, in which padding takes no part. Indices are computed only when they are
used. The gradient needs none.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from tacit import checks
from tacit.fixed import WHOLE
from tacit.modes import outside_trace
from tacit.operators.average_pooling import covering
from tacit.operators.dispatch import custom_ops  # noqa: F401
from tacit.operators.dispatch.operands import as_words, each, lifted, moved, operand_scale, summed
from tacit.operators.dispatch.scales import of_target
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics.compare_words import of_difference
from tacit.operators.numerics.max_tree import Tournament, Windows
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


class _Indices:
    """Indices of a max pooling, computed only when they are asked for."""

    def __init__(self, tournament: Tournament, dims: int) -> None:
        self.tournament = tournament
        self._dims = dims

    def parts(self) -> Parts:
        """Returns the components. Two rounds for each level of the tournament."""
        return self.tournament.positions(self._dims)


def _pooled(x: SecretTensor, stages: list[Windows], dims: int) -> tuple[SecretTensor, SecretTensor]:
    x = as_words(x)
    tournament = Tournament(x._session, x._parts, stages, of_difference(x._session, x._scale, x))
    values = x.like(tournament.winners)
    later = _Indices(tournament, dims)
    return values, SecretTensor((), WHOLE, x._session, torch.int64, shape=values.shape, later=later)


# The operators
# ----------------------------------------------------------------------------


def _stages(
    x: SecretTensor,
    dims: int,
    kernel_size: Sequence[int],
    steps: Sequence[Sequence[int]],
    ceil_mode: bool,
) -> list[Windows]:
    """Returns the windows along each dimension, the last first.

    ``steps`` are stride, padding and dilation.
    """
    kernel = each(kernel_size, dims)
    steps = [each(steps[0], dims, kernel), *(each(step, dims) for step in steps[1:])]
    # Gives the shape, and runs PyTorch's own checks of the arguments.
    shape = _PLAIN[dims](torch.empty(x.shape, device="meta"), kernel, *steps, ceil_mode).shape
    stages = []
    for axis in reversed(range(dims)):
        dim = axis - dims
        taps = _taps(x.shape[dim], shape[dim], kernel[axis], *(step[axis] for step in steps))
        stages.append(Windows(dim, x.shape[dim], taps))
    return stages


#: PyTorch's own max pooling, by number of dimensions.
_PLAIN: dict[int, Any] = {2: functional.max_pool2d, 3: functional.max_pool3d}


def _max_pool(overload: Any, dims: int) -> None:
    @implements(overload)
    def max_pool(
        x: SecretTensor,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> tuple[SecretTensor, SecretTensor]:
        """Returns the maxima over windows and their indices."""
        return _pooled(
            x, _stages(x, dims, kernel_size, (stride, padding, dilation), ceil_mode), dims
        )


_max_pool(aten.max_pool2d_with_indices.default, 2)
_max_pool(aten.max_pool3d_with_indices.default, 3)


@implements(torch.ops.tacit.rectified_max_pool2d.default)
def rectified_max_pool(
    x: SecretTensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> SecretTensor:
    """Returns max(x, 0) over windows.

    A tournament of 3, 5, 6, 7, ... elements has a free place, which zero takes at no extra round. A
    tournament of 2, 4, 8, ... elements compares zero with the last two elements in one extra round,
    if there are at most half as many windows as elements. In all other cases, and if comparisons
    are guarded, zero takes one more level of the tournament.
    """
    x = as_words(x)
    stages = _stages(x, 2, kernel_size, (stride, padding, dilation), ceil_mode)
    comparison = of_difference(x._session, x._scale, x)
    return x.like(Tournament(x._session, x._parts, stages, comparison, with_zero=True).winners)


@outside_trace
def _taps(
    size: int, outputs: int, kernel: int, stride: int, padding: int, dilation: int
) -> torch.Tensor:
    """Returns for each place of a window the index that it takes at each output.

    A place in the padding takes another index of the same window, which changes no maximum.
    """
    starts = torch.arange(outputs) * stride - padding
    indices = starts.unsqueeze(0) + (torch.arange(kernel) * dilation).unsqueeze(1)
    inside = (indices >= 0) & (indices < size)
    if not bool(inside.any(0).all()):
        unsupported("a maximum over a window that lies in the padding", "pad less, or dilate less")
    first_inside = indices.gather(0, inside.int().argmax(0, keepdim=True))
    return torch.where(inside, indices, first_inside)


@implements(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(
    x: SecretTensor, output_size: Sequence[int]
) -> tuple[SecretTensor, SecretTensor]:
    """Returns the maxima over windows that cover the image evenly, and their indices."""
    dims, stages = len(output_size), []
    for dim in range(-1, -dims - 1, -1):
        starts, ends = covering(x.shape[dim], output_size[dim])
        widest = int((ends - starts).max()) if len(starts) else 1
        # Narrower windows repeat their last element.
        taps = torch.minimum(starts + torch.arange(widest).unsqueeze(1), ends - 1)
        stages.append(Windows(dim, x.shape[dim], taps))
    return _pooled(x, stages, dims)


@implements(aten.fractional_max_pool2d.default, aten.fractional_max_pool3d.default, scale=of_target)
def fractional_max_pool(
    x: SecretTensor, kernel_size: Sequence[int], output_size: Sequence[int], samples: torch.Tensor
) -> tuple[SecretTensor, SecretTensor]:
    """Returns maxima over windows at positions given by public random numbers, and their indices.

    Each channel has its own positions.
    """
    if isinstance(samples, SecretTensor) or not isinstance(x, SecretTensor):
        unsupported("fractional pooling by secret random numbers", "draw them in public")
    dims = len(output_size)
    kernel, sizes = each(kernel_size, dims), x.shape[-dims:]
    # Element indices, of shape (rows, outputs, places).
    numbers = torch.zeros(1, 1, 1, dtype=torch.int64)
    for axis in range(dims):
        # The first sample belongs to the last dimension.
        sample = samples.flatten(0, -2)[:, dims - 1 - axis]
        starts = _starts(sample, sizes[axis], output_size[axis], kernel[axis])
        along = starts.unsqueeze(-1) + torch.arange(kernel[axis])
        numbers = numbers[:, :, None, :, None] * sizes[axis] + along[:, None, :, None, :]
        numbers = numbers.flatten(3, 4).flatten(1, 2)
    flat = moved(x, lambda part: part.reshape(-1, sizes.numel()))
    windows = Windows(-1, sizes.numel(), numbers.movedim(-1, 0).contiguous())
    values, indices = _pooled(flat, [windows], 1)
    shape = (*x.shape[:-dims], *output_size)
    return values.reshape(shape), indices.view(shape)


def _starts(sample: torch.Tensor, size: int, outputs: int, kernel: int) -> torch.Tensor:
    """Returns where PyTorch's windows begin, (rows, outputs), in the samples' own precision."""
    if outputs == 1:
        return torch.full((len(sample), 1), size - kernel)
    alpha = sample.new_tensor(size - kernel) / sample.new_tensor(outputs - 1)
    steps = torch.arange(outputs - 1, dtype=sample.dtype)
    sample = sample.unsqueeze(1)
    starts = ((steps + sample) * alpha).to(torch.int64) - (sample * alpha).to(torch.int64)
    return torch.cat([starts, torch.full((len(starts), 1), size - kernel)], 1)


# Gradients and unpooling
# ----------------------------------------------------------------------------


def _gradient(overload: Any, dims: int) -> None:
    @implements(overload, scale=of_target)
    def max_pool_backward(gradient: Any, x: torch.Tensor, *settings: Any) -> Any:
        """Adds the gradient of each maximum to the element that it came from.

        Secret indices take two rounds for each level of the tournament, public ones none.
        """
        indices = settings[-1]
        if not isinstance(indices, SecretTensor):
            return _scattered(gradient, indices, x.shape, dims, torch.scatter_add)
        return _scattered_to_winners(gradient, _tournament(indices), x.shape)


for _overload, _dims in (
    (aten.max_pool2d_with_indices_backward.default, 2),
    (aten.max_pool3d_with_indices_backward.default, 3),
    (aten.adaptive_max_pool2d_backward.default, 2),
    (aten.adaptive_max_pool3d_backward.default, 3),
    (aten.fractional_max_pool2d_backward.default, 2),
    (aten.fractional_max_pool3d_backward.default, 3),
):
    _gradient(_overload, _dims)


@implements(aten.max_unpool2d.default, aten.max_unpool3d.default, scale=of_target)
def max_unpool(x: Any, indices: Any, output_size: Sequence[int], *_: Any) -> Any:
    """Places values at the indices of a max pooling, with zeros elsewhere.

    Secret indices take two rounds for each level of the tournament, public ones none.
    """
    dims = len(output_size)
    shape = torch.Size((*x.shape[:-dims], *output_size))
    if not isinstance(indices, SecretTensor):
        return _scattered(x, indices, shape, dims, torch.scatter)
    tournament = _tournament(indices)
    if tournament.shape.numel() != shape.numel() or _longer(tournament.shape, dims) != _longer(
        shape, dims
    ):
        unsupported("unpooling by secret indices to another size", "give the size that was pooled")
    if tournament.most > 1:
        unsupported(
            "unpooling by secret indices of windows that overlap", "pool with the kernel as stride"
        )
    return _scattered_to_winners(x, tournament, shape)


def _longer(shape: torch.Size, dims: int) -> list[int]:
    """Returns those of the last ``dims`` sizes that are greater than one.

    PyTorch pools one dimension as 1 × n and unpools it as n × 1.
    """
    return [size for size in shape[-dims:] if size > 1]


def _tournament(indices: SecretTensor) -> Tournament:
    if not isinstance(indices._later, _Indices):
        unsupported("unpooling by secret indices that no pooling gave", "use public indices")
    return indices._later.tournament


def _scattered_to_winners(values: Any, tournament: Tournament, shape: torch.Size) -> SecretTensor:
    session = tournament.session
    scale = operand_scale(values, session.scale)
    outputs = tournament.winners[0].shape
    given = lifted(session, values, scale)
    checks.hold_summands(session, given, tournament.most)
    parts = tournament.scatter_add(tuple(part.reshape(outputs) for part in given))
    checks.summed(session, parts, given, tournament.most)
    return SecretTensor(tuple(part.reshape(shape) for part in parts), scale, session, values.dtype)


def _scattered(x: Any, indices: torch.Tensor, shape: torch.Size, dims: int, scatter: Any) -> Any:
    """Places values at public indices among the elements of the last dimensions of a new tensor."""
    positions, sizes = indices.flatten(-dims), (*shape[:-dims], shape[-dims:].numel())

    def place(part: torch.Tensor) -> torch.Tensor:
        placed: torch.Tensor = scatter(part.new_zeros(sizes), -1, positions, part.flatten(-dims))
        return placed.reshape(shape)

    return summed(x, positions.shape[-1] if scatter is torch.scatter_add else 1, place)
