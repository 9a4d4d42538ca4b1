"""Operators that make tensors of known numbers."""

from typing import Any

import torch

from tacit.compilation.importers.onnx.operators.shapes import as_list
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements
from tacit.compilation.importers.onnx.tensors import MOST_ELEMENTS, dtype_of, type_name


@implements("Constant")
def constant(node: Node) -> torch.Tensor:
    """Returns the constant that an attribute holds."""
    for name, dtype in (
        ("value", None),
        ("value_float", torch.float32),
        ("value_floats", torch.float32),
        ("value_int", torch.int64),
        ("value_ints", torch.int64),
    ):
        if name in node.attributes:
            found = node.attributes[name]
            return found if isinstance(found, torch.Tensor) else torch.tensor(found, dtype=dtype)
    raise NotImportedError("its value is no dense tensor of numbers", "export it as one")


@implements("ConstantOfShape", known=(0,))
def constant_of_shape(node: Node, shape: Any) -> torch.Tensor:
    """Returns a tensor with one number at all positions."""
    value = node.attributes.get("value", torch.zeros(1))
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise ValueError("its value is not one number")
    shape = as_list(shape)
    return value.reshape([1] * len(shape)).expand(shape).contiguous()


@implements("Range", known=(0, 1, 2))
def arange(node: Node, start: Any, limit: Any, delta: Any) -> torch.Tensor:
    """Returns the numbers from a start up to a limit, by steps."""
    start, limit, delta = (as_list(each)[0] for each in (start, limit, delta))
    if abs(limit - start) / abs(delta) > MOST_ELEMENTS:
        raise ValueError("it has more elements than any tensor")
    return torch.arange(start, limit, delta, dtype=node.kinds[0])


@implements("EyeLike")
def eye_like(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns 1 on a diagonal, and 0 elsewhere."""
    dtype = _dtype(node.integer("dtype", 0)) or x.dtype
    rows, columns = x.shape
    difference = torch.arange(columns) - torch.arange(rows).unsqueeze(1)
    return (difference == node.integer("k", 0)).to(dtype)


@implements("OneHot", known=(1,))
def one_hot(node: Node, indices: torch.Tensor, depth: Any, values: torch.Tensor) -> torch.Tensor:
    """Returns one of two numbers at an index along a new axis, and the other elsewhere."""
    size, axis = int(as_list(depth)[0]), node.integer("axis", -1)
    axis = axis + indices.ndim + 1 if axis < 0 else axis
    places = torch.arange(size).reshape([-1] + [1] * (indices.ndim - axis))
    wanted = torch.remainder(indices, size) if indices.dtype != torch.bool else indices
    inside = (indices >= -size) & (indices < size)
    hot = (wanted.unsqueeze(axis) == places) & inside.unsqueeze(axis)
    return torch.where(hot, values[1], values[0])


def _dtype(number: int) -> torch.dtype | None:
    """Returns the dtype that an attribute names, or ``None`` if it names none."""
    if number == 0:
        return None
    found = dtype_of(number)
    if found is None:
        raise NotImportedError(
            f"type {type_name(number)} is not imported", "use float or signed integers"
        )
    return found


def _window(node: Node, size: Any, *terms: float) -> torch.Tensor:
    """Returns a sum of cosines over a period, or over one step less, which makes it symmetric."""
    size = int(as_list(size)[0])
    if not 0 <= size <= MOST_ELEMENTS:
        raise ValueError(f"a window has no {size} elements")
    period = size if node.flag("periodic", True) else size - 1
    angles = torch.arange(size, dtype=torch.float64) * (2 * torch.pi / max(period, 1))
    found = torch.zeros(size, dtype=torch.float64)
    for order, term in enumerate(terms):
        found += term * torch.cos(order * angles)
    return found.to(_dtype(node.integer("output_datatype", 1)))


@implements("HannWindow", known=(0,))
def hann_window(node: Node, size: Any) -> torch.Tensor:
    """Hann window: one half minus half of a cosine."""
    return _window(node, size, 0.5, -0.5)


@implements("HammingWindow", known=(0,))
def hamming_window(node: Node, size: Any) -> torch.Tensor:
    """Hamming window: a Hann window on a pedestal."""
    return _window(node, size, 25 / 46, -21 / 46)


@implements("BlackmanWindow", known=(0,))
def blackman_window(node: Node, size: Any) -> torch.Tensor:
    """Blackman window, of two cosines."""
    return _window(node, size, 0.42, -0.5, 0.08)
