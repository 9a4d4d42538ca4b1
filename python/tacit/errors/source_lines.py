"""Where a program is: for errors, and for what is found before a run."""

import os
import sys
import threading
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FrameType


def _folder(package: str) -> str:
    """Where it lies; it is not imported, since errors are told by commands that need no PyTorch,
    too."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None, package
    return f"{Path(spec.origin).parent}{os.sep}"


#: Whose lines are nobody's model: tacit's own, PyTorch's, and those with which a party's thread
#: begins.
OURS = (_folder("tacit"), _folder("torch"), threading.__file__)


@cache
def is_ours(path: str) -> bool:
    """Whether it is nobody's model: what has no file, such as <string>, is PyTorch's as well."""
    return path.startswith(OURS) or not Path(path).is_file()


def innermost() -> FrameType | None:
    """The innermost frame that is neither PyTorch's nor tacit's, if there is one."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def line() -> str:
    """Its file and line; empty if there is none."""
    frame = innermost()
    return f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}" if frame is not None else ""


def calls() -> Iterator[tuple[str, str]]:
    """Module and function of what is under way, from the inside to that line."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        if not is_ours(frame.f_code.co_filename):
            return
        frame = frame.f_back


def _short(path: str) -> str:
    file = Path(path)
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else path
