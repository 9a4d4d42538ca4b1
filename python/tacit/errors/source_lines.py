"""The line of the user's program that is running, for errors and for rehearsals."""

import os
import sys
import threading
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FrameType


def _folder(package: str) -> str:
    """Returns the folder of a package without importing it.

    Commands that do not need PyTorch report errors too."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None, package
    return f"{Path(spec.origin).parent}{os.sep}"


#: Paths that are not part of a user's program: tacit, PyTorch, and the start of a thread.
OURS = (_folder("tacit"), _folder("torch"), threading.__file__)


@cache
def is_ours(path: str) -> bool:
    """Whether a path is not part of a user's program.

    Code without a file, such as <string>, is PyTorch's."""
    return path.startswith(OURS) or not Path(path).is_file()


def innermost() -> FrameType | None:
    """Returns the innermost frame that is neither PyTorch's nor tacit's, or ``None``."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def line() -> str:
    """Returns file and line of the user's innermost frame, or an empty text."""
    frame = innermost()
    return f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}" if frame is not None else ""


def calls() -> Iterator[tuple[str, str]]:
    """Yields module and function of each frame, from the innermost to the user's innermost."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        if not is_ours(frame.f_code.co_filename):
            return
        frame = frame.f_back


def _short(path: str) -> str:
    file = Path(path)
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else path
