"""Normalisation of secret numbers to a known magnitude, by secret powers of two.

The bits of a number give its leading zeros, and so the power of two that shifts it up to fill a
width. This range reduction is right for every encodable number, unlike iterations, which diverge
from a bad initial guess (Catrina and Saxena 2010, section 3; here with a parallel prefix, and
without a bound that the caller must know)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tacit import fixed
from tacit.operators.numerics.approximation.series import ARGUMENT, plus
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts

#: Bits that normalised numbers fill by default: all bits of encoded words.
WIDTH = fixed.ENCODED

#: Fraction bits of the slope that maps a normalised number to the argument of a series.
_SLOPE = 12


@dataclass(frozen=True)
class Normal:
    """Normalised words: 0 ≤ x < 2^ENCODED, with the power of two that fills their width.

    Zero counts as the word 1."""

    width: int
    #: Two factors of x·2^zeros. The product is at least 2^(width − 1), or 2^(width − 2) if the
    #: number of zeros was rounded down to even.
    factors: tuple[Parts, Parts]
    #: 2^zeros, or its root if the number of zeros was rounded down to even.
    power: Parts
    #: The number of leading zeros in binary, lowest place first, as bits and as ring elements.
    digits: list[Parts]
    places: list[Parts]

    def argument(self, session: Session, low: float) -> Parts:
        """Maps the normalised word, as a number in [low, 1], to [−1, 1]; two rounds.

        The result has ARGUMENT fraction bits."""
        x, power = self.factors
        product = bilinear.multiply(
            session, _steeper(x, low), power, self.width + _SLOPE - ARGUMENT
        )
        return _lower(session, product, low)


def argument(session: Session, word: Parts, width: int, low: float) -> Parts:
    """Maps a word that fills a width, as a number in [low, 1], to [−1, 1]; a truncation.

    The result has ARGUMENT fraction bits."""
    return _lower(
        session, shares.truncate(session, _steeper(word, low), width + _SLOPE - ARGUMENT), low
    )


def _steeper(x: Parts, low: float) -> Parts:
    # x ↦ (2x − 1 − low) / (1 − low) is 4x − 3 for low = 1/2, and (8x − 5)/3 for low = 1/4.
    return tuple(part * fixed.word(2.0 / (1.0 - low), _SLOPE) for part in x)


def _lower(session: Session, x: Parts, low: float) -> Parts:
    return plus(session, x, 1.0 - 2.0 / (1.0 - low), ARGUMENT)


def normal(session: Session, x: Parts, *, width: int = WIDTH, even: bool = False) -> Normal:
    """Normalises words to fill the width.

    About 20 rounds, so all numbers should be normalised in one batch.

    Args:
        even: shift by an even number of places.
    """
    binary, zero = shares.leading_zeros(session, x, width)
    digits = shares.unstacked(binary)
    *places, one = shares.unstacked(shares.bit_to_ring(session, shares.stacked(*digits, zero)))
    x = shares.add(x, one)
    power = power_of_two(session, places[even:])
    if even:
        x = bilinear.multiply(session, x, power, 0)
    return Normal(width, (x, power), power, digits, places)


def power_of_two(session: Session, places: Sequence[Parts]) -> Parts:
    """Computes 2^n from the binary places b_j of n, each a ring element 0 or 1.

    The product Π (1 + b_j·(2^(2^j) − 1)) takes a round for each level of a tree."""
    one = shares.trivial(session, torch.tensor(1))
    factors = [
        tuple(part * ((1 << (1 << place)) - 1) + unit for part, unit in zip(bit, one, strict=True))
        for place, bit in enumerate(places)
    ]
    return bilinear.product(session, shares.stacked(*factors))


def number(places: Sequence[Parts]) -> Parts:
    """Returns the number with the given binary places. No interaction."""
    return tuple(
        torch.stack([part << place for place, part in enumerate(component)]).sum(0)
        for component in zip(*places, strict=True)
    )


def product(session: Session, x: Parts, y: Parts, drop: int) -> Parts:
    """Computes x·y / 2^drop; a negative ``drop`` shifts up."""
    if drop >= 0:
        return bilinear.multiply(session, x, y, drop)
    return tuple(part << -drop for part in bilinear.multiply(session, x, y, 0))


def rescaled_by(session: Session, x: Parts, drop: int) -> Parts:
    """Computes x / 2^drop: a truncation, or a shift up if ``drop`` is negative."""
    return shares.truncate(session, x, drop) if drop > 0 else tuple(part << -drop for part in x)
