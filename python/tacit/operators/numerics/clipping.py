"""Gradients clipped by a secret norm: ``torch.nn.utils.clip_grad_norm_``, its norm PyTorch's own.

The factor max_norm / norm is small where gradients explode, which is when it matters: with 16
fraction bits one of 10^−4 is off by 7%, and one of 10^−5 is 0 or half as much again. Its root has
eight bits more, and is 10^−2.5 there. So gradients are multiplied by that twice, √(1 / (norm /
max_norm)), of a norm of max_norm at least, with which they stay as they are, and ``MOST_TIMES`` it
at most, so that the quotient is in range."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import torch
from torch.nn.utils import clip_grad

from tacit.tensor import SecretTensor

#: What PyTorch adds to the norm.
EPS = 1e-6

#: How many times a norm may be too large; larger ones count as that.
MOST_TIMES = 2.0**28

#: Below it a norm has few bits, and the factor is PyTorch's own.
LEAST_NORM = 2.0**-10

Clip = Callable[..., None]


def _by_root(original: Clip) -> Clip:
    @wraps(original)
    def clip(
        parameters: torch.Tensor | Iterable[torch.Tensor],
        max_norm: float,
        total_norm: torch.Tensor,
        foreach: bool | None = None,
    ) -> None:
        largest = float(max_norm)
        if not isinstance(total_norm, SecretTensor) or largest < LEAST_NORM:
            original(parameters, max_norm, total_norm, foreach)
            return
        given = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        gradients: list[Any] = [each.grad for each in given if each.grad is not None]
        limit = total_norm._scale.limit / 2
        if not gradients or largest >= limit:
            # No norm is greater.
            return
        most = largest * MOST_TIMES
        with torch.no_grad():
            norm = (total_norm + EPS).clamp(largest, most if most < limit else None)
            root = torch.rsqrt(norm * (1 / largest))
            for _ in range(2):
                if foreach is False or len({each.dtype for each in gradients}) > 1:
                    for gradient in gradients:
                        gradient.mul_(root)
                else:
                    torch._foreach_mul_(gradients, root)

    return clip


def _install() -> None:
    """PyTorch has it under two names."""
    by_root = _by_root(clip_grad._clip_grads_with_norm_)
    clip_grad._clip_grads_with_norm_ = by_root
    torch.nn.utils.clip_grads_with_norm_ = by_root


_install()
