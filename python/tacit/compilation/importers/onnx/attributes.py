"""Attributes of an ONNX node as Python values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.compilation.importers.onnx import tensors
from tacit.compilation.importers.onnx.problems import NotImportedError, quoted
from tacit.errors import SetupError


def attributes(node: Any, folder: Path) -> Mapping[str, Any]:
    """Returns all attributes of a node by name: numbers, strings, lists of them, and tensors."""
    return {each.name: _value(each, folder) for each in node.attribute}


def _value(attribute: Any, folder: Path) -> Any:
    from onnx import AttributeProto as Kind

    name = quoted(attribute.name)
    match attribute.type:
        case Kind.FLOAT:
            return float(attribute.f)
        case Kind.INT:
            return int(attribute.i)
        case Kind.STRING:
            return _text(attribute.s)
        case Kind.FLOATS:
            return [float(each) for each in attribute.floats]
        case Kind.INTS:
            return [int(each) for each in attribute.ints]
        case Kind.STRINGS:
            return [_text(each) for each in attribute.strings]
        case Kind.TENSOR:
            try:
                return tensors.read(attribute.t, folder)
            except SetupError as error:
                raise NotImportedError(
                    f"its attribute {name}: {error}", "export the model again"
                ) from None
    raise NotImportedError(
        f"its attribute {name} is of a kind that is not imported", "replace it in the model"
    )


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")
