"""Exact quotients of words, for all of int64.

Each step estimates the quotient of the remainder that the last step left. In the end the remainder
is compared with multiples of the divisor."""

import math

import torch

from tacit import fixed
from tacit.fixed import WORD
from tacit.operators.numerics.approximation import coefficients
from tacit.operators.numerics.approximation.normal import (
    Normal,
    argument,
    normal,
    power_of_two,
    rescaled_by,
)
from tacit.operators.numerics.approximation.quotients import flipped
from tacit.operators.numerics.approximation.series import RESULT, evaluate, plus
from tacit.operators.numerics.compare_words import less
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts

#: Bits of magnitudes of whole words (int64). Truncation takes one bit less.
WHOLE = 63

#: Significant bits of a public reciprocal.
_SIGNIFICANT = 15

#: Larger public divisors take comparisons alone, since few of their multiples are words.
_LARGE = 1 << 59

#: Width that secret divisors are shifted up to fill. Larger ones take comparisons alone.
_FILLED = 62

#: Fraction bits of a divisor's reciprocal: from the series, and after a Newton step.
_ROUGH, _FINE = 16, 29

#: Units by which truncations may make the reciprocal too large. They are subtracted from it.
_EXCESS = 8

#: Leading bits of the dividend that an estimate takes, so that its product with a reciprocal stays
#: in range.
_TAKEN = 31

#: Divisors are in four classes, of 2^_CLASS powers of two each. An estimate reduces the remainder
#: to 2^−24 of itself, or to a few times the divisor. That is enough for the greatest class, which
#: takes no part in the next estimate. _BOUNDS are the bits of the remainder while 4, 3, 2 and 1
#: classes are left.
_CLASS = 4
_BOUNDS = (WHOLE, 49, 33, 17)

#: Most multiples of a divisor that the estimates may lack, because of their truncations, or because
#: the quotient by a large divisor is not estimated.
_LACKING = 5


def by_public(session: Session, x: Parts, divisor: int, bits: int, more: int = 0) -> Parts:
    """Computes ⌊(x + more) / divisor⌋ for a positive public divisor, and 0 ≤ more < divisor.

    Domain: |x| < 2^bits, where ``bits`` is 63 (whole words) or at most 60 with divisors below 2^60.
    In this domain the result is exact.

    Cost: a truncation or two for each 14 bits of the quotient, and a comparison. These are 10 to 16
    rounds, 26 to 30 for whole words, and nine for the largest divisors. docs/accuracy.md has
    examples of bits.
    """
    if bits == WHOLE and divisor >= _LARGE:
        return _counted(session, x, divisor, more)
    quotient = tuple(torch.zeros_like(part) for part in x)
    if bits == WHOLE:
        quotient, x = _without_highest(session, x, divisor)
        bits = fixed.RANGE
    rest = shares.add(x, shares.trivial(session, torch.tensor(more)))
    ratio = 2.0**bits / divisor + (more > 0)
    while ratio >= 1.5:
        part, ratio = _estimate(session, rest, divisor, ratio)
        quotient = shares.add(quotient, part)
        rest = tuple(left - divisor * found for left, found in zip(rest, part, strict=True))
    return shares.add(quotient, _missing(session, rest, divisor))


def _without_highest(session: Session, x: Parts, divisor: int) -> tuple[Parts, Parts]:
    """Takes the three highest bits off x.

    Returns their quotients, and x with the remainders of these bits in their place. That is at
    least 0 and below 2^61 + 3·divisor."""
    worth = [-1 << 63, 1 << 62, 1 << 61]
    signs = shares.sign(
        session, tuple(torch.stack([part << n for n in range(3)]) for part in x), WORD
    )
    ones = shares.bit_to_ring(session, signs)
    quotients = torch.tensor([of // divisor for of in worth]).reshape(3, *[1] * x[0].dim())
    taken = torch.tensor([of - of % divisor for of in worth[1:]])
    # The highest bit is worth −2^63. The floor of its quotient, times the divisor, may be less; it
    # wraps around modulo 2^64.
    taken = torch.cat([torch.tensor([worth[0] // divisor]) * divisor, taken]).reshape(
        quotients.shape
    )
    return (
        tuple((one * quotients).sum(0) for one in ones),
        tuple(part - (one * taken).sum(0) for part, one in zip(x, ones, strict=True)),
    )


def _counted(session: Session, x: Parts, divisor: int, more: int) -> Parts:
    """Computes the quotient of a whole word by a large divisor.

    The quotient follows from the number of multiples of the divisor that are above the word."""
    limits = range(-((1 << 63) // divisor) - 1, (1 << 63) // divisor + 2)
    multiples = {n: n * divisor - more for n in limits}
    multiples = {n: of for n, of in multiples.items() if -1 << 63 < of < 1 << 63}
    words = torch.tensor(list(multiples.values())).reshape(-1, *[1] * x[0].dim())
    below = shares.bit_to_ring(session, less(session, x, words, WORD + 1))
    highest = shares.trivial(session, torch.tensor(max(multiples)))
    return tuple(most - part.sum(0) for most, part in zip(highest, below, strict=True))


def _estimate(session: Session, x: Parts, divisor: int, ratio: float) -> tuple[Parts, float]:
    """Estimates x / divisor for |x| up to ratio·divisor; also bounds how much may be missing."""
    places = divisor.bit_length() - 1 + _SIGNIFICANT
    factor = fixed.word(1 / divisor, places)
    # Bits that must be dropped so that the product stays in range.
    drop = max(0, math.ceil(math.log2(ratio * divisor)) + _SIGNIFICANT + 1 - fixed.RANGE)
    product = tuple(part * factor for part in shares.truncate(session, x, drop))
    # If no bits are dropped, nothing is added for them. Otherwise the ratio would stay large for a
    # divisor of a few units, and the loop of the caller would not end.
    dropped = 2.0 ** (drop + 1) / divisor if drop else 0.0
    missing = ratio * 2.0**-_SIGNIFICANT + dropped + 1.0
    return rescaled_by(session, product, places - drop), missing


def _missing(session: Session, rest: Parts, divisor: int) -> Parts:
    """Computes ⌊rest / divisor⌋ if it is from −2 to 1."""
    words = torch.tensor([-divisor, 0, divisor]).reshape(3, *[1] * rest[0].dim())
    below = shares.bit_to_ring(session, less(session, rest, words, WORD))
    one = shares.trivial(session, torch.tensor(1))
    return tuple(unit - part.sum(0) for unit, part in zip(one, below, strict=True))


# Quotients by a secret
# ----------------------------------------------------------------------------


def by_secret(session: Session, x: Parts, y: Parts, bits: int, *, to_zero: bool = False) -> Parts:
    """Computes ⌊x / y⌋, or x / y rounded towards zero, for secret y of the same shape.

    Domain: |x|, |y| < 2^bits, where ``bits`` is at most 46, or 63 for whole words. In this domain
    the result is exact. A divisor of 0 counts as 1, the smallest number of its scale.
    Cost: 134 rounds, 21492 bits of int64; 102 rounds, 16826 bits of fractions; 86 rounds, 14848
    bits of int32; 75 rounds, 13441 bits of int16, int8 and uint8.
    """
    asked = [x, *(tuple(part << n for part in y) for n in range(3 if bits == WHOLE else 1))]
    negative, below, *highest = shares.unstacked(shares.sign(session, shares.stacked(*asked), WORD))
    zero = shares.equal_zero(session, shares.stacked(x, y), WORD)
    no_dividend, no_divisor = shares.unstacked(zero)
    # A dividend of zero has no sign: its quotient is not negative.
    unlike = shares.xor(
        negative, shares.and_bits(session, below, shares.complement(session, no_dividend))
    )
    x, y = shares.unstacked(flipped(session, shares.stacked(negative, below), shares.stacked(x, y)))
    one, wrong = shares.unstacked(shares.bit_to_ring(session, shares.stacked(no_divisor, unlike)))
    y = shares.add(y, one)
    # The floor of a negative quotient −a / y is −1 − ⌊(a − 1) / y⌋.
    x = x if to_zero else shares.subtract(x, wrong)
    small: Parts = ()
    if highest:
        # Divisors below 2^61, whose highest bits all equal the sign.
        either = shares.stacked(*(shares.xor(below, bit) for bit in highest))
        first, second = shares.unstacked(either)
        large = shares.xor(shares.xor(first, second), shares.and_bits(session, first, second))
        small = shares.complement(session, large)
    quotient = flipped(session, unlike, _of_magnitudes(session, x, y, bits, small))
    return quotient if to_zero else shares.subtract(quotient, wrong)


def _of_magnitudes(session: Session, x: Parts, y: Parts, bits: int, small: Parts) -> Parts:
    """Computes ⌊x / y⌋ for 0 ≤ x and 0 < y, as unsigned words up to 2^bits.

    Args:
        small: bits that are set for divisors for which the quotient is estimated; if empty, all.
    """
    divisor = shares.bit_multiply(session, small, y) if small else y
    filled = normal(session, divisor, width=_FILLED)
    inverse, chosen = _inverse(session, filled), _classes(session, filled, small)
    fine = power_of_two(session, filled.places[:_CLASS])
    quotient = tuple(torch.zeros_like(part) for part in x)
    for first, bound in enumerate(_BOUNDS):
        # There is nothing to estimate if the divisors of the greatest class go into words of
        # ``bits`` bits at most twice.
        if bits <= _least(first) + 1:
            continue
        estimate = _partial_quotient(session, x, inverse, chosen[first:], fine, bound)
        quotient = shares.add(quotient, estimate)
        x = shares.subtract(x, bilinear.multiply(session, estimate, y, 0))
    return shares.add(quotient, _lacking(session, x, y))


def _least(number: int) -> int:
    """Returns the binary logarithm of the least divisor of a class."""
    return max(0, _FILLED - (number + 1 << _CLASS))


def _inverse(session: Session, filled: Normal) -> Parts:
    """Computes 2^width / the word that fills the width, with _FINE fraction bits.

    The result is never too large, and too small by at most 2^−25."""
    bits = fixed.RANGE - 32
    word = bilinear.multiply(session, *filled.factors, _FILLED - bits)
    total = evaluate(session, argument(session, word, bits, 0.5), coefficients.RECIPROCAL)
    rough = shares.truncate(session, total, RESULT - _ROUGH)
    one = shares.trivial(session, torch.tensor(1 << (bits + _ROUGH)))
    error = shares.subtract(
        tuple(part.expand(word[0].shape) for part in one),
        bilinear.multiply(session, word, rough, 0),
    )
    change = bilinear.multiply(session, error, rough, bits + 2 * _ROUGH - _FINE)
    return tuple(
        (part << (_FINE - _ROUGH)) + more - less_by
        for part, more, less_by in zip(
            rough, change, shares.trivial(session, torch.tensor(_EXCESS)), strict=True
        )
    )


def _classes(session: Session, filled: Normal, small: Parts) -> list[Parts]:
    """Returns the class of a divisor as four ring elements 0 or 1.

    The classes are 0 to 15 leading zeros, 16 to 31, and so on. A divisor that is not small is in no
    class."""
    low, high = filled.digits[_CLASS:]
    both = shares.and_bits(session, low, high)
    only_low, only_high = shares.xor(low, both), shares.xor(high, both)
    neither = shares.complement(session, shares.xor(only_low, high))
    chosen = shares.stacked(neither, only_low, only_high, both)
    if small:
        chosen = shares.and_bits(
            session, chosen, tuple(bit.expand(chosen[0].shape) for bit in small)
        )
    return shares.unstacked(shares.bit_to_ring(session, chosen))


def _partial_quotient(
    session: Session, x: Parts, inverse: Parts, chosen: list[Parts], fine: Parts, bound: int
) -> Parts:
    """Estimates x / divisor from below, for x from 0 to 2^bound and the given classes of divisors.

    ``chosen`` holds the last classes. The result is 0 for divisors of other classes."""
    drop = max(0, bound - _TAKEN)
    product = bilinear.multiply(session, _dropped(session, x, drop, bound == WHOLE), inverse, 0)
    groups: dict[int, list[tuple[Parts, Parts]]] = {}
    for number, of in enumerate(chosen, len(_BOUNDS) - len(chosen)):
        # x / divisor = product·2^zeros / 2^(_FINE + _FILLED − drop). As many bits are dropped last
        # as keep the quotients of the class in range, and the others before.
        last = max(0, min(15, fixed.RANGE - 1 - bound + _least(number)))
        places = _FINE + _FILLED - drop - last - (number << _CLASS)
        shifted = _minus_one(session, shares.truncate(session, product, places))
        groups.setdefault(last, []).append((of, shifted))
    # Subtracts one if the divisor is in one of the classes, since truncations may round up.
    found = [tuple(-sum(parts) for parts in zip(*chosen, strict=True))]
    for last, pairs in groups.items():
        classes, words = (shares.stacked(*side) for side in zip(*pairs, strict=True))
        words = tuple(part.sum(0) for part in bilinear.multiply(session, classes, words, 0))
        found.append(bilinear.multiply(session, words, fine, last))
    return tuple(torch.stack(parts).sum(0) for parts in zip(*found, strict=True))


def _minus_one(session: Session, x: Parts) -> Parts:
    """Returns x − 1, which is a lower bound of the number that was truncated to x."""
    return plus(session, x, -1.0, 0)


def _dropped(session: Session, x: Parts, bits: int, whole: bool) -> Parts:
    """Computes x / 2^bits for x ≥ 0, rounded down, and at most two too small.

    The words may be whole, up to 2^63. Their highest bits are taken off for the truncation."""
    if not bits:
        return x
    if not whole:
        return _minus_one(session, shares.truncate(session, x, bits))
    signs = shares.sign(session, tuple(torch.stack([part, part << 1]) for part in x), WORD)
    ones = shares.bit_to_ring(session, signs)
    rest = tuple(part - (one[0] << 63) - (one[1] << 62) for part, one in zip(x, ones, strict=True))
    low = shares.truncate(session, rest, bits)
    high = tuple((one[0] << (63 - bits)) + (one[1] << (62 - bits)) for one in ones)
    return _minus_one(session, shares.add(low, high))


def _lacking(session: Session, rest: Parts, divisor: Parts) -> Parts:
    """Computes ⌊rest / divisor⌋ if it is from 0 to _LACKING, for a rest from 0 to 2^63.

    It counts whether the divisor goes into the rest once, twice and so on. Each counts only if all
    smaller multiples do, since greater multiples may overflow."""
    rests = shares.stacked(
        *(
            tuple(r - n * d for r, d in zip(rest, divisor, strict=True))
            for n in range(1, _LACKING + 1)
        )
    )
    goes = shares.complement(session, shares.sign(session, rests, WORD))
    distance = 1
    while distance < _LACKING:
        early, late = (
            tuple(bit[rows] for bit in goes) for rows in (slice(-distance), slice(distance, None))
        )
        joined = shares.and_bits(session, early, late)
        goes = tuple(
            torch.cat([bit[:distance], more]) for bit, more in zip(goes, joined, strict=True)
        )
        distance *= 2
    return tuple(one.sum(0) for one in shares.bit_to_ring(session, goes))
