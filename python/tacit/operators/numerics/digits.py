"""Products by numbers that have more bits than a product has room for.

Inverse roots are such numbers: they are small if the roots are large. They are split into a sum of
*digits*, so that the product by each digit is in range.

All steps are the protocol's own operations on shares, in an order that follows from public numbers
alone."""

from collections.abc import Sequence
from typing import NamedTuple

from tacit.operators.dispatch.operands import together
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts

#: Fraction bits that each digit has more than the one before. With these, a product by a word of 46
#: bits is in range.
BITS = 15

#: Largest number of digits. Further fraction bits are dropped.
MOST = 3


class Digit(NamedTuple):
    """One summand of a number."""

    parts: Parts
    #: Its fraction bits.
    bits: int


def digits(session: Session, x: Parts, bits: int, first: int) -> list[Digit]:
    """Splits a number with the given fraction bits into digits.

    The first digit has ``first`` fraction bits, or all if there are no more. Takes two truncations
    at most."""
    most = first + (MOST - 1) * BITS
    if bits > most:
        x, bits = shares.truncate(session, x, bits - most), most
    found = []
    for at in range(first, bits, BITS):
        digit = shares.truncate(session, x, bits - at)
        found.append(Digit(digit, at))
        x = tuple(part - (high << (bits - at)) for part, high in zip(x, digit, strict=True))
    return [*found, Digit(x, bits)]


def times_secret(session: Session, x: Parts, by: Sequence[Digit]) -> Digit:
    """Multiplies secret words by a number in digits.

    The product has the fraction bits of x and those of the first digit."""
    pairs = [together(x, digit.parts) for digit in by]
    left, right = (shares.stacked(*operands) for operands in zip(*pairs, strict=True))
    return _sum(
        session, shares.unstacked(bilinear.multiply(session, left, right, 0, in_range=True)), by
    )


def times_public(session: Session, word: int, by: Sequence[Digit]) -> Digit:
    """Multiplies a public word by a number in digits. Only the truncations interact."""
    return _sum(session, [tuple(part * word for part in digit.parts) for digit in by], by)


def _sum(session: Session, products: Sequence[Parts], by: Sequence[Digit]) -> Digit:
    """Adds products by digits, from the smallest on, truncated to the bits of the next digit."""
    found, bits = products[-1], by[-1].bits
    for product, digit in zip(products[-2::-1], by[-2::-1], strict=True):
        found = shares.add(shares.truncate(session, found, bits - digit.bits), product)
        bits = digit.bits
    return Digit(found, bits)
