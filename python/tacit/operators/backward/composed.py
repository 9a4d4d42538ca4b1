"""Gradients of operators that PyTorch composes of others. Autograd differentiates the composition.

They take the rounds of the operator once more, and the rounds of the gradients of its parts.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.overrides import enable_reentrant_dispatch

from tacit.operators.dispatch.operands import Number, at_session_scale
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.recurrent import OPERANDS, check_fused, fused
from tacit.operators.segments import reduced, sizes_of
from tacit.operators.volumes import sampled

aten = torch.ops.aten


def _through(
    compute: Callable[..., Sequence[Any]], operands: Sequence[Any], gradients: Sequence[Any]
) -> list[Any]:
    """Returns the gradients of operands, given the gradients of those results that have one.

    An operand on which no result depends gets zeros.
    """
    with enable_reentrant_dispatch(), torch.enable_grad():
        leaves = [operand.detach().requires_grad_() for operand in operands]
        known = [
            pair for pair in zip(compute(*leaves), gradients, strict=True) if pair[1] is not None
        ]
        results, given = zip(*known, strict=True)
        found = torch.autograd.grad(results, leaves, given, allow_unused=True)
    return [
        torch.zeros_like(operand) if one is None else one
        for one, operand in zip(found, operands, strict=True)
    ]


@implements(aten.grid_sampler_2d_backward.default, scale=of_session)
def grid_sampler_2d_backward(
    gradient: Any,
    images: Any,
    grid: Any,
    mode: int,
    padding: int,
    corners: bool,
    wanted: Sequence[bool],
) -> tuple[Any, Any]:
    """Returns the gradients of ``grid_sample`` with respect to the images and the grid."""
    compute = decomposition_table[aten.grid_sampler_2d.default]
    return _of_both(compute, gradient, images, grid, (mode, padding, corners), wanted)


@implements(aten.grid_sampler_3d_backward.default, scale=of_session)
def grid_sampler_3d_backward(
    gradient: Any,
    volumes: Any,
    grid: Any,
    mode: int,
    padding: int,
    corners: bool,
    wanted: Sequence[bool],
) -> tuple[Any, Any]:
    """Returns the gradients of ``grid_sample`` with respect to the volumes and the grid.

    At a point of a secret grid that is exactly a place, the gradient of the grid is the mean of
    those on both sides.
    """
    return _of_both(sampled, gradient, volumes, grid, (mode, padding, corners), wanted)


def _of_both(
    compute: Callable[..., Any],
    gradient: Any,
    images: Any,
    grid: Any,
    options: Sequence[Any],
    wanted: Sequence[bool],
) -> tuple[Any, Any]:
    """Returns the gradients of the operands of compute(images, grid, *options) that are wanted."""
    operands = [one for one, is_wanted in zip((images, grid), wanted, strict=True) if is_wanted]

    def of_leaves(*leaves: Any) -> tuple[Any]:
        left = iter(leaves)
        both = [
            next(left) if asked else one for one, asked in zip((images, grid), wanted, strict=True)
        ]
        return (compute(*both, *options),)

    found = iter(_through(of_leaves, operands, [gradient]))
    return tuple(next(found) if is_wanted else None for is_wanted in wanted)  # type: ignore[return-value]


@implements(aten._segment_reduce_backward.default, scale=of_session)
def segment_reduce_backward(
    gradient: Any,
    _output: Any,
    data: Any,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    initial: Number | None = None,
) -> Any:
    """Returns the gradient of ``segment_reduce``. Equal extrema share it."""
    sizes = sizes_of(data, lengths, offsets, axis)

    def compute(operand: Any) -> tuple[Any]:
        return (reduced(operand, reduce, sizes, axis, initial),)

    return at_session_scale(_through(compute, [data], [gradient])[0])


@implements(aten.mkldnn_rnn_layer_backward.default, scale=of_session)
def fused_layer_backward(*arguments: Any) -> tuple[Any, ...]:
    """Returns the gradients of one ``nn.LSTM`` layer, with respect to all its operands."""
    # The layer's results, which are not needed, come before their gradients.
    operands, gradients = arguments[:OPERANDS], arguments[OPERANDS + 3 : OPERANDS + 6]
    reverse, mode, _, _, has_biases, *_, batch_sizes, _, _ = arguments[OPERANDS + 6 :]
    check_fused(mode, batch_sizes)
    found = _through(lambda *leaves: fused(leaves, reverse, has_biases), operands, gradients)
    return tuple(map(at_session_scale, found))
