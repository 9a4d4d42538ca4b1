"""Files of ONNX, opset 13 and later, as modules of PyTorch. What they hold is taken for hostile:
nothing is run, sizes are bounded, and all that is missing is told at once."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import torch

from tacit.compilation.importers.imported import Imported
from tacit.compilation.importers.onnx import operators
from tacit.compilation.importers.onnx.graph import Importing
from tacit.compilation.importers.onnx.inputs import Like
from tacit.compilation.importers.onnx.module import OnnxModule
from tacit.compilation.importers.onnx.problems import Problems
from tacit.compilation.importers.onnx.reading import read
from tacit.errors import MisuseError

__all__ = ["load"]

# Importing them is what fills the table.
assert operators


def load(
    path: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    secret: Collection[str] = (),
    like: Like = (),
) -> Imported:
    """The model in a file of ONNX.

    Args:
        path: the file; weights that lie outside of it lie in the same folder.
        shapes: of inputs whose shape the file leaves open, by name.
        secret: names of numbers without dimension that were learned, such as a temperature. Others
            are public, as those of any formula are.
        like: shapes of data for the inputs, in order or by name, which those have that are open
            otherwise.

    Raises:
        SetupError: the file cannot be read, or is not sound.
        MisuseError: it has no numbers of the names that shall be secret.
        UnsupportedOperatorError: it has what is not imported, or leaves shapes open; all of that is
            listed.
    """
    path = Path(path)
    problems = Problems(str(path))
    found = read(path, shapes or {}, problems, like)
    if unknown := sorted(set(secret) - set(found.tensors)):
        known = ", ".join(_public(found.tensors, ())) or "none"
        raise MisuseError(
            f"{path} has no number named {unknown[0]!r} that could be secret; those without "
            f"dimension are: "
            f"{known}"
        )
    module = OnnxModule([name for name, _, _ in found.inputs])
    importing = Importing(found, path.parent, module, problems, secret)
    for name, dtype, shape in found.inputs:
        importing.take(name, dtype, shape)
    for node in found.graph.node:
        importing.node(node)
    outputs = [each.name for each in found.graph.output]
    importing.finish(outputs)
    problems.raise_all()
    return Imported(
        module.eval().requires_grad_(False), found.inputs, outputs, _public(found.tensors, secret)
    )


def _public(tensors: Mapping[str, torch.Tensor], secret: Collection[str]) -> list[str]:
    """Numbers of the file that everybody sees, though they might have been learned."""
    return [
        name
        for name, each in tensors.items()
        if each.ndim == 0 and each.is_floating_point() and name not in secret
    ]
