"""Arithmetic, comparisons and functions of single elements."""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import torch

from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements, plain
from tacit.compilation.importers.onnx.tensors import dtype_of, type_name

plain(
    {
        "Abs": torch.abs,
        "Acos": torch.acos,
        "Acosh": torch.acosh,
        "And": torch.logical_and,
        "Asin": torch.asin,
        "Asinh": torch.asinh,
        "Atan": torch.atan,
        "Atanh": torch.atanh,
        "BitwiseAnd": torch.bitwise_and,
        "BitwiseNot": torch.bitwise_not,
        "BitwiseOr": torch.bitwise_or,
        "BitwiseXor": torch.bitwise_xor,
        "Ceil": torch.ceil,
        "Cos": torch.cos,
        "Cosh": torch.cosh,
        "Erf": torch.erf,
        "Exp": torch.exp,
        "Floor": torch.floor,
        "IsNaN": torch.isnan,
        "Log": torch.log,
        "Neg": torch.neg,
        "Not": torch.logical_not,
        "Or": torch.logical_or,
        "Reciprocal": torch.reciprocal,
        # Ties round to even, in ONNX and in PyTorch.
        "Round": torch.round,
        "Sign": torch.sign,
        "Sin": torch.sin,
        "Sinh": torch.sinh,
        "Sqrt": torch.sqrt,
        "Tan": torch.tan,
        "Tanh": torch.tanh,
        "Xor": torch.logical_xor,
    }
)

plain(
    {
        "Add": operator.add,
        "Equal": operator.eq,
        "Greater": operator.gt,
        "GreaterOrEqual": operator.ge,
        "Less": operator.lt,
        "LessOrEqual": operator.le,
        "Mul": operator.mul,
        "Sub": operator.sub,
    },
    numbers=True,
)


def _is_real(*operands: Any) -> bool:
    """Returns whether operands are real numbers; all have one type, as ONNX requires."""
    kinds = [each.is_floating_point() for each in operands if isinstance(each, torch.Tensor)]
    return kinds[0] if kinds else isinstance(operands[0], float)


@implements("Det", folds=False)
def determinant(_: Node, x: torch.Tensor) -> torch.Tensor:
    """Determinant of each square matrix."""
    return torch.linalg.det(x)


@implements("Div", numbers=True)
def divide(_: Node, x: Any, y: Any) -> torch.Tensor:
    """Quotient, which is truncated for integers."""
    return x / y if _is_real(x, y) else torch.div(x, y, rounding_mode="trunc")


@implements("Mod")
def modulo(node: Node, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Remainder with the sign of the divisor, or that of C's fmod."""
    return torch.fmod(x, y) if node.flag("fmod") else torch.remainder(x, y)


@implements("Pow", numbers=True)
def power(_: Node, x: Any, y: Any) -> torch.Tensor:
    """Power. The result has the type of the base, whatever that of the exponent is."""
    if isinstance(x, torch.Tensor):
        if isinstance(y, float) and y.is_integer() and abs(y) < 1 << 20:
            y = int(y)
        return torch.pow(x, y).to(x.dtype)
    return torch.pow(x, y)


def _folded(pair: Callable[[Any, Any], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Applies a function of two inputs to any number of inputs."""
    return lambda *inputs: reduce(pair, inputs)


def _least(x: Any, y: Any) -> torch.Tensor:
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        return torch.minimum(x, y)
    return torch.clamp(x, max=y) if isinstance(x, torch.Tensor) else torch.clamp(y, max=x)


def _greatest(x: Any, y: Any) -> torch.Tensor:
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        return torch.maximum(x, y)
    return torch.clamp(x, min=y) if isinstance(x, torch.Tensor) else torch.clamp(y, min=x)


plain(
    {"Max": _folded(_greatest), "Min": _folded(_least), "Sum": _folded(operator.add)}, numbers=True
)


@implements("Mean", numbers=True)
def mean(_: Node, *inputs: Any) -> torch.Tensor:
    """The mean of several tensors, element by element."""
    return reduce(operator.add, inputs) / len(inputs)


@implements("Where", numbers=True)
def where(_: Node, condition: torch.Tensor, x: Any, y: Any) -> torch.Tensor:
    """Takes elements of x or of y, by the condition."""
    return torch.where(condition, x, y)


@implements("BitShift")
def shift(node: Node, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Shifts by the number of bits that the second input gives."""
    return x << y if node.text("direction") == "LEFT" else x >> y


@implements("Clip", known=(1, 2))
def clip(_: Node, x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    """Clamps between public bounds. If the lower one is above the upper, the result is the upper
    one, in ONNX and in PyTorch."""
    low, high = (each[0] if isinstance(each, list) else each for each in (low, high))
    return x.clone() if low is None and high is None else torch.clamp(x, low, high)


@implements("IsInf")
def is_infinite(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Tests for infinity of one sign, or of both."""
    above, below = node.flag("detect_positive", True), node.flag("detect_negative", True)
    found = torch.isinf(x)
    if above and below:
        return found
    if above or below:
        return found & (x > 0 if above else x < 0)
    return torch.zeros_like(x, dtype=torch.bool)


@implements("Cast")
def cast(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Converts to another type; conversion to integers rounds towards zero."""
    number = node.integer("to")
    dtype = dtype_of(number)
    if dtype is None:
        raise NotImportedError(
            f"type {type_name(number)} is not imported",
            "use float, bool, or signed integers of at most 64 bits",
        )
    return x.to(dtype)


@implements("CastLike")
def cast_like(_: Node, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Converts to the type of another tensor."""
    return x.to(like.dtype)


@implements("Identity")
def identity(_: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns its input."""
    return x


@implements("Dropout", known=(1, 2))
def dropout(node: Node, x: torch.Tensor, _: Any = None, training: Any = None) -> Any:
    """Dropout in evaluation mode, which does nothing; the mask then keeps everything."""
    if training:
        raise NotImportedError("dropout is set to training", "export the model in evaluation mode")
    return (x, torch.ones_like(x, dtype=torch.bool)) if node.results > 1 else x
