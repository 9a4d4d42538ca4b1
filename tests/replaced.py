"""Functions of PyTorch's that libraries put their own in the place of as they are imported: the
tests that run after in the same process are to have PyTorch's."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import isfunction
from pathlib import Path

import torch


@contextmanager
def put_back() -> Iterator[None]:
    """After it, PyTorch's functions are what they were before."""
    before = dict(vars(torch))
    try:
        yield
    finally:
        for name, value in before.items():
            if vars(torch).get(name) is not value:
                setattr(torch, name, value)


def replaced() -> list[str]:
    """Names of PyTorch's functions in whose place there is another library's."""
    home = str(Path(torch.__file__).parent)
    functions = {
        name: value for name, value in vars(torch).items() if isfunction(value) and name[0] != "_"
    }
    return [
        name for name, value in functions.items() if not value.__code__.co_filename.startswith(home)
    ]
