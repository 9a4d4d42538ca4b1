"""In how many bits the numbers of a vector travel, and when 32 are enough.

A number is a word of 22 fraction bits, in units of the bound. In 64 bits all that clients may send
has room. Of 32 bits only a sum comes out right, and only if it is less than 2^31 words, whoever
takes part. So every client keeps each of its numbers, its weight too, at or below

    limit = floor((2^31 - 1) / clients)

words, where all clients of the federation count; then no sum of some of them wraps around. A vector
within the bound has words of 2^22 at most, which is below the limit of up to 511 clients. Norms
cannot be validated in such words, nor can anything but sums be computed. A client that lies makes
of the sum what it would modulo 2^64 too: any number it likes.
"""

from tacit.errors import MisuseError
from tacit.federated.aggregators import Aggregator
from tacit.federated.validation import UNIT, VECTOR_BITS
from tacit.fixed import Scale

#: Bits of a word.
WHOLE, HALF = 64, 32


def scale(bits: int) -> Scale:
    """Of sums that servers have: those modulo 2^32 are multiples of 2^32."""
    return Scale(VECTOR_BITS + WHOLE - bits)


def limit(bits: int, clients: int) -> float:
    """Units that every number of a client is below, once it is weighed."""
    return Scale(VECTOR_BITS).limit if bits == WHOLE else (2 ** (HALF - 1) - 1) // clients / UNIT


def words(bits: int, numbers: int) -> int:
    """Words of 64 bits that so many numbers take."""
    return -(-numbers * bits // WHOLE)


def check(bits: int, chosen: Aggregator, is_validated: bool, clients: int) -> None:
    """Whether numbers may travel in so many bits.

    Raises:
        MisuseError: a sum of them may not fit, or more than a sum is needed.
    """
    if bits not in (WHOLE, HALF):
        raise MisuseError(f"word_bits = {bits}: numbers travel in 64 or 32 bits")
    if bits == WHOLE:
        return
    if not chosen.is_sum or is_validated:
        raise MisuseError(
            f"word_bits = 32 is for a sum whose vectors are not validated: fedavg with bound = "
            f'"none"; '
            f"{chosen.name} needs 64"
        )
    if limit(bits, clients) <= 1:
        raise MisuseError(
            f"word_bits = 32 with {clients} clients: the sum of as many vectors of one bound does "
            f"not fit; "
            f"it does of {_most()} at most"
        )


def _most() -> int:
    """Clients of whom each may have a number of one unit."""
    return (2 ** (HALF - 1) - 1) // (UNIT + 1)
