"""Gaussian noise that the servers draw together.

No server knows any part of it, so all of it counts against a server, too.

It is a discrete Gaussian of variance V on the words, from thresholds on shared random bits
(``sampling``): digits y_0 to y_n to the base of 4 are drawn from tables, and the noise is

    x = y_0 + 4·y_1 + ... + 4^n·y_n

Each y is a discrete Gaussian on the whole numbers and a half, in 128 magnitudes and a random sign.
Each has the deviation S = 9.6, except for the last one, whose deviation T satisfies 2.4 < T < 13.6
and S²·(1 + 16 + ... + 16^(n-1)) + 16^n·T² = V. (That a sum of digits is a discrete Gaussian again
is the convolution of D. Micciancio and C. Peikert 2013; the following proves it for this sum.)

**Errors.** There are three, for each of up to 10^6 values:

- *The sum.* Let z be the sum from y_(k+1) on, of variance v. For each x the probability of y_k + 4z
  = x is exp(-x²/2(S² + 16v)) times a sum over z of exp(-(z - c·x)²/2t²), t² = S²·v/(S² + 16v) and
  some c. By Poisson's summation that sum is the same for all x except for a factor within 1 ±
  2.01·exp(-2π²t²); as v > 5.79, t² > 2.88 and that is within 1 ± 2^-81. So each probability is
  right to 2^-76, for up to 14 digits, and 10^6 values add less than 2^-55 to ε.
- *The tables' ends.* A digit ends at 127.5, more than 9.37 deviations: 2^-67 lies beyond.
- *Thresholds* have 62 bits, so that a digit's distribution is off by 2^-63 in total variation.

The latter two are less than 2^-39 for all values of a round together. For R rounds, R times that
much, times 1 + e^ε, is a part of δ. The account subtracts it before it looks for ε.

**The guarantee.** A discrete Gaussian has no greater Rényi divergences than a Gaussian of its
variance (C. Canonne, G. Kamath, T. Steinke 2020, theorem 4; on the whole numbers and a half except
for a factor 1 + 5·exp(-2π²V)). Its mean is half a word below 0, since magnitudes are turned into
negative ones bit by bit.

**Who learns what.** Every random bit is the XOR of one from each server. The servers' protocol
computes everything that follows, and opens nothing of it. So noise is unknown to each server, as
any shared value is. No server chooses any of it: its random bits are added to those of the others.
"""

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import torch

from tacit.errors import MisuseError
from tacit.randomness import sampling
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: The most values that noise is drawn for.
MOST_VALUES = 1_000_000

#: The total variation by which the distribution of that many values is off: see above.
OFF = 2.0**-39

#: Standard deviations, in words, are from the first of these powers of two to below the second.
LEAST, MOST = 2, 28

#: Bits of a magnitude, and of a comparison with a threshold.
MAGNITUDE, PRECISION = 7, 62

#: The variance of all digits but the last, and the most that the last one has.
USUAL, GREATEST = Decimal("92.16"), Decimal("184.96")

#: Values that are drawn at a time, which bounds the memory of their one-hot vectors.
BLOCK = 1 << 13

#: Decimal digits of the precision of weights.
DIGITS = 60


def joint(total: SecretTensor, deviation: float) -> SecretTensor:
    """Adds noise of the given standard deviation, in all, to a sum.

    At most 13 rounds, and five for each server, for every 2^13 values. With σ = 1 at 22 fraction
    bits each server sends 1.3 kB a value.

    Raises:
        MisuseError: the deviation is not positive, or is too great to be drawn; too many values.
    """
    words, bits = deviation * 2.0**total._scale.bits, total._scale.bits
    if not 2.0**LEAST <= words < 2.0**MOST:
        lowest, highest = 2.0 ** (LEAST - bits), 2.0 ** (MOST - bits)
        raise MisuseError(
            f"joint noise of standard deviation {deviation:g}: from {lowest:g} to below {highest:g}"
        )
    check_values(total.numel())
    # A variance in whole squared units, rounded up.
    variance = math.ceil(words**2)
    sizes = [min(BLOCK, total.numel() - at) for at in range(0, total.numel(), BLOCK)]
    drawn = [_drawn(total._session, variance, size) for size in sizes]
    if not drawn:
        return total
    parts = tuple(torch.cat(each).reshape(total.shape) for each in zip(*drawn, strict=True))
    return total.like(shares.add(total._parts, parts))


def check_values(count: int) -> None:
    """Checks that noise can be drawn for the given number of values.

    Raises:
        MisuseError: there are too many.
    """
    if count > MOST_VALUES:
        raise MisuseError(
            f'noise = "joint" is drawn for at most {MOST_VALUES:,} values, and the model has '
            f'{count:,}; noise = "pairs" is for any'
        )


def _drawn(session: Session, variance: int, count: int) -> Parts:
    """Draws words of noise."""
    weights = tables(variance)
    magnitudes = sampling.digits(session, weights, (count,), PRECISION)
    sign = sampling.bits(session, (1, len(weights), count))
    digits = [torch.cat([part ^ bit, bit]) for part, bit in zip(magnitudes, sign, strict=True)]
    worth = [1 << at for at in range(MAGNITUDE)] + [-1 << MAGNITUDE]
    powers = torch.tensor([[each * 4**level for level in range(len(weights))] for each in worth])
    words = shares.from_binary(
        session, tuple(part.flatten(0, 1) for part in digits), powers.flatten()
    )
    # A digit is its word plus a half.
    half = torch.tensor((4 ** len(weights) - 1) // 6).expand(count).contiguous()
    return shares.add(words, shares.trivial(session, half))


@lru_cache(maxsize=16)
def tables(variance: int) -> list[list[int]]:
    """Computes the weights of magnitudes ½, 1½, ... of each digit, the lowest first.

    Args:
        variance: of the noise; 16 or more.
    """
    below, level = Decimal(0), 0
    with localcontext(prec=DIGITS):
        while variance - below > GREATEST * 16**level:
            below += USUAL * 16**level
            level += 1
        last = (variance - below) / 16**level
        return [_weights(USUAL)] * level + [_weights(last)]


def _weights(variance: Decimal) -> list[int]:
    squares = [(Decimal(at) + Decimal("0.5")) ** 2 for at in range(1 << MAGNITUDE)]
    return [int((-square / (2 * variance)).exp().scaleb(DIGITS - 10)) for square in squares]
