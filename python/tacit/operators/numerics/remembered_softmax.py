"""The results of sigmoid and softmax remember their argument.

In fixed point a probability near 0 has few significant bits, and beyond a logit of 7.5 it has none.
So logarithms of it, and losses that take logarithms, are computed from the argument.

The backward pass of a logarithm begins with a quotient by the probability, of which few bits are
right. The gradient of the sigmoid or softmax comes next, and multiplies by the probability again.
So it takes the numerator. The quotient itself is computed only if another operator asks for it.

Hand-written losses clamp a probability. The clamped probability remembers its bounds too, and so
does its complement 1 − p. Logarithms are then bounded, and the gradient is zero where the argument
is beyond a bound, even a very small one. Gradients that arrive on several paths become one quotient
again when they are added: a/y + b is (a + b·y)/y.

The argument is kept with the storage of the result, element by element, so every view of the result
finds it. It is forgotten when either storage is written to (``storage_cache``). Sums and copies
remember nothing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tacit.fixed import Scale
from tacit.modes import is_backward, is_tracing
from tacit.operators.dispatch.operands import number, rescaled
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Key under which the storage cache keeps arguments.
_ARGUMENT = "argument"

#: Bytes of a word.
_WORD = 8


class Argument(NamedTuple):
    """The argument of a sigmoid, or of a softmax along a dimension."""

    x: SecretTensor
    #: The dimension of a softmax; None for a sigmoid.
    dim: int | None
    #: Bounds that the probability was clamped to.
    low: float = 0.0
    high: float = 1.0
    #: The argument of the probability before it was clamped, and of the one that this is the
    #: complement of.
    clamped: "Argument | None" = None
    complement: "Argument | None" = None


def remember(
    result: SecretTensor, x: SecretTensor, operator: Any, dim: int | None = None
) -> SecretTensor:
    """Makes the result remember its argument, if the program itself called this operator.

    Nothing takes logarithms of a result that is a step of another operator."""
    session, y = result._session, result._parts[0]
    if session.operator == str(operator) and y.numel() and not is_tracing() and is_whole(y):
        kept = x.like(tuple(part.contiguous() for part in x._parts), unreduced=x._unreduced)
        # The program may write to the argument, so a copy is kept.
        session.storages.keep_with_storage(_ARGUMENT, y, Argument(kept, dim), of=kept._parts[:1])
    return result


def remember_clamped(result: SecretTensor, y: Any, low: Any, high: Any) -> SecretTensor:
    """Makes a clamped probability remember its argument and its bounds."""
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
    """Makes 1 − y, for the result y of a sigmoid, remember that it is the sigmoid of −x."""
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
    result._session.storages.keep_with_storage(
        _ARGUMENT, result._parts[0], kept, of=kept.x._parts[:1]
    )
    return result


def argument_of(y: Any) -> Argument | None:
    """Returns the argument of the sigmoid or softmax that computed y, or the base of the view y.

    Returns ``None`` if there was none, or if the result was written to since."""
    kept = _kept(y)
    # A session for concurrent work (``Session.beside``) may have computed it.
    return kept and kept._replace(x=kept.x.beside(y._session))


def _kept(y: Any) -> Argument | None:
    """Returns the argument as it is remembered: always the same object."""
    if not isinstance(y, SecretTensor) or y.dtype == torch.bool or is_tracing():
        return None
    kept: Argument | None = y._session.storages.kept_with_storage(_ARGUMENT, y._parts[0])
    return kept


def seen_as(whole: SecretTensor, y: SecretTensor) -> SecretTensor:
    """Returns the view of ``whole`` that corresponds to the view y of a result.

    ``whole`` corresponds to all elements of the result."""
    view = y._parts[0]
    size, strides, offset = view.shape, view.stride(), view.storage_offset()
    parts = (part.contiguous() for part in whole._parts)
    seen = tuple(part.as_strided(size, strides, offset + part.storage_offset()) for part in parts)
    return whole.like(seen, unreduced=whole._unreduced)


class Quotient:
    """A gradient that is a numerator divided by y, or by y·(1 − y), and is computed lazily."""

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
        #: The quotients, once an operator asked for them. It may have written to them.
        self.computed: Parts = ()

    @property
    def scale(self) -> Scale:
        """The scale of the quotients."""
        return self._scale

    def parts(self) -> Parts:
        """Computes the quotients at the scale of the moment when they were deferred.

        All views share the components."""
        session = self.known.x._session
        # The computation counts as a part of the operator that deferred it.
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
    """Defers a quotient by y, or by y·(1 − y), in a backward pass, if y remembers its argument.

    Returns ``None`` otherwise."""
    known = _kept(y) if is_backward() else None
    if known is None or not is_whole(y._parts[0]):
        return None
    # A copy, so that no operator writes to it.
    y = y.like(tuple(part.clone() for part in y._parts))
    return _left(Quotient(numerator(y), known, y, lambda: quotient(y), by_both=by_both))


def _left(later: Quotient) -> SecretTensor:
    y = later.y
    return SecretTensor((), y._session.scale, y._session, y.dtype, shape=y.shape, later=later)


def pending(gradient: Any) -> Quotient | None:
    """Returns the deferred quotient of a gradient.

    Returns ``None`` if the gradient is not deferred, if it was computed, or if its shape is not
    that of the divisor."""
    later = gradient._later if isinstance(gradient, SecretTensor) and is_backward() else None
    if not isinstance(later, Quotient) or later.computed or gradient.shape != later.y.shape:
        return None
    return later


def _computed(later: Quotient) -> Any:
    """Computes a deferred quotient."""
    y, scale = later.y, later.scale
    return SecretTensor(later.parts(), scale, y._session, y.dtype)


def chosen(
    condition: Any, gradient: Any, where: Callable[[Any, Any, float], SecretTensor]
) -> SecretTensor | None:
    """Returns the gradient of a clamp: the gradient where the probability is in bounds, else zero.

    The result is deferred, as a gradient of the probability before the clamp. Returns ``None`` if
    the gradient was not deferred."""
    later = pending(gradient)
    if later is None or later.known.clamped is None or condition.shape != later.y.shape:
        return None
    numerator, known = later.numerator, later.known.clamped
    if not isinstance(numerator, SecretTensor) and not isinstance(condition, SecretTensor):
        numerator = torch.where(condition, numerator, 0.0)
    else:
        numerator = where(condition, numerator, 0.0)

    def compute() -> Any:
        return where(condition, _computed(later), 0.0)

    return _left(Quotient(numerator, known, later.y, compute, by_both=later.by_both))


def opposite(gradient: Any) -> SecretTensor | None:
    """Negates a deferred gradient of the complement 1 − y, as a gradient of y.

    Returns ``None`` if the gradient was not deferred."""
    later = pending(gradient)
    if later is None or later.known.complement is None:
        return None
    y = 1.0 - later.y
    numerator = -(later.numerator if later.by_both else later.numerator * y)

    def compute() -> Any:
        return -_computed(later)

    return _left(Quotient(numerator, later.known.complement, y, compute, by_both=True))


def joined(x: Any, y: Any) -> SecretTensor | None:
    """Adds two gradients, of which at least one is deferred. Returns ``None`` if none is."""
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
        return _computed(later) + (y if other is None else _computed(other))

    return _left(Quotient(numerator, later.known, later.y, compute, by_both=by_both))


def _numerator(later: Quotient, *, by_both: bool) -> Any:
    if by_both and not later.by_both:
        return later.numerator * (1.0 - later.y)
    return later.numerator


def quotient_of(gradient: Any, y: Any) -> Quotient | None:
    """Returns the deferred quotient of a gradient, if its divisor is y.

    Returns ``None`` if y was written to since, or if the quotient was computed. The numerators are
    in the order of y."""
    later = gradient._later if isinstance(gradient, SecretTensor) else None
    if not isinstance(later, Quotient) or later.computed or not is_whole(y._parts[0]):
        return None
    # Only views that keep the order of elements defer a quotient.
    return later if later.known is _kept(y) else None


def is_whole(part: torch.Tensor) -> bool:
    """Whether a component is the whole of its storage, in order."""
    return part.is_contiguous() and part.untyped_storage().nbytes() == part.numel() * _WORD
