"""Convolutions, of one to three dimensions."""

from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements

CONVOLUTIONS: dict[int, Any] = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
TRANSPOSED: dict[int, Any] = {
    1: functional.conv_transpose1d,
    2: functional.conv_transpose2d,
    3: functional.conv_transpose3d,
}


def spatial(x: torch.Tensor) -> int:
    """Returns the number of dimensions other than batch and channels: one to three."""
    if not 3 <= x.ndim <= 5:
        raise NotImportedError(
            f"its input has {x.ndim} dimensions", "use one to three, beside batch and channels"
        )
    return x.ndim - 2


def spread(node: Node, name: str, dims: int) -> list[int]:
    """Returns an attribute with a number for each dimension, 1 by default."""
    found = node.integers(name)
    return [1] * dims if found is None else found


def padding(
    node: Node, sizes: list[int], kernel: list[int], strides: list[int], dilations: list[int]
) -> tuple[list[int], list[int]]:
    """Returns the padding before and after each dimension, as the file gives it or as it follows
    from the sizes."""
    dims, mode = len(sizes), node.text("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = node.integers("pads") or [0] * (2 * dims)
        return pads[:dims], pads[dims:]
    if mode == "VALID":
        return [0] * dims, [0] * dims
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise NotImportedError(f"its auto_pad {mode[:20]} is not known", "use pads")
    begins, ends = [], []
    for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        total = max((-(-size // stride) - 1) * stride + (width - 1) * dilation + 1 - size, 0)
        less, more = total // 2, total - total // 2
        begins.append(less if mode == "SAME_UPPER" else more)
        ends.append(more if mode == "SAME_UPPER" else less)
    return begins, ends


def padded(x: torch.Tensor, begins: list[int], ends: list[int], value: float = 0.0) -> torch.Tensor:
    """Pads a tensor with a number; negative padding crops it."""
    flat = [each for pair in zip(reversed(begins), reversed(ends), strict=True) for each in pair]
    return functional.pad(x, flat, value=value) if any(flat) else x


@implements("Conv", folds=False)
def convolution(
    node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Convolution. Padding that differs between the ends is put around the input first."""
    dims = spatial(x)
    strides, dilations = spread(node, "strides", dims), spread(node, "dilations", dims)
    begins, ends = padding(node, list(x.shape[2:]), list(weight.shape[2:]), strides, dilations)
    if begins != ends or any(begin < 0 for begin in begins):
        x, begins = padded(x, begins, ends), [0] * dims
    return CONVOLUTIONS[dims](x, weight, bias, strides, begins, dilations, node.integer("group", 1))


@implements("ConvTranspose", folds=False)
def transposed_convolution(
    node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Transposed convolution. Padding crops the result here, at either end; a given shape says by
    how much."""
    dims, group = spatial(x), node.integer("group", 1)
    strides, dilations = spread(node, "strides", dims), spread(node, "dilations", dims)
    extra = node.integers("output_padding") or [0] * dims
    sizes = zip(x.shape[2:], weight.shape[2:], strides, dilations, extra, strict=True)
    whole = [
        (size - 1) * stride + (width - 1) * far + 1 + more
        for size, width, stride, far, more in sizes
    ]
    begins, ends = _taken(node, whole, list(x.shape[2:]), strides)
    fits = all(
        more < max(stride, far) for more, stride, far in zip(extra, strides, dilations, strict=True)
    )
    if begins == ends and fits and all(begin >= 0 for begin in begins):
        return TRANSPOSED[dims](x, weight, bias, strides, begins, extra, group, dilations)
    y = TRANSPOSED[dims](x, weight, None, strides, 0, 0, group, dilations)
    more = [more - end for more, end in zip(extra, ends, strict=True)]
    y = padded(y, [-begin for begin in begins], more)
    return y if bias is None else y + bias.reshape(-1, *([1] * dims))


def _taken(
    node: Node, whole: list[int], sizes: list[int], strides: list[int]
) -> tuple[list[int], list[int]]:
    """Returns how much is cropped from the result before and after each dimension."""
    wanted, mode = node.integers("output_shape"), node.text("auto_pad", "NOTSET")
    if wanted is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    if wanted is None:
        return padding(node, sizes, [1] * len(sizes), strides, [1] * len(sizes))
    wanted = wanted[-len(sizes) :]
    totals = [have - want for have, want in zip(whole, wanted, strict=True)]
    less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (less, more) if mode == "SAME_UPPER" else (more, less)


@implements("ConvInteger", folds=False)
def integer_convolution(
    node: Node,
    x: torch.Tensor,
    weight: torch.Tensor,
    x_zero: torch.Tensor | None = None,
    weight_zero: torch.Tensor | None = None,
) -> torch.Tensor:
    """Convolution of bytes minus their zero points, exact in 32 bits. Padding stands for the zero
    point."""
    x = x.to(torch.int32) - (0 if x_zero is None else x_zero.to(torch.int32))
    weight = weight.to(torch.int32)
    if weight_zero is not None:
        channels = weight_zero.numel()
        zero = weight_zero.to(torch.int32)
        weight = weight - (
            zero.reshape([-1] + [1] * (weight.ndim - 1)) if channels > 1 else zero.reshape(())
        )
    return convolution(node, x, weight)


@implements("Col2Im", known=(1, 2), folds=False)
def column_to_image(
    node: Node, x: torch.Tensor, image: list[int], block: list[int]
) -> torch.Tensor:
    """Sums overlapping blocks to an image, in two dimensions."""
    if len(image) != 2:
        raise NotImportedError(f"it makes images of {len(image)} dimensions", "use two")
    pads = node.integers("pads") or [0] * 4
    full = [image[0] + pads[0] + pads[2], image[1] + pads[1] + pads[3]]
    found = functional.fold(
        x,
        (full[0], full[1]),
        tuple(block),
        dilation=tuple(spread(node, "dilations", 2)),
        stride=tuple(spread(node, "strides", 2)),
    )
    return found[:, :, pads[0] : full[0] - pads[2], pads[1] : full[1] - pads[3]]
