"""Addition, subtraction, multiplication, division, and powers with small whole exponents."""

from typing import Any

import torch

from tacit import checks, fixed
from tacit.fixed import DEFAULT, WHOLE, Scale
from tacit.modes import is_backward
from tacit.operators.dispatch.operands import (
    Number,
    aligned,
    as_factors,
    as_words,
    at_session_scale,
    conjunction,
    disjunction,
    is_secret,
    lifted,
    may_be_unreduced,
    number,
    operand_scale,
    public,
    rescaled,
    result_dtype,
    secret_of,
    stays_in_range,
    times_public,
    together,
)
from tacit.operators.dispatch.scales import (
    of_interpolation,
    of_product,
    of_reversed_sum,
    of_session,
    of_square,
    of_sum_with_product,
)
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics import deferred_powers, remembered_softmax, remembered_squares
from tacit.operators.numerics.approximation import divide, wide
from tacit.operators.numerics.approximation.domains import quotient
from tacit.operators.numerics.remembered_softmax import left_for_later
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.storage_cache import geometry
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Fraction bits of gradients at the default scale. At a session's scale with more, quotients are
#: computed as exactly as these bits allow.
_GRADIENT_BITS = DEFAULT.bits + fixed.MORE_IN_GRADIENTS

#: Quotients of full 64-bit words. A quotient beyond 2^44 becomes a number of 2^43 or more.
divide_wide = quotient(wide.divide_wide, as_words, checks.WORD, 57)

#: The operator of a product that the program itself writes. Squares inside other operators are not
#: remembered.
_PRODUCT = str(aten.mul.Tensor)


@implements(aten.add.Tensor, aten.add.Scalar, scale=of_sum_with_product)
def add(x: Any, y: Any, alpha: Number = 1) -> SecretTensor:
    """Returns x + alpha·y, or x OR y for booleans.

    No interaction; at most two rounds if one operand is boolean.
    """
    dtype = result_dtype(x, y)
    if dtype == torch.bool:
        return disjunction(x, scaled(y, alpha))
    if alpha == 1 and (later := remembered_softmax.joined(x, y)) is not None:
        return later
    left, right, scale = _summands(x, scaled(y, alpha))
    result = secret_of(x, y).like(
        shares.add(left, right), scale, dtype, unreduced=may_be_unreduced(dtype)
    )
    checks.added(result._session, result._parts, left, right)
    return remembered_squares.remember_sum(result, x, y) if alpha == 1 else result


def _summands(x: Any, y: Any) -> tuple[Parts, Parts, Scale]:
    """Returns both operands as components at one scale.

    In checked mode the secret operands are claimed to be small enough that their sum fits a word.
    """
    left, right, scale = aligned(x, y)
    for operand, parts in ((x, left), (y, right)):
        if isinstance(operand, SecretTensor):
            checks.hold_operand(operand._session, parts)
    return left, right, scale


@implements(aten.sub.Tensor, aten.sub.Scalar, scale=of_sum_with_product)
def sub(x: Any, y: Any, alpha: Number = 1) -> SecretTensor:
    """Returns x − alpha·y.

    No interaction; at most two rounds if one operand is boolean.
    """
    dtype = result_dtype(x, y)
    if dtype == torch.bool:
        unsupported(
            "a difference of booleans",
            "x ^ y says where they differ, and x & ~y where x alone is true",
        )
    left, right, scale = _summands(x, scaled(y, alpha))
    result = secret_of(x, y).like(
        shares.subtract(left, right), scale, dtype, unreduced=may_be_unreduced(dtype)
    )
    checks.added(result._session, result._parts, left, right)
    return result


@implements(aten.rsub.Tensor, aten.rsub.Scalar, scale=of_reversed_sum)
def rsub(x: Any, y: Any, alpha: Number = 1) -> SecretTensor:
    """Returns y − alpha·x."""
    result = sub(y, x, alpha)
    return (
        remembered_softmax.remember_complement(result, x)
        if number(y) == 1.0 and alpha == 1
        else result
    )


@implements(aten.neg.default)
def neg(x: SecretTensor) -> SecretTensor:
    """Returns −x. No interaction."""
    if x.dtype == torch.bool:
        unsupported("the negative of a boolean", "~x inverts it")
    if (later := deferred_powers.multiple(x, -1.0)) is not None or (
        later := remembered_softmax.opposite(x)
    ) is not None:
        return later
    checks.hold_operand(x._session, x._parts)
    result = x.like(shares.negate(x._parts), unreduced=may_be_unreduced(x.dtype))
    checks.inherit(x._session, result._parts, x._parts)
    return result


def scaled(x: Any, by: Number) -> Any:
    """Multiplies x, secret or public, by a public number."""
    if isinstance(by, int) and by == 1:
        return x
    return multiply_public(x, by) if isinstance(x, SecretTensor) else x * by


@implements(aten.mul.Tensor, aten.mul.Scalar, scale=of_product)
def mul(x: Any, y: Any) -> SecretTensor:
    """Returns x·y.

    Two secrets take two rounds, or one if they are integers. A public factor costs as much as in
    ``times_public``. A boolean factor selects: at most two rounds, and exact.
    """
    if not isinstance(x, SecretTensor):
        return multiply_public(y, x)
    if not isinstance(y, SecretTensor):
        return multiply_public(x, y)
    if (known := remembered_squares.product(x, y)) is not None:
        return known
    session, dtype = x._session, result_dtype(x, y)
    is_square = session.operator == _PRODUCT and geometry(x._parts[0]) == geometry(y._parts[0])
    number = x
    x, y = as_factors(x, y)
    left, right = together(x._parts, y._parts)
    if dtype == torch.bool:
        return x.like(shares.and_bits(session, left, right))
    if x.dtype == torch.bool:
        return y.like(
            shares.bit_multiply(session, left, right), dtype=dtype, unreduced=y._unreduced
        )
    if y.dtype == torch.bool:
        return x.like(
            shares.bit_multiply(session, right, left), dtype=dtype, unreduced=x._unreduced
        )
    if x._unreduced or y._unreduced:
        left, right = together(*(_of_kind(operand, dtype)._parts for operand in (x, y)))
    drop, scale = fixed.of_product(x._scale, y._scale, session.scale)
    parts = bilinear.multiply(session, left, right, drop, in_range=stays_in_range(session, dtype))
    result = x.like(parts, scale, dtype, unreduced=may_be_unreduced(dtype))
    return remembered_squares.remember_squares(result, number) if is_square else result


def _of_kind(x: SecretTensor, dtype: torch.dtype) -> SecretTensor:
    """Returns an operand of a product, reduced to its dtype if necessary.

    An operand of the product's dtype may stay unreduced, since the product may be unreduced too.
    """
    return x if x.dtype == dtype else as_words(x)


def multiply_public(x: SecretTensor, y: torch.Tensor | Number) -> SecretTensor:
    """Returns x·y for a public y."""
    if result_dtype(x, y) == torch.bool:
        return conjunction(x, y)
    if (later := deferred_powers.multiple(x, y)) is not None:
        return later
    return remembered_squares.remember_multiple(
        times_public(x, public(y), result_dtype(x, y)), x, y
    )


@implements(aten.div.Tensor, aten.div.Scalar, scale=of_session)
def div(x: Any, y: Any) -> SecretTensor:
    """Returns x / y.

    A public y becomes a product with 1/y. For a secret y see ``approximation.divide``, and in
    gradients ``remembered_softmax``.
    """
    if isinstance(y, SecretTensor):
        if (known := remembered_squares.quotient(x, y)) is not None:
            return known
        if isinstance(x, torch.Tensor) and x.shape == y.shape:
            later = left_for_later(y, lambda _: x, lambda y: _divided(x, y))
            if later is not None:
                return later
        return _divided(x, y)
    dtype = result_dtype(x, y)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    if (later := deferred_powers.multiple(x, y, divided=True)) is not None:
        return later
    result = times_public(x, 1.0 / public(y).to(torch.float64), dtype)
    return remembered_squares.remember_multiple(result, x, y, divided=True)


def _divided(x: Any, y: SecretTensor) -> SecretTensor:
    if not isinstance(x, SecretTensor):
        scale = operand_scale(public(x), y._session.scale)
        x = SecretTensor(lifted(y._session, x, scale), scale, y._session, public(x).dtype)
    is_fine = x._session.scale.bits > _GRADIENT_BITS
    return divide_wide(x, y) if is_fine or _may_be_wide(x) or _may_be_wide(y) else divide(x, y)


def _may_be_wide(x: SecretTensor) -> bool:
    """Returns whether x holds integers that may exceed 2^30, or numbers converted from such."""
    is_small = x.dtype == torch.bool or (not x.dtype.is_floating_point and x.dtype.itemsize < 4)
    return x._scale == WHOLE and not is_small


@implements(aten.square.default, scale=of_square)
def square(x: SecretTensor) -> SecretTensor:
    """Returns x². At most two rounds."""
    return remembered_squares.remember_squares(mul(x, x), x)


def power(x: SecretTensor, exponent: int) -> SecretTensor:
    """Returns x^n for n ≥ 1 by repeated squaring, with at most 2·log2(n) products.

    Every power of a fraction has the session's scale, including x^1.
    """
    if exponent == 3 and x._scale.bits > x._session.scale.bits and is_backward():
        return _cube_of_inverse_root(x)
    remaining, base = int(exponent), as_words(x) if x.dtype == torch.bool else x
    result: SecretTensor | None = None
    while True:
        if remaining & 1:
            result = base if result is None else mul(result, base)
        remaining >>= 1
        if not remaining and result is not None:
            if x._scale != WHOLE:
                result = at_session_scale(result)
            return result.like(
                result._parts, dtype=result_dtype(x, exponent), unreduced=result._unreduced
            )
        base = mul(base, base)


def _cube_of_inverse_root(x: SecretTensor) -> SecretTensor:
    """Returns x³ in the gradient of ``rsqrt``, with bits dropped so that it stays in range.

    Only ``rsqrt`` has results with more fraction bits than gradients. x is up to 2^8 there. With
    all its bits x·x² would leave the range from 2^6 on, that is for roots of numbers below 2^−12.
    Dropping bits first takes two more truncations.
    """
    scale = x._session.scale
    base = rescaled(x, scale)
    return at_session_scale(mul(rescaled(x, Scale(min(scale.bits, DEFAULT.bits))), mul(base, base)))


@implements(aten.addcmul.default, scale=of_sum_with_product)
def addcmul(x: Any, first: Any, second: Any, value: Number = 1) -> SecretTensor:
    """Returns x + value·first·second."""
    return add(x, any_product(first, second), value)


@implements(aten.lerp.Scalar, aten.lerp.Tensor, scale=of_interpolation)
def lerp(start: Any, end: Any, weight: Any) -> SecretTensor:
    """Returns start + weight·(end − start)."""
    return add(start, any_product(end - start, weight))


def any_product(x: Any, y: Any) -> Any:
    """Returns x·y. Both operands may be public."""
    return mul(x, y) if is_secret(x, y) else x * y
