"""Detection of tracing, as by ``make_fx`` and AOTAutograd, and code that is not traced.

Code that depends on shapes and public numbers alone does not become part of a graph."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from tacit.errors import MisuseError

Given = ParamSpec("Given")
Made = TypeVar("Made")

_Mode = torch._C._TorchDispatchModeKey


def _has_mode(*keys: Any) -> bool:
    return any(torch._C._get_dispatch_mode(key) is not None for key in keys)


def is_tracing() -> bool:
    """Whether operators are traced, or run without data."""
    if not torch._C._len_torch_dispatch_stack():
        return False
    return _has_mode(_Mode.PROXY, _Mode.FUNCTIONAL, _Mode.FAKE)


def is_backward() -> bool:
    """Whether this code runs in a backward pass."""
    return torch._C._current_graph_task_id() >= 0


def is_differentiating() -> bool:
    """Whether this code runs in a derivative of ``torch.func``."""
    transforms = torch._C._functorch.get_interpreter_stack() or []
    return any(each.key() == torch._C._functorch.TransformType.Grad for each in transforms)


def tracers() -> tuple[Any, ...]:
    """Returns the active tracers. Facts recorded under one tracer do not hold under another."""
    if not torch._C._len_torch_dispatch_stack():
        return ()
    modes = (
        torch._C._get_dispatch_mode(key) for key in (_Mode.PROXY, _Mode.FUNCTIONAL, _Mode.FAKE)
    )
    return tuple(mode for mode in modes if mode is not None)


@contextmanager
def untraced() -> Iterator[None]:
    """Suspends tracing."""
    if is_tracing():
        with _disable_current_modes():
            yield
    else:
        yield


def outside_trace(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Decorates a function so that it runs outside the trace, on known values.

    Raises:
        MisuseError: when the function is called, for a tensor whose values are unknown.
    """

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        return call_outside_trace(function, *args, **kwargs)

    return called


def call_outside_trace(
    function: Callable[Given, Made], *args: Given.args, **kwargs: Given.kwargs
) -> Made:
    """Calls a function outside the trace, as ``outside_trace`` does."""
    if not is_tracing():
        return function(*args, **kwargs)
    args, kwargs = pytree.tree_map_only(torch.Tensor, _known, (args, kwargs))
    with untraced():
        return function(*args, **kwargs)


def _known(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the values of a public tensor that is being traced."""
    from torch._subclasses.functional_tensor import FunctionalTensor
    from torch.fx.experimental import proxy_tensor

    if isinstance(tensor, FunctionalTensor):
        torch._sync(tensor)  # type: ignore[attr-defined,no-untyped-call]
        tensor = torch._from_functional_tensor(tensor.elem)
    mode = proxy_tensor.get_proxy_mode()
    traced = mode is not None and proxy_tensor.has_proxy_slot(tensor, mode.tracer)
    if not traced and type(tensor) is torch.Tensor:
        return tensor
    proxy: Any = proxy_tensor.get_proxy_slot(tensor, mode.tracer, None) if traced and mode else None
    value = getattr(proxy, "constant", None)
    if value is None:
        # PyTorch keeps single numbers of tensors without data.
        value = getattr(tensor, "constant", None)
    if value is None:
        raise MisuseError(
            "while secret tensors are traced, the values of public tensors that are combined with "
            "them must be known: make these tensors before the trace, or share them"
        )
    known: torch.Tensor = value
    return known


@contextmanager
def with_constants() -> Iterator[None]:
    """Allows public tensors with data next to fake tensors; they become constants of the trace."""
    mode = torch._C._get_dispatch_mode(_Mode.FAKE) if is_tracing() else None
    if mode is None:
        yield
        return
    before, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
    try:
        yield
    finally:
        mode.allow_non_fake_inputs = before
