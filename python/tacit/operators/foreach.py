"""Operators on lists of tensors, as optimisers use them (``torch._foreach_*``).

All tensors of a list are processed as one, so that a list takes the rounds of a single tensor. New
tensors have the session's scale.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tacit.fixed import Scale
from tacit.operators.dispatch.operands import at_session_scale, rescaled
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import assign, at_scale_of, implements, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten

Operator = Callable[..., Any]

#: Names of operators that apply PyTorch's operator of the same name to every tensor.
SAME = (
    "abs",
    "add",
    "clamp_max",
    "clamp_min",
    "div",
    "exp",
    "lerp",
    "log",
    "maximum",
    "minimum",
    "mul",
    "neg",
    "pow",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sign",
    "sqrt",
    "sub",
    "tanh",
)


def _addcmul(x: Any, first: Any, second: Any, value: Any = 1) -> Any:
    return torch.addcmul(x, first, second, value=value)


def _addcdiv(x: Any, first: Any, second: Any, value: Any = 1) -> Any:
    return torch.addcdiv(x, first, second, value=value)


def _each(
    operator: Operator, tensors: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """Returns the operator's result for each tensor.

    From each list among the arguments a tensor takes its own element.
    """
    lists = [list(arg) for arg in args if isinstance(arg, list | tuple)]
    if _may_join([list(tensors), *lists]):
        joined = [_joined(arg) if isinstance(arg, list | tuple) else arg for arg in args]
        result = operator(_joined(tensors), *joined, **kwargs)
        pieces = result.split([tensor.numel() for tensor in tensors])
        return [piece.reshape(tensor.shape) for piece, tensor in zip(pieces, tensors, strict=True)]
    own = (
        [arg[at] if isinstance(arg, list | tuple) else arg for arg in args]
        for at in range(len(tensors))
    )
    return [
        operator(tensor, *chosen, **kwargs) for tensor, chosen in zip(tensors, own, strict=True)
    ]


def _may_join(lists: list[list[Any]]) -> bool:
    """Returns whether all tensors of the lists may be processed as one.

    They may if they are secret fractions of one dtype, have the same shapes in all lists, and each
    list of numbers repeats one number.
    """
    first = lists[0]
    for members in lists:
        if not isinstance(members[0], torch.Tensor):
            if any(number != members[0] for number in members):
                return False
        elif not all(
            isinstance(member, SecretTensor)
            and member.dtype == first[0].dtype
            and member.shape == own.shape
            for member, own in zip(members, first, strict=True)
        ):
            return False
    return bool(first[0].dtype.is_floating_point)


def _joined(members: Sequence[Any]) -> Any:
    if not isinstance(members[0], torch.Tensor):
        return members[0]
    return torch.cat([member.reshape(-1) for member in members])


def _new(overload: Any, operator: Operator) -> None:
    @implements(overload, scale=of_session)
    def new(tensors: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Returns a new tensor for each tensor of the list."""
        return list(map(at_session_scale, _each(operator, tensors, args, kwargs)))


def _in_place(overload: Any, operator: Operator) -> None:
    @implements(overload)
    def write(tensors: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        """Writes each result into its tensor in place."""
        targets = _targets(tensors)
        with at_scale_of(*targets):
            results = _each(operator, targets, args, kwargs)
        _assign_all(targets, results)


def _assign_all(targets: Sequence[SecretTensor], results: Sequence[SecretTensor]) -> None:
    """Writes each result into its target.

    Results that lose the same number of fraction bits are truncated together.
    """
    written = list(results)
    too_fine: dict[tuple[Scale, Scale], list[int]] = {}
    for at, (target, result) in enumerate(zip(targets, results, strict=True)):
        if result._scale.bits > target._scale.bits:
            too_fine.setdefault((result._scale, target._scale), []).append(at)
    for (_, scale), places in too_fine.items():
        joined = rescaled(_joined([results[at] for at in places]), scale)
        pieces = joined.split([results[at].numel() for at in places])
        for at, piece in zip(places, pieces, strict=True):
            written[at] = piece.reshape(results[at].shape)
    for target, result in zip(targets, written, strict=True):
        assign(target, result)


def _targets(tensors: Sequence[Any]) -> list[SecretTensor]:
    if not all(isinstance(tensor, SecretTensor) for tensor in tensors):
        unsupported(
            "an in-place operation that would put secrets into a plain tensor of a list",
            "use the form that returns new tensors",
        )
    return list(tensors)


def _enter(name: str, operator: Operator) -> None:
    new, in_place = (getattr(aten, f"_foreach_{name}{ending}") for ending in ("", "_"))
    for overload in new.overloads():
        if not overload.endswith("out") and overload != "ScalarAndTensor":
            _new(getattr(new, overload), operator)
    for overload in in_place.overloads():
        _in_place(getattr(in_place, overload), operator)


for _name in SAME:
    _enter(_name, getattr(torch, _name))
_enter("addcmul", _addcmul)
_enter("addcdiv", _addcdiv)


@implements(aten._foreach_norm.Scalar, scale=of_session)
def norm(tensors: Sequence[Any], ord: Any = 2, dtype: torch.dtype | None = None) -> list[Any]:  # noqa: A002
    """Returns the norm of each tensor, one after the other, as ``torch.linalg.vector_norm``."""
    return [at_session_scale(torch.linalg.vector_norm(each, ord, dtype=dtype)) for each in tensors]


@implements(aten._foreach_zero_.default)
def zero_(tensors: Sequence[Any]) -> None:
    """Writes zeros into each tensor. No interaction."""
    for target in _targets(tensors):
        target.zero_()


@implements(aten._foreach_copy_.default)
def copy_(tensors: Sequence[Any], values: Sequence[Any], non_blocking: bool = False) -> None:  # noqa: ARG001
    """Copies each value into its target.

    If scales differ, each takes a truncation of at most two rounds.
    """
    for target, value in zip(_targets(tensors), values, strict=True):
        assign(target, value)
