"""Files of NumPy arrays that commands read and write."""

import io
from pathlib import Path

import numpy as np
import torch

from tacit import atomic_write
from tacit.commands.numpy_files import loaded
from tacit.errors import MisuseError, cause, setup_error


def read(path: Path) -> torch.Tensor:
    """Reads an array from a file; pickles are refused.

    Raises:
        SetupError: the file cannot be read.
        MisuseError: the file holds no array of numbers.
    """
    try:
        with path.open("rb") as file:
            array = loaded(file)
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None
    except ValueError:
        raise MisuseError(f"{path} holds no array: numpy.save writes one") from None
    try:
        made = torch.from_numpy(np.array(array, array.dtype.newbyteorder("="), order="C"))
    except (TypeError, AttributeError, ValueError):
        raise MisuseError(f"{path} holds no array of numbers") from None
    return made.to(torch.float32) if made.dtype == torch.float64 else made


def write(path: Path, values: torch.Tensor) -> None:
    """Writes an array to a file.

    Raises:
        SetupError: the file cannot be written.
    """
    content = io.BytesIO()
    np.save(content, values.numpy(), allow_pickle=False)
    atomic_write.write(path, content.getvalue())
