"""Return of freed memory to the operating system.

The C library keeps freed memory for later allocations. After tensors that are much larger than
later ones, these are hundreds of megabytes that stay unused."""

import ctypes
from functools import cache
from typing import Any


@cache
def _trim() -> Any:
    """Returns the C library's function for this, if it has one."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back() -> None:
    """Returns freed memory to the operating system, if the C library can do so."""
    if (trim := _trim()) is not None:
        trim(0)
