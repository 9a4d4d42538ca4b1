"""Quotients of numbers that may be whole words, as integers are.

Secret powers of two bring dividend and divisor to one magnitude. Then they are divided as
fractions."""

import torch

from tacit.fixed import RANGE, WHOLE, WORD
from tacit.operators.dispatch.operands import as_words, together
from tacit.operators.numerics.approximation.exponents import (
    PLACES,
    leading,
    limited,
    moved,
    reciprocal,
)
from tacit.operators.numerics.approximation.normal import rescaled_by
from tacit.operators.numerics.approximation.quotients import as_result, flipped
from tacit.sharings import bilinear, shares
from tacit.tensor import SecretTensor

#: Fraction bits of dividend and divisor when they are divided, and of the quotient.
_BITS = 28

#: Width of exponents.
_EXPONENTS = 16


def divide_wide(x: SecretTensor, y: SecretTensor) -> SecretTensor:
    """Computes x / y at the session's scale, for integers that may be beyond 2^30.

    Method: x and y are shifted up by their leading zeros, and divided by a reciprocal with a Newton
    step; then the quotient is shifted by the difference of the exponents (Catrina and Saxena 2010).
    Domain: words below 2^62. 0 counts as the smallest fraction, so that 0/0 is 0. Quotients from
    2^44 on, at the default scale, become 2^43 to 2^45.
    Error: 2^−24 relative and two units. About 90 rounds.
    """
    session, scale = x._session, x._session.scale
    x, y = as_words(x), as_words(y)
    left, right = together(x._parts, y._parts)
    both = shares.stacked(left, right)
    negative = shares.sign(session, both, WORD)
    sizes = flipped(session, negative, both)
    nothing = shares.equal_zero(session, tuple(part[1:] for part in sizes), WORD)
    one = tuple(part[0] for part in shares.bit_to_ring(session, nothing))
    exponents, power = leading(session, sizes, RANGE)
    size, divisor = shares.unstacked(sizes)
    sizes = shares.stacked(size, shares.add(divisor, one))
    filled = rescaled_by(session, bilinear.multiply(session, sizes, power, 0), RANGE - _BITS)
    dividend, by = shares.unstacked(filled)
    quotient = bilinear.multiply(session, dividend, reciprocal(session, by, _BITS), _BITS)
    up, down = shares.unstacked(exponents)
    # The greatest exponent keeps a word in range.
    most = RANGE - 2 - scale.bits
    raised = (1 << PLACES) - 1 - most
    smallest = scale.bits if y._scale == WHOLE else 0
    whole = shares.trivial(session, torch.tensor(raised + y._scale.bits - x._scale.bits))
    exponent = tuple(
        b - a + smallest * zero + more
        for a, b, zero, more in zip(up, down, one, whole, strict=True)
    )
    found = moved(
        session, quotient, limited(session, exponent, _EXPONENTS), raised + _BITS - scale.bits
    )
    first, second = shares.unstacked(negative)
    return as_result(x, flipped(session, shares.xor(first, second), found), scale)
