"""Matrix products."""

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.table import Node, implements


@implements("MatMul", folds=False)
def matmul(_: Node, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Matrix product as in NumPy."""
    return torch.matmul(x, y)


@implements("Gemm", folds=False)
def gemm(
    node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Returns α·A·B + β·C, with either of the matrices transposed.

    What PyTorch calls a linear layer stays one."""
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    x = x.t() if node.flag("transA") else x
    if bias is not None and beta != 1.0:
        bias = beta * bias
    if alpha == 1.0 and (bias is None or (bias.ndim == 1 and bias.shape[0] != 1)):
        return functional.linear(x, weight if node.flag("transB") else weight.t(), bias)
    product = torch.matmul(x, weight.t() if node.flag("transB") else weight)
    product = product if alpha == 1.0 else alpha * product
    return product if bias is None else product + bias


@implements("Einsum", folds=False)
def einsum(node: Node, *inputs: torch.Tensor) -> torch.Tensor:
    """Sum of products by an equation."""
    return torch.einsum(node.text("equation").replace(" ", ""), *inputs)


def _without(x: torch.Tensor, zero: torch.Tensor | None, per_row: bool) -> torch.Tensor:
    """Subtracts a zero point from an integer tensor; there may be one for each row or each
    column."""
    if zero is None:
        return x.to(torch.int32)
    zero = zero.to(torch.int32)
    if per_row and zero.ndim == 1 and zero.shape[0] != 1:
        zero = zero.unsqueeze(-1)
    return x.to(torch.int32) - zero


@implements("MatMulInteger", folds=False)
def matmul_integer(
    _: Node,
    x: torch.Tensor,
    y: torch.Tensor,
    x_zero: torch.Tensor | None = None,
    y_zero: torch.Tensor | None = None,
) -> torch.Tensor:
    """Matrix product of bytes minus their zero points, exact in 32 bits."""
    return torch.matmul(_without(x, x_zero, True), _without(y, y_zero, False))
