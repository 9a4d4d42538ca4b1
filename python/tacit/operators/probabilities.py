"""What sigmoids and softmaxes give remembers its argument.

In fixed point a probability near 0 has few bits, and beyond a logit of 7.5 none: so logarithms of it, and
losses that take them, are computed of the argument. And of the quotient by a probability, which is where
autograd begins to go back through a logarithm, few bits are right, while the gradient of the sigmoid or
softmax, which comes next, multiplies by the probability again: it takes the numerator, and the quotient is
computed only if somebody else asks for it.

What is remembered stands beside the storage of the result, element by element, so it holds for every view of
it; it is forgotten when either storage is written to (``storages``). Sums and copies remember nothing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tacit.modes import is_backward, is_tracing
from tacit.operators.operands import rescaled
from tacit.shares import Parts
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


def remember(result: SecretTensor, x: SecretTensor, operator: Any, dim: int | None = None) -> SecretTensor:
    """The result, which remembers the argument if a program called this operator; where it is part of another
    nobody takes logarithms."""
    session, y = result._session, result._parts[0]
    if session.operator == str(operator) and y.numel() and not is_tracing() and is_whole(y):
        kept = x.like(tuple(part.contiguous() for part in x._parts), loose=x._loose)
        # The argument may lie where somebody writes.
        session.storages.keep_beside(_ARGUMENT, y, Argument(kept, dim), of=kept._parts[:1])
    return result


def argument_of(y: Any) -> Argument | None:
    """What this, or what it is a view of, was computed of, if it was and has not been written to."""
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
    return whole.like(seen, loose=whole._loose)


class Quotient:
    """A numerator divided by y, or by y·(1 − y): values of a gradient that are computed if anybody asks."""

    def __init__(
        self, numerator: Any, known: Argument, compute: Callable[[], SecretTensor], *, by_both: bool
    ) -> None:
        self.numerator, self.known, self.by_both = numerator, known, by_both
        self._compute, self._scale = compute, known.x._session.scale
        #: Once somebody asked, who may have written to them.
        self.computed: Parts = ()

    def parts(self) -> Parts:
        """The quotients, at the scale of the moment when they were left for later; the same for all views."""
        session = self.known.x._session
        # Part of the operator that left them.
        operator, session.operator = session.operator, session.operator or "a quotient"
        try:
            with torch.no_grad(), session.at_scale(self._scale):
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
    """In a backward pass a quotient by what remembers its argument, y, or by y·(1 − y); ``None`` for all
    else."""
    known = _kept(y) if is_backward() else None
    if known is None or not is_whole(y._parts[0]):
        return None
    # Nobody writes to these.
    y = y.like(tuple(part.clone() for part in y._parts))
    later = Quotient(numerator(y), known, lambda: quotient(y), by_both=by_both)
    return SecretTensor((), y._session.scale, y._session, y.dtype, shape=y.shape, later=later)


def quotient_of(gradient: Any, y: Any) -> Quotient | None:
    """What a gradient was left for later as, if it is a quotient by this y, which has not been written to,
    and nobody has asked for it; numerators lie in the order of y."""
    later = gradient._later if isinstance(gradient, SecretTensor) else None
    if not isinstance(later, Quotient) or later.computed or not is_whole(y._parts[0]):
        return None
    # Only views that keep the order leave anything for later.
    return later if later.known is _kept(y) else None


def is_whole(part: torch.Tensor) -> bool:
    """Whether a component is all of its storage, in order."""
    return part.is_contiguous() and part.untyped_storage().nbytes() == part.numel() * _WORD
