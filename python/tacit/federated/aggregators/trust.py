"""FLTrust: what clients send counts by how much it points where an update on
trusted data points."""

import torch

from tacit.federated.aggregators.gram import BITS, product, squared_norms, words
from tacit.federated.aggregators.magnitude import WIDTH, fraction, powers
from tacit.federated.aggregators.precision import COARSE, integers, numbers

#: The sum of all trust counts as at least this, so that nobody's vector is blown up where nobody is
#: trusted.
LEAST_TRUST = 2.0**-8

#: By how much a vector is made longer at most, a power of two.
LONGER = 1 << 10


def fltrust(vectors: torch.Tensor, weights: torch.Tensor, root: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """FLTrust (Cao et al. 2021, figure 2): every vector is brought to the norm of ``root``, an
    update on data that somebody trusts, and weighed by its trust, ReLU(cosine of both).

    Reveals nothing but its result. About 140 rounds; the products are 2·n·d for cosines and norms,
    and one of [1, n] by [n, d].

    Domain: norms up to 1, of any magnitude: products are exact, and each norm is brought to a
    magnitude of its own before its root is taken. A vector shorter than 2^-11 of the root is made
    2^10 times as long at most. Where all trust together is less than 2^-8 the result is shorter
    than the root, and 0 where nobody is trusted. Error: 2^-10 of the root's norm, more where all
    trust is below 2^-4, and two units.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; they do not count.
        root: the trusted update [parameters], in the same units.
    """
    # Apart: putting them together would copy every vector.
    squares = torch.cat([squared_norms(root.unsqueeze(0)), squared_norms(vectors)])
    along = product(words(vectors), words(root.unsqueeze(1))).flatten()
    with numbers(COARSE, 8):
        filled = powers(squares)
        mantissas = filled.mantissas()
        inverses = torch.rsqrt(mantissas)
        cosines = fraction(along * filled.power[1:] * filled.power[0], WIDTH)
        # First by the one, then by the other, so that all that is multiplied is small.
        trust = torch.relu(cosines * inverses[1:] * inverses[0])
        share = trust * torch.reciprocal(trust.sum().clamp(min=LEAST_TRUST))
        with integers(BITS):
            limited = filled[1:].limited(filled[0], LONGER)
        norms = mantissas[0] * inverses[0] * inverses[1:]
        factors = share * norms * limited.over(filled[0])
        return (factors.to(vectors.dtype).unsqueeze(0) @ vectors).squeeze(0)
