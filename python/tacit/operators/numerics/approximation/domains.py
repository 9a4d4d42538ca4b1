"""Checked mode for approximated functions.

Their arguments are checked against the domain in which the functions are proved to be right. So
their intermediate results need no checks of their own."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from tacit import checks, fixed
from tacit.fixed import Scale
from tacit.operators.dispatch.operands import fraction
from tacit.tensor import SecretTensor

Options = ParamSpec("Options")

#: Bits of words that must pass the check. Words three times as large fail it and are still
#: encodable.
PASSES = fixed.ENCODED - 2


def of_fractions(
    function: Callable[Concatenate[SecretTensor, Options], SecretTensor],
    domain: int = PASSES,
    result: int | None = None,
    most: int | Callable[[Scale, Scale], int] | None = None,
) -> Callable[Concatenate[SecretTensor, Options], SecretTensor]:
    """Wraps a function of fractions, so that checked mode checks its arguments.

    Args:
        domain: bits of the argument's words that must pass the check.
        result: bits of the result's words, with 16 fraction bits, that must pass the check. Given
            for functions whose result saturates beyond that.
        most: bits that the result's words never exceed for arguments in the domain, or a function
            of the argument's and the result's scale that returns them.
    """

    @wraps(function)
    def run(x: SecretTensor, *args: Options.args, **options: Options.kwargs) -> SecretTensor:
        session = x._session
        if not checks.keeps(session):
            return function(x, *args, **options)
        x = fraction(x)
        checks.hold(session, x._parts, domain)
        with checks.proved(session):
            found = function(x, *args, **options)
        if result is not None:
            _hold_result(found, result)
        elif most is not None:
            bits = most if isinstance(most, int) else most(x._scale, found._scale)
            checks.known(session, found._parts, bits)
        return found

    return run  # type: ignore[return-value]


def quotient(
    function: Callable[..., SecretTensor],
    operands: Callable[[SecretTensor], SecretTensor] = fraction,
    domain: int = PASSES,
    result: int = PASSES,
) -> Callable[..., SecretTensor]:
    """Wraps a division, so that checked mode checks its operands and the quotient, which saturates.

    Args:
        operands: a conversion of both operands before they are divided.
        domain: bits of the operands' words that must pass the check.
        result: bits of the quotient's words, with 16 fraction bits, that must pass the check.
    """

    @wraps(function)
    def run(x: SecretTensor, y: SecretTensor, **options: Any) -> SecretTensor:
        session = x._session
        if not checks.keeps(session):
            return function(x, y, **options)
        x, y = operands(x), operands(y)
        for operand in (x, y):
            checks.hold(session, operand._parts, domain)
        with checks.proved(session):
            found = function(x, y, **options)
        _hold_result(found, result)
        return found

    return run


def _hold_result(found: SecretTensor, bits: int) -> None:
    checks.hold_result(found._session, found._parts, bits + found._scale.bits - fixed.DEFAULT.bits)
