"""Samples that no party knows, from secret random bits (``sampling``).

They are fixed-point words with given fraction bits, rounded down.

Uniform: the bits themselves.

Exponential: the binary digits of an exponential variable are independent. So its integer part, the
next five digits and the next five come from three tables. Each of the later digits is 1 with a
probability within 2^-13 of ½, and is drawn uniformly. The distribution ends at 32, which the true
one exceeds with probability 1.3·10^-14.

Laplace: an exponential variable with a random sign.

Normal: |x| is in one of 256 cells of width 2^-5, and at a uniform place within it. The distribution
function is off by less than 2^-15. It ends at 8. Cells have their probability to 2^-32, so values
beyond 6 are not reliable.

A sign inverts all bits, so that both sides are rounded down and each cell has its mirror image.
"""

import math
from functools import cache

import torch

from tacit.modes import outside_trace
from tacit.randomness import sampling
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts


def uniform(session: Session, shape: tuple[int, ...], fraction: int) -> Parts:
    """Returns uniform samples from 0 to before 1. Two rounds, and one for each party."""
    return sampling.number(session, sampling.bits(session, (fraction, *shape)))


def normal(session: Session, shape: tuple[int, ...], fraction: int) -> Parts:
    """Returns normal samples of mean 0 and variance 1.

    At most 12 rounds, and four for each party.
    """
    cells = sampling.digits(session, _normal_cells(), shape)
    return _number(session, tuple(part[:, 0] for part in cells), fraction - 5, signed=True)


def exponential(
    session: Session, shape: tuple[int, ...], fraction: int, *, signed: bool = False
) -> Parts:
    """Returns exponential samples of mean 1, or with a random sign (Laplace) if ``signed``.

    At most 12 rounds, and four for each party.
    """
    found = sampling.digits(session, _exponential_digits(), shape)
    cells = tuple(torch.cat([part[:, table] for table in (2, 1, 0)]) for part in found)
    return _number(session, cells, fraction - 10, signed=signed)


@outside_trace
@cache
def _normal_cells() -> torch.Tensor:
    """Returns the probabilities of 256 cells of |x|."""
    beyond = [math.erfc(at / 32 / math.sqrt(2)) for at in range(257)]
    return torch.tensor([[beyond[at] - beyond[at + 1] for at in range(256)]], dtype=torch.float64)


@outside_trace
@cache
def _exponential_digits() -> torch.Tensor:
    """Returns the probabilities of the integer part below 32, and of two digits in base 32."""
    units = (1.0, 2.0**-5, 2.0**-10)
    return torch.tensor(
        [[math.exp(-unit * at) for at in range(32)] for unit in units], dtype=torch.float64
    )


def _number(session: Session, cells: Parts, below: int, *, signed: bool) -> Parts:
    """Returns cells and ``below`` random bits below them as words.

    They have a random sign if ``signed``.
    """
    shape = cells[0].shape[1:]
    if below > 0:
        lower = sampling.bits(session, (below, *shape))
        cells = shares.joined(lower, cells)
    cells = tuple(part[max(0, -below) :] for part in cells)
    if signed:
        sign = sampling.bits(session, (1, *shape))
        cells = tuple(torch.cat([part ^ bit, bit]) for part, bit in zip(cells, sign, strict=True))
    return sampling.number(session, cells, signed=signed)


def indices(session: Session, weights: torch.Tensor, shape: tuple[int, ...]) -> Parts:
    """Draws indices with probabilities in proportion to public weights, to 2^-32.

    At most 12 rounds, and two for each party.
    """
    width = (weights.numel() - 1).bit_length()
    if not width:
        return shares.trivial(session, torch.zeros(shape, dtype=torch.int64))
    table = torch.zeros(1, 1 << width, dtype=torch.float64)
    table[0, : weights.numel()] = weights
    found = sampling.digits(session, table, shape)
    return sampling.number(session, tuple(part[:, 0] for part in found))
