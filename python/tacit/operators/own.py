"""Operators of tacit's own, for what PyTorch has no single one: registered with PyTorch, so that they stand
in graphs beside its own, are traced, and work on plain tensors, with data or without, too."""

from collections.abc import Sequence
from typing import NamedTuple

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


# Affine maps -----------------------------------------------------------------------------------------------

#: What an affine map is made of: products of inputs and weights, which are convolutions of images where the
#: weights have four dimensions, each with ``GEOMETRY`` numbers of its own, and linear layers where they have
#: two; a bias for each channel; and summands of the result's shape.
AFFINE = "(Tensor[] x, Tensor[] weight, Tensor? bias, Tensor[] addends, int[] geometry) -> Tensor"

LIBRARY.define("affine" + AFFINE)  # type: ignore[no-untyped-call]
LIBRARY.define("rectified_affine" + AFFINE)  # type: ignore[no-untyped-call]

#: Numbers that say how filters go over images: stride, padding and dilation, each height before width, and
#: groups.
GEOMETRY = 7


class Steps(NamedTuple):
    """How filters go over images."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int

    @staticmethod
    def all_of(geometry: Sequence[int]) -> "list[Steps]":
        """Of each convolution, of the numbers of all."""
        cut = [list(geometry[at : at + GEOMETRY]) for at in range(0, len(geometry), GEOMETRY)]
        return [Steps(each[0:2], each[2:4], each[4:6], each[6]) for each in cut]


def check_affine(x: Sequence[torch.Tensor], weight: Sequence[torch.Tensor], geometry: Sequence[int]) -> None:
    """Holds operands of an affine map against each other.

    Raises:
        ValueError: they are no sum of convolutions, and none of linear layers.
    """
    convolutions = [each.dim() == 4 and factor.dim() == 4 for each, factor in zip(x, weight, strict=True)]
    if not weight or any(convolutions) != all(convolutions):
        raise ValueError("an affine map is a sum of convolutions of images, or of linear layers")
    shapes = zip(x, weight, strict=True)
    if not convolutions[0] and not all(factor.dim() == 2 and each.dim() for each, factor in shapes):
        raise ValueError("the weights of linear layers have two dimensions")
    if len(geometry) != GEOMETRY * sum(convolutions):
        raise ValueError(f"each convolution has {GEOMETRY} numbers of its geometry")


def composed(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    bias: torch.Tensor | None,
    addends: Sequence[torch.Tensor],
    geometry: Sequence[int],
) -> torch.Tensor:
    """An affine map of PyTorch's operators."""
    check_affine(x, weight, geometry)
    if weight[0].dim() == 2:
        summands = [functional.linear(each, factor) for each, factor in zip(x, weight, strict=True)]
    else:
        steps = Steps.all_of(geometry)
        summands = [functional.conv2d(a, w, None, *how) for a, w, how in zip(x, weight, steps, strict=True)]
        bias = None if bias is None else bias.reshape(1, -1, 1, 1)
    total = summands[0]
    for each in (*summands[1:], *addends):
        if each.shape != total.shape:
            raise ValueError(f"summands of shapes {tuple(total.shape)} and {tuple(each.shape)}")
        total = total + each
    return total if bias is None else total + bias


@torch.library.impl(LIBRARY, "affine", "CompositeExplicitAutograd")
def affine(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    bias: torch.Tensor | None,
    addends: Sequence[torch.Tensor],
    geometry: Sequence[int],
) -> torch.Tensor:
    """The sum of convolutions, or of linear layers, of a bias and of other tensors."""
    return composed(x, weight, bias, addends, geometry)


@torch.library.impl(LIBRARY, "rectified_affine", "CompositeExplicitAutograd")
def rectified_affine(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    bias: torch.Tensor | None,
    addends: Sequence[torch.Tensor],
    geometry: Sequence[int],
) -> torch.Tensor:
    """max(0, .) of the same."""
    return composed(x, weight, bias, addends, geometry).clamp_min(0)
