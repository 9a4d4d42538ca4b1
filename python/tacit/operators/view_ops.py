"""Views, and other operators that only move data.

They apply PyTorch's own operator to each component. Several tensors that are joined are brought to
one scale.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from tacit import checks
from tacit.fixed import WHOLE, Scale
from tacit.operators.dispatch.operands import (
    Number,
    common_scale,
    is_secret,
    lifted,
    lifted_bits,
    moved,
    placed,
    result_dtype,
    session_of,
)
from tacit.operators.dispatch.scales import of_target
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics import deferred_powers, remembered_squares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Operators with one secret operand and one result.
ONE_TO_ONE = (
    aten.alias.default,
    aten.alias_copy.default,
    aten._unsafe_view.default,
    aten.channel_shuffle.default,
    aten.detach.default,
    aten.diag_embed.default,
    aten.diagonal.default,
    aten.diagonal_copy.default,
    aten.expand_copy.default,
    aten.flip.default,
    aten.lift_fresh.default,
    aten.narrow_copy.default,
    aten.permute.default,
    aten.permute_copy.default,
    aten.pixel_shuffle.default,
    aten.pixel_unshuffle.default,
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
    aten.repeat.default,
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
    aten.roll.default,
    aten.rot90.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.t.default,
    aten.t_copy.default,
    aten.transpose.int,
    aten.transpose_copy.int,
    aten.tril.default,
    aten.triu.default,
    aten.unfold.default,
    aten.unfold_copy.default,
    aten.unsqueeze.default,
    aten.unsqueeze_copy.default,
    aten.view.default,
    aten.view_copy.default,
)

#: Operators with one secret operand and several results.
ONE_TO_MANY = (
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.split_with_sizes_copy.default,
    aten.unbind.int,
    aten.unbind_copy.int,
    aten.unsafe_split.Tensor,
)


def _one_to_one(overload: Any) -> None:
    @implements(overload)
    def move(x: SecretTensor, *args: Any, **kwargs: Any) -> SecretTensor:
        if not isinstance(x, SecretTensor):
            unsupported(f"{overload} by secret positions", "use public ones")
        return moved(x, lambda part: overload(part, *args, **kwargs))


@implements(aten.clone.default)
def clone(x: SecretTensor, *, memory_format: torch.memory_format | None = None) -> SecretTensor:
    """Returns a copy of a tensor. No interaction.

    The copy remembers what the original remembers (``remembered_squares``).
    """
    copied = moved(x, partial(torch.clone, memory_format=memory_format))
    remembered_squares.carry(copied, x)
    return copied


@implements(aten.expand.default)
def expand(x: SecretTensor, shape: Sequence[int], *, implicit: bool = False) -> SecretTensor:  # noqa: ARG001
    """Repeats a tensor along dimensions, as a view. No interaction.

    A deferred value stays deferred (``deferred_powers``).
    """
    later = deferred_powers.expanded(x, shape)
    return later if later is not None else moved(x, lambda part: part.expand(shape))


@implements(aten._reshape_alias.default)
def reshape_alias(x: SecretTensor, size: Sequence[int], stride: Sequence[int]) -> SecretTensor:  # noqa: ARG001
    """Returns a view with another shape. No interaction.

    Strides are ignored. PyTorch would accept any strides, and read memory beyond the tensor. The
    strides that PyTorch itself passes are those of the view.
    """
    return moved(x, lambda part: part.view(size))


def _one_to_many(overload: Any) -> None:
    @implements(overload)
    def move(x: SecretTensor, *args: Any, **kwargs: Any) -> list[SecretTensor]:
        pieces = zip(*(overload(part, *args, **kwargs) for part in x._parts), strict=True)
        results = [x.like(tuple(piece), unreduced=x._unreduced) for piece in pieces]
        for result in results:
            checks.inherit(x._session, result._parts, x._parts)
        return results


def _strided(overload: Any) -> None:
    @implements(overload)
    def move(
        x: SecretTensor,
        size: Sequence[int],
        stride: Sequence[int],
        storage_offset: int | None = None,
    ) -> SecretTensor:
        """Returns elements at strides through the storage of a tensor that is not a view."""
        if any(
            part.untyped_storage().nbytes() != part.numel() * part.itemsize for part in x._parts
        ):
            unsupported("strides through the memory of a view", "clone it first")
        last = sum((number - 1) * step for number, step in zip(size, stride, strict=True))
        if (storage_offset or 0) + last >= max(x.numel(), 1):
            unsupported("strides beyond what was shared", "share all elements that they reach")
        return moved(x, lambda part: overload(part, size, stride, storage_offset))


_strided(aten.as_strided.default)
_strided(aten.as_strided_copy.default)
for _overload in ONE_TO_ONE:
    _one_to_one(_overload)
for _overload in ONE_TO_MANY:
    _one_to_many(_overload)


def _at_one_scale(tensors: Sequence[Any], scale: Scale) -> tuple[list[Parts], Scale, torch.dtype]:
    session, dtype = session_of(*tensors), tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = result_dtype(torch.empty(1, dtype=dtype), torch.empty(1, dtype=tensor.dtype))
    if dtype == torch.bool:
        return [lifted_bits(session, tensor) for tensor in tensors], WHOLE, dtype
    return [lifted(session, tensor, scale) for tensor in tensors], scale, dtype


@implements(aten.cat.default)
def cat(tensors: Sequence[Any], dim: int = 0) -> SecretTensor:
    """Concatenates tensors. Public tensors among them need no interaction."""
    filled = [tensor for tensor in tensors if tensor.dim() != 1 or tensor.numel()] or list(tensors)
    if not is_secret(*filled):
        unsupported("joining public tensors and an empty secret one", "leave the empty one out")
    parts, scale, dtype = _at_one_scale(filled, common_scale(*tensors))
    return _joined(tensors, parts, partial(torch.cat, dim=dim), scale, dtype)


@implements(aten.stack.default)
def stack(tensors: Sequence[Any], dim: int = 0) -> SecretTensor:
    """Stacks tensors along a new dimension."""
    parts, scale, dtype = _at_one_scale(tensors, common_scale(*tensors))
    return _joined(tensors, parts, partial(torch.stack, dim=dim), scale, dtype)


def _joined(
    tensors: Sequence[Any],
    parts: Sequence[Parts],
    join: Callable[[list[torch.Tensor]], torch.Tensor],
    scale: Scale,
    dtype: torch.dtype,
) -> SecretTensor:
    session = session_of(*tensors)
    joined = tuple(join(list(same)) for same in zip(*parts, strict=True))
    checks.inherit(session, joined, *parts)
    return SecretTensor(joined, scale, session, dtype)


@implements(aten.constant_pad_nd.default, scale=of_target)
def constant_pad_nd(x: SecretTensor, pad: Sequence[int], value: Number = 0) -> SecretTensor:
    """Pads a tensor with a public constant."""
    if value == 0:
        return moved(x, lambda part: aten.constant_pad_nd(part, pad))
    fill, session = torch.tensor(value).to(x.dtype), x._session
    constant = (
        lifted_bits(session, fill)
        if x.dtype == torch.bool
        else placed(session, fill, x._scale, x._scale)
    )
    padded = zip(x._parts, constant, strict=True)
    parts = tuple(aten.constant_pad_nd(part, pad, int(word)) for part, word in padded)
    return x.like(parts, unreduced=x._unreduced)


@implements(aten.im2col.default)
def im2col(
    x: SecretTensor,
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> SecretTensor:
    """Returns windows as columns: (N, C, H, W) becomes (N, C·h·w, windows)."""
    span = [step * (size - 1) + 1 for step, size in zip(dilation, kernel, strict=True)]

    def move(part: torch.Tensor) -> torch.Tensor:
        images = part if part.dim() == 4 else part.unsqueeze(0)
        images = aten.constant_pad_nd(images, [padding[1], padding[1], padding[0], padding[0]])
        windows = images.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
        windows = windows[..., :: dilation[0], :: dilation[1]].permute(0, 1, 4, 5, 2, 3)
        columns = windows.flatten(4).flatten(1, 3)
        return columns if part.dim() == 4 else columns[0]

    return moved(x, move)
