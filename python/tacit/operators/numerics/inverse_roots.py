"""Inverse roots 1 / √(Σ x²/count + ε) of rows, as exact for small rows as for large ones.

A sum of squares has up to twice the bits of its numbers, which is more than a word has. So two sums
are computed. The *fine* sum Σ w² keeps all bits of the words w. It is right if it is below 2^61,
and is not used otherwise. The *coarse* sum is computed from words without their lowest ``COARSE``
bits, and is always right. Both sums are shifted up by their leading zeros to fill the same width.
The highest digit of the number of zeros says whether the coarse sum is below 2^30, so that the fine
sum is right. The choice between the two therefore takes no comparison.

Nothing is opened. All steps are the protocol's own operations on shares, in an order that follows
from shapes alone. So the parties see only what these operations show, which is nothing.

Domain: rows whose norm √Σ x² is below 2^(46 − fraction bits), 2^30 by default. Error: 2^−13
relative; for rows of n numbers with norms from 2^14 on, n·2^−32 more for the dropped bits. An ε of
0 or more counts as at least four units of the fine sum, 2^−30/n by default. With a negative ε, the
mean of squares must be greater than its magnitude."""

import math
from dataclasses import dataclass

import torch

from tacit import buffers, checks, fixed
from tacit.fixed import Scale
from tacit.modes import is_tracing
from tacit.operators.dispatch.operands import shifted, times_public
from tacit.operators.numerics.approximation.fits import FITS, USUAL
from tacit.operators.numerics.approximation.normal import argument, power_of_two
from tacit.operators.numerics.approximation.series import RESULT, evaluate
from tacit.sessions import Session
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Bits that words drop before they are squared for the coarse sum.
COARSE = 15

#: The width that sums fill. A coarse sum with 32 leading zeros is below 2^(WIDTH − 32), so the fine
#: sum is below 2^(WIDTH − 32 + 2·COARSE) and a little.
WIDTH = fixed.RANGE

#: Bits that are kept of a sum that fills the width.
_KEPT = 30

#: Fraction bits of the inverse root of such a sum, as a fraction of a power of two.
_ROOT = 15

#: Bits that half a root drops before it is multiplied by the inverse root.
_HALF = 18

#: The least fine sum. The inverse root of a smaller one would overflow at its truncation.
_LEAST = 4


@dataclass(frozen=True)
class InverseRoots:
    """The inverse roots of rows of numbers, and the intermediate results for means and roots."""

    #: 1 / √(mean + ε), (rows, 1). Its product with the row's numbers is at most √n, so it has the
    #: most fraction bits that keep this product in range: 61, less the numbers' own, less log2 √n.
    found: SecretTensor
    #: The fine and the coarse sums, without ε.
    _sums: Parts
    #: Whether the fine sum is right, as ring elements 0 or 1.
    _is_fine: Parts
    #: The scale of the numbers.
    _scale: Scale
    #: The divisor of the sums.
    _count: float
    #: √filled·√sum, √(filled / sum), and √count / √filled.
    _half: Parts
    _root: Parts
    _inverse: Parts
    #: By how many units of the fine sum ε was raised.
    _excess: int

    def mean_of_squares(self) -> SecretTensor:
        """Returns Σ x²/count without ε, (rows), at the session's scale. At most nine rounds."""
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
        """Returns √(Σ x²/count + ε), (rows), at the session's scale. At most twelve rounds.

        The error is 2^−13 relative, and two units of the rows' scale."""
        session = self.found._session
        # √sum·√filled, then √sum·√count, with fraction bits that leave both in range.
        half = self._half
        if self._excess:
            more = bilinear.multiply(session, self._is_fine, self._root, 0)
            half = tuple(part - self._excess * less for part, less in zip(half, more, strict=True))
        half = shares.truncate(session, half, _HALF)
        either = bilinear.multiply(session, half, self._inverse, 0)
        finer = shares.truncate(session, either, COARSE)
        chosen = _chosen(session, self._is_fine, finer, either)
        parts = shares.truncate(session, chosen, _ROOT + WIDTH // 2 - _HALF - COARSE)
        found = self.found.like(parts, self._scale)
        rest = torch.tensor(2.0 ** _bits_of_root(self._count) / self._count, dtype=torch.float64)
        return times_public(found, rest, found.dtype, gain=2.0)


def inverse_roots(x: SecretTensor, eps: float, count: float | None = None) -> InverseRoots:
    """Computes the inverse roots of rows, (rows, n) with n ≥ 1.

    Takes about ten rounds more than an inverse square root.

    Args:
        count: the divisor of the sums, at least 1. The default n gives means.

    Raises:
        EncodingError: ε cannot be encoded.
    """
    session, scale, count = x._session, x._scale, count or x.shape[1]
    fixed.encode(torch.tensor(eps, dtype=torch.float64), scale)
    coarse = shifted(session, x._parts, COARSE, 0)
    if session.is_plain and not is_tracing():
        _check(session, coarse[0])
    sums = _squared(session, shares.stacked(x._parts, coarse))
    # All later steps are in range if the coarse sums are.
    checks.hold(session, x._parts, checks.WORD)
    _claim(session, coarse, tuple(part[1] for part in sums))
    with checks.proved(session):
        return _of_sums(x, sums, eps, count)


def _of_sums(x: SecretTensor, sums: Parts, eps: float, count: float) -> InverseRoots:
    session, scale = x._session, x._scale
    raised = shares.add(sums, shares.trivial(session, _words(eps, scale, count)))
    digits, _ = shares.leading_zeros(session, raised, WIDTH)
    # The number of zeros is rounded down to even and halved: its lowest place is left out.
    fine, others = (tuple(part[1:, which] for part in digits) for which in (0, 1))
    is_fine = tuple(part[-1:, 1] for part in digits)
    either = shares.and_bits(
        session, tuple(bit.expand_as(fine[0]) for bit in is_fine), shares.xor(fine, others)
    )
    *places, bit = shares.unstacked(
        shares.bit_to_ring(session, shares.joined(shares.xor(others, either), is_fine))
    )
    chosen = _chosen(session, bit, *shares.unstacked(raised))
    # The root of 2^zeros. For a fine sum it is 2^COARSE times that, since the words of a coarse sum
    # have COARSE bits less.
    root = power_of_two(session, places)
    one = shares.trivial(session, torch.tensor(1))
    finer = tuple(part * ((1 << COARSE) - 1) + unit for part, unit in zip(bit, one, strict=True))
    pair = bilinear.multiply(session, shares.stacked(chosen, finer), shares.stacked(root, root), 0)
    half, power = shares.unstacked(pair)
    filled = bilinear.multiply(session, half, root, WIDTH - _KEPT)
    inverse = _inverse(session, argument(session, filled, _KEPT, 0.25), count)
    found = bilinear.multiply(session, inverse, power, 0)
    # 1/√mean = √n·power / √filled, where ``filled`` is a fraction of 2^WIDTH.
    bits = _ROOT + COARSE + WIDTH // 2 - scale.bits - _bits_of_root(count)
    result = x.like(tuple(part.unsqueeze(1) for part in found), Scale(bits))
    excess = max(0, _LEAST - max(0, fixed.word(count * eps, 2 * scale.bits)))
    return InverseRoots(result, sums, bit, scale, count, half, root, inverse, excess)


def _squared(session: Session, x: Parts) -> Parts:
    """Returns the sums of squares along the last of three dimensions, modulo 2^64."""
    rows = _rows(x)
    sums = bilinear.matmul(session, rows, tuple(part.mT for part in rows), 0)
    return tuple(part.reshape(whole.shape[:-1]) for part, whole in zip(sums, x, strict=True))


def _claim(session: Session, x: Parts, sums: Parts) -> None:
    """Claims, in checked mode, that the sums of squares of rows do not overflow."""
    rows = _rows(x)
    sizes = (*rows[0].shape[:2], rows[0].shape[2], 1)
    out = tuple(part.reshape(-1, 1) for part in sums)
    checks.claim_product(session, [(rows, rows, (sizes, True))], out, exact=fixed.RANGE)


def _rows(x: Parts) -> Parts:
    return tuple(part.reshape(-1, 1, part.shape[-1]) for part in x)


def _check(session: Session, coarse: torch.Tensor) -> None:
    """Reports rows outside the domain, under the plain reference protocol."""
    words = buffers.array(coarse)
    ranges.check_product(session, words, words, coarse.shape[1], _sums_of_products, truncated=False)


def _sums_of_products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x * y).sum(1)


def _words(eps: float, scale: Scale, count: float) -> torch.Tensor:
    """Returns count·ε at the scales of the fine and the coarse sums, (2, 1).

    If the fine one is greater than its width, the fine sum is not used, so it is capped."""
    fine, coarse = (
        min(fixed.word(count * eps, 2 * bits), 1 << (WIDTH - 1))
        for bits in (scale.bits, scale.bits - COARSE)
    )
    return torch.tensor([[fine if fine < 0 else max(fine, _LEAST)], [coarse]])


def _chosen(session: Session, bit: Parts, x: Parts, other: Parts) -> Parts:
    """Returns x where ``bit``, a ring element, is 1, and ``other`` where it is 0. One round."""
    return shares.add(other, bilinear.multiply(session, bit, shares.subtract(x, other), 0))


def _moved(session: Session, x: Parts, bits: int) -> Parts:
    """Returns x / 2^bits: a truncation, or a shift up if ``bits`` is negative."""
    return shares.truncate(session, x, bits) if bits > 0 else tuple(part << -bits for part in x)


def _inverse(session: Session, at: Parts, count: float) -> Parts:
    """Returns √n / √v for v in [1/4, 1], with _ROOT fraction bits.

    The result is a fraction of a power of two that is at least √n."""
    factor = math.sqrt(count) * 2.0 ** -_bits_of_root(count)
    series = [factor * each for each in FITS["rsqrt"][USUAL].series]
    return shares.truncate(session, evaluate(session, at, series), RESULT - _ROOT)


def _bits_of_root(count: float) -> int:
    """Returns the bits of √count, at least one.

    One keeps products at no more than ``MOST_IN_PRODUCT`` fraction bits."""
    return max(1, math.ceil(math.log2(count) / 2))
