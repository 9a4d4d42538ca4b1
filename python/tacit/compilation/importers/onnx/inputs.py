"""Inputs of a model: tensors of static shapes, which the file has or the caller gives."""

import math
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tacit.compilation.importers.onnx import tensors
from tacit.compilation.importers.onnx.problems import NotImportedError, Problems, quoted
from tacit.errors import MisuseError, setup_error

Inputs = list[tuple[str, torch.dtype, tuple[int, ...]]]

#: Shapes of data for inputs, in their order or by name.
Like = Sequence[Sequence[int]] | Mapping[str, Sequence[int]]


def inputs(graph: Any, held: Container[str], problems: Problems) -> Inputs:
    """Returns name, dtype and shape of each input that is not a tensor of the file.

    Raises:
        UnsupportedOperatorError: shapes are open; the error also lists all else that is missing so
            far.
    """
    found, open_shapes = [], []
    for info in graph.input:
        if info.name in held:
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
        elif math.prod(known[1]) > tensors.MOST_ELEMENTS:
            problems.add(
                "input",
                info.name,
                NotImportedError(f"its shape is {shown(info)}", "use a smaller one"),
            )
        else:
            dtype = tensors.dtype_of(kind)
            assert dtype is not None
            found.append((info.name, dtype, known[1]))
    if open_shapes:
        for info in open_shapes:
            refusal = NotImportedError(
                f"its shape is {shown(info)}, and only static shapes are imported",
                f"give it: shapes={{{quoted(info.name)}: (1, ...)}}, by command --shape NAME=1,.., "
                f"or "
                "calibration data of it; or export without dynamic axes",
            )
            problems.add("input", info.name, refusal)
        # Without them nothing that follows can be found.
        problems.raise_all()
    return found


def alike(graph: Any, like: Like, held: Container[str]) -> dict[str, Sequence[int]]:
    """Returns shapes for the open inputs, taken from the data. Inputs that the data do not fit stay
    open."""
    infos = [each for each in graph.input if each.name not in held]
    if not isinstance(like, Mapping):
        like = (
            dict(zip((each.name for each in infos), like, strict=True))
            if len(like) == len(infos)
            else {}
        )
    return {
        info.name: like[info.name]
        for info in infos
        if info.name in like and static(info) is None and _fits(info, like[info.name])
    }


def _fits(info: Any, shape: Sequence[int]) -> bool:
    kind = info.type.tensor_type
    if not kind.HasField("shape"):
        return True
    # Some exporters write -1 for a size that is open.
    declared = [
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
        for dim in kind.shape.dim
    ]
    return len(declared) == len(shape) and all(
        fixed in (None, size) for fixed, size in zip(declared, shape, strict=True)
    )


def fix(graph: Any, shapes: Mapping[str, Sequence[int]], held: Container[str], path: Path) -> None:
    """Writes the given shapes into the inputs that leave theirs open."""
    inputs = {each.name: each for each in graph.input if each.name not in held}
    if unknown := sorted(set(shapes) - set(inputs)):
        names = ", ".join(quoted(name) for name in inputs)
        raise setup_error(f"{path} has no input {quoted(unknown[0])}; it has {names}")
    for name, shape in shapes.items():
        if any(not isinstance(size, int) or not 0 <= size < 1 << 31 for size in shape):
            raise setup_error(
                f"the shape of input {quoted(name)} must be whole numbers, not {tuple(shape)}"
            )
        kind = inputs[name].type.tensor_type
        if not _fits(inputs[name], shape):
            raise setup_error(
                f"input {quoted(name)} of {path} has shape {shown(inputs[name])}, which "
                f"{tuple(shape)} does not fit"
            )
        kind.shape.SetInParent()
        del kind.shape.dim[:]
        for size in shape:
            kind.shape.dim.add().dim_value = size


def static(info: Any) -> tuple[int, tuple[int, ...]] | None:
    """Returns type and shape of a value, if it is a tensor of which both are known."""
    if info.type.WhichOneof("value") != "tensor_type" or not info.type.tensor_type.HasField(
        "shape"
    ):
        return None
    dims = info.type.tensor_type.shape.dim
    if any(dim.WhichOneof("value") != "dim_value" or dim.dim_value < 0 for dim in dims):
        return None
    return info.type.tensor_type.elem_type, tuple(dim.dim_value for dim in dims)


def shown(info: Any) -> str:
    """Returns the shape of an input as the file gives it, such as (batch, 3, 224, 224)."""
    if not info.type.tensor_type.HasField("shape"):
        return "of any rank"
    sizes = [
        str(dim.dim_value) if dim.HasField("dim_value") else quoted(dim.dim_param or "?")[1:-1]
        for dim in info.type.tensor_type.shape.dim
    ]
    return f"({', '.join(sizes)})"


def as_tensor(name: str, value: Any) -> torch.Tensor:
    """Returns the value of a public input as a tensor.

    Raises:
        MisuseError: it is no number, list of numbers or tensor.
    """
    try:
        return torch.as_tensor(value).detach()
    except (TypeError, ValueError, RuntimeError):
        raise MisuseError(
            f"the public input {quoted(name)} is of type {type(value).__name__}; it is a number, a "
            "list of numbers, or a tensor"
        ) from None


def check_public(path: Path, found: Inputs, known: Mapping[str, Any]) -> None:
    """Refuses public inputs that a file does not have, and files without any secret input.

    Raises:
        MisuseError: there are such.
    """
    names = [name for name, _, _ in found]
    if unknown := [name for name in known if name not in names]:
        shown = ", ".join(map(quoted, names))
        raise MisuseError(f"{path} has no input {quoted(unknown[0])} to be public; it has {shown}")
    if known and len(known) == len(names):
        raise MisuseError(
            f"all inputs of {path} are public, so that nothing is secret: leave the secret ones out"
        )


def of_input(
    name: str, dtype: torch.dtype, shape: tuple[int, ...], value: torch.Tensor
) -> torch.Tensor:
    """Returns a public value with the type and shape of its input; a number stands for all
    elements.

    Raises:
        MisuseError: it has another shape, or its type does not hold the numbers exactly.
    """
    made = value.to(dtype)
    if not dtype.is_floating_point and not torch.equal(made.to(value.dtype), value):
        raise MisuseError(f"the public input {quoted(name)} has numbers that {dtype} does not hold")
    if made.ndim == 0:
        return made.expand(shape).clone()
    if tuple(made.shape) != shape:
        raise MisuseError(
            f"the public input {quoted(name)} has shape {tuple(made.shape)}, and {shape} is wanted"
        )
    return made
