"""Operators of tacit's own, for what PyTorch has no single one: registered with PyTorch, so that they stand
in graphs beside its own, are traced, and work on plain tensors, with data or without, too."""

from collections.abc import Sequence

import torch
from torch.nn import functional

LIBRARY = torch.library.Library("tacit", "DEF")  # type: ignore[no-untyped-call]

LIBRARY.define(  # type: ignore[no-untyped-call]
    "rectified_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
    "int[2] dilation=1, bool ceil_mode=False) -> Tensor"
)


@torch.library.impl(LIBRARY, "rectified_max_pool2d", "CompositeExplicitAutograd")
def rectified_max_pool2d(
    x: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> torch.Tensor:
    """max(x, 0) over windows of images (N, C, H, W): a max pooling with zero as one more candidate."""
    settings = (tuple(kernel_size), tuple(stride) or None, tuple(padding), tuple(dilation))
    return functional.max_pool2d(x, *settings, ceil_mode=ceil_mode).clamp_min(0)
