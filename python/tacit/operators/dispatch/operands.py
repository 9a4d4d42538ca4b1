"""Preparation of operands: scales, public values, dtypes, comparison widths and broadcasting."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any, overload

import torch

from tacit import buffers, checks, fixed
from tacit.errors import MisuseError
from tacit.fixed import WHOLE, Factor, Scale
from tacit.modes import call_outside_trace, is_tracing, outside_trace
from tacit.sessions import Session
from tacit.sharings import ranges, shares
from tacit.sharings.shares import Comparison, Parts
from tacit.tensor import SecretTensor

Number = int | float | bool


def number(x: Any) -> float | None:
    """Returns a public number, also one in a plain tensor; ``None`` if x is not a public number."""
    if isinstance(x, torch.Tensor):
        is_one = not isinstance(x, SecretTensor) and x.numel() == 1 and x.dtype != torch.bool
        return float(x) if is_one and not is_tracing() else None
    return float(x) if isinstance(x, int | float) and not isinstance(x, bool) else None


def session_of(*operands: Any) -> Session:
    """Returns the session of the secret operands."""
    return next(operand._session for operand in operands if isinstance(operand, SecretTensor))


def secret_of(*operands: Any) -> SecretTensor:
    """Returns the first secret operand."""
    return next(operand for operand in operands if isinstance(operand, SecretTensor))


def is_secret(*operands: Any) -> bool:
    """Whether any operand is secret."""
    return any(isinstance(operand, SecretTensor) for operand in operands)


def result_dtype(x: Any, y: Any) -> torch.dtype:
    """Returns the dtype that PyTorch gives a result of two operands."""
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.dtype == y.dtype:
        return x.dtype
    return _result_dtype(_stand_in(x), _stand_in(y))


def _stand_in(operand: Any) -> tuple[torch.dtype | type, bool]:
    """Returns what type promotion depends on: a number's type, or a dtype and whether it is 0-d."""
    if isinstance(operand, torch.Tensor):
        return operand.dtype, operand.dim() > 0
    return type(operand), False


@outside_trace
@cache
def _result_dtype(x: tuple[Any, bool], y: tuple[Any, bool]) -> torch.dtype:
    examples = [
        torch.empty((1,) * has_dimensions, dtype=kind) if isinstance(kind, torch.dtype) else kind(1)
        for kind, has_dimensions in (x, y)
    ]
    return torch.result_type(*examples)


@outside_trace
def public(value: torch.Tensor | Number) -> torch.Tensor:
    """Returns a public operand as a plain tensor. Numbers keep double precision."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


@overload
def moved(x: SecretTensor, move: Callable[[torch.Tensor], torch.Tensor]) -> SecretTensor: ...


@overload
def moved(x: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any: ...


def moved(x: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Applies a data movement to any operand; for a secret, to each component.

    Every element of the result is an element of the operand, or zero."""
    if not isinstance(x, SecretTensor):
        return call_outside_trace(move, x)
    result = x.like(tuple(map(move, x._parts)), unreduced=x._unreduced)
    checks.inherit(x._session, result._parts, x._parts)
    return result


def summed(x: Any, count: int, add: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Applies a sum to any operand; each element of the result adds at most ``count`` elements.

    Checked mode checks that a secret leaves room for such sums."""
    if not isinstance(x, SecretTensor):
        return call_outside_trace(add, x)
    checks.hold_summands(x._session, x._parts, count)
    result = x.like(tuple(map(add, x._parts)), unreduced=x._unreduced)
    checks.summed(x._session, result._parts, x._parts, count)
    return result


def each(values: Sequence[int], dims: int, default: Sequence[int] = ()) -> list[int]:
    """Returns a value for each dimension; a single value is repeated."""
    values = list(values) or list(default)
    return values * dims if len(values) == 1 else values


# Words
# ----------------------------------------------------------------------------


def as_words(x: SecretTensor) -> SecretTensor:
    """Converts booleans to integers 0 and 1, and reduces integers to the range of their dtype.

    Other tensors are returned as they are. Booleans take at most two rounds."""
    if x.dtype == torch.bool:
        return x.like(shares.bit_to_ring(x._session, x._parts), WHOLE, torch.int64)
    return within(x) if x._unreduced else x


def within(x: SecretTensor) -> SecretTensor:
    """Reduces integers that may be outside the range of their dtype, modulo 2^bits.

    The low bits are extracted and put together again. At most ten rounds."""
    if not x._unreduced:
        return x
    limits = torch.iinfo(x.dtype)
    lowest = shares.trivial(x._session, torch.tensor(limits.min))
    raised = tuple(part - low for part, low in zip(x._parts, lowest, strict=True))
    bits = shares.low_bits(x._session, raised, limits.bits)
    return x.like(tuple(part + low for part, low in zip(bits, lowest, strict=True)))


def alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Converts a public operand to the common dtype: for uint8 and −1, PyTorch takes 255."""
    if not may_be_unreduced(dtype := result_dtype(x, y)):
        return x, y
    x, y = (one if isinstance(one, SecretTensor) else public(one).to(dtype) for one in (x, y))
    return x, y


def may_be_unreduced(dtype: torch.dtype) -> bool:
    """Whether sums and products of this dtype may leave its range, while PyTorch's wrap around."""
    return not dtype.is_floating_point and dtype not in (torch.int64, torch.bool)


def stays_in_range(session: Session, dtype: torch.dtype) -> bool:
    """Whether products of this dtype must not wrap around.

    This holds for fractions, and for int64 in checked mode."""
    return dtype.is_floating_point or (session.numerics.is_checked and dtype == torch.int64)


# Scales
# ----------------------------------------------------------------------------


def shifted(session: Session, parts: Parts, have: int, want: int) -> Parts:
    """Changes the fraction bits of components: up by a local shift, down by a truncation."""
    if want == have:
        return parts
    if want > have:
        if session.is_plain:
            ranges.check_shift(session, parts[0], want - have)
        raise_bits = want - have
        checks.hold(session, parts, checks.WORD + 1 - raise_bits)
        raised = tuple(part << raise_bits for part in parts)
        checks.summed(session, raised, parts, 1 << raise_bits)
        return raised
    truncate = partial(shares.truncate, session, parts, have - want)
    return checks.hold_truncated(session, parts, truncate, have - want)


def lifted(session: Session, value: Any, scale: Scale) -> Parts:
    """Returns any operand as components at a scale.

    Public operands need no interaction. Infinite ones are replaced as in ``fixed.bounded``."""
    if isinstance(value, SecretTensor):
        value = as_words(value)
        return shifted(session, value._parts, value._scale.bits, scale.bits)
    values = fixed.bounded(public(value), scale, compared(session, scale))
    return _trivial(session, fixed.encode(values, scale, fixed.AMONG_SECRETS))


def _trivial(session: Session, words: torch.Tensor) -> Parts:
    """Returns components of public words, whose bound is known."""
    parts = shares.trivial(session, words)
    if checks.is_on(session) and words.numel():
        lowest, highest = (int(end) for end in words.aminmax())
        checks.known(session, parts, max(-lowest, highest).bit_length())
    return parts


def placed(session: Session, value: Any, scale: Scale, own: Scale) -> Parts:
    """Returns a value as components at a scale, to be placed unchanged among secrets.

    The secrets have the scale ``own``. A large public number that is beyond them counts as
    infinite, as in ``fixed.placed``."""
    if isinstance(value, SecretTensor):
        return lifted(session, value, scale)
    words = fixed.placed(public(value), scale, own, compared(session, scale))
    return _trivial(session, words)


def bits_of(session: Session, parts: Parts) -> SecretTensor:
    """Wraps components of bits as a secret boolean tensor."""
    return SecretTensor(parts, WHOLE, session, torch.bool)


def lifted_bits(session: Session, value: Any) -> Parts:
    """Returns any boolean operand as components of bits."""
    if isinstance(value, SecretTensor):
        return value._parts
    return shares.trivial_bits(session, public(value).to(torch.uint8))


def conjunction(x: Any, y: Any) -> SecretTensor:
    """Computes x AND y of booleans; one round if both are secret."""
    session = session_of(x, y)
    if isinstance(x, SecretTensor) and isinstance(y, SecretTensor):
        return bits_of(session, shares.and_bits(session, *together(x._parts, y._parts)))
    secret, plain = (x, y) if isinstance(x, SecretTensor) else (y, x)
    return bits_of(session, tuple(part & public(plain).to(torch.uint8) for part in secret._parts))


def disjunction(x: Any, y: Any) -> SecretTensor:
    """Computes x OR y = x XOR y XOR (x AND y) of booleans; one round if both are secret."""
    session = session_of(x, y)
    one_alone = shares.xor(*together(lifted_bits(session, x), lifted_bits(session, y)))
    return bits_of(session, shares.xor(one_alone, conjunction(x, y)._parts))


def as_kind_of(value: Any, target: SecretTensor) -> SecretTensor:
    """Converts a value to the kind and the scale of ``target``, to be written into it.

    Raises:
        MisuseError: the target is boolean and the value is not, or the target is integer and the
            value is a fraction.
    """
    session = target._session
    if target.dtype == torch.bool:
        if not isinstance(value, SecretTensor):
            return target.like(lifted_bits(session, value))
        if value.dtype != torch.bool:
            raise MisuseError(
                "only booleans are written into a secret boolean tensor; compare first"
            )
        return value
    if not target.dtype.is_floating_point:
        if not isinstance(value, SecretTensor):
            value = public(value).to(target.dtype)
        elif value.dtype.is_floating_point:
            raise MisuseError(
                "fractions are not written into secret integers: they would have to be rounded"
            )
        elif value.dtype != target.dtype and value.dtype != torch.bool:
            value = value.like(
                value._parts, dtype=target.dtype, unreduced=may_be_unreduced(target.dtype)
            )
    if not isinstance(value, SecretTensor) and public(value).numel() == 1:
        return target.like(placed(session, value, target._scale, target._scale))
    return target.like(lifted(session, value, target._scale))


def operand_scale(operand: Any, session: Scale) -> Scale:
    """Returns the scale of an operand: a secret's own scale, else one that follows from its kind.

    An argument that is no operand has the scale WHOLE."""
    if isinstance(operand, SecretTensor):
        return operand._scale
    if isinstance(operand, torch.Tensor):
        return fixed.of_dtype(session, operand.dtype)
    return session if isinstance(operand, float) else WHOLE


def common_scale(*operands: Any) -> Scale:
    """Returns the scale at which operands are added, selected and compared."""
    session = session_of(*operands).scale
    return fixed.of_sum([operand_scale(operand, session) for operand in operands])


@overload
def rescaled(x: SecretTensor, scale: Scale) -> SecretTensor: ...


@overload
def rescaled(x: Any, scale: Scale) -> Any: ...


def rescaled(x: Any, scale: Scale) -> Any:
    """Changes the fraction bits of a secret, as ``shifted`` does; public operands stay."""
    if not isinstance(x, SecretTensor) or x._scale == scale:
        return x
    return x.like(
        shifted(x._session, x._parts, x._scale.bits, scale.bits), scale, unreduced=x._unreduced
    )


def fraction(x: SecretTensor) -> SecretTensor:
    """Converts integers and booleans to the session's fraction bits; fractions stay as they are."""
    x = as_words(x)
    if x._scale != WHOLE:
        return x
    dtype = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
    scale = x._session.scale
    parts = shifted(x._session, x._parts, 0, scale.bits)
    if x._session.is_plain and parts[0].numel():
        ranges.check_value(x._session, parts[0], scale)
    return x.like(parts, scale, dtype)


@overload
def at_session_scale(x: SecretTensor) -> SecretTensor: ...


@overload
def at_session_scale(x: Any) -> Any: ...


def at_session_scale(x: Any) -> Any:
    """Brings secret fractions to the session's scale; integers and public operands stay."""
    if not isinstance(x, SecretTensor) or not x.dtype.is_floating_point:
        return x
    return rescaled(x, x._session.scale)


def as_factors(x: SecretTensor, y: SecretTensor) -> tuple[SecretTensor, SecretTensor]:
    """Reduces the fraction bits of two secret factors to what a product has room for."""
    if x._scale.bits + y._scale.bits <= fixed.MOST_IN_PRODUCT:
        return x, y
    x, y = (
        one if one._scale.bits <= fixed.FEWER.bits else rescaled(one, fixed.FEWER) for one in (x, y)
    )
    return x, y


def aligned(x: Any, y: Any) -> tuple[Parts, Parts, Scale]:
    """Returns both operands as components at a common scale, and that scale."""
    session, scale = session_of(x, y), common_scale(x, y)
    x, y = alike(x, y)
    return lifted(session, x, scale), lifted(session, y, scale), scale


def together(*parts: Parts) -> list[Parts]:
    """Broadcasts operands to their common shape."""
    shapes = [operand[0].shape for operand in parts]
    if shapes.count(shapes[0]) == len(shapes):
        return list(parts)
    shape = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return [tuple(part.expand(shape) for part in operand) for operand in parts]


def compared(session: Session, scale: Scale) -> int:
    """Returns the width at which numbers of a scale are compared.

    In checked mode a promised width gets two bits more, so that all numbers that the promise allows
    pass the check."""
    width = fixed.width(session.numerics.width, scale)
    if session.numerics.is_checked and session.numerics.is_promised and width < fixed.WORD:
        return fixed.Promised(min(fixed.WORD, width + 2))
    return width


def rectified(session: Session, scale: Scale) -> Comparison:
    """Returns the comparison for max(x, 0) at a scale, guarded if the session is."""
    if session.numerics.guard is None:
        return Comparison(compared(session, scale))
    bits, reach = session.numerics.guard
    return Comparison(fixed.width(bits, scale), reach)


def rectified_to_zero(session: Session, scale: Scale) -> Comparison:
    """Returns the comparison for a ReLU, which may drop low bits of fractions.

    Only a ReLU may do this. At least four bits are left."""
    comparison = rectified(session, scale)
    if not session.numerics.dropped or scale == fixed.WHOLE:
        return comparison
    dropped = session.numerics.dropped + scale.bits - session.scale.bits
    return comparison._replace(
        dropped=max(0, min(dropped, comparison.width - fixed.LEAST_COMPARED))
    )


def beside(session: Session, most: float) -> AbstractContextManager[None]:
    """Widens comparisons so that fractions can be compared with an operator's constants.

    The session's comparison width is a promise about the program's fractions. It says nothing about
    the operator's constants up to ``most``. The width becomes one bit more than the greater of
    both needs."""
    return session.using(width=fixed.width_beside(session.numerics.width, most))


def in_full(session: Session) -> AbstractContextManager[None]:
    """Makes comparisons take whole words.

    Numbers that an operator computes itself, such as squares, may exceed the comparison width that
    the user promised."""
    return session.using(width=fixed.WORD)


# Public factors
# ------------------------------------------------------------------------------------

#: A local bilinear map of a party's words and public words.
Apply = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def times_public(
    x: SecretTensor,
    values: torch.Tensor,
    dtype: torch.dtype,
    *,
    apply: Apply = torch.mul,
    check: Apply | None = None,
    gain: float | None = None,
) -> SecretTensor:
    """Computes apply(x, values) for public values.

    A public factor is a sum of terms. The products are added from the smallest term on, and each
    partial sum is truncated to the scale of the next term before that is added. So the result is at
    most one unit off.

    There is no interaction for integers, nor for whole factors unless x has more fraction bits than
    the session. Otherwise each term takes a truncation, of at most two rounds. Integers of 64 bits
    are split into digits first. Those below 2^62 are right if the result is below 2^44, with an
    error of at most four units.

    Args:
        dtype: dtype of the result.
        apply: a bilinear map of words.
        check: the same map on float64, for the plain reference protocol. Defaults to ``apply``.
        gain: as in ``fixed.factor``.
    """
    is_word = x.dtype == torch.int64 and x._scale == WHOLE and _are_fractions(values)
    session, x = x._session, as_words(x)
    _, scale = fixed.of_product(x._scale, operand_scale(values, session.scale), session.scale)
    in_range = (
        check or apply
        if session.is_plain and dtype.is_floating_point and not is_tracing()
        else None
    )
    if not is_word:
        factor = fixed.factor(values, x._scale, scale, gain)
        parts, bits = _sum_of_terms(session, x._parts, factor, apply, in_range, check)
        parts = shifted(session, parts, bits + x._scale.bits, scale.bits)
        return x.like(parts, scale, dtype, unreduced=may_be_unreduced(dtype))
    # Each product by a digit is in range if the whole product is.
    checks.hold(session, x._parts, checks.WORD)
    high = shares.truncate(session, x._parts, _LOW)
    low = tuple(whole - (part << _LOW) for whole, part in zip(x._parts, high, strict=True))
    found: list[Parts] = []
    for digit, place in ((high, _LOW), (low, 0)):
        factor = fixed.factor_of_digits(values.to(torch.float64) * 2.0**place, scale, gain)
        parts, bits = _sum_of_terms(session, digit, factor, apply, in_range, check)
        found.append(shifted(session, parts, bits, scale.bits))
    return x.like(shares.add(*found), scale, dtype)


#: Bits of the low digit of a word that is split in two.
_LOW = fixed.DIGIT - 2

#: Bound of public factors for which integers are split into digits. With a larger factor, only
#: integers that need no digits have results in range.
_SMALL = 2.0**12


@outside_trace
def _are_fractions(values: torch.Tensor) -> bool:
    """Whether the factors are not all whole, and small enough for products of whole words."""
    if not values.is_floating_point() or not values.numel():
        return False
    greatest = float(values.abs().max())
    return greatest < _SMALL and not bool((values == values.round()).all())


def _growth(x: Parts, words: torch.Tensor, apply: Apply) -> torch.Tensor:
    """Bounds the ratio of products by public words to the numbers, and adds a little.

    The little covers the partial sum of smaller terms. The bound is for each number if each meets
    one word, else for the greatest."""
    sizes = 1.01 * words.abs().to(torch.float64)
    if apply is torch.mul:
        return sizes if sizes.dim() <= x[0].dim() else sizes.max()
    return apply(torch.ones(x[0].shape, dtype=torch.float64), sizes).max()


def _sum_of_terms(
    session: Session,
    x: Parts,
    factor: Factor,
    apply: Apply,
    check: Apply | None,
    of_floats: Apply | None,
) -> tuple[Parts, int]:
    """Adds the products of all terms; returns the sum and its fraction bits.

    ``of_floats`` is the map on float64, if it is not the one on words."""
    parts: Parts = ()
    bits = 0
    for term in reversed(factor.terms):
        if check is not None:
            words, factors = buffers.array(x[0]), buffers.array(term.words)
            summands, truncated = x[0].numel(), term.bits > 0
            ranges.check_product(session, words, factors, summands, check, truncated=truncated)
        growth = None
        if checks.is_on(session) and x[0].numel() and term.words.numel():
            growth = _growth(x, term.words, of_floats or apply)
            checks.hold_factors(session, x, growth)
        product = tuple(apply(part, term.words) for part in x)
        if growth is not None:
            checks.multiplied(session, product, x, growth)
        if parts:
            product = shares.add(shares.truncate(session, parts, bits - term.bits), product)
            if growth is not None:
                checks.known(session, product, checks.TRUNCATED)
        parts, bits = product, term.bits
    return parts, bits
