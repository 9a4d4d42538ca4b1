"""Public numbers that secrets are compared with or clamped to.

A public number that is beyond all secrets counts as infinite: nothing is compared with it, and it
bounds nothing. So a program may write 1e9, or the greatest number of a dtype, for no bound at all.
This holds at every scale, also in gradients, which have more fraction bits than arguments.

Fractions are below the limit of their scale. If a comparison width promises a lower limit, that
limit counts.
"""

from typing import Any, NamedTuple

import torch

from tacit import checks, fixed
from tacit.errors import EncodingError
from tacit.fixed import WHOLE, WORD, Scale
from tacit.modes import outside_trace
from tacit.operators.dispatch.operands import (
    bits_of,
    common_scale,
    compared,
    lifted,
    public,
    together,
)
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor


class Bound(NamedTuple):
    """A public operand as words at a scale, with 0 for each number that is beyond all secrets."""

    scale: Scale
    words: torch.Tensor
    #: 1 where the number is above all secrets, −1 where it is below, else 0. None if all are 0.
    beyond: torch.Tensor | None
    #: Whether all numbers are above, or below, all secrets.
    is_above: bool
    is_below: bool


def bound_of(session: Session, value: Any, x: SecretTensor) -> Bound:
    """Encodes a public operand that is compared with a secret one, at their common scale.

    Raises:
        EncodingError: a value is NaN.
    """
    scale = common_scale(x, value)
    # Integers must be below the limit of fractions if they are compared with fractions.
    limit = fixed.limit_beside(scale, x._scale, compared(session, scale))
    return _held(session, x, _encoded(public(value), scale, limit))


def _held(session: Session, x: SecretTensor, bound: Bound) -> Bound:
    """Returns the bound; checked mode then checks that x is below the limit that it assumes."""
    if bound.beyond is not None and x.dtype.is_floating_point:
        checks.hold(session, x._parts, fixed.ENCODED - 2)
    return bound


@outside_trace
def _encoded(values: torch.Tensor, scale: Scale, limit: float) -> Bound:
    if values.is_floating_point():
        wide = _numbers(values)
        above, below = wide >= limit, wide <= -limit
        words = torch.where(above | below, 0.0, wide).mul_(2.0**scale.bits).round_().to(torch.int64)
        return _made(scale, words, above, below)
    words = values.to(torch.int64)
    if limit >= 2.0 ** (WORD - 1):
        return Bound(scale, words, None, False, False)
    above, below = words >= int(limit), words <= -int(limit)
    return _made(scale, words << scale.bits, above, below)


@outside_trace
def whole_above(value: Any) -> Bound:
    """Rounds a public number up to integers, for comparisons secret < public."""
    wide = _numbers(public(value)).ceil()
    return _whole(wide, torch.zeros_like(wide, dtype=torch.bool))


@outside_trace
def whole_below(value: Any) -> Bound:
    """Rounds a public number down to integers, for comparisons public < secret."""
    wide = _numbers(public(value)).floor()
    return _whole(wide, torch.zeros_like(wide, dtype=torch.bool))


@outside_trace
def whole_equal(value: Any) -> Bound:
    """Converts a public number to integers. A number that is no integer counts as beyond all."""
    wide = _numbers(public(value))
    return _whole(wide, wide != wide.round())


def _whole(wide: torch.Tensor, is_none: torch.Tensor) -> Bound:
    above, below = (wide >= 2.0 ** (WORD - 1)) | is_none, wide < -(2.0 ** (WORD - 1))
    return _made(WHOLE, torch.where(above | below, 0.0, wide).to(torch.int64), above, below)


def _numbers(values: torch.Tensor) -> torch.Tensor:
    wide = values.to(torch.float64)
    if bool(wide.isnan().any()):
        raise EncodingError("a public number is NaN, which is neither less nor greater than any")
    return wide


def _made(scale: Scale, words: torch.Tensor, above: torch.Tensor, below: torch.Tensor) -> Bound:
    beyond = above.to(torch.int8) - below.to(torch.int8)
    if not bool(beyond.any()):
        return Bound(scale, words, None, False, False)
    words = torch.where(beyond == 0, words, 0)
    return Bound(scale, words, beyond, bool(above.all()), bool(below.all()))


def fill_known(bits: SecretTensor, bound: Bound, *, above: bool, below: bool) -> SecretTensor:
    """Replaces the results of comparisons with the parts of a bound that are beyond all secrets.

    There the results are public: ``above`` or ``below``."""
    if bound.beyond is None:
        return bits
    known = torch.where(bound.beyond > 0, above, below).to(torch.uint8)
    results = shares.trivial_bits(bits._session, known)
    return bits_of(bits._session, _chosen(bound.beyond == 0, bits._parts, results))


def known_results(
    session: Session, x: SecretTensor, bound: Bound, *, above: bool, below: bool
) -> SecretTensor:
    """Returns the results of comparisons with a bound that is beyond all secrets everywhere.

    No interaction."""
    assert bound.beyond is not None
    known = torch.where(bound.beyond > 0, above, below).to(torch.uint8)
    shape = torch.broadcast_shapes(x.shape, known.shape)  # type: ignore[no-untyped-call]
    return bits_of(
        session, tuple(part.expand(shape).clone() for part in shares.trivial_bits(session, known))
    )


class Limit(NamedTuple):
    """A lower or an upper bound, as components."""

    parts: Parts
    #: True where there is no bound. None if there is one everywhere.
    free: torch.Tensor | None
    #: Whether there is no bound anywhere.
    is_free: bool

    def applied(self, x: Parts, bounded: Parts) -> Parts:
        """Returns the clamped numbers, and the original ones where there is no bound."""
        return bounded if self.free is None else _chosen(self.free, x, bounded)


def limit_of(session: Session, value: Any, x: Any, scale: Scale, *, upper: bool) -> Limit:
    """Returns a secret or public bound of x at the scale at which both are compared."""
    if isinstance(value, SecretTensor) or not isinstance(x, SecretTensor):
        return Limit(lifted(session, value, scale), None, False)
    limit = fixed.limit_beside(scale, x._scale, compared(session, scale))
    bound = _held(session, x, _encoded(public(value), scale, limit))
    if bound.beyond is None:
        return Limit(shares.trivial(session, bound.words), None, False)
    word = 1 << fixed.unbounded(compared(session, scale))
    words = torch.where(bound.beyond == 0, bound.words, bound.beyond.to(torch.int64) * word)
    free = bound.beyond > 0 if upper else bound.beyond < 0
    is_free = bound.is_above if upper else bound.is_below
    return Limit(shares.trivial(session, words), free, is_free)


def _chosen(condition: torch.Tensor, x: Parts, y: Parts) -> Parts:
    x, y = together(x, y)
    return tuple(torch.where(condition, one, other) for one, other in zip(x, y, strict=True))
