"""Sums, differences, products, quotients by public numbers."""

from typing import Any

import torch

from tacit import encoding, shares
from tacit.operators.operands import (
    Number,
    aligned,
    as_words,
    public,
    result_dtype,
    session_of,
    shifted,
    together,
)
from tacit.operators.table import implements, in_place, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.add.Tensor, aten.add.Scalar)
def add(x: Any, y: Any, alpha: Number = 1) -> SecretTensor:
    """x + alpha·y; no interaction (at most two rounds if a boolean is among them)."""
    y = y if alpha == 1 else scaled(y, alpha)
    left, right, scale = aligned(x, y)
    return _secret(x, y).like(shares.add(left, right), scale, result_dtype(x, y))


@implements(aten.sub.Tensor, aten.sub.Scalar)
def sub(x: Any, y: Any, alpha: Number = 1) -> SecretTensor:
    """x − alpha·y; no interaction (at most two rounds if a boolean is among them)."""
    y = y if alpha == 1 else scaled(y, alpha)
    left, right, scale = aligned(x, y)
    return _secret(x, y).like(shares.subtract(left, right), scale, result_dtype(x, y))


@implements(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(x: Any, y: Any, alpha: Number = 1) -> SecretTensor:
    """y − alpha·x."""
    return sub(y, x, alpha)


@implements(aten.neg.default)
def neg(x: SecretTensor) -> SecretTensor:
    """−x; no interaction."""
    return x.like(tuple(-part for part in x._parts))


def _secret(*operands: Any) -> SecretTensor:
    return next(operand for operand in operands if isinstance(operand, SecretTensor))


def scaled(x: Any, by: Number) -> Any:
    """x times a public number, whether x is secret or not."""
    return multiply_public(x, by) if isinstance(x, SecretTensor) else x * by


@implements(aten.mul.Tensor, aten.mul.Scalar)
def mul(x: Any, y: Any) -> SecretTensor:
    """x·y. Secret by secret: two rounds (one for integers). By public whole numbers: no interaction. By
    other public numbers: a truncation, at most two. A boolean chooses: at most two, and exact."""
    if not isinstance(x, SecretTensor):
        return multiply_public(y, x)
    if not isinstance(y, SecretTensor):
        return multiply_public(x, y)
    session, dtype = session_of(x, y), result_dtype(x, y)
    left, right = together(x._parts, y._parts)
    if x.dtype == torch.bool and y.dtype == torch.bool:
        return x.like(shares.and_bits(session, left, right))
    if x.dtype == torch.bool:
        return y.like(shares.bit_multiply(session, left, right), dtype=dtype)
    if y.dtype == torch.bool:
        return x.like(shares.bit_multiply(session, right, left), dtype=dtype)
    drop = min(x._scale, y._scale)
    return x.like(shares.multiply(session, left, right, drop), x._scale + y._scale - drop, dtype)


def multiply_public(x: SecretTensor, y: torch.Tensor | Number) -> SecretTensor:
    """x·y for public y."""
    dtype = result_dtype(x, y)
    session, x = session_of(x), as_words(x)
    words, scale = encoding.factor(public(y))
    product = tuple(part * words for part in x._parts)
    if scale == 0:
        return x.like(product, dtype=dtype)
    if x._scale == 0:
        # Integers by fractions: the product's own fraction bits become those of the result.
        keep = min(scale, session.scale)
        product = shares.truncate(session, product, scale - keep)
        return x.like(tuple(part << (session.scale - keep) for part in product), session.scale, dtype)
    return x.like(shares.truncate(session, product, scale), dtype=dtype)


@implements(aten.div.Tensor, aten.div.Scalar)
def div(x: Any, y: Any) -> SecretTensor:
    """x / y for public y: one truncated multiplication by 1/y, at most two rounds."""
    if isinstance(y, SecretTensor):
        unsupported("division by a secret", "divide by public numbers, or multiply")
    divisor = public(y).to(torch.float64)
    dtype = result_dtype(x, y)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    result = multiply_public(x, 1.0 / divisor)
    return result.like(
        shifted(result, max(result._scale, x._session.scale)), max(result._scale, x._session.scale), dtype
    )


@implements(aten.square.default)
def square(x: SecretTensor) -> SecretTensor:
    """x²; at most two rounds."""
    return mul(x, x)


@implements(aten.pow.Tensor_Scalar)
def power(x: SecretTensor, exponent: Number) -> SecretTensor:
    """x^n for whole n from 1 to 64, by squaring: at most 2·log2(n) products."""
    if exponent != int(exponent) or not 1 <= exponent <= 64:
        unsupported(f"the power {exponent}", "use whole exponents from 1 to 64")
    remaining, base = int(exponent), x
    result: SecretTensor | None = None
    while True:
        if remaining & 1:
            result = base if result is None else mul(result, base)
        remaining >>= 1
        if not remaining and result is not None:
            return result.like(tuple(part.clone() for part in result._parts), dtype=result_dtype(x, exponent))
        base = mul(base, base)


@implements(aten.addcmul.default)
def addcmul(x: Any, first: Any, second: Any, value: Number = 1) -> SecretTensor:
    """x + value·first·second."""
    return add(x, _any_product(first, second), value)


@implements(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(start: Any, end: Any, weight: Any) -> SecretTensor:
    """start + weight·(end − start)."""
    difference = end - start
    return add(start, _any_product(difference, weight))


def _any_product(x: Any, y: Any) -> Any:
    return mul(x, y) if isinstance(x, SecretTensor) or isinstance(y, SecretTensor) else x * y


for _written, _functional in (
    (aten.add_.Tensor, aten.add.Tensor),
    (aten.add_.Scalar, aten.add.Scalar),
    (aten.sub_.Tensor, aten.sub.Tensor),
    (aten.sub_.Scalar, aten.sub.Scalar),
    (aten.mul_.Tensor, aten.mul.Tensor),
    (aten.mul_.Scalar, aten.mul.Scalar),
    (aten.div_.Tensor, aten.div.Tensor),
    (aten.div_.Scalar, aten.div.Scalar),
    (aten.neg_.default, aten.neg.default),
    (aten.square_.default, aten.square.default),
    (aten.addcmul_.default, aten.addcmul.default),
):
    in_place(_written, _functional)
