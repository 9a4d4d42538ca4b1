"""Programs run in sessions of this process, and the exact results of their encoded numbers."""

import json
from collections.abc import Mapping
from typing import Any

import torch

import tacit
from tacit import fixed
from tacit.compilation.execute import share_weights
from tacit.compilation.format import canonical
from tacit.compilation.graph import walk
from tacit.compilation.program import Program
from tacit.fixed import Scale

THREE: dict[str, Any] = {"parties": 3, "protocol": "replicated", "transport": "memory"}
TWO: dict[str, Any] = {
    "parties": 2,
    "protocol": "additive",
    "source": "dealer",
    "transport": "memory",
}


def changed(program: Program, **entries: Any) -> Program:
    """Returns a copy of the program with these entries in each node."""
    content = json.loads(program.text)
    for node in content["nodes"]:
        node.update(entries)
    return Program.parsed(canonical(content), "the same")


def run(
    program: Program, weights: Mapping[str, torch.Tensor], x: torch.Tensor, setting: dict[str, Any]
) -> torch.Tensor:
    """Returns the program's result in a session."""

    def shown() -> Any:
        bound = share_weights(program, weights if tacit.session().party == 0 else None, 0)
        return bound(bound.given(x, owner=1)).reveal()

    found: torch.Tensor = tacit.launch(shown, **setting)[0]
    return found


def exact(program: Program, weights: Mapping[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Returns the result of the encoded numbers without any rounding. All words must be below
    2^53."""

    def encoded(value: torch.Tensor, bits: int) -> torch.Tensor:
        return fixed.decode(fixed.encode(value, Scale(bits)), Scale(bits), torch.float64)

    values = {name: encoded(weights[name], each.bits) for name, each in program.weights.items()}
    values.update({name: encoded(x, program.scale) for name in program.inputs})
    return walk(program.graph, {**values, **program.constants})[0]
