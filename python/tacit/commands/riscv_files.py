"""Files of numbers, that the commands of ``tacit riscv`` read."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import MisuseError, SetupError, cause

if TYPE_CHECKING:
    import numpy as np

#: The largest file of an array, in bytes.
LARGEST = 1 << 28


def bytes_of(path: Path, option: str) -> bytes:
    """All of a file."""
    try:
        if path.stat().st_size > LARGEST:
            raise MisuseError(f"{option}: {path} has more than {LARGEST >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise SetupError(f"cannot read {path}: {cause(error)}") from None


def zeros(short: str, count: int, option: str) -> "np.ndarray[Any, Any]":
    """In the place of numbers of which the length alone is known."""
    import numpy as np

    from tacit.riscv import MOST_ELEMENTS

    dtype = _dtype(short, option)
    if count > MOST_ELEMENTS:
        raise MisuseError(f"{option}: {MOST_ELEMENTS} elements are the most")
    return np.zeros(count, dtype)


def numbers(short: str, path: Path, option: str) -> "np.ndarray[Any, Any]":
    """The numbers of a file, of the type that the option says."""
    import numpy as np

    dtype, content = _dtype(short, option), bytes_of(path, option)
    try:
        if path.suffix == ".npy":
            values = np.load(io.BytesIO(content), allow_pickle=False)
        elif path.suffix == ".bin":
            values = np.frombuffer(content, dtype)
        else:
            number = float if dtype.kind == "f" else int
            values = np.array([number(word) for word in content.decode().split()], object)
        if values.dtype.kind not in "iuO" + dtype.kind or values.ndim != 1:
            raise ValueError(f"{values.dtype} in {values.ndim} dimensions")
    except (ValueError, EOFError) as error:
        # What a word says that is no number may be secret.
        why = f": {error}" if path.suffix in (".npy", ".bin") else ""
        what = "numbers" if dtype.kind == "f" else "integers"
        raise MisuseError(f"{option}: {path} has no {what}{why}") from None
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    if len(values) and not (limits.min <= values.min() and values.max() <= limits.max):
        raise MisuseError(f"{option}: a value in {path} is no {short}: {limits.min} to {limits.max}")
    return values.astype(dtype)


def _dtype(short: str, option: str) -> "np.dtype[Any]":
    import numpy as np

    from tacit.riscv import TYPES

    if short not in TYPES:
        raise MisuseError(f"{option}: no type is called {short!r}; known are {', '.join(TYPES)}")
    return np.dtype(TYPES[short])
