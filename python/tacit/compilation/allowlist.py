"""Allowlist of the operators that a compiled program may call.

These are the operators of secret tensors, and operators that PyTorch composes of several of them.
None of them mutates its arguments, accesses files or draws random numbers. A program comes from
another party, so the allowlist also protects the party that runs it."""

from collections.abc import Mapping, Sequence
from functools import cache
from operator import getitem
from typing import Any

import torch

from tacit.operators import TABLE

aten = torch.ops.aten

#: Composite operators, which PyTorch decomposes into operators of the table at each call. Programs
#: keep them whole, because they are easier to recognise then. Some of them would draw random
#: numbers in training mode, which no program uses (``trains``).
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

#: Operators that secret tensors have but that no program may call: PyTorch trusts their arguments
#: and reads whatever is in memory. Operators that programs may call are composed of them.
UNCHECKED = frozenset({aten._reshape_alias.default, aten.mkldnn_rnn_layer.default})

#: Arguments that say where and how a tensor is stored. Programs pass none of them: the components
#: of a secret tensor decide this themselves.
PLACES = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking"})

#: Namespaces of operators: PyTorch's, and tacit's own.
NAMESPACES = ("aten", "tacit")


def is_allowed(target: Any) -> bool:
    """Returns whether a program may call an operator."""
    if target is getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target.namespace not in NAMESPACES:
        return False
    # An empty tensor contains whatever was in memory before.
    is_empty = "empty" in target._schema.name
    # No program trains, and PyTorch trusts the arguments of backward operators to be as its own
    # forward pass leaves them.
    is_gradient = "_backward" in target._schema.name
    is_refused = is_empty or is_gradient or target in UNCHECKED
    return target in COMPOSITE or (target in TABLE and is_pure(target) and not is_refused)


def is_pure(target: Any) -> bool:
    """Returns whether an operator gives the same result at every call and mutates nothing."""
    return not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags


def trains(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Returns whether a call would draw random numbers or update statistics, as in training mode.

    An operator without running statistics, such as a normalisation by the statistics of the batch,
    does neither."""
    if not isinstance(target, torch._ops.OpOverload):
        return False
    given = by_names(target._schema, args, kwargs)
    if given.get("dropout_p", 0.0) != 0.0:
        return True
    flags = [given.get(name, False) for name in ("train", "training")]
    return any(flag is not False for flag in flags) and given.get("running_mean", True) is not None


def by_names(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call by their names in the operator's schema."""
    names = [argument.name for argument in schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


@cache
def by_name() -> dict[str, Any]:
    """Returns all allowed operators by the names that programs use for them."""
    known = {name_of(target): target for target in (*TABLE, *COMPOSITE) if is_allowed(target)}
    return {**known, ITEM: getitem}


#: Name of the operator that takes one of several results.
ITEM = "item"


def name_of(target: Any) -> str:
    """Returns the name of an operator as programs write it, such as ``aten.relu.default``."""
    return ITEM if target is getitem else str(target)
