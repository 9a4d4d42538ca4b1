"""Rules that give the scale of an operator's result, without data.

A rule combines the rules of ``fixed`` for sums and products. It is called with the session's scale,
and then as its operator is, with a scale for each argument: a secret's own scale; the session's
scale for a public fraction, whatever its value; and WHOLE, which changes neither a sum nor a
product, for all else.
"""

from collections.abc import Callable
from typing import Any

from tacit import fixed
from tacit.fixed import WHOLE, Scale
from tacit.operators.dispatch.agreement import operands_of
from tacit.operators.dispatch.operands import operand_scale

Rule = Callable[..., Scale]


def kept(_session: Scale, *operands: Scale, **named: Scale) -> Scale:
    """Returns the greatest scale of all operands."""
    return fixed.of_sum([*operands, *named.values()])


def of_target(_session: Scale, target: Scale, *_: Scale, **__: Scale) -> Scale:
    """Returns the scale of the first operand, whatever is written into it."""
    return target


def of_session(session: Scale, *_: Scale, **__: Scale) -> Scale:
    """Returns the session's scale, for operators with public fractions such as 1/n in a mean."""
    return session


def of_inverse_root(session: Scale, _x: Scale) -> Scale:
    """Returns the scale of 1 / √x."""
    return fixed.of_inverse_root(session)


def of_product(session: Scale, x: Scale, y: Scale) -> Scale:
    """Returns the scale of x·y."""
    return fixed.of_product(x, y, session)[1]


def of_square(session: Scale, x: Scale) -> Scale:
    """Returns the scale of x·x."""
    return of_product(session, x, x)


def of_power(session: Scale, x: Scale, _exponent: Scale) -> Scale:
    """Returns the scale of x^n, the same for every n."""
    return WHOLE if x == WHOLE else session


def of_sum_with_product(
    session: Scale, x: Scale, *factors: Scale, beta: Scale = WHOLE, **named: Scale
) -> Scale:
    """Returns the scale of beta·x + the product of all other operands."""
    product = WHOLE
    for factor in (*factors, *named.values()):
        product = of_product(session, product, factor)
    return fixed.of_sum([of_product(session, beta, x), product])


def of_reversed_sum(session: Scale, x: Scale, y: Scale, alpha: Scale = WHOLE) -> Scale:
    """Returns the scale of y − alpha·x."""
    return of_sum_with_product(session, y, x, alpha)


def of_convolution(
    session: Scale, x: Scale, weight: Scale, bias: Scale = WHOLE, *_: Scale
) -> Scale:
    """Returns the scale of x·weight + bias."""
    return fixed.of_sum([of_product(session, x, weight), bias])


def of_affine(
    session: Scale, x: Scale, weight: Scale, bias: Scale, addends: Scale, *_: Scale
) -> Scale:
    """Returns the scale of a sum of products x·weight, a bias and other addends."""
    return fixed.of_sum([of_product(session, x, weight), bias, addends])


def of_convolution_gradient(
    session: Scale, gradient: Scale, x: Scale, weight: Scale, *_: Scale
) -> Scale:
    """Returns the common scale of gradient·weight, gradient·x and sums of the gradient."""
    return fixed.of_sum(
        [gradient, of_product(session, gradient, weight), of_product(session, gradient, x)]
    )


def of_interpolation(session: Scale, start: Scale, *rest: Scale) -> Scale:
    """Returns the scale of start + weight·(a difference of start and others), the weight last."""
    *others, weight = rest
    return fixed.of_sum([start, of_product(session, fixed.of_sum([start, *others]), weight)])


def scale_of_call(
    rule: Rule, session: Scale, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Scale:
    """Applies a rule to a call of an operator."""
    positions, names = operands_of(func)
    return rule(
        session,
        *[
            _scale(arg, is_operand, session)
            for arg, is_operand in zip(args, positions, strict=False)
        ],
        **{name: _scale(arg, name in names, session) for name, arg in kwargs.items()},
    )


def _scale(argument: Any, is_operand: bool, session: Scale) -> Scale:
    if not is_operand:
        return WHOLE
    if isinstance(argument, list | tuple):
        return fixed.of_sum([WHOLE, *(operand_scale(member, session) for member in argument)])
    return operand_scale(argument, session)
