"""Comparisons.

A comparison takes one sign bit. Its width is the session's comparison width for numbers of that
scale. Full 64-bit words take three sign bits (``compare_words``).
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from tacit.fixed import WORD
from tacit.operators.dispatch.operands import (
    aligned,
    alike,
    as_words,
    bits_of,
    compared,
    fraction,
    in_full,
    is_secret,
    lifted,
    number,
    public,
    session_of,
)
from tacit.operators.dispatch.table import implements
from tacit.operators.numerics.bounds import (
    Bound,
    bound_of,
    fill_known,
    known_results,
    whole_above,
    whole_below,
    whole_equal,
)
from tacit.operators.numerics.compare_words import difference_width, less, opposite
from tacit.operators.numerics.remembered_softmax import Argument, argument_of, seen_as
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Probabilities below this, or closer than this to 1, are compared by their arguments.
NEAR = 2.0**-10


def _compared(x: Any, y: Any) -> tuple[Session, Parts, Parts, int]:
    """Returns the session, x, y, and the width at which they are compared."""
    session = session_of(x, y)
    left, right, scale = aligned(x, y)
    return session, left, right, difference_width(session, scale, x, y)


def _bound(x: SecretTensor, value: Any, whole: Callable[[Any], Bound]) -> Bound:
    """Returns a public operand as a bound of x.

    If x holds integers, the bound becomes a whole number of any size.
    """
    if not x.dtype.is_floating_point and public(value).is_floating_point():
        return whole(value)
    return bound_of(x._session, alike(x, value)[1], x)


@implements(aten.lt.Tensor, aten.lt.Scalar)
def lt(x: Any, y: Any) -> SecretTensor:
    """Returns x < y, in the rounds of a sign.

    int64 takes one more round, except if y is a public 0. Nothing is compared with a public number
    that is beyond all secrets.
    """
    if is_secret(x) and is_secret(y):
        session, left, right, width = _compared(x, y)
        return bits_of(session, less(session, left, right, width))
    near = _near_an_end(x, y)
    if near is None:
        return _by_public(x, y)
    # The argument is not what a stated width is for.
    with in_full(session_of(x, y)):
        return _by_public(*_by_argument(x, y, *near))


def _by_public(x: Any, y: Any) -> SecretTensor:
    return _less_than_public(x, y) if is_secret(x) else _greater_than_public(y, x)


def _near_an_end(x: Any, y: Any) -> tuple[Argument, float] | None:
    """Returns the argument of a probability and the public number near 0 or 1 that it is compared
    with; ``None`` for all other operands."""
    secret, other = (x, y) if is_secret(x) else (y, x)
    chance, known = number(other), argument_of(secret)
    is_near = chance is not None and (0.0 < chance < NEAR or 1.0 - NEAR < chance < 1.0)
    if known is None or chance is None or not is_near or known.clamped is not None:
        return None
    return known, chance


def _by_argument(x: Any, y: Any, known: Argument, chance: float) -> tuple[Any, Any]:
    """Replaces a probability that is compared with a public number near 0 or 1.

    A probability has few bits there. The result of a sigmoid becomes its argument, and the result
    of a softmax its logarithm. The number is mapped in the same way.
    """
    secret = x if is_secret(x) else y
    if known.dim is None:
        found, bound = fraction(seen_as(known.x, secret)), math.log(chance / (1.0 - chance))
    else:
        found = seen_as(aten._log_softmax.default(known.x, known.dim, False), secret)
        bound = math.log(chance)
    return (found, bound) if is_secret(x) else (bound, found)


def _less_than_public(x: SecretTensor, value: Any) -> SecretTensor:
    session, bound = x._session, _bound(x, value, whole_above)
    if bound.is_above or bound.is_below:
        return known_results(session, x, bound, above=True, below=False)
    width = difference_width(session, bound.scale, x, bound.words)
    words = shares.trivial(session, bound.words) if width <= WORD else bound.words
    bits = bits_of(session, less(session, lifted(session, x, bound.scale), words, width))
    return fill_known(bits, bound, above=True, below=False)


def _greater_than_public(x: SecretTensor, value: Any) -> SecretTensor:
    session, bound = x._session, _bound(x, value, whole_below)
    if bound.is_above or bound.is_below:
        return known_results(session, x, bound, above=False, below=True)
    width, words = (
        difference_width(session, bound.scale, x, bound.words),
        lifted(session, x, bound.scale),
    )
    if width <= WORD:
        bits = less(session, shares.trivial(session, bound.words), words, width)
    else:
        bits = less(session, opposite(session, words), ~bound.words, width)
    return fill_known(bits_of(session, bits), bound, above=False, below=True)


@implements(aten.gt.Tensor, aten.gt.Scalar)
def gt(x: Any, y: Any) -> SecretTensor:
    """Returns x > y."""
    return lt(y, x)


@implements(aten.ge.Tensor, aten.ge.Scalar)
def ge(x: Any, y: Any) -> SecretTensor:
    """Returns x ≥ y."""
    less = lt(x, y)
    return less.like(shares.complement(less._session, less._parts))


@implements(aten.le.Tensor, aten.le.Scalar)
def le(x: Any, y: Any) -> SecretTensor:
    """Returns x ≤ y."""
    return ge(y, x)


@implements(aten.eq.Tensor, aten.eq.Scalar)
def eq(x: Any, y: Any) -> SecretTensor:
    """Returns x = y, exactly as they are encoded."""
    if is_secret(x) and is_secret(y):
        session, left, right, width = _compared(x, y)
        return _equal(session, left, right, width)
    x, value = (x, y) if is_secret(x) else (y, x)
    session, bound = x._session, _bound(x, value, whole_equal)
    if bound.is_above or bound.is_below:
        return known_results(session, x, bound, above=False, below=False)
    width = difference_width(session, bound.scale, x, bound.words)
    bits = _equal(
        session, lifted(session, x, bound.scale), shares.trivial(session, bound.words), width
    )
    return fill_known(bits, bound, above=False, below=False)


def _equal(session: Session, x: Parts, y: Parts, width: int) -> SecretTensor:
    # Equality needs no sign bit: only a difference of zero is 0 modulo 2^width.
    return bits_of(session, shares.equal_zero(session, shares.subtract(x, y), min(width, WORD)))


@implements(aten.ne.Tensor, aten.ne.Scalar)
def ne(x: Any, y: Any) -> SecretTensor:
    """Returns x ≠ y, exactly as they are encoded."""
    equal = eq(x, y)
    return equal.like(shares.complement(equal._session, equal._parts))


@implements(aten.sign.default, aten.sgn.default)
def sign(x: SecretTensor) -> SecretTensor:
    """Returns −1, 0 or 1. Booleans stay as they are.

    Both comparisons run in parallel. int64 takes one more round.
    """
    if x.dtype == torch.bool:
        return x
    session, x = x._session, as_words(x)
    stacked = tuple(torch.stack([part, -part]) for part in x._parts)
    signs = shares.sign(session, stacked, compared(session, x._scale))
    if x.dtype == torch.int64:
        # The minimum of int64 is its own negative. It is less than 0, so it must not count as
        # greater too.
        negative, positive = shares.unstacked(signs)
        positive = shares.and_bits(session, positive, shares.complement(session, negative))
        signs = shares.stacked(negative, positive)
    ones = shares.bit_to_ring(session, signs)
    return x.like(tuple((one[1] - one[0]) << x._scale.bits for one in ones))


@implements(aten.signbit.default)
def signbit(x: SecretTensor) -> SecretTensor:
    """Returns x < 0. There is no negative zero."""
    return lt(x, 0)


@implements(aten.isnan.default, aten.isinf.default, aten.isposinf.default, aten.isneginf.default)
def never(x: SecretTensor) -> torch.Tensor:
    """Returns false everywhere, since fixed-point numbers are finite."""
    return torch.zeros(x.shape, dtype=torch.bool)
