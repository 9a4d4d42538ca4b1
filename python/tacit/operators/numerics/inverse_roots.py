"""1 / √(Σ x²/count + ε) of rows, as of a mean of squares, as exact for small rows as for large
ones.

A sum of squares has up to twice the bits of its numbers, more than a word has. So there are two.
The *fine* one keeps all bits, Σ w² for words w, and is right where it is below 2^61; beyond that it
is wrong, and not taken. The *coarse* one is of words that dropped ``COARSE`` bits, and always
right. Both fill one width by their leading zeros, whose highest place says whether the coarse sum
is below 2^30, and so the fine one right: to choose takes no comparison.

Nothing is opened: all steps are the protocol's own operations on shares, in an order that follows
from shapes alone, so parties see what these operations show, which is nothing.

Domain: rows whose norm √Σ x² is below 2^(46 − fraction bits), 2^30 by default. Error: 2^−13
relative; of rows of n numbers with norms from 2^14 on n·2^−32 more, for what was dropped. An ε from
0 counts as four units of the fine sum at the least, 2^−30/n by default; with a negative one means
of squares are greater than it takes."""

import math
from dataclasses import dataclass

import torch

from tacit import buffers, checks, fixed
from tacit.fixed import Scale
from tacit.modes import is_tracing
from tacit.operators.dispatch.operands import times_public
from tacit.operators.numerics.approximation.fits import FITS, USUAL
from tacit.operators.numerics.approximation.normal import argument, power_of_two
from tacit.operators.numerics.approximation.series import RESULT, evaluate
from tacit.sessions import Session
from tacit.sharings import ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Bits that words drop before the squares are taken whose sum is coarse.
COARSE = 15

#: The width that sums fill. A coarse one with 32 leading zeros is below 2^(WIDTH − 32), and so the
#: fine one below 2^(WIDTH − 32 + 2·COARSE) and a little.
WIDTH = fixed.RANGE

#: Bits that are kept of what fills the width.
_KEPT = 30

#: Fraction bits of its inverse root, a fraction of a power of two.
_ROOT = 15

#: Bits that half a root drops before it meets the inverse root.
_HALF = 18

#: The least fine sum: the inverse root of a smaller one would leave the range where it is
#: truncated.
_LEAST = 4


@dataclass(frozen=True)
class InverseRoots:
    """Of rows of numbers."""

    #: 1 / √(mean + ε), (rows, 1), with as many fraction bits as products with the rows' numbers,
    #: which are √n
    #: at most, leave in range: 61, less the numbers' own, less log2 √n.
    found: SecretTensor
    #: The fine and the coarse sums, without ε; which of them is right, as ring elements; what
    #: divides them.
    _sums: Parts
    _is_fine: Parts
    _scale: Scale
    _count: float
    #: √filled·√sum, √(filled / sum), and √count / √filled.
    _half: Parts
    _root: Parts
    _inverse: Parts
    #: By how much ε counts as more than it is, in units of the fine sum.
    _excess: int

    def mean_of_squares(self) -> SecretTensor:
        """What the roots are of, without ε, (rows), at the session's scale; at most nine rounds."""
        session = self.found._session
        shift = math.floor(math.log2(self._count))
        fine, coarse = (
            _moved(session, sums, 2 * bits + shift - session.scale.bits)
            for sums, bits in zip(
                shares.unstacked(self._sums),
                (self._scale.bits, self._scale.bits - COARSE),
                strict=True,
            )
        )
        found = self.found.like(_chosen(session, self._is_fine, fine, coarse), session.scale)
        rest = torch.tensor(2.0**shift / self._count, dtype=torch.float64)
        return times_public(found, rest, found.dtype, gain=2.0)

    def roots(self) -> SecretTensor:
        """√(Σ x²/count + ε), (rows), at the session's scale; at most twelve rounds. Off by 2^−13
        relative, and two units of the rows' scale."""
        session = self.found._session
        # √sum·√filled, then √sum·√count, with fraction bits that leave both in range.
        half = self._half
        if self._excess:
            more = shares.multiply(session, self._is_fine, self._root, 0)
            half = tuple(part - self._excess * less for part, less in zip(half, more, strict=True))
        half = shares.truncate(session, half, _HALF)
        either = shares.multiply(session, half, self._inverse, 0)
        finer = shares.truncate(session, either, COARSE)
        chosen = _chosen(session, self._is_fine, finer, either)
        parts = shares.truncate(session, chosen, _ROOT + WIDTH // 2 - _HALF - COARSE)
        found = self.found.like(parts, self._scale)
        rest = torch.tensor(2.0 ** _bits_of_root(self._count) / self._count, dtype=torch.float64)
        return times_public(found, rest, found.dtype, gain=2.0)


def inverse_roots(x: SecretTensor, eps: float, count: float | None = None) -> InverseRoots:
    """Of rows, (rows, n) with n from 1 on. About as many rounds as an inverse square root has, and
    ten.

    Args:
        count: what sums are divided by, from 1 on; n by default, which gives means.

    Raises:
        EncodingError: ε is none of the numbers that can be encoded.
    """
    session, scale, count = x._session, x._scale, count or x.shape[1]
    fixed.encode(torch.tensor(eps, dtype=torch.float64), scale)
    coarse = shares.truncate(session, x._parts, COARSE)
    if session.is_plain and not is_tracing():
        _check(session, coarse[0])
    sums = _squared(session, shares.stacked(x._parts, coarse))
    # All that follows is in range where the coarse sums are.
    checks.hold(session, x._parts, checks.WORD)
    _claim(session, coarse, tuple(part[1] for part in sums))
    with checks.proved(session):
        return _of_sums(x, sums, eps, count)


def _of_sums(x: SecretTensor, sums: Parts, eps: float, count: float) -> InverseRoots:
    session, scale = x._session, x._scale
    raised = shares.add(sums, shares.trivial(session, _words(eps, scale, count)))
    digits, _ = shares.leading_zeros(session, raised, WIDTH)
    # Of an even number of zeros half: the lowest place is left where it is.
    fine, others = (tuple(part[1:, which] for part in digits) for which in (0, 1))
    is_fine = tuple(part[-1:, 1] for part in digits)
    either = shares.and_bits(
        session, tuple(bit.expand_as(fine[0]) for bit in is_fine), shares.xor(fine, others)
    )
    *places, bit = shares.unstacked(
        shares.bit_to_ring(session, shares.joined(shares.xor(others, either), is_fine))
    )
    chosen = _chosen(session, bit, *shares.unstacked(raised))
    # The root of 2^zeros; of a fine sum 2^COARSE times that, as a coarse one has so many bits less.
    root = power_of_two(session, places)
    one = shares.trivial(session, torch.tensor(1))
    finer = tuple(part * ((1 << COARSE) - 1) + unit for part, unit in zip(bit, one, strict=True))
    pair = shares.multiply(session, shares.stacked(chosen, finer), shares.stacked(root, root), 0)
    half, power = shares.unstacked(pair)
    filled = shares.multiply(session, half, root, WIDTH - _KEPT)
    inverse = _inverse(session, argument(session, filled, _KEPT, 0.25), count)
    found = shares.multiply(session, inverse, power, 0)
    # 1/√mean = √n·power / √filled, where that is a fraction of 2^WIDTH.
    bits = _ROOT + COARSE + WIDTH // 2 - scale.bits - _bits_of_root(count)
    result = x.like(tuple(part.unsqueeze(1) for part in found), Scale(bits))
    excess = max(0, _LEAST - max(0, fixed.word(count * eps, 2 * scale.bits)))
    return InverseRoots(result, sums, bit, scale, count, half, root, inverse, excess)


def _squared(session: Session, x: Parts) -> Parts:
    """The sums of squares along the last of three dimensions, modulo 2^64."""
    rows = _rows(x)
    sums = shares.matmul(session, rows, tuple(part.mT for part in rows), 0)
    return tuple(part.reshape(whole.shape[:-1]) for part, whole in zip(sums, x, strict=True))


def _claim(session: Session, x: Parts, sums: Parts) -> None:
    """Claims that the sums of squares of rows have words."""
    rows = _rows(x)
    sizes = (*rows[0].shape[:2], rows[0].shape[2], 1)
    out = tuple(part.reshape(-1, 1) for part in sums)
    checks.claim_product(session, [(rows, rows, (sizes, True))], out, just=fixed.RANGE)


def _rows(x: Parts) -> Parts:
    return tuple(part.reshape(-1, 1, part.shape[-1]) for part in x)


def _check(session: Session, coarse: torch.Tensor) -> None:
    """Tells, under the reference, of rows that are beyond the domain."""
    words = buffers.array(coarse)
    ranges.check_product(session, words, words, coarse.shape[1], _sums_of_products, truncated=False)


def _sums_of_products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x * y).sum(1)


def _words(eps: float, scale: Scale, count: float) -> torch.Tensor:
    """count·ε beside the fine and the coarse sums, (2, 1). A fine one beyond its width is not
    taken."""
    fine, coarse = (
        min(fixed.word(count * eps, 2 * bits), 1 << (WIDTH - 1))
        for bits in (scale.bits, scale.bits - COARSE)
    )
    return torch.tensor([[fine if fine < 0 else max(fine, _LEAST)], [coarse]])


def _chosen(session: Session, bit: Parts, x: Parts, other: Parts) -> Parts:
    """x where a bit, as a ring element, is 1, and else the other; a round."""
    return shares.add(other, shares.multiply(session, bit, shares.subtract(x, other), 0))


def _moved(session: Session, x: Parts, bits: int) -> Parts:
    """x / 2^bits, or a shift up where there are less."""
    return shares.truncate(session, x, bits) if bits > 0 else tuple(part << -bits for part in x)


def _inverse(session: Session, at: Parts, count: float) -> Parts:
    """√n / √v for v in [1/4, 1], as a fraction of a power of two that is not below √n, _ROOT
    fraction bits."""
    factor = math.sqrt(count) * 2.0 ** -_bits_of_root(count)
    series = [factor * each for each in FITS["rsqrt"][USUAL].series]
    return shares.truncate(session, evaluate(session, at, series), RESULT - _ROOT)


def _bits_of_root(count: float) -> int:
    """At least one: products have at most as many fraction bits as ``MOST_IN_PRODUCT``."""
    return max(1, math.ceil(math.log2(count) / 2))
