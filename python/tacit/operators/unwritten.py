"""Operators on public tensors that secrets may be written into (``public``): on plain ones where no
secret takes part. Where one does, what it is written into becomes secret first, and all others are
public operands as any plain tensor is. No interaction."""

from typing import Any

import torch
from torch.utils import _pytree as pytree

from tacit import fixed
from tacit.fixed import DTYPES
from tacit.modes import is_tracing
from tacit.operators.dispatch import arrays, items, profiling
from tacit.operators.dispatch.agreement import note_values
from tacit.operators.dispatch.operands import is_secret
from tacit.operators.dispatch.table import run, secrets_of
from tacit.operators.selection import session_of_all, target
from tacit.public import Memory, PublicTensor
from tacit.tensor import SecretTensor

#: What PyTorch, NumPy and Python call where secrets meet what is theirs.
__all__ = ["arrays", "items", "profiling"]


#: Operators that do not write to their target's memory, but have it be another.
ANOTHER_MEMORY = (torch.ops.aten.set_, torch.ops.aten.resize_, torch.ops.aten.resize_as_)


def _run(func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if PublicTensor in types:
        # Views of what became secret may have had no object of Python's until now.
        public = [
            each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, PublicTensor)
        ]
        settled = [each.settled() for each in public]
        if SecretTensor not in types and not is_secret(*settled):
            return _run_plain(func, args, kwargs, public)
        args, kwargs = _prepared(func, args, kwargs)
    result = run(func, args, kwargs)
    if isinstance(result, SecretTensor) or not isinstance(result, torch.Tensor):
        return result
    # What is known of secrets, such as zeros like them. Inside of an operator it is plain.
    is_part = session_of_all(secrets_of(args, kwargs)).operator
    return result if is_part or is_tracing() else _public(result, {})


SecretTensor.dispatcher = PublicTensor.dispatcher = _run


def _run_plain(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], public: list[PublicTensor]
) -> Any:
    if func.overloadpacket in ANOTHER_MEMORY:
        return _moved(func, args, kwargs, public)
    plain_args, plain_kwargs = pytree.tree_map_only(PublicTensor, _plain, (args, kwargs))
    result = func(*plain_args, **plain_kwargs)
    if torch.Tag.inplace_view in func.tags:
        # The outer tensor's own sizes follow.
        with torch._C._DisableTorchDispatch():
            func(*args, **kwargs)
        return args[0]
    given = {id(each._plain): each for each in public}
    return pytree.tree_map_only(torch.Tensor, lambda tensor: _public(tensor, given), result)


def _moved(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], public: list[PublicTensor]
) -> Any:
    """An operator that gives its target another memory, or another size of it."""
    target, *rest = args
    if not isinstance(target, PublicTensor):
        rest, kwargs = pytree.tree_map_only(
            PublicTensor, lambda each: each.lent_to(target), (rest, kwargs)
        )
        return func(target, *rest, **kwargs)
    rest, kwargs = pytree.tree_map_only(PublicTensor, _plain, (rest, kwargs))
    own = target._plain
    plain = torch.empty(0, dtype=own.dtype)
    plain.set_(own.untyped_storage(), own.storage_offset(), own.shape, own.stride())
    func(plain, *rest, **kwargs)
    target.data = PublicTensor(plain, _memory(plain, {id(each._plain): each for each in public}))
    return target


def _plain(tensor: PublicTensor) -> torch.Tensor:
    return tensor._plain


def _public(tensor: torch.Tensor, given: dict[int, Any]) -> torch.Tensor:
    """A plain tensor that an operator has made of public ones, which are given by the identity of
    what is
    plain of them: itself where it is one of these, and in its memory where it is a view of one."""
    if id(tensor) in given:
        return given[id(tensor)]
    is_known = tensor.dtype in DTYPES.values() and tensor.layout is torch.strided
    if type(tensor) is not torch.Tensor or not is_known or tensor.device.type != "cpu":
        return tensor
    return PublicTensor(tensor, _memory(tensor, given))


def _memory(tensor: torch.Tensor, given: dict[int, Any]) -> Memory | None:
    place = tensor.untyped_storage()._cdata
    for each in given.values():
        if each._plain.untyped_storage()._cdata == place:
            return each._memory
    return None


def _prepared(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Arguments of an operator on secrets: what is written into is secret, and
    all else as it is."""
    for at, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        written = kwargs.get(argument.name) if argument.kwarg_only or at >= len(args) else args[at]
        for each in pytree.tree_leaves(written):
            if isinstance(each, PublicTensor):
                _make_secret(func, each, secrets_of(args, kwargs))
    prepared: tuple[Any, Any] = pytree.tree_map_only(PublicTensor, _plain, (args, kwargs))
    return prepared


def _make_secret(func: Any, tensor: PublicTensor, secrets: list[SecretTensor]) -> None:
    """Makes a tensor, with all that shares its memory, secret: of the scale of what is written into
    it."""
    session = session_of_all(secrets)
    plain = tensor._plain
    flat = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage())
    scales = [each._scale for each in secrets if each.dtype.is_floating_point]
    before, session.operator = session.operator, session.operator or str(func)
    try:
        with (
            torch.no_grad(),
            session.using(scale=fixed.of_sum(scales) if scales else session.scale),
        ):
            # It may be another in each party, as what is plain may.
            note_values(session, [flat])
            tensor._memory.become(target(flat, session))
    finally:
        session.operator = before
