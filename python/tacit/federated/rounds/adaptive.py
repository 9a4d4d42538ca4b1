"""Adaptive clipping: the bound follows a quantile of the norms (Andrew et al. 2021).

After each round the servers learn, with noise if there is any, how many vectors were shorter than
the bound. Let b be their fraction of the clients, and γ its target. The next round's bound is the
last one times exp(-η·(b - γ)) (section 2.1 of the paper, with its geometric update).

**What is counted.** A client shortens its vector to the bound, so servers see a norm of one bound,
except for rounding, if the client's own was one bound or more. They compare the validated norm in
secret with a bound less twice the most that rounding changes. So no client reports a bit of its
own, and one that lies about its norm changes the count by one.

With noise, how many clients count is secret, and b is the count over an expected number of clients.
A client that is absent then counts as one whose vector was not shorter. So if fewer clients than
expected take part in every round, the bound settles at a greater quantile, γ times expected over
actual ones, and grows to its limit if that is above 1.

**The account.** A client changes the count by at most 1, and the sum by at most one bound. Noise of
deviation τ on the count and σ on the sum is noise of deviation (σ^-2 + τ^-2)^(-1/2) on one vector
of both, the count divided by τ and the sum by σ (theorem 1 of the paper). A client that was not
drawn, whose weight is 0, is not counted, so both are of the same sample.
"""

import json
import math
from dataclasses import dataclass, replace

import torch

from tacit import checks, fixed
from tacit.federated.privacy.noise import DRAWN
from tacit.federated.rounds.round_state import Held, Step
from tacit.federated.validation import VECTOR_BITS, shorter
from tacit.sessions import session
from tacit.tensor import SecretTensor

#: Fraction bits of the logarithm of a bound over the first one, and the most that it may be.
LOG_BITS, MOST_LOG = 20, 20 << 20

#: A logarithm of 0 as it is kept, so that what is kept is never negative.
ZERO = 1 << 32


@dataclass(frozen=True)
class Count(Step):
    """The servers' count of the vectors that are shorter than the bound. It is revealed."""

    #: Whether vectors come multiplied by their weights.
    is_weighted: bool
    #: How noise is drawn, and its standard deviation; ``None`` without noise.
    how: str | None
    deviation: float | None
    #: The expected number of clients, with noise. Without it the clients that count.
    expected: float | None

    def secret(self, held: Held) -> Held:
        """Reveals the count, with noise. About 15 rounds.

        Noise may make the fraction negative, or more than 1. It stays as it is: cut off, it would
        be biased, and the bound would miss the quantile.
        """
        count = self.counted(held)
        # The next message detects a server that saw another count.
        session().core.note(json.dumps(count).encode())
        return replace(held, fraction=count / (self.expected or float(max(1, len(held.clients)))))

    def counted(self, held: Held) -> float:
        """Returns the count, with its noise."""
        assert isinstance(held.vectors, SecretTensor)
        assert isinstance(held.weights, SecretTensor)
        current = session()
        with checks.proved(current):
            bits = shorter(held.vectors, held.weights, is_weighted=self.is_weighted)
            count = bits.to(torch.int64).sum().reshape(1)
        assert isinstance(count, SecretTensor)
        if self.how is None or self.deviation is None:
            return float(count.reveal()[0])
        parts = tuple(part << VECTOR_BITS for part in count._parts)
        number = SecretTensor(parts, fixed.Scale(VECTOR_BITS), current, torch.float32)
        return float(DRAWN[self.how](number, self.deviation).reveal()[0])

    def plain(self, held: Held) -> Held:
        """Does nothing: the reference has a fixed bound."""
        return held


def moved(log: int, fraction: float, quantile: float, rate: float) -> int:
    """Returns the logarithm of the next bound, from that of this round's, as servers keep them.

    Args:
        log: the logarithm, in steps of 2^-``LOG_BITS``, plus ``ZERO``; 0 for the first bound.
        fraction: the fraction of the clients whose vectors are shorter than the bound; with noise
            any number.
        quantile: the target of that fraction.
        rate: how fast the bound follows.
    """
    step = round(rate * (fraction - quantile) * 2.0**LOG_BITS)
    return max(ZERO - MOST_LOG, min(ZERO + MOST_LOG, (log or ZERO) - step))


def bound_of(first: float, log: int) -> float:
    """Returns the bound of which servers keep this logarithm over the first one."""
    return first * math.exp(((log or ZERO) - ZERO) * 2.0**-LOG_BITS)


def with_count(sigma: float, count_sigma: float) -> float:
    """Returns the deviation of noise on one vector that is as that on a sum and on a count."""
    return 1.0 / math.hypot(1.0 / sigma, 1.0 / count_sigma)
