"""A secret tensor in the place of a plain one: the same Python object, so that whoever has it goes
on with the secret. Optimisers, averages of weights and other modules have the very object."""

from typing import Any, NoReturn

import torch

from tacit.errors import MisuseError


def take_place(plain: torch.Tensor, secret: torch.Tensor) -> None:
    """``plain``, the object, is the secret tensor from now on. Its hooks stay and fire, and so do
    the attributes that somebody gave it; its gradient is let go, since it was of the plain values.

    Plain tensors that were computed of it keep their values. A backward pass through them raises:
    there is nobody left whom their gradient belongs to.
    """
    _close(plain)
    before, after = plain._backward_hooks, plain._post_accumulate_grad_hooks
    # They belong to the tensor below the object, as the gradient does.
    plain._backward_hooks = None
    plain._post_accumulate_grad_hooks = None  # type: ignore[assignment]
    given = {**plain.__dict__, **secret.__dict__}
    # As torch.utils.swap_tensors, which refuses what somebody refers to, and so the weights of
    # every LSTM.
    plain.__class__, secret.__class__ = secret.__class__, plain.__class__
    plain.__dict__, secret.__dict__ = given, {}
    torch._C._swap_tensor_impl(plain, secret)
    plain._backward_hooks = before
    plain._post_accumulate_grad_hooks = after


def _close(plain: torch.Tensor) -> None:
    """Has graphs in which the plain tensor is a leaf refuse to hand it a gradient."""
    if plain.is_leaf and plain.requires_grad:
        torch.autograd.graph.get_gradient_edge(plain).node.register_prehook(_refuse)


def _refuse(_gradients: Any) -> NoReturn:
    raise MisuseError(
        "this loss was computed of weights before share_module made them secret; compute it again "
        "of the "
        "secret ones, or call backward() before share_module"
    )
