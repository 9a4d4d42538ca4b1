"""The module that an ONNX graph becomes: it evaluates the nodes in their order, each by functions
of PyTorch, so that `torch.export` can trace it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

import torch

from tacit.compilation.importers.onnx.table import Function, Node
from tacit.errors import printable


@dataclass(frozen=True)
class Flowing:
    """An argument that an earlier step gave, or the model's user."""

    name: str


@dataclass(frozen=True)
class Held:
    """An argument that the module holds: a parameter, or a tensor that is public."""

    attribute: str


@dataclass(frozen=True)
class Step:
    """One node, with its arguments: ``Flowing``, ``Held``, or values of Python."""

    node: Node
    function: Function
    arguments: tuple[Any, ...]
    #: Names of its results, "" for those that nothing takes.
    results: tuple[str, ...]
    #: What nothing takes after it.
    released: tuple[str, ...]


class Layer(torch.nn.Module):
    """What one node does, as a module, so that what is traced of it has the node's name."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step

    def forward(self, *arguments: Any) -> Any:
        """What the node gives."""
        return self.step.function(self.step.node, *arguments)


class OnnxModule(torch.nn.Module):
    """A graph of ONNX as a module. Inputs come in the file's order."""

    def __init__(self, inputs: Sequence[str]) -> None:
        super().__init__()
        self._inputs = tuple(inputs)
        self._layers: list[str] = []
        self._results: tuple[Flowing | Held, ...] = ()

    def hold(self, name: str, tensor: torch.Tensor, public: bool) -> Held:
        """Keeps a tensor under its name in the file, as far as Python lets it be one. Weights are
        parameters; what is public is neither that nor a buffer, which is how `torch.export` knows
        it for a constant."""
        attribute, tensor = unique(self, name), tensor.contiguous()
        if public or not tensor.is_floating_point():
            setattr(self, attribute, tensor)
        else:
            self.register_parameter(attribute, torch.nn.Parameter(tensor))
        return Held(attribute)

    def finish(self, steps: Sequence[Step], results: Sequence[Flowing | Held]) -> None:
        """Sets what is evaluated."""
        self._results = tuple(results)
        for step in steps:
            # As it stands in the file; in the path of a module there are no dots within a name.
            name = printable(step.node.name, 200).replace(".", "_") or step.node.operator
            name = name if not hasattr(self, name) else unique(self, name)
            self.add_module(name, Layer(step))
            self._layers.append(name)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The outputs: a tensor, or a tuple where the file has several."""
        values = dict(zip(self._inputs, inputs, strict=True))
        for layer in (getattr(self, name) for name in self._layers):
            step = layer.step
            given = layer(*(self._value(each, values) for each in step.arguments))
            values.update(zip(step.results, results(given), strict=False))
            for name in step.released:
                values.pop(name, None)
        found = tuple(self._value(each, values) for each in self._results)
        return found[0] if len(found) == 1 else found

    def _value(self, argument: Any, values: dict[str, torch.Tensor]) -> Any:
        if isinstance(argument, Flowing):
            return values[argument.name]
        if isinstance(argument, Held):
            return getattr(self, argument.attribute)
        return argument


def results(given: Any) -> tuple[Any, ...]:
    """What a function gave, as a tuple."""
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def unique(module: torch.nn.Module, name: str) -> str:
    """A name for an attribute that is free in the module, close to the one in the file."""
    base = re.sub(r"\W", "_", name[:200], flags=re.ASCII) or "unnamed"
    # What is traced is written as Python, in which words such as class are no names.
    base = f"_{base}" if base[0].isdigit() or iskeyword(base) else base
    attribute, count = base, 1
    while hasattr(module, attribute):
        count += 1
        attribute = f"{base}_{count}"
    return attribute
