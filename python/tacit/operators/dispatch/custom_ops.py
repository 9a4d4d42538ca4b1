"""Custom operators of tacit, for functions that are no single operator in PyTorch.

They are registered with PyTorch. So they appear in graphs next to PyTorch's operators, can be
traced, and work on plain tensors too, with or without data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

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
    """Pools windows of images (N, C, H, W) by max(x, 0): zero is one more candidate."""
    settings = (tuple(kernel_size), tuple(stride) or None, tuple(padding), tuple(dilation))
    return functional.max_pool2d(x, *settings, ceil_mode=ceil_mode).clamp_min(0)


LIBRARY.define("one_sided(Tensor self, Tensor below) -> Tensor")  # type: ignore[no-untyped-call]


@torch.library.impl(LIBRARY, "one_sided", "CompositeExplicitAutograd")
def one_sided(x: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """Computes min(x, 0) where ``below`` is true, else max(x, 0). ``below`` broadcasts to x."""
    if torch.broadcast_shapes(x.shape, below.shape) != x.shape:  # type: ignore[no-untyped-call]
        raise ValueError(
            f"sides of shape {tuple(below.shape)} of numbers of shape {tuple(x.shape)}"
        )
    return torch.where(below, x.clamp_max(0), x.clamp_min(0))


LIBRARY.define(  # type: ignore[no-untyped-call]
    "sparse_product(Tensor values, Tensor dense, Tensor indices, int rows) -> Tensor"
)


@torch.library.impl(LIBRARY, "sparse_product", "CompositeExplicitAutograd")
def sparse_product(
    values: torch.Tensor, dense: torch.Tensor, indices: torch.Tensor, rows: int
) -> torch.Tensor:
    """Multiplies a sparse matrix, given by the positions (2, count) of its values, by (k, n)."""
    terms = dense[indices[1]] * values.unsqueeze(1)
    zeros = torch.zeros(rows, dense.shape[1], dtype=terms.dtype, device=terms.device)
    return zeros.index_add(0, indices[0], terms)


# Affine maps
# ----------------------------------------------------------------------------

#: Schema of an affine map. It is a sum of products of inputs and weights, a bias for each channel,
#: and addends of the result's shape. The products are convolutions of images if the weights have
#: four dimensions, each with ``GEOMETRY`` numbers, and linear layers if the weights have two.
AFFINE = "(Tensor[] x, Tensor[] weight, Tensor? bias, Tensor[] addends, int[] geometry) -> Tensor"

LIBRARY.define("affine" + AFFINE)  # type: ignore[no-untyped-call]
LIBRARY.define("rectified_affine" + AFFINE)  # type: ignore[no-untyped-call]

#: Number of integers that describe a convolution: stride, padding and dilation, each height before
#: width, and groups.
GEOMETRY = 7


class Steps(NamedTuple):
    """Stride, padding, dilation and groups of a convolution."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int

    @staticmethod
    def all_of(geometry: Sequence[int]) -> "list[Steps]":
        """Splits the concatenated numbers of several convolutions."""
        cut = [list(geometry[at : at + GEOMETRY]) for at in range(0, len(geometry), GEOMETRY)]
        return [Steps(each[0:2], each[2:4], each[4:6], each[6]) for each in cut]


def check_affine(
    x: Sequence[torch.Tensor], weight: Sequence[torch.Tensor], geometry: Sequence[int]
) -> None:
    """Checks that the operands of an affine map fit each other.

    Raises:
        ValueError: they are neither a sum of convolutions nor one of linear layers.
    """
    convolutions = [
        each.dim() == 4 and factor.dim() == 4 for each, factor in zip(x, weight, strict=True)
    ]
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
    """Computes an affine map by PyTorch's operators."""
    check_affine(x, weight, geometry)
    if weight[0].dim() == 2:
        summands = [functional.linear(each, factor) for each, factor in zip(x, weight, strict=True)]
    else:
        steps = Steps.all_of(geometry)
        summands = [
            functional.conv2d(a, w, None, *how) for a, w, how in zip(x, weight, steps, strict=True)
        ]
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
    """Adds convolutions, or linear layers, a bias and other tensors."""
    return composed(x, weight, bias, addends, geometry)


@torch.library.impl(LIBRARY, "rectified_affine", "CompositeExplicitAutograd")
def rectified_affine(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    bias: torch.Tensor | None,
    addends: Sequence[torch.Tensor],
    geometry: Sequence[int],
) -> torch.Tensor:
    """Computes max(0, .) of an affine map."""
    return composed(x, weight, bias, addends, geometry).clamp_min(0)


# Root mean squares
# -----------------------------------------------------------------------------------------

#: RMS normalisation with its own gradients. Without a GPU, PyTorch composes it from squares and
#: their mean, in which small rows would lose their bits.
for _definition in (
    "rms_norm(Tensor self, int dims, Tensor? weight, float eps) -> (Tensor, Tensor)",
    "rms_norm_backward(Tensor gradient, Tensor self, Tensor rstd, int dims, Tensor? weight) -> "
    "Tensor",
    "rms_norm_weight_backward(Tensor gradient, Tensor self, Tensor rstd, int dims) -> Tensor",
):
    LIBRARY.define(_definition)  # type: ignore[no-untyped-call]


def last_of(x: torch.Tensor, dims: int) -> list[int]:
    """Returns the last ``dims`` dimensions of x.

    Raises:
        ValueError: x has fewer dimensions. A loaded program may name any number.
    """
    if not 0 < dims <= x.dim():
        raise ValueError(f"the last {dims} dimensions of {x.dim()}")
    return list(range(x.dim() - dims, x.dim()))


@torch.library.impl(LIBRARY, "rms_norm", "CompositeExplicitAutograd")
def rms_norm(
    x: torch.Tensor, dims: int, weight: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes x·r·weight and r, with r = 1 / √(mean of x² + ε) along the last dimensions."""
    root = torch.rsqrt(x.square().mean(last_of(x, dims), keepdim=True) + eps)
    return (x * root if weight is None else x * root * weight), root


@torch.library.impl(LIBRARY, "rms_norm_backward", "CompositeExplicitAutograd")
def rms_norm_backward(
    gradient: torch.Tensor,
    x: torch.Tensor,
    rstd: torch.Tensor,
    dims: int,
    weight: torch.Tensor | None,
) -> torch.Tensor:
    """Computes the gradient of x: r·(g − x̂·mean(g·x̂)) with x̂ = x·r and g = gradient·weight."""
    normal, g = x * rstd, gradient if weight is None else gradient * weight
    return (g - normal * (g * normal).mean(last_of(x, dims), keepdim=True)) * rstd


@torch.library.impl(LIBRARY, "rms_norm_weight_backward", "CompositeExplicitAutograd")
def rms_norm_weight_backward(
    gradient: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, dims: int
) -> torch.Tensor:
    """Computes the gradient of the weight: Σ gradient·x̂ along all but the last dimensions."""
    products = gradient * (x * rstd)
    return products.sum(list(range(x.dim() - dims))) if x.dim() > dims else products


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    x, ctx.dims, weight, ctx.eps = inputs
    ctx.save_for_backward(x, output[1], weight)
    ctx.set_materialize_grads(False)


def _gradients(
    ctx: Any, gradient: torch.Tensor | None, _of_root: torch.Tensor | None
) -> tuple[Any, ...]:
    x, rstd, weight = ctx.saved_tensors
    if gradient is None:
        return None, None, None, None
    own = torch.ops.tacit
    if torch.is_grad_enabled():
        # For higher derivatives, everything is composed from PyTorch's own operators.
        rstd = torch.rsqrt(x.square().mean(last_of(x, ctx.dims), keepdim=True) + ctx.eps)
        of_x, of_weight = rms_norm_backward, rms_norm_weight_backward
    else:
        of_x, of_weight = own.rms_norm_backward, own.rms_norm_weight_backward
    wants_x, _, wants_weight, _ = ctx.needs_input_grad
    return (
        of_x(gradient, x, rstd, ctx.dims, weight) if wants_x else None,
        None,
        of_weight(gradient, x, rstd, ctx.dims) if wants_weight else None,
        None,
    )


torch.library.register_autograd("tacit::rms_norm", _gradients, setup_context=_keep, lib=LIBRARY)
