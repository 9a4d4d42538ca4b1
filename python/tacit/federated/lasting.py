"""Files that outlast whoever writes them: what is found later is the old one or the new one, whole."""

import os
from pathlib import Path

from tacit.errors import SetupError, cause


def write(path: Path, text: str, what: str) -> None:
    """Writes a file so that it is on the disk when this returns.

    Raises:
        SetupError: it cannot be written; ``what`` says which one it is.
    """
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise SetupError(f"cannot write {what} {path}: {cause(error)}") from None
