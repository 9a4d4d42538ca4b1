"""Models of TensorFlow: SavedModel, frozen graph and Keras' own file. tf2onnx makes ONNX of them,
in a process of its own, which is read as any file of ONNX is. Loading such a model can run code
that it holds: only one's own."""

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

#: How tf2onnx names sizes that are open.
UNKNOWN = re.compile(r"\bunk__\d+")

__all__ = ["Format", "format_of", "load"]


def load(path: Path, kind: Format, **others: Any) -> Imported:
    """The model in a file or folder of TensorFlow, which is one's own; other arguments are those of
    ONNX's ``load``.

    Raises:
        SetupError: it cannot be converted, or TensorFlow is not installed.
        MisuseError: it is not as it has to be saved.
        UnsupportedOperatorError: it has what is not imported, or leaves shapes open; all of that is
            listed.
    """
    from tacit.compilation.importers import onnx

    with TemporaryDirectory(prefix="tacit-") as folder:
        converted = convert(path, kind, Path(folder))
        with _called(path, converted):
            return onnx.load(converted, **others)


@contextmanager
def _called(path: Path, converted: Path) -> Iterator[None]:
    """What is said of the file in between is said of the model."""
    try:
        yield
    except (SetupError, UnsupportedOperatorError) as error:
        raise type(error)(UNKNOWN.sub("?", str(error).replace(str(converted), str(path)))) from None
