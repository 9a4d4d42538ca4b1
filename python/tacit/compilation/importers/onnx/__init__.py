"""Importer of ONNX files, opset 7 and later, as PyTorch modules.

Files are treated as hostile: nothing is run, sizes are bounded, and everything that is missing is
reported at once."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tacit.compilation.importers.imported import Imported
from tacit.compilation.importers.onnx import operators
from tacit.compilation.importers.onnx.control import tensors_in
from tacit.compilation.importers.onnx.graph import Importing
from tacit.compilation.importers.onnx.inputs import Like, as_tensor, check_public, of_input
from tacit.compilation.importers.onnx.module import OnnxModule
from tacit.compilation.importers.onnx.problems import Problems, quoted
from tacit.compilation.importers.onnx.reading import read
from tacit.errors import MisuseError

__all__ = ["load"]

# Importing the operators fills the table.
assert operators


def load(
    path: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    secret: Collection[str] = (),
    like: Like = (),
    results: Collection[str] = (),
    public: Mapping[str, Any] | None = None,
) -> Imported:
    """Loads the model in an ONNX file.

    Args:
        path: the file; weights that are stored outside it must be in the same folder.
        shapes: shapes, by name, of inputs whose shape the file leaves open.
        secret: names of numbers that were learned, such as a temperature. Others without
            dimensions are public, like those of any formula, and so is what a shape, an If or a
            Loop follows from. What is named here is kept secret, or refused.
        like: shapes of data for the inputs, in order or by name; they apply to inputs whose shape
            is open otherwise.
        results: names of the outputs that are computed; by default all.
        public: inputs that all parties know, with their values: numbers, lists or tensors. The
            module does not take them, and is right for these values only.

    Raises:
        SetupError: the file cannot be read, or is malformed.
        MisuseError: the file has no numbers of the names in ``secret``, no outputs of those in
            ``results``, or no inputs that take what ``public`` gives.
        UnsupportedOperatorError: the file has something that is not imported, or leaves shapes
            open; the error lists all of that.
    """
    path = Path(path)
    problems = Problems(str(path))
    known = {name: as_tensor(name, value) for name, value in (public or {}).items()}
    given = {name: tuple(each.shape) for name, each in known.items() if each.ndim}
    found = read(path, {**(shapes or {}), **given}, problems, like, known)
    if unknown := sorted(set(secret) - {*found.tensors, *tensors_in(found.graph)}):
        numbers = ", ".join(_numbers(found.tensors)) or "none"
        raise MisuseError(
            f"{path} has no number named {unknown[0]!r} that could be secret; those without "
            f"dimension are: "
            f"{numbers}"
        )
    inputs = [each for each in found.inputs if each[0] not in known]
    module = OnnxModule([name for name, _, _ in inputs])
    importing = Importing(found, path.parent, module, problems, secret)
    check_public(path, found.inputs, known)
    for name, dtype, shape in found.inputs:
        if name in known:
            importing.know(name, of_input(name, dtype, shape, known[name]))
        else:
            importing.take(name, dtype, shape)
    for node in found.graph.node:
        importing.node(node)
    outputs = [each.name for each in found.graph.output]
    if unknown := [name for name in results if name not in outputs]:
        raise MisuseError(
            f"{path} has no output named {unknown[0]!r}; it has {', '.join(map(quoted, outputs))}"
        )
    outputs = [name for name in outputs if name in results or not results]
    importing.finish(outputs)
    problems.raise_all()
    return Imported(
        module.eval().requires_grad_(False),
        inputs,
        outputs,
        importing.disclosed.told(),
        module.layers,
    )


def _numbers(tensors: Mapping[str, torch.Tensor]) -> list[str]:
    """Returns the names of real numbers without dimensions."""
    return [name for name, each in tensors.items() if each.ndim == 0 and each.is_floating_point()]
