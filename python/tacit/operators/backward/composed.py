"""Gradients of operators that PyTorch composes of others: PyTorch goes back through these. The rounds of the
operator once more, and of the gradients of its parts."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.overrides import enable_reentrant_dispatch

from tacit.operators.scales import of_session
from tacit.operators.table import implements

aten = torch.ops.aten


def through(compute: Callable[..., Any], operands: Sequence[Any], gradient: Any) -> list[Any]:
    """The gradients of a result's operands; zeros of those that it does not depend on."""
    with enable_reentrant_dispatch(), torch.enable_grad():
        leaves = [operand.detach().requires_grad_() for operand in operands]
        found = torch.autograd.grad(compute(*leaves), leaves, gradient, allow_unused=True)
    return [
        torch.zeros_like(operand) if one is None else one
        for one, operand in zip(found, operands, strict=True)
    ]


@implements(aten.grid_sampler_2d_backward.default, scale=of_session)
def grid_sampler_2d_backward(
    gradient: Any, images: Any, grid: Any, mode: int, padding: int, corners: bool, wanted: Sequence[bool]
) -> tuple[Any, Any]:
    """Of ``grid_sample``: of the images, and of where they are looked at."""
    operands = [one for one, is_wanted in zip((images, grid), wanted, strict=True) if is_wanted]

    def sampled(*leaves: Any) -> Any:
        left = iter(leaves)
        both = [next(left) if asked else one for one, asked in zip((images, grid), wanted, strict=True)]
        return decomposition_table[aten.grid_sampler_2d.default](*both, mode, padding, corners)

    found = iter(through(sampled, operands, gradient))
    return tuple(next(found) if is_wanted else None for is_wanted in wanted)  # type: ignore[return-value]
