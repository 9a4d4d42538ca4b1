"""Small hand-made ONNX models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tacit.compilation.importers import onnx as importer
from tacit.errors import SetupError, TacitError

REAL = TensorProto.FLOAT


def model(
    nodes: list[Any],
    inputs: dict[str, Any],
    outputs: list[str],
    held: dict[str, Any] | None = None,
    opset: int = 20,
    **others: Any,
) -> Any:
    """Builds a model whose inputs and outputs are real numbers."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, REAL, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, REAL, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in (held or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), *others.pop("opset_imports", [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, **others)


def relu(**others: Any) -> Any:
    return model(
        [helper.make_node("Relu", ["x"], ["y"], name="first")], {"x": [2, 3]}, ["y"], **others
    )


def load(made: Any, folder: Path, **others: Any) -> Any:
    path = folder / "model.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    return importer.load(path, **others)


def refused(made: Any, folder: Path, kind: type[TacitError] = SetupError, **others: Any) -> str:
    with pytest.raises(kind) as caught:
        load(made, folder, **others)
    return str(caught.value).replace(str(folder / "model.onnx"), "FILE")
