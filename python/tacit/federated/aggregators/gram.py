"""Inner products of whole vectors. Messages have the size of the results, whatever the vectors'
length.

The products are exact integers, in units of 2^-44 squared bounds. A fixed-point fraction would keep
30 bits of them, and only ten for two vectors of a thousandth of the bound.
"""

import torch

from tacit.federated.validation import UNIT, checked, squares
from tacit.fixed import WHOLE
from tacit.tensor import SecretTensor

#: Squared distances of vectors within the bound are below 2^``BITS``.
BITS = 47


def words(vectors: torch.Tensor) -> torch.Tensor:
    """Returns the words of vectors as integers: int64 if secret, float64 if plain.

    Products of these float64 numbers are exact, too.
    """
    if isinstance(vectors, SecretTensor):
        checked(vectors)
        return vectors.like(vectors._parts, WHOLE, torch.int64)
    return (vectors.to(torch.float64) * UNIT).round()


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiplies matrices of words; the result is int64. Two rounds."""
    return (left @ right).to(torch.int64)


def gram(vectors: torch.Tensor) -> torch.Tensor:
    """Computes the inner products of every two vectors, [clients, clients]. Two rounds."""
    whole = words(vectors)
    return product(whole, whole.mT)


def squared_norms(vectors: torch.Tensor) -> torch.Tensor:
    """Computes the inner product of each vector with itself, [clients]. Two rounds."""
    if isinstance(vectors, SecretTensor):
        return squares(checked(vectors))
    whole = words(vectors)
    return product(whole.unsqueeze(1), whole.unsqueeze(2)).flatten()


def squared_distances(vectors: torch.Tensor) -> torch.Tensor:
    """Computes |x - y|² of every two vectors, [clients, clients]. Two rounds."""
    products = gram(vectors)
    norms = products.diagonal()
    return norms.unsqueeze(0) + norms.unsqueeze(1) - 2 * products
