"""A guard that allows one PyTorch profiler at a time.

PyTorch has one profiler for all threads of a process, and parties may be threads. Two recordings at
once crash it, or mix their records. PyTorch's own functions are guarded while a session is open."""

from collections.abc import Callable
from functools import wraps
from threading import Lock, get_ident
from typing import Any

from torch.autograd import profiler

from tacit.errors import MisuseError
from tacit.sessions import while_open

#: Functions that begin a recording, and the one that ends it.
BEGIN, END = ("_prepare_profiler", "_enable_profiler"), "_disable_profiler"

_lock = Lock()

#: The thread that records.
_recording: int | None = None

#: PyTorch's own functions, while they are replaced.
_before: dict[str, Any] = {}


def _begun() -> None:
    global _recording
    with _lock:
        is_another = (
            _recording != get_ident() if _recording is not None else profiler._is_profiler_enabled
        )
        if is_another:
            raise MisuseError(
                "a second profiler: PyTorch has one for all threads of a process, and these "
                "parties are "
                "threads. Profile one of them, `if tacit.session().party == 0:`, or have each be a "
                "process: "
                'tacit.launch(..., transport="tcp"), tacit run'
            )
        _recording = get_ident()


def _ended() -> None:
    global _recording
    with _lock:
        if _recording == get_ident():
            _recording = None


def _beginning(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def begun(*args: Any, **kwargs: Any) -> Any:
        _begun()
        return function(*args, **kwargs)

    return begun


def _ending(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def ended(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            _ended()

    return ended


def _install() -> None:
    for name in (*BEGIN, END):
        _before[name] = getattr(profiler, name)
        setattr(profiler, name, (_ending if name == END else _beginning)(_before[name]))


def _remove() -> None:
    global _recording
    for name, function in _before.items():
        setattr(profiler, name, function)
    _before.clear()
    _recording = None


while_open(_install, _remove)
