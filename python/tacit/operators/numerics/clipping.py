"""Clipping of gradients by a secret norm, for ``torch.nn.utils.clip_grad_norm_``.

PyTorch computes the norm. The factor max_norm / norm is small if gradients explode, which is when
it matters. With 16 fraction bits, a factor of 10^−4 is off by 7%, and one of 10^−5 becomes 0 or is
half as large again. Its root has eight fraction bits more, and is 10^−2.5 in the latter case. So
gradients are multiplied twice by the root √(1 / (norm / max_norm)). The norm counts as at least
max_norm, with which gradients stay unchanged, and as at most ``MOST_TIMES`` max_norm, so that the
quotient is in range."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import torch
from torch.nn.utils import clip_grad

from tacit.tensor import SecretTensor

#: Number that PyTorch adds to the norm.
EPS = 1e-6

#: Largest ratio of a norm to max_norm. Larger norms count as this.
MOST_TIMES = 2.0**28

#: Least max_norm for this method. Below it a norm has few bits, and PyTorch computes the factor.
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
            # No norm can be greater than max_norm.
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
    """Replaces PyTorch's function under both of its names."""
    by_root = _by_root(clip_grad._clip_grads_with_norm_)
    clip_grad._clip_grads_with_norm_ = by_root
    torch.nn.utils.clip_grads_with_norm_ = by_root


_install()
