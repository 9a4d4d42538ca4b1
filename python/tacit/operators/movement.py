"""Views, and everything that only moves data: PyTorch's own operator on each component. Indices are
public; where several tensors come together they are brought to one scale."""

from collections.abc import Sequence
from typing import Any

import torch

from tacit import fixed
from tacit.fixed import WHOLE, Scale
from tacit.operators.operands import (
    Number,
    as_kind_of,
    common_scale,
    is_loose,
    lifted,
    lifted_bits,
    result_dtype,
    session_of,
)
from tacit.operators.table import assign, implements, unsupported, writable
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: One secret tensor in, one out.
ONE_TO_ONE = (
    aten.alias.default,
    aten.alias_copy.default,
    aten._reshape_alias.default,
    aten._unsafe_view.default,
    aten.channel_shuffle.default,
    aten.clone.default,
    aten.detach.default,
    aten.diag_embed.default,
    aten.diagonal.default,
    aten.diagonal_copy.default,
    aten.expand.default,
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

#: One secret tensor in, several out.
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
        return x.like(tuple(overload(part, *args, **kwargs) for part in x._parts), loose=x._loose)


def _one_to_many(overload: Any) -> None:
    @implements(overload)
    def move(x: SecretTensor, *args: Any, **kwargs: Any) -> list[SecretTensor]:
        pieces = [overload(part, *args, **kwargs) for part in x._parts]
        return [x.like(tuple(piece), loose=x._loose) for piece in zip(*pieces, strict=True)]


for _overload in ONE_TO_ONE:
    _one_to_one(_overload)
for _overload in ONE_TO_MANY:
    _one_to_many(_overload)


def _public_index(index: Any) -> Any:
    if isinstance(index, SecretTensor):
        unsupported("indexing by a secret", "index by public values, or choose by torch.where")
    return index


@implements(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(x: Any, indices: Sequence[torch.Tensor | None]) -> SecretTensor:
    """Elements at public indices."""
    indices = [_public_index(i) for i in indices]
    return x.like(tuple(aten.index.Tensor(part, indices) for part in x._parts), loose=x._loose)


@implements(aten.index_select.default)
def index_select(x: Any, dim: int, positions: torch.Tensor) -> SecretTensor:
    """Slices at public indices."""
    positions = _public_index(positions)
    return x.like(tuple(part.index_select(dim, positions) for part in x._parts), loose=x._loose)


@implements(aten.gather.default)
def gather(x: Any, dim: int, positions: torch.Tensor, *, sparse_grad: bool = False) -> SecretTensor:  # noqa: ARG001
    """Elements at public indices along a dimension."""
    positions = _public_index(positions)
    return x.like(tuple(part.gather(dim, positions) for part in x._parts), loose=x._loose)


@implements(aten.take.default)
def take(x: Any, positions: torch.Tensor) -> SecretTensor:
    """Elements at public indices of the flattened tensor."""
    positions = _public_index(positions)
    return x.like(tuple(part.reshape(-1)[positions] for part in x._parts), loose=x._loose)


@implements(aten.masked_select.default)
def masked_select(x: Any, mask: torch.Tensor) -> SecretTensor:
    """Elements where a public mask holds; how many there are would tell of a secret one."""
    if isinstance(mask, SecretTensor):
        unsupported("selecting by a secret mask", "keep the shape: torch.where chooses by a secret condition")
    return x.like(tuple(part.masked_select(mask) for part in x._parts), loose=x._loose)


@implements(aten.embedding.default)
def embedding(weight: Any, positions: torch.Tensor, *_: Any) -> SecretTensor:
    """Rows of a secret table at public indices."""
    positions = _public_index(positions)
    return weight.like(tuple(part[positions] for part in weight._parts), loose=weight._loose)


def _at_one_scale(tensors: Sequence[Any]) -> tuple[list[Parts], Scale, torch.dtype]:
    session, dtype = session_of(*tensors), tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = result_dtype(torch.empty(1, dtype=dtype), torch.empty(1, dtype=tensor.dtype))
    if dtype == torch.bool:
        return [lifted_bits(session, tensor) for tensor in tensors], WHOLE, dtype
    scale = common_scale(*tensors)
    return [lifted(session, tensor, scale) for tensor in tensors], scale, dtype


@implements(aten.cat.default)
def cat(tensors: Sequence[Any], dim: int = 0) -> SecretTensor:
    """Tensors one after another; public ones among them stay free of interaction."""
    tensors = [tensor for tensor in tensors if tensor.dim() != 1 or tensor.numel()] or list(tensors)
    if not any(isinstance(tensor, SecretTensor) for tensor in tensors):
        unsupported("joining public tensors and an empty secret one", "leave the empty one out")
    parts, scale, dtype = _at_one_scale(tensors)
    joined = tuple(torch.cat(list(same), dim) for same in zip(*parts, strict=True))
    return SecretTensor(joined, scale, session_of(*tensors), dtype)


@implements(aten.stack.default)
def stack(tensors: Sequence[Any], dim: int = 0) -> SecretTensor:
    """Tensors side by side along a new dimension."""
    parts, scale, dtype = _at_one_scale(tensors)
    joined = tuple(torch.stack(list(same), dim) for same in zip(*parts, strict=True))
    return SecretTensor(joined, scale, session_of(*tensors), dtype)


@implements(aten.constant_pad_nd.default)
def constant_pad_nd(x: SecretTensor, pad: Sequence[int], value: Number = 0) -> SecretTensor:
    """Padding by a public constant."""
    if value == 0:
        return x.like(tuple(aten.constant_pad_nd(part, pad) for part in x._parts), loose=x._loose)
    fill, session = torch.tensor(value).to(x.dtype), x._session
    constant = lifted_bits(session, fill) if x.dtype == torch.bool else lifted(session, fill, x._scale)
    padded = zip(x._parts, constant, strict=True)
    parts = tuple(aten.constant_pad_nd(part, pad, int(word)) for part, word in padded)
    return x.like(parts, loose=x._loose)


@implements(aten.index_put_.default)
def index_put_(
    x: Any, indices: Sequence[torch.Tensor | None], values: Any, accumulate: bool = False
) -> SecretTensor:
    """Writes (or adds) values at public indices."""
    if not isinstance(x, SecretTensor):
        unsupported("writing a secret into a plain tensor", "share the target first")
    if accumulate and x.dtype == torch.bool:
        unsupported("adding booleans", "convert them to integers first")
    if accumulate and is_loose(x.dtype):
        return assign(x, index_put(x, indices, values, True))
    _put(writable(x), indices, as_kind_of(values, x)._parts, accumulate)
    return x


def _put(parts: Parts, indices: Sequence[torch.Tensor | None], values: Parts, accumulate: bool) -> None:
    indices = tuple(_public_index(index) for index in indices)
    for part, new in zip(parts, values, strict=True):
        part.index_put_(indices, new, accumulate)


@implements(aten.index_put.default)
def index_put(
    x: Any, indices: Sequence[torch.Tensor | None], values: Any, accumulate: bool = False
) -> SecretTensor:
    """A copy with values at public indices."""
    if not isinstance(x, SecretTensor):
        unsupported("writing a secret into a plain tensor", "share the target first")
    if accumulate and x.dtype == torch.bool:
        unsupported("adding booleans", "convert them to integers first")
    written = x.like(_copied(x), loose=x._loose or (accumulate and is_loose(x.dtype)))
    _put(written._parts, indices, as_kind_of(values, x)._parts, accumulate)
    return written


def _copied(x: SecretTensor) -> Parts:
    return tuple(part.clone() for part in x._parts)


def _scatters_view(overload: Any, view_of: Any) -> None:
    @implements(overload)
    def scatter_view(x: Any, source: Any, *args: Any, **kwargs: Any) -> SecretTensor:
        """A copy, with that view of it replaced."""
        if not isinstance(x, SecretTensor):
            unsupported("writing a secret into a plain tensor", "share the target first")
        result = x.like(_copied(x), loose=x._loose)
        assign(view_of(result, *args, **kwargs), source)
        return result


for _overload, _view in (
    (aten.diagonal_scatter.default, aten.diagonal.default),
    (aten.select_scatter.default, aten.select.int),
    (aten.slice_scatter.default, aten.slice.Tensor),
):
    _scatters_view(_overload, _view)


def _writes_at_indices(overload: Any, in_words: Any, adds: bool = False) -> None:
    """Operators (x, dim, public indices, values) that write or add along a dimension."""

    @implements(overload)
    def write(x: Any, dim: int, positions: torch.Tensor, values: Any, *, alpha: Number = 1) -> SecretTensor:
        """A copy of x, written at public indices."""
        if alpha != 1:
            unsupported(f"{overload} with alpha", "multiply the values first")
        if not isinstance(x, SecretTensor):
            unsupported("writing a secret into a plain tensor", "share the target first")
        positions, values = _public_index(positions), as_kind_of(values, x)
        written = zip(x._parts, values._parts, strict=True)
        parts = tuple(in_words(part, dim, positions, new) for part, new in written)
        return x.like(parts, loose=x._loose or (adds and is_loose(x.dtype)))


for _overload, _in_words in (
    (aten.index_copy.default, aten.index_copy.default),
    (aten.index_fill.int_Scalar, aten.index_fill.int_Tensor),
    (aten.index_fill.int_Tensor, aten.index_fill.int_Tensor),
    (aten.scatter.src, aten.scatter.src),
):
    _writes_at_indices(_overload, _in_words)
for _overload in (aten.index_add.default, aten.scatter_add.default):
    _writes_at_indices(_overload, _overload, adds=True)


def _as_public_shape(overload: Any) -> None:
    @implements(overload)
    def make(x: SecretTensor, *args: Any, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
        plain = torch.empty(x.shape, dtype=dtype or x.dtype)
        made: torch.Tensor = overload(plain, *args)
        return made


for _overload in (
    aten.zeros_like.default,
    aten.ones_like.default,
    aten.full_like.default,
    aten.new_zeros.default,
    aten.new_ones.default,
    aten.new_full.default,
):
    _as_public_shape(_overload)


@implements(aten.empty_like.default, aten.new_empty.default)
def empty(
    x: SecretTensor, shape: Sequence[int] | None = None, *, dtype: torch.dtype | None = None, **_: Any
) -> SecretTensor:
    """A secret tensor to be written into; zeros until then."""
    dtype, shape = dtype or x.dtype, x.shape if shape is None else shape
    scale = fixed.of_dtype(x._session.scale, dtype)
    zeros = torch.zeros(tuple(shape), dtype=torch.uint8 if dtype == torch.bool else torch.int64)
    return SecretTensor(tuple(zeros.clone() for _ in x._parts), scale, x._session, dtype)


@implements(
    aten.rand_like.default,
    aten.randn_like.default,
    aten.bernoulli.default,
    aten.bernoulli_.float,
    aten.bernoulli.p,
    aten.uniform_.default,
    aten.normal_.default,
)
def random_like(*_args: Any, **_kwargs: Any) -> SecretTensor:
    """Refused: every party would draw other numbers."""
    unsupported(
        "a random tensor like a secret one (dropout in training makes one)",
        "call model.eval(), or share what one party draws",
    )


@implements(aten.im2col.default)
def im2col(
    x: SecretTensor,
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> SecretTensor:
    """Windows as columns: (N, C, H, W) to (N, C·h·w, windows)."""
    span = [step * (size - 1) + 1 for step, size in zip(dilation, kernel, strict=True)]

    def move(part: torch.Tensor) -> torch.Tensor:
        images = part if part.dim() == 4 else part.unsqueeze(0)
        images = aten.constant_pad_nd(images, [padding[1], padding[1], padding[0], padding[0]])
        windows = images.unfold(2, span[0], stride[0]).unfold(3, span[1], stride[1])
        windows = windows[..., :: dilation[0], :: dilation[1]].permute(0, 1, 4, 5, 2, 3)
        columns = windows.flatten(4).flatten(1, 3)
        return columns if part.dim() == 4 else columns[0]

    return x.like(tuple(move(part) for part in x._parts))
