"""Module that an ONNX graph becomes: it evaluates the nodes in their order, each by functions of
PyTorch, so that `torch.export` can trace it."""

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
    """An argument that an earlier step, or the model's user, gives."""

    name: str


@dataclass(frozen=True)
class Held:
    """An argument that the module holds: a parameter, or a public tensor."""

    attribute: str


@dataclass(frozen=True)
class Step:
    """One node, with its arguments: ``Flowing``, ``Held``, or Python values."""

    node: Node
    function: Function
    arguments: tuple[Any, ...]
    #: Names of its results; "" for results that nothing uses.
    results: tuple[str, ...]
    #: Names of the values that nothing uses after it.
    released: tuple[str, ...]


class Layer(torch.nn.Module):
    """A node as a module, so that whatever is traced of it has the node's name."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step

    def forward(self, *arguments: Any) -> Any:
        """Evaluates the node."""
        return self.step.function(self.step.node, *arguments)


class OnnxModule(torch.nn.Module):
    """An ONNX graph as a module. Inputs come in the file's order."""

    def __init__(self, inputs: Sequence[str]) -> None:
        super().__init__()
        self._inputs = tuple(inputs)
        self._layers: list[str] = []
        #: What the file calls each layer, by the name of its module.
        self.layers: dict[str, str] = {}
        self._results: tuple[Flowing | Held, ...] = ()

    def hold(self, name: str, tensor: torch.Tensor, public: bool) -> Held:
        """Holds a tensor under its name in the file, as far as Python allows that name.

        Weights are parameters. A public tensor is neither a parameter nor a buffer, so
        `torch.export` takes it for a constant."""
        attribute, tensor = unique(self, name), tensor.contiguous()
        if public or not tensor.is_floating_point():
            setattr(self, attribute, tensor)
        else:
            self.register_parameter(attribute, torch.nn.Parameter(tensor))
        return Held(attribute)

    def finish(self, steps: Sequence[Step], results: Sequence[Flowing | Held]) -> None:
        """Sets the steps that are evaluated, and the results."""
        self._results = tuple(results)
        for step in steps:
            # A layer has the node's name in the file. Names in the path of a module contain no
            # dots.
            shown = printable(step.node.name, 200) or step.node.operator
            name = shown.replace(".", "_")
            name = name if not hasattr(self, name) else unique(self, name)
            self.add_module(name, Layer(step))
            self._layers.append(name)
            taken = shown in self.layers.values()
            self.layers[name] = name if taken else shown

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Evaluates the graph and returns a tensor, or a tuple if the file has several outputs."""
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
    """Returns what a function gave as a tuple."""
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def unique(module: torch.nn.Module, name: str) -> str:
    """Returns a name for an attribute that is free in the module and close to the one in the
    file."""
    base = re.sub(r"\W", "_", name[:200], flags=re.ASCII) or "unnamed"
    # A trace is written as Python code, in which words such as class are no names.
    base = f"_{base}" if base[0].isdigit() or iskeyword(base) else base
    attribute, count = base, 1
    while hasattr(module, attribute):
        count += 1
        attribute = f"{base}_{count}"
    return attribute
