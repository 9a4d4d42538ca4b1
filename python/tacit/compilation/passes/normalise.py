"""Normalises a draft.

Requires: any draft. Ensures: there is no dropout, no copy and no dead code; constant folding leaves
one constant for whatever depends on public constants alone. Saves: the cost of these, and lets
other passes see which operator follows which."""

from typing import Any

import torch
from torch import fx

from tacit.compilation.allowlist import PLACES, is_pure
from tacit.compilation.graph import Draft, Node

aten = torch.ops.aten

#: Operators that return their operand.
COPIES = (
    aten.alias.default,
    aten.clone.default,
    aten.contiguous.default,
    aten.detach.default,
    aten.dropout.default,
    aten.lift_fresh_copy.default,
    aten.feature_dropout.default,
)

#: Operators that return their operand if it already has the dtype.
CASTS = (aten._to_copy.default, aten.to.dtype, aten.to.dtype_layout)

#: Operators that require a memory layout, which the copy before them made.
VIEWS = (aten.view.default, aten._unsafe_view.default)


def normalise(draft: Draft) -> None:
    """Normalises a draft, in place."""
    for node in list(draft.graph.nodes):
        if node.op == "call_function":
            _normalise(draft, node)
    draft.drop_dead()


def _normalise(draft: Draft, node: Node) -> None:
    source = node.args[0] if node.args else None
    if node.target in VIEWS:
        node.target = aten.reshape.default
    if isinstance(source, fx.Node) and (node.target in COPIES or _is_idle(draft, node, source)):
        node.replace_all_uses_with(source)
        draft.graph.erase_node(node)
    elif _is_known(draft, node):
        _compute(draft, node)
    else:
        node.kwargs = {name: value for name, value in node.kwargs.items() if name not in PLACES}


def _is_idle(draft: Draft, node: Node, source: Node) -> bool:
    if node.target not in CASTS:
        return False
    dtype = node.kwargs.get("dtype", node.args[1] if len(node.args) > 1 else None)
    return dtype is None or dtype == _dtype(draft, source)


def _dtype(draft: Draft, node: Node) -> Any:
    for known in (draft.examples, draft.constants):
        if node.name in known:
            return known[node.name].dtype
    value = node.meta.get("value")
    return getattr(value, "dtype", None)


def _is_known(draft: Draft, node: Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload) or not is_pure(node.target):
        return False
    return all(draft.is_constant(each) for each in node.all_input_nodes)


def _compute(draft: Draft, node: Node) -> None:
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda of: draft.constants[of.name])
    with torch.no_grad():
        result = node.target(*args, **kwargs)
    if isinstance(result, torch.Tensor):
        node.replace_all_uses_with(draft.add_constant(node.name, result))
        draft.graph.erase_node(node)
