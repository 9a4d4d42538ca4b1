"""Matrix products: ``mm``, ``bmm``, ``matmul``, ``linear`` and, as PyTorch composes it, ``einsum``.

One round for integers, two with truncation. Messages have the size of the result with replicated
sharing. With additive sharing they have the size of the operands, and weights that are shared once
are sent once, whatever they are multiplied by. A public operand needs truncations only.
"""

from collections.abc import Callable
from typing import Any

import torch

from tacit import fixed
from tacit.modes import outside_trace
from tacit.operators.arithmetic import add, scaled
from tacit.operators.dispatch.operands import (
    Number,
    as_factors,
    as_words,
    is_secret,
    may_be_unreduced,
    moved,
    public,
    result_dtype,
    stays_in_range,
    times_public,
)
from tacit.operators.dispatch.scales import of_product, of_sum_with_product
from tacit.operators.dispatch.table import implements
from tacit.sharings import bilinear
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.bmm.default, scale=of_product)
def bmm(x: Any, y: Any) -> SecretTensor:
    """Returns the products of matrices (b, m, k) and (b, k, n)."""
    if not isinstance(y, SecretTensor):
        return _by_public(x, y, dim=1, product=lambda of, product: product(*of))
    if not isinstance(x, SecretTensor):
        return _by_public(y, x, dim=2, product=lambda of, product: product(*reversed(of)))
    session, dtype = x._session, result_dtype(x, y)
    x, y = as_factors(as_words(x), as_words(y))
    drop, scale = fixed.of_product(x._scale, y._scale, session.scale)
    shift, in_range = session.numerics.shift(drop), stays_in_range(session, dtype)
    parts = bilinear.matmul(session, x._parts, y._parts, shift, in_range=in_range)
    return x.like(parts, scale, dtype, unreduced=may_be_unreduced(dtype))


Pair = tuple[torch.Tensor, torch.Tensor]


def _by_public(
    secret: SecretTensor,
    plain: torch.Tensor,
    dim: int,
    product: Callable[[Pair, Any], torch.Tensor],
) -> SecretTensor:
    """Returns a product in which each result takes the public factors along ``dim``."""
    values = public(plain)
    return times_public(
        secret,
        values,
        result_dtype(secret, plain),
        apply=lambda part, words: product((part, words), bilinear.ring_product),
        check=lambda part, words: product((part, words), torch.bmm),
        gain=gain(values, dim),
    )


@outside_trace
def gain(values: torch.Tensor, *dims: int) -> float | None:
    """Returns by how much a sum of products along ``dims`` may exceed the largest of these factors.

    This is the ``gain`` of ``fixed.factor``.
    """
    if not values.is_floating_point() or not values.numel():
        return None
    magnitudes = values.detach().to(torch.float64).abs()
    greatest = float(magnitudes.max())
    return float(magnitudes.sum(dims).max()) / greatest if greatest > 0 else None


@outside_trace
def gain_of_sums(values: torch.Tensor, rows: torch.Tensor, count: int) -> float | None:
    """Returns the ``gain`` of sums of products by the public values of each row."""
    if not values.is_floating_point() or not values.numel():
        return None
    magnitudes = values.detach().to(torch.float64).abs()
    greatest = float(magnitudes.max())
    sums = torch.zeros(count, dtype=torch.float64).index_add(0, rows, magnitudes)
    return float(sums.max()) / greatest if greatest > 0 else None


@implements(aten.mm.default, scale=of_product)
def mm(x: Any, y: Any) -> SecretTensor:
    """Returns the product of (m, k) and (k, n)."""
    product = bmm(_unsqueezed(x, 0), _unsqueezed(y, 0))
    return moved(product, lambda part: part.squeeze(0))


@implements(aten.mv.default, scale=of_product)
def mv(x: Any, y: Any) -> SecretTensor:
    """Returns the product of (m, k) and (k)."""
    product = bmm(_unsqueezed(x, 0), _unsqueezed(_unsqueezed(y, 1), 0))
    return moved(product, lambda part: part.squeeze(2).squeeze(0))


@implements(aten.dot.default, aten.vdot.default, scale=of_product)
def dot(x: Any, y: Any) -> SecretTensor:
    """Returns the product of (k) and (k)."""
    product = bmm(_unsqueezed(_unsqueezed(x, 0), 0), _unsqueezed(_unsqueezed(y, 1), 0))
    return moved(product, lambda part: part.reshape(()))


def _unsqueezed(x: Any, dim: int) -> Any:
    """Returns an operand, secret or public, with one more dimension."""
    return moved(x, lambda part: part.unsqueeze(dim))


def _sum(bias: Any, product: Any, beta: Number, alpha: Number) -> SecretTensor:
    if not product.dtype.is_floating_point:
        # PyTorch also rounds both towards zero for integers.
        beta, alpha = int(beta), int(alpha)
    if beta == 0 and not isinstance(bias, SecretTensor):
        # PyTorch ignores the bias then, which may be NaN.
        bias = torch.zeros_like(bias)
    return add(scaled(product, alpha), bias, beta)


def _product(multiply: Any, x: Any, y: Any) -> Any:
    """Multiplies two operands, both of which may be public."""
    if is_secret(x, y):
        return multiply(x, y)
    return torch.matmul(x, y)


@implements(aten.addmm.default, scale=of_sum_with_product)
def addmm(bias: Any, x: Any, y: Any, *, beta: Number = 1, alpha: Number = 1) -> SecretTensor:
    """Returns beta·bias + alpha·xy, as ``nn.Linear`` computes it."""
    return _sum(bias, _product(mm, x, y), beta, alpha)


@implements(aten.baddbmm.default, scale=of_sum_with_product)
def baddbmm(bias: Any, x: Any, y: Any, *, beta: Number = 1, alpha: Number = 1) -> SecretTensor:
    """Returns beta·bias + alpha·xy for each element of a batch."""
    return _sum(bias, _product(bmm, x, y), beta, alpha)


@implements(aten.addmv.default, scale=of_sum_with_product)
def addmv(bias: Any, x: Any, y: Any, *, beta: Number = 1, alpha: Number = 1) -> SecretTensor:
    """Returns beta·bias + alpha·xy for a matrix and a vector."""
    return _sum(bias, _product(mv, x, y), beta, alpha)


@implements(aten.addbmm.default, scale=of_sum_with_product)
def addbmm(bias: Any, x: Any, y: Any, *, beta: Number = 1, alpha: Number = 1) -> SecretTensor:
    """Returns beta·bias + alpha·Σ xy over the batch.

    This is one product, of all x next to each other and all y one below the other.
    """
    batch, rows, inner = x.shape
    x = x.transpose(0, 1).reshape(rows, batch * inner)
    return _sum(bias, _product(mm, x, y.reshape(batch * inner, y.shape[2])), beta, alpha)


@implements(aten.addr.default, scale=of_sum_with_product)
def addr(bias: Any, x: Any, y: Any, *, beta: Number = 1, alpha: Number = 1) -> SecretTensor:
    """Returns beta·bias + alpha·xyᵀ for two vectors."""
    return _sum(bias, _product(mm, x.unsqueeze(1), y.unsqueeze(0)), beta, alpha)
