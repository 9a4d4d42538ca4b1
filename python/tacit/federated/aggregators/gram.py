"""Products of whole vectors. Messages have the size of the results, whatever the vectors' length."""

import torch


def gram(vectors: torch.Tensor) -> torch.Tensor:
    """The products of every two vectors, [clients, clients]. Two rounds."""
    return vectors @ vectors.mT


def squared_norms(vectors: torch.Tensor) -> torch.Tensor:
    """The product of each vector with itself, [clients]. Two rounds."""
    return (vectors.unsqueeze(1) @ vectors.unsqueeze(2)).flatten()


def squared_distances(vectors: torch.Tensor) -> torch.Tensor:
    """|x - y|^2 of every two vectors, 0 at the least, [clients, clients]. Rounds of a product and a ReLU."""
    products = gram(vectors)
    norms = products.diagonal()
    return torch.relu(norms.unsqueeze(0) + norms.unsqueeze(1) - 2 * products)
