"""Random values that no party knows, as components of sharings.

Every random bit is the XOR of one bit from each party, drawn from its operating system's entropy
and shared. All other values are computed from such bits by operations of the protocol, which reveal
nothing. Parties that follow the protocol draw uniformly and independently. So to any of them, and
to as many together as the protocol tolerates, the bits are uniform and unknown as long as one party
is not among them: no party learns or biases a sample.

Values are drawn as bits, which cost little, and become numbers at the end. Distributions that are
not uniform come from public tables by Walker's alias method (A. Walker, ACM TOMS 3, 1977): one of
2^k columns is drawn uniformly, and then a comparison of ``PRECISION`` bits selects the column
itself or its alias. Looking up the columns' bits is linear in the one-hot vector, so it needs no
interaction.
"""

import os
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch

from tacit.randomness import one_hot_bits
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts

#: Bits of the comparison that decides an event with a given probability.
PRECISION = 32

#: Floating-point weights add up to two to this power before they are rounded.
WHOLE = 62

#: Most elements of one-hot vectors that are held at a time.
ENTRIES = 1 << 24

#: Most rows of one-hot vectors that are multiplied with a table at a time, locally.
ROWS = 1 << 14


def bits(session: Session, shape: tuple[int, ...]) -> Parts:
    """Returns uniform bits. At most one round for each party."""
    count = torch.Size(shape).numel()
    drawn = np.unpackbits(np.frombuffer(os.urandom(-(-count // 8)), np.uint8), count=count)
    own = torch.from_numpy(drawn).reshape(shape)
    found: Parts = ()
    for party in range(session.parties):
        theirs = shares.share_bits(session, own if party == session.party else None, party, shape)
        found = shares.xor(found, theirs) if found else theirs
    return found


def number(session: Session, x: Parts, *, signed: bool = False) -> Parts:
    """Converts bits along dimension 0, the lowest first, to words. Two rounds.

    The last bit counts −2^j if ``signed``.
    """
    top = x[0].shape[0] - 1
    powers = [-1 << at if signed and at == top else 1 << at for at in range(top + 1)]
    return shares.from_binary(session, x, torch.tensor(powers, dtype=torch.int64))


def happens(session: Session, probability: torch.Tensor, shape: tuple[int, ...]) -> Parts:
    """Returns bits that are 1 with public probabilities, to 2^-32.

    At most five rounds and a round for each party. Only as many bits are drawn as the probabilities
    have.
    """
    threshold = (probability.to(torch.float64) * 2.0**PRECISION).round().to(torch.int64)
    combined = int(np.bitwise_or.reduce(threshold.numpy().reshape(-1))) if threshold.numel() else 0
    drop = (
        min(PRECISION - 1, (combined & -combined).bit_length() - 1) if combined else PRECISION - 1
    )
    width = PRECISION - drop
    drawn = bits(session, (width, *shape))
    # A probability of 1 has one bit more than the bits that are drawn.
    known = torch.stack([threshold >> (at + drop) & 1 for at in range(width + 1)]).to(torch.uint8)
    known = known.reshape(width + 1, *[1] * (len(shape) - threshold.dim()), *threshold.shape)
    free = shares.complement(session, drawn)
    less = tuple(bit & known[:-1] for bit in free)
    same = tuple(
        torch.where(known[:-1].bool(), yes, no) for yes, no in zip(drawn, free, strict=True)
    )
    certain = shares.trivial_bits(session, torch.ones(shape, dtype=torch.uint8))
    found = zip(_less(session, less, same), certain, strict=True)
    return tuple(torch.where(known[-1].bool(), one, bit) for bit, one in found)


def _less(session: Session, less: Parts, same: Parts) -> Parts:
    """Returns whether a number is less than another.

    For each bit along dimension 0, lowest first, ``less`` and ``same`` say whether it is less and
    whether it is equal. Takes log2 of the number of bits rounds.
    """
    while (width := less[0].shape[0]) > 1:
        even = 2 * (width // 2)
        above = tuple(part[1:even:2] for part in same)
        below = shares.stacked(*(tuple(part[:even:2] for part in bits) for bits in (less, same)))
        both = shares.and_bits(session, tuple(part.expand(2, *part.shape) for part in above), below)
        less = tuple(
            torch.cat([part[1:even:2] ^ new[0], part[even:]])
            for part, new in zip(less, both, strict=True)
        )
        same = tuple(torch.cat([new[1], part[even:]]) for part, new in zip(same, both, strict=True))
    return tuple(part[0] for part in less)


def digits(
    session: Session,
    weights: torch.Tensor | Sequence[Sequence[int]],
    shape: tuple[int, ...],
    precision: int = PRECISION,
) -> Parts:
    """Draws an index from each of several tables with public probabilities, independently.

    The result has shape [k, tables, *shape] and holds the bits of the indices, the lowest first.
    ``weights`` is [tables, 2^k]: floating-point numbers, or whole ones, which count exactly. The
    probabilities of the 2^k indices are right to 2^-precision, where precision is at most 62. At
    most eleven rounds, and two for each party, for every 2^24 elements of the one-hot vectors.
    """
    tables, size = len(weights), len(weights[0])
    table = _table(weights, precision)
    session.core.note_public("tacit.random", table.view(torch.uint8).numpy().reshape(-1))
    count, block = torch.Size(shape).numel(), max(1, ENTRIES // (tables * size))
    blocks = [
        _digits(session, table, (tables, min(block, count - at)), precision)
        for at in range(0, max(count, 1), block)
    ]
    joined = (torch.cat(parts, -1) for parts in zip(*blocks, strict=True))
    return tuple(part.reshape(*part.shape[:2], *shape) for part in joined)


def _digits(session: Session, table: torch.Tensor, shape: tuple[int, ...], precision: int) -> Parts:
    size = table.shape[1]
    own = bits(session, ((size - 1).bit_length(), *shape))
    hot = one_hot_bits.one_hot(session, own, size)
    looked_up = tuple(_looked_up(part, table) for part in hot)
    threshold, other = (
        tuple(part[:precision] for part in looked_up),
        tuple(part[precision:] for part in looked_up),
    )
    drawn = bits(session, (precision, *shape))
    less = shares.and_bits(session, shares.complement(session, drawn), threshold)
    same = shares.complement(session, shares.xor(drawn, threshold))
    stays = _less(session, less, same)
    change = shares.and_bits(
        session, tuple(bit.expand(own[0].shape) for bit in stays), shares.xor(own, other)
    )
    return shares.xor(other, change)


def _looked_up(hot: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Looks up a component of one-hot vectors, [tables, *shape, 2^k], in a table.

    The table's bits are along dimension 0 of the result. They are sums modulo 2.
    """
    rows, factor = hot.reshape(hot.shape[0], -1, hot.shape[-1]), table.float()
    blocks = (rows[:, at : at + ROWS] for at in range(0, max(rows.shape[1], 1), ROWS))
    found = [torch.bmm(block.float(), factor).remainder_(2).to(torch.uint8) for block in blocks]
    return torch.cat(found, 1).reshape(*hot.shape[:-1], table.shape[-1]).movedim(-1, 0)


def _table(
    weights: torch.Tensor | Sequence[Sequence[int]], precision: int = PRECISION
) -> torch.Tensor:
    """Returns the bits of Walker's table for each column.

    They are the bits of the probability that the column stays itself, and those of its alias's
    index.
    """
    if isinstance(weights, torch.Tensor):
        weights = [
            (row / row.sum() * 2.0**WHOLE).long().tolist() for row in weights.to(torch.float64)
        ]
    size = len(weights[0])
    width = (size - 1).bit_length()
    found = torch.tensor([_columns(row, precision) for row in weights]).reshape(
        len(weights), size, 2
    )
    stays = [found[..., 0] >> at & 1 for at in range(precision)]
    others = [found[..., 1] >> at & 1 for at in range(width)]
    return torch.stack([*stays, *others], -1).to(torch.uint8)


def _columns(weights: Sequence[int], precision: int) -> list[tuple[int, int]]:
    """Returns Walker's table: for each column the share that it keeps, and its alias.

    A column that has too little is filled up by one that has too much. The share of a full column
    does not matter, since its alias is the column itself. Everything is exact except the weights.
    They are rounded so that they fill all columns: by cumulative sums, so that none is off by more
    than a unit.
    """
    full, total = 1 << precision, sum(weights)
    share, below = [], 0
    for weight in accumulate(weights):
        above = (2 * weight * len(weights) * full + total) // (2 * total)
        share.append(above - below)
        below = above
    columns = [(0, at) for at in range(len(share))]
    few = [at for at, part in enumerate(share) if part < full]
    much = [at for at, part in enumerate(share) if part >= full]
    while few and much:
        at, other = few.pop(), much[-1]
        columns[at] = share[at], other
        share[other] -= full - share[at]
        if share[other] < full:
            few.append(much.pop())
    return columns
