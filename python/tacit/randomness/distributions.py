"""Words of samples that no party knows, from secret random bits (``sampling``): fixed point of some
fraction bits, rounded down.

Uniform: the bits themselves.

Exponential: the binary digits of an exponential variable are independent. So its integer part, the
next five digits and the next five come from three tables, and those after them, of which each is 1
with a probability within 2^-13 of ½, are uniform. It ends at 32, which the true one passes with
probability 1.3·10^-14.

Laplace: the same with a random sign. Normal: of |x| one of 256 cells of width 2^-5, and within it a
uniform
place: the distribution function is off by less than 2^-15. It ends at 8, and cells have their
probability to 2^-32, so that what lies beyond 6 is not to be relied on.

A sign turns all bits around, so that both sides are rounded down and each cell has its mirror
image."""

import math
from functools import cache

import torch

from tacit.modes import outside_trace
from tacit.randomness import sampling
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts


def uniform(session: Session, shape: tuple[int, ...], fraction: int) -> Parts:
    """From 0 to before 1. Two rounds, and one for each party."""
    return sampling.number(session, sampling.bits(session, (fraction, *shape)))


def normal(session: Session, shape: tuple[int, ...], fraction: int) -> Parts:
    """Of mean 0 and variance 1. At most 12 rounds, and four for each party."""
    cells = sampling.digits(session, _normal_cells(), shape)
    return _number(session, tuple(part[:, 0] for part in cells), fraction - 5, signed=True)


def exponential(
    session: Session, shape: tuple[int, ...], fraction: int, *, signed: bool = False
) -> Parts:
    """Of mean 1; with a random sign if signed, which is Laplace's. At most 12 rounds, and four for
    each party."""
    found = sampling.digits(session, _exponential_digits(), shape)
    cells = tuple(torch.cat([part[:, table] for table in (2, 1, 0)]) for part in found)
    return _number(session, cells, fraction - 10, signed=signed)


@outside_trace
@cache
def _normal_cells() -> torch.Tensor:
    """The probabilities of 256 cells of |x|."""
    beyond = [math.erfc(at / 32 / math.sqrt(2)) for at in range(257)]
    return torch.tensor([[beyond[at] - beyond[at + 1] for at in range(256)]], dtype=torch.float64)


@outside_trace
@cache
def _exponential_digits() -> torch.Tensor:
    """The probabilities of the integer part below 32, and of two digits to the
    base of 32 after it."""
    units = (1.0, 2.0**-5, 2.0**-10)
    return torch.tensor(
        [[math.exp(-unit * at) for at in range(32)] for unit in units], dtype=torch.float64
    )


def _number(session: Session, cells: Parts, below: int, *, signed: bool) -> Parts:
    """Cells, and so many bits below them, as words; negative ones too if signed."""
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
    """Indices with probabilities in proportion to public weights, to 2^-32. At most 12 rounds, and
    two for each party."""
    width = (weights.numel() - 1).bit_length()
    if not width:
        return shares.trivial(session, torch.zeros(shape, dtype=torch.int64))
    table = torch.zeros(1, 1 << width, dtype=torch.float64)
    table[0, : weights.numel()] = weights
    found = sampling.digits(session, table, shape)
    return sampling.number(session, tuple(part[:, 0] for part in found))
