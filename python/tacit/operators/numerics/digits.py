"""Products by numbers that have more bits than a product has room for, such as inverse roots, which
are small
where roots are large: these are sums of *digits*, and products by each are in range.

Steps are the protocol's own operations on shares, in an order that follows from public numbers
alone."""

from collections.abc import Sequence
from typing import NamedTuple

from tacit.operators.dispatch.operands import together
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts

#: Fraction bits that each digit has more than the one before, which leave products with what has 46
#: in range.
BITS = 15

#: Digits, at most: more fraction bits are dropped.
MOST = 3


class Digit(NamedTuple):
    """One of the summands of a number."""

    parts: Parts
    #: Its fraction bits.
    bits: int


def digits(session: Session, x: Parts, bits: int, first: int) -> list[Digit]:
    """A number with so many fraction bits as digits, of which the first has ``first`` of them, or
    all if there are no more; two truncations at most."""
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
    """The product with a secret, as words, which has the first digit's fraction bits besides those
    of x."""
    pairs = [together(x, digit.parts) for digit in by]
    left, right = (shares.stacked(*operands) for operands in zip(*pairs, strict=True))
    return _sum(
        session, shares.unstacked(shares.multiply(session, left, right, 0, in_range=True)), by
    )


def times_public(session: Session, word: int, by: Sequence[Digit]) -> Digit:
    """The same with a public word; no interaction but truncations."""
    return _sum(session, [tuple(part * word for part in digit.parts) for digit in by], by)


def _sum(session: Session, products: Sequence[Parts], by: Sequence[Digit]) -> Digit:
    """Products with digits, the smallest first truncated to what the next has."""
    found, bits = products[-1], by[-1].bits
    for product, digit in zip(products[-2::-1], by[-2::-1], strict=True):
        found = shares.add(shares.truncate(session, found, bits - digit.bits), product)
        bits = digit.bits
    return Digit(found, bits)
