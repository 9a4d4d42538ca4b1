"""Formats of TensorFlow, which are recognised by the name of a file or folder and by its first
byte."""

import zipfile
from enum import Enum
from pathlib import Path

from tacit.errors import MisuseError, cause, setup_error


class Format(Enum):
    """Format in which a TensorFlow model is saved."""

    SAVED_MODEL = "SavedModel"
    FROZEN = "frozen graph"
    KERAS = ".keras"


#: File that makes a folder a SavedModel.
SAVED = "saved_model.pb"

#: File that Keras' own archive contains.
CONFIGURATION = "config.json"

#: First byte of a SavedModel (its version), and also of an ONNX file. A graph begins with another
#: byte.
VERSION = b"\x08"


def format_of(path: Path) -> Format | None:
    """Returns the format, or ``None`` if neither name nor content are TensorFlow's.

    Raises:
        SetupError: the file has such a name but does not exist, or cannot be read.
        MisuseError: the file has such a name but holds something else.
    """
    if path.is_dir():
        if (path / SAVED).is_file():
            return Format.SAVED_MODEL
        raise MisuseError(
            f"{path} is a folder without {SAVED}: give the folder of a SavedModel, or a file"
        )
    if path.suffix not in (".pb", ".keras"):
        return None
    try:
        return _by_content(path)
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None


def _by_content(path: Path) -> Format:
    if not path.is_file():
        raise setup_error(f"there is no file {path}")
    if path.suffix == ".keras":
        if not zipfile.is_zipfile(path):
            raise MisuseError(
                f"{path} is not what Keras 3 writes: load it with the Keras that wrote it, and "
                f"save it by "
                "model.save(FILE.keras) of Keras 3 or model.export(FOLDER)"
            )
        with zipfile.ZipFile(path) as archive:
            if CONFIGURATION not in archive.namelist():
                raise MisuseError(f"{path} holds no model of Keras ({CONFIGURATION})")
        return Format.KERAS
    with path.open("rb") as file:
        first = file.read(1)
    if path.name == SAVED and first == VERSION:
        raise MisuseError(f"{path} is a part of a SavedModel: give the folder, {path.parent}")
    if first in (b"", VERSION):
        raise MisuseError(
            f"{path} is no frozen graph: a SavedModel is given by its folder, ONNX as FILE.onnx"
        )
    return Format.FROZEN
