"""Secret validation of the norms of clients' vectors.

The words x in Z_2^64 of one client, taken as integers from -2^63, must have a norm of at most
β = 2^22. That is one unit, since vectors come in units of the bound and have 22 fraction bits. The
sum Σ x² alone does not show that, as it is only known modulo 2^64: a client may choose words for
which it wraps around.

**First, nothing can wrap** (after C. Gentry, S. Halevi, V. Lyubashevsky 2022, modular
Johnson-Lindenstrauss; the constants are derived here, as follows). After vectors have been
submitted, the servers toss a coin. It gives K = 40 rows of weights r, each 0 with probability ½,
and 1 or -1 with ¼. Products r·x modulo 2^64 are linear, so every server computes them of its own
components. All K must lie in [-T, T], T = 56β. A vector that has a word beyond 2T, or a norm of 9T
or more, passes with a probability of at most 2^-40:

- *A word x_j is beyond 2T* (in -2^63..2^63). Whatever the rest of the product is, r_j = 0 and
  r_j = ±1 cannot both put the product into [-T, T]: the two products differ by x_j, which modulo
  2^64 is farther from 0 than the interval is long. So one product passes with probability ½ at
  most, and all of them with 2^-40.
- *No word is beyond 2T, but the norm is 9T or more.* Some of the words, taken in order, have a norm
  N with 9T ≤ N ≤ 9.3T. Their part of the product is an integer Z of variance N²/2. It does not
  wrap, since for up to 2^27 words it is at most 2^13.5·9.3T < 2^46. So the product passes only if Z
  is in some interval of length 2T. By Berry and Esseen (I. Shevtsova 2010: 0.56) the distribution
  of Z is within 0.56·Σ E|r x|³ / (N/√2)³ ≤ 0.56·√2·2T/N of the normal one. So the probability of
  that interval is at most 2T/(N·√π) + 2·0.56·√2·2T/N < 4.3·T/N < ½.

A client whose norm is at most 7β passes: E exp(λr) = cosh²(λ/2) ≤ exp(λ²/4), so |r·x| > T has a
probability of at most 2·exp(-T²/49β²) = 2·e^-64.

**Then the norm itself.** Now Σ x² < (9T)² < 2^62, so its value modulo 2^64 is exact. It is one ring
element. It is compared with β² exactly, or a factor that shortens the vector is computed from it.

**Weights.** If only a weighted mean is needed, clients send w·x and w from 0 to 1, and validation
sees w·x. It is not enough that w·x has a norm of at most β: a client that claims w = 0 and sends a
vector of norm β would move a mean of n clients with small weights v by β/(n·v), not β/n. So Σ
(w·x)² is also compared with ((w + s)·β)², which costs one product of two ring elements for each
client. s is the most that rounding adds, half a word for each element. Then the norm of the mean is
at most Σ (w + s) / Σ w bounds, whatever weights are claimed. The other check shortens vectors: a
vector that is longer than its weight allows is shortened to β and counts with the weight 1, as any
client might have claimed for it.

The servers reveal one bit of each client: whether it passed. The weights r are expanded from the
coin's 128 bits by AES in counter mode. No secrecy rests on them.

**The coin is unknown to everyone until vectors are fixed,** even to a client that colludes with a
server. Each server draws 128 bits from its operating system for every check, and the coin is their
XOR (``public_coin``). If a server may deviate, all first commit to their bits, so that none can
choose the coin. No key that servers had before enters it. A server draws its bits after it
has seen both other servers' lists of the clients whose vectors they hold (``submissions.agree``).
It also draws them after it has received what another server passes on (``taken``) and has checked
that against the client's commitment. If a server submits a vector itself, it draws them after that
too. The lists name the hashes of signed statements, and these commit to every piece. So by then no
server can replace a client's piece by another one. Therefore, whatever a client and one server know
together while the vector can still be chosen, the two servers that follow the protocol and do not
collude with a client have yet to draw their bits, and the coin is uniform given all that. All
servers have compared their lists before any of them draws, because every server takes these steps
in this order, and because its bits leave it only after it has received the lists."""

import math
from typing import Any

import torch

from tacit import fixed
from tacit.errors import MisuseError
from tacit.fixed import WHOLE, Scale
from tacit.randomness.generators import public_coin
from tacit.sessions import Session, comparison_width
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Fraction bits of vectors.
VECTOR_BITS = 22

#: The norm that a vector may have, in words.
UNIT = 1 << VECTOR_BITS

#: The most that the magnitude of a product with random weights may be.
WIDEST = 56 * UNIT

#: Servers that prove what they compute take vectors of about this many words at a time, or one.
#: This bounds the memory of what awaits its proof.
AT_ONCE = 1 << 22

#: Bytes of the coin that the random weights are expanded from.
COIN = 16

#: The most words that a vector may have.
MOST_PARAMETERS = 1 << 27


def margin(parameters: int) -> float:
    """Returns the excess by which vectors are shortened beyond the bound, relative to their norm.

    It covers the error of roots (2^-13), and that of products and their rounding, which is at most
    two units for each element. So the norm is never above the bound afterwards.
    """
    return 2.0**-12 + math.sqrt(parameters) * 2.0 ** (1 - VECTOR_BITS)


def squares(vectors: SecretTensor) -> SecretTensor:
    """Computes Σ x² of each row of words modulo 2^64, as integers.

    One round. Servers that prove what they compute take one for every ``AT_ONCE`` words or every
    row.
    """
    session, (count, length) = vectors._session, vectors.shape
    proves = session.meter.verification is not None
    step = max(1, AT_ONCE // max(1, length)) if proves else max(1, count)
    found = [
        _products(session, tuple(part[first : first + step] for part in vectors._parts))
        for first in range(0, max(1, count), step)
    ]
    parts = tuple(torch.cat(each) for each in zip(*found, strict=True))
    return vectors.like(parts, WHOLE, torch.int64)


def _products(session: Session, vectors: Parts) -> Parts:
    """Computes Σ x² of each vector."""
    rows = tuple(part.unsqueeze(1) for part in vectors)
    products = bilinear.matmul(session, rows, tuple(part.mT for part in rows), 0)
    return tuple(part.flatten() for part in products)


def within_bound(
    vectors: SecretTensor, weights: SecretTensor, *, is_weighted: bool = False
) -> torch.Tensor:
    """Checks which clients' vectors are within the bound and have weights from 0 to 1.

    A vector that is not within the bound passes with a probability of at most 2^-40.

    Args:
        vectors: [clients, parameters].
        weights: [clients].
        is_weighted: whether vectors come multiplied by their weights, which then limit their norms
            too.

    Returns:
        One plain bit for each client, [clients].

    Reveals this bit of each client. About 20 rounds.
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
    """Computes the factors that bring clients' vectors into the bound.

    Reveals one bit of each client: whether its norm can be computed, and its weight is from 0 to 1.
    A norm cannot be computed if it is far beyond the bound, at least eight times. About 65 rounds.
    Domain of factors and weights: the clients whose bit is set.

    Args:
        vectors: [clients, parameters].
        weights: [clients].
        is_weighted: whether vectors come multiplied by their weights.

    Returns:
        The plain bits; the factors, which are 1, less ``margin``, for vectors within the bound; and
        the weights with which clients count. If vectors come multiplied by their weights, a vector
        that is longer than its weight allows counts with the weight 1.
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
        # As a word with twice the fraction bits, it is below 2^62.
        parts = shares.truncate(session, square._parts, VECTOR_BITS)
        norms = SecretTensor(parts, session.scale, session, vectors.dtype)
        factors: Any = torch.rsqrt(norms.clamp(min=1.0)) * (1.0 - margin(vectors.shape[1]))
        if is_weighted:
            weights = torch.where(broken[:, -1], 1.0, weights)  # type: ignore[assignment]
    return is_good, factors, weights


def metrics_fit(metrics: SecretTensor, weights: SecretTensor) -> torch.Tensor:
    """Checks which clients' metrics are from -1 to 1 before they are multiplied by the weight.

    Args:
        metrics: [clients, metrics], multiplied by the weights.
        weights: [clients], from 0 to 1.

    Returns:
        One plain bit for each client, [clients].

    Reveals this bit of each client. About 15 rounds.
    """
    # One word more, for rounding. Of any word at least one of both differences is negative beyond
    # the interval, even if the other one wraps around.
    words, own = _as_integers(weights).unsqueeze(1) + 1, _as_integers(metrics)
    with comparison_width(64):
        return _are_met(torch.cat([words - own, words + own], 1) < 0).reveal()


def shorter(
    vectors: SecretTensor, weights: SecretTensor, *, is_weighted: bool = False
) -> torch.Tensor:
    """Computes secret bits, [clients]: which validated vectors are shorter than the bound.

    A vector that its client shortened to the bound is not, and neither is one of weight 0. About 15
    rounds.

    Args:
        vectors: [clients, parameters], of norms up to eight bounds.
        weights: [clients], from 0 to 1.
        is_weighted: whether vectors come multiplied by their weights.
    """
    own = _as_integers(weights)
    longest: Any = (own if is_weighted else own * 0 + UNIT) - 2 * slack(vectors.shape[1])
    demands = torch.stack([longest * longest - squares(checked(vectors)) - 1, longest, own - 1], 1)
    with comparison_width(64):
        return _are_met(demands < 0)


def slack(parameters: int) -> int:
    """Returns by how many words a vector may be longer than its weight allows.

    That covers its own rounding, half a word for each element, and the rounding of the weight.
    """
    return math.isqrt(parameters) // 2 + 2


def _demands(vectors: SecretTensor, weights: SecretTensor) -> torch.Tensor:
    """Computes values of each client, [clients, 2K + 2], of which one is negative if it must be
    refused.

    All are at least 0 if all its products are small and its weight is from 0 to 1. The coin's
    round.
    """
    coin = public_coin()
    products = vectors.like(bilinear.ring_projections(vectors._parts, coin), WHOLE, torch.int64)
    words = _as_integers(weights).unsqueeze(1)
    # Beyond the interval one of the two differences is negative, even if the other one wraps
    # around.
    return torch.cat([WIDEST - products, WIDEST + products, words, UNIT - words], 1)


def _are_met(broken: torch.Tensor) -> Any:
    """Returns a secret bit for each row: whether none of its demands is broken."""
    return ~broken.any(1)


def _square_allowed(vectors: SecretTensor, weights: SecretTensor) -> torch.Tensor:
    """Computes the square of the norm, in words, that a vector multiplied by its weight may have.

    One round.
    """
    longest = _as_integers(weights) + slack(vectors.shape[1])
    return longest * longest


def _as_integers(weights: SecretTensor) -> torch.Tensor:
    """Returns the words of weights as integers, so that comparisons use all 64 bits."""
    return weights.like(weights._parts, WHOLE, torch.int64)


def checked(vectors: SecretTensor) -> SecretTensor:
    """Returns vectors that this module can validate, unchanged.

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
