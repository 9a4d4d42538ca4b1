"""Elementary functions under PyTorch's names.

They are the functions of ``approximation``, and others made of them.
"""

import math
from contextlib import nullcontext
from typing import Any, cast

import torch

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.arithmetic import add, mul, multiply_public, neg, power, sub
from tacit.operators.comparison import gt
from tacit.operators.conversion import to_copy
from tacit.operators.dispatch.operands import (
    Number,
    aligned,
    as_words,
    at_session_scale,
    beside,
    compared,
    fraction,
    in_full,
    lifted_bits,
    public,
    rescaled,
    result_dtype,
    session_of,
    together,
)
from tacit.operators.dispatch.scales import of_inverse_root, of_power, of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.extremum import maximum, minimum
from tacit.operators.integer_powers import integer_power
from tacit.operators.numerics import approximation, remembered_squares
from tacit.operators.numerics.remembered_softmax import argument_of, remember, seen_as
from tacit.operators.piecewise import absolute, clamp
from tacit.operators.where import where
from tacit.sessions import Session
from tacit.sharings import ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Most different public exponents whose powers are computed one by one. With more all powers are
#: powers of e.
FEW_EXPONENTS = 8

#: A whole exponent is at most 2^(fraction bits − this). Of a greater power no digit would be right.
_EXPONENT_MARGIN = 3

#: Most fraction bits with which a step of Newton's method is in range for all reciprocals.
_MOST_CORRECTED = 20

#: Warning about powers that do not exist, and its remedy.
FRACTIONAL = "a negative base of a fractional exponent", "bases of 0 and more have such powers"


# Exponentials and logarithms
# ---------------------------------------------------------------------------


@implements(aten.exp.default, scale=of_session)
def exp(x: SecretTensor) -> SecretTensor:
    """Returns e^x: see ``approximation.exp``."""
    return approximation.exp(x)


@implements(aten.exp2.default, scale=of_session)
def exp2(x: SecretTensor) -> SecretTensor:
    """Returns 2^x: see ``approximation.exp``."""
    return approximation.exp(x, base=2.0)


@implements(aten.expm1.default, scale=of_session)
def expm1(x: SecretTensor) -> SecretTensor:
    """Returns e^x − 1: see ``approximation.exp``. Near 0 its error is absolute."""
    return sub(approximation.exp(x), 1.0)


@implements(aten.log.default, scale=of_session)
def log(x: SecretTensor) -> SecretTensor:
    """Returns ln x: see ``approximation.log``.

    The logarithm of a result of a sigmoid or a softmax is computed from its argument.
    """
    known = argument_of(x)
    if known is None:
        return approximation.log(x)
    if known.dim is not None:
        found = seen_as(aten._log_softmax.default(known.x, known.dim, False), x)
    else:
        found = neg(approximation.softplus(neg(fraction(seen_as(known.x, x)))))
    low = math.log(known.low) if known.low > 0.0 else None
    high = math.log(known.high) if known.high < 1.0 else None
    return found if low is None and high is None else clamp(found, low, high)


@implements(aten.log2.default, scale=of_session)
def log2(x: SecretTensor) -> SecretTensor:
    """Returns log2 x: see ``approximation.log``."""
    return approximation.log(x, base=2.0)


@implements(aten.log10.default, scale=of_session)
def log10(x: SecretTensor) -> SecretTensor:
    """Returns log10 x: see ``approximation.log``."""
    return approximation.log(x, base=10.0)


@implements(aten.log1p.default, scale=of_session)
def log1p(x: SecretTensor) -> SecretTensor:
    """Returns ln(1 + x): see ``approximation.log``. Near 0 its error is absolute."""
    with beside(x._session, 1.0):
        return approximation.log(add(fraction(x), 1.0))


@implements(aten.logaddexp.default, scale=of_session)
def logaddexp(x: Any, y: Any) -> SecretTensor:
    """Returns ln(e^x + e^y) = max(x, y) + ln(1 + e^−|x − y|)."""
    return _logaddexp(x, y, 1.0)


@implements(aten.logaddexp2.default, scale=of_session)
def logaddexp2(x: Any, y: Any) -> SecretTensor:
    """Returns log2(2^x + 2^y)."""
    return _logaddexp(x, y, math.log(2.0))


def _logaddexp(x: Any, y: Any, unit: float) -> SecretTensor:
    # An infinite operand becomes the same number in the difference and in the sum.
    session, dtype = session_of(x, y), result_dtype(x, y)
    left, right, scale = aligned(x, y)
    y = SecretTensor(right, scale, session, dtype)
    difference = SecretTensor(shares.subtract(*together(left, right)), scale, session, dtype)
    # softplus(d) = max(d, 0) + ln(1 + e^−|d|)
    if unit == 1:
        return add(y, approximation.softplus(difference))
    with in_full(session):
        rest = approximation.softplus(multiply_public(difference, unit))
    return add(y, multiply_public(rest, 1.0 / unit))


@implements(aten.xlogy.Tensor, aten.xlogy.Scalar_Other, aten.xlogy.Scalar_Self, scale=of_session)
def xlogy(x: Any, y: Any) -> SecretTensor:
    """Returns x·ln y, and 0 where x = 0, since ln 0 is finite here."""
    if isinstance(y, SecretTensor):
        return mul(approximation.log(y), x)
    logarithm = torch.xlogy(torch.ones((), dtype=torch.float64), y)
    return mul(x, logarithm.clamp(min=_LEAST_LOGARITHM))


@implements(
    aten.special_xlog1py.default,
    aten.special_xlog1py.other_scalar,
    aten.special_xlog1py.self_scalar,
    scale=of_session,
)
def xlog1py(x: Any, y: Any) -> SecretTensor:
    """Returns x·ln(1 + y), and 0 where x = 0."""
    with beside(session_of(x, y), 1.0):
        return xlogy(x, y + 1.0)


#: Replaces −∞ in products, so that a factor of 0 gives 0.
_LEAST_LOGARITHM = -1e4


@implements(aten.special_entr.default, scale=of_session)
def entr(x: SecretTensor) -> SecretTensor:
    """Returns −x·ln x, and 0 for 0.

    For negative x, where PyTorch has −∞, the result is x·11.09 (−ln of the smallest number).
    """
    return neg(mul(approximation.log(x), x))


# Quotients and roots
# -----------------------------------------------------------------------------------


@implements(aten.reciprocal.default, scale=of_session)
def reciprocal(x: SecretTensor) -> SecretTensor:
    """Returns 1 / x: see ``approximation.reciprocal``.

    For roots of sums of squares see ``remembered_squares``.
    """
    known = remembered_squares.inverse(x)
    return known if known is not None else approximation.reciprocal(x)


@implements(aten.rsqrt.default, scale=of_inverse_root)
def rsqrt(x: SecretTensor) -> SecretTensor:
    """Returns 1 / √x with eight fraction bits more than the session has, but at most 24.

    It needs them as a factor of numbers as large as √x. See ``approximation.rsqrt``, and for sums
    of squares ``remembered_squares``.
    """
    return _inverse_root(x, of_inverse_root(x._session.scale, x._scale))


@implements(aten.sqrt.default, scale=of_session)
def sqrt(x: SecretTensor) -> SecretTensor:
    """Returns √x: see ``approximation.sqrt``, and for sums of squares ``remembered_squares``."""
    known = remembered_squares.root(x)
    return known if known is not None else approximation.sqrt(x)


@implements(aten.addcdiv.default, scale=of_session)
def addcdiv(x: Any, first: Any, second: Any, value: Number = 1) -> SecretTensor:
    """Returns x + value·first/second."""
    return add(x, torch.div(first, second), value)


@implements(aten.hypot.default, scale=of_session)
def hypot(x: Any, y: Any) -> SecretTensor:
    """Returns √(x² + y²) = greater·√(1 + (smaller/greater)²), in range whenever the result is."""
    x, y = (absolute(v) if isinstance(v, SecretTensor) else abs(v) for v in (x, y))
    greater, smaller = maximum(x, y), minimum(x, y)
    ratio = approximation.divide(smaller, greater, bounded=True)
    return mul(greater, approximation.sqrt(add(mul(ratio, ratio), 1.0), positive=True))


@implements(
    aten.pow.Tensor_Tensor,
    aten.pow.Scalar,
    aten.float_power.Tensor_Tensor,
    aten.float_power.Scalar,
    scale=of_session,
)
def power_of_secret(x: Any, exponent: Any) -> SecretTensor:
    """Returns x^y, where at least one operand is secret.

    Few public exponents are computed one by one. Otherwise the result is e^(y·ln|x|), with the sign
    that a whole exponent gives, which takes the rounds of a comparison and of decomposing the
    exponent into bits. A negative base with a fractional exponent gives 0. For integers see
    ``integer_powers``.
    """
    if isinstance(x, SecretTensor) and not isinstance(exponent, SecretTensor):
        several = public(exponent).unique()  # type: ignore[no-untyped-call]
        is_whole = not result_dtype(x, exponent).is_floating_point
        if 0 < several.numel() <= FEW_EXPONENTS and not (is_whole and several.min() < 0):
            return _power_by_several(x, public(exponent), several.tolist())
    if not result_dtype(x, exponent).is_floating_point:
        return integer_power(x, exponent)
    session = session_of(x, exponent)
    if isinstance(x, SecretTensor):
        return _power_by_logarithm(x, exponent)
    plain = torch.as_tensor(x, dtype=torch.float64)
    if not bool((plain != 0).all()):
        unsupported("a power of a public zero by a secret exponent", "use bases other than zero")
    with in_full(session):
        size = approximation.exp(mul(torch.log(plain.abs()), exponent))
    if bool((plain > 0).all()):
        return size
    return _signed(size, lifted_bits(session, plain < 0), exponent)


def _power_by_logarithm(x: SecretTensor, exponent: Any) -> SecretTensor:
    """Returns powers of secret bases of any sign."""
    x, session = fraction(x), x._session
    negative = shares.sign(session, x._parts, compared(session, x._scale))
    less = shares.bit_multiply(session, negative, x._parts)
    logarithm = approximation.log(
        x.like(tuple(a - 2 * b for a, b in zip(x._parts, less, strict=True)))
    )
    with in_full(session):
        size = approximation.exp(mul(logarithm, exponent))
    return _signed(size, negative, exponent)


def _signed(size: SecretTensor, negative: Parts, exponent: Any) -> SecretTensor:
    """Gives powers of magnitudes the sign that they have for negative bases."""
    session = size._session
    odd, whole = _parity(session, exponent)
    negative, odd, whole, parts = together(negative, odd, whole, size._parts)
    choices = shares.stacked(
        shares.and_bits(session, odd, whole), shares.complement(session, whole)
    )
    bits = shares.and_bits(session, shares.stacked(negative, negative), choices)
    if session.is_plain:
        ranges.check_domain(session, bits[0][1], *FRACTIONAL)
    twice = tuple(2 * part for part in parts)
    off = shares.unstacked(shares.bit_multiply(session, bits, shares.stacked(twice, parts)))
    return size.like(shares.subtract(shares.subtract(parts, off[0]), off[1]))


def _parity(session: Session, exponent: Any) -> tuple[Parts, Parts]:
    """Returns bits: whether the whole part is odd, and whether all fraction bits are zero."""
    if not isinstance(exponent, SecretTensor):
        plain = public(exponent).to(torch.float64)
        return lifted_bits(session, plain.floor() % 2 == 1), lifted_bits(
            session, plain.floor() == plain
        )
    exponent = as_words(exponent)
    bits = exponent._scale.bits
    binary = shares.binary(session, exponent._parts, bits + 1)
    odd = tuple(part[bits] for part in binary)
    if not bits:
        return odd, shares.trivial_bits(session, torch.ones(exponent.shape, dtype=torch.uint8))
    weights = torch.tensor([1 << place for place in range(bits)])
    after = shares.from_binary(session, tuple(part[:bits] for part in binary), weights)
    return odd, shares.equal_zero(session, after, bits + 1)


def _power_by_several(
    x: SecretTensor, exponent: torch.Tensor, several: list[Number]
) -> SecretTensor:
    """Returns powers by public exponents that have few different values."""
    dtype = result_dtype(x, exponent)
    x = x if dtype == x.dtype else to_copy(x, dtype=dtype)
    found: Any = 1
    for each in several:
        own = exponent == each
        # Where the exponent is another one, 1 is raised instead of x: its power is in range.
        found = where(own, at_session_scale(power_by_public(where(own, x, 1), each)), found)
    return cast(SecretTensor, found)


@implements(aten.pow.Tensor_Scalar, aten.float_power.Tensor_Scalar, scale=of_power)
def power_by_public(x: SecretTensor, exponent: Number) -> SecretTensor:
    """Returns x^n for a public n.

    A whole n uses repeated squaring: any n for integers, for fractions n up to 2^(fraction bits −
    3), 2^13 by default, with the reciprocal for negative n. ±1/2 uses roots. All other exponents
    use e^(n·ln x). With a fractional n a negative base counts as 0.

    Error for whole n except −1: n units of the scale, 2·|n| if n is negative, relative if the
    result is above 1. From 65 on, and for negative n, a result beyond the range becomes about the
    limit of the range.
    """
    if isinstance(exponent, float) and not x.dtype.is_floating_point:
        x = to_copy(x, dtype=result_dtype(x, exponent))
    if exponent < 0 and not x.dtype.is_floating_point:
        unsupported("a negative power of integers", "convert them to floats")
    if (later := remembered_squares.power(x, exponent)) is not None:
        return later
    if exponent == int(exponent) and 1 <= abs(exponent) <= 64:
        if exponent > 0:
            result = power(x, int(exponent))
            return remembered_squares.remember_squares(result, x) if exponent == 2 else result
        return _inverse_power(fraction(x), -int(exponent))
    if exponent == 0:
        ones = torch.ones(x.shape, dtype=result_dtype(x, exponent))
        return add(mul(x, 0), ones)
    if exponent == int(exponent):
        if not x.dtype.is_floating_point:
            return integer_power(x, exponent)
        if abs(exponent) > 2.0 ** (x._session.scale.bits - _EXPONENT_MARGIN):
            return _power_by_logarithm(x, exponent)
        if exponent < 0:
            return _inverse_power(fraction(x), -int(exponent))
        with in_full(x._session):
            largest = _largest_base(x._session, int(exponent))
            return power(clamp(fraction(x), -largest, largest), int(exponent))
    if x._session.is_plain:
        ranges.check_domain(x._session, x._parts[0] < 0, *FRACTIONAL)
    if abs(exponent) == 0.5:
        return sqrt(x) if exponent > 0 else _inverse_root(x, x._session.scale)
    logarithm = approximation.log(x)
    with in_full(x._session):
        return approximation.exp(multiply_public(logarithm, exponent))


def _inverse_root(x: SecretTensor, scale: Scale) -> SecretTensor:
    """Returns 1 / √x at the given scale."""
    known = remembered_squares.inverse_root(x, scale)
    return known if known is not None else approximation.rsqrt(x, scale=scale)


def _inverse_power(x: SecretTensor, exponent: int) -> SecretTensor:
    """Returns (1/x)^n, in which small numbers keep all their digits. x^n would lose them.

    A base that is too large becomes the largest whose power is in range, which takes one more
    comparison.
    """
    session = x._session
    with in_full(session):
        inverse = approximation.reciprocal(x)
        if exponent == 1:
            return inverse
        largest = _largest_base(session, exponent)
        if session.scale.bits > _MOST_CORRECTED:
            inverse = clamp(inverse, -2.0 * largest, 2.0 * largest)
        # A step of Newton's method. Without it the error would be n times 2^−13.
        inverse = add(inverse, mul(inverse, sub(1.0, mul(x, inverse))))
        return power(clamp(inverse, -largest, largest), exponent)


def _largest_base(session: Session, exponent: int) -> float:
    """Returns the base whose power is slightly less than a product may be.

    The margin is for rounding, which may increase the power.
    """
    bits = session.scale.bits
    rounded = 0.01 + exponent * 2.0**-bits
    return float(2.0 ** ((min(fixed.ENCODED - bits, fixed.RANGE - 2 * bits) - rounded) / exponent))


# Sigmoids and what looks like them
# -----------------------------------------------------------------------


@implements(aten.sigmoid.default, scale=of_session)
def sigmoid(x: SecretTensor) -> SecretTensor:
    """Returns 1 / (1 + e^−x): see ``approximation.sigmoid``."""
    return remember(approximation.sigmoid(x), x, aten.sigmoid.default)


@implements(aten.tanh.default, scale=of_session)
def tanh(x: SecretTensor) -> SecretTensor:
    """Returns tanh x: see ``approximation.tanh``."""
    return approximation.tanh(x)


@implements(aten.erf.default, aten.special_erf.default, scale=of_session)
def erf(x: SecretTensor) -> SecretTensor:
    """Returns the error function of x: see ``approximation.erf``."""
    return approximation.erf(x)


@implements(aten.erfc.default, scale=of_session)
def erfc(x: SecretTensor) -> SecretTensor:
    """Returns 1 − erf x."""
    return sub(1.0, approximation.erf(x))


@implements(aten.erfinv.default, scale=of_session)
def erfinv(x: SecretTensor) -> SecretTensor:
    """Returns the inverse of the error function: see ``approximation.erfinv``."""
    return approximation.erfinv(x)


@implements(aten.special_ndtri.default, scale=of_session)
def ndtri(x: SecretTensor) -> SecretTensor:
    """Returns the inverse of the normal distribution function: see ``approximation.ndtri``."""
    return approximation.ndtri(x)


@implements(aten.gelu.default, scale=of_session)
def gelu(x: SecretTensor, *, approximate: str = "none") -> SecretTensor:
    """Returns x·Φ(x), or its form with tanh: see ``approximation.gelu``."""
    return approximation.gelu(x, by_tanh=approximate == "tanh")


@implements(aten.silu.default, scale=of_session)
def silu(x: SecretTensor) -> SecretTensor:
    """Returns x / (1 + e^−x): see ``approximation.silu``."""
    return approximation.silu(x)


@implements(aten.softplus.default, scale=of_session)
def softplus(x: SecretTensor, beta: Number = 1, threshold: Number = 20) -> SecretTensor:
    """Returns ln(1 + e^(βx)) / β: see ``approximation.softplus``, whose result is x from 10 on.

    Beyond the threshold the result is x. A threshold below 10 takes one more comparison.
    """
    if beta != 1:
        inner = multiply_public(x, beta)
        with in_full(x._session):
            result = softplus(inner, 1, threshold)
        return multiply_public(result, 1.0 / beta)
    result = approximation.softplus(x)
    if threshold >= 10.0:
        return result
    with beside(x._session, max(threshold, 1.0)):
        return where(gt(x, threshold), rescaled(x, result._scale), result)


@implements(aten.log_sigmoid_forward.default, scale=of_session)
def log_sigmoid(x: SecretTensor) -> tuple[SecretTensor, torch.Tensor]:
    """Returns −ln(1 + e^−x), and an empty tensor for the buffer of PyTorch's backward pass."""
    return neg(approximation.softplus(neg(x))), torch.empty(0)


@implements(aten.mish.default, scale=of_session)
def mish(x: SecretTensor) -> SecretTensor:
    """Returns x·tanh(ln(1 + e^x)): see ``approximation.mish``."""
    return approximation.mish(x)


@implements(aten.elu.default, scale=of_session)
def elu(
    x: SecretTensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1
) -> SecretTensor:
    """Returns scale·x from 0 on, else scale·α·(e^(x·input_scale) − 1)."""
    negative = minimum(x, 0.0)
    inner = negative if input_scale == 1 else multiply_public(negative, input_scale)
    with in_full(x._session) if input_scale != 1 else nullcontext():
        below = multiply_public(sub(approximation.exp_below_zero(inner), 1.0), float(alpha * scale))
    above = sub(x, negative)
    return add(above if scale == 1 else multiply_public(above, float(scale)), below)


@implements(aten.celu.default, scale=of_session)
def celu(x: SecretTensor, alpha: Number = 1.0) -> SecretTensor:
    """Returns x from 0 on, else α·(e^(x/α) − 1)."""
    return elu(x, alpha, 1, 1.0 / alpha)
