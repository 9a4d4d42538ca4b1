"""Shapes, dtypes and scales of an operator's results, computed without data.

PyTorch computes shapes and dtypes on tensors without memory. A rule of the operator gives the
scale."""

from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.dispatch.scales import Rule, scale_of_call


class Outcome(NamedTuple):
    """Shape, dtype and scale of a tensor that an operator will return."""

    shape: torch.Size
    dtype: torch.dtype
    scale: Scale


def propagate(
    rule: Rule, session: Scale, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Returns the operator's result with an :class:`Outcome` for each tensor.

    Returns ``None`` if a shape depends on data.

    Args:
        rule: the rule of the operator's scale.
        session: the session's scale.

    Raises:
        RuntimeError, IndexError: as PyTorch raises for arguments that do not fit.
    """
    if torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags:
        return None
    if _has_mask(args):
        return None
    plain_args, plain_kwargs = pytree.tree_map(_stand_in, (args, kwargs))
    if func is torch.ops.aten.where.self:
        # Without data, PyTorch refuses uint8 as a condition. With data, it accepts it.
        plain_args = (plain_args[0].to(torch.bool), *plain_args[1:])
    try:
        result = func(*plain_args, **plain_kwargs)
    except NotImplementedError:
        return None
    scale = scale_of_call(rule, session, func, args, kwargs)

    def outcome(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return Outcome(value.shape, value.dtype, fixed.of_dtype(scale, value.dtype))

    return pytree.tree_map(outcome, result)


def _has_mask(args: tuple[Any, ...]) -> bool:
    """Whether one of several indices is a mask, whose true elements give the size of the result."""
    return any(
        isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)
        for arg in args
        if isinstance(arg, list | tuple)
        for index in arg
    )


def _stand_in(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return torch.device("meta") if isinstance(value, torch.device) else value
    if value.layout != torch.strided:
        raise NotImplementedError
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
