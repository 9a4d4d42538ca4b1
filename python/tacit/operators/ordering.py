"""Sorting, and operators that use it: the largest k, the k-th smallest, medians.

They use a sorting network (``sorting_network``). Comparators of one stage share their rounds. n
elements take log2(n)·(log2(n) + 1)/2 stages, fewer if only some places are asked for. The steps
depend on n alone, and nothing is opened.

Other ways were not taken. To shuffle first (``tacit.shuffle``) and then open n·log2(n) comparisons
would save up to half of the rounds and bytes. But it would reveal comparisons of shuffled values,
and take steps that depend on them. A radix sort needs a shuffle for every bit, which is cheap only
in a protocol that permutes in one step.

A value and its index share one word, value·2^k + index, if there is room. Then equal values keep
their order, no two words are equal, and a comparator is one maximum. Otherwise values and indices
are compared and moved next to each other.
"""

from typing import Any

import torch

from tacit import checks
from tacit.fixed import ENCODED, WHOLE, WORD
from tacit.operators.dispatch.operands import as_words, moved
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics import compare_words
from tacit.operators.numerics.sorting_network import Network, network
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Most bits of a word that holds value and index, which truncation separates again.
ROOM = 63


def ordered(
    x: SecretTensor, dim: int, descending: bool, first: int = 0, last: int | None = None
) -> tuple[SecretTensor, SecretTensor]:
    """Returns places ``first`` to ``last`` − 1 of x sorted along a dimension, and their indices.

    Equal values keep their order. Exact.

    Rounds: eight for each stage of the network, and at most eleven. If values and indices do not
    fit in a word (more than 2^15 fractions): fourteen for each stage, fifteen for int64.

    Fractions are sorted correctly if they are below their scale's limit, and within the comparison
    width.
    """
    if not x.dim():
        return x, x.like(
            shares.trivial(x._session, torch.zeros((), dtype=torch.int64)), WHOLE, torch.int64
        )
    session, size = x._session, x.shape[dim]
    words = tuple(part.movedim(dim, 0) for part in as_words(x)._parts)
    if descending:
        words = compare_words.opposite(session, words)
    places = torch.arange(size).reshape(size, *[1] * (x.dim() - 1)).expand(words[0].shape)
    index = shares.trivial(session, places)
    comparisons = network(size, first, size if last is None else last)
    width, bits = held_width(x, words), max(1, (size - 1).bit_length())
    if width + bits <= ROOM:
        keys = tuple((word << bits) + place for word, place in zip(words, index, strict=True))
        keys = _sorted(session, keys, comparisons, width + bits)
        index = shares.low_bits(session, keys, bits)
        # Only zero bits are dropped, so this is exact.
        words = shares.truncate(session, shares.subtract(keys, index), bits)
    else:
        words, index = _sorted_with(session, words, index, comparisons, width)
    if descending:
        words = compare_words.opposite(session, words)
    words, index = (tuple(part.movedim(0, dim) for part in parts) for parts in (words, index))
    return restored(x, words), x.like(index, WHOLE, torch.int64)


def sorted_width(x: SecretTensor) -> int:
    """Returns the bits that differences of values need. Fractions are those that can be encoded."""
    width = compare_words.difference_width(x._session, x._scale, x)
    return min(width, ENCODED + 2) if x.dtype.is_floating_point else width


def held_width(x: SecretTensor, words: Parts) -> int:
    """Returns the bits that differences of these words need, and claims them in checked mode.

    There the width has two bits more, so that every number passes that can be encoded, or that a
    user promised.
    """
    session, width = x._session, sorted_width(x)
    if not session.numerics.is_checked or not x.dtype.is_floating_point or width >= WORD:
        return width
    checks.hold(session, words, width - 2)
    return min(WORD, width + 2)


def restored(x: SecretTensor, words: Parts) -> SecretTensor:
    """Returns sorted words in the dtype of x."""
    if x.dtype != torch.bool:
        return x.like(words)
    return x.like(shares.complement(x._session, shares.equal_zero(x._session, words, 2)))


def _sorted(session: Session, x: Parts, comparisons: Network, width: int) -> Parts:
    """Sorts words along the first dimension and returns the places that were asked for."""
    x = tuple(part.contiguous().clone() for part in x)
    for low, high in comparisons.stages:
        left, right = (tuple(part.index_select(0, places) for part in x) for places in (low, high))
        greater = shares.maximum(session, left, right, width)
        for part, one, other, more in zip(x, left, right, greater, strict=True):
            part.index_copy_(0, high, more)
            part.index_copy_(0, low, one + other - more)
    return tuple(part.index_select(0, comparisons.places) for part in x)


def _sorted_with(
    session: Session, x: Parts, index: Parts, comparisons: Network, width: int
) -> tuple[Parts, Parts]:
    """Sorts words together with their indices, which tell equal words apart."""
    both = shares.stacked(x, index)
    for low, high in comparisons.stages:
        left, right = (
            tuple(part.index_select(1, places) for part in both) for places in (low, high)
        )
        change = shares.subtract(right, left)
        greater, less, later = _compared(session, left, right, width)
        equal = shares.complement(session, shares.xor(greater, less))
        swaps = shares.xor(greater, shares.and_bits(session, equal, later))
        swaps = tuple(bit.expand(2, *bit.shape) for bit in swaps)
        change = shares.bit_multiply(session, swaps, change)
        for part, one, other, more in zip(both, left, right, change, strict=True):
            part.index_copy_(1, low, one + more)
            part.index_copy_(1, high, other - more)
    both = tuple(part.index_select(1, comparisons.places) for part in both)
    words, index = shares.unstacked(both)
    return words, index


def _compared(session: Session, left: Parts, right: Parts, width: int) -> list[Parts]:
    """Returns whether the left of two words is greater, is less, and has the later index."""
    change = shares.subtract(right, left)
    asked = tuple(torch.stack([part[0], -part[0], part[1]]) for part in change)
    if width <= WORD:
        return shares.unstacked(shares.sign(session, asked, width))
    asked = tuple(
        torch.cat([part, torch.stack([a[0], b[0]])])
        for part, a, b in zip(asked, left, right, strict=True)
    )
    signs = shares.sign(session, asked, WORD)
    both, later, one, other = (tuple(bit[at] for bit in signs) for at in (slice(2), 2, 3, 4))
    settled = compare_words.settled(
        session, both, shares.stacked(other, one), shares.stacked(one, other)
    )
    return [*shares.unstacked(settled), later]


# Operators
# ----------------------------------------------------------------------------


@implements(aten.sort.default)
def sort(
    x: SecretTensor, dim: int = -1, descending: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    """Returns sorted values and their indices. Rounds as ``ordered``.

    Equal values keep their order.
    """
    return ordered(x, dim, descending)


@implements(aten.sort.stable)
def sort_stable(
    x: SecretTensor,
    *,
    stable: bool | None = None,  # noqa: ARG001
    dim: int = -1,
    descending: bool = False,
) -> tuple[SecretTensor, SecretTensor]:
    """Returns sorted values and their indices, as ``sort``, which is always stable."""
    return ordered(x, dim, descending)


@implements(aten.topk.default)
def topk(
    x: SecretTensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002, ARG001
) -> tuple[SecretTensor, SecretTensor]:
    """Returns the k largest (or smallest) values, sorted, and their indices.

    Among equals the first are taken. Rounds as ``ordered``.
    """
    return ordered(x, dim, largest, 0, k if x.dim() else None)


@implements(aten.kthvalue.default)
def kthvalue(
    x: SecretTensor, k: int, dim: int = -1, keepdim: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    """Returns the k-th smallest value along a dimension, and its index. Rounds as ``ordered``."""
    if not x.dim():
        return ordered(x, 0, False)
    values, index = ordered(x, dim, False, k - 1, k)
    return (values, index) if keepdim else (_squeezed(values, dim), _squeezed(index, dim))


def _squeezed(x: SecretTensor, dim: int) -> SecretTensor:
    return x.like(tuple(part.squeeze(dim) for part in x._parts))


@implements(aten.median.dim, aten.nanmedian.dim)
def median_dim(
    x: SecretTensor, dim: int, keepdim: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    """Returns medians along a dimension and their indices. Rounds as ``ordered``.

    The median of an even number of values is the lesser of two.
    """
    size = x.shape[dim] if x.dim() else 1
    if not size:
        unsupported("the median of no elements", "give it at least one")
    return kthvalue(x, (size + 1) // 2, dim, keepdim)


@implements(aten.median.default, aten.nanmedian.default)
def median(x: SecretTensor) -> SecretTensor:
    """Returns the median of all elements, the lesser of two. Rounds as ``ordered``."""
    flat = moved(x, lambda part: part.reshape(-1))
    return median_dim(flat, 0)[0]


def _depends_on_values(overload: Any, what: str) -> None:
    @implements(overload)
    def refused(*_args: Any, **_kwargs: Any) -> SecretTensor:
        """Refuses, since the size of the result would reveal something about the values."""
        unsupported(f"{what}, whose size depends on the values,", "sort, and compare neighbours")


for _overload, _what in (
    (aten._unique.default, "unique"),
    (aten._unique2.default, "unique"),
    (aten.unique_dim.default, "unique along a dimension"),
    (aten.unique_consecutive.default, "unique_consecutive"),
):
    _depends_on_values(_overload, _what)
