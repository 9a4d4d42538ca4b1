"""Steps of ``torch.optim`` on secret parameters, by PyTorch's own code at a scale that fits.

Moving averages of squared gradients need more fraction bits than gradients have: for a gradient of
2^−10, Adam adds 2^−30 to its average. Each optimiser that divides by the root of such averages has
an ε. While such an optimiser makes its step:

- Its states, and the numbers that it computes from them, have ``AVERAGES`` fraction bits and are
  below 2^6. The sums of Adagrad, which grow, have ``SUMS`` fraction bits and stop at ``MOST_SUM``.
  Parameters keep their scale.
- Elements of gradients are clamped to ±``LIMIT`` for the step, so that no square overflows. The
  gradients themselves stay unchanged.
- An ε below ``LEAST_EPS`` is raised to that, since the squares below it are less than one unit. The
  usual 1e-8 serves to prevent a division by zero, and the raised ε does so too. Gradients near
  2^−15, which are two units themselves, then make smaller steps. Adadelta adds its ε to squares
  before it takes the root, so the length of its first steps follows from ε: an ε below
  ``LEAST_EPS``² is raised to that, and the usual 1e-6 is kept. RMSprop does not correct the bias of
  its first averages, which are small compared with an ε: an ε below ``ROOT_OF_UNIT`` is raised to
  that.
- Rprop has no ε, and gets only the signs of gradients. It multiplies each gradient by the one
  before it, and uses only the sign of the product. The product of two gradients of 2^−9 would be 0,
  and that of two gradients of 3 would overflow. Its states have as many fraction bits as leave room
  for the greatest step times its factor.
- The plain reference protocol reports gradients and sums that reach a limit (``RangeWarning``).

``LBFGS`` and ``Adafactor`` decide by numbers that PyTorch's own code reads, so that their steps are
written anew: see ``quasi_newton`` and ``adafactor``.

A closure is called once, before the step, except by ``LBFGS``. If the program did not choose, all
tensors are computed as one list (``foreach``), so that a step takes the rounds of one tensor, not
of all.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch
from torch.optim import LBFGS, Adadelta, Adafactor, Adagrad, Optimizer, RAdam, RMSprop, Rprop

from tacit.buffers import bytes_in_order
from tacit.errors import MisuseError
from tacit.fixed import RANGE, Scale, of_gradients
from tacit.operators.dispatch.operands import lifted, rescaled
from tacit.operators.numerics import adafactor, quasi_newton
from tacit.sessions import Session
from tacit.sharings import ranges
from tacit.tensor import SecretTensor

#: Fraction bits of moving averages, which multiply squares by a factor of a thousandth or more.
AVERAGES = Scale(40)

#: Fraction bits of sums of squares, and the limit at which they stop growing: they are below 2^14.
SUMS = Scale(32)
MOST_SUM = 2.0**13

#: Magnitude to which elements of gradients are clamped. Squares fit even after weight decay is
#: added.
LIMIT = 4.0

#: Least ε: the root of a unit of an average, divided by the root of a factor of a thousandth.
LEAST_EPS = 2.0**-15

#: Least ε of RMSprop, which does not divide its averages by that factor.
ROOT_OF_UNIT = 2.0**-20

#: States that follow from the number of steps alone, and so stay public.
COUNTERS = {"step", "mu_product", "mu", "eta"}

Step = Callable[..., Any]


def _wrapped(step: Step) -> Step:
    @wraps(step)
    def secret_step(
        optimizer: Optimizer, closure: Callable[[], Any] | None = None, **kwargs: Any
    ) -> Any:
        session = _session_of(optimizer)
        if session is None:
            return (
                step(optimizer, closure, **kwargs)
                if closure is not None
                else step(optimizer, **kwargs)
            )
        _check_wanted(optimizer)
        if isinstance(optimizer, LBFGS):
            if closure is None:
                raise MisuseError(
                    "LBFGS evaluates the loss several times for a step: give step() a closure that "
                    "zeroes the gradients, computes the loss, calls backward() and returns the loss"
                )
            with torch.no_grad():
                return quasi_newton.step(optimizer, closure, session)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad(), _setting(optimizer, session):
            if isinstance(optimizer, Adafactor):
                adafactor.step(optimizer, session)
            else:
                step(optimizer, **kwargs)
        return loss

    secret_step._is_tacit = True  # type: ignore[attr-defined]
    return secret_step


def _check_wanted(optimizer: Optimizer) -> None:
    """Raises a MisuseError if no parameter requires gradients, so that a step changes nothing."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if not any(parameter.requires_grad for parameter in parameters):
        raise MisuseError(
            "no parameter of this optimiser requires gradients, so that its step would train "
            "nothing: "
            "share the module with trainable=True, tacit.share_module(module, owner=..., "
            "trainable=True)"
        )


def _session_of(optimizer: Optimizer) -> Session | None:
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    return next((each._session for each in parameters if isinstance(each, SecretTensor)), None)


@contextmanager
def _setting(optimizer: Optimizer, session: Session) -> Iterator[None]:
    """Prepares a step as the head of this file says, and restores everything afterwards."""
    scale = _scale_of_states(optimizer)
    with ExitStack() as stack:
        stack.enter_context(session.using(is_optimizing=True))
        for group in optimizer.param_groups:
            if isinstance(optimizer, RAdam):
                # PyTorch's foreach version of RAdam divides by zero in steps that do not rectify,
                # and continues with infinity.
                _replace(group, "foreach", False, stack)
            else:
                _use_foreach(group, stack)
            if "eps" in group and not isinstance(optimizer, Adafactor):
                least = _least_eps(optimizer)
                _replace(group, "eps", max(group["eps"], least), stack)
            if "eps" in group or isinstance(optimizer, Rprop):
                _limit(optimizer, group, stack)
                _lift_states(optimizer, group, scale)
            else:
                _lift_states(optimizer, group, None)
        own = isinstance(optimizer, Adafactor)
        lifted_too = isinstance(optimizer, Rprop) or any(
            "eps" in group for group in optimizer.param_groups
        )
        if lifted_too and not own:
            stack.enter_context(session.using(scale=scale))
        yield
        if isinstance(optimizer, Adagrad):
            _stop_sums(optimizer)


def _scale_of_states(optimizer: Optimizer) -> Scale:
    if isinstance(optimizer, Rprop):
        greatest = max(
            group["step_sizes"][1] * group["etas"][1] for group in optimizer.param_groups
        )
        # A step and its factor both have these bits when they are multiplied.
        return Scale(max(1, min(AVERAGES.bits, (RANGE - math.ceil(math.log2(greatest))) // 2)))
    return SUMS if isinstance(optimizer, Adagrad) else AVERAGES


def _least_eps(optimizer: Optimizer) -> float:
    if isinstance(optimizer, Adadelta):
        return LEAST_EPS**2
    return ROOT_OF_UNIT if isinstance(optimizer, RMSprop) else LEAST_EPS


def _replace(group: dict[str, Any], name: str, value: Any, stack: ExitStack) -> None:
    stack.callback(group.__setitem__, name, group[name])
    group[name] = value


def _use_foreach(group: dict[str, Any], stack: ExitStack) -> None:
    """Sets ``foreach`` if the program chose neither it nor an option that excludes it."""
    chosen = (
        group.get("foreach", False) is not None or group.get("fused") or group.get("differentiable")
    )
    # PyTorch's foreach functions take no learning rate that is a tensor.
    chosen = chosen or isinstance(group.get("lr"), torch.Tensor)
    if not chosen and all(isinstance(parameter, SecretTensor) for parameter in group["params"]):
        _replace(group, "foreach", True, stack)


def _with_gradients(group: dict[str, Any]) -> list[SecretTensor]:
    return [
        parameter
        for parameter in group["params"]
        if isinstance(parameter, SecretTensor) and parameter.grad is not None
    ]


def _limit(optimizer: Optimizer, group: dict[str, Any], stack: ExitStack) -> None:
    """Replaces the gradients for the step: clamped, or by their signs for Rprop.

    All elements of all gradients are computed in one batch."""
    parameters = _with_gradients(group)
    if not parameters:
        return
    gradients: list[Any] = [parameter.grad for parameter in parameters]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    if isinstance(optimizer, Rprop):
        limited = flat.sign()
    else:
        _report(optimizer, flat, LIMIT, "an element of a gradient")
        limited = flat.clamp(-LIMIT, LIMIT)
    pieces = torch.split(limited, [gradient.numel() for gradient in gradients])
    for parameter, gradient, piece in zip(parameters, gradients, pieces, strict=True):
        stack.callback(setattr, parameter, "grad", gradient)
        parameter.grad = piece.reshape(gradient.shape)


def _lift_states(optimizer: Optimizer, group: dict[str, Any], scale: Scale | None) -> None:
    """Makes all states secret, and brings them to a scale.

    States need this if they were made before any step, as Adagrad's are, if they came with fewer
    bits, or if they are of steps before the parameters became secret. The last are public, and must
    be the same in all parties.

    Args:
        scale: if ``None``, secret states keep their scale, and public ones get that of gradients.
    """
    for parameter in _with_gradients(group):
        state, session = optimizer.state[parameter], parameter._session
        for name, value in state.items():
            if isinstance(value, SecretTensor):
                state[name] = value if scale is None else rescaled(value, scale)
            elif (
                isinstance(value, torch.Tensor)
                and value.shape == parameter.shape
                and name not in COUNTERS
            ):
                session.core.note_public(
                    f"{name} of {type(optimizer).__name__}", bytes_in_order(value)
                )
                wanted = of_gradients(session.scale) if scale is None else scale
                state[name] = SecretTensor(
                    lifted(session, value, wanted), wanted, session, value.dtype
                )


def _stop_sums(optimizer: Optimizer) -> None:
    for group in optimizer.param_groups:
        sums = [optimizer.state[parameter]["sum"] for parameter in _with_gradients(group)]
        for each in sums:
            _report(optimizer, each, MOST_SUM, "a sum of squares")
        if sums:
            torch._foreach_clamp_max_(sums, MOST_SUM)


def _report(optimizer: Optimizer, x: Any, limit: float, what: str) -> None:
    session = x._session
    if session.is_plain:
        ranges.check_limit(
            session, x._parts[0], x._scale, limit, f"{type(optimizer).__name__}.step", what
        )


def _install() -> None:
    """Wraps the step of every optimiser class.

    A class is wrapped when its first instance is made, at the point where PyTorch installs its
    hooks. PyTorch's hooks themselves could not restore the settings if a step fails. Classes that
    have instances already are wrapped at once."""
    original = Optimizer._patch_step_function

    def patch(optimizer: Optimizer) -> None:
        original(optimizer)
        _wrap(type(optimizer))

    Optimizer._patch_step_function = patch  # type: ignore[method-assign, assignment]
    for kind in _kinds(Optimizer):
        if hasattr(kind.step, "hooked"):
            _wrap(kind)


def _wrap(kind: type[Optimizer]) -> None:
    if not hasattr(kind.step, "_is_tacit"):
        kind.step = _wrapped(kind.step)  # type: ignore[method-assign]


def _kinds(kind: type[Optimizer]) -> Iterator[type[Optimizer]]:
    for derived in kind.__subclasses__():
        yield derived
        yield from _kinds(derived)


_install()
