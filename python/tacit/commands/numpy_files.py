"""Arrays out of files that NumPy has written, which may hold anything."""

from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: What such a file begins with.
_BEGINNING = b"\x93NUMPY"


def loaded(file: IO[bytes]) -> "np.ndarray[Any, Any]":
    """The array of a file; no pickles, and no archives of several.

    Raises:
        ValueError: it is no such file, or has been damaged.
    """
    import numpy as np

    beginning = file.read(len(_BEGINNING))
    file.seek(0)
    if beginning != _BEGINNING:
        raise ValueError("it is no array as numpy.save writes them")
    try:
        return np.lib.format.read_array(file, allow_pickle=False)
    except OSError:
        raise
    except Exception:
        # Python's own parser reads the header, which says how much memory is wanted: many things
        # are raised.
        raise ValueError(
            "it is no array of numbers, or was cut off or damaged: write it anew by numpy.save"
        ) from None
