"""Memory that nobody uses, given back to the system. The C library keeps what was freed for what
comes: after tensors that are much larger than later ones that is hundreds of megabytes, which lie
idle from then on."""

import ctypes
from functools import cache
from typing import Any


@cache
def _trim() -> Any:
    """The C library's own function for it, which not every one has."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back() -> None:
    """Gives it back, where that can be done; what is in use stays where it is."""
    if (trim := _trim()) is not None:
        trim(0)
