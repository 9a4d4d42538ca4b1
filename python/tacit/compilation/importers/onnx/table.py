"""The table of operators: what evaluates each operator of ONNX with functions of PyTorch.

A function takes its node and then the node's inputs in order, None for those left out, and gives a
tensor, or a tuple where the operator has several results. What it raises as ``NotImportedError`` is
told with all else that is missing in the file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tacit.compilation.importers.onnx.problems import NotImportedError

Function = Callable[..., Any]


@dataclass(frozen=True)
class Node:
    """A node of the graph, without the values at its ends."""

    operator: str
    name: str
    #: The version of ONNX's operators that the file was written for.
    opset: int
    attributes: Mapping[str, Any]
    #: How many results the file takes of it.
    results: int
    #: Types of its inputs, which those that are Python's values do not tell.
    kinds: tuple[torch.dtype | None, ...]

    def integer(self, name: str, default: int = 0) -> int:
        """An attribute that is a whole number."""
        return int(self._typed(name, int, default))

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is 0 or 1."""
        return bool(self._typed(name, int, int(default)))

    def number(self, name: str, default: float = 0.0) -> float:
        """An attribute that is a real number."""
        return float(self._typed(name, (int, float), default))

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is a word."""
        return str(self._typed(name, str, default))

    def integers(self, name: str) -> list[int] | None:
        """An attribute that is a list of whole numbers, None if it is not there."""
        found = self._typed(name, list, None)
        return None if found is None else [int(each) for each in found]

    def numbers(self, name: str) -> list[float] | None:
        """An attribute that is a list of real numbers, None if it is not there."""
        found = self._typed(name, list, None)
        return None if found is None else [float(each) for each in found]

    def words(self, name: str) -> list[str] | None:
        """An attribute that is a list of words, None if it is not there."""
        found = self._typed(name, list, None)
        return None if found is None else [str(each) for each in found]

    def _typed(self, name: str, kind: Any, default: Any) -> Any:
        found = self.attributes.get(name, default)
        if found is not None and not isinstance(found, kind):
            raise NotImportedError(
                f"its attribute {name} has another type than ONNX gives it",
                "export the model again",
            )
        return found


@dataclass(frozen=True)
class Operator:
    """How an operator is evaluated."""

    function: Function
    #: Which inputs it takes as Python's values (numbers, lists), known while importing; -1 is all.
    known: frozenset[int]
    #: Which inputs it takes so if they are known, and as tensors otherwise.
    prefers: frozenset[int]
    #: Whether a public number among its inputs goes to the function as Python's number.
    numbers: bool
    #: Whether it is evaluated while importing where all that goes in is known.
    folds: bool

    def knows(self, at: int) -> bool:
        """Whether it takes that input as Python's value."""
        return at in self.known or -1 in self.known


#: By name; all are of ONNX's own domain.
OPERATORS: dict[str, Operator] = {}


def implements(
    *names: str,
    known: tuple[int, ...] = (),
    prefers: tuple[int, ...] = (),
    numbers: bool = False,
    folds: bool = True,
) -> Callable[[Function], Function]:
    """Enters a function for operators."""

    def enter(function: Function) -> Function:
        for name in names:
            OPERATORS[name] = Operator(
                function, frozenset(known), frozenset(prefers), numbers, folds
            )
        return function

    return enter


def plain(functions: Mapping[str, Function], numbers: bool = False) -> None:
    """Enters functions of PyTorch that take the inputs alone."""
    for name, function in functions.items():
        implements(name, numbers=numbers)(_without_node(function))


def _without_node(function: Function) -> Function:
    return lambda _, *inputs: function(*inputs)
