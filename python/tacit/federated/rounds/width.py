"""The bits in which the numbers of a vector travel, and when fewer than 64 are enough.

A number is a word of 22 fraction bits, in units of the bound. 64 bits have room for everything that
clients may send. Fewer are taken in two ways.

**Only a sum is needed**, of vectors that are not validated. It is correct if it is less than
2^(b - 1) for every set of participants. So every client keeps each of its numbers, its weight too,
at or below

    limit = floor((2^(b - 1) - 1) / clients)

where ``clients`` counts all clients of the federation. Then no sum of some of them wraps around. A
client that lies can make the sum any number, as it can modulo 2^64.

- With 32 bits numbers are words of 22 fraction bits. A vector within the bound has words of at most
  2^22, which is below the limit for up to 511 clients.
- With 16 or 8 bits numbers count steps: ``limit`` steps are the greatest value that an element may
  have, and ``limit`` steps are the weight 1.

**Numbers are validated, or not only added** (16 or 8 bits). The servers have sharings of each
client's numbers modulo 2^b. As words these are sharings modulo 2^64 of some words whose low b bits
are the numbers. The servers add 2^(b - 1), take the low b bits in secret, and subtract 2^(b - 1)
again. That gives the numbers themselves, from -2^(b - 1) to 2^(b - 1) - 1, whatever a client sent.
A number times a public integer is a word of 22 fraction bits. From there on everything is as with
64 bits: validation sees the words that count, so the bound on their norm holds whatever rounding
did, and so does the account. One step of a weight is 2^(2 - b).
"""

import math
from dataclasses import dataclass

from tacit.errors import MisuseError
from tacit.federated.aggregators import Aggregator
from tacit.federated.validation import UNIT, VECTOR_BITS
from tacit.fixed import Scale

#: Bits of a word.
WHOLE, HALF = 64, 32

#: Bits of numbers that count steps, to which clients round.
NARROW = (16, 8)


@dataclass(frozen=True)
class Grid:
    """The steps that numbers of a few bits count."""

    #: The most steps of a number.
    limit: int
    #: Steps of a value of one unit, and of a weight of 1.
    steps: float
    weight_steps: int
    #: Whether servers convert each number to a word.
    is_lifted: bool

    @property
    def factors(self) -> tuple[int, int]:
        """By what a lifted value and a lifted weight are multiplied to be words."""
        return round(UNIT / self.steps), UNIT // self.weight_steps


def grid(bits: int, *, is_lifted: bool, clients: int, reach: float = 1.0) -> Grid:
    """Returns the steps of numbers of 16 or 8 bits.

    Args:
        bits: of a number.
        is_lifted: whether servers convert each number to a word.
        clients: of the federation.
        reach: the greatest magnitude of a value, in units.
    """
    if not is_lifted:
        limit = _greatest(bits) // clients
        return Grid(limit, limit / reach, limit, is_lifted=False)
    limit = _greatest(bits)
    # A value's step is a whole number of words, rounded up, so that nothing in reach is cut.
    step = max(1, math.ceil(min(reach, 1.0) * UNIT / limit))
    return Grid(limit, UNIT / step, 1 << (bits - 2), is_lifted=True)


def _greatest(bits: int) -> int:
    """Returns the greatest integer of the given number of bits, with a sign."""
    return 2 ** (bits - 1) - 1


def scale(bits: int, *, is_lifted: bool = False) -> Scale:
    """Returns the scale of what servers hold. Sums modulo 2^b are multiples of 2^(64 - b). Those of
    steps have no fraction bits besides."""
    if is_lifted:
        return Scale(VECTOR_BITS)
    return Scale(WHOLE - bits if bits in NARROW else VECTOR_BITS + WHOLE - bits)


def limit(bits: int, clients: int) -> float:
    """Returns the limit, in units, for every number of a client after it is multiplied by its
    weight; with 64 or 32 bits."""
    return Scale(VECTOR_BITS).limit if bits == WHOLE else _greatest(HALF) // clients / UNIT


def words(bits: int, numbers: int) -> int:
    """Returns the words of 64 bits that the given number of numbers takes."""
    return -(-numbers * bits // WHOLE)


def check(bits: int, chosen: Aggregator, is_validated: bool, clients: int) -> None:
    """Checks that numbers may travel in the given number of bits.

    Raises:
        MisuseError: their sum may overflow, or more than a sum is needed.
    """
    if bits not in (WHOLE, HALF, *NARROW):
        raise MisuseError(f"word_bits = {bits}: numbers travel in 64, 32, 16 or 8 bits")
    if bits == WHOLE:
        return
    is_sum = chosen.is_sum and not is_validated
    if bits in NARROW:
        if is_sum and clients > _greatest(bits):
            raise MisuseError(
                f"word_bits = {bits} with {clients} clients: the sum of that many numbers does not "
                f"fit; at most {_greatest(bits)} clients are possible: take word_bits = "
                f"{2 * bits}"
            )
        return
    if not is_sum:
        raise MisuseError(
            f"word_bits = 32 is for a sum whose vectors are not validated: fedavg with bound = "
            f'"none"; {chosen.name} needs 64, or 16 or 8, which servers convert'
        )
    if limit(bits, clients) <= 1:
        raise MisuseError(
            f"word_bits = 32 with {clients} clients: the sum of that many vectors of one bound "
            f"does not fit; at most {_most()} clients are possible"
        )


def _most() -> int:
    """Returns the most clients if each may send a number of one unit."""
    return _greatest(HALF) // (UNIT + 1)
