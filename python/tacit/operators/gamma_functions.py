"""The gamma function's logarithm and its derivatives."""

import math
from typing import Any

import torch

from tacit import fixed
from tacit.operators.dispatch.operands import at_session_scale, beside, fraction, in_full
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics import approximation
from tacit.sharings import ranges
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Terms of Hurwitz's zeta function that are added one by one before the tail.
_TERMS = 8

#: Greatest order of a derivative. Those of higher ones magnify units by factors of hundreds.
_MOST_DERIVED = 3


@implements(aten.lgamma.default, scale=of_session)
def lgamma(x: SecretTensor) -> SecretTensor:
    """Returns ln |Γ(x)|: see ``approximation.lgamma``."""
    return approximation.lgamma(x)


@implements(aten.digamma.default, scale=of_session)
def digamma(x: SecretTensor) -> SecretTensor:
    """Returns ψ(x), the derivative of ``lgamma``: see ``approximation.digamma``."""
    return approximation.digamma(x)


@implements(aten.mvlgamma.default, scale=of_session)
def mvlgamma(x: SecretTensor, p: int) -> SecretTensor:
    """Returns the logarithm of the multivariate gamma function of order p.

    Domain: x > (p − 1)/2. Takes the rounds of ``approximation.lgamma`` of positive numbers.
    """
    x = fraction(x)
    with beside(x._session, p / 2):
        shifted = x.unsqueeze(-1) - torch.arange(p) * 0.5
    found: SecretTensor = approximation.lgamma(shifted, positive=True).sum(-1)
    return found + p * (p - 1) / 4 * math.log(math.pi)


@implements(aten.polygamma.default, scale=of_session)
def polygamma(n: int, x: SecretTensor) -> Any:
    """Returns the derivative of order n of ``digamma``, up to order 3.

    Method: the first eight terms of Hurwitz's zeta function, the tail by the formula of Euler and
    Maclaurin, and for negative numbers the derivatives of the cotangent (Johansson 2015).
    Domain: all encodable numbers. Near poles results saturate at about 2^29 by default; a run under
    ``protocol="plain"`` warns of it.
    Error: (n + 2)·2^−12 relative, or (n + 2)!·2^−14 absolute where that is more. Takes the rounds
    of a comparison, two reciprocals and about 4·n + 12 more.
    """
    if not n:
        return digamma(x)
    if n > _MOST_DERIVED:
        unsupported(f"polygamma of order {n}", f"take orders up to {_MOST_DERIVED}")
    session = x._session
    x = at_session_scale(fraction(x))
    with in_full(session):
        negative, size = x < 0, x.abs()
        # The greatest inverse whose power is in range.
        bits = session.scale.bits
        room = (
            min(fixed.ENCODED - bits, fixed.RANGE - 2 * bits) - 0.1 - math.log2(math.factorial(n))
        )
        greatest = 2.0 ** (room / (n + 1))
        _check(x, 1.0 / greatest)
        steps = torch.arange(_TERMS + 1).reshape(-1, *[1] * x.dim())
        inverses: Any = (size.unsqueeze(0) + steps).reciprocal().clamp(max=greatest)
        sign = (-1.0) ** (n + 1) * math.factorial(n)
        first, rest = inverses[0] ** (n + 1) * sign, _zeta_of_next(inverses, n) * sign
        of_negative: Any = torch.where(negative, size, 0.5)
        turned: Any = approximation.cotangent(of_negative).clamp(-greatest, greatest)
        reflected = (rest + _derived_cotangent(turned, n)) * (-1.0) ** n
        found: Any = torch.where(negative, reflected, first + rest)
    return found


def _check(x: SecretTensor, least: float) -> None:
    """Reports numbers whose results saturate, under the plain reference protocol."""
    if x._session.is_plain:
        values = x._parts[0] * 2.0**-x._scale.bits
        near = (values.abs() < least) | ((values < 0) & ((values - values.round()).abs() < least))
        ranges.check_domain(
            x._session,
            near,
            "a derivative of digamma so near to a pole that it saturates",
            "keep its arguments away from zero and from negative whole numbers",
        )


def _zeta_of_next(inverses: SecretTensor, n: int) -> SecretTensor:
    """Returns ζ(n + 1, y + 1), given 1/y, 1/(y + 1) and so on."""
    last, s = inverses[-1], n + 1
    power = last**n
    tail = power * (1.0 / n) + power * last * (last * (s / 12.0) + 0.5)
    found: SecretTensor = (inverses[1:-1] ** s).sum(0) + tail
    return found


def _derived_cotangent(x: SecretTensor, n: int) -> SecretTensor:
    """Returns the derivative of order n of π·cot πz, given its value x.

    It is a polynomial P(x). The next one is −(π² + x²)·P′(x).
    """
    polynomial = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(polynomial)][1:]
        polynomial = [0.0] * (len(slope) + 2)
        for k, c in enumerate(slope):
            polynomial[k] -= math.pi**2 * c
            polynomial[k + 2] -= c
    *others, highest = polynomial
    found = x * highest + others.pop()
    while others:
        found = found * x + others.pop()
    return found
