"""Warnings about public constants that a scale cannot represent.

Such constants are an ε or a bound that rounds to 0, a bound that rounds to 1, or a factor that
makes all products 0 or changes none. The plain reference protocol can look at values, so a trial
run reports each of them. A real run computes with the rounded constants. It reports those that
follow from the scale alone: single numbers that are encoded at the scale of a result, or compared
with it."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import torch

from tacit.fixed import FEWER, Scale, of_sum
from tacit.modes import is_backward, is_tracing
from tacit.operators.dispatch.meta_propagation import Outcome
from tacit.operators.dispatch.operands import public
from tacit.operators.dispatch.table import watches
from tacit.operators.numerics.remembered_softmax import argument_of
from tacit.operators.numerics.remembered_squares import is_remembered
from tacit.sessions import Session
from tacit.sharings import ranges
from tacit.tensor import SecretTensor

#: Operators that encode public numbers at the scale of their result, or compare with them.
ROUNDED = {
    *(
        "add",
        "sub",
        "rsub",
        "clamp",
        "clamp_min",
        "clamp_max",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "where",
    ),
    *(
        "masked_fill",
        "fill",
        "hardtanh",
        "threshold",
        "hardshrink",
        "softshrink",
        "index_fill",
        "scatter",
    ),
    *("lt", "le", "gt", "ge", "eq", "ne", "constant_pad_nd"),
}

#: Operators whose result may be a product or a quotient by a public number.
FACTORS, DIVISORS = {"mul"}, {"div"}


@cache
def _name(func: Any) -> str:
    name: str = func.overloadpacket.__name__.removesuffix("_")
    return name


@watches
def watch(
    session: Session, func: Any, args: Sequence[Any], kwargs: dict[str, Any], expected: Any
) -> Callable[[Any], None] | None:
    """Checks the constants of an operator that a program calls, and reports what they lose."""
    if not (session.is_plain or _name(func) in ROUNDED):
        return None
    found = _lost_constants(session, func, args, kwargs, expected)
    return partial(_report, session, found) if found else None


def _lost_constants(
    session: Session, func: Any, args: Sequence[Any], kwargs: dict[str, Any], expected: Any
) -> list[str]:
    """Returns a description of each constant that is lost."""
    # Parties that are threads share one place to report to, so only one of them reports.
    is_told = not session.party or not (session.is_plain or session.transport == "memory")
    if not is_told or session.numerics.is_optimizing or is_tracing() or is_backward():
        return []
    secrets = [arg for arg in args if isinstance(arg, SecretTensor)]
    fractions = [secret for secret in secrets if secret.dtype.is_floating_point]
    if not secrets or not isinstance(expected, Outcome):
        return []
    name = _name(func)
    if expected.dtype.is_floating_point:
        scale = expected.scale
    elif any(argument_of(each) is not None for each in fractions):
        # Probabilities near 0 and 1 are compared by their logits, which are exact there.
        return []
    elif fractions and expected.dtype == torch.bool:
        scale = of_sum([session.scale, *(each._scale for each in fractions)])
    else:
        # Integers are compared exactly.
        return []
    if name in ROUNDED:
        bounds = (value for key, value in kwargs.items() if key != "alpha")
        written = [value for value in (*args, *bounds) if session.is_plain or _is_single(value)]
        return [said for value in written for said in _rounded(value, scale)]
    if session.is_plain and name in FACTORS | DIVISORS and len(args) == 2:
        return list(_factor(args, scale, divides=name in DIVISORS))
    return []


def _report(session: Session, found: list[str], result: Any) -> None:
    """Reports lost constants, unless the result remembers the constant exactly.

    Remembered constants are an ε under a root and a bound of a probability."""
    if is_remembered(result) or argument_of(result) is not None:
        return
    for said in found:
        ranges.report_precision(session, said)


def _is_single(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, torch.Tensor) and value.numel() == 1)


def _constants(value: Any) -> torch.Tensor | None:
    """Returns the finite, nonzero values of a public floating-point operand, or ``None``."""
    if isinstance(value, SecretTensor) or not isinstance(value, float | torch.Tensor):
        return None
    values = public(value).reshape(-1)
    if not values.is_floating_point():
        return None
    values = values.to(torch.float64)
    values = values[values.isfinite() & (values != 0)]
    return values if values.numel() else None


def _rounded(value: Any, scale: Scale) -> Iterator[str]:
    """Describes a constant that rounds to 0, or to an integer other than itself.

    A tensor is reported only if all of it is lost: small numbers among data do not matter."""
    values = _constants(value)
    if values is None:
        return
    rounded = (values * 2.0**scale.bits).round() * scale.unit
    shown = float(values[values.abs().argmax()])
    if not rounded.any():
        yield f"{shown:g}, which is 0 {_with(scale)}; {_remedy(abs(shown))}{_larger(scale)}"
    elif (
        bool(((rounded == rounded.round()) & (rounded != values)).all())
        and not (values == 1.0).any()
    ):
        gap = abs(shown - round(shown))
        said = f"{round(shown)} {'-' if shown < round(shown) else '+'} {gap:g}"
        yield f"{said}, which is {round(shown)} {_with(scale)}; {_remedy(gap)}{_larger(scale)}"


def _factor(args: Sequence[Any], scale: Scale, *, divides: bool) -> Iterator[str]:
    x, value = args if isinstance(args[0], SecretTensor) else (args[1], args[0])
    if divides and value is args[0]:
        return
    values = _constants(value)
    if (
        values is None
        or not isinstance(x, SecretTensor)
        or not x.is_computed
        or x.dtype == torch.bool
    ):
        return
    greatest = ranges.greatest(x._parts[0]) * x._scale.unit
    factors = 1.0 / values if divides else values
    most, half = float(factors.abs().max()), scale.unit / 2
    what = "a divisor" if divides else "a factor"
    shown = float(values[factors.abs().argmax()])
    if 0 < greatest * most < half:
        remedy = _remedy(greatest * most)
        yield f"{what} of {shown:g}, by which all of it is 0 {_with(scale)}; {remedy}scale the numbers up"
        return
    change = greatest * float((factors - 1).abs().max())
    if 0 < change < half and bool((factors != 1).all()):
        kept = f"by which all of it stays as it is {_with(scale)}"
        yield f"{what} of {shown!r}, {kept}; {_remedy(change)}scale the numbers up"


def _with(scale: Scale) -> str:
    return f"with {scale.bits} fraction bits"


def _larger(scale: Scale) -> str:
    return f"write {scale.unit:.2g} or more; of a probability take the loss of its logits"


def _remedy(number: float) -> str:
    """Suggests the fraction bits that represent a number, if products have room for them."""
    bits = math.ceil(-math.log2(number))
    if bits > FEWER.bits:
        return ""
    return f"run it in `with tacit.fraction_bits({bits}):`, or "
