"""Files of ONNX, opset 13 and later, as modules of PyTorch. What they hold is taken for hostile: nothing is
run, sizes are bounded, and all that is missing is told at once."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from tacit.compile.importers.imported import Imported
from tacit.compile.importers.onnx import operators, tensors
from tacit.compile.importers.onnx.graph import Importing
from tacit.compile.importers.onnx.module import OnnxModule
from tacit.compile.importers.onnx.problems import NotImportedError, Problems, quoted
from tacit.compile.importers.onnx.reading import Read, read, shown, static

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
    found = read(path, {name: tuple(shape) for name, shape in (shapes or {}).items()}, problems)
    inputs = _inputs(found, problems)
    module = OnnxModule([name for name, _, _ in inputs])
    importing = Importing(found, path.parent, module, problems)
    for name, dtype, shape in inputs:
        importing.take(name, dtype, shape)
    for node in found.graph.node:
        importing.node(node)
    outputs = [each.name for each in found.graph.output]
    importing.finish(outputs)
    problems.raise_all()
    return Imported(module.eval().requires_grad_(False), inputs, outputs)


def _inputs(found: Read, problems: Problems) -> list[tuple[str, torch.dtype, tuple[int, ...]]]:
    """Name, type and shape of each input."""
    inputs, open_shapes = [], []
    for info in found.graph.input:
        if info.name in found.tensors:
            continue
        kind = info.type.tensor_type.elem_type
        if info.type.WhichOneof("value") != "tensor_type" or tensors.dtype_of(kind) is None:
            what = info.type.WhichOneof("value") or "nothing"
            told = tensors.type_name(kind) if what == "tensor_type" else what.removesuffix("_type")
            refusal = NotImportedError(
                f"inputs of type {told} are not imported", "let the model take real numbers"
            )
            problems.add("input", info.name, refusal)
        elif (known := static(info)) is None:
            open_shapes.append(info)
        else:
            dtype = tensors.dtype_of(kind)
            assert dtype is not None
            inputs.append((info.name, dtype, known[1]))
    if open_shapes:
        for info in open_shapes:
            refusal = NotImportedError(
                f"its shape is {shown(info)}, and only static shapes are imported",
                f"give it: shapes={{{quoted(info.name)}: (1, ...)}}, or export without dynamic axes",
            )
            problems.add("input", info.name, refusal)
        # Without them nothing that follows can be told.
        problems.raise_all()
    return inputs
