"""Exponentials of small matrices, whose gradients are exponentials of larger ones."""

import math

import torch

from tacit import checks, fixed
from tacit.operators.dispatch.operands import fraction, in_full
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.numerics.approximation.exponents import PLACES, leading, limited, moved
from tacit.operators.numerics.approximation.quotients import magnitude
from tacit.operators.numerics.equilibration import logarithm, matrix_product
from tacit.operators.numerics.reflections import FINE
from tacit.sessions import Session
from tacit.sharings import ranges, shares
from tacit.sharings.bilinear import multiply
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Times that the exponential of A / 2^SQUARINGS is squared, and the largest norm of A.
SQUARINGS, LARGEST = 7, 2.0**6

#: Degree of the Taylor polynomial, for norms up to 1/2.
_DEGREE = 8

#: Fraction bits of a square before it is normalised.
_SQUARE = 44

#: Offset that makes exponents of either sign positive.
_RAISED = 1 << (PLACES - 1)

#: Bits of sums of exponents.
_EXPONENTS = 24


@implements(aten.linalg_matrix_exp.default, scale=of_session)
def matrix_exp(x: SecretTensor) -> SecretTensor:
    """Returns e^A of square matrices.

    Method: scaling by 2^−7, a Taylor polynomial of degree 8, and seven squarings (Moler and Van
    Loan 2003, method 3). Each square is normalised by a power of two that stays secret, so that no
    bits are lost where it grows or decays.
    Domain: matrices whose greatest column sum of magnitudes is at most 64, with results in range. A
    run under ``protocol="plain"`` warns of others.
    Error: 2^−18 of the greatest number of the result for normal matrices, such as symmetric and
    skew-symmetric ones, and two units. About 260 rounds, whatever the size.
    """
    x = fraction(x)
    session, size, scale = x._session, x.shape[-1], x._session.scale
    if not x.numel():
        return x.like(x._parts, scale)
    with in_full(session):
        _check(x)
        parts, width = x._parts, x._scale.bits + SQUARINGS
        small = tuple(part << max(0, FINE - width) for part in parts)
        small = shares.truncate(session, small, max(0, width - FINE))
        found = _taylor(session, small, size)
        exponent = shares.trivial(session, torch.zeros(*x.shape[:-2], 1, 1, dtype=torch.int64))
        found, exponent = _normalised(session, found, exponent, FINE + 2 + logarithm(size), FINE)
        for _ in range(SQUARINGS):
            square = matrix_product(session, found, found, 2 * FINE - _SQUARE)
            exponent = tuple(part << 1 for part in exponent)
            found, exponent = _normalised(session, square, exponent, _SQUARE + 1, _SQUARE)
        # A number of the result is the fraction times 2^−exponent.
        most = shares.trivial(session, torch.tensor(_RAISED))
        up = tuple(whole - part for whole, part in zip(most, exponent, strict=True))
        up = limited(session, up, _EXPONENTS)
        result = moved(session, found, up, _RAISED + FINE - scale.bits)
    return x.like(result, scale)


def _check(x: SecretTensor) -> None:
    """Reports matrices beyond the domain, under the plain reference and in checked mode."""
    session, bits = x._session, x._scale.bits
    checks.hold(session, x._parts, bits + math.ceil(math.log2(LARGEST)))
    if session.is_plain:
        norms = x._parts[0].to(torch.float64).abs().sum(-2) * 2.0**-bits
        ranges.check_domain(
            session,
            norms > LARGEST,
            "the exponential of a matrix with a column sum beyond 64",
            "halve the matrix and multiply the result by itself",
        )


def _taylor(session: Session, x: Parts, size: int) -> Parts:
    """Computes Σ X^k / k! by Horner's rule, FINE fraction bits."""
    eye = shares.trivial(session, torch.eye(size, dtype=torch.int64) << FINE)
    found: Parts = tuple(part.expand(x[0].shape) for part in eye)
    for power in range(_DEGREE, 0, -1):
        product = matrix_product(session, x, found, FINE)
        if power > 1:
            factor = fixed.word(1.0 / power, FINE)
            product = shares.truncate(session, tuple(part * factor for part in product), FINE)
        found = shares.add(product, eye)
    return found


def _normalised(
    session: Session, x: Parts, exponent: Parts, width: int, bits: int
) -> tuple[Parts, Parts]:
    """Scales a matrix to magnitudes that add up to between 1/2 and 1, with FINE fraction bits.

    The power of two is added to the exponent. The words have ``bits`` fraction bits, and their
    magnitudes add up to less than 2^width.
    """
    more = logarithm(x[0].shape[-1])
    _, sizes = magnitude(session, x, width + 1)
    sums = tuple(part.sum((-2, -1), keepdim=True) for part in sizes)
    up, power = leading(session, sums, width + more)
    shape = x[0].shape
    x = multiply(session, x, tuple(part.expand(shape) for part in power), 0)
    x = shares.truncate(session, x, width + more - FINE)
    whole = shares.trivial(session, torch.tensor(bits - width - more))
    total = tuple(a + b + c for a, b, c in zip(exponent, up, whole, strict=True))
    return x, total
