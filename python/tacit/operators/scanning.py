"""Scans along a dimension: ``cumsum``, ``cummax``, ``cummin``, ``logcumsumexp``, and ``mode``.

``cumprod`` is in :mod:`tacit.operators.prod`. Prefix sums are local. The other scans work by
doubling, in log2(n) levels: after each level a place covers twice as many places before it.
``mode`` counts the lengths of runs.
"""

import torch

from tacit import checks
from tacit.fixed import WHOLE, WORD
from tacit.operators.conversion import to_copy
from tacit.operators.dispatch.operands import as_words, at_session_scale, fraction
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.extremum import tournament
from tacit.operators.numerics.compare_words import less, opposite
from tacit.operators.ordering import held_width, ordered, restored, sorted_width
from tacit.sessions import Session
from tacit.sharings import ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.cumsum.default)
def cumsum(x: SecretTensor, dim: int, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """Returns prefix sums along a dimension. No interaction; at most two rounds for booleans."""
    own = x.dtype if x.dtype.is_floating_point else torch.int64
    x = as_words(x)
    if x._session.is_plain and own.is_floating_point:
        ranges.check_sum(x._session, x._parts[0], lambda words: words.cumsum(dim))
    checks.hold_summands(x._session, x._parts, x.shape[dim] if x.dim() else 1)
    result = x.like(tuple(part.cumsum(dim) for part in x._parts), dtype=own)
    return result if dtype is None else to_copy(result, dtype=dtype)


@implements(aten.cummax.default)
def cummax(x: SecretTensor, dim: int) -> tuple[SecretTensor, SecretTensor]:
    """Returns the maximum so far along a dimension, and its index, the last among equals. Exact.

    Eight rounds for each of log2(n) levels, nine for int64.
    """
    words, index = _extrema(x, dim, as_words(x)._parts)
    return restored(x, words), index


@implements(aten.cummin.default)
def cummin(x: SecretTensor, dim: int) -> tuple[SecretTensor, SecretTensor]:
    """Returns the minimum so far along a dimension, and its index, the last among equals.

    Rounds as ``cummax``.
    """
    words, index = _extrema(x, dim, opposite(x._session, as_words(x)._parts))
    return restored(x, opposite(x._session, words)), index


@implements(aten.logcumsumexp.default, scale=of_session)
def logcumsumexp(x: SecretTensor, dim: int) -> torch.Tensor:
    """Returns ln Σ e^x of the elements so far along a dimension, which never overflows.

    Method: doubling (Hillis and Steele 1986) with ``logaddexp``. Domain: all encodable numbers.
    Error: 2^−13 for each of log2(n) levels. Takes the rounds of ``softplus`` for each level.
    """
    found: torch.Tensor = at_session_scale(fraction(x)) * 1.0
    size = x.shape[dim] if x.dim() else 1
    distance = 1
    while distance < size:
        first = found.narrow(dim, 0, distance)
        early, late = (found.narrow(dim, at, size - distance) for at in (0, distance))
        found = torch.cat([first, torch.logaddexp(early, late)], dim)
        distance *= 2
    return found


def _extrema(x: SecretTensor, dim: int, words: Parts) -> tuple[Parts, SecretTensor]:
    """Returns the maximum of words so far, and the index of its last occurrence."""
    session = x._session
    words = tuple(part.reshape(part.shape or (1,)).movedim(dim, 0) for part in words)
    size = words[0].shape[0]
    places = torch.arange(size).reshape(size, *[1] * (words[0].dim() - 1)).expand(words[0].shape)
    index = shares.trivial(session, places)
    both = tuple(torch.stack(pair, 1) for pair in zip(words, index, strict=True))
    width = held_width(x, words)
    distance = 1
    while distance < size:
        earlier, later = (
            tuple(part[rows] for part in both) for rows in (slice(-distance), slice(distance, None))
        )
        gain = shares.subtract(earlier, later)
        # The later one loses only if it is less.
        before, after = (tuple(part[:, 0] for part in side) for side in (earlier, later))
        loses = less(session, after, before, width)
        loses = tuple(bit.unsqueeze(1).expand(gain[0].shape) for bit in loses)
        both = _added_from(both, distance, shares.bit_multiply(session, loses, gain))
        distance *= 2
    values, index = (
        tuple(part[:, which].movedim(0, dim).reshape(x.shape) for part in both) for which in (0, 1)
    )
    return values, x.like(index, WHOLE, torch.int64)


def _added_from(parts: Parts, first: int, change: Parts) -> Parts:
    """Adds ``change`` to all places from ``first`` on."""
    return tuple(
        torch.cat([part[:first], part[first:] + more])
        for part, more in zip(parts, change, strict=True)
    )


@implements(aten.mode.default)
def mode(
    x: SecretTensor, dim: int = -1, keepdim: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    """Returns the most frequent value along a dimension, the least of several, and its last index.

    Rounds: those of ``ordered``, six, and at most nine for each of log2(n) levels of counting and
    as many of selecting.
    """
    if not x.dim():
        return ordered(x, 0, False)
    if not x.shape[dim]:
        unsupported("the mode of no elements", "give it at least one")
    session = x._session
    values, index = ordered(x, dim, False)
    words, places = (
        tuple(part.movedim(dim, 0) for part in as_words(v)._parts) for v in (values, index)
    )
    counts = _runs(session, words, min(WORD, sorted_width(x)))
    # Finds the end of the longest run, the first among equals. The value and index there are
    # selected.
    width = max(2, x.shape[dim].bit_length() + 1)
    _, best = tournament(session, tuple(part.movedim(0, -1) for part in counts), width)
    chosen = x.like(best, WHOLE, torch.int64).unsqueeze(0) == torch.arange(x.shape[dim]).reshape(
        -1, *[1] * (x.dim() - 1)
    )
    both = shares.stacked(words, places)
    chosen_bits = tuple(bit.expand(both[0].shape) for bit in chosen._parts)
    both = tuple(part.sum(1) for part in shares.bit_multiply(session, chosen_bits, both))
    if keepdim:
        both = tuple(part.unsqueeze(dim + 1 if dim >= 0 else dim) for part in both)
    least = restored(x, tuple(part[0] for part in both))
    return least, x.like(tuple(part[1] for part in both), WHOLE, torch.int64)


def _runs(session: Session, x: Parts, width: int) -> Parts:
    """Returns for each place of sorted words how many words up to it are equal to it."""
    counts = shares.trivial(session, torch.ones_like(x[0]))
    if x[0].shape[0] == 1:
        return counts
    same = shares.equal_zero(session, tuple(part[1:] - part[:-1] for part in x), width)
    # Whether all words of a window are equal. A window that begins before the first word is not.
    same = tuple(torch.cat([torch.zeros_like(bit[:1]), bit]) for bit in same)
    distance = 1
    while distance < x[0].shape[0]:
        later = tuple(bit[distance:] for bit in same)
        earlier = tuple(part[:-distance] for part in counts)
        counts = _added_from(counts, distance, shares.bit_multiply(session, later, earlier))
        both = shares.and_bits(session, later, tuple(bit[:-distance] for bit in same))
        same = tuple(torch.cat([bit[:distance], new]) for bit, new in zip(same, both, strict=True))
        distance *= 2
    return counts
