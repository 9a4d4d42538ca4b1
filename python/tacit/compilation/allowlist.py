"""Which operators a compiled program may call: those that secret tensors have, and what PyTorch
makes of several of these; nothing that writes, reads files or draws numbers. A program comes from
another party, so this is also what protects who runs it."""

from collections.abc import Mapping, Sequence
from functools import cache
from operator import getitem
from typing import Any

import torch

from tacit.operators import TABLE

aten = torch.ops.aten

#: Operators that PyTorch composes of those in the table whenever they are called; kept whole, they
#: are easier to recognise. Some of them would draw numbers in training, in which no program is
#: (``trains``).
COMPOSITE = frozenset(
    {
        aten.adaptive_avg_pool1d.default,
        aten.avg_pool1d.default,
        aten.batch_norm.default,
        aten.chunk.default,
        aten.conv1d.default,
        aten.conv2d.default,
        aten.conv3d.default,
        aten.conv_transpose1d.default,
        aten.conv_transpose2d.input,
        aten.conv_transpose3d.input,
        aten.einsum.default,
        aten.flatten.using_ints,
        aten.group_norm.default,
        aten.gru.input,
        aten.hardswish.default,
        aten.instance_norm.default,
        aten.layer_norm.default,
        aten.linear.default,
        aten.log_softmax.int,
        aten.lstm.input,
        aten.matmul.default,
        aten.max_pool1d.default,
        aten.max_pool2d.default,
        aten.max_pool3d.default,
        aten.movedim.int,
        aten.narrow.default,
        aten.pad.default,
        aten.pixel_shuffle.default,
        aten.relu6.default,
        aten.reshape.default,
        aten.rms_norm.default,
        aten.scaled_dot_product_attention.default,
        aten.selu.default,
        aten.softmax.int,
        aten.square.default,
        aten.tile.default,
        aten.unflatten.int,
        aten.upsample_bilinear2d.vec,
        aten.upsample_nearest2d.vec,
    }
)

#: What secret tensors have, and no program: PyTorch believes its arguments, and reads whatever is
#: in memory. It is what others are made of that programs may call.
BELIEVED = frozenset({aten._reshape_alias.default, aten.mkldnn_rnn_layer.default})

#: They say where and how a tensor lies, which its components decide for themselves.
PLACES = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking"})

#: Namespaces of operators: PyTorch's, and tacit's own.
NAMESPACES = ("aten", "tacit")


def is_allowed(target: Any) -> bool:
    """Whether a program may call it."""
    if target is getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target.namespace not in NAMESPACES:
        return False
    # What is empty holds whatever was in memory.
    is_empty = "empty" in target._schema.name
    # No program trains, and PyTorch takes what gradients are made of as its own forward pass leaves
    # it.
    is_gradient = "_backward" in target._schema.name
    is_refused = is_empty or is_gradient or target in BELIEVED
    return target in COMPOSITE or (target in TABLE and is_pure(target) and not is_refused)


def is_pure(target: Any) -> bool:
    """Whether it gives the same whenever it is called, and changes nothing."""
    return not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags


def trains(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether an operator is called as in training: it would draw numbers, or change its
    statistics. What has no statistics of its own, as a normalisation by those of the batch, does
    neither."""
    if not isinstance(target, torch._ops.OpOverload):
        return False
    given = by_names(target._schema, args, kwargs)
    if given.get("dropout_p", 0.0) != 0.0:
        return True
    flags = [given.get(name, False) for name in ("train", "training")]
    return any(flag is not False for flag in flags) and given.get("running_mean", True) is not None


def by_names(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, by the names that an operator has for them."""
    names = [argument.name for argument in schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


@cache
def by_name() -> dict[str, Any]:
    """All of them, by the name that programs have them under."""
    known = {name_of(target): target for target in (*TABLE, *COMPOSITE) if is_allowed(target)}
    return {**known, ITEM: getitem}


#: The name of taking one of several results.
ITEM = "item"


def name_of(target: Any) -> str:
    """As programs have it: ``aten.relu.default``."""
    return ITEM if target is getitem else str(target)
