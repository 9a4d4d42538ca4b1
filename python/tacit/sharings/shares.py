"""The protocol's operations on the components of sharings.

A sharing is a tuple of tensors of one shape: int64 words that add up to the value modulo 2^64, or
uint8 bits (0 or 1) that XOR to it. What only adds or moves data is torch's own operation on each
component; what is here needs the protocol.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, reduce
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
from tacit.sharings.bilinear_shapes import Geometry, Matrices, shape_of
from tacit.sharings.tracing import local, operation

Parts = tuple[torch.Tensor, ...]

#: Bits that are words at once, where these are many.
MOST_WORDS = 1 << 24


class Comparison(NamedTuple):
    """How what is rectified is compared with zero."""

    width: int
    """Bits of the words, sign included."""
    reach: int = 0
    """0 where the width is proved: all words are below 2^(width − 1). Else a guard holds them
    against it, by so many bits above all but two, which is how far they can reach; what is below
    2^(width − 3) passes. Where a session has no guards, 64 bits are compared then."""
    dropped: int = 0
    """Low bits that are not looked at: what is not negative and below 2^dropped may become zero."""


class Term(NamedTuple):
    """A bilinear map of two secrets."""

    x: Parts
    y: Parts
    shape: Geometry | Matrices
    """Of images and filters, or of a product of matrices."""


class Addend(NamedTuple):
    """What is added to products: after the last of its numbers the first follows again."""

    parts: Parts
    run: int = 1
    """How many elements of the result in a row take the same number."""


def _arrays(parts: Parts) -> list[NDArray[Any]]:
    return list(map(array, parts))


def _names(session: Session, x: Parts, y: Parts) -> tuple[int | None, int | None]:
    name = session.storages.name
    return name(x[0]), name(y[0])


def _like_words(words: torch.Tensor) -> tuple[Sequence[int], torch.dtype]:
    return words.shape, torch.int64


def _like_bits(bits: torch.Tensor) -> tuple[Sequence[int], torch.dtype]:
    return bits.shape, torch.uint8


def _of_matrices(x: Parts, y: Parts, *_: Any, **__: Any) -> tuple[Sequence[int], torch.dtype]:
    return (*x[0].shape[:2], y[0].shape[2]), torch.int64


def _of_binary(x: Parts, width: int) -> tuple[Sequence[int], torch.dtype]:
    return (width, *x[0].shape), torch.uint8


def _of_counted(x: Parts, width: int) -> tuple[Sequence[int], torch.dtype]:
    return ((width - 1).bit_length() + 1, *x[0].shape), torch.uint8


def _of_shape(*arguments: Any, **_: Any) -> tuple[Sequence[int], torch.dtype]:
    """Where the shape of what comes out is the fourth argument."""
    return arguments[3], torch.int64


def empty_words(session: Session, shape: Sequence[int]) -> tuple[Parts, list[NDArray[np.int64]]]:
    """Components to be written, and the same as arrays."""
    return _empty(session, shape, np.int64)


def _bits(session: Session, shape: Sequence[int]) -> tuple[Parts, list[NDArray[np.uint8]]]:
    return _empty(session, shape, np.uint8)


def _empty(session: Session, shape: Sequence[int], kind: Any) -> tuple[Parts, list[NDArray[Any]]]:
    # NumPy takes less time than PyTorch for small memory, and finds large pages for large memory.
    arrays = [np.empty(shape, kind) for _ in range(session.core.parts)]
    if arrays[0].size and shape:
        return tuple(map(made_of, arrays)), arrays
    # PyTorch has other strides than NumPy where there are no elements.
    out = tuple(torch.empty(shape, dtype=torch.from_numpy(memory).dtype) for memory in arrays)
    return out, _arrays(out)


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
    """Public words as a sharing; no interaction."""
    out, arrays = empty_words(session, words.shape)
    if arrays[0].size:
        session.core.trivial(array(words), arrays)
    return out


@operation("(Tensor bits)", _like_bits)
def trivial_bits(session: Session, bits: torch.Tensor) -> Parts:
    """Public bits as a sharing; no interaction."""
    out, arrays = _bits(session, bits.shape)
    if arrays[0].size:
        session.core.trivial_bits(array(bits), arrays)
    return out


def reveal(session: Session, x: Parts, to: int | None, known: Known = None) -> torch.Tensor | None:
    """Opens to all or to one. One round. Flags that were not looked at before take as many more as
    looking at them does, 7 by replicated sharing; opening them takes one, and for one receiver two
    more and those of their AND.

    Args:
        known: the flags that it depends on.

    Raises:
        RangeError: at who learns it alone, if a flag failed: the value is not opened.
    """
    tracing.refuse("revealing")
    learns = to is None or to == session.party
    out = torch.empty(x[0].shape, dtype=x[0].dtype) if learns else None
    if x[0].numel():
        session.claims.settle()
        open_ = session.core.reveal_bits if x[0].dtype == torch.uint8 else session.core.reveal
        failed = open_(_arrays(x), to, None if out is None else array(out), each_of(known))
        if failed:
            raise refused(session, failed, is_told_to_all=to is None)
    return out


def refused(session: Session, failed: Sequence[str], *, is_told_to_all: bool) -> RangeError:
    """The error for flags that failed. Where all are told it is had by all before any party ends by
    it, which would end the others."""
    tracing.refuse("revealing")
    if is_told_to_all:
        with suppress(PeerError, NetworkError):
            session.core.confirm()
    return RangeError.of(failed)


def checked(session: Session, x: Parts, known: Known) -> Parts:
    """Words, or zeros where one of their flags failed, in secret."""
    tracing.refuse("calling a program")
    flags = each_of(known)
    if not flags or not x[0].numel():
        return x
    session.claims.settle()
    out, arrays = empty_words(session, x[0].shape)
    session.core.checked(_arrays(x), arrays, flags)
    return out


def flag_bits(session: Session, flags: Sequence[_core.Flag]) -> Parts:
    """The bits of flags, each 1 where it holds."""
    tracing.refuse("saving")
    session.claims.settle()
    components = session.core.flag_bits(list(flags))
    return tuple(torch.tensor(list(part), dtype=torch.uint8) for part in components)


def flags_of_bits(session: Session, bits: Parts, labels: Sequence[str]) -> list[_core.Flag]:
    """The flags again."""
    tracing.refuse("loading")
    return [
        session.core.flag_of(label, _arrays(tuple(part[at : at + 1] for part in bits)))
        for at, label in enumerate(labels)
    ]


@operation("(Tensor[] x, Tensor[] y, int truncate, *, bool in_range=False)")
def multiply(
    session: Session, x: Parts, y: Parts, truncate: int, *, in_range: bool = False
) -> Parts:
    """x·y / 2^truncate of equal shapes. What is not truncated is exact modulo 2^64, unless it is to
    be in
    range, as fractions are: the reference looks."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        left, right = _arrays(x), _arrays(y)
        if (truncate or in_range) and session.is_plain:
            ranges.check_product(session, left[0], right[0], 1, torch.mul, truncated=truncate > 0)
        kept = checks.kept(session, x[0].shape) if truncate else []
        session.core.multiply(left, right, arrays, truncate, _names(session, x, y), kept)
        if truncate or in_range:
            shift = fixed.Shift(truncate)
            checks.claim_product(session, [(x, y, None)], out, truncate=shift, dropped=kept)
    return out


@operation(
    "(Tensor[] x, Tensor[] y, int[1] truncate, *, bool in_range=False)",
    _of_matrices,
)
def matmul(
    session: Session,
    x: Parts,
    y: Parts,
    truncate: fixed.Shift | int,
    *,
    in_range: bool = False,
) -> Parts:
    """(batch, m, k) by (batch, k, n), each / 2^truncate; ranges as in ``multiply``, narrow ones as
    in ``affine``. A right operand that lies transposed, as weights do, is not copied."""
    (batch, m, k), n, shift = x[0].shape, y[0].shape[2], _shift(truncate)
    out, arrays = empty_words(session, (batch, m, n))
    if arrays[0].size and not k:
        return tuple(part.zero_() for part in out)
    if arrays[0].size:
        if (shift.bits or in_range) and session.is_plain:
            first = array(x[0]), array(y[0])
            ranges.check_product(
                session, *first, k, torch.bmm, truncated=shift.bits > 0, limit=shift.limit
            )
        turned = tuple(part.mT for part in y)
        is_transposed = turned[0].is_contiguous() and not y[0].is_contiguous()
        right = turned if is_transposed else y
        sizes, names = (batch, m, k, n), _names(session, x, right)
        operands = (_arrays(x), _arrays(right), arrays)
        kept = checks.kept(session, out[0].shape) if shift.bits else []
        session.core.matmul(*operands, *sizes, is_transposed, shift, names, kept)
        if shift.bits or in_range:
            terms = [(x, right, (sizes, is_transposed))]
            checks.claim_product(session, terms, out, truncate=shift, dropped=kept)
    return out


@operation(
    "(Tensor[] x, Tensor[] w, int[] geometry, int[] shape, int[1] truncate, *, "
    "bool in_range=False)",
    _of_shape,
)
def convolution(
    session: Session,
    x: Parts,
    w: Parts,
    geometry: Geometry,
    shape: Sequence[int],
    truncate: fixed.Shift | int,
    *,
    in_range: bool = False,
) -> Parts:
    """Images by weights, each / 2^truncate, in the output's shape; ranges as in ``multiply``,
    narrow ones as in ``affine``."""
    geometry, shift = shape_of(geometry), _shift(truncate)
    out, arrays = empty_words(session, shape)
    if arrays[0].size:
        images, weights = _arrays(x), _arrays(w)
        if (shift.bits or in_range) and session.is_plain:
            convolve = partial(convolved, geometry=geometry)
            summands = w[0][0].numel()
            first = images[0], weights[0]
            ranges.check_product(
                session, *first, summands, convolve, truncated=shift.bits > 0, limit=shift.limit
            )
        names = _names(session, x, w)
        kept = checks.kept(session, shape) if shift.bits else []
        session.core.convolution(images, weights, arrays, geometry.core, shift, names, kept)
        if shift.bits or in_range:
            terms = [(x, w, geometry.core)]
            checks.claim_product(session, terms, out, truncate=shift, dropped=kept)
    return out


def _shift(truncate: fixed.Shift | Sequence[int] | int) -> fixed.Shift:
    if isinstance(truncate, int):
        return fixed.Shift(truncate)
    bits, *is_narrow = truncate
    return fixed.Shift(bits, any(is_narrow))


def convolved(images: torch.Tensor, weights: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """The same in float64, for the reference."""
    g = geometry
    images = images.reshape(g.batch, g.in_channels, *g.input)
    weights = weights.reshape(g.out_channels, -1, *g.kernel)
    return torch.nn.functional.conv2d(
        images, weights, None, g.stride, g.padding, g.dilation, g.groups
    )


@local("(Tensor a, Tensor b)", lambda a, b: (*a.shape[:2], b.shape[2]))
def ring_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(batch, m, k) by (batch, k, n) modulo 2^64, of one party's own words."""
    (batch, m, k), n = a.shape, b.shape[2]
    out = torch.zeros((batch, m, n), dtype=torch.int64)
    if out.numel() and k:
        _core.ring_matmul(array(a), array(b), array(out), batch, m, k, n)
    return out


def ring_projections(parts: Parts, coin: bytes) -> Parts:
    """Products of rows modulo 2^64, of one party's own words, with random weights that the coin's
    16 bytes
    stand for: 0 with probability ½, 1 and -1 with ¼; ``_core.PROJECTIONS`` of each row."""
    tracing.refuse("drawing")
    rows, size = parts[0].shape
    out = torch.zeros((len(parts), rows, _core.PROJECTIONS), dtype=torch.int64)
    if size:
        _core.ring_projections([array(part) for part in parts], size, coin, array(out))
    return tuple(out)


@local("(Tensor a, Tensor b, int[] geometry, int[] shape)", lambda *arguments: arguments[3])
def ring_convolution(
    a: torch.Tensor, b: torch.Tensor, geometry: Geometry, shape: Sequence[int]
) -> torch.Tensor:
    """Images by weights modulo 2^64, of one party's own words."""
    geometry = shape_of(geometry)
    out = torch.zeros(tuple(shape), dtype=torch.int64)
    if out.numel():
        _core.ring_convolution(array(a), array(b), array(out), geometry.core)
    return out


def truncate(session: Session, x: Parts, bits: int) -> Parts:
    """x / 2^bits, at most one unit off."""
    return _truncated(session, x, bits) if bits else x


@operation("(Tensor[] x, int bits)")
def _truncated(session: Session, x: Parts, bits: int) -> Parts:
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.truncate(_arrays(x), arrays, bits)
    return out


def _check_compared(session: Session, x: Parts, bits: int, width: int) -> None:
    """Whether numbers have at most so many bits without their sign, where that
    width is a promise."""
    if session.is_plain:
        ranges.check_compared(session, x[0], bits)
    if isinstance(width, fixed.Promised):
        checks.hold_promised(session, x, width)


@operation("(Tensor[] x, int width)", tracing.bits)
def sign(session: Session, x: Parts, width: int) -> Parts:
    """Bits: whether x < 0, for numbers of that many bits."""
    out, arrays = _bits(session, x[0].shape)
    if arrays[0].size:
        _check_compared(session, x, width - 1, width)
        session.core.sign(_arrays(x), width, arrays)
    return out


@operation("(Tensor[] x, int width)", tracing.bits)
def equal_zero(session: Session, x: Parts, width: int) -> Parts:
    """Bits: whether x = 0 modulo 2^width."""
    out, arrays = _bits(session, x[0].shape)
    if arrays[0].size:
        _check_compared(session, x, width, width)
        session.core.equal_zero(_arrays(x), width, arrays)
    return out


@operation("(Tensor[] x, int argument, int[][] remainders)")
def series(session: Session, x: Parts, argument: int, remainders: list[list[int]]) -> Parts:
    """A Chebyshev series at x in [−1, 1] of so many fraction bits, by its remainders of division by
    T_k: the coefficients of T_0 to T_k, that of T_0 with as many fraction bits more as the argument
    has."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.series(_arrays(x), argument, remainders, arrays)
    return out


def relu(session: Session, x: Parts, compared: Comparison | int) -> Parts:
    """max(x, 0), for numbers of that many bits."""
    return _rectified(session, x, compared, ())


def one_sided(session: Session, x: Parts, below: Parts, compared: Comparison | int) -> Parts:
    """max(x, 0), and min(x, 0) where a bit of ``below``, of equal shape, is 1; the messages of
    ``relu``."""
    return _rectified(session, x, compared, below)


@operation("(Tensor[] x, int[1] compared, Tensor[] below)")
def _rectified(session: Session, x: Parts, compared: Comparison | int, below: Parts) -> Parts:
    """The same, without components of bits where there are none."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        width, reach, dropped = _comparison(compared)
        if not reach:
            _check_compared(session, x, width - 1, width)
        flag = session.core.relu(_arrays(x), width, arrays, reach, dropped, _arrays(below) or None)
        session.dependencies.add(flag)
        checks.inherit(session, out, x)
    return out


@operation("(Tensor[] x, Tensor[] y, int[1] compared)")
def maximum(session: Session, x: Parts, y: Parts, compared: Comparison | int) -> Parts:
    """The greater of x and y, of equal shapes, whose difference has at most that many bits."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        width, reach, _ = _comparison(compared)
        if not reach:
            check_difference(session, x, y, width)
        session.dependencies.add(session.core.maximum(_arrays(x), _arrays(y), width, arrays, reach))
        checks.inherit(session, out, x, y)
    return out


def check_difference(session: Session, x: Parts, y: Parts, width: int) -> None:
    """Whether x − y, which is compared, has at most that many bits."""
    if session.is_plain:
        ranges.check_difference(session, x[0], y[0], width)
    if isinstance(width, fixed.Promised):
        checks.hold_promised(session, subtract(x, y), width)
    if isinstance(width, fixed.Promised) or width >= fixed.WORD:
        for operand in (x, y):
            checks.hold(session, operand, checks.WORD)


def _comparison(compared: Comparison | Sequence[int] | int) -> Comparison:
    return Comparison(compared) if isinstance(compared, int) else Comparison(*compared)


def affine(
    session: Session,
    terms: Sequence[Term],
    addends: Sequence[Addend],
    shape: Sequence[int],
    truncate: fixed.Shift,
    rectified: Comparison | None,
) -> Parts:
    """(Σ terms + Σ addends·2^bits) / 2^bits, truncated once, in the output's shape; then
    max(0, ·) of it where that is wanted. Where the comparison and what is truncated fit a word
    together, what lies between zero and one unit may become zero then. A narrow sum is promised to
    have a magnitude below 2^``fixed.NARROW`` before it is truncated: if it has not, the result is
    wrong."""
    operands = [part for term in terms for part in (*term.x, *term.y)]
    shapes = [term.shape for term in terms]
    added = [part for addend in addends for part in addend.parts]
    runs = [addend.run for addend in addends]
    geometry = (shapes, added, shape, runs)
    return _summed(session, operands, *geometry, truncate, rectified or ())


@operation(
    "(Tensor[] operands, int[][] shapes, Tensor[] added, int[] shape, int[] runs, "
    "int[] truncate, int[] rectified)",
    _of_shape,
)
def _summed(
    session: Session,
    operands: Sequence[torch.Tensor],
    shapes: Sequence[Any],
    added: Sequence[torch.Tensor],
    shape: Sequence[int],
    runs: Sequence[int],
    truncate: fixed.Shift | Sequence[int],
    rectified: Sequence[int],
) -> Parts:
    """The same, with the components of all terms, and of all addends, one behind the other."""
    out, arrays = empty_words(session, shape)
    shift = _shift(truncate)
    if not arrays[0].size:
        return out
    terms = _terms(session, operands, shapes)
    given = [(_arrays(x), _arrays(y), of.core, _names(session, x, y)) for x, y, of in terms]
    compared = _comparison(rectified) if rectified else None
    addends = [(_arrays(parts), run) for parts, run in zip(_cut(session, added), runs, strict=True)]
    if session.is_plain:
        _check_terms(session, terms)
        promised = (
            compared.width
            if compared and session.numerics.is_promised and not compared.reach
            else fixed.WORD
        )
        if shift.is_narrow or promised < fixed.WORD:
            exact = _exactly(terms, addends, shift.bits)
            if shift.is_narrow:
                ranges.check_narrow(session, exact)
            if promised < fixed.WORD:
                ranges.check_rectified(session, exact * 2.0**-shift.bits, promised - 1)
    kept = checks.kept(session, shape, has_truncated=compared is not None)
    session.dependencies.add(session.core.affine(given, addends, arrays, shift, compared, kept))
    checks.claim_product(
        session,
        [(x, y, of.core) for x, y, of in terms],
        out,
        addends=list(zip(_cut(session, added), runs, strict=True)),
        truncate=shift,
        width=compared.width if compared else 0,
        dropped=kept,
    )
    return out


def _terms(session: Session, operands: Sequence[torch.Tensor], shapes: Sequence[Any]) -> list[Term]:
    cut = _cut(session, operands)
    pairs = zip(cut[::2], cut[1::2], strict=True)
    return [Term(x, y, shape_of(each)) for (x, y), each in zip(pairs, shapes, strict=True)]


def _cut(session: Session, tensors: Sequence[torch.Tensor]) -> list[Parts]:
    """Sharings whose components lie one behind the other."""
    count = session.core.parts
    return [tuple(tensors[at : at + count]) for at in range(0, len(tensors), count)]


def _check_terms(session: Session, terms: Sequence[Term]) -> None:
    for x, y, of in terms:
        summands = y[0][0].numel() if isinstance(of, Geometry) else of.sizes[2]
        ranges.check_product(session, array(x[0]), array(y[0]), summands, _in_float64(of))


def _exactly(
    terms: Sequence[Term], addends: Sequence[tuple[Any, int]], truncate: int
) -> torch.Tensor:
    """What is truncated of a sum, in float64, for the reference."""
    products = [
        _in_float64(of)(x[0].to(torch.float64), y[0].to(torch.float64)) for x, y, of in terms
    ]
    total = torch.stack([product.flatten() for product in products]).sum(0)
    for (words, *_), run in addends:
        each = torch.from_numpy(words).to(torch.float64).flatten().repeat_interleave(run)
        total = total + each.repeat(total.numel() // each.numel()) * 2.0**truncate
    return total


def _in_float64(of: Geometry | Matrices) -> Callable[..., torch.Tensor]:
    if isinstance(of, Geometry):
        return partial(convolved, geometry=of)
    return _by_transposed if of.is_transposed else torch.bmm


def _by_transposed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x, y.mT)


@operation("(Tensor[] x, Tensor[] y)", tracing.bits)
def and_bits(session: Session, x: Parts, y: Parts) -> Parts:
    """x AND y, of equal shapes."""
    out, arrays = _bits(session, x[0].shape)
    if arrays[0].size:
        session.core.and_bits(_arrays(x), _arrays(y), arrays)
    return out


@operation("(Tensor[] bits, Tensor[] x)")
def bit_multiply(session: Session, bits: Parts, x: Parts) -> Parts:
    """bit·x, of equal shapes."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.bit_multiply(_arrays(bits), _arrays(x), arrays)
        checks.inherit(session, out, x)
    return out


def select(session: Session, bits: Parts, x: Parts, other: Parts) -> Parts:
    """x where a bit is 1, and else the other, of equal shapes; the rounds of ``bit_multiply``."""
    return add(other, bit_multiply(session, bits, subtract(x, other)))


@operation("(Tensor[] bits)")
def bit_to_ring(session: Session, bits: Parts) -> Parts:
    """Each bit as the ring element 0 or 1."""
    out, arrays = empty_words(session, bits[0].shape)
    if arrays[0].size:
        session.core.bit_to_ring(_arrays(bits), arrays)
    return out


@operation("(Tensor[] x, int width)")
def low_bits(session: Session, x: Parts, width: int) -> Parts:
    """x modulo 2^width, from 0."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.low_bits(_arrays(x), width, arrays)
    return out


@operation("(Tensor[] x, int width)", _of_binary)
def binary(session: Session, x: Parts, width: int) -> Parts:
    """The low bits of x, as many as the width, lowest first, along a new first dimension."""
    out, arrays = _bits(session, (width, *x[0].shape))
    if arrays[0].size:
        session.core.to_binary(_arrays(x), width, arrays)
    return out


def from_binary(session: Session, bits: Parts, weights: torch.Tensor) -> Parts:
    """Words of bits along the first dimension: the sum of what these are worth, which may differ
    between elements. At most two rounds; of many elements two for every few bits, each of which is
    a word then."""
    (width, *shape), elements = bits[0].shape, math.prod(bits[0].shape[1:])
    at_once = max(1, MOST_WORDS // max(1, elements))
    weights = weights.reshape(width, *(1,) * (len(shape) + 1 - weights.dim()), *weights.shape[1:])
    sums = []
    for first in range(0, max(1, width), at_once):
        places = bit_to_ring(session, tuple(part[first : first + at_once] for part in bits))
        sums.append(tuple((part * weights[first : first + at_once]).sum(0) for part in places))
    return reduce(add, sums)


def leading_zeros(session: Session, x: Parts, width: int) -> tuple[Parts, Parts]:
    """How far x, 0 ≤ x < 2^width, is from filling the width of at least 2 bits: the number of its
    leading zeros in binary, lowest bit first along a new first dimension, and whether it is zero.
    Zero has as many leading zeros as one, so that 2^(width − 1) ≤ (x + zero)·2^zeros < 2^width."""
    out = _counted(session, x, width)
    return tuple(part[:-1] for part in out), tuple(part[-1] for part in out)


@operation("(Tensor[] x, int width)", _of_counted)
def _counted(session: Session, x: Parts, width: int) -> Parts:
    """Both, one behind the other."""
    out, arrays = _bits(session, _of_counted(x, width)[0])
    if arrays[0].size:
        session.core.leading_zeros(_arrays(x), width, arrays)
    return out


def complement(session: Session, bits: Parts) -> Parts:
    """NOT; no interaction."""
    one = trivial_bits(session, torch.ones((), dtype=torch.uint8))
    return tuple(part ^ flip for part, flip in zip(bits, one, strict=True))


def stacked(*sharings: Parts) -> Parts:
    """Sharings of one shape along a new first dimension: for one call side by side."""
    return tuple(map(torch.stack, zip(*sharings, strict=True)))


def unstacked(x: Parts) -> list[Parts]:
    """What lies along the first dimension, as views."""
    return list(zip(*x, strict=True))


def joined(*sharings: Parts) -> Parts:
    """Sharings one after another along their first dimension; of one alone it is that one."""
    some = [sharing for sharing in sharings if len(sharing[0])]
    return some[0] if len(some) == 1 else tuple(map(torch.cat, zip(*sharings, strict=True)))


def tree(x: Parts, join: Callable[[Parts, Parts, Parts], Parts]) -> Parts:
    """What lies along the first dimension as one, in ⌈log2(n)⌉ levels: each joins the first half
    with the second, and has the last one beside them where their number is odd."""
    while (size := len(x[0])) > 1:
        half = size // 2
        cuts = (0, half), (half, 2 * half), (2 * half, size)
        x = join(*(tuple(part[start:end] for part in x) for start, end in cuts))
    return tuple(part[0] for part in x)


def product(session: Session, x: Parts, *, in_range: bool = False) -> Parts:
    """Of the words along the first dimension, as ``multiply`` has it of two: a round for each level
    of a tree."""

    def join(left: Parts, right: Parts, odd: Parts) -> Parts:
        return joined(multiply(session, left, right, 0, in_range=in_range), odd)

    return tree(x, join)


def add(x: Parts, y: Parts) -> Parts:
    """x + y; no interaction."""
    return tuple(a + b for a, b in zip(x, y, strict=True))


def subtract(x: Parts, y: Parts) -> Parts:
    """x − y; no interaction."""
    return tuple(a - b for a, b in zip(x, y, strict=True))


def xor(x: Parts, y: Parts) -> Parts:
    """x XOR y of bits; no interaction."""
    return tuple(a ^ b for a, b in zip(x, y, strict=True))


def negate(x: Parts) -> Parts:
    """−x; no interaction."""
    return tuple(-part for part in x)
