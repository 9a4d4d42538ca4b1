"""Fixed-point encoding of real numbers in Z_2^64, and the rules of scales.

A number x of scale s is encoded as the word round(x·2^s) modulo 2^64. Every secret tensor has a
:class:`Scale`. This module alone decides the scale of a result:

- *Sums*, selections and data movements keep the greatest scale of their operands. Bringing a number
  to a greater scale is free.
- *Products* have the sum of both scales. A product that is truncated has the session's scale,
  whatever scales the operands had.
- *Gradients* are small, so they are computed as if the session's scale had four bits more. Trained
  weights have the same scale.
- *Integers* have scale 0. A product by an integer has the other operand's scale, and needs no
  truncation.
- *Public numbers* have a scale that follows from their kind, never from their values: 0 for
  integers and booleans, the session's for fractions. So the scale of a result does not depend on
  the values of public factors either. The factors themselves get as many bits as the range leaves,
  or none if all are whole. If these bits are not enough, the factors are split into several terms.

**Range.** Words stay below 2^62 in magnitude, so that truncation makes no large errors. Numbers of
scale s are below 2^(46 − s), at the default scale of 16 below 2^30. Then the product of two numbers
at the session's scale is in range, with 2·16 fraction bits and 30 bits before the point. So is the
product by a public factor of 16 bits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from tacit.errors import EncodingError, MisuseError
from tacit.modes import outside_trace

#: Dtypes that can be encoded, by name.
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    )
}

#: Bits of a word.
WORD = 64

#: Words that are decoded at a time, so that intermediate results stay in the processor's caches.
AT_ONCE = 1 << 18

#: Magnitudes of words stay below 2^RANGE, so that truncation makes no large errors.
RANGE = 62

#: Magnitudes of products that are promised to be narrow stay below 2^NARROW before their
#: truncation. Such words have ABOVE bits less than others.
NARROW = 49
ABOVE = RANGE - NARROW

#: Magnitudes of encoded words stay below 2^ENCODED, which leaves room for a factor.
ENCODED = 46

#: Bits that a factor of any encoded word may have.
ROOM = RANGE - ENCODED

#: Most fraction bits of two factors together. With more, products from 2^2 on would overflow.
MOST_IN_PRODUCT = RANGE - 2

#: Least significant bits of public factors: nearly as many as float32 has.
SIGNIFICANT = 22

#: Least significant bits of public operands of matrix products and convolutions, in which every
#: result adds many products.
SIGNIFICANT_IN_SUMS = 19

#: Bits of a digit of a whole word, with its sign. Words below 2^RANGE have two digits.
DIGIT = 33

#: Most terms of a public factor.
MOST_TERMS = 3

#: Exponent of the word 2^UNBOUNDED that replaces an infinite public number, as in a mask before a
#: softmax, if nothing is multiplied by it. It is beyond usual data, and sums of several are in
#: range.
UNBOUNDED = 42

#: Numbers from this on may be masks too, if they are beyond all secrets.
MASKING = 1e9

#: Numbers that count as infinite: masks are often the greatest finite number of a dtype. Any other
#: number of that size is too large to be encoded.
INFINITE = tuple(
    torch.finfo(dtype).max for dtype in (torch.bfloat16, torch.float32, torch.float64)
) + (math.inf,)

#: Most fraction bits of a scale. Numbers of that scale are below 2^6.
MOST_FRACTION_BITS = 40


#: Fraction bits that gradients have beyond the session's.
MORE_IN_GRADIENTS = 4


class Scale(NamedTuple):
    """The number of fraction bits of a fixed-point number."""

    bits: int

    @property
    def limit(self) -> float:
        """Upper bound, exclusive, of the magnitudes of numbers of this scale."""
        return 2.0 ** (ENCODED - self.bits)

    @property
    def unit(self) -> float:
        """Difference of neighbouring numbers of this scale."""
        return 2.0**-self.bits


#: Scale of integers and booleans.
WHOLE = Scale(0)

#: Scale to which factors are reduced that have more than ``MOST_IN_PRODUCT`` bits together. Their
#: products are right below 2^14.
FEWER = Scale(24)

#: Default scale of fractions.
DEFAULT = Scale(16)


class Shift(NamedTuple):
    """A truncation: the number of low bits that it drops, and the range of its operands."""

    #: Low bits to drop; 0 truncates nothing.
    bits: int
    #: Whether magnitudes before the truncation are promised to be below 2^``NARROW``, not just
    #: 2^``RANGE``.
    is_narrow: bool = False

    @property
    def limit(self) -> int:
        """Magnitudes before the truncation must be below two to the power of this."""
        return NARROW if self.is_narrow else RANGE


#: No truncation.
EXACT = Shift(0)


@dataclass(frozen=True)
class Numerics:
    """The settings under which a session computes; ``Session.using`` changes some of them."""

    #: The scale of fractions and of truncated products.
    scale: Scale = DEFAULT
    #: Bits that a comparison looks at, counted at the default scale.
    width: int = WORD
    #: Whether the user promises that ``width`` is enough. Otherwise a compiled program's intervals
    #: prove it.
    is_promised: bool = True
    #: Width and reach of guarded rectifications, as in ``shares.Comparison``, if they are guarded.
    #: Other comparisons use ``width``.
    guard: tuple[int, int] | None = None
    #: Low bits of fractions at ``scale`` that the comparison of a ReLU ignores.
    dropped: int = 0
    #: Products of layers with at most this many fraction bits are promised to be narrow: their
    #: words are below 2^``NARROW`` before the truncation. Narrow products cost less.
    narrow: int = 0
    #: The key of each function's series, for functions that do not use the usual series; see
    #: ``approximation.fits``.
    fits: Mapping[str, str] = field(default_factory=dict)
    #: Whether all computations are checked to stay in range; see ``checks``.
    is_checked: bool = False
    #: Whether the caller has proved that all values stay in range. Then only widths that a user
    #: promised are checked.
    is_proved: bool = False
    #: Whether only shapes are computed, so that there is nothing to check.
    is_dry: bool = False
    #: Whether an optimizer's step runs. New tensors made like a secret one are secret then.
    is_optimizing: bool = False

    def shift(self, bits: int) -> Shift:
        """Returns the truncation by ``bits`` bits, which brings a layer's product to ``scale``."""
        return Shift(bits, 0 < bits <= self.narrow - self.scale.bits)


def scale_of(bits: int) -> Scale:
    """Returns the scale with the given number of fraction bits.

    Raises:
        MisuseError: ``bits`` is not an integer from 1 to 40.
    """
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= MOST_FRACTION_BITS:
        raise MisuseError(f"a scale is 1 to {MOST_FRACTION_BITS} fraction bits, not {bits!r}")
    return Scale(bits)


def of_sum(scales: Sequence[Scale]) -> Scale:
    """Returns the scale at which numbers are added, selected and compared: the greatest."""
    return max(scales)


def of_dtype(session: Scale, dtype: torch.dtype) -> Scale:
    """Returns the scale of new numbers of a dtype."""
    return session if dtype.is_floating_point else WHOLE


def of_gradients(session: Scale) -> Scale:
    """Returns the scale of a backward pass, from the session's scale.

    Gradients of the mean of a loss are small, so they get more fraction bits. Products of two of
    them keep a range of 2^22."""
    return Scale(max(session.bits, min(session.bits + MORE_IN_GRADIENTS, (RANGE - 2) // 2)))


def of_product(left: Scale, right: Scale, session: Scale) -> tuple[int, Scale]:
    """Returns the bits that a product drops by truncation, and its scale.

    The scale is the session's, or less if the product has fewer bits. A factor without fraction
    bits leaves the other scale unchanged."""
    total = left.bits + right.bits
    if total <= session.bits or not left.bits or not right.bits:
        return 0, Scale(total)
    return total - session.bits, session


def of_products(factors: Sequence[tuple[Scale, Scale]], session: Scale) -> tuple[int, list[Scale]]:
    """Returns the bits that a sum of products drops, and the scales of the left factors.

    The sum then has the session's scale. The number of bits is below 1 if the products have no more
    bits than that. The left factors are brought to their scales first, so that all products have
    the greatest scale of a product."""
    total = max(left.bits + right.bits for left, right in factors)
    return total - session.bits, [Scale(total - right.bits) for _, right in factors]


def of_square(scale: Scale, most: Scale) -> tuple[int, Scale]:
    """Returns the bits that a square drops by truncation, and its scale.

    The scale is that of the exact square, but at most ``most``."""
    bits = min(most.bits, 2 * scale.bits)
    return 2 * scale.bits - bits, Scale(bits)


def before_square(session: Scale) -> Scale:
    """Returns the scale to which numbers are brought before they are squared.

    Squares have twice the bits before their truncation. At this scale they are in range if the
    truncated squares are in range at the session's scale."""
    return Scale(min(session.bits, (RANGE - ENCODED + session.bits) // 2))


def of_inverse_root(session: Scale) -> Scale:
    """Returns the scale of 1 / √x: eight bits more than the session's, up to 24.

    1 / √x is small for large x."""
    return Scale(max(session.bits, min(session.bits + 8, 24)))


def beside_root(scale: Scale) -> int:
    """Returns the most fraction bits of 1 / √x that keep x·(1 / √x) in range.

    For the largest x of a scale s, √2^(46 − s)·2^(s + these bits) must be below 2^61."""
    return RANGE - 1 - (ENCODED + scale.bits + 1) // 2


class Promised(int):
    """A comparison width that is a promise: checked mode checks numbers against it."""


def width(bits: int, scale: Scale) -> int:
    """Converts a comparison width from the default scale to another scale.

    The number of bits before the point stays the same. For integers the width itself counts."""
    return bits if scale == WHOLE else min(WORD, max(2, bits + scale.bits - DEFAULT.bits))


#: Least width of a comparison whose low bits are dropped.
LEAST_COMPARED = 4


def width_beside(bits: int, most: float) -> int:
    """Returns the width for comparing numbers of the given width with numbers up to ``most``.

    Both are of the default scale."""
    return min(WORD, max(bits, 1 + DEFAULT.bits + math.ceil(math.log2(most))) + 1)


#: Remedies for data that are too large, and for public numbers that are combined with secrets.
OF_DATA = "scale the data down"
AMONG_SECRETS = "scale the secrets down, or write inf where it stands for a mask or for no bound"


@outside_trace
def encode(values: torch.Tensor, scale: Scale, remedy: str = OF_DATA) -> torch.Tensor:
    """Encodes a tensor of numbers as int64 words, rounded to the nearest.

    The error for a value that is too large ends with ``remedy``.

    Raises:
        EncodingError: a value is NaN, infinite, or not smaller than the scale's limit.
    """
    if values.numel() == 0:
        return values.to(torch.int64)
    if not values.is_floating_point():
        words = values.to(torch.int64)
        if scale == WHOLE:
            # Integers may be any word. They have a limit only if they are combined with fractions.
            return words
        lowest, highest = (int(bound) for bound in words.aminmax())
        if max(-lowest, highest) >= scale.limit:
            raise _too_large(max(-lowest, highest), scale.limit, scale, remedy)
        return words << scale.bits
    wide = values.detach().to(torch.float64)
    greatest = _greatest(
        wide,
        "a value is NaN or infinite, which has no fixed-point encoding; "
        f"the largest magnitude allowed is below {scale.limit:g}",
    )
    if greatest >= scale.limit:
        raise _too_large(greatest, scale.limit, scale, remedy)
    return (wide * 2.0**scale.bits).round_().to(torch.int64)


def word(number: float, bits: int) -> int:
    """Encodes a constant with the given number of fraction bits, rounded as by ``encode``.

    Algorithms choose these bits themselves; they are not the scale of a tensor."""
    return round(number * 2.0**bits)


def unbounded(width: int) -> int:
    """Returns the exponent of the word that replaces an infinite number, for a comparison width."""
    return min(UNBOUNDED, width - 4)


@outside_trace
def bounded(values: torch.Tensor, scale: Scale, width: int) -> torch.Tensor:
    """Replaces infinite numbers, and greatest numbers of a dtype, by a finite one.

    The new number is beyond usual data of that scale, and comparisons with them at ``width`` are
    right."""
    if not values.is_floating_point() or values.numel() == 0:
        return values
    lowest, highest = values.detach().aminmax()
    if lowest > -INFINITE[0] and highest < INFINITE[0]:
        return values
    beyond = 2.0 ** (unbounded(width) - scale.bits)
    wide = values.detach().to(torch.float64)
    is_infinite = torch.isin(wide.abs(), torch.tensor(INFINITE, dtype=torch.float64))
    return torch.where(is_infinite, wide.sign() * beyond, wide)


def limit_beside(scale: Scale, own: Scale, width: int) -> float:
    """Returns the limit of secrets of scale ``own`` that are compared at a scale and a width."""
    limit = (scale if own == WHOLE else own).limit if scale != WHOLE else 2.0 ** (WORD - 1)
    return limit if width >= WORD else min(limit, 2.0 ** (width - 1 - scale.bits))


@outside_trace
def placed(values: torch.Tensor, scale: Scale, own: Scale, width: int) -> torch.Tensor:
    """Encodes public numbers that are placed among secrets.

    The secrets are brought to ``scale`` from their scale ``own``. A public number may be as large
    as a secret. A larger one counts as infinite if it is at least ``MASKING``, since masks are made
    of such numbers.

    Raises:
        EncodingError: a value is NaN, or beyond the limit of secrets and less than ``MASKING``.
    """
    if not values.is_floating_point() or scale == WHOLE or values.numel() == 0:
        return encode(values, scale)
    wide = bounded(values, scale, width).detach().to(torch.float64)
    most = max(limit_beside(scale, own, width), MASKING)
    beyond = 2.0 ** (unbounded(width) - scale.bits)
    wide = torch.where(wide.abs() >= most, wide.sign() * beyond, wide)
    limit = max(own.limit, scale.limit)
    greatest = _greatest(wide, "a value is NaN, which has no fixed-point encoding")
    if greatest >= limit:
        raise _too_large(greatest, limit, scale, AMONG_SECRETS)
    return (wide * 2.0**scale.bits).round_().to(torch.int64)


def _greatest(wide: torch.Tensor, otherwise: str) -> float:
    """Returns the greatest magnitude.

    Raises:
        EncodingError: a value is not finite.
    """
    lowest, highest = (float(bound) for bound in wide.aminmax())
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise EncodingError.of("finite", otherwise)
    return max(-lowest, highest)


def _too_large(greatest: float, limit: float, scale: Scale, remedy: str) -> EncodingError:
    return EncodingError.of(
        "large",
        f"a value of magnitude {greatest:g} is too large for fixed point with {scale.bits} "
        f"fraction bits; "
        f"the largest magnitude allowed is below {limit:g}: {remedy}",
    )


def decode(words: torch.Tensor, scale: Scale, dtype: torch.dtype) -> torch.Tensor:
    """Decodes words to numbers."""
    if not dtype.is_floating_point:
        return words.to(dtype)
    unit = 2.0**-scale.bits
    if words.numel() <= AT_ONCE or not words.is_contiguous():
        return words.to(torch.float64).mul_(unit).to(dtype)
    numbers = torch.empty(words.shape, dtype=dtype)
    row, into = words.view(-1), numbers.view(-1)
    for begin in range(0, len(row), AT_ONCE):
        piece = slice(begin, begin + AT_ONCE)
        into[piece] = row[piece].to(torch.float64).mul_(unit)
    return numbers


def lost(values: torch.Tensor, words: torch.Tensor, scale: Scale) -> float:
    """Returns the relative error of an encoding: the norm of the error divided by the norm."""
    wide = values.detach().to(torch.float64)
    norm = float(wide.norm())
    error = decode(words, scale, torch.float64) - wide
    return float(error.norm()) / norm if norm else 0.0


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a public factor: words, and their fraction bits."""

    words: torch.Tensor
    bits: int


@dataclass(frozen=True, slots=True)
class Factor:
    """A public factor: the sum of its terms, each word·2^−bits.

    Each term's product stays in range wherever the secret operand and the result do.
    """

    terms: tuple[Term, ...]


@lru_cache(maxsize=256)
def _factor_of_number(value: float, operand: Scale, result: Scale) -> Factor:
    wide = torch.tensor(value, dtype=torch.float64)
    return _factor(wide, abs(value), operand, result, None)


@outside_trace
def factor(
    values: torch.Tensor, operand: Scale, result: Scale, gain: float | None = None
) -> Factor:
    """Encodes public factors of numbers of scale ``operand``, for results of scale ``result``.

    Args:
        gain: for sums of products, the largest sum of magnitudes of the factors of one result,
            divided by the greatest factor.

    Raises:
        EncodingError: a value is NaN, infinite, or too large.
    """
    if not values.is_floating_point():
        return Factor((Term(encode(values, WHOLE), 0),))
    if values.numel() == 0:
        return Factor((Term(values.to(torch.int64), 0),))
    if values.dim() == 0 and gain is None:
        number = float(values)
        if not math.isfinite(number):
            raise EncodingError(NO_FACTOR)
        return _factor_of_number(number, operand, result)
    wide = values.detach().to(torch.float64)
    greatest = _greatest(wide, NO_FACTOR)
    return _factor(wide, greatest, operand, result, gain)


@outside_trace
def factor_of_digits(values: torch.Tensor, result: Scale, gain: float | None = None) -> Factor:
    """Encodes public factors of digits of whole words, for results of scale ``result``.

    The terms that are left out change a result by less than a unit. Results are right below
    2^(RANGE − 2 − the scale's bits), 2^44 by default.

    Raises:
        EncodingError: a value is NaN, infinite, or too large.
    """
    rest = values.detach().to(torch.float64)
    greatest = _greatest(rest, NO_FACTOR)
    if greatest >= WHOLE.limit:
        raise _too_large(greatest, WHOLE.limit, WHOLE, "scale the secrets down, or the factor")
    terms: list[Term] = []
    bits = result.bits + 1
    # The magnitude of a digit has one bit less than DIGIT. A sum of products grows by the gain.
    more = RANGE - 1 - DIGIT - (0 if gain is None else math.ceil(math.log2(gain)))
    while True:
        words = (rest * 2.0**bits).trunc()
        rest = rest - words * 2.0**-bits
        is_last = float(rest.abs().max()) <= 2.0 ** -(DIGIT + result.bits + 2)
        if bool((words != 0).any()) or (is_last and not terms):
            terms.append(Term(words.to(torch.int64), bits))
        if is_last:
            break
        bits += more
    # If there are several terms, each keeps its bits: later partial sums are truncated to these.
    return Factor((_shortened(terms[0].words, terms[0].bits),) if len(terms) == 1 else tuple(terms))


NO_FACTOR = "a public factor or divisor makes NaN or infinity (a division by zero?)"


def _factor(
    wide: torch.Tensor, greatest: float, operand: Scale, result: Scale, gain: float | None
) -> Factor:
    if greatest >= WHOLE.limit:
        raise _too_large(greatest, WHOLE.limit, WHOLE, "scale the secrets down, or the factor")
    if bool((wide == wide.round()).all()):
        return Factor((Term(wide.to(torch.int64), 0),))
    growth, significant = (1.0, SIGNIFICANT) if gain is None else (gain, SIGNIFICANT_IN_SUMS)
    # The factor gets as many bits as the result's range allows, or, if that is more, as a word of
    # any operand leaves. Sums keep a bit in reserve: terms may cancel, but their rounding errors do
    # not.
    allowed = result.bits - operand.bits - (gain is not None)
    most = RANGE - 1 - max(0, operand.bits - result.bits)
    bits = max(1, min(ROOM + max(allowed, _room(greatest * growth)), most))
    terms: list[Term] = []
    rest = wide
    while True:
        scaled = rest * 2.0**bits
        # Rounds towards zero, so that no term exceeds the factor.
        words = scaled.trunc()
        if terms and not bool(words.any()):
            # The rest is below the last bit that a term can have.
            return Factor(tuple(terms))
        terms.append(_shortened(words.to(torch.int64), bits))
        rest = (scaled - words) * 2.0**-bits
        error = float(rest.abs().max())
        if error <= greatest * 2.0**-significant or len(terms) == MOST_TERMS:
            return Factor(tuple(terms))
        # Only the magnitude of the rest is known, so its product by any operand must be in range.
        bits = min(ROOM + _room(error * growth), most)
        if bits <= terms[-1].bits:
            return Factor(tuple(terms))


def _room(greatest: float) -> int:
    """Returns by how many bits a number can be shifted up and stay at most 1."""
    return -math.ceil(math.log2(greatest))


def _shortened(words: torch.Tensor, bits: int) -> Term:
    """Returns factors with as few bits as they need, so that less must be truncated."""
    combined = int(np.bitwise_or.reduce(words.numpy().reshape(-1)))
    trailing = (combined & -combined).bit_length() - 1 if combined else bits
    drop = min(trailing, bits)
    return Term(words >> drop, bits - drop)
