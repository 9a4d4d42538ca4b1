"""Arrays in files that NumPy wrote, which may hold anything."""

from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: First bytes of such a file.
_BEGINNING = b"\x93NUMPY"


def loaded(file: IO[bytes]) -> "np.ndarray[Any, Any]":
    """Returns the array in a file. Pickles and archives of several arrays are refused.

    Raises:
        ValueError: the file is not such a file, or has been damaged.
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
        # Python's own parser reads the header, which states how much memory is needed, so errors of
        # many kinds are raised.
        raise ValueError(
            "it is no array of numbers, or was cut off or damaged: write it anew by numpy.save"
        ) from None
