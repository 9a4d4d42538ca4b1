"""Whether a client's vector is as short as it must be, found out in secret.

What is to be shown is that words x in Z_2^64 of one client, taken as integers from -2^63, have a norm of at
most β = 2^22: one unit, since vectors come in units of the bound and have 22 fraction bits. Σ x² alone does
not show that, as it is only known modulo 2^64: a client may choose words of which it wraps around.

**First, that nothing can wrap** (after C. Gentry, S. Halevi, V. Lyubashevsky 2022, modular
Johnson-Lindenstrauss; the constants are our own, as follows). After vectors have been submitted the servers
toss a coin. It gives K = 40 rows of weights r, each 0 with probability ½, and 1 or -1 with ¼. Products r·x
modulo 2^64 are linear, so every server takes them of its own components. All K must lie in [-T, T], T = 56β.
Then with probability 1 - 2^-40 no word is beyond 2T and the norm is below 9T:

- *A word x_j beyond 2T* (in -2^63..2^63). Whatever the rest of the product is, r_j = 0 and r_j = ±1 cannot
  both put it into [-T, T]: they differ by x_j, which modulo 2^64 is farther from 0 than the interval is long.
  So a product passes with probability ½ at most, and all with 2^-40.
- *No such word, but a norm of 9T or more.* Some of the words, taken in order, have a norm N with 9T ≤ N ≤
  9.3T. Their part of the product is an integer Z of variance N²/2, at most 2^13.5·9.3T < 2^46 for up to 2^27
  words, so that it does not wrap, and the product passes only if Z is in some interval of length 2T. By Berry
  and Esseen (I. Shevtsova 2010: 0.56) its distribution is within 0.56·Σ E|r x|³ / (N/√2)³ ≤ 0.56·√2·2T/N of
  the normal one, so that has a probability of at most 2T/(N·√π) + 2·0.56·√2·2T/N < 4.3·T/N < ½.

A client whose norm is at most 7β passes: E exp(λr) = cosh²(λ/2) ≤ exp(λ²/4), so |r·x| > T has a probability
of at most 2·exp(-T²/49β²) = 2·e^-64.

**Then the norm itself.** Now Σ x² < (9T)² < 2^62 is what it is modulo 2^64: one ring element, which is
compared with β² exactly, or from which a factor is made that shortens the vector.

What is shown of a client is one bit: whether it passed. Weights are expanded from the coin's 128 bits by
Philox, which no known test tells from random bits, and which a client cannot know when it chooses its vector;
nothing secret rests on them.
"""

import math
from typing import Any

import torch

from tacit import fixed, shares
from tacit.errors import MisuseError
from tacit.federated.projections import COIN, projections
from tacit.fixed import WHOLE, Scale
from tacit.generators import public_coin
from tacit.session import comparison_width
from tacit.tensor import SecretTensor

#: Fraction bits of vectors.
VECTOR_BITS = 22

#: The norm that a vector may have, as a word.
UNIT = 1 << VECTOR_BITS

#: What products with random weights may be.
WIDEST = 56 * UNIT

#: Vectors at most, in words.
MOST_PARAMETERS = 1 << 27


def margin(parameters: int) -> float:
    """By how much more than to the bound vectors are shortened: more than what roots (2^-13) and products and
    their rounding, two units an element at most, are off, so that the norm is never above the bound."""
    return 2.0**-12 + math.sqrt(parameters) * 2.0 ** (1 - VECTOR_BITS)


def squares(vectors: SecretTensor) -> SecretTensor:
    """Σ x² of each row of words modulo 2^64, as integers. One round."""
    rows = tuple(part.unsqueeze(1) for part in vectors._parts)
    parts = shares.matmul(vectors._session, rows, tuple(part.mT for part in rows), 0)
    return vectors.like(tuple(part.flatten() for part in parts), WHOLE, torch.int64)


def cannot_wrap(vectors: SecretTensor) -> SecretTensor:
    """Secret bits: of each row whether all its products are small. Rounds: the coin's, and those of
    comparisons of 64 bits and of six ANDs."""
    coin = public_coin(COIN)
    products = vectors.like(projections(vectors._parts, coin), WHOLE, torch.int64)
    # One of the two differences is negative beyond the interval, even where the other one wraps around.
    too_far = torch.stack([WIDEST - products, WIDEST + products]) < 0
    good: Any = ~too_far.any(2).any(0)
    return good


def within_bound(vectors: SecretTensor, weights: SecretTensor) -> torch.Tensor:
    """Which clients' vectors are in the bound, with weights from 0 to 1: to be shown, and with a probability
    of 2^-40 at most true of one that is not.

    Shown: this bit of each client. About 35 rounds.
    """
    square = squares(checked(vectors))
    with comparison_width(64):
        is_good = cannot_wrap(vectors) & (square <= UNIT * UNIT) & _is_weight(weights)
    return is_good.reveal()


def clipped(vectors: SecretTensor, weights: SecretTensor) -> tuple[torch.Tensor, SecretTensor]:
    """Which clients' vectors can be brought into the bound, and the factors of all clients that do so: 1 for
    those that are in it, if they leave ``MARGIN`` to it.

    Shown: of each client whether it is so far beyond the bound (eight times at least) that its norm
    cannot be told, or has a weight that is not from 0 to 1. About 100 rounds. Domain of the factors: those
    clients.
    """
    square = squares(checked(vectors))
    session = vectors._session
    with comparison_width(64):
        is_good = (cannot_wrap(vectors) & _is_weight(weights)).reveal()
    with session.at_scale(Scale(VECTOR_BITS)), comparison_width(64):
        # Below 2^62 as a word with twice the fraction bits.
        parts = shares.truncate(session, square._parts, VECTOR_BITS)
        norms = SecretTensor(parts, session.scale, session, vectors.dtype)
        factors: Any = torch.rsqrt(norms.clamp(min=1.0)) * (1.0 - margin(vectors.shape[1]))
    return is_good, factors


def _is_weight(weights: SecretTensor) -> SecretTensor:
    """Whether weights are from 0 to 1. As integers, so that all 64 bits are looked at."""
    words = weights.like(weights._parts, WHOLE, torch.int64)
    return (words >= 0) & (words <= 1 << weights._scale.bits)


def checked(vectors: SecretTensor) -> SecretTensor:
    """Vectors that this module can say something of.

    Raises:
        MisuseError: they have another scale, or are too long.
    """
    if vectors._scale != fixed.Scale(VECTOR_BITS):
        raise MisuseError(f"clients' vectors have {VECTOR_BITS} fraction bits, not {vectors._scale.bits}")
    if vectors.shape[1] > MOST_PARAMETERS:
        raise MisuseError(
            f"a vector of {vectors.shape[1]} parameters; at most {MOST_PARAMETERS} are validated"
        )
    return vectors
