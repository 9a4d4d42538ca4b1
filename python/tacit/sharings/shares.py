"""The protocol's operations on the components of sharings.

A sharing is a tuple of tensors of one shape: int64 words that add up to the value modulo 2^64, or
uint8 bits (0 or 1) that XOR to it. Operations that only add or move data are torch's own, applied
to each component. This module has the operations that need the protocol.
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


class Term(NamedTuple):
    """Bilinear map of two secrets."""

    x: Parts
    y: Parts
    #: Shape of a convolution of images with filters, or of a product of matrices.
    shape: Geometry | Matrices


class Addend(NamedTuple):
    """Numbers added to products. They repeat: after the last number the first one follows."""

    parts: Parts
    #: Number of consecutive elements of the result that take the same number.
    run: int = 1


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


def _of_leading_zeros(x: Parts, width: int) -> tuple[Sequence[int], torch.dtype]:
    return ((width - 1).bit_length() + 1, *x[0].shape), torch.uint8


def _of_shape(*arguments: Any, **_: Any) -> tuple[Sequence[int], torch.dtype]:
    """Returns the outcome of operations whose fourth argument is the shape of the result."""
    return arguments[3], torch.int64


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
        failed = open_(_arrays(x), to, None if out is None else array(out), each_of(known))
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
    session.core.checked(_arrays(x), arrays, flags)
    return out


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
        session.core.flag_of(label, _arrays(tuple(part[at : at + 1] for part in bits)))
        for at, label in enumerate(labels)
    ]


@operation("(Tensor[] x, Tensor[] y, int truncate, *, bool in_range=False)")
def multiply(
    session: Session, x: Parts, y: Parts, truncate: int, *, in_range: bool = False
) -> Parts:
    """Computes x·y / 2^truncate, element by element, of equal shapes.

    A product without truncation is exact modulo 2^64. With ``in_range``, as for fractions, it must
    also fit the range of words, which the reference protocol and checked mode check.
    """
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        left, right = _arrays(x), _arrays(y)
        if (truncate or in_range) and session.is_plain:
            ranges.check_product(session, left[0], right[0], 1, torch.mul, truncated=truncate > 0)
        kept = checks.kept(session) if truncate or in_range else None
        session.core.multiply(left, right, arrays, truncate, _names(session, x, y), kept)
        if truncate or in_range:
            shift = fixed.Shift(truncate)
            checks.claim_product(session, [(x, y, None)], out, truncate=shift, kept=kept)
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
    """Multiplies (batch, m, k) by (batch, k, n); divides the products by 2^truncate.

    Ranges are as in ``multiply``, and those of narrow truncations as in ``affine``. A right operand
    that is transposed in memory, as weights are, is not copied.
    """
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
        kept = checks.kept(session) if shift.bits or in_range else None
        session.core.matmul(*operands, *sizes, is_transposed, shift, names, kept)
        if shift.bits or in_range:
            terms = [(x, right, (sizes, is_transposed))]
            checks.claim_product(session, terms, out, truncate=shift, kept=kept)
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
    """Convolves images with weights, divides by 2^truncate, and returns the given shape.

    Ranges are as in ``multiply``, and those of narrow truncations as in ``affine``.
    """
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
        kept = checks.kept(session) if shift.bits or in_range else None
        session.core.convolution(images, weights, arrays, geometry.core, shift, names, kept)
        if shift.bits or in_range:
            terms = [(x, w, geometry.core)]
            checks.claim_product(session, terms, out, truncate=shift, kept=kept)
    return out


def _shift(truncate: fixed.Shift | Sequence[int] | int) -> fixed.Shift:
    if isinstance(truncate, int):
        return fixed.Shift(truncate)
    bits, *is_narrow = truncate
    return fixed.Shift(bits, any(is_narrow))


def convolved(images: torch.Tensor, weights: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """Convolves plain images with plain weights, for the reference protocol in float64."""
    g = geometry
    images = images.reshape(g.batch, g.in_channels, *g.input)
    weights = weights.reshape(g.out_channels, -1, *g.kernel)
    return torch.nn.functional.conv2d(
        images, weights, None, g.stride, g.padding, g.dilation, g.groups
    )


@local("(Tensor a, Tensor b)", lambda a, b: (*a.shape[:2], b.shape[2]))
def ring_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiplies (batch, m, k) by (batch, k, n) modulo 2^64, for words of one party."""
    (batch, m, k), n = a.shape, b.shape[2]
    out = torch.zeros((batch, m, n), dtype=torch.int64)
    if out.numel() and k:
        _core.ring_matmul(array(a), array(b), array(out), batch, m, k, n)
    return out


def ring_projections(parts: Parts, coin: bytes) -> Parts:
    """Projects rows of one party's words by random weights, modulo 2^64.

    The 16 bytes of the coin determine the weights: 0 with probability ½, 1 and -1 with ¼ each. Each
    row has ``_core.PROJECTIONS`` products.
    """
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
    """Convolves images with weights modulo 2^64, for words of one party."""
    geometry = shape_of(geometry)
    out = torch.zeros(tuple(shape), dtype=torch.int64)
    if out.numel():
        _core.ring_convolution(array(a), array(b), array(out), geometry.core)
    return out


def truncate(session: Session, x: Parts, bits: int) -> Parts:
    """Truncates x by ``bits`` bits: x / 2^bits, with an error of at most one unit."""
    return _truncated(session, x, bits) if bits else x


@operation("(Tensor[] x, int bits)")
def _truncated(session: Session, x: Parts, bits: int) -> Parts:
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.truncate(_arrays(x), arrays, bits)
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
        session.core.sign(_arrays(x), width, arrays)
    return out


@operation("(Tensor[] x, int width)", tracing.bits)
def equal_zero(session: Session, x: Parts, width: int) -> Parts:
    """Returns bits: whether x = 0 modulo 2^width."""
    out, arrays = _bits(session, x[0].shape)
    if arrays[0].size:
        _check_compared(session, x, width, width)
        session.core.equal_zero(_arrays(x), width, arrays)
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
        session.core.series(_arrays(x), argument, remainders, arrays)
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
        width, reach, dropped = _comparison(compared)
        if not reach:
            _check_compared(session, x, width - 1, width)
        flag = session.core.relu(_arrays(x), width, arrays, reach, dropped, _arrays(below) or None)
        session.dependencies.add(flag)
        checks.inherit(session, out, x)
    return out


@operation("(Tensor[] x, Tensor[] y, int[1] compared)")
def maximum(session: Session, x: Parts, y: Parts, compared: Comparison | int) -> Parts:
    """Returns the greater of x and y, of equal shapes, by a comparison of their difference."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        width, reach, _ = _comparison(compared)
        if not reach:
            check_difference(session, x, y, width)
        session.dependencies.add(session.core.maximum(_arrays(x), _arrays(y), width, arrays, reach))
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
    """Computes (Σ terms + Σ addends·2^bits) / 2^bits with one truncation, then max(0, ·) if asked.

    Args:
        session: this party's session.
        terms: the bilinear maps to add.
        addends: the numbers to add, at the scale of the result.
        shape: the shape of the result.
        truncate: the truncation by ``bits``. A narrow one promises that the magnitude of the sum is
            below 2^``fixed.NARROW`` before the truncation. If it is not, the result is wrong.
        rectified: the comparison of max(0, ·); None to return the sum itself. If its width and the
            truncated bits fit a word together, results between zero and one unit may become zero.
    """
    operands = [part for term in terms for part in (*term.x, *term.y)]
    shapes = [term.shape for term in terms]
    added = [part for addend in addends for part in addend.parts]
    runs = [addend.run for addend in addends]
    geometry = (shapes, added, shape, runs)
    return _affine(session, operands, *geometry, truncate, rectified or ())


@operation(
    "(Tensor[] operands, int[][] shapes, Tensor[] added, int[] shape, int[] runs, "
    "int[] truncate, int[] rectified)",
    _of_shape,
)
def _affine(
    session: Session,
    operands: Sequence[torch.Tensor],
    shapes: Sequence[Any],
    added: Sequence[torch.Tensor],
    shape: Sequence[int],
    runs: Sequence[int],
    truncate: fixed.Shift | Sequence[int],
    rectified: Sequence[int],
) -> Parts:
    """Implements ``affine``, with the components of terms and of addends in flat lists."""
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
    kept = checks.kept(session)
    session.dependencies.add(session.core.affine(given, addends, arrays, shift, compared, kept))
    checks.claim_product(
        session,
        [(x, y, of.core) for x, y, of in terms],
        out,
        addends=list(zip(_cut(session, added), runs, strict=True)),
        truncate=shift,
        width=compared.width if compared else 0,
        kept=kept,
    )
    return out


def _terms(session: Session, operands: Sequence[torch.Tensor], shapes: Sequence[Any]) -> list[Term]:
    cut = _cut(session, operands)
    pairs = zip(cut[::2], cut[1::2], strict=True)
    return [Term(x, y, shape_of(each)) for (x, y), each in zip(pairs, shapes, strict=True)]


def _cut(session: Session, tensors: Sequence[torch.Tensor]) -> list[Parts]:
    """Splits a flat list of components into sharings."""
    count = session.core.parts
    return [tuple(tensors[at : at + count]) for at in range(0, len(tensors), count)]


def _check_terms(session: Session, terms: Sequence[Term]) -> None:
    for x, y, of in terms:
        summands = y[0][0].numel() if isinstance(of, Geometry) else of.sizes[2]
        ranges.check_product(session, array(x[0]), array(y[0]), summands, _in_float64(of))


def _exactly(
    terms: Sequence[Term], addends: Sequence[tuple[Any, int]], truncate: int
) -> torch.Tensor:
    """Computes a sum before its truncation, in float64, for the reference protocol."""
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
    """Computes x AND y of bits, of equal shapes."""
    out, arrays = _bits(session, x[0].shape)
    if arrays[0].size:
        session.core.and_bits(_arrays(x), _arrays(y), arrays)
    return out


@operation("(Tensor[] bits, Tensor[] x)")
def bit_multiply(session: Session, bits: Parts, x: Parts) -> Parts:
    """Multiplies words by bits, of equal shapes."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.bit_multiply(_arrays(bits), _arrays(x), arrays)
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
        session.core.bit_to_ring(_arrays(bits), arrays)
        checks.known(session, out, 1)
    return out


@operation("(Tensor[] x, int width)")
def low_bits(session: Session, x: Parts, width: int) -> Parts:
    """Returns x modulo 2^width, in [0, 2^width)."""
    out, arrays = empty_words(session, x[0].shape)
    if arrays[0].size:
        session.core.low_bits(_arrays(x), width, arrays)
        checks.known(session, out, width)
    return out


@operation("(Tensor[] x, int width)", _of_binary)
def binary(session: Session, x: Parts, width: int) -> Parts:
    """Decomposes x into its low ``width`` bits, lowest first, along a new first dimension."""
    out, arrays = _bits(session, (width, *x[0].shape))
    if arrays[0].size:
        session.core.to_binary(_arrays(x), width, arrays)
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
        session.core.leading_zeros(_arrays(x), width, arrays)
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


def product(session: Session, x: Parts, *, in_range: bool = False) -> Parts:
    """Multiplies all words along the first dimension, in one round for each level of a tree.

    Ranges are as in ``multiply``.
    """

    def join(left: Parts, right: Parts, odd: Parts) -> Parts:
        return joined(multiply(session, left, right, 0, in_range=in_range), odd)

    return tree(x, join)


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
