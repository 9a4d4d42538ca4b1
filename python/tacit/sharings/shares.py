"""The protocol's operations on the components of sharings.

A sharing is a tuple of tensors of one shape: int64 words that add up to the value modulo 2^64, or
uint8 bits (0 or 1) that XOR to it. Operations that only add or move data are torch's own, applied
to each component. This module has the operations that need the protocol, but for products, which
are in ``bilinear``.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tacit import _core, checks, fixed
from tacit.buffers import array, made_of
from tacit.errors import NetworkError, PeerError, RangeError
from tacit.flags import Known, each_of
from tacit.sessions import Session
from tacit.sharings import ranges, tracing
from tacit.sharings.tracing import operation

Parts = tuple[torch.Tensor, ...]

#: Words into which ``from_binary`` converts bits at a time: limits its memory.
MOST_WORDS = 1 << 24


class Comparison(NamedTuple):
    """Parameters of the comparison with zero in a rectification."""

    #: Bits that are compared, sign included.
    width: int
    #: 0 if the width is proved: all magnitudes are below 2^(width − 1). Otherwise a guard checks
    #: whether the width was enough. It looks at this number of bits above the lowest width − 2, so
    #: words must have no more bits than these together. Magnitudes below 2^(width − 3) pass. A
    #: session without guards compares 64 bits instead.
    reach: int = 0
    #: Low bits that the comparison ignores: words from 0 to below 2^dropped may become zero.
    dropped: int = 0


def arrays_of(parts: Parts) -> list[NDArray[Any]]:
    """Returns arrays that share the components' memory."""
    return list(map(array, parts))


def _like_words(words: torch.Tensor) -> tuple[Sequence[int], torch.dtype]:
    return words.shape, torch.int64


def _like_bits(bits: torch.Tensor) -> tuple[Sequence[int], torch.dtype]:
    return bits.shape, torch.uint8


def _of_binary(x: Parts, width: int) -> tuple[Sequence[int], torch.dtype]:
    return (width, *x[0].shape), torch.uint8


def _of_leading_zeros(x: Parts, width: int) -> tuple[Sequence[int], torch.dtype]:
    return ((width - 1).bit_length() + 1, *x[0].shape), torch.uint8


def empty_words(session: Session, shape: Sequence[int]) -> tuple[Parts, list[NDArray[np.int64]]]:
    """Allocates the components of a result; returns them and the arrays that share their memory."""
    return _empty(session, shape, np.int64)


def _bits(session: Session, shape: Sequence[int]) -> tuple[Parts, list[NDArray[np.uint8]]]:
    return _empty(session, shape, np.uint8)


def _empty(session: Session, shape: Sequence[int], kind: Any) -> tuple[Parts, list[NDArray[Any]]]:
    # NumPy allocates small arrays faster than PyTorch, and uses huge pages for large ones.
    arrays = [np.empty(shape, kind) for _ in range(session.core.parts)]
    if arrays[0].size and shape:
        return tuple(map(made_of, arrays)), arrays
    # The strides of empty tensors differ between PyTorch and NumPy.
    out = tuple(torch.empty(shape, dtype=torch.from_numpy(memory).dtype) for memory in arrays)
    return out, arrays_of(out)


def share(session: Session, words: torch.Tensor | None, owner: int, shape: Sequence[int]) -> Parts:
    """Shares the owner's words."""
    tracing.refuse("sharing")
    out, arrays = empty_words(session, shape)
    if arrays[0].size:
        session.core.share(None if words is None else array(words), owner, arrays)
    return out


def share_bits(
    session: Session, bits: torch.Tensor | None, owner: int, shape: Sequence[int]
) -> Parts:
    """Shares the owner's bits."""
    tracing.refuse("sharing")
    out, arrays = _bits(session, shape)
    if arrays[0].size:
        session.core.share_bits(None if bits is None else array(bits), owner, arrays)
    return out


@operation("(Tensor words)", _like_words)
def trivial(session: Session, words: torch.Tensor) -> Parts:
    """Makes a sharing of public words, without interaction."""
    out, arrays = empty_words(session, words.shape)
    if arrays[0].size:
        session.core.trivial(array(words), arrays)
    return out


@operation("(Tensor bits)", _like_bits)
def trivial_bits(session: Session, bits: torch.Tensor) -> Parts:
    """Makes a sharing of public bits, without interaction."""
    out, arrays = _bits(session, bits.shape)
    if arrays[0].size:
        session.core.trivial_bits(array(bits), arrays)
    return out


def reveal(session: Session, x: Parts, to: int | None, known: Known = None) -> torch.Tensor | None:
    """Opens a sharing to all parties or to one, in one round if it depends on no flags.

    Flags add rounds. Computing the bits of flags that have none yet takes 7 rounds by replicated
    sharing. Opening the flags takes one round. For a single receiver, the value is also multiplied
    by the AND of its flags, which takes two rounds and those of the AND.

    Args:
        session: this party's session.
        x: the sharing.
        to: the party that receives the value; None for all.
        known: the flags that the value depends on.

    Returns:
        The value, or None if this party does not receive it.

    Raises:
        RangeError: a flag failed, so the value is not opened. Only its receivers get this error.
    """
    tracing.refuse("revealing")
    learns = to is None or to == session.party
    out = torch.empty(x[0].shape, dtype=x[0].dtype) if learns else None
    if x[0].numel():
        session.claims.settle()
        open_ = session.core.reveal_bits if x[0].dtype == torch.uint8 else session.core.reveal
        failed = open_(arrays_of(x), to, None if out is None else array(out), each_of(known))
        if failed:
            raise refused(session, failed, is_told_to_all=to is None)
    return out


def refused(session: Session, failed: Sequence[str], *, is_told_to_all: bool) -> RangeError:
    """Returns the error for flags that failed.

    If all parties receive it, this first waits until every party has it: a party that ends by the
    error earlier would end the others.
    """
    tracing.refuse("revealing")
    if is_told_to_all:
        with suppress(PeerError, NetworkError):
            session.core.confirm()
    return RangeError.of(failed)


def checked(session: Session, x: Parts, known: Known) -> Parts:
    """Returns the words, or zeros if one of their flags failed, without opening the flags."""
    tracing.refuse("calling a program")
    flags = each_of(known)
    if not flags or not x[0].numel():
        return x
    session.claims.settle()
    out, arrays = empty_words(session, x[0].shape)
    session.core.checked(arrays_of(x), arrays, flags)
    return out


def checked_each(session: Session, several: Sequence[Parts], known: Sequence[Known]) -> list[Parts]:
    """As :func:`checked` for words of one shape, each by its own flags, in the rounds of one."""
    if len(several) == 1:
        return [checked(session, several[0], known[0])]
    flags = [each_of(each) for each in known]
    most = max(map(len, flags), default=0)
    if not most:
        return list(several)
    # A flag may belong to several. The last bit stands for those that some lack.
    places: dict[_core.Flag, int] = {}
    for flag in chain(*flags):
        places.setdefault(flag, len(places))
    one = trivial_bits(session, torch.ones(1, dtype=torch.uint8))
    bits = joined(flag_bits(session, list(places)), one)
    which = torch.tensor(
        [[places[flag] for flag in each] + [len(places)] * (most - len(each)) for each in flags]
    )

    def both(first: Parts, second: Parts, rest: Parts) -> Parts:
        return joined(and_bits(session, first, second), rest)

    hold = tree(tuple(part[which.T].contiguous() for part in bits), both)
    words = stacked(*several)
    shape = words[0].shape
    repeated = tuple(
        part.reshape(-1, *[1] * (len(shape) - 1)).expand(shape).contiguous() for part in hold
    )
    return unstacked(bit_multiply(session, repeated, words))


def flag_bits(session: Session, flags: Sequence[_core.Flag]) -> Parts:
    """Returns the secret-shared bits of flags: 1 for each flag that holds."""
    tracing.refuse("saving")
    session.claims.settle()
    components = session.core.flag_bits(list(flags))
    return tuple(torch.tensor(list(part), dtype=torch.uint8) for part in components)


def flags_of_bits(session: Session, bits: Parts, labels: Sequence[str]) -> list[_core.Flag]:
    """Restores flags from the bits that ``flag_bits`` returned."""
    tracing.refuse("loading")
    return [
        session.core.flag_of(label, arrays_of(tuple(part[at : at + 1] for part in bits)))
        for at, label in enumerate(labels)
    ]


def truncate(session: Session, x: Parts, bits: int) -> Parts:
    """Truncates x by ``bits`` bits: x / 2^bits, with an error of at most one unit."""
    return _truncated(session, x, bits) if bits else x


@operation("(Tensor[] x, int bits)")
def _truncated(session: Session, x: Parts, bits: int) -> Parts:
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.truncate(arrays_of(x), arrays, bits)
        checks.truncated(session, out, x, bits)
    return out


def _check_compared(session: Session, x: Parts, bits: int, width: int) -> None:
    """Checks that numbers have at most ``bits`` bits without their sign.

    The reference protocol reports larger numbers. In checked mode, a promised width is claimed.
    """
    if session.is_plain:
        ranges.check_compared(session, x[0], bits)
    if isinstance(width, fixed.Promised):
        checks.hold_promised(session, x, width)


@operation("(Tensor[] x, int width)", tracing.bits)
def sign(session: Session, x: Parts, width: int) -> Parts:
    """Returns bits: whether x < 0, for numbers of ``width`` bits, sign included."""
    out, arrays = _bits(session, x[0].shape)
    if arrays[0].size:
        _check_compared(session, x, width - 1, width)
        session.core.sign(arrays_of(x), width, arrays)
    return out


@operation("(Tensor[] x, int width)", tracing.bits)
def equal_zero(session: Session, x: Parts, width: int) -> Parts:
    """Returns bits: whether x = 0 modulo 2^width."""
    out, arrays = _bits(session, x[0].shape)
    if arrays[0].size:
        _check_compared(session, x, width, width)
        session.core.equal_zero(arrays_of(x), width, arrays)
    return out


@operation("(Tensor[] x, int argument, int[][] remainders)")
def series(session: Session, x: Parts, argument: int, remainders: list[list[int]]) -> Parts:
    """Evaluates a Chebyshev series at x in [−1, 1].

    Args:
        session: this party's session.
        x: the argument.
        argument: fraction bits of the argument.
        remainders: the remainders of the series' repeated division by T_k. Each lists its
            coefficients of T_0 to T_k; that of T_0 has ``argument`` more fraction bits than the
            others.
    """
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.series(arrays_of(x), argument, remainders, arrays)
    return out


def relu(session: Session, x: Parts, compared: Comparison | int) -> Parts:
    """Computes max(x, 0), with the given comparison."""
    return _rectified(session, x, compared, ())


def one_sided(session: Session, x: Parts, below: Parts, compared: Comparison | int) -> Parts:
    """Computes min(x, 0) where the bit of ``below``, of equal shape, is 1, and else max(x, 0).

    The messages are those of ``relu``.
    """
    return _rectified(session, x, compared, below)


@operation("(Tensor[] x, int[1] compared, Tensor[] below)")
def _rectified(session: Session, x: Parts, compared: Comparison | int, below: Parts) -> Parts:
    """Implements ``relu``, with an empty ``below``, and ``one_sided``."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        width, reach, dropped = comparison_of(compared)
        if not reach:
            _check_compared(session, x, width - 1, width)
        flag = session.core.relu(
            arrays_of(x), width, arrays, reach, dropped, arrays_of(below) or None
        )
        session.dependencies.add(flag)
        checks.inherit(session, out, x)
    return out


@operation("(Tensor[] x, Tensor[] y, int[1] compared)")
def maximum(session: Session, x: Parts, y: Parts, compared: Comparison | int) -> Parts:
    """Returns the greater of x and y, of equal shapes, by a comparison of their difference."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        width, reach, _ = comparison_of(compared)
        if not reach:
            check_difference(session, x, y, width)
        session.dependencies.add(
            session.core.maximum(arrays_of(x), arrays_of(y), width, arrays, reach)
        )
        checks.inherit(session, out, x, y)
    return out


def check_difference(session: Session, x: Parts, y: Parts, width: int) -> None:
    """Checks that the compared difference x − y has at most ``width`` bits, sign included."""
    if session.is_plain:
        ranges.check_difference(session, x[0], y[0], width)
    if isinstance(width, fixed.Promised):
        checks.hold_promised(session, subtract(x, y), width)
    if isinstance(width, fixed.Promised) or width >= fixed.WORD:
        for operand in (x, y):
            checks.hold_operand(session, operand)


def comparison_of(compared: Comparison | Sequence[int] | int) -> Comparison:
    """Returns a comparison that is given as its integers, or as its width alone."""
    return Comparison(compared) if isinstance(compared, int) else Comparison(*compared)


@operation("(Tensor[] x, Tensor[] y)", tracing.bits)
def and_bits(session: Session, x: Parts, y: Parts) -> Parts:
    """Computes x AND y of bits, of equal shapes."""
    out, arrays = _bits(session, x[0].shape)
    if arrays[0].size:
        session.core.and_bits(arrays_of(x), arrays_of(y), arrays)
    return out


@operation("(Tensor[] bits, Tensor[] x)")
def bit_multiply(session: Session, bits: Parts, x: Parts) -> Parts:
    """Multiplies words by bits, of equal shapes."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.bit_multiply(arrays_of(bits), arrays_of(x), arrays)
        checks.inherit(session, out, x)
    return out


def select(session: Session, bits: Parts, x: Parts, other: Parts) -> Parts:
    """Returns x where the bit is 1 and ``other`` elsewhere, in the rounds of ``bit_multiply``.

    All shapes are equal.
    """
    out = add(other, bit_multiply(session, bits, subtract(x, other)))
    checks.inherit(session, out, x, other)
    return out


@operation("(Tensor[] bits)")
def bit_to_ring(session: Session, bits: Parts) -> Parts:
    """Converts each bit to the ring element 0 or 1."""
    out, arrays = empty_words(session, bits[0].shape)
    if arrays[0].size:
        session.core.bit_to_ring(arrays_of(bits), arrays)
        checks.known(session, out, 1)
    return out


@operation("(Tensor[] x, int width)")
def low_bits(session: Session, x: Parts, width: int) -> Parts:
    """Returns x modulo 2^width, in [0, 2^width)."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.low_bits(arrays_of(x), width, arrays)
        checks.known(session, out, width)
    return out


@operation("(Tensor[] x, int width)", _of_binary)
def binary(session: Session, x: Parts, width: int) -> Parts:
    """Decomposes x into its low ``width`` bits, lowest first, along a new first dimension."""
    out, arrays = _bits(session, (width, *x[0].shape))
    if arrays[0].size:
        session.core.to_binary(arrays_of(x), width, arrays)
    return out


def from_binary(session: Session, bits: Parts, weights: torch.Tensor) -> Parts:
    """Composes words of the bits along the first dimension: the sum of the bits' weights.

    Weights may differ between elements. This takes at most two rounds. If there are many elements,
    it converts a few bits at a time, with two rounds for each group, because each bit becomes a
    word.
    """
    (width, *shape), elements = bits[0].shape, math.prod(bits[0].shape[1:])
    at_once = max(1, MOST_WORDS // max(1, elements))
    weights = weights.reshape(width, *(1,) * (len(shape) + 1 - weights.dim()), *weights.shape[1:])
    sums = []
    for first in range(0, max(1, width), at_once):
        places = bit_to_ring(session, tuple(part[first : first + at_once] for part in bits))
        sums.append(tuple((part * weights[first : first + at_once]).sum(0) for part in places))
    return reduce(add, sums)


def leading_zeros(session: Session, x: Parts, width: int) -> tuple[Parts, Parts]:
    """Counts the leading zeros of x in ``width`` bits, for 0 ≤ x < 2^width width at least 2.

    Returns:
        The bits of the number of leading zeros, lowest first along a new first dimension; and the
        bit of whether x is zero. Zero counts as many leading zeros as one does, so
        2^(width − 1) ≤ (x + zero)·2^zeros < 2^width.
    """
    out = _leading_zeros(session, x, width)
    return tuple(part[:-1] for part in out), tuple(part[-1] for part in out)


@operation("(Tensor[] x, int width)", _of_leading_zeros)
def _leading_zeros(session: Session, x: Parts, width: int) -> Parts:
    """Returns both results of ``leading_zeros`` in one tensor, the bit of zero last."""
    out, arrays = _bits(session, _of_leading_zeros(x, width)[0])
    if arrays[0].size:
        session.core.leading_zeros(arrays_of(x), width, arrays)
    return out


def complement(session: Session, bits: Parts) -> Parts:
    """Computes NOT of bits, without interaction."""
    one = trivial_bits(session, torch.ones((), dtype=torch.uint8))
    return tuple(part ^ flip for part, flip in zip(bits, one, strict=True))


def stacked(*sharings: Parts) -> Parts:
    """Stacks sharings of one shape along a new first dimension, to process them in one call."""
    return tuple(map(torch.stack, zip(*sharings, strict=True)))


def unstacked(x: Parts) -> list[Parts]:
    """Splits a sharing along its first dimension into views."""
    return list(zip(*x, strict=True))


def joined(*sharings: Parts) -> Parts:
    """Concatenates sharings along their first dimension. If only one is not empty, returns it."""
    some = [sharing for sharing in sharings if len(sharing[0])]
    return some[0] if len(some) == 1 else tuple(map(torch.cat, zip(*sharings, strict=True)))


def tree(x: Parts, join: Callable[[Parts, Parts, Parts], Parts]) -> Parts:
    """Reduces the n elements along the first dimension to one, in ⌈log2(n)⌉ levels.

    Args:
        x: the sharing.
        join: joins the first half of a level with the second half. Its third argument is the
            remaining element if their number is odd, else empty.
    """
    while (size := len(x[0])) > 1:
        half = size // 2
        cuts = (0, half), (half, 2 * half), (2 * half, size)
        x = join(*(tuple(part[start:end] for part in x) for start, end in cuts))
    return tuple(part[0] for part in x)


def add(x: Parts, y: Parts) -> Parts:
    """Computes x + y, without interaction."""
    return tuple(a + b for a, b in zip(x, y, strict=True))


def subtract(x: Parts, y: Parts) -> Parts:
    """Computes x − y, without interaction."""
    return tuple(a - b for a, b in zip(x, y, strict=True))


def xor(x: Parts, y: Parts) -> Parts:
    """Computes x XOR y of bits, without interaction."""
    return tuple(a ^ b for a, b in zip(x, y, strict=True))


def negate(x: Parts) -> Parts:
    """Computes −x, without interaction."""
    return tuple(-part for part in x)
