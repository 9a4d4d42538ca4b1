"""Real numbers as fixed point in Z_2^64, and the one rule of scales.

A number x of scale s is held as the word round(x·2^s) modulo 2^64. A :class:`Scale` travels with
every secret tensor, and this module alone says which one a result has:

- *Sums*, choices and whatever only moves data keep the greatest scale among their operands:
  bringing a number to a greater one is free.
- *Products* have the sum of both scales, and what is truncated lands at the session's scale,
  whatever the operands had.
- *Gradients* are computed as if the session's scale had four bits more: they are small. Weights
  that are trained have as many.
- *Integers* have scale 0. A product by them has the other's scale, and needs no truncation.
- *Public numbers* have a scale by their kind, never by their values: integers and booleans 0,
  fractions the session's. So results of public factors do too. The factors themselves get as many
  bits as the range leaves, none if all are whole; where these are not enough they are split into
  several terms.

**Range.** Words stay below 2^62, where truncation has no wild errors. Numbers of scale s are below
2^(46 − s), so at the default scale of 16 below 2^30: then the product of two at the session's
scale, 2·16 fraction bits and 30 bits before the point, is in range, and so is a public factor of 16
bits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from tacit.errors import EncodingError, MisuseError
from tacit.modes import outside_trace

#: Dtypes that have a fixed-point form, by name.
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

#: Words that are decoded at a time: what lies in between stays in the processor's caches.
AT_ONCE = 1 << 18

#: Magnitudes of words stay below 2^RANGE, where truncation has no wild errors.
RANGE = 62

#: Magnitudes of products that are promised to be narrow stay below 2^NARROW before they are
#: truncated, and as many bits less are left of their words as NARROW is less than RANGE.
NARROW = 49
ABOVE = RANGE - NARROW

#: Magnitudes of words that are encoded stay below 2^ENCODED, which leaves room for a factor.
ENCODED = 46

#: Bits that a factor may have beside a word of any encoded number.
ROOM = RANGE - ENCODED

#: Fraction bits of two factors together at most: with more, products from 2^2 would leave the
#: range.
MOST_IN_PRODUCT = RANGE - 2

#: Significant bits that public factors have, at the least: nearly as many as float32.
SIGNIFICANT = 22

#: The same of public operands of matrix products and convolutions, of which every result takes
#: many.
SIGNIFICANT_IN_SUMS = 19

#: Bits of a digit of a whole word, with its sign: words below 2^RANGE have two, as numbers below
#: 2^31.
DIGIT = 33

#: Terms of a public factor at most.
MOST_TERMS = 3

#: The word that an infinite public number stands for where nothing is multiplied by it, as in a
#: mask before a
#: softmax: 2^UNBOUNDED, beyond what data have, and a sum of several is in range.
UNBOUNDED = 42

#: Masks are made of numbers from this on too, where they are beyond what secrets may be.
MASKING = 1e9

#: Masks are made of the greatest finite number of a dtype too; any other one is too large to be
#: encoded.
INFINITE = tuple(
    torch.finfo(dtype).max for dtype in (torch.bfloat16, torch.float32, torch.float64)
) + (math.inf,)

#: Fraction bits that a scale may have: numbers below 2^6 are left.
MOST_FRACTION_BITS = 40


#: Fraction bits that gradients have beyond the session's.
MORE_IN_GRADIENTS = 4


class Scale(NamedTuple):
    """How many fraction bits numbers have."""

    bits: int

    @property
    def limit(self) -> float:
        """Numbers of this scale are smaller than this."""
        return 2.0 ** (ENCODED - self.bits)

    @property
    def unit(self) -> float:
        """Numbers of this scale are multiples of this."""
        return 2.0**-self.bits


#: Of integers and booleans.
WHOLE = Scale(0)

#: What factors are brought to that have more than ``MOST_IN_PRODUCT``: products are right below
#: 2^14 then.
FEWER = Scale(24)

#: The scale of fractions unless a session has another one.
DEFAULT = Scale(16)


class Shift(NamedTuple):
    """A truncation: the number of low bits that it drops, and the range of its operands."""

    bits: int
    """Low bits to drop; 0 truncates nothing."""
    is_narrow: bool = False
    """Whether magnitudes before the truncation are promised to be below 2^``NARROW``, not just
    2^``RANGE``."""

    @property
    def limit(self) -> int:
        """Magnitudes before the truncation must be below two to the power of this."""
        return NARROW if self.is_narrow else RANGE


#: No truncation.
EXACT = Shift(0)


@dataclass(frozen=True)
class Numerics:
    """The settings under which a session computes; ``Session.using`` changes some of them."""

    scale: Scale = DEFAULT
    """The scale of fractions and of truncated products."""
    width: int = WORD
    """Bits that a comparison looks at, counted at the default scale."""
    is_promised: bool = True
    """Whether the user promises that ``width`` is enough. Otherwise a compiled program's intervals
    prove it."""
    guard: tuple[int, int] | None = None
    """Width and reach of guarded rectifications, as in ``shares.Comparison``, if they are guarded.
    Other comparisons use ``width``."""
    dropped: int = 0
    """Low bits of fractions at ``scale`` that the comparison of a ReLU ignores."""
    narrow: int = 0
    """Products of layers with at most this many fraction bits are promised to be narrow: their
    words are below 2^``NARROW`` before the truncation. Narrow products cost less."""
    fits: Mapping[str, str] = field(default_factory=dict)
    """The key of each function's series, for functions that do not use the usual series; see
    ``approximation.fits``."""
    is_checked: bool = False
    """Whether all computations are checked to stay in range; see ``checks``."""
    is_proved: bool = False
    """Whether the caller has proved that all values stay in range. Then only widths that a user
    promised are checked."""
    is_optimizing: bool = False
    """Whether an optimizer's step runs. New tensors made like a secret one are secret then."""

    def shift(self, bits: int) -> Shift:
        """Returns the truncation by ``bits`` bits, which brings a layer's product to ``scale``."""
        return Shift(bits, 0 < bits <= self.narrow - self.scale.bits)


def scale_of(bits: int) -> Scale:
    """The scale with that many fraction bits.

    Raises:
        MisuseError: not 1 to 40.
    """
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= MOST_FRACTION_BITS:
        raise MisuseError(f"a scale is 1 to {MOST_FRACTION_BITS} fraction bits, not {bits!r}")
    return Scale(bits)


def of_sum(scales: Sequence[Scale]) -> Scale:
    """The scale at which numbers are added, chosen among, and compared: the greatest."""
    return max(scales)


def of_dtype(session: Scale, dtype: torch.dtype) -> Scale:
    """The scale of new numbers of a dtype."""
    return session if dtype.is_floating_point else WHOLE


def of_gradients(session: Scale) -> Scale:
    """The session's scale in a backward pass: gradients of the mean of a loss are small, and
    products of two keep a range of 2^22."""
    return Scale(max(session.bits, min(session.bits + MORE_IN_GRADIENTS, (RANGE - 2) // 2)))


def of_product(left: Scale, right: Scale, session: Scale) -> tuple[int, Scale]:
    """The bits that a product drops, and its scale then: the session's; less if it has no more; and
    what a number without fraction bits leaves as it is."""
    total = left.bits + right.bits
    if total <= session.bits or not left.bits or not right.bits:
        return 0, Scale(total)
    return total - session.bits, session


def of_products(factors: Sequence[tuple[Scale, Scale]], session: Scale) -> tuple[int, list[Scale]]:
    """The bits that a sum of products drops to land at the session's scale, below 1 if they have no
    more; and what left factors are brought to before, so that all products have the scale of the
    greatest."""
    total = max(left.bits + right.bits for left, right in factors)
    return total - session.bits, [Scale(total - right.bits) for _, right in factors]


def of_square(scale: Scale, most: Scale) -> tuple[int, Scale]:
    """The bits that a square drops, and its scale then: as many bits as it has, up to those of
    ``most``."""
    bits = min(most.bits, 2 * scale.bits)
    return 2 * scale.bits - bits, Scale(bits)


def before_square(session: Scale) -> Scale:
    """What numbers are brought to whose squares are in range wherever these are at the session's
    scale: squares have twice the bits before they are truncated."""
    return Scale(min(session.bits, (RANGE - ENCODED + session.bits) // 2))


def of_inverse_root(session: Scale) -> Scale:
    """Of 1 / √x, which is small where x is large: eight bits more than the session's, up to 24."""
    return Scale(max(session.bits, min(session.bits + 8, 24)))


def beside_root(scale: Scale) -> int:
    """The most bits of 1 / √x with which its product by the largest x of a scale is in range:
    √2^(46 − the scale's)·2^(the scale's + these) < 2^61."""
    return RANGE - 1 - (ENCODED + scale.bits + 1) // 2


class Promised(int):
    """A width of comparisons that nobody has proved: numbers are held to it in checked mode."""


def width(bits: int, scale: Scale) -> int:
    """The width of a comparison of numbers of a scale, from that of numbers of the default scale:
    as many bits before the point. Integers have the width itself."""
    return bits if scale == WHOLE else min(WORD, max(2, bits + scale.bits - DEFAULT.bits))


#: Bits that a comparison has at least whose low ones are dropped.
LEAST_COMPARED = 4


def width_beside(bits: int, most: float) -> int:
    """The width of a comparison of numbers of the default scale and that width with others up to
    ``most``."""
    return min(WORD, max(bits, 1 + DEFAULT.bits + math.ceil(math.log2(most))) + 1)


#: What can be done about data that are too large, and about public numbers that meet secrets.
OF_DATA = "scale the data down"
AMONG_SECRETS = "scale the secrets down, or write inf where it stands for a mask or for no bound"


@outside_trace
def encode(values: torch.Tensor, scale: Scale, remedy: str = OF_DATA) -> torch.Tensor:
    """Int64 words of a tensor of numbers, rounded to the nearest. What is too large is told with
    that remedy.

    Raises:
        EncodingError: a value is NaN, infinite, or not smaller than the scale's limit.
    """
    if values.numel() == 0:
        return values.to(torch.int64)
    if not values.is_floating_point():
        words = values.to(torch.int64)
        if scale == WHOLE:
            # Integers are all of Z_2^64; they have a limit where they meet fractions.
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
    """The word of a constant with so many fraction bits, rounded as ``encode`` does. Algorithms
    have these at bits of their own, which are no scale of any tensor."""
    return round(number * 2.0**bits)


def unbounded(width: int) -> int:
    """The bits of the word that an infinite number stands for, where
    comparisons have that width."""
    return min(UNBOUNDED, width - 4)


@outside_trace
def bounded(values: torch.Tensor, scale: Scale, width: int) -> torch.Tensor:
    """Numbers with each infinite one (or greatest of a dtype) replaced by one that is beyond what
    data of that scale have, and is compared rightly with them at that width."""
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
    """What secrets of their own scale are below where they are compared at
    this one, at that width."""
    limit = (scale if own == WHOLE else own).limit if scale != WHOLE else 2.0 ** (WORD - 1)
    return limit if width >= WORD else min(limit, 2.0 ** (width - 1 - scale.bits))


@outside_trace
def placed(values: torch.Tensor, scale: Scale, own: Scale, width: int) -> torch.Tensor:
    """Words of public numbers that stand among secrets, which are brought to this scale from their
    own. What these may be, public ones may be; what is beyond it, if it is large, is infinite: a
    mask is made of it.

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
    """The greatest magnitude.

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
    """The numbers that words stand for."""
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
    """What a tensor lost when it was encoded: the norm of the error, relative to the norm."""
    wide = values.detach().to(torch.float64)
    norm = float(wide.norm())
    error = decode(words, scale, torch.float64) - wide
    return float(error.norm()) / norm if norm else 0.0


@dataclass(frozen=True, slots=True)
class Term:
    """A summand of a public factor: words, and the scale that they have."""

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
    """Public factors of numbers of scale ``operand``, whose results have scale ``result``.

    Args:
        gain: for sums of products, the sum of the factors' magnitudes that one result takes,
            divided by the greatest of them.

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
    """Public factors of digits of whole words, whose results have scale ``result`` and are then off
    by less than a unit for what is left out. Results are right below 2^(RANGE − 2 − the scale's
    bits), 2^44 by default.

    Raises:
        EncodingError: a value is NaN, infinite, or too large.
    """
    rest = values.detach().to(torch.float64)
    greatest = _greatest(rest, NO_FACTOR)
    if greatest >= WHOLE.limit:
        raise _too_large(greatest, WHOLE.limit, WHOLE, "scale the secrets down, or the factor")
    terms: list[Term] = []
    bits = result.bits + 1
    # A digit has one bit less than its sign and magnitude, and so does a sum of several its growth.
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
    # Others have no fewer bits than the result: what follows them is truncated to as many.
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
    # What the result's range allows; or, if that is more, what a word of any operand leaves. Sums
    # keep a bit for what rounding the factors does to summands that cancel.
    allowed = result.bits - operand.bits - (gain is not None)
    most = RANGE - 1 - max(0, operand.bits - result.bits)
    bits = max(1, min(ROOM + max(allowed, _room(greatest * growth)), most))
    terms: list[Term] = []
    rest = wide
    while True:
        scaled = rest * 2.0**bits
        # Towards zero, so that no term is more than the factor.
        words = scaled.trunc()
        if terms and not bool(words.any()):
            # What is left is below the last bit that a term can have.
            return Factor(tuple(terms))
        terms.append(_shortened(words.to(torch.int64), bits))
        rest = (scaled - words) * 2.0**-bits
        error = float(rest.abs().max())
        if error <= greatest * 2.0**-significant or len(terms) == MOST_TERMS:
            return Factor(tuple(terms))
        # Of the rest nothing is known but its size: no word of an operand may take it out of range.
        bits = min(ROOM + _room(error * growth), most)
        if bits <= terms[-1].bits:
            return Factor(tuple(terms))


def _room(greatest: float) -> int:
    """By how many bits a number can be shifted up and stay at most 1."""
    return -math.ceil(math.log2(greatest))


def _shortened(words: torch.Tensor, bits: int) -> Term:
    """The same factors with as few bits as they need: fewer are to be truncated."""
    combined = int(np.bitwise_or.reduce(words.numpy().reshape(-1)))
    trailing = (combined & -combined).bit_length() - 1 if combined else bits
    drop = min(trailing, bits)
    return Term(words >> drop, bits - drop)
