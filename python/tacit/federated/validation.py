"""Whether a client's vector is as short as it must be, found out in secret.

What is to be shown is that words x in Z_2^64 of one client, taken as integers from -2^63, have a
norm of at most β = 2^22: one unit, since vectors come in units of the bound and have 22 fraction
bits. Σ x² alone does not show that, as it is only known modulo 2^64: a client may choose words of
which it wraps around.

**First, that nothing can wrap** (after C. Gentry, S. Halevi, V. Lyubashevsky 2022, modular
Johnson-Lindenstrauss; the constants are our own, as follows). After vectors have been submitted the
servers toss a coin. It gives K = 40 rows of weights r, each 0 with probability ½, and 1 or -1 with
¼. Products r·x modulo 2^64 are linear, so every server takes them of its own components. All K must
lie in [-T, T], T = 56β. Then with probability 1 - 2^-40 no word is beyond 2T and the norm is below
9T:

- *A word x_j beyond 2T* (in -2^63..2^63). Whatever the rest of the product is, r_j = 0 and r_j = ±1
  cannot both put it into [-T, T]: they differ by x_j, which modulo 2^64 is farther from 0 than the
  interval is long. So a product passes with probability ½ at most, and all with 2^-40.
- *No such word, but a norm of 9T or more.* Some of the words, taken in order, have a norm N with 9T
  ≤ N ≤ 9.3T. Their part of the product is an integer Z of variance N²/2, at most 2^13.5·9.3T < 2^46
  for up to 2^27 words, so that it does not wrap, and the product passes only if Z is in some
  interval of length 2T. By Berry and Esseen (I. Shevtsova 2010: 0.56) its distribution is within
  0.56·Σ E|r x|³ / (N/√2)³ ≤ 0.56·√2·2T/N of the normal one, so that has a probability of at most
  2T/(N·√π) + 2·0.56·√2·2T/N < 4.3·T/N < ½.

A client whose norm is at most 7β passes: E exp(λr) = cosh²(λ/2) ≤ exp(λ²/4), so |r·x| > T has a
probability of at most 2·exp(-T²/49β²) = 2·e^-64.

**Then the norm itself.** Now Σ x² < (9T)² < 2^62 is what it is modulo 2^64: one ring element, which
is compared with β² exactly, or from which a factor is made that shortens the vector.

**Weights.** Where only a weighted mean is wanted, clients send w·x and w from 0 to 1, and it is w·x
that is seen here. That it is as short as β would not do: whoever claims w = 0 and sends a vector of
norm β would move a mean of n clients of small weights v by β/(n·v), not β/n. So Σ (w·x)² is
compared with ((w + s)·β)² too, one product of two ring elements a client: s is what rounding may
add, half a word an element. Then the norm of the mean is at most Σ (w + s) / Σ w bounds, whatever
weights are claimed. In the other check, which shortens vectors, one that is longer than its weight
allows is shortened to β and counts with the weight 1, as any client might have claimed for it.

What is shown of a client is one bit: whether it passed. Weights are expanded from the coin's 128
bits by AES in counter mode; nothing secret rests on them.

**Nobody knows the coin before vectors are fixed,** also no client that talks with a server. Each
server draws 128 bits from its operating system for every check, and the coin is their XOR
(``public_coin``); no key that servers had before goes into it. A server draws its bits after it has
seen both others' lists of whom they have (``submissions.agree``), and after it has what another one
passes on (``taken``), which it has held against the client's commitment; where a server hands in a
vector itself, after that too. Lists name the hashes of signed statements, and these commit to every
piece: by then no server can take another piece for a client's. So whatever a client and one server
know together when the vector can still be chosen, the two servers that follow the protocol and talk
with no client have yet to draw their bits, and the coin is uniform given all that. That all have
compared lists before any draws is the order of these steps in every server, and a server's bits
leave it after it has received them."""

import math
from typing import Any

import torch

from tacit import fixed
from tacit.errors import MisuseError
from tacit.fixed import WHOLE, Scale
from tacit.randomness.generators import public_coin
from tacit.sessions import comparison_width
from tacit.sharings import shares
from tacit.tensor import SecretTensor

#: Fraction bits of vectors.
VECTOR_BITS = 22

#: The norm that a vector may have, as a word.
UNIT = 1 << VECTOR_BITS

#: What products with random weights may be.
WIDEST = 56 * UNIT

#: Bytes of the coin that weights are expanded from.
COIN = 16

#: Vectors at most, in words.
MOST_PARAMETERS = 1 << 27


def margin(parameters: int) -> float:
    """By how much more than to the bound vectors are shortened: more than what roots (2^-13) and
    products and their rounding, two units an element at most, are off, so that the norm is never
    above the bound."""
    return 2.0**-12 + math.sqrt(parameters) * 2.0 ** (1 - VECTOR_BITS)


def squares(vectors: SecretTensor) -> SecretTensor:
    """Σ x² of each row of words modulo 2^64, as integers. One round."""
    rows = tuple(part.unsqueeze(1) for part in vectors._parts)
    parts = shares.matmul(vectors._session, rows, tuple(part.mT for part in rows), 0)
    return vectors.like(tuple(part.flatten() for part in parts), WHOLE, torch.int64)


def within_bound(
    vectors: SecretTensor, weights: SecretTensor, *, is_weighted: bool = False
) -> torch.Tensor:
    """Which clients' vectors are in the bound, with weights from 0 to 1: to be shown, and with a
    probability of 2^-40 at most true of one that is not.

    Args:
        vectors: [clients, parameters].
        weights: [clients].
        is_weighted: whether vectors come multiplied by their weights, and have to be as short as
            these say.

    Shown: this bit of each client. About 20 rounds.
    """
    square = squares(checked(vectors))
    limits: list[torch.Tensor] = [UNIT * UNIT - square]
    if is_weighted:
        limits.append(_square_allowed(vectors, weights) - square)
    demands = torch.cat([_demands(vectors, weights), torch.stack(limits, 1)], 1)
    with comparison_width(64):
        return _are_met(demands < 0).reveal()


def clipped(
    vectors: SecretTensor, weights: SecretTensor, *, is_weighted: bool = False
) -> tuple[torch.Tensor, SecretTensor, SecretTensor]:
    """Which clients' vectors can be brought into the bound, the factors of all clients that do so,
    which are 1 for those that are in it but for ``margin``, and the weights with which they count:
    where vectors come multiplied by their weights, that of one longer than its weight says is 1.

    Shown: of each client whether it is so far beyond the bound (eight times at least) that its norm
    cannot be told, or has a weight that is not from 0 to 1. About 65 rounds. Domain of factors and
    weights: those clients.
    """
    square = squares(checked(vectors))
    session = vectors._session
    demands = [_demands(vectors, weights)]
    if is_weighted:
        demands.append((_square_allowed(vectors, weights) - square).unsqueeze(1))
    with comparison_width(64):
        broken = torch.cat(demands, 1) < 0
        is_good = _are_met(broken[:, : demands[0].shape[1]]).reveal()
    with session.using(scale=Scale(VECTOR_BITS)), comparison_width(64):
        # Below 2^62 as a word with twice the fraction bits.
        parts = shares.truncate(session, square._parts, VECTOR_BITS)
        norms = SecretTensor(parts, session.scale, session, vectors.dtype)
        factors: Any = torch.rsqrt(norms.clamp(min=1.0)) * (1.0 - margin(vectors.shape[1]))
        if is_weighted:
            weights = torch.where(broken[:, -1], 1.0, weights)  # type: ignore[assignment]
    return is_good, factors, weights


def slack(parameters: int) -> int:
    """By how many words a vector may be longer than its weight: by its own rounding, half a word an
    element, and that of the weight."""
    return math.isqrt(parameters) // 2 + 2


def _demands(vectors: SecretTensor, weights: SecretTensor) -> torch.Tensor:
    """What is negative, of each client, unless all its products are small and its weight is from 0
    to 1, [clients, 2K + 2]. The coin's round."""
    coin = public_coin(COIN)
    products = vectors.like(shares.ring_projections(vectors._parts, coin), WHOLE, torch.int64)
    words = _as_integers(weights).unsqueeze(1)
    # One of the two differences is negative beyond the interval, even where the other one wraps
    # around.
    return torch.cat([WIDEST - products, WIDEST + products, words, UNIT - words], 1)


def _are_met(broken: torch.Tensor) -> Any:
    """Secret bits: of each row whether no demand is broken."""
    return ~broken.any(1)


def _square_allowed(vectors: SecretTensor, weights: SecretTensor) -> torch.Tensor:
    """The square of the norm that a vector may have which was multiplied by its weight, in words.
    One round."""
    longest = _as_integers(weights) + slack(vectors.shape[1])
    return longest * longest


def _as_integers(weights: SecretTensor) -> torch.Tensor:
    """Weights' words, so that all 64 bits are looked at."""
    return weights.like(weights._parts, WHOLE, torch.int64)


def checked(vectors: SecretTensor) -> SecretTensor:
    """Vectors that this module can say something of.

    Raises:
        MisuseError: they have another scale, or are too long.
    """
    if vectors._scale != fixed.Scale(VECTOR_BITS):
        raise MisuseError(
            f"clients' vectors have {VECTOR_BITS} fraction bits, not {vectors._scale.bits}"
        )
    if vectors.shape[1] > MOST_PARAMETERS:
        raise MisuseError(
            f"a vector of {vectors.shape[1]} parameters; at most {MOST_PARAMETERS} are validated"
        )
    return vectors
