"""Replacement of a plain tensor by a secret one that is the same Python object.

Optimisers, averages of weights and other modules hold this object, so they have the secret."""

from typing import Any, NoReturn

import torch

from tacit.errors import MisuseError


def take_place(plain: torch.Tensor, secret: torch.Tensor) -> None:
    """Turns the object ``plain`` into the secret tensor.

    Its hooks and attributes stay. Its gradient is dropped, since it was that of the plain values.
    Plain tensors that were computed from it keep their values. A backward pass through them raises
    an error, since the plain leaf of their gradient is gone.
    """
    _close(plain)
    before, after = plain._backward_hooks, plain._post_accumulate_grad_hooks
    # Hooks belong to the C++ tensor, as the gradient does.
    plain._backward_hooks = None
    plain._post_accumulate_grad_hooks = None  # type: ignore[assignment]
    given = {**plain.__dict__, **secret.__dict__}
    # The same steps as torch.utils.swap_tensors, which refuses tensors with weak references, such
    # as the weights of every LSTM.
    plain.__class__, secret.__class__ = secret.__class__, plain.__class__
    plain.__dict__, secret.__dict__ = given, {}
    torch._C._swap_tensor_impl(plain, secret)
    plain._backward_hooks = before
    plain._post_accumulate_grad_hooks = after


def _close(plain: torch.Tensor) -> None:
    """Makes backward passes fail in graphs with the plain tensor as a leaf."""
    if plain.is_leaf and plain.requires_grad:
        torch.autograd.graph.get_gradient_edge(plain).node.register_prehook(_refuse)


def _refuse(_gradients: Any) -> NoReturn:
    raise MisuseError(
        "this loss was computed from plain weights, before share_module made them secret: compute "
        "it again from the secret weights, or call backward() before share_module"
    )
