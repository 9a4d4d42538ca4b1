"""FLTrust: a client's vector counts by how well its direction agrees with a trusted update."""

import torch

from tacit.federated.aggregators.gram import BITS, product, squared_norms, words
from tacit.federated.aggregators.magnitude import WIDTH, fraction, powers
from tacit.federated.aggregators.precision import COARSE, integers, numbers

#: The total trust counts as at least this, so that no vector is scaled up when no client is
#: trusted.
LEAST_TRUST = 2.0**-8

#: The largest factor by which a vector is lengthened, a power of two.
LONGER = 1 << 10


def fltrust(vectors: torch.Tensor, weights: torch.Tensor, root: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Averages vectors by their agreement with a trusted one: FLTrust (Cao et al. 2021, figure 2).

    Every vector is scaled to the norm of ``root``, an update on trusted data, and weighted by its
    trust, the ReLU of the cosine of both.

    Reveals nothing but its result. About 140 rounds. The products cost 2·n·d for cosines and norms,
    plus one of [1, n] by [n, d].

    Domain: norms up to 1, of any magnitude. Products are exact, and each norm is scaled to its own
    magnitude before its root is taken. A vector shorter than 2^-11 of the root is lengthened by at
    most 2^10. If the total trust is less than 2^-8, the result is shorter than the root, and it is
    0 if no client is trusted. Error: 2^-10 of the root's norm, more if the total trust is below
    2^-4, and two units.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; ignored.
        root: the trusted update [parameters], in the same units.
    """
    # Two calls: joining the tensors would copy every vector.
    squares = torch.cat([squared_norms(root.unsqueeze(0)), squared_norms(vectors)])
    along = product(words(vectors), words(root.unsqueeze(1))).flatten()
    with numbers(COARSE, 8):
        filled = powers(squares)
        mantissas = filled.mantissas()
        inverses = torch.rsqrt(mantissas)
        cosines = fraction(along * filled.power[1:] * filled.power[0], WIDTH)
        # One norm after the other, so that all factors are small.
        trust = torch.relu(cosines * inverses[1:] * inverses[0])
        share = trust * torch.reciprocal(trust.sum().clamp(min=LEAST_TRUST))
        with integers(BITS):
            limited = filled[1:].limited(filled[0], LONGER)
        norms = mantissas[0] * inverses[0] * inverses[1:]
        factors = share * norms * limited.over(filled[0])
        return (factors.to(vectors.dtype).unsqueeze(0) @ vectors).squeeze(0)
