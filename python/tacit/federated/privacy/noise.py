"""Gaussian noise that no server knows, drawn in one of two ways.

By pairs: the noise has several parts of one variance, and every server lacks at least one of them.
Jointly: see ``joint``.

Under protocols that serve federations each part is drawn from the key of two servers, in integers.
That takes no message, and no party chooses it (``crates/mpc/src/replicated/noise.rs``). Parts, and
noise that is drawn jointly, are discrete Gaussians on the lattice of the numbers. Their variance,
in squared units, is the requested one rounded up to an integer. Discrete Gaussians have no greater
Rényi divergences than Gaussians of their variance (C. Canonne, G. Kamath, T. Steinke 2020, theorem
4), and with 2^16 units and more they have no other privacy loss that double precision would show.
So the account of the Gaussian mechanism holds for them. They are not rounded Gaussians, for which
the mechanism would be exact. A sum of several parts is itself a discrete Gaussian, except for a
factor of about 1 ± exp(-π²σ²) of its probabilities, σ in units.

Other protocols serve no federation, and ``Settings`` refuses them for one. In sessions that only
try out rounds under them, each party draws a part on its own, from its operating system's entropy,
and shares it. Such a part is a Gaussian rounded to the lattice of the numbers that it is added to.
Rounding a number of the lattice plus a Gaussian is the same as adding the rounded Gaussian. So what
is revealed is a function of the exact number plus a Gaussian, as in the Gaussian mechanism.
Gaussians are inverses of the distribution function at uniform numbers of 63 bits and a sign, in
double precision: right to 2^-52 relative, up to nine standard deviations.
"""

import math
import os
from collections.abc import Callable

import numpy as np
import torch

from tacit import buffers
from tacit.errors import MisuseError
from tacit.federated.privacy import joint as jointly
from tacit.federated.privacy.joint import joint
from tacit.providers import PROTOCOLS
from tacit.sharings import shares
from tacit.tensor import SecretTensor

#: Standard deviations of a part, in words, are below this power of two.
MOST = 28


def pairs(total: SecretTensor, deviation: float) -> SecretTensor:
    """Adds noise to a sum: one part for each party, each of the given standard deviation.

    No interaction if parts are drawn from keys. Otherwise one round for each party, and 64 bits an
    element.

    Raises:
        MisuseError: the deviation is not positive, or is too great to be drawn.
    """
    session, words = total._session, deviation * 2.0**total._scale.bits
    if not 1 <= words < 2.0**MOST:
        lowest, highest = (2.0 ** (power - total._scale.bits) for power in (0, MOST))
        raise MisuseError(
            f"noise of standard deviation {deviation:g}: from {lowest:g} to below {highest:g}"
        )
    if PROTOCOLS[session.protocol].serves_federations:
        parts = tuple(part.contiguous().clone() for part in total._parts)
        # A variance in whole squared units, rounded up.
        session.core.add_noise(list(map(buffers.array, parts)), math.ceil(words**2))
        return total.like(parts)
    parts = total._parts
    for owner in range(session.parties):
        own = (
            rounded_gaussian(total.numel(), words).reshape(total.shape)
            if session.party == owner
            else None
        )
        parts = shares.add(parts, shares.share(session, own, owner, total.shape))
    return total.like(parts)


def rounded_gaussian(count: int, deviation: float) -> torch.Tensor:
    """Draws Gaussians of the given standard deviation, rounded to the nearest integers."""
    bits = torch.from_numpy(np.frombuffer(os.urandom(8 * count), np.int64).copy())
    # The lower half of the distribution, in which the inverse keeps its precision; the highest bit
    # is the sign.
    lower = ((bits & (2**63 - 1)).to(torch.float64) + 0.5) * 2.0**-64
    magnitude = torch.special.ndtri(lower.clamp(max=0.5)) * -deviation
    return torch.where(bits < 0, -magnitude, magnitude).round().to(torch.int64)


#: Functions that add noise to a sum, by the setting ``noise``. They take the standard deviation of
#: the noise that every server lacks.
DRAWN: dict[str, Callable[[SecretTensor, float], SecretTensor]] = {"pairs": pairs, "joint": joint}

#: The limits of such a deviation by the setting ``noise``: powers of two of words, from and below.
POWERS = {"pairs": (0, MOST), "joint": (jointly.LEAST, jointly.MOST)}


#: The total variation by which a round's noise is off, by the setting ``noise``.
OFF = {"pairs": 0.0, "joint": jointly.OFF}


def parts(how: str, parties: int) -> int:
    """Returns the number of parts, of the given deviation, of all noise. A server lacks one
    part."""
    return parties if how == "pairs" else 1
