"""Products of sharings: of elements, of matrices, convolutions, and sums of these.

Each is a bilinear map, so that all of them have the same truncation, ranges and checks.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from tacit import _core, checks, fixed
from tacit.buffers import array
from tacit.sessions import Session
from tacit.sharings import ranges, tracing
from tacit.sharings.bilinear_shapes import Geometry, Matrices, shape_of
from tacit.sharings.shares import (
    Comparison,
    Parts,
    arrays_of,
    comparison_of,
    empty_words,
    joined,
    tree,
)
from tacit.sharings.tracing import local, operation


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


def _names(session: Session, x: Parts, y: Parts) -> tuple[int | None, int | None]:
    name = session.storages.name
    return name(x[0]), name(y[0])


def _of_matrices(x: Parts, y: Parts, *_: Any, **__: Any) -> tuple[Sequence[int], torch.dtype]:
    return (*x[0].shape[:2], y[0].shape[2]), torch.int64


def _of_shape(*arguments: Any, **_: Any) -> tuple[Sequence[int], torch.dtype]:
    """Returns the outcome of operations whose fourth argument is the shape of the result."""
    return arguments[3], torch.int64


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
        left, right = arrays_of(x), arrays_of(y)
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
        operands = (arrays_of(x), arrays_of(right), arrays)
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
        images, weights = arrays_of(x), arrays_of(w)
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
    given = [(arrays_of(x), arrays_of(y), of.core, _names(session, x, y)) for x, y, of in terms]
    compared = comparison_of(rectified) if rectified else None
    addends = [
        (arrays_of(parts), run) for parts, run in zip(_cut(session, added), runs, strict=True)
    ]
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


def product(session: Session, x: Parts, *, in_range: bool = False) -> Parts:
    """Multiplies all words along the first dimension, in one round for each level of a tree.

    Ranges are as in ``multiply``.
    """

    def join(left: Parts, right: Parts, odd: Parts) -> Parts:
        return joined(multiply(session, left, right, 0, in_range=in_range), odd)

    return tree(x, join)
