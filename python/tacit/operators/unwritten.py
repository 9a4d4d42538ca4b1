"""Operators on public tensors that secrets may be written into (``public``).

If no secret takes part, they run on plain tensors. If one does, the tensor that it is written into
becomes secret first, and all other public tensors are public operands like any plain tensor. No
interaction.
"""

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

#: Modules that PyTorch, NumPy and Python call if secrets meet their own objects.
__all__ = ["arrays", "items", "profiling"]


#: Operators that do not write to their target's storage, but replace it.
ANOTHER_MEMORY = (torch.ops.aten.set_, torch.ops.aten.resize_, torch.ops.aten.resize_as_)


def _run(func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if PublicTensor in types:
        # A view of a tensor that became secret may have had no Python object until now.
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
    # A result that is known although operands are secret, such as zeros like them. Inside another
    # operator it stays plain.
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
        # Updates the sizes of the outer tensor as well.
        with torch._C._DisableTorchDispatch():
            func(*args, **kwargs)
        return args[0]
    given = {id(each._plain): each for each in public}
    return pytree.tree_map_only(torch.Tensor, lambda tensor: _public(tensor, given), result)


def _moved(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], public: list[PublicTensor]
) -> Any:
    """Runs an operator that gives its target another storage, or another size of it."""
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
    """Wraps a plain result of an operator on public tensors as a public tensor.

    ``given`` has the public operands by the identity of their plain tensors. A result that is one
    of these plain tensors becomes its public operand. A result that is a view of one shares its
    storage.
    """
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
    """Returns the arguments of an operator on secrets.

    Tensors that are written into become secret. All other public tensors become plain.
    """
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
    """Makes a tensor secret, with all tensors that share its storage.

    The scale is that of the value that is written into it.
    """
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
            # Like every plain tensor, it may differ between parties. So its values are noted for
            # comparison.
            note_values(session, [flat])
            tensor._memory.become(target(flat, session))
    finally:
        session.operator = before
