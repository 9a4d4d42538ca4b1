"""Exact quotients of words, all of int64: estimates of the quotient, each made of what the last one
left, and in the end comparisons of what is left with multiples of the divisor."""

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
from tacit.sharings import shares
from tacit.sharings.shares import Parts

#: Magnitudes of whole words (int64) have that many bits; truncation takes one less.
WHOLE = 63

#: Significant bits of a public reciprocal.
_SIGNIFICANT = 15

#: Greater public divisors are compared with: there are few multiples of them.
_LARGE = 1 << 59

#: Width that secret divisors fill; greater ones are compared with alone.
_FILLED = 62

#: Fraction bits of a divisor's reciprocal: of the series, and after a step of Newton's.
_ROUGH, _FINE = 16, 29

#: What the reciprocal may be too large by, in its units, and so is made less: from truncations
#: before it.
_EXCESS = 8

#: Bits of what is divided that an estimate takes, so that its product with a reciprocal stays in
#: range.
_TAKEN = 31

#: Divisors are of four classes, of 2^_CLASS powers of two each. By an estimate what is left becomes
#: 2^−24 of what there was, or a few times the divisor: enough for the greatest class, which takes
#: no part in the next. These are the bits that there may be where 4, 3, 2 and 1 classes are left.
_CLASS = 4
_BOUNDS = (WHOLE, 49, 33, 17)

#: Multiples of a divisor that an estimate may lack: its own truncations, or all of a large one's
#: quotient.
_LACKING = 5


def by_public(session: Session, x: Parts, divisor: int, bits: int, more: int = 0) -> Parts:
    """⌊(x + more) / divisor⌋ for a public divisor that is positive, and 0 ≤ more < divisor.

    Domain: |x| < 2^bits, whole words (63 bits) or at most 60, with divisors below 2^60; then it is
    exact. A truncation or two for each 14 bits of the quotient, and a comparison: 10 to 16 rounds,
    26 to 30 of whole words, nine by the largest divisors; for bits docs/accuracy.md has examples.
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
    """The quotients of the three highest bits, and x with these bits' remainders in their place:
    from 0, and below 2^61 + 3·divisor."""
    worth = [-1 << 63, 1 << 62, 1 << 61]
    signs = shares.sign(
        session, tuple(torch.stack([part << n for n in range(3)]) for part in x), WORD
    )
    ones = shares.bit_to_ring(session, signs)
    quotients = torch.tensor([of // divisor for of in worth]).reshape(3, *[1] * x[0].dim())
    taken = torch.tensor([of - of % divisor for of in worth[1:]])
    # Modulo 2^64 the highest bit is worth that too.
    taken = torch.cat([torch.tensor([worth[0] // divisor]) * divisor, taken]).reshape(
        quotients.shape
    )
    return (
        tuple((one * quotients).sum(0) for one in ones),
        tuple(part - (one * taken).sum(0) for part, one in zip(x, ones, strict=True)),
    )


def _counted(session: Session, x: Parts, divisor: int, more: int) -> Parts:
    """The quotient of a whole word by a large divisor: how many of its multiples are not above."""
    limits = range(-((1 << 63) // divisor) - 1, (1 << 63) // divisor + 2)
    multiples = {n: n * divisor - more for n in limits}
    multiples = {n: of for n, of in multiples.items() if -1 << 63 < of < 1 << 63}
    words = torch.tensor(list(multiples.values())).reshape(-1, *[1] * x[0].dim())
    below = shares.bit_to_ring(session, less(session, x, words, WORD + 1))
    highest = shares.trivial(session, torch.tensor(max(multiples)))
    return tuple(most - part.sum(0) for most, part in zip(highest, below, strict=True))


def _estimate(session: Session, x: Parts, divisor: int, ratio: float) -> tuple[Parts, float]:
    """About x / divisor for |x| up to ratio·divisor, and how much may be missing."""
    places = divisor.bit_length() - 1 + _SIGNIFICANT
    factor = fixed.word(1 / divisor, places)
    # As many bits less as the product needs to stay in range.
    drop = max(0, math.ceil(math.log2(ratio * divisor)) + _SIGNIFICANT + 1 - fixed.RANGE)
    product = tuple(part * factor for part in shares.truncate(session, x, drop))
    # What is not dropped is not missing: a divisor of a few units would never come to an end.
    dropped = 2.0 ** (drop + 1) / divisor if drop else 0.0
    missing = ratio * 2.0**-_SIGNIFICANT + dropped + 1.0
    return rescaled_by(session, product, places - drop), missing


def _missing(session: Session, rest: Parts, divisor: int) -> Parts:
    """⌊rest / divisor⌋ where it is −2 to 1."""
    words = torch.tensor([-divisor, 0, divisor]).reshape(3, *[1] * rest[0].dim())
    below = shares.bit_to_ring(session, less(session, rest, words, WORD))
    one = shares.trivial(session, torch.tensor(1))
    return tuple(unit - part.sum(0) for unit, part in zip(one, below, strict=True))


# By a secret
# ----------------------------------------------------------------------------


def by_secret(session: Session, x: Parts, y: Parts, bits: int, *, to_zero: bool = False) -> Parts:
    """⌊x / y⌋, or x / y towards zero, for secret y of the same shape.

    Domain: |x|, |y| < 2^bits, at most 46, or whole words (63); then it is exact. A divisor of 0
    counts as 1, the smallest of its scale.
    Cost: 134 rounds, 21492 bits of int64; 102 rounds, 16826 bits of fractions; 86 rounds, 14848
    bits of int32; 75 rounds, 13441 bits of int16, int8 and uint8.
    """
    asked = [x, *(tuple(part << n for part in y) for n in range(3 if bits == WHOLE else 1))]
    negative, below, *highest = shares.unstacked(shares.sign(session, shares.stacked(*asked), WORD))
    zero = shares.equal_zero(session, shares.stacked(x, y), WORD)
    no_dividend, no_divisor = shares.unstacked(zero)
    # Zero has no sign: its quotient is not negative.
    unlike = shares.xor(
        negative, shares.and_bits(session, below, shares.complement(session, no_dividend))
    )
    x, y = shares.unstacked(flipped(session, shares.stacked(negative, below), shares.stacked(x, y)))
    one, wrong = shares.unstacked(shares.bit_to_ring(session, shares.stacked(no_divisor, unlike)))
    y = shares.add(y, one)
    # Of a negative number −a the floor is −1 − ⌊(a − 1) / y⌋.
    x = x if to_zero else shares.subtract(x, wrong)
    small: Parts = ()
    if highest:
        # Those below 2^61, whose highest bits are all as the sign.
        either = shares.stacked(*(shares.xor(below, bit) for bit in highest))
        first, second = shares.unstacked(either)
        large = shares.xor(shares.xor(first, second), shares.and_bits(session, first, second))
        small = shares.complement(session, large)
    quotient = flipped(session, unlike, _of_magnitudes(session, x, y, bits, small))
    return quotient if to_zero else shares.subtract(quotient, wrong)


def _of_magnitudes(session: Session, x: Parts, y: Parts, bits: int, small: Parts) -> Parts:
    """⌊x / y⌋ for 0 ≤ x, 0 < y, as words without a sign up to 2^bits. Of divisors that are not
    ``small``, if that is given, nothing is estimated."""
    divisor = shares.bit_multiply(session, small, y) if small else y
    filled = normal(session, divisor, width=_FILLED)
    inverse, chosen = _inverse(session, filled), _classes(session, filled, small)
    fine = power_of_two(session, filled.places[:_CLASS])
    quotient = tuple(torch.zeros_like(part) for part in x)
    for first, bound in enumerate(_BOUNDS):
        # Nothing to estimate where the divisors of the greatest class go into that many bits twice
        # at most.
        if bits <= _least(first) + 1:
            continue
        part = _part(session, x, inverse, chosen[first:], fine, bound)
        quotient = shares.add(quotient, part)
        x = shares.subtract(x, shares.multiply(session, part, y, 0))
    return shares.add(quotient, _lacking(session, x, y))


def _least(number: int) -> int:
    """Of the least divisor of a class the logarithm."""
    return max(0, _FILLED - (number + 1 << _CLASS))


def _inverse(session: Session, filled: Normal) -> Parts:
    """2^width / the word that fills it, _FINE fraction bits: never too much, by 2^−25 too little at
    most."""
    bits = fixed.RANGE - 32
    word = shares.multiply(session, *filled.factors, _FILLED - bits)
    total = evaluate(session, argument(session, word, bits, 0.5), coefficients.RECIPROCAL)
    rough = shares.truncate(session, total, RESULT - _ROUGH)
    one = shares.trivial(session, torch.tensor(1 << (bits + _ROUGH)))
    error = shares.subtract(
        tuple(part.expand(word[0].shape) for part in one), shares.multiply(session, word, rough, 0)
    )
    change = shares.multiply(session, error, rough, bits + 2 * _ROUGH - _FINE)
    return tuple(
        (part << (_FINE - _ROUGH)) + more - less_by
        for part, more, less_by in zip(
            rough, change, shares.trivial(session, torch.tensor(_EXCESS)), strict=True
        )
    )


def _classes(session: Session, filled: Normal, small: Parts) -> list[Parts]:
    """Which class a divisor is of, by its leading zeros: 0 to 15, 16 to 31, and so on; of none if
    it is not small. As ring elements 0 or 1."""
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


def _part(
    session: Session, x: Parts, inverse: Parts, chosen: list[Parts], fine: Parts, bound: int
) -> Parts:
    """x / divisor for x from 0 to 2^bound, not too much, where the divisor is of one of the last
    classes; 0 for others."""
    drop = max(0, bound - _TAKEN)
    product = shares.multiply(session, _dropped(session, x, drop, bound == WHOLE), inverse, 0)
    groups: dict[int, list[tuple[Parts, Parts]]] = {}
    for number, of in enumerate(chosen, len(_BOUNDS) - len(chosen)):
        # x / divisor = product·2^zeros / 2^(_FINE + _FILLED − drop): dropped in the end is what
        # leaves the quotients of the class in range, the rest before.
        last = max(0, min(15, fixed.RANGE - 1 - bound + _least(number)))
        places = _FINE + _FILLED - drop - last - (number << _CLASS)
        shifted = _less(session, shares.truncate(session, product, places))
        groups.setdefault(last, []).append((of, shifted))
    # What is rounded up is taken back, where there is anything.
    found = [tuple(-sum(parts) for parts in zip(*chosen, strict=True))]
    for last, pairs in groups.items():
        classes, words = (shares.stacked(*side) for side in zip(*pairs, strict=True))
        words = tuple(part.sum(0) for part in shares.multiply(session, classes, words, 0))
        found.append(shares.multiply(session, words, fine, last))
    return tuple(torch.stack(parts).sum(0) for parts in zip(*found, strict=True))


def _less(session: Session, x: Parts) -> Parts:
    """x − 1: not more than what was truncated to x."""
    return plus(session, x, -1.0, 0)


def _dropped(session: Session, x: Parts, bits: int, whole: bool) -> Parts:
    """x / 2^bits, not more and by two at most less, for x from 0; of whole words up to 2^63, whose
    highest bits are taken off for the truncation."""
    if not bits:
        return x
    if not whole:
        return _less(session, shares.truncate(session, x, bits))
    signs = shares.sign(session, tuple(torch.stack([part, part << 1]) for part in x), WORD)
    ones = shares.bit_to_ring(session, signs)
    rest = tuple(part - (one[0] << 63) - (one[1] << 62) for part, one in zip(x, ones, strict=True))
    low = shares.truncate(session, rest, bits)
    high = tuple((one[0] << (63 - bits)) + (one[1] << (62 - bits)) for one in ones)
    return _less(session, shares.add(low, high))


def _lacking(session: Session, rest: Parts, divisor: Parts) -> Parts:
    """⌊rest / divisor⌋ where it is 0 to _LACKING, for a rest from 0 to 2^63: whether the divisor
    goes into it once, twice and so on, each only if it does once less, since greater multiples may
    be no words."""
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
