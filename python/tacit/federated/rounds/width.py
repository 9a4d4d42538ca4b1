"""The bits in which the numbers of a vector travel, and when 32 are enough.

A number is a word of 22 fraction bits, in units of the bound. 64 bits have room for everything that
clients may send. With 32 bits only a sum is correct, and only if it is less than 2^31 words for
every set of participants. So every client keeps each of its numbers, its weight too, at or below

    limit = floor((2^31 - 1) / clients)

words, where ``clients`` counts all clients of the federation. Then no sum of some of them wraps
around. A vector within the bound has words of at most 2^22, which is below the limit for up to 511
clients. Norms cannot be validated in such words, and nothing but sums can be computed. A client
that lies can make the sum any number, as it can modulo 2^64.
"""

from tacit.errors import MisuseError
from tacit.federated.aggregators import Aggregator
from tacit.federated.validation import UNIT, VECTOR_BITS
from tacit.fixed import Scale

#: Bits of a word.
WHOLE, HALF = 64, 32


def scale(bits: int) -> Scale:
    """Returns the scale of the sums that servers hold: those modulo 2^32 are multiples of 2^32."""
    return Scale(VECTOR_BITS + WHOLE - bits)


def limit(bits: int, clients: int) -> float:
    """Returns the limit, in units, for every number of a client after it is multiplied by its
    weight."""
    return Scale(VECTOR_BITS).limit if bits == WHOLE else (2 ** (HALF - 1) - 1) // clients / UNIT


def words(bits: int, numbers: int) -> int:
    """Returns the words of 64 bits that the given number of numbers takes."""
    return -(-numbers * bits // WHOLE)


def check(bits: int, chosen: Aggregator, is_validated: bool, clients: int) -> None:
    """Checks that numbers may travel in the given number of bits.

    Raises:
        MisuseError: their sum may overflow, or more than a sum is needed.
    """
    if bits not in (WHOLE, HALF):
        raise MisuseError(f"word_bits = {bits}: numbers travel in 64 or 32 bits")
    if bits == WHOLE:
        return
    if not chosen.is_sum or is_validated:
        raise MisuseError(
            f"word_bits = 32 is for a sum whose vectors are not validated: fedavg with bound = "
            f'"none"; {chosen.name} needs 64'
        )
    if limit(bits, clients) <= 1:
        raise MisuseError(
            f"word_bits = 32 with {clients} clients: the sum of that many vectors of one bound "
            f"does not fit; at most {_most()} clients are possible"
        )


def _most() -> int:
    """Returns the most clients if each may send a number of one unit."""
    return (2 ** (HALF - 1) - 1) // (UNIT + 1)
