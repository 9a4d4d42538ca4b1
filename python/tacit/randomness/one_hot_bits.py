"""One-hot vectors of secret numbers, from their bits."""

from collections.abc import Sequence

import torch

from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts


def one_hot(session: Session, bits: Parts, size: int, *valid: Parts) -> Parts:
    """Converts bits of numbers to one-hot vectors of ``size`` bits along a new last dimension.

    The bits of a number are along dimension 0, the lowest first. A vector says which of 0 to size −
    1 the number is. It is zero if the number is greater, or if one of ``valid`` is false.

    Patterns of few adjacent bits are multiplied with each other in a tree: log2(bits) rounds, and
    hardly more ANDs than results.
    """
    complement = shares.complement(session, bits)
    factors = [
        tuple(torch.stack([no[at], yes[at]], -1) for no, yes in zip(complement, bits, strict=True))
        for at in range(bits[0].shape[0])
    ]
    for holds in valid:
        factors.insert(0, tuple(bit.unsqueeze(-1) for bit in holds))
    # Each pass drops patterns that no number below ``size`` has, and multiplies neighbours.
    while True:
        factors = _limited(factors, size)
        if len(factors) == 1:
            return factors[0]
        factors = _in_pairs(session, factors)


def _limited(factors: Sequence[Parts], size: int) -> list[Parts]:
    """Removes the patterns that no number below ``size`` has."""
    limited, below = [], 1
    for factor in factors:
        most = min(factor[0].shape[-1], -(-size // below))
        limited.append(tuple(part[..., :most] for part in factor))
        below *= factor[0].shape[-1]
    return limited


def _in_pairs(session: Session, factors: Sequence[Parts]) -> list[Parts]:
    """Multiplies neighbouring factors with each other, all in one round."""
    pairs = list(zip(factors[::2], factors[1::2], strict=False))
    lower = [tuple(_spread(part, high[0].shape[-1], -2) for part in low) for low, high in pairs]
    higher = [tuple(_spread(part, low[0].shape[-1], -1) for part in high) for low, high in pairs]
    left, right = (
        tuple(torch.cat(part, -1) for part in zip(*side, strict=True)) for side in (lower, higher)
    )
    widths = [part[0].shape[-1] for part in lower]
    product = (torch.split(part, widths, -1) for part in shares.and_bits(session, left, right))
    rest = [factors[-1]] if len(factors) % 2 else []
    return [*zip(*product, strict=True), *rest]


def product(session: Session, lower: Parts, higher: Parts) -> Parts:
    """Combines two one-hot vectors into one over both. The lower one changes fastest. One round."""
    return _in_pairs(session, [lower, higher])[0]


def _spread(part: torch.Tensor, times: int, dim: int) -> torch.Tensor:
    """Repeats a factor's patterns for each pattern of another factor.

    The lower factor changes fastest.
    """
    part = part.unsqueeze(dim)
    sizes = [-1] * part.dim()
    sizes[dim] = times
    return part.expand(sizes).flatten(-2)
