"""Steps of ``torch.optim.Adafactor`` on secret parameters.

PyTorch's own code reads norms as numbers of Python, which would show them. This is the same step
(Shazeer and Stern 2018) with the same states, and all numbers stay secret. It differs in one place:
an estimate row·column / mean(row) has no ε of its own. Instead its factors are at least ``LEAST``
and ``LEAST_RATIO``, so that an ``eps[0]`` below 2^−15 counts as about that.
"""

import math
from typing import Any

import torch
from torch.optim import Adafactor

from tacit.fixed import Scale
from tacit.operators.numerics import approximation
from tacit.sessions import Session
from tacit.tensor import SecretTensor

#: Fraction bits of averages of squares, which are below 2^6, and of all else.
AVERAGES, NUMBERS = Scale(40), Scale(28)

#: Least average of squares, and least ratio of a row's average to the mean of all rows.
LEAST, LEAST_RATIO = 2.0**-30, 2.0**-20


def step(optimizer: Adafactor, session: Session) -> None:
    """Makes a step. Gradients are clamped already, as ``optimizer_scope`` says.

    About 250 rounds for each parameter."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                _update(optimizer, group, parameter, session)


def _update(optimizer: Adafactor, group: dict[str, Any], parameter: Any, session: Session) -> None:
    state, gradient = optimizer.state[parameter], parameter.grad
    gradient = -gradient if group["maximize"] else gradient
    state["step"] = state.get("step", torch.tensor(0.0)) + 1
    number, rate = float(state["step"]), float(group["lr"])
    # The root of the mean of squared parameters may be of any magnitude.
    size = torch.linalg.vector_norm(parameter) * (1.0 / math.sqrt(parameter.numel()))
    length = size.clamp(min=group["eps"][1]) * min(rate, 1 / math.sqrt(number))
    with session.using(scale=AVERAGES):
        weight, least = number ** group["beta2_decay"], _least(group)
        squares = gradient * gradient
        if gradient.dim() > 1:
            rows = _averaged(state, "row_var", squares.mean(-1, keepdim=True), weight)
            columns = _averaged(state, "col_var", squares.mean(-2, keepdim=True), weight)
            mean = rows.mean(-2, keepdim=True).clamp(min=least)
        else:
            columns = _averaged(state, "variance", squares, weight)
        roots = columns.clamp(min=least)
    with session.using(scale=NUMBERS):
        change = gradient * roots.rsqrt()
        if gradient.dim() > 1:
            ratio = approximation.divide(rows, mean, bounded=True)
            change = change * ratio.clamp(min=LEAST_RATIO).rsqrt()
        spread = torch.linalg.vector_norm(change) * (1.0 / (math.sqrt(change.numel()) * group["d"]))
        change = change * (length * spread.clamp(min=1.0).reciprocal())
    if group["weight_decay"]:
        parameter.mul_(1 - rate * group["weight_decay"])
    parameter.sub_(change)


def _least(group: dict[str, Any]) -> float:
    given = group["eps"][0]
    return max(LEAST, 0.0 if given is None else given**2)


def _averaged(state: dict[str, Any], name: str, squares: SecretTensor, weight: float) -> Any:
    """Updates an average of squares."""
    before = state.get(name)
    state[name] = squares * weight if before is None else before + (squares - before) * weight
    return state[name]
