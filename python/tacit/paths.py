"""Which module of a model runs: for errors, step names and the meter.

PyTorch's global module hooks see every call; outside a session they do nothing.
"""

from typing import Any

import torch
from torch.nn.modules import module as hooks

from tacit.session import current_session


def current() -> str:
    """The path of the innermost module that runs."""
    session = current_session()
    if session is None or not session.modules.labels:
        return "no module: the program itself"
    return f"module {session.modules.labels[-1]!r}"


def _enter(module: torch.nn.Module, _args: Any) -> None:
    session = current_session()
    if session is None:
        return
    running = session.modules
    if not running.labels:
        running.names = {id(part): name for name, part in module.named_modules()}
    label = running.names.get(id(module)) or type(module).__name__
    running.labels.append(label)
    session.core.set_label(label)


def _leave(_module: torch.nn.Module, _args: Any, _result: Any) -> None:
    session = current_session()
    if session is None or not session.modules.labels:
        return
    session.modules.labels.pop()
    session.core.set_label(session.modules.labels[-1] if session.modules.labels else "")


hooks.register_module_forward_pre_hook(_enter)
hooks.register_module_forward_hook(_leave, always_call=True)
