"""Steps of ``torch.optim.LBFGS`` on secret parameters.

PyTorch's own code reads the loss, the gradient's largest element and the curvature to decide
whether to stop, which would show them. This is the same two-loop recursion (Nocedal 1980), with the
same states, and its decisions stay secret:

- A call makes ``max_iter`` steps, or as many as ``max_eval`` allows. Both are public, and nothing
  ends it earlier: ``tolerance_change`` and ``tolerance_grad`` have no effect. A step in a direction
  that does not descend has the length 0.
- A pair of a step and a change of the gradient whose product is not above ``LEAST`` takes its place
  in the history, but no part in directions. PyTorch leaves out those up to 1e-10, which has no
  digits here.
- A line search would need as many evaluations as the loss asks for, so it is refused.

Gradients must have norms below 2^8, as losses that are means have. The plain reference protocol
reports greater ones.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import LBFGS

from tacit.errors import UnsupportedOperatorError
from tacit.fixed import Scale
from tacit.operators.numerics import approximation
from tacit.sessions import Session
from tacit.trace import module_paths

#: Fraction bits of products, directions and lengths.
NUMBERS = Scale(28)

#: Least product of a step and a change of the gradient, and least square of such a change.
LEAST = 2.0**-24


def step(optimizer: LBFGS, closure: Callable[[], Any], session: Session) -> Any:
    """Makes the steps of one call, and returns the loss before them, which stays secret.

    An evaluation takes the rounds of the closure, and a step about 200 and 110 for each pair of the
    history."""
    group = optimizer.param_groups[0]
    if group["line_search_fn"] is not None:
        remedy = "leave line_search_fn out and choose lr, so that steps have that length"
        raise UnsupportedOperatorError.of(
            "torch.optim.LBFGS with a line search", module_paths.current(), remedy
        )
    closure = torch.enable_grad()(closure)
    state = optimizer.state[optimizer._params[0]]
    state.setdefault("func_evals", 0)
    state.setdefault("n_iter", 0)
    first = closure()
    evaluations = 1
    # PyTorch evaluates once more after the last step that max_eval allows.
    steps = min(group["max_iter"], max(1, group["max_eval"] - 1))
    with session.using(is_optimizing=True):
        for number in range(steps):
            if number:
                closure()
                evaluations += 1
            _advance(optimizer, group, state, session)
    state["func_evals"] += evaluations
    return first


def _advance(
    optimizer: LBFGS, group: dict[str, Any], state: dict[str, Any], session: Session
) -> None:
    """Makes one step from the present gradients."""
    gather: Callable[[], Any] = optimizer._gather_flat_grad
    gradient = gather()
    state["n_iter"] += 1
    with session.using(scale=NUMBERS):
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[])
            direction = -gradient
            total = gradient.abs().sum()
            length = total.reciprocal().clamp(max=1.0) * float(group["lr"])
        else:
            direction = _direction(gradient, state, group["history_size"])
            length = float(group["lr"])
        descends = (gradient * direction).sum() < 0.0
        length = descends * length
        change = direction * length
    state.update(d=direction, t=length, prev_flat_grad=gradient.clone())
    places = [parameter.numel() for parameter in optimizer._params]
    for parameter, piece in zip(optimizer._params, change.split(places), strict=True):
        parameter.add_(piece.reshape(parameter.shape))


def _direction(gradient: Any, state: dict[str, Any], history: int) -> Any:
    """Adds the last step to the history, and returns the next direction."""
    y, s = gradient - state["prev_flat_grad"], state["d"] * state["t"]
    curvature, square = (y * s).sum(), (y * y).sum()
    curves = (curvature > LEAST) & (square > LEAST)
    # A pair without curvature has a factor of 0 in what follows.
    divisor = torch.where(curves, curvature, 1.0)
    scale = approximation.divide(divisor, torch.where(curves, square, 1.0), bounded=True)
    state["H_diag"] = torch.where(curves, scale, state.get("H_diag", 1.0))
    if len(state["old_dirs"]) == history:
        for name in ("old_dirs", "old_stps", "ro"):
            state[name].pop(0)
    state["old_dirs"].append(y * curves)
    state["old_stps"].append(s * curves)
    state["ro"].append(divisor)
    pairs = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    q, parts = -gradient, []
    for change, step_made, by in reversed(pairs):
        part = approximation.divide((step_made * q).sum(), by, bounded=True)
        q = q - change * part
        parts.append(part)
    r = q * state["H_diag"]
    for (change, step_made, by), part in zip(pairs, reversed(parts), strict=True):
        r = r + step_made * (part - approximation.divide((change * r).sum(), by, bounded=True))
    return r
