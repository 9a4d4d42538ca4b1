"""Files of numbers that the commands of ``tacit riscv`` read."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.commands.numpy_files import loaded
from tacit.errors import MisuseError, cause, setup_error

if TYPE_CHECKING:
    import numpy as np

#: Greatest size of the file of an array, in bytes.
LARGEST = 1 << 28

#: Encoding of secret floats on the machine: fraction bits, and greatest number of bits of the
#: magnitude.
FRACTION_BITS, LARGEST_BITS = 16, 30


def bytes_of(path: Path, option: str) -> bytes:
    """Reads a whole file."""
    try:
        if path.stat().st_size > LARGEST:
            raise MisuseError(f"{option}: {path} has more than {LARGEST >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None


def zeros(short: str, count: int, option: str) -> "np.ndarray[Any, Any]":
    """Returns zeros, in place of numbers of which only the length is known."""
    import numpy as np

    from tacit.riscv import MOST_ELEMENTS

    dtype = type_of(short, option)
    if count > MOST_ELEMENTS:
        raise MisuseError(f"{option}: {MOST_ELEMENTS} elements are the most")
    return np.zeros(count, dtype)


def numbers(short: str, path: Path, option: str) -> "np.ndarray[Any, Any]":
    """Reads the numbers in a file, of the type that the option names."""
    import numpy as np

    dtype, content = type_of(short, option), bytes_of(path, option)
    try:
        if path.suffix == ".npy":
            values = loaded(io.BytesIO(content))
        elif path.suffix == ".bin":
            if len(content) % dtype.itemsize:
                raise ValueError(
                    f"its {len(content)} bytes are no multiple of {dtype.itemsize}, as {short} has"
                )
            values = np.frombuffer(content, dtype)
        else:
            number = float if dtype.kind == "f" else int
            values = np.array([number(word) for word in content.decode().split()], object)
        if values.dtype.kind not in "iuO" + dtype.kind or values.ndim != 1:
            raise ValueError(
                f"{values.dtype} in {values.ndim} dimensions; save them as {dtype}, in one"
            )
    except (ValueError, OverflowError) as error:
        # A word that is not a number may be secret, so the error does not quote it.
        why = f": {error}" if path.suffix in (".npy", ".bin") else ""
        what = "numbers" if dtype.kind == "f" else "integers"
        raise MisuseError(f"{option}: {path} has no {what}{why}") from None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    if len(values) and not (limits.min <= values.min() and values.max() <= limits.max):
        raise MisuseError(
            f"{option}: a value in {path} is no {short}: {limits.min} to {limits.max}"
        )
    return values.astype(dtype)


def fixed_point(values: "np.ndarray[Any, Any]", path: Path, option: str) -> "np.ndarray[Any, Any]":
    """Checks that each of the values can be a secret, and returns them."""
    import numpy as np

    if values.dtype.kind != "f":
        return values
    scaled = np.abs(np.rint(values.astype(np.float64) * (1 << FRACTION_BITS)))
    if not (scaled < 1 << LARGEST_BITS + FRACTION_BITS).all():
        raise MisuseError(
            f"{option}: a value in {path} is no number of fixed point: these are less than "
            f"2^{LARGEST_BITS} "
            "in magnitude"
        )
    return values


def type_of(short: str, option: str) -> "np.dtype[Any]":
    """Returns the type that an option names.

    Raises:
        MisuseError: there is no type of that name.
    """
    import numpy as np

    from tacit.riscv import TYPES

    if short not in TYPES:
        raise MisuseError(f"{option}: no type is called {short!r}; known are {', '.join(TYPES)}")
    return np.dtype(TYPES[short])
