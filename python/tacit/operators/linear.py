"""Matrix products. One round for integers, two with truncation. Messages have the size of the result
(replicated sharing) or of the operands, shared weights once (additive), whatever else the product takes. A
public operand needs a truncation only."""

from typing import Any

import torch

from tacit import _core, encoding, shares
from tacit.operators.arithmetic import add, multiply_public
from tacit.operators.operands import Number, as_words, public, result_dtype, secret_scale, session_of
from tacit.operators.table import implements
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.bmm.default)
def bmm(x: Any, y: Any) -> SecretTensor:
    """(b, m, k) by (b, k, n)."""
    session, dtype = session_of(x, y), result_dtype(x, y)
    if isinstance(x, SecretTensor) and isinstance(y, SecretTensor):
        x, y = as_words(x), as_words(y)
        drop = min(x._scale, y._scale)
        return x.like(_products(session, x._parts, y._parts, drop), x._scale + y._scale - drop, dtype)
    secret, plain = (as_words(x), y) if isinstance(x, SecretTensor) else (as_words(y), x)
    words, scale = encoding.factor(public(plain))
    if secret is x or isinstance(x, SecretTensor):
        product = tuple(_ring_product(part, words) for part in secret._parts)
    else:
        product = tuple(_ring_product(words, part) for part in secret._parts)
    drop = scale if secret._scale else max(0, scale - secret_scale(session, dtype))
    return secret.like(shares.truncate(session, product, drop), secret._scale + scale - drop, dtype)


def _products(session: Any, x: Parts, y: Parts, drop: int) -> Parts:
    """A right operand that lies transposed, as weights do, is not copied: (AB)ᵀ = BᵀAᵀ."""
    turned = tuple(part.transpose(1, 2) for part in y)
    if not y[0].is_contiguous() and turned[0].is_contiguous():
        product = shares.matmul(session, turned, tuple(part.transpose(1, 2) for part in x), drop)
        return tuple(part.transpose(1, 2) for part in product)
    return shares.matmul(session, x, y, drop)


def _ring_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    (batch, m, k), n = a.shape, b.shape[2]
    out = torch.zeros((batch, m, n), dtype=torch.int64)
    if out.numel() and k:
        _core.ring_matmul(
            a.contiguous().view(-1).numpy(),
            b.contiguous().view(-1).numpy(),
            out.view(-1).numpy(),
            batch,
            m,
            k,
            n,
        )
    return out


@implements(aten.mm.default)
def mm(x: Any, y: Any) -> SecretTensor:
    """(m, k) by (k, n)."""
    product = bmm(x.unsqueeze(0), y.unsqueeze(0))
    return product.like(tuple(part.squeeze(0) for part in product._parts))


@implements(aten.mv.default)
def mv(x: Any, y: Any) -> SecretTensor:
    """(m, k) by (k)."""
    product = bmm(x.unsqueeze(0), y.unsqueeze(1).unsqueeze(0))
    return product.like(tuple(part.squeeze(2).squeeze(0) for part in product._parts))


@implements(aten.dot.default, aten.vdot.default)
def dot(x: Any, y: Any) -> SecretTensor:
    """(k) by (k)."""
    product = bmm(x.unsqueeze(0).unsqueeze(0), y.unsqueeze(1).unsqueeze(0))
    return product.like(tuple(part.reshape(()) for part in product._parts))


def _sum(bias: Any, product: Any, beta: Number, alpha: Number) -> SecretTensor:
    if alpha != 1:
        product = multiply_public(product, alpha) if isinstance(product, SecretTensor) else product * alpha
    return add(product, bias, beta)


def _product(multiply: Any, x: Any, y: Any) -> Any:
    """A product that may be of two public operands."""
    if isinstance(x, SecretTensor) or isinstance(y, SecretTensor):
        return multiply(x, y)
    return torch.matmul(x, y)


@implements(aten.addmm.default)
def addmm(bias: Any, x: Any, y: Any, *, beta: Number = 1, alpha: Number = 1) -> SecretTensor:
    """beta·bias + alpha·xy, as ``nn.Linear`` computes it."""
    return _sum(bias, _product(mm, x, y), beta, alpha)


@implements(aten.baddbmm.default)
def baddbmm(bias: Any, x: Any, y: Any, *, beta: Number = 1, alpha: Number = 1) -> SecretTensor:
    """beta·bias + alpha·xy, by batch."""
    return _sum(bias, _product(bmm, x, y), beta, alpha)


@implements(aten.addmv.default)
def addmv(bias: Any, x: Any, y: Any, *, beta: Number = 1, alpha: Number = 1) -> SecretTensor:
    """beta·bias + alpha·xy, of matrix and vector."""
    return _sum(bias, _product(mv, x, y), beta, alpha)
