"""Table of operators: the function that evaluates each ONNX operator with PyTorch.

A function takes its node and then the node's inputs in order, ``None`` for those left out. It
returns a tensor, or a tuple if the operator has several results. A ``NotImportedError`` that it
raises is reported together with all else that is missing in the file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tacit.compilation.importers.onnx.problems import NotImportedError

Function = Callable[..., Any]


@dataclass(frozen=True)
class Node:
    """A node of the graph, without its operands and results."""

    operator: str
    name: str
    #: Domain of the operator; "" for ONNX's own.
    domain: str
    #: Version of the domain's operators that the file was written for.
    opset: int
    attributes: Mapping[str, Any]
    #: Number of its results that the file uses.
    results: int
    #: Dtypes of its inputs, which inputs that are Python values do not show.
    kinds: tuple[torch.dtype | None, ...]

    def integer(self, name: str, default: int = 0) -> int:
        """Returns an attribute that is an integer."""
        return int(self._typed(name, int, default))

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns an attribute that is 0 or 1."""
        return bool(self._typed(name, int, int(default)))

    def number(self, name: str, default: float = 0.0) -> float:
        """Returns an attribute that is a real number."""
        return float(self._typed(name, (int, float), default))

    def text(self, name: str, default: str = "") -> str:
        """Returns an attribute that is a string."""
        return str(self._typed(name, str, default))

    def integers(self, name: str) -> list[int] | None:
        """Returns an attribute that is a list of integers, or ``None`` if it is missing."""
        found = self._typed(name, list, None)
        return None if found is None else [int(each) for each in found]

    def numbers(self, name: str) -> list[float] | None:
        """Returns an attribute that is a list of real numbers, or ``None`` if it is missing."""
        found = self._typed(name, list, None)
        return None if found is None else [float(each) for each in found]

    def words(self, name: str) -> list[str] | None:
        """Returns an attribute that is a list of strings, or ``None`` if it is missing."""
        found = self._typed(name, list, None)
        return None if found is None else [str(each) for each in found]

    def tensor(self, name: str) -> torch.Tensor | None:
        """Returns an attribute that is a tensor, or ``None`` if it is missing."""
        found: torch.Tensor | None = self._typed(name, torch.Tensor, None)
        return found

    def _typed(self, name: str, kind: Any, default: Any) -> Any:
        found = self.attributes.get(name, default)
        if found is not None and not isinstance(found, kind):
            raise NotImportedError(
                f"its attribute {name} has another type than ONNX gives it",
                "export the model again",
            )
        return found


class Part(NamedTuple):
    """A tensor that a node makes of its attributes, such as the coefficients of a classifier."""

    name: str
    value: torch.Tensor
    #: Whether all parties may know it. Other real numbers are weights, which stay secret.
    public: bool = False


#: Makes the tensors that a node takes after its inputs. It is passed the node, and the shape and
#: dtype of its inputs.
Parts = Callable[[Node, Sequence[torch.Tensor]], Sequence[Part]]


@dataclass(frozen=True)
class Operator:
    """How an operator is evaluated."""

    function: Function
    #: Inputs that it takes as Python values (numbers, lists), which must be known while importing;
    #: -1 stands for all.
    known: frozenset[int]
    #: Inputs that it takes as Python values if they are known, and as tensors otherwise.
    prefers: frozenset[int]
    #: Whether a public number among its inputs is passed as a Python number.
    numbers: bool
    #: Whether it is evaluated while importing if all its inputs are known.
    folds: bool
    #: Makes the tensors that it takes after its inputs, if it has weights among its attributes.
    parts: Parts | None

    def knows(self, at: int) -> bool:
        """Returns whether it takes an input as a Python value."""
        return at in self.known or -1 in self.known


#: Domains of ONNX's own operators.
OWN = ("", "ai.onnx")

#: Domain of ONNX's operators of classical models.
CLASSICAL = "ai.onnx.ml"

#: Operators by domain and name.
OPERATORS: dict[tuple[str, str], Operator] = {}


def operator_of(domain: str, name: str) -> Operator | None:
    """Returns the operator of a domain with a name, or ``None`` if it is not imported."""
    return OPERATORS.get(("" if domain in OWN else domain, name))


def implements(
    *names: str,
    domain: str = "",
    parts: Parts | None = None,
    known: tuple[int, ...] = (),
    prefers: tuple[int, ...] = (),
    numbers: bool = False,
    folds: bool = True,
) -> Callable[[Function], Function]:
    """Registers a function for operators."""

    def enter(function: Function) -> Function:
        for name in names:
            OPERATORS[domain, name] = Operator(
                function, frozenset(known), frozenset(prefers), numbers, folds, parts
            )
        return function

    return enter


def plain(functions: Mapping[str, Function], numbers: bool = False) -> None:
    """Registers functions of PyTorch that take the inputs alone."""
    for name, function in functions.items():
        implements(name, numbers=numbers)(_without_node(function))


def _without_node(function: Function) -> Function:
    return lambda _, *inputs: function(*inputs)
