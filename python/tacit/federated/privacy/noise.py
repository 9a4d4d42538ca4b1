"""Gaussian noise that no server knows, drawn in one of two ways.

By pairs: several parts of one variance, of which every server lacks at least one. Jointly: see
``joint``.

Under protocols that serve federations each part is drawn from the key of two servers, in integers,
without a message, and nobody chooses it (``crates/mpc/src/replicated/noise.rs``). Parts, and what
is drawn jointly, are discrete Gaussians on the numbers' lattice, of a variance in whole squared
units that is never less than was asked for. Discrete Gaussians have no greater Rényi divergences
than Gaussians of their variance (C. Canonne, G. Kamath, T. Steinke 2020, theorem 4), and with 2^16
units and more no other privacy loss that double
precision would show: so the account of the Gaussian mechanism holds for them. They are not
Gaussians that were rounded, which the mechanism would be exactly; a sum of several parts is a
discrete Gaussian itself but for a factor of 1 ± exp(-π²σ²) or so of its probabilities, σ in units.

Other protocols serve no federation, and ``Settings`` refuse them for one. In sessions where rounds
are only tried out under them, each party draws a part for itself, by its operating system's
entropy, and shares it. Such a part is a Gaussian rounded to the lattice of the numbers that it is
added to. Rounding a number of the lattice plus a Gaussian is the same as adding the rounded
Gaussian, so what is revealed is a function of the exact number plus a Gaussian, as the Gaussian
mechanism has it. Gaussians are inverses of the distribution function at uniform numbers of 63 bits
and a sign, in double precision: right to 2^-52 relative, up to nine standard deviations.
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

#: Standard deviations of a part are below this power of two of words.
MOST = 28


def pairs(total: SecretTensor, deviation: float) -> SecretTensor:
    """A sum with noise: as many parts as there are parties, each of that standard deviation. No
    interaction by keys; else a round for each party, 64 bits an element.

    Raises:
        MisuseError: the deviation is not positive, or more than can be drawn.
    """
    session, words = total._session, deviation * 2.0**total._scale.bits
    if not 1 <= words < 2.0**MOST:
        lowest, highest = (2.0 ** (power - total._scale.bits) for power in (0, MOST))
        raise MisuseError(
            f"noise of standard deviation {deviation:g}: from {lowest:g} to below {highest:g}"
        )
    if PROTOCOLS[session.protocol].serves_federations:
        parts = tuple(part.contiguous().clone() for part in total._parts)
        # A variance in whole squared units, never less than was asked for.
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
    """Integers: Gaussians of that standard deviation, rounded to the nearest."""
    bits = torch.from_numpy(np.frombuffer(os.urandom(8 * count), np.int64).copy())
    # The lower half of the distribution, where the inverse keeps its precision; the sign is the
    # highest bit.
    lower = ((bits & (2**63 - 1)).to(torch.float64) + 0.5) * 2.0**-64
    magnitude = torch.special.ndtri(lower.clamp(max=0.5)) * -deviation
    return torch.where(bits < 0, -magnitude, magnitude).round().to(torch.int64)


#: By the setting ``noise``: what adds noise to a sum, of a standard deviation that every server
#: lacks.
DRAWN: dict[str, Callable[[SecretTensor, float], SecretTensor]] = {"pairs": pairs, "joint": joint}

#: By the same: the powers of two of words that such a deviation is from, and below.
POWERS = {"pairs": (0, MOST), "joint": (jointly.LEAST, jointly.MOST)}


#: By the same: by how much the distribution of a round's noise is off, in total variation.
OFF = {"pairs": 0.0, "joint": jointly.OFF}


def parts(how: str, parties: int) -> int:
    """Of how many parts of the given deviation all noise is, of which a server lacks one."""
    return parties if how == "pairs" else 1
