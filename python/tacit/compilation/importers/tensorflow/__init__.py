"""Importer of TensorFlow models: SavedModel, frozen graph and Keras' own file.

tf2onnx converts a model to ONNX, in a process of its own, and the result is read like any ONNX
file. Loading such a model can run code that it holds, so load only your own."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.compilation.importers.imported import Imported
from tacit.compilation.importers.tensorflow.conversion import convert
from tacit.compilation.importers.tensorflow.formats import Format, format_of
from tacit.errors import SetupError, UnsupportedOperatorError

#: Names that tf2onnx gives to open sizes.
UNKNOWN = re.compile(r"\bunk__\d+")

__all__ = ["Format", "format_of", "load"]


def load(path: Path, kind: Format, **others: Any) -> Imported:
    """Loads the model in a TensorFlow file or folder, which must be your own. Other arguments are
    those of ONNX's ``load``.

    Raises:
        SetupError: the model cannot be converted, or TensorFlow is not installed.
        MisuseError: the model is not saved in the required way.
        UnsupportedOperatorError: the model has something that is not imported, or leaves shapes
            open; the error lists all of that.
    """
    from tacit.compilation.importers import onnx

    with TemporaryDirectory(prefix="tacit-") as folder:
        converted = convert(path, kind, Path(folder))
        with _called(path, converted):
            return onnx.load(converted, **others)


@contextmanager
def _called(path: Path, converted: Path) -> Iterator[None]:
    """Makes errors about the converted file name the model instead."""
    try:
        yield
    except (SetupError, UnsupportedOperatorError) as error:
        raise type(error)(UNKNOWN.sub("?", str(error).replace(str(converted), str(path)))) from None
