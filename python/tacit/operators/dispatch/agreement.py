"""Notes of each operator call, which must be the same in every party.

Each party notes an operator before it runs. The core compares these notes with those of the other
parties before anything is opened.

What an operator does (its name, shapes, dtypes, scales, dimensions) is public and compared as it
is. Plain tensors and numbers that are combined with secrets should be public, but may be a party's
private data by mistake. So the core compares their values in private: no party can test guesses at
another party's values.
"""

import struct
from functools import cache
from typing import Any

import torch

from tacit.buffers import bytes_in_order
from tacit.modes import outside_trace
from tacit.sessions import Session
from tacit.tensor import SecretTensor
from tacit.trace import module_paths


def collected(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """Splits an operator's arguments into what is compared as it is and what in private.

    Returns the structure (shapes, dtypes, scales, constants), which is compared as it is, and the
    plain values, which are compared in private."""
    structure: list[Any] = []
    values: list[Any] = []
    positions, names = operands_of(func)
    targets = _targets(func)
    for at, arg in enumerate(args):
        _collect(arg, positions[at], structure, [] if at in targets else values)
    for name, arg in kwargs.items():
        structure.append(name)
        _collect(arg, name in names, structure, [] if name in targets else values)
    return structure, values


def note_values(session: Session, values: list[Any]) -> None:
    """Notes the plain values that the current operator combines with secrets. No interaction."""
    label = f"{session.operator} in {module_paths.current()}"
    for value in values:
        session.core.note_public(label, _bytes(value))


@cache
def _targets(func: Any) -> frozenset[int | str]:
    """Returns the arguments that an operator writes to: ``out=``, and the first if it is in place.

    A plain target is refused. Its values are not compared, since it may be uninitialised memory
    that differs between parties."""
    arguments = func._schema.arguments
    outs = {argument.name for argument in arguments if argument.is_out}
    first = arguments[0].alias_info if arguments else None
    is_in_place = func._schema.name.endswith("_") and first is not None and first.is_write
    return frozenset({*outs, 0} if is_in_place else outs)


@cache
def operands_of(func: Any) -> tuple[tuple[bool, ...], frozenset[str]]:
    """Returns which arguments are operands, by position and by name.

    A number is a value if it is an operand. Otherwise it is a dimension, a size or a constant of
    the architecture, such as the ε of a normalisation."""
    arguments = func._schema.arguments
    positions = tuple(
        "number" in str(argument.type) or "Tensor" in str(argument.type) for argument in arguments
    )
    names = [
        argument.name
        for argument, is_operand in zip(arguments, positions, strict=True)
        if is_operand
    ]
    return positions, frozenset(names)


def _collect(arg: Any, is_operand: bool, structure: list[Any], values: list[Any]) -> None:
    if isinstance(arg, SecretTensor):
        structure.append((arg._scale.bits, arg.dtype, arg.shape))
    elif isinstance(arg, torch.Tensor):
        structure.append((arg.dtype, arg.shape))
        values.append(arg)
    elif isinstance(arg, list | tuple):
        structure.append(len(arg))
        for element in arg:
            _collect(element, is_operand, structure, values)
    elif is_operand and isinstance(arg, int | float) and not isinstance(arg, bool):
        structure.append(type(arg))
        values.append(arg)
    elif not isinstance(arg, torch.Generator):
        structure.append(arg)


@outside_trace
def _bytes(value: Any) -> Any:
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, int):
        # Lengths are compared openly, so the length must not depend on the number.
        return value.to_bytes(16, "little", signed=True)
    return bytes_in_order(value.detach().cpu())
