"""FLTrust: what clients send counts by how much it points where an update on trusted data points."""

import torch

from tacit.federated.aggregators.gram import squared_norms
from tacit.federated.aggregators.mean import LEAST_SQUARE
from tacit.federated.aggregators.precision import COARSE, FINE, numbers

#: The sum of all trust counts as at least this, so that nobody's vector is blown up where nobody is trusted.
LEAST_TRUST = 2.0**-8


def fltrust(vectors: torch.Tensor, weights: torch.Tensor, root: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """FLTrust (Cao et al. 2021, figure 2): every vector is brought to the norm of ``root``, an update on data
    that somebody trusts, and weighed by its trust, ReLU(cosine of both).

    Reveals nothing but its result. About 160 rounds; the products are 2·n·d for cosines and norms, and one of
    [1, n] by [n, d].

    Domain: norms up to 1; those below 2^-10 count as that. Where all trust together is less than 2^-8 the
    result is shorter than the root, and 0 where nobody is trusted. Error: 2^-10 of the root's norm, and more
    where all trust is below 2^-4.
    """
    with numbers(FINE, 2):
        # Apart: putting them together would copy every vector.
        square = squared_norms(root.unsqueeze(0)).clamp(min=LEAST_SQUARE)
        squares = squared_norms(vectors).clamp(min=LEAST_SQUARE)
        along = vectors @ root
    with numbers(COARSE, 8):
        inverse_root, inverses = torch.rsqrt(square), torch.rsqrt(squares)
        # First by the one, then by the other, so that all that is multiplied is small.
        trust = torch.relu(along * inverses * inverse_root)
        share = trust * torch.reciprocal(trust.sum().clamp(min=LEAST_TRUST))
        factors = share * (square * inverse_root * inverses)
        return (factors.unsqueeze(0) @ vectors).squeeze(0)
