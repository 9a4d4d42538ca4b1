"""Secret numbers brought to a known magnitude by powers of two that stay secret.

The bits of a number say how many leading zeros it has, and so which power of two fills its width:
range reduction that holds for every encodable number, in place of iterations that diverge from a
bad guess (Catrina and Saxena 2010, section 3; here with a parallel prefix and no bound that the
caller must know)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tacit import fixed
from tacit.operators.numerics.approximation.series import ARGUMENT, plus
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts

#: Bits that normal numbers fill by default: all that encoded words may have.
WIDTH = fixed.ENCODED

#: Fraction bits of the slope by which a normal number becomes an argument.
_SLOPE = 12


@dataclass(frozen=True)
class Normal:
    """Words 0 ≤ x < 2^ENCODED, and what fills their width. Zero counts as the word 1."""

    width: int
    #: Two factors of x·2^zeros, which is from 2^(width − 1), or from 2^(width − 2) where zeros are
    #: even.
    factors: tuple[Parts, Parts]
    #: 2^zeros, or its root where they are even.
    power: Parts
    #: The leading zeros in binary, lowest place first, as bits and as ring elements.
    digits: list[Parts]
    places: list[Parts]

    def argument(self, session: Session, low: float) -> Parts:
        """The word as a number from [low, 1] mapped to [−1, 1], ARGUMENT
        fraction bits; two rounds."""
        x, power = self.factors
        product = shares.multiply(session, _steeper(x, low), power, self.width + _SLOPE - ARGUMENT)
        return _lower(session, product, low)


def argument(session: Session, word: Parts, width: int, low: float) -> Parts:
    """The same of a word of some width."""
    return _lower(
        session, shares.truncate(session, _steeper(word, low), width + _SLOPE - ARGUMENT), low
    )


def _steeper(x: Parts, low: float) -> Parts:
    # x ↦ (2x − 1 − low) / (1 − low), which for low = 1/2 and 1/4 are 4x − 3 and (8x − 5)/3.
    return tuple(part * fixed.word(2.0 / (1.0 - low), _SLOPE) for part in x)


def _lower(session: Session, x: Parts, low: float) -> Parts:
    return plus(session, x, 1.0 - 2.0 / (1.0 - low), ARGUMENT)


def normal(session: Session, x: Parts, *, width: int = WIDTH, even: bool = False) -> Normal:
    """Fills the width of words; with ``even`` by an even number of places only.

    About 20 rounds; to be used side by side for all numbers that there are.
    """
    binary, zero = shares.leading_zeros(session, x, width)
    digits = shares.unstacked(binary)
    *places, one = shares.unstacked(shares.bit_to_ring(session, shares.stacked(*digits, zero)))
    x = shares.add(x, one)
    power = power_of_two(session, places[even:])
    if even:
        x = shares.multiply(session, x, power, 0)
    return Normal(width, (x, power), power, digits, places)


def power_of_two(session: Session, places: Sequence[Parts]) -> Parts:
    """2^n for n of these binary places, each a ring element 0 or 1: Π (1 + b_j·(2^(2^j) − 1)). A
    round for each level of a tree."""
    one = shares.trivial(session, torch.tensor(1))
    factors = [
        tuple(part * ((1 << (1 << place)) - 1) + unit for part, unit in zip(bit, one, strict=True))
        for place, bit in enumerate(places)
    ]
    return shares.product(session, shares.stacked(*factors))


def number(places: Sequence[Parts]) -> Parts:
    """The number that has these binary places; local."""
    return tuple(
        torch.stack([part << place for place, part in enumerate(component)]).sum(0)
        for component in zip(*places, strict=True)
    )


def product(session: Session, x: Parts, y: Parts, drop: int) -> Parts:
    """x·y / 2^drop, with a shift up where drop is negative."""
    if drop >= 0:
        return shares.multiply(session, x, y, drop)
    return tuple(part << -drop for part in shares.multiply(session, x, y, 0))


def rescaled_by(session: Session, x: Parts, drop: int) -> Parts:
    """x / 2^drop, which is a product where drop is negative."""
    return shares.truncate(session, x, drop) if drop > 0 else tuple(part << -drop for part in x)
