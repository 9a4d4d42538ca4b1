"""Programs in file form that were not compiled, as an attacker would write them."""

from typing import Any

import torch

from tacit.compilation.format import FORMAT, VERSION, canonical, tensor_text


def node(name: str, operator: str, *arguments: Any, **named: Any) -> dict[str, Any]:
    """Returns a node in file form."""
    kept = {
        "layer": "",
        "interval": None,
        "width": None,
        "guard": None,
        "narrow": 0,
        "dropped": 0,
        "fits": {},
    }
    content = {"name": name, "operator": operator, "arguments": list(arguments), "named": named}
    return {**content, **kept, "scale": None}


def program(
    *nodes: dict[str, Any], shapes: Any = None, constants: dict[str, torch.Tensor] | None = None
) -> bytes:
    """Returns a program with inputs of these shapes and these constants. Its result is that of the
    last node."""
    inputs = [
        {
            "name": name,
            "shown": name,
            "dtype": "float32",
            "shape": list(shape),
            "interval": None,
            "exponents": [],
        }
        for name, shape in (shapes or {"x": (4,)}).items()
    ]
    held = [{"name": name, **tensor_text(value)} for name, value in (constants or {}).items()]
    content = {"format": FORMAT, "version": VERSION, "scale": 16, "inputs": inputs, "weights": []}
    outputs = [nodes[-1]["name"]]
    return canonical({**content, "constants": held, "nodes": list(nodes), "outputs": outputs})
