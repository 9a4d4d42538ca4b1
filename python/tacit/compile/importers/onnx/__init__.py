"""Files of ONNX, opset 13 and later, as modules of PyTorch. What they hold is taken for hostile: nothing is
run, sizes are bounded, and all that is missing is told at once."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tacit.compile.importers.imported import Imported
from tacit.compile.importers.onnx import operators
from tacit.compile.importers.onnx.graph import Importing
from tacit.compile.importers.onnx.module import OnnxModule
from tacit.compile.importers.onnx.problems import Problems
from tacit.compile.importers.onnx.reading import read

__all__ = ["load"]

# Importing them is what fills the table.
assert operators


def load(path: Path, shapes: Mapping[str, Sequence[int]] | None = None) -> Imported:
    """The model in a file of ONNX.

    Args:
        path: the file; weights that lie outside of it lie in the same folder.
        shapes: of inputs whose shape the file leaves open, by name.

    Raises:
        SetupError: the file cannot be read, is not sound, or leaves shapes open that were not given.
        UnsupportedOperatorError: it has what is not imported; all of that is listed.
    """
    path = Path(path)
    problems = Problems(str(path))
    found = read(path, shapes or {}, problems)
    module = OnnxModule([name for name, _, _ in found.inputs])
    importing = Importing(found, path.parent, module, problems)
    for name, dtype, shape in found.inputs:
        importing.take(name, dtype, shape)
    for node in found.graph.node:
        importing.node(node)
    outputs = [each.name for each in found.graph.output]
    importing.finish(outputs)
    problems.raise_all()
    return Imported(module.eval().requires_grad_(False), found.inputs, outputs)
