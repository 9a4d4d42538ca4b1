"""Softmax and related functions.

They use exponentials of the differences to the maximum. These are at most 1, so nothing leaves its
range, whatever x is.

A number that a mask made infinite (``fixed.bounded``) has an exponential of exactly zero. For a row
that is masked out entirely PyTorch gives NaN. Here all its probabilities are equal if its numbers
were replaced by an infinity. If an infinity was added, they are what they would be without the
mask. ``safe_softmax`` gives zeros.
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

#: Scale of exponentials, whose errors add up in their sum, and of the sum's reciprocal, which is
#: small for many numbers. Sums are below 2^22.
FINE = Scale(24)


class Exponentials(NamedTuple):
    """Exponentials of x along some dimensions, which keep size 1 in ``greatest`` and ``total``."""

    greatest: SecretTensor
    #: x minus the maximum.
    below: SecretTensor
    #: Exponentials of ``below``. ``total`` is their sum.
    numerators: SecretTensor
    total: SecretTensor

    def normalized(self) -> SecretTensor:
        """Returns the exponentials divided by their sum."""
        return mul(self.numerators, reciprocal(self.total, positive=True, scale=FINE))

    def logarithm(self) -> SecretTensor:
        """Returns the logarithm of the sum of the exponentials of x itself."""
        return add(self.greatest, log(self.total, positive=True))

    def seen(self) -> SecretTensor:
        """Returns whether a row is not masked out entirely, by a comparison."""
        scale = self.greatest._scale
        # A number is masked out if it is near the one that stands for minus infinity.
        infinite = 2.0 ** (fixed.unbounded(compared(self.greatest._session, scale)) - scale.bits)
        return gt(self.greatest, -infinite / 2)


def exponentials(x: SecretTensor, dims: Sequence[int]) -> Exponentials:
    """Computes exponentials along dimensions, in the rounds of a maximum and an exponential."""
    x = as_fractions(x)
    greatest = amax(x, dims, True)
    below, session = sub(x, greatest), x._session
    with session.using(scale=fixed.of_sum([FINE, session.scale])):
        numerators = exp_below_zero(below)
    return Exponentials(greatest, below, numerators, sum_dims(numerators, dims, True))


@implements(aten._softmax.default, scale=of_session)
def softmax(x: SecretTensor, dim: int, half_to_float: bool = False) -> SecretTensor:  # noqa: ARG001
    """Returns exp(x − m) / Σ exp(x − m), where m is the maximum of x.

    Takes the rounds of a maximum, an exponential, a reciprocal, and two. For up to 1,000 numbers
    the error is at most 2^−9, that of their sum 2^−7.
    """
    if not x.numel():
        return x
    result = exponentials(x, [dim]).normalized()
    return remember(result, x, aten._softmax.default, dim % max(1, x.dim()))


@implements(aten._safe_softmax.default, scale=of_session)
def safe_softmax(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:  # noqa: ARG001
    """Returns the softmax, with zeros for rows that are masked out entirely.

    Takes a comparison and a selection more than ``softmax``.
    """
    if not x.numel():
        return x
    found = exponentials(x, [dim])
    return mul(found.normalized(), found.seen())


@implements(aten._log_softmax.default, scale=of_session)
def log_softmax(x: SecretTensor, dim: int, half_to_float: bool = False) -> SecretTensor:  # noqa: ARG001
    """Returns x − m − log Σ exp(x − m), where m is the maximum of x.

    Takes the rounds of a maximum, an exponential and a logarithm.
    """
    if not x.numel():
        return x
    found = exponentials(x, [dim])
    return sub(found.below, log(found.total, positive=True))


@implements(aten.logsumexp.default, scale=of_session)
def logsumexp(x: SecretTensor, dim: Sequence[int], keepdim: bool = False) -> SecretTensor:
    """Returns m + log Σ exp(x − m), where m is the maximum of x."""
    dims = list(dim) or list(range(x.dim()))
    result = exponentials(x, dims).logarithm()
    parts = result._parts if keepdim else sum_dims(result, dims)._parts
    return result.like(parts)
