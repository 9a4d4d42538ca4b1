"""What operators do with their arguments before they compute: scales, public
values, broadcasting."""

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
    """A public number, with or without a tensor around it."""
    if isinstance(x, torch.Tensor):
        is_one = not isinstance(x, SecretTensor) and x.numel() == 1 and x.dtype != torch.bool
        return float(x) if is_one and not is_tracing() else None
    return float(x) if isinstance(x, int | float) and not isinstance(x, bool) else None


def session_of(*operands: Any) -> Session:
    """The session of the secret operands."""
    return next(operand._session for operand in operands if isinstance(operand, SecretTensor))


def secret_of(*operands: Any) -> SecretTensor:
    """The first secret operand."""
    return next(operand for operand in operands if isinstance(operand, SecretTensor))


def is_secret(*operands: Any) -> bool:
    """Whether any operand is secret."""
    return any(isinstance(operand, SecretTensor) for operand in operands)


def result_dtype(x: Any, y: Any) -> torch.dtype:
    """The dtype that PyTorch gives a result of two operands."""
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.dtype == y.dtype:
        return x.dtype
    return _result_dtype(_stand_in(x), _stand_in(y))


def _stand_in(operand: Any) -> tuple[torch.dtype | type, bool]:
    """All of an operand that counts: dtype and whether it has dimensions, or the kind of number."""
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
    """A public operand as a plain tensor; numbers keep double precision."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def moved(x: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Any operand, with its data moved: of a secret each component."""
    if not isinstance(x, SecretTensor):
        return call_outside_trace(move, x)
    return x.like(tuple(map(move, x._parts)), unreduced=x._unreduced)


def summed(x: Any, count: int, add: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same where each element of the result is a sum of so many at most, which a secret is held
    to."""
    if isinstance(x, SecretTensor):
        checks.hold_summands(x._session, x._parts, count)
    return moved(x, add)


def each(values: Sequence[int], dims: int, default: Sequence[int] = ()) -> list[int]:
    """A value for each dimension, of which one may stand for all."""
    values = list(values) or list(default)
    return values * dims if len(values) == 1 else values


# Words
# ----------------------------------------------------------------------------


def as_words(x: SecretTensor) -> SecretTensor:
    """Booleans as integers 0 and 1 (at most two rounds), and integers within their dtype; the rest
    as it is."""
    if x.dtype == torch.bool:
        return x.like(shares.bit_to_ring(x._session, x._parts), WHOLE, torch.int64)
    return within(x) if x._unreduced else x


def within(x: SecretTensor) -> SecretTensor:
    """Integers that may stand outside their dtype, modulo its 2^bits: the bits that it has, put
    together again. At most ten rounds."""
    if not x._unreduced:
        return x
    limits = torch.iinfo(x.dtype)
    lowest = shares.trivial(x._session, torch.tensor(limits.min))
    raised = tuple(part - low for part, low in zip(x._parts, lowest, strict=True))
    bits = shares.low_bits(x._session, raised, limits.bits)
    return x.like(tuple(part + low for part, low in zip(bits, lowest, strict=True)))


def alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Both operands, a public one of them within the dtype of both together: of a byte and −1
    PyTorch takes 255."""
    if not may_be_unreduced(dtype := result_dtype(x, y)):
        return x, y
    x, y = (one if isinstance(one, SecretTensor) else public(one).to(dtype) for one in (x, y))
    return x, y


def may_be_unreduced(dtype: torch.dtype) -> bool:
    """Whether sums and products of this dtype may leave it, where PyTorch's wrap around."""
    return not dtype.is_floating_point and dtype not in (torch.int64, torch.bool)


def stays_in_range(session: Session, dtype: torch.dtype) -> bool:
    """Whether products of this dtype are not to wrap around: those of fractions, and in checked
    mode those of int64."""
    return dtype.is_floating_point or (session.numerics.is_checked and dtype == torch.int64)


# Scales
# ----------------------------------------------------------------------------


def shifted(session: Session, parts: Parts, have: int, want: int) -> Parts:
    """Components with other fraction bits: a local product upward, a truncation downward."""
    if want == have:
        return parts
    if want > have:
        if session.is_plain:
            ranges.check_shift(session, parts[0], want - have)
        checks.hold(session, parts, checks.WORD + 1 - (want - have))
        return tuple(part << (want - have) for part in parts)
    truncate = partial(shares.truncate, session, parts, have - want)
    return checks.hold_truncated(session, parts, truncate, have - want)


def lifted(session: Session, value: Any, scale: Scale) -> Parts:
    """Any operand as components at a scale; public ones without interaction, and infinite ones as
    ``fixed.bounded`` has them."""
    if isinstance(value, SecretTensor):
        value = as_words(value)
        return shifted(session, value._parts, value._scale.bits, scale.bits)
    values = fixed.bounded(public(value), scale, compared(session, scale))
    return shares.trivial(session, fixed.encode(values, scale, fixed.AMONG_SECRETS))


def placed(session: Session, value: Any, scale: Scale, own: Scale) -> Parts:
    """The same of what stands among secrets that have their own scale, unchanged: a large public
    number is infinite where it is beyond these, as ``fixed.placed`` has it."""
    if isinstance(value, SecretTensor):
        return lifted(session, value, scale)
    return shares.trivial(
        session, fixed.placed(public(value), scale, own, compared(session, scale))
    )


def bits_of(session: Session, parts: Parts) -> SecretTensor:
    """Components of bits as a secret boolean tensor."""
    return SecretTensor(parts, WHOLE, session, torch.bool)


def lifted_bits(session: Session, value: Any) -> Parts:
    """Any boolean operand as components of bits."""
    if isinstance(value, SecretTensor):
        return value._parts
    return shares.trivial_bits(session, public(value).to(torch.uint8))


def conjunction(x: Any, y: Any) -> SecretTensor:
    """x AND y of booleans; one round between secrets."""
    session = session_of(x, y)
    if isinstance(x, SecretTensor) and isinstance(y, SecretTensor):
        return bits_of(session, shares.and_bits(session, *together(x._parts, y._parts)))
    secret, plain = (x, y) if isinstance(x, SecretTensor) else (y, x)
    return bits_of(session, tuple(part & public(plain).to(torch.uint8) for part in secret._parts))


def disjunction(x: Any, y: Any) -> SecretTensor:
    """x OR y = x XOR y XOR (x AND y) of booleans; one round between secrets."""
    session = session_of(x, y)
    one_alone = shares.xor(*together(lifted_bits(session, x), lifted_bits(session, y)))
    return bits_of(session, shares.xor(one_alone, conjunction(x, y)._parts))


def as_kind_of(value: Any, target: SecretTensor) -> SecretTensor:
    """A value with the scale of ``target``, to be written into it.

    Raises:
        MisuseError: a boolean target and a value that is none.
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
    """The scale of an operand: a secret's own, else by its kind alone; of what is none, WHOLE."""
    if isinstance(operand, SecretTensor):
        return operand._scale
    if isinstance(operand, torch.Tensor):
        return fixed.of_dtype(session, operand.dtype)
    return session if isinstance(operand, float) else WHOLE


def common_scale(*operands: Any) -> Scale:
    """The scale at which operands are added, chosen among and compared."""
    session = session_of(*operands).scale
    return fixed.of_sum([operand_scale(operand, session) for operand in operands])


@overload
def rescaled(x: SecretTensor, scale: Scale) -> SecretTensor: ...


@overload
def rescaled(x: Any, scale: Scale) -> Any: ...


def rescaled(x: Any, scale: Scale) -> Any:
    """The same numbers with other fraction bits, as ``shifted`` gives them; what is public stays as
    it is."""
    if not isinstance(x, SecretTensor) or x._scale == scale:
        return x
    return x.like(
        shifted(x._session, x._parts, x._scale.bits, scale.bits), scale, unreduced=x._unreduced
    )


def fraction(x: SecretTensor) -> SecretTensor:
    """Integers and booleans with the session's fraction bits; fractions as they are."""
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
    """Secret fractions at the session's scale; integers and what is public stay as they are."""
    if not isinstance(x, SecretTensor) or not x.dtype.is_floating_point:
        return x
    return rescaled(x, x._session.scale)


def as_factors(x: SecretTensor, y: SecretTensor) -> tuple[SecretTensor, SecretTensor]:
    """Two secrets that are multiplied, with no more fraction bits than a product has room for."""
    if x._scale.bits + y._scale.bits <= fixed.MOST_IN_PRODUCT:
        return x, y
    x, y = (
        one if one._scale.bits <= fixed.FEWER.bits else rescaled(one, fixed.FEWER) for one in (x, y)
    )
    return x, y


def aligned(x: Any, y: Any) -> tuple[Parts, Parts, Scale]:
    """Both operands, made alike, as components at one scale."""
    session, scale = session_of(x, y), common_scale(x, y)
    x, y = alike(x, y)
    return lifted(session, x, scale), lifted(session, y, scale), scale


def together(*parts: Parts) -> list[Parts]:
    """Operands broadcast to their common shape."""
    shapes = [operand[0].shape for operand in parts]
    if shapes.count(shapes[0]) == len(shapes):
        return list(parts)
    shape = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return [tuple(part.expand(shape) for part in operand) for operand in parts]


def compared(session: Session, scale: Scale) -> int:
    """The width at which numbers of a scale are compared. In checked mode two bits more than were
    promised: all that the promise allows passes the check then."""
    width = fixed.width(session.numerics.width, scale)
    if session.numerics.is_checked and session.numerics.is_promised and width < fixed.WORD:
        return fixed.Promised(min(fixed.WORD, width + 2))
    return width


def rectified(session: Session, scale: Scale) -> Comparison:
    """How numbers of a scale are compared where they or zero are wanted, whichever is greater:
    guarded, where the session is."""
    if session.numerics.guard is None:
        return Comparison(compared(session, scale))
    bits, reach = session.numerics.guard
    return Comparison(fixed.width(bits, scale), reach)


def rectified_to_zero(session: Session, scale: Scale) -> Comparison:
    """The same of a ReLU, which alone may drop low bits of fractions: as many as leave four."""
    comparison = rectified(session, scale)
    if not session.numerics.dropped or scale == fixed.WHOLE:
        return comparison
    dropped = session.numerics.dropped + scale.bits - session.scale.bits
    return comparison._replace(
        dropped=max(0, min(dropped, comparison.width - fixed.LEAST_COMPARED))
    )


def beside(session: Session, most: float) -> AbstractContextManager[None]:
    """Within it, fractions that the session's comparison width holds are compared rightly with an
    operator's own numbers up to ``most``, which nobody promised anything about: a bit more than the
    greater of both."""
    return session.using(width=fixed.width_beside(session.numerics.width, most))


def in_full(session: Session) -> AbstractContextManager[None]:
    """Within it, words are compared wholly: what an operator computes itself, such as a square, may
    be more than its user promised of numbers by a comparison width."""
    return session.using(width=fixed.WORD)


# Public factors
# ------------------------------------------------------------------------------------

#: A local bilinear map of one party's words with public ones.
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
    """apply(x, values) for public values: each term of the factor, the smallest first, is truncated
    to the scale of the next before that is added, so that in the end all is at most one unit off.
    No interaction for integers, nor for whole numbers unless x has more fraction bits than the
    session; otherwise a truncation for each term, of at most two rounds. Integers of 64 bits are
    taken apart first, so that those below 2^62 are right where the result is below 2^44, and off by
    four units at most.

    Args:
        dtype: of the result.
        apply: a bilinear map of words.
        check: the same on float64, for the reference; ``apply`` if not given.
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
    # Each product with a digit is in range where the whole one is.
    checks.hold(session, x._parts, checks.WORD)
    high = shares.truncate(session, x._parts, _LOW)
    low = tuple(whole - (part << _LOW) for whole, part in zip(x._parts, high, strict=True))
    found: list[Parts] = []
    for digit, place in ((high, _LOW), (low, 0)):
        factor = fixed.factor_of_digits(values.to(torch.float64) * 2.0**place, scale, gain)
        parts, bits = _sum_of_terms(session, digit, factor, apply, in_range, check)
        found.append(shifted(session, parts, bits, scale.bits))
    return x.like(shares.add(*found), scale, dtype)


#: Bits of the low one of two digits of a word.
_LOW = fixed.DIGIT - 2

#: Greater public factors than this have results in range only of integers that need no digits.
_SMALL = 2.0**12


@outside_trace
def _are_fractions(values: torch.Tensor) -> bool:
    """Whether these are not all whole, and so small that whole words may have products in range."""
    if not values.is_floating_point() or not values.numel():
        return False
    greatest = float(values.abs().max())
    return greatest < _SMALL and not bool((values == values.round()).all())


def _growth(x: Parts, words: torch.Tensor, apply: Apply) -> torch.Tensor:
    """How many times as large products by public words can be as the numbers, and a little more:
    what the terms before this one leave is small beside it. Of each number where it meets one word,
    else of the greatest."""
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
    """The terms' products, added up, and their fraction bits; ``of_floats`` is the map on float64,
    where it is another one than on words."""
    parts: Parts = ()
    bits = 0
    for term in reversed(factor.terms):
        if check is not None:
            words, factors = buffers.array(x[0]), buffers.array(term.words)
            summands, truncated = x[0].numel(), term.bits > 0
            ranges.check_product(session, words, factors, summands, check, truncated=truncated)
        if checks.is_on(session) and x[0].numel() and term.words.numel():
            checks.hold_factors(session, x, _growth(x, term.words, of_floats or apply))
        product = tuple(apply(part, term.words) for part in x)
        if checks.is_on(session) and product[0].numel():
            session.claims.bounded(product, checks.TRUNCATED)
        if parts:
            product = shares.add(shares.truncate(session, parts, bits - term.bits), product)
            if checks.is_on(session):
                session.claims.bounded(product, checks.TRUNCATED)
        parts, bits = product, term.bits
    return parts, bits
