"""What sigmoids and softmaxes give remembers its argument.

In fixed point a probability near 0 has few bits, and beyond a logit of 7.5 none: so logarithms of
it, and losses that take them, are computed of the argument. And of the quotient by a probability,
which is where autograd begins to go back through a logarithm, few bits are right, while the
gradient of the sigmoid or softmax, which comes next, multiplies by the probability again: it takes
the numerator, and the quotient is computed only if somebody else asks for it.

A probability that is brought between bounds, as hand-written losses do it, remembers them too, and
so does its complement 1 − p: logarithms are bounded, and the gradient is zero where the argument is
beyond a bound, however small that is. Gradients that come by several ways are one quotient again
when they are added: a/y + b is (a + b·y)/y.

What is remembered stands beside the storage of the result, element by element, so it holds for
every view of it; it is forgotten when either storage is written to (``storage_cache``). Sums and
copies remember nothing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tacit.fixed import Scale
from tacit.modes import is_backward, is_tracing
from tacit.operators.dispatch.operands import number, rescaled
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: The kind of what is kept of results.
_ARGUMENT = "argument"

#: Bytes of a word.
_WORD = 8


class Argument(NamedTuple):
    """Of a sigmoid, or of a softmax along a dimension."""

    x: SecretTensor
    #: None of a sigmoid.
    dim: int | None
    #: What it is not less than, and not greater, as a probability.
    low: float = 0.0
    high: float = 1.0
    #: The argument of what was brought between these bounds, or of what this is the complement of.
    clamped: "Argument | None" = None
    complement: "Argument | None" = None


def remember(
    result: SecretTensor, x: SecretTensor, operator: Any, dim: int | None = None
) -> SecretTensor:
    """The result, which remembers the argument if a program called this operator; where it is part
    of another nobody takes logarithms."""
    session, y = result._session, result._parts[0]
    if session.operator == str(operator) and y.numel() and not is_tracing() and is_whole(y):
        kept = x.like(tuple(part.contiguous() for part in x._parts), unreduced=x._unreduced)
        # The argument may lie where somebody writes.
        session.storages.keep_beside(_ARGUMENT, y, Argument(kept, dim), of=kept._parts[:1])
    return result


def remember_clamped(result: SecretTensor, y: Any, low: Any, high: Any) -> SecretTensor:
    """A probability between bounds, which remembers what it was and they are."""
    known, least, most = _kept(y), number(low), number(high)
    whole = known is not None and is_whole(y._parts[0]) and is_whole(result._parts[0])
    if known is None or not whole or result.shape != y.shape or is_tracing():
        return result
    if (low is not None and least is None) or (high is not None and most is None):
        return result
    least, most = max(known.low, least or 0.0), min(known.high, 1.0 if most is None else most)
    if (
        result._parts[0].untyped_storage()._cdata == y._parts[0].untyped_storage()._cdata
        or least >= most
    ):
        return result
    return _keep(result, known._replace(low=least, high=most, clamped=known, complement=None))


def remember_complement(result: SecretTensor, y: Any) -> SecretTensor:
    """1 − y of what a sigmoid gave, which is the sigmoid of −x."""
    known = _kept(y)
    if known is None or known.dim is not None or result.shape != y.shape:
        return result
    if not (is_whole(y._parts[0]) and is_whole(result._parts[0])):
        return result
    opposite = known.x.like(tuple(-part for part in known.x._parts), unreduced=known.x._unreduced)
    return _keep(
        result, Argument(opposite, None, 1.0 - known.high, 1.0 - known.low, complement=known)
    )


def _keep(result: SecretTensor, kept: Argument) -> SecretTensor:
    result._session.storages.keep_beside(_ARGUMENT, result._parts[0], kept, of=kept.x._parts[:1])
    return result


def argument_of(y: Any) -> Argument | None:
    """What this, or what it is a view of, was computed of, if it was and has
    not been written to."""
    kept = _kept(y)
    # Work side by side with this may have computed it.
    return kept and kept._replace(x=kept.x.beside(y._session))


def _kept(y: Any) -> Argument | None:
    """The same, as it is remembered: one object, however often it is asked for."""
    if not isinstance(y, SecretTensor) or y.dtype == torch.bool or is_tracing():
        return None
    kept: Argument | None = y._session.storages.beside(_ARGUMENT, y._parts[0])
    return kept


def seen_as(whole: SecretTensor, y: SecretTensor) -> SecretTensor:
    """Of what stands beside all of a result that which stands beside this view of it."""
    view = y._parts[0]
    size, strides, offset = view.shape, view.stride(), view.storage_offset()
    parts = (part.contiguous() for part in whole._parts)
    seen = tuple(part.as_strided(size, strides, offset + part.storage_offset()) for part in parts)
    return whole.like(seen, unreduced=whole._unreduced)


class Quotient:
    """A numerator divided by y, or by y·(1 − y): values of a gradient that are computed if anybody
    asks."""

    def __init__(
        self,
        numerator: Any,
        known: Argument,
        y: SecretTensor,
        compute: Callable[[], SecretTensor],
        *,
        by_both: bool,
    ) -> None:
        self.numerator, self.known, self.y, self.by_both = numerator, known, y, by_both
        self._compute, self._scale = compute, known.x._session.scale
        #: Once somebody asked, who may have written to them.
        self.computed: Parts = ()

    @property
    def scale(self) -> Scale:
        """Which they have."""
        return self._scale

    def parts(self) -> Parts:
        """The quotients, at the scale of the moment when they were left for later; the same for all
        views."""
        session = self.known.x._session
        # Part of the operator that left them.
        operator, session.operator = session.operator, session.operator or "a quotient"
        try:
            with torch.no_grad(), session.using(scale=self._scale):
                self.computed = self.computed or rescaled(self._compute(), self._scale)._parts
        finally:
            session.operator = operator
        return self.computed


def left_for_later(
    y: Any,
    numerator: Callable[[SecretTensor], Any],
    quotient: Callable[[SecretTensor], SecretTensor],
    *,
    by_both: bool = False,
) -> SecretTensor | None:
    """In a backward pass a quotient by what remembers its argument, y, or by y·(1 − y); ``None``
    for all else."""
    known = _kept(y) if is_backward() else None
    if known is None or not is_whole(y._parts[0]):
        return None
    # Nobody writes to these.
    y = y.like(tuple(part.clone() for part in y._parts))
    return _left(Quotient(numerator(y), known, y, lambda: quotient(y), by_both=by_both))


def _left(later: Quotient) -> SecretTensor:
    y = later.y
    return SecretTensor((), y._session.scale, y._session, y.dtype, shape=y.shape, later=later)


def pending(gradient: Any) -> Quotient | None:
    """What a gradient was left for later as, if nobody has asked for it, and it has the shape of
    what it is divided by."""
    later = gradient._later if isinstance(gradient, SecretTensor) and is_backward() else None
    if not isinstance(later, Quotient) or later.computed or gradient.shape != later.y.shape:
        return None
    return later


def _asked(later: Quotient) -> Any:
    """Its values."""
    y, scale = later.y, later.scale
    return SecretTensor(later.parts(), scale, y._session, y.dtype)


def chosen(
    condition: Any, gradient: Any, where: Callable[[Any, Any, float], SecretTensor]
) -> SecretTensor | None:
    """A gradient where its probability was between its bounds, zero elsewhere: one of what was
    brought there. ``None`` if it is none that was left for later."""
    later = pending(gradient)
    if later is None or later.known.clamped is None or condition.shape != later.y.shape:
        return None
    numerator, known = later.numerator, later.known.clamped
    if not isinstance(numerator, SecretTensor) and not isinstance(condition, SecretTensor):
        numerator = torch.where(condition, numerator, 0.0)
    else:
        numerator = where(condition, numerator, 0.0)

    def compute() -> Any:
        return where(condition, _asked(later), 0.0)

    return _left(Quotient(numerator, known, later.y, compute, by_both=later.by_both))


def opposite(gradient: Any) -> SecretTensor | None:
    """The negative of a gradient of a complement, 1 − y, as one of y. ``None`` if it is none that
    was left for later."""
    later = pending(gradient)
    if later is None or later.known.complement is None:
        return None
    y = 1.0 - later.y
    numerator = -(later.numerator if later.by_both else later.numerator * y)

    def compute() -> Any:
        return -_asked(later)

    return _left(Quotient(numerator, later.known.complement, y, compute, by_both=True))


def joined(x: Any, y: Any) -> SecretTensor | None:
    """The sum of two gradients, of which one was left for later at least. ``None`` if none was."""
    later, other = pending(x), pending(y)
    if later is None:
        later, other, x, y = other, later, y, x
    if later is None or not isinstance(y, torch.Tensor) or y.shape != later.y.shape:
        return None
    if other is not None and other.known is not later.known:
        return None
    by_both = later.by_both or (other is not None and other.by_both)
    numerator = _numerator(later, by_both=by_both)
    if other is not None:
        numerator = numerator + _numerator(other, by_both=by_both)
    else:
        divisor = later.y * (1.0 - later.y) if by_both else later.y
        numerator = numerator + y * divisor

    def compute() -> Any:
        return _asked(later) + (y if other is None else _asked(other))

    return _left(Quotient(numerator, later.known, later.y, compute, by_both=by_both))


def _numerator(later: Quotient, *, by_both: bool) -> Any:
    if by_both and not later.by_both:
        return later.numerator * (1.0 - later.y)
    return later.numerator


def quotient_of(gradient: Any, y: Any) -> Quotient | None:
    """What a gradient was left for later as, if it is a quotient by this y, which has not been
    written to, and nobody has asked for it; numerators lie in the order of y."""
    later = gradient._later if isinstance(gradient, SecretTensor) else None
    if not isinstance(later, Quotient) or later.computed or not is_whole(y._parts[0]):
        return None
    # Only views that keep the order leave anything for later.
    return later if later.known is _kept(y) else None


def is_whole(part: torch.Tensor) -> bool:
    """Whether a component is all of its storage, in order."""
    return part.is_contiguous() and part.untyped_storage().nbytes() == part.numel() * _WORD
