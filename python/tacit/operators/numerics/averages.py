"""Sums and means that stay in range whenever their result does.

Numbers whose sum would overflow are shifted down before they are added."""

import math
from collections.abc import Sequence

import torch

from tacit import checks, fixed
from tacit.fixed import WHOLE
from tacit.operators.dispatch.operands import as_words, fraction, rescaled, times_public
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Number of encoded words that may be added before a truncation: 2^15 words below 2^46.
MOST_SUMMANDS = 1 << (fixed.ROOM - 1)

#: Largest count whose mean takes one public factor. Larger sums are shifted down first, because the
#: factor 1/count would have too few bits left.
FEW = 64


def as_fractions(x: SecretTensor) -> SecretTensor:
    """Brings numbers to at least the session's fraction bits, which means have.

    With fewer bits, the shift of a sum would drop them. No interaction."""
    x = fraction(x)
    return rescaled(x, fixed.of_sum([x._scale, x._session.scale]))


def averaged(sums: SecretTensor, reciprocals: torch.Tensor, most: int) -> SecretTensor:
    """Multiplies sums by the public reciprocals of their counts.

    Each sum has at most ``most`` numbers, and ``most`` is at most MOST_SUMMANDS. The result is
    rounded as other products are. Two rounds for powers of two, else four or six."""
    sums = as_fractions(sums)
    parts, session = sums._parts, sums._session
    shift = math.floor(math.log2(most)) if most > FEW else 0
    if shift:
        parts = shares.truncate(session, parts, shift)
    shifted = sums.like(parts)
    reciprocals = reciprocals * 2.0**shift
    # One reciprocal multiplies a sum of up to ``most`` numbers.
    gain = most * 2.0**-shift
    return times_public(shifted, reciprocals, sums.dtype, gain=gain)


def mean(x: SecretTensor, dims: Sequence[int], keepdim: bool) -> SecretTensor:
    """Computes means along dimensions, each of at least one number.

    Means of integers are computed from their exact sums."""
    count, shape = math.prod(x.shape[dim] for dim in dims), reduced(x.shape, dims, keepdim)
    if x._scale == WHOLE:
        x = as_words(x)
        checks.hold_summands(x._session, x._parts, count)
        sums = tuple(part.sum(list(dims)) if dims else part for part in x._parts)
        checks.summed(x._session, sums, x._parts, count)
        by = torch.tensor(1.0 / count, dtype=torch.float64)
        whole = x.like(sums, dtype=torch.int64)
        result = rescaled(times_public(whole, by, _mean_dtype(x)), x._session.scale)
        return result.like(tuple(part.reshape(shape) for part in result._parts))
    x = as_fractions(x)
    parts, left = x._parts, count
    checks.hold_summands(x._session, parts, min(count, MOST_SUMMANDS))
    if count <= MOST_SUMMANDS:
        parts = tuple(part.sum(list(dims)) if dims else part for part in parts)
        checks.summed(x._session, parts, x._parts, count)
        result = averaged(x.like(parts), torch.tensor(1.0 / count, dtype=torch.float64), count)
    else:
        parts, left = _added_up(x._session, tuple(last(part, dims) for part in parts), count)
        factor = torch.tensor(left / count, dtype=torch.float64)
        result = times_public(x.like(parts), factor, x.dtype)
    return result.like(tuple(part.reshape(shape) for part in result._parts))


def _mean_dtype(x: SecretTensor) -> torch.dtype:
    return x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()


def last(part: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Flattens the given dimensions into one, the last."""
    if not dims:
        return part.unsqueeze(-1)
    return part.movedim(tuple(dims), tuple(range(-len(dims), 0))).flatten(-len(dims))


def reduced(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> list[int]:
    """Returns a shape without the given dimensions, or with size 1 there for ``keepdim``."""
    if keepdim:
        return [1 if dim in dims else size for dim, size in enumerate(shape)]
    return [size for dim, size in enumerate(shape) if dim not in dims]


def _added_up(session: Session, x: Parts, count: int) -> tuple[Parts, int]:
    """Sums along the last dimension, divided by a power of two that keeps the sums in range.

    Blocks are added, and each sum is shifted down by as many bits as it may have grown. The sums of
    the blocks are added in the same way. Returns the sums and the power of two."""
    divisor = 1
    while count > 1:
        size = min(count, MOST_SUMMANDS)
        blocks = math.ceil(count / size)
        missing = blocks * size - count
        padded = (torch.nn.functional.pad(part, (0, missing)) for part in x)
        sums = tuple(part.reshape(*part.shape[:-1], blocks, size).sum(-1) for part in padded)
        shift = math.ceil(math.log2(size))
        x, count, divisor = shares.truncate(session, sums, shift), blocks, divisor << shift
    return tuple(part.squeeze(-1) for part in x), divisor
