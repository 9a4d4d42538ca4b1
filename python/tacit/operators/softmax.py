"""Softmax and what is made of it: exponentials of the differences to the greatest, which are at
most 1, so that nothing leaves its range whatever x is.

What a mask made infinite (``fixed.bounded``) has an exponential of exactly zero. Where all of a row
is masked out PyTorch gives NaN; here what was replaced by an infinity is all the same, what had one
added has the shares that it would have without, and after ``safe_softmax`` there are zeros.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.arithmetic import add, mul, sub
from tacit.operators.comparison import gt
from tacit.operators.dispatch.operands import compared
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.extremum import amax
from tacit.operators.numerics.approximation import exp_below_zero, log, reciprocal
from tacit.operators.numerics.averages import as_fractions
from tacit.operators.numerics.remembered_softmax import remember
from tacit.operators.reduction import sum_dims
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Of exponentials, whose errors add up in their sum, and of its reciprocal, which is small where
#: they are many. Sums are below 2^22.
FINE = Scale(24)


class Exponentials(NamedTuple):
    """Of x along some dimensions, which stay."""

    greatest: SecretTensor
    #: x less the greatest.
    below: SecretTensor
    #: The exponential of that, and its sum.
    numerators: SecretTensor
    total: SecretTensor

    def normalized(self) -> SecretTensor:
        """Numerators divided by their sum."""
        return mul(self.numerators, reciprocal(self.total, positive=True, scale=FINE))

    def logarithm(self) -> SecretTensor:
        """Of the sum of the exponentials of x itself."""
        return add(self.greatest, log(self.total, positive=True))

    def seen(self) -> SecretTensor:
        """Booleans: whether not all is masked out; a comparison."""
        scale = self.greatest._scale
        # Masked out is what is near the number that an infinity became.
        infinite = 2.0 ** (fixed.unbounded(compared(self.greatest._session, scale)) - scale.bits)
        return gt(self.greatest, -infinite / 2)


def exponentials(x: SecretTensor, dims: Sequence[int]) -> Exponentials:
    """The rounds of a greatest and an exponential."""
    x = as_fractions(x)
    greatest = amax(x, dims, True)
    below, session = sub(x, greatest), x._session
    with session.using(scale=fixed.of_sum([FINE, session.scale])):
        numerators = exp_below_zero(below)
    return Exponentials(greatest, below, numerators, sum_dims(numerators, dims, True))


@implements(aten._softmax.default, scale=of_session)
def softmax(x: SecretTensor, dim: int, half_to_float: bool = False) -> SecretTensor:  # noqa: ARG001
    """exp(x − m) / Σ exp(x − m), with m the greatest of x: the rounds of a greatest, an exponential
    and a reciprocal, and two. Off by at most 2^−9 for up to 1,000 numbers, their sum by 2^−7."""
    if not x.numel():
        return x
    result = exponentials(x, [dim]).normalized()
    return remember(result, x, aten._softmax.default, dim % max(1, x.dim()))


@implements(aten._safe_softmax.default, scale=of_session)
def safe_softmax(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:  # noqa: ARG001
    """The same, and zeros where all is masked out: a comparison and a choice more."""
    if not x.numel():
        return x
    found = exponentials(x, [dim])
    return mul(found.normalized(), found.seen())


@implements(aten._log_softmax.default, scale=of_session)
def log_softmax(x: SecretTensor, dim: int, half_to_float: bool = False) -> SecretTensor:  # noqa: ARG001
    """x − m − log Σ exp(x − m), with the rounds of a greatest, an exponential and a logarithm."""
    if not x.numel():
        return x
    found = exponentials(x, [dim])
    return sub(found.below, log(found.total, positive=True))


@implements(aten.logsumexp.default, scale=of_session)
def logsumexp(x: SecretTensor, dim: Sequence[int], keepdim: bool = False) -> SecretTensor:
    """m + log Σ exp(x − m)."""
    dims = list(dim) or list(range(x.dim()))
    result = exponentials(x, dims).logarithm()
    parts = result._parts if keepdim else sum_dims(result, dims)._parts
    return result.like(parts)
