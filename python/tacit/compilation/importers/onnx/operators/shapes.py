"""Operators that move elements and compute nothing. None of them looks at a value."""

from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements

#: Greatest number of positions along an axis that are listed one by one.
MOST_PLACES = 1 << 20


def as_list(value: Any) -> list[Any]:
    """Returns a known value as a list, also if the file gives one without dimension."""
    return list(value) if isinstance(value, list) else [value]


@implements("Reshape", known=(1,))
def reshape(node: Node, x: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """Reshapes. A size of 0 takes the input's size there, unless ``allowzero`` is set."""
    if not node.flag("allowzero"):
        shape = [x.shape[at] if size == 0 else size for at, size in enumerate(shape)]
    return x.reshape(shape)


@implements("Flatten")
def flatten(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Flattens to a matrix: what is before the axis, by what is after it."""
    axis = node.integer("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    if axis == 1 and x.ndim > 1:
        return torch.flatten(x, 1)
    rows = 1
    for size in x.shape[:axis]:
        rows *= size
    return x.reshape(rows, x.numel() // rows if rows else 0)


@implements("Transpose")
def transpose(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Reorders dimensions; reverses them if no order is given."""
    order = node.integers("perm")
    return x.permute(list(range(x.ndim))[::-1] if order is None else order)


@implements("Squeeze", known=(1,))
def squeeze(_: Node, x: torch.Tensor, axes: Any = None) -> torch.Tensor:
    """Removes dimensions of size 1."""
    if axes is None:
        return x.squeeze()
    wrong = [axis for axis in as_list(axes) if x.shape[axis] != 1]
    if wrong:
        raise ValueError(f"dimension {wrong[0]} of {tuple(x.shape)} is not 1")
    return x.squeeze(tuple(as_list(axes)))


@implements("Unsqueeze", known=(1,))
def unsqueeze(_: Node, x: torch.Tensor, axes: Any) -> torch.Tensor:
    """Adds dimensions of size 1, at positions that count in the result."""
    axes = as_list(axes)
    rank = x.ndim + len(axes)
    for axis in sorted(axis + rank if axis < 0 else axis for axis in axes):
        x = x.unsqueeze(axis)
    return x


@implements("Expand", known=(1,))
def expand(_: Node, x: torch.Tensor, shape: Any) -> torch.Tensor:
    """Broadcasts to the common shape of the input and a given shape."""
    broadcast: Any = torch.broadcast_shapes
    return x.expand(broadcast(x.shape, tuple(as_list(shape))))


@implements("Tile", known=(1,))
def tile(_: Node, x: torch.Tensor, repeats: Any) -> torch.Tensor:
    """Repeats a tensor along each dimension."""
    return x.repeat(as_list(repeats))


@implements("Concat")
def concatenate(node: Node, *inputs: torch.Tensor) -> torch.Tensor:
    """Concatenates tensors along an axis."""
    return torch.cat(inputs, node.integer("axis"))


@implements("Split", known=(1,))
def split(node: Node, x: torch.Tensor, sizes: Any = None) -> Any:
    """Splits along an axis, into parts of these sizes, or into equal parts of which the last may be
    smaller."""
    axis = node.integer("axis", 0)
    if sizes is not None:
        return torch.split(x, as_list(sizes), axis)
    if node.integer("num_outputs", node.results) != node.results:
        raise ValueError(f"it has {node.results} results")
    return torch.split(x, max(-(-x.shape[axis] // node.results), 1), axis)


@implements("Slice", known=(1, 2, 3, 4))
def take_slices(
    _: Node, x: torch.Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> torch.Tensor:
    """Takes slices as Python does, backwards too."""
    starts, ends = as_list(starts), as_list(ends)
    axes = list(range(len(starts))) if axes is None else as_list(axes)
    steps = [1] * len(starts) if steps is None else as_list(steps)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        places = range(x.shape[axis])[slice(start, _end(end, step, x.shape[axis]), step)]
        before = [slice(None)] * (axis % x.ndim)
        if not places:
            x = x[(*before, slice(0, 0))]
        elif step > 0:
            x = x[(*before, slice(places.start, places.stop, step))]
        else:
            forth = places[::-1]
            x = x[(*before, slice(forth.start, forth.stop, forth.step))].flip(axis)
    return x


def _end(end: int, step: int, size: int) -> int | None:
    """Returns the end of a slice. Backwards, an end before the first element is None in Python."""
    return None if step < 0 and end + size < 0 else end


@implements("Pad", known=(1, 2, 3))
def pad(
    node: Node, x: torch.Tensor, pads: list[int], value: Any = None, axes: Any = None
) -> torch.Tensor:
    """Pads with a public value, or with elements of the tensor; negative padding crops it."""
    axes = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in as_list(axes)]
    begins = dict(zip(axes, pads[: len(axes)], strict=True))
    ends = dict(zip(axes, pads[len(axes) :], strict=True))
    mode = node.text("mode", "constant")
    value = (as_list(value) or [0])[0] if value is not None else 0
    if mode == "constant":
        flat = [
            each
            for axis in reversed(range(x.ndim))
            for each in (begins.get(axis, 0), ends.get(axis, 0))
        ]
        while len(flat) > 2 and flat[-2:] == [0, 0]:
            del flat[-2:]
        return functional.pad(x, flat, value=value)
    for axis in axes:
        if begins[axis] or ends[axis]:
            places = _outside(mode, x.shape[axis], begins[axis], ends[axis])
            x = x.index_select(axis, torch.tensor(places, dtype=torch.int64))
    return x


def _outside(mode: str, size: int, begin: int, end: int) -> list[int]:
    """Returns which element is at each position, including those before the first and after the
    last."""
    places = range(-begin, size + end)
    if len(places) > MOST_PLACES:
        raise NotImportedError(
            f"it makes {len(places)} places along an axis", f"up to {MOST_PLACES} are imported"
        )
    if mode == "edge":
        return [min(max(at, 0), size - 1) for at in places]
    if mode == "wrap":
        return [at % size for at in places]
    if mode == "reflect":
        period = max(2 * (size - 1), 1)
        return [min(at % period, period - at % period) if size > 1 else 0 for at in places]
    raise NotImportedError(
        f"its mode {mode[:20]} is not imported", "use constant, reflect, edge or wrap"
    )


@implements("Shape")
def shape(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the sizes from one dimension to another."""
    start, end = node.integer("start", 0), node.integer("end", x.ndim)
    return torch.tensor(list(x.shape)[start:end], dtype=torch.int64)


@implements("Size")
def size(_: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the number of elements."""
    return torch.tensor(x.numel(), dtype=torch.int64)


@implements("DepthToSpace")
def depth_to_space(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Moves channels to blocks of pixels, depth first or columns first."""
    block, (batch, channels, height, width) = node.integer("blocksize", 1), x.shape
    if node.text("mode", "DCR") == "CRD":
        return functional.pixel_shuffle(x, block)
    x = x.reshape(batch, block, block, channels // block**2, height, width)
    return x.permute(0, 3, 4, 1, 5, 2).reshape(
        batch, channels // block**2, height * block, width * block
    )


@implements("SpaceToDepth")
def space_to_depth(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Moves blocks of pixels to channels."""
    block, (batch, channels, height, width) = node.integer("blocksize", 1), x.shape
    if node.text("mode", "DCR") == "CRD":
        return functional.pixel_unshuffle(x, block)
    x = x.reshape(batch, channels, height // block, block, width // block, block)
    return x.permute(0, 3, 5, 1, 2, 4).reshape(batch, -1, height // block, width // block)


@implements("CenterCropPad", known=(1,))
def center_crop_pad(node: Node, x: torch.Tensor, sizes: Any) -> torch.Tensor:
    """Crops or pads to sizes, about the middle: the smaller half comes first, of what is cropped
    and of zeros."""
    axes = node.integers("axes")
    axes = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    for axis, wanted in zip(axes, as_list(sizes), strict=True):
        missing = wanted - x.shape[axis]
        if missing <= 0:
            x = x.narrow(axis, -missing // 2, wanted)
        else:
            before = missing // 2
            x = functional.pad(x, [0, 0] * (x.ndim - 1 - axis) + [before, missing - before])
    return x


@implements("ReverseSequence", known=(1,))
def reverse_sequence(node: Node, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Reverses the first elements of each sequence, as many as it is long."""
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    if len(lengths) != x.shape[batch]:
        raise ValueError(f"it has {len(lengths)} lengths for {x.shape[batch]} sequences")
    parts = []
    for row, length in zip(x.unbind(batch), lengths, strict=True):
        axis = time if time < batch else time - 1
        first, rest = (
            row.narrow(axis, 0, length),
            row.narrow(axis, length, row.shape[axis] - length),
        )
        parts.append(torch.cat([first.flip(axis), rest], axis))
    return torch.stack(parts, batch)


@implements("Trilu", known=(1,))
def triangle(node: Node, x: torch.Tensor, k: Any = None) -> torch.Tensor:
    """Keeps what is above a diagonal, or below it."""
    diagonal = as_list(k)[0] if k is not None else 0
    return torch.triu(x, diagonal) if node.flag("upper", True) else torch.tril(x, diagonal)
