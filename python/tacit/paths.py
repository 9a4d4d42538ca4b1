"""Which module of a model runs: for errors, step names and the meter.

PyTorch's global module hooks see every call; outside a session they do nothing.
"""

from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.modules import module as hooks

from tacit.session import current_session


class _Running:
    """The modules under way in one party, outermost first, with the names in the outermost."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.labels: list[str] = []


_running: ContextVar[_Running | None] = ContextVar("tacit_modules", default=None)


def current() -> str:
    """The path and type of the innermost module that runs."""
    running = _running.get()
    if running is None or not running.labels:
        return "no module: the program itself"
    return f"module {running.labels[-1]!r}"


def _enter(module: torch.nn.Module, _args: Any) -> None:
    session = current_session()
    if session is None:
        return
    running = _running.get()
    if running is None:
        running = _Running()
        _running.set(running)
    if not running.labels:
        running.names = {id(part): name for name, part in module.named_modules()}
    path = running.names.get(id(module), "")
    label = path or type(module).__name__
    running.labels.append(label)
    session.core.set_label(label)


def _leave(_module: torch.nn.Module, _args: Any, _result: Any) -> None:
    session, running = current_session(), _running.get()
    if session is None or running is None or not running.labels:
        return
    running.labels.pop()
    session.core.set_label(running.labels[-1] if running.labels else "")


hooks.register_module_forward_pre_hook(_enter)
hooks.register_module_forward_hook(_leave, always_call=True)
