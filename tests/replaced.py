"""Detects libraries that replace functions of PyTorch when they are imported.

Tests that run later in the same process must get PyTorch's own functions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import isfunction
from pathlib import Path

import torch


@contextmanager
def put_back() -> Iterator[None]:
    """Restores PyTorch's functions after the ``with`` block."""
    before = dict(vars(torch))
    try:
        yield
    finally:
        for name, value in before.items():
            if vars(torch).get(name) is not value:
                setattr(torch, name, value)


def replaced() -> list[str]:
    """Returns the names of PyTorch's functions that another library has replaced."""
    home = str(Path(torch.__file__).parent)
    functions = {
        name: value for name, value in vars(torch).items() if isfunction(value) and name[0] != "_"
    }
    return [
        name for name, value in functions.items() if not value.__code__.co_filename.startswith(home)
    ]
