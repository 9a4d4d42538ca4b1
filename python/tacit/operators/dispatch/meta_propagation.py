"""What comes out of an operator, without data: PyTorch itself computes shapes and dtypes on tensors
that have no memory; the operator's rule says the scale."""

from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.dispatch.scales import Rule, scale_of_call


class Outcome(NamedTuple):
    """A tensor that will come out."""

    shape: torch.Size
    dtype: torch.dtype
    scale: Scale


def propagate(
    rule: Rule, session: Scale, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The operator's result with an :class:`Outcome` in the place of each tensor; ``None`` where
    its shape depends on data.

    Args:
        rule: of the operator's scale.
        session: the session's scale.

    Raises:
        RuntimeError, IndexError: whatever PyTorch says of arguments that do not fit.
    """
    if torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags:
        return None
    if _has_mask(args):
        return None
    plain_args, plain_kwargs = pytree.tree_map(_stand_in, (args, kwargs))
    if func is torch.ops.aten.where.self:
        # Without data PyTorch refuses bytes as a condition, which it takes with them.
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
    """Whether one of several indices is a mask, whose ones are counted."""
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
