"""Programs that nobody compiled, as files have them: what somebody hostile would write."""

from typing import Any

import torch

from tacit.compilation.format import FORMAT, VERSION, canonical, tensor_text


def node(name: str, operator: str, *arguments: Any, **named: Any) -> dict[str, Any]:
    """As files have it."""
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
    """Of inputs of these shapes, and these constants; its result is what the last node gives."""
    inputs = [
        {"name": name, "shown": name, "dtype": "float32", "shape": list(shape), "interval": None}
        for name, shape in (shapes or {"x": (4,)}).items()
    ]
    held = [{"name": name, **tensor_text(value)} for name, value in (constants or {}).items()]
    content = {"format": FORMAT, "version": VERSION, "scale": 16, "inputs": inputs, "weights": []}
    outputs = [nodes[-1]["name"]]
    return canonical({**content, "constants": held, "nodes": list(nodes), "outputs": outputs})
