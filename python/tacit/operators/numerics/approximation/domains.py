"""Functions in checked mode: what goes in is held to the domain in which they are proved, and what
they compute of it makes no claims of its own."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from tacit import checks, fixed
from tacit.operators.dispatch.operands import fraction
from tacit.tensor import SecretTensor

Options = ParamSpec("Options")

#: Bits of words that must pass: those of three times as much, which do not, are encodable.
PASSES = fixed.ENCODED - 2


def of_fractions(
    function: Callable[Concatenate[SecretTensor, Options], SecretTensor],
    domain: int = PASSES,
    result: int | None = None,
) -> Callable[Concatenate[SecretTensor, Options], SecretTensor]:
    """A function of fractions.

    Args:
        domain: bits of their words that must pass.
        result: the same of its values with 16 fraction bits, where they are the greatest number
            beyond that.
    """

    @wraps(function)
    def run(x: SecretTensor, *args: Options.args, **options: Options.kwargs) -> SecretTensor:
        session = x._session
        if not checks.is_on(session):
            return function(x, *args, **options)
        x = fraction(x)
        checks.hold(session, x._parts, domain)
        with checks.proved(session):
            found = function(x, *args, **options)
        if result is not None:
            checks.hold(session, found._parts, result + found._scale.bits - fixed.DEFAULT.bits)
        return found

    return run  # type: ignore[return-value]


def quotient(
    function: Callable[..., SecretTensor],
    operands: Callable[[SecretTensor], SecretTensor] = fraction,
    domain: int = PASSES,
    result: int = PASSES,
) -> Callable[..., SecretTensor]:
    """A quotient of two, which becomes a great number where it is beyond that: held below.

    Args:
        operands: what becomes of both before they are divided.
        domain: bits of their words that must pass.
        result: the same of a quotient with 16 fraction bits.
    """

    @wraps(function)
    def run(x: SecretTensor, y: SecretTensor, **options: Any) -> SecretTensor:
        session = x._session
        if not checks.is_on(session):
            return function(x, y, **options)
        x, y = operands(x), operands(y)
        for operand in (x, y):
            checks.hold(session, operand._parts, domain)
        with checks.proved(session):
            found = function(x, y, **options)
        checks.hold(session, found._parts, result + found._scale.bits - fixed.DEFAULT.bits)
        return found

    return run
