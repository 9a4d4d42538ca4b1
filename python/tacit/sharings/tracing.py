"""Operations of the core as PyTorch operators, so that secret tensors can be traced.

Each operation that enters the core is also a PyTorch operator, with a fake kernel that gives the
shapes of the result without data. While a tracer runs (``make_fx``, AOTAutograd), the operation is
called as that operator and appears in the graph. The graph runs in the session in which it is
called. Otherwise the operation is called directly, which is faster.

Programs call other operators (``operators.dispatch.custom_ops``), which are built on these.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import torch

from tacit.errors import MisuseError
from tacit.modes import is_differentiating, is_tracing
from tacit.sessions import session

Operation = TypeVar("Operation", bound=Callable[..., Any])

#: The namespace of the operators.
NAMESPACE = "tacit_core"

LIBRARY = torch.library.Library(NAMESPACE, "DEF")  # type: ignore[no-untyped-call]

#: A function of an operation's arguments that returns shape and dtype of each resulting component.
Outcome = Callable[..., tuple[Sequence[int], torch.dtype]]


def words(x: Sequence[torch.Tensor], *_: Any, **__: Any) -> tuple[Sequence[int], torch.dtype]:
    """Outcome of operations that return words in the shape of the first operand."""
    return x[0].shape, torch.int64


def bits(x: Sequence[torch.Tensor], *_: Any, **__: Any) -> tuple[Sequence[int], torch.dtype]:
    """Outcome of operations that return bits in the shape of the first operand."""
    return x[0].shape, torch.uint8


def operation(schema: str, outcome: Outcome = words) -> Callable[[Operation], Operation]:
    """Decorates a function of a session and components so that it is an operator while tracing.

    The function returns components.

    Args:
        schema: the operator's schema without its name. Components are ``Tensor[]``. The session is
            left out, since it is the one in which the graph runs.
        outcome: gives shape and dtype of each component of the result.
    """

    def enter(function: Operation) -> Operation:
        name = function.__name__
        LIBRARY.define(f"{name}{schema} -> Tensor[]")  # type: ignore[no-untyped-call]
        called = getattr(torch.ops, NAMESPACE).__getattr__(name).default

        def kernel(*args: Any, **kwargs: Any) -> list[torch.Tensor]:
            return list(function(session(), *args, **kwargs))

        def fake(*args: Any, **kwargs: Any) -> list[torch.Tensor]:
            shape, dtype = outcome(*args, **kwargs)
            return [torch.empty(shape, dtype=dtype) for _ in range(session().core.parts)]

        LIBRARY.impl(name, kernel, "CPU")  # type: ignore[no-untyped-call]
        torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=LIBRARY)

        @wraps(function)
        def entered(current: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_tracing():
                return function(current, *args, **kwargs)
            if current is not session():
                raise MisuseError("traced tensors must be of the session that this code runs in")
            return tuple(called(*map(_plain, args), **kwargs))

        return entered  # type: ignore[return-value]

    return enter


def local(schema: str, shape: Callable[..., Sequence[int]]) -> Callable[[Operation], Operation]:
    """Decorates a local function of one party's words so that it is an operator while tracing.

    Args:
        schema: the operator's schema without its name.
        shape: gives the shape of the resulting words.
    """

    def enter(function: Operation) -> Operation:
        name = function.__name__
        LIBRARY.define(f"{name}{schema} -> Tensor")  # type: ignore[no-untyped-call]
        called = getattr(torch.ops, NAMESPACE).__getattr__(name).default
        LIBRARY.impl(name, function, "CPU")  # type: ignore[no-untyped-call]
        torch.library.register_fake(
            f"{NAMESPACE}::{name}",
            lambda *given: torch.empty(shape(*given), dtype=torch.int64),
            lib=LIBRARY,
        )

        @wraps(function)
        def entered(*args: Any) -> Any:
            return called(*map(_plain, args)) if is_tracing() else function(*args)

        return entered  # type: ignore[return-value]

    return enter


def refuse(what: str) -> None:
    """Refuses an operation that needs real values while a tracer runs.

    Raises:
        MisuseError: a tracer runs, or ``torch.func`` differentiates: new tensors have no values.
    """
    if is_differentiating():
        raise MisuseError(
            f"{what} is not done within torch.func.grad: hand secret tensors to the function, and "
            f"reveal its result"
        )
    if is_tracing():
        raise MisuseError(
            f"{what} is not traced: hand secret tensors to the traced function, and reveal its "
            f"result"
        )


def _plain(argument: Any) -> Any:
    """Converts an argument to what a PyTorch operator accepts."""
    argument = getattr(argument, "numbers", argument)
    return list(map(_plain, argument)) if isinstance(argument, tuple | list) else argument
