"""What tracing sees of secret tensors. Each operation that enters the core is an operator of
PyTorch too, with a fake kernel that gives what comes out without data: while something traces
(``make_fx``, AOTAutograd), it is called as that and stands in the graph, which runs in the session
that it is called in. Otherwise the operation is called as it is, which takes less time.

Operators that a program may call are others (``operators.own``): these here are below them.
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

#: What an operation gives, by its arguments: shape and dtype of each component.
Outcome = Callable[..., tuple[Sequence[int], torch.dtype]]


def words(x: Sequence[torch.Tensor], *_: Any, **__: Any) -> tuple[Sequence[int], torch.dtype]:
    """As many words as the first operand has elements."""
    return x[0].shape, torch.int64


def bits(x: Sequence[torch.Tensor], *_: Any, **__: Any) -> tuple[Sequence[int], torch.dtype]:
    """The same of bits."""
    return x[0].shape, torch.uint8


def operation(schema: str, outcome: Outcome = words) -> Callable[[Operation], Operation]:
    """Makes an operator of a function of a session and of components, which gives components.

    Args:
        schema: of the operator, without its name: components are ``Tensor[]``; the session is left
            out, as it is that in which the graph runs.
        outcome: what each component of the result is.
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
                raise MisuseError("what is traced belongs to the session that this code runs in")
            return tuple(called(*map(_plain, args), **kwargs))

        return entered  # type: ignore[return-value]

    return enter


def local(schema: str, shape: Callable[..., Sequence[int]]) -> Callable[[Operation], Operation]:
    """The same of a function of one party's own words, which gives words of that shape."""

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
    """Raises for what is done with values now, not taken down.

    Raises:
        MisuseError: something traces, or ``torch.func`` differentiates, in which new tensors have
            no values.
    """
    if is_differentiating():
        raise MisuseError(
            f"{what} is not done within torch.func.grad: hand secret tensors to the function, and "
            f"reveal "
            "what it gives"
        )
    if is_tracing():
        raise MisuseError(
            f"{what} is not traced: hand secret tensors to what is traced, and reveal what it gives"
        )


def _plain(argument: Any) -> Any:
    """As an operator takes it."""
    argument = getattr(argument, "numbers", argument)
    return list(map(_plain, argument)) if isinstance(argument, tuple | list) else argument
