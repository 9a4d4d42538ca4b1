"""Quantised operators: integers that stand for real numbers, q = x / scale + zero point."""

from typing import Any

import torch

from tacit.compilation.importers.onnx.operators.convolution import convolution
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements
from tacit.compilation.importers.onnx.tensors import dtype_of, type_name


def _spread(node: Node, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Spreads a scale or zero point over the elements: one for all, one for a position along an
    axis, or one for a block."""
    axis = node.integer("axis", 1)
    block = node.integer("block_size", 0)
    if block:
        size = x.shape[axis]
        return values.repeat_interleave(block, axis).narrow(axis, 0, size)
    if values.ndim == 0 or values.numel() == 1:
        return values.reshape(())
    return values.reshape([-1] + [1] * (x.ndim - 1 - axis % x.ndim))


def _saturated(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Rounds to even, and clamps to the range of a type."""
    limits = torch.iinfo(dtype)
    return torch.clamp(torch.round(x), limits.min, limits.max).to(dtype)


@implements("QuantizeLinear")
def quantise(
    node: Node, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None
) -> torch.Tensor:
    """Quantises to bytes, or to 16 bits."""
    number = node.integer("output_dtype", 0) or 2
    dtype = zero.dtype if zero is not None else dtype_of(number)
    if dtype is None or dtype.is_floating_point:
        raise NotImportedError(
            f"type {type_name(number)} is not imported", "quantise to int8 or uint8"
        )
    quotient = torch.round(x / _spread(node, scale, x))
    return _saturated(
        quotient if zero is None else quotient + _spread(node, zero, x).to(x.dtype), dtype
    )


@implements("DequantizeLinear")
def dequantise(
    node: Node, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None
) -> torch.Tensor:
    """Converts quantised integers to real numbers."""
    real = x.to(torch.float32)
    if zero is not None:
        real = real - _spread(node, zero, x).to(torch.float32)
    return real * _spread(node, scale, x)


@implements("DynamicQuantizeLinear")
def quantise_by_range(_: Node, x: torch.Tensor) -> Any:
    """Quantises to bytes by the least and the greatest value; zero stays exact."""
    least, greatest = torch.clamp(x.amin(), max=0.0), torch.clamp(x.amax(), min=0.0)
    scale = (greatest - least) / 255
    zero = _saturated(-least / scale, torch.uint8)
    return _saturated(torch.round(x / scale) + zero, torch.uint8), scale, zero


def _shifted(x: torch.Tensor, zero: torch.Tensor, by_row: bool = False) -> torch.Tensor:
    zero = zero.to(torch.int32)
    return x.to(torch.int32) - (
        zero.unsqueeze(-1) if by_row and zero.ndim == 1 and zero.numel() > 1 else zero
    )


@implements("QLinearMatMul", folds=False)
def quantised_matmul(
    _: Node,
    x: torch.Tensor,
    x_scale: torch.Tensor,
    x_zero: torch.Tensor,
    y: torch.Tensor,
    y_scale: torch.Tensor,
    y_zero: torch.Tensor,
    scale: torch.Tensor,
    zero: torch.Tensor,
) -> torch.Tensor:
    """Multiplies quantised matrices, without converting to real numbers in between."""
    product = torch.matmul(_shifted(x, x_zero, True), _shifted(y, y_zero))
    return _saturated(torch.round(product * (x_scale * y_scale / scale)) + zero, zero.dtype)


@implements("QLinearConv", folds=False)
def quantised_convolution(
    node: Node,
    x: torch.Tensor,
    x_scale: torch.Tensor,
    x_zero: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    weight_zero: torch.Tensor,
    scale: torch.Tensor,
    zero: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Convolves quantised tensors, with a scale for each channel if there are several."""
    by_channel = [-1] + [1] * (x.ndim - 2)
    weights = weight_zero.to(torch.int32).reshape(-1, *[1] * (weight.ndim - 1))
    sums = convolution(node, _shifted(x, x_zero), weight.to(torch.int32) - weights)
    sums = sums if bias is None else sums + bias.reshape(by_channel)
    factor = (x_scale * weight_scale / scale).reshape(by_channel)
    return _saturated(torch.round(sums * factor) + zero, zero.dtype)
