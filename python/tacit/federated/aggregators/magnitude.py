"""Squared norms brought to one magnitude, by powers of two that stay secret.

Vectors may be much shorter than the bound, as updates are late in training. Each is multiplied by
its own power of two, so that values computed from it have the same number of significant bits
whatever its norm."""

from dataclasses import dataclass

import torch

from tacit.federated.aggregators.gram import BITS
from tacit.fixed import Scale
from tacit.operators.numerics.approximation.normal import normal, power_of_two
from tacit.sessions import session
from tacit.sharings import bilinear, shares
from tacit.tensor import SecretTensor

#: Squares are scaled to at least 2^(WIDTH - 2), and stay below 2^WIDTH.
WIDTH = BITS + 1

#: Bits of the powers' exponents, and the sum of an exponent and that of the inverse.
PLACES = 5
INVERSE = 2**PLACES - 1

#: The largest exponent: that of a square of 1 or 0.
MOST = WIDTH // 2 - 1


@dataclass(frozen=True)
class Powers:
    """Powers of two that scale squares: 2^k such that square·4^k fills the width, and 2^(31 - k).

    All are int64 tensors with one element for each square.
    """

    power: torch.Tensor
    inverse: torch.Tensor
    #: square·4^k
    filled: torch.Tensor

    def __getitem__(self, place: slice | int) -> "Powers":
        """Returns the powers of some of the squares."""
        return Powers(self.power[place], self.inverse[place], self.filled[place])

    def limited(self, other: "Powers", most: int) -> "Powers":
        """Limits each power to ``most``, a power of two, times the other's. Rounds of a minimum."""
        return Powers(torch.minimum(self.power, other.power * most), self.inverse, self.filled)

    def mantissas(self) -> torch.Tensor:
        """Returns the filled squares as fractions from 1/4 to 1."""
        return fraction(self.filled, WIDTH)

    def over(self, other: "Powers") -> torch.Tensor:
        """Returns the ratios of these powers to the other ones, exactly. One or two rounds."""
        return fraction(self.power * other.inverse, INVERSE, MOST)


def powers(squares: torch.Tensor) -> Powers:
    """Computes the powers for squares from 0 to below 2^47, int64.

    0 counts as 1. About 20 rounds.
    """
    if isinstance(squares, SecretTensor):
        return _in_secret(squares)
    least = squares.clamp(min=1)
    exponents = (WIDTH - torch.frexp(least.to(torch.float64)).exponent) // 2
    one = torch.ones_like(least)
    return Powers(one << exponents, one << (INVERSE - exponents), least << (2 * exponents))


def _in_secret(squares: SecretTensor) -> Powers:
    current = squares._session
    found = normal(current, squares._parts, width=WIDTH, even=True)
    x, power = found.factors
    one = shares.trivial(current, torch.ones((), dtype=torch.int64))
    inverse = power_of_two(current, [shares.subtract(one, place) for place in found.places[1:]])
    filled = bilinear.multiply(current, x, power, 0)
    return Powers(*(squares.like(parts) for parts in (power, inverse, filled)))


def fraction(whole: torch.Tensor, bits: int, kept: int | None = None) -> torch.Tensor:
    """Divides integers by 2^``bits``.

    Args:
        whole: integers, secret or plain.
        bits: the exponent of the divisor.
        kept: fraction bits of a secret result; those of the session if not given.
    """
    if not isinstance(whole, SecretTensor):
        return whole.to(torch.float64) * 2.0**-bits
    scale = session().scale if kept is None else Scale(kept)
    parts = shares.truncate(whole._session, whole._parts, bits - scale.bits)
    return whole.like(parts, scale, torch.float64)
