"""Eigenvalues and singular values of small matrices, by Jacobi's rotations.

A sweep rotates every pair of rows or columns once, half as many pairs at a time as there are rows:
the pairs of a round robin, which depend on the size alone (Brent and Luk 1985). The number of
sweeps is public and fixed, so that nothing shows how fast they converge. Symmetric matrices take
rotations on both sides (Golub and Van Loan, Matrix Computations, 8.5), general ones on the right,
until their columns are orthogonal (Hestenes 1958).

A rotation needs no cases. Of p and q it takes the direction (|p|, q) / √(p² + q²), which is
computed by normalising p² + q², and halves its angle, which is at most a right angle."""

from collections.abc import Iterator

import torch

from tacit.operators.numerics.approximation.quotients import flipped
from tacit.operators.numerics.equilibration import transposed
from tacit.operators.numerics.reflections import FINE, by_root, elementwise, squares_of
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts


def sweeps(size: int) -> int:
    """Returns the number of sweeps. Convergence is quadratic: a few more than log2(size) do."""
    return (size - 1).bit_length() + 3 if size > 1 else 0


def rounds_of(size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields the disjoint pairs of each round of a round robin, which meets every pair once."""
    players = [*range(size + size % 2)]
    for _ in range(len(players) - 1):
        pairs = [
            (min(pair), max(pair))
            for pair in zip(players, reversed(players), strict=True)
            if pair[0] < pair[1] < size or pair[1] < pair[0] < size
        ]
        first, second = zip(*sorted(set(pairs)), strict=True)
        yield torch.tensor(first), torch.tensor(second)
        players = [players[0], players[-1], *players[1:-1]]


def _rotation(session: Session, p: Parts, q: Parts) -> tuple[Parts, Parts]:
    """Returns c and s with (c + is)² = (|p| + i·sign(p)·q) / √(p² + q²), FINE fraction bits.

    p and q have FINE fraction bits, and p² + q² is below 4. About 110 rounds."""
    negative = shares.sign(session, p, FINE + 2)
    both = flipped(session, shares.stacked(negative, negative), shares.stacked(p, q))
    size, side = shares.unstacked(both)
    # One unit more, so that two zeros give no rotation.
    both = shares.stacked(_plus(session, size, 1), side)
    square = elementwise(session, both, both, 0)
    total = tuple(part.sum(0, keepdim=True).expand(part.shape) for part in square)
    cosine, sine = shares.unstacked(by_root(session, both, total, 2 * FINE))
    # cos² of half of the angle, from 1/2 to 1, and half of the sine.
    both = shares.truncate(session, shares.stacked(_plus(session, cosine, 1 << FINE), sine), 1)
    half = tuple(part[:1].expand(part.shape) for part in both)
    c, s = shares.unstacked(by_root(session, both, half, FINE))
    return c, s


def _plus(session: Session, x: Parts, word: int) -> Parts:
    whole = shares.trivial(session, torch.tensor(word))
    return tuple(part + more for part, more in zip(x, whole, strict=True))


def _turned(
    session: Session, x: Parts, pair: tuple[torch.Tensor, torch.Tensor], c: Parts, s: Parts
) -> Parts:
    """Rotates pairs of columns of a matrix: two rounds."""
    one, other = (tuple(part[..., which] for part in x) for which in pair)
    factors = tuple(part.unsqueeze(-2).expand(a.shape) for part, a in zip(c, one, strict=True))
    sides = tuple(part.unsqueeze(-2).expand(a.shape) for part, a in zip(s, one, strict=True))
    raw = elementwise(
        session,
        shares.stacked(factors, sides, sides, factors),
        shares.stacked(one, other, one, other),
        0,
    )
    left = tuple(torch.stack([part[0] - part[1], part[2] + part[3]]) for part in raw)
    found = shares.unstacked(shares.truncate(session, left, FINE))
    places = torch.cat(pair)
    turned = tuple(torch.cat(both, -1) for both in zip(*found, strict=True))
    return tuple(
        part.index_copy(part.dim() - 1, places, new) for part, new in zip(x, turned, strict=True)
    )


def _identity(session: Session, x: Parts) -> Parts:
    size = x[0].shape[-1]
    eye = shares.trivial(session, torch.eye(size, dtype=torch.int64) << FINE)
    return tuple(
        part.expand(*like.shape[:-2], size, size) for part, like in zip(eye, x, strict=True)
    )


def _below(x: Parts, y: Parts) -> Parts:
    return tuple(torch.cat(both, -2) for both in zip(x, y, strict=True))


def eigen(session: Session, x: Parts) -> tuple[Parts, Parts]:
    """Returns the eigenvalues and eigenvectors of symmetric matrices, in no order.

    The matrices have FINE fraction bits and Frobenius norms up to 1/2. About 115 rounds for each
    step, of which a sweep has one for each row."""
    size = x[0].shape[-1]
    vectors = _identity(session, x)
    for _ in range(sweeps(size)):
        for pair in rounds_of(size):
            first, second = pair
            ends = [tuple(part[..., which, which] for part in x) for which in pair]
            twice = tuple(2 * part[..., first, second] for part in x)
            c, s = _rotation(session, shares.subtract(ends[1], ends[0]), twice)
            both = _turned(session, _below(x, vectors), pair, c, s)
            vectors = tuple(part[..., size:, :] for part in both)
            rows = transposed(tuple(part[..., :size, :] for part in both))
            x = transposed(_turned(session, rows, pair, c, s))
    return tuple(part.diagonal(dim1=-2, dim2=-1) for part in x), vectors


def singular(session: Session, x: Parts) -> tuple[Parts, Parts, Parts]:
    """Returns U, the singular values, and V of matrices that are not wide, in no order.

    The matrices have FINE fraction bits and Frobenius norms up to 1/2. About 120 rounds for each
    step, of which a sweep has one for each column."""
    rows, size = x[0].shape[-2:]
    vectors = _identity(session, x)
    for _ in range(sweeps(size)):
        for pair in rounds_of(size):
            one, other = (tuple(part[..., which] for part in x) for which in pair)
            difference, total = shares.subtract(other, one), shares.add(other, one)
            raw = elementwise(
                session, shares.stacked(difference, one), shares.stacked(total, other), 0
            )
            sums = shares.truncate(session, tuple(part.sum(-2) for part in raw), FINE)
            p, q = shares.unstacked(sums)
            c, s = _rotation(session, p, tuple(2 * part for part in q))
            both = _turned(session, _below(x, vectors), pair, c, s)
            x, vectors = (
                tuple(part[..., :rows, :] for part in both),
                tuple(part[..., rows:, :] for part in both),
            )
    squares = squares_of(session, x)
    units = by_root(session, x, tuple(part.expand(x[0].shape) for part in squares), 2 * FINE)
    raw = elementwise(session, units, x, 0)
    values = shares.truncate(session, tuple(part.sum(-2) for part in raw), FINE)
    return units, values, vectors
