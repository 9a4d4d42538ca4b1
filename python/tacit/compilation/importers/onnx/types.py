"""Check of the types of operands, by ONNX's own schemas."""

from typing import Any

import torch

from tacit.compilation.importers.onnx.table import Node

#: ONNX's names for each dtype. All real types are one here.
NAMES: dict[torch.dtype, set[str]] = {
    torch.float32: {f"tensor({name})" for name in ("float", "double", "float16", "bfloat16")},
    torch.uint8: {"tensor(uint8)"},
    torch.int8: {"tensor(int8)"},
    torch.int16: {"tensor(int16)"},
    torch.int32: {"tensor(int32)"},
    torch.int64: {"tensor(int64)"},
    torch.bool: {"tensor(bool)"},
}


def check(node: Node) -> None:
    """Checks the types of a node's inputs: each must be one that its operator allows, and inputs of
    one kind must have the same type.

    Raises:
        ValueError: they do not fit.
    """
    from onnx import defs

    if not defs.has(node.operator, node.domain):
        # ONNX has no schema of other libraries' operators.
        return
    schema = defs.get_schema(node.operator, node.opset, node.domain)
    allowed = {each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints}
    bound: dict[str, torch.dtype] = {}
    for at, dtype in enumerate(node.kinds):
        formal: Any = schema.inputs[min(at, len(schema.inputs) - 1)]
        if dtype is None:
            continue
        kind = formal.type_str
        if not NAMES[dtype] & allowed.get(kind, {kind}):
            raise ValueError(f"its input {at + 1} is of {dtype}")
        if formal.is_homogeneous and bound.setdefault(kind, dtype) != dtype:
            raise ValueError(f"its input {at + 1} is of {dtype}, and another of {bound[kind]}")
