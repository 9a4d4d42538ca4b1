"""Tracks which module of a model runs, for errors, step names and the meter.

PyTorch's global module hooks see every call. Outside a session they do nothing.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch.nn.modules import module as hooks

from tacit.sessions import Session, current_session, session

P = ParamSpec("P")
R = TypeVar("R")


def current() -> str:
    """Returns the path of the innermost module that runs, as errors name it."""
    session = current_session()
    if session is None or not session.modules.labels:
        return "no module: the program itself"
    return f"module {session.modules.labels[-1]!r}"


def step(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function, so that a recording shows its work under ``name``."""

    def named(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            session = current_session()
            if session is None:
                return function(*args, **kwargs)
            before = session.enter()
            if session.trace is not None:
                session.trace.enter(name, "step")
            try:
                return function(*args, **kwargs)
            finally:
                if session.trace is not None:
                    session.trace.leave()
                session.leave(before)

        return run

    return named


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Meters work outside modules under ``label`` while the context is active."""
    current = session()
    current.core.set_label(label)
    try:
        yield
    finally:
        current.core.set_label("")


def _enter(module: torch.nn.Module, _args: Any) -> None:
    session = current_session()
    # PyTorch's compiler would trace this code, which it cannot do.
    if session is None or torch.compiler.is_dynamo_compiling():
        return
    running = session.modules
    if not running.labels:
        running.names = {id(part): name for name, part in module.named_modules()}
    label = running.names.get(id(module)) or type(module).__name__
    running.labels.append(label)
    session.core.set_label(label)
    if session.trace is not None:
        session.trace.enter(label, "module")


def _leave(_module: torch.nn.Module, _args: Any, _result: Any) -> None:
    session = current_session()
    if session is None or torch.compiler.is_dynamo_compiling() or not session.modules.labels:
        return
    if session.refused:
        _add_refusal_to_error(session)
    session.modules.labels.pop()
    if session.trace is not None:
        session.trace.leave()
    session.core.set_label(session.modules.labels[-1] if session.modules.labels else "")


def _add_refusal_to_error(session: Session) -> None:
    """Adds what was refused to an error of TorchScript, which reports only where."""
    error = sys.exception()
    if isinstance(error, RuntimeError) and str(error).rstrip().endswith("RuntimeError:"):
        error.args = (f"{str(error).rstrip()} {session.refused}",)
        session.refused = ""


hooks.register_module_forward_pre_hook(_enter)
hooks.register_module_forward_hook(_leave, always_call=True)
