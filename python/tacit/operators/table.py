"""The one table: ATen operator → implementation."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import torch
from torch.utils import _pytree as pytree

from tacit import paths
from tacit.errors import UnsupportedOperatorError
from tacit.operators.operands import as_kind_of
from tacit.shares import Parts
from tacit.tensor import SecretTensor, refuse

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

#: Operator overload → its implementation, called with the operator's own arguments.
TABLE: dict[Any, Callable[..., Any]] = {}

#: Operators that would show values.
REVEALING = {
    torch.ops.aten._local_scalar_dense.default: "item()",
    torch.ops.aten.equal.default: "torch.equal",
    torch.ops.aten.is_nonzero.default: "a condition",
    torch.ops.aten.nonzero.default: "nonzero()",
}

#: What PyTorch does with the indices of a max pooling before it throws them away.
RESHAPING = {torch.ops.aten.squeeze.dim, torch.ops.aten.detach.default, torch.ops.aten.view.default}


def implements(*overloads: Any) -> Callable[[Implementation], Implementation]:
    """Enters a function into the table."""

    def enter(function: Implementation) -> Implementation:
        for overload in overloads:
            assert overload not in TABLE, f"{overload} has two implementations"
            TABLE[overload] = function
        return function

    return enter


def in_place(overload: Any, functional: Any) -> None:
    """Enters an operator that writes the result of another into its first argument."""

    def write(target: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if not isinstance(target, SecretTensor):
            unsupported(
                "an in-place operation that would put a secret into a plain tensor",
                "use the form that returns a new tensor",
            )
        return assign(target, TABLE[functional](target, *args, **kwargs))

    implements(overload)(write)


def in_place_view(overload: Any, functional: Any) -> None:
    """Enters an operator that changes the shape of its argument."""

    def reshape(target: SecretTensor, *args: Any) -> SecretTensor:
        target._parts = tuple(functional(part, *args) for part in target._parts)
        # The outer tensor's own sizes follow.
        with torch._C._DisableTorchDispatch():
            overload(target, *args)
        return target

    implements(overload)(reshape)


def assign(target: SecretTensor, value: SecretTensor) -> SecretTensor:
    """Writes a secret tensor into another, as in-place operations do; views see it."""
    value = as_kind_of(value, target)
    for mine, new in zip(writable(target), value._parts, strict=True):
        mine.copy_(new)
    return target


def writable(target: SecretTensor) -> Parts:
    """The components of a secret tensor, for the operators that write into them."""
    target._session.lasting.forget(target._parts[0])
    return target._parts


def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``SecretTensor.__torch_dispatch__`` does.

    Raises:
        UnsupportedOperatorError: the table has no entry, or not for these arguments.
    """
    implementation = TABLE.get(func)
    if implementation is None:
        if func in REVEALING:
            refuse(REVEALING[func])
        # What PyTorch itself composes of others reaches us whole when an implementation calls it.
        with torch.no_grad():
            result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        unsupported(f"the operator {func}", "replace it in the model, or apply it to plain tensors")
    hollow = [
        leaf
        for leaf in pytree.tree_leaves((args, kwargs))
        if isinstance(leaf, SecretTensor) and not leaf._parts
    ]
    if hollow and func in RESHAPING:
        return SecretTensor((), 0, hollow[0]._session, hollow[0].dtype)
    if hollow:
        unsupported("the indices of a max pooling", "use max pooling without return_indices")
    with torch.no_grad():
        return implementation(*args, **kwargs)


SecretTensor.dispatcher = run


def unsupported(what: str, remedy: str) -> NoReturn:
    """Names what a secret tensor does not have, and the module that wanted it.

    Raises:
        UnsupportedOperatorError: always.
    """
    raise UnsupportedOperatorError(
        f"{what} is not supported on secret tensors (in {paths.current()}); {remedy}. Nothing was revealed."
    )
