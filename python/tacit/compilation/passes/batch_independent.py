"""Joins layers of one kind that have the same input.

Requires: a normalised draft, after the passes that change weights. Ensures: such layers are one
layer, whose filters are the concatenation of theirs (query, key and value of an attention, branches
of an Inception block), unless their results together are more than the program may hold
(``peak_memory.py``). Saves: all their rounds except those of one layer. Steps of different kinds
save these too, because they run side by side (``stages.py``). The pass also saves operations: the
input is opened and multiplied once."""

from collections import defaultdict
from typing import Any

import torch
from torch import fx

from tacit.compilation.digits import Reach
from tacit.compilation.graph import Draft, Node, calls
from tacit.compilation.passes.fold_normalisation import CONVOLUTIONS
from tacit.compilation.peak_memory import held, most, size, work

aten = torch.ops.aten

#: Layers that can be joined, with the dimension of their results along which the parts lie.
OUTPUTS = {aten.linear.default: -1, **dict.fromkeys(CONVOLUTIONS, 1)}


def batch_independent(draft: Draft) -> None:
    """Joins layers of one kind on one input, in place."""
    _join_layers(draft)
    draft.drop_dead()


def _join_layers(draft: Draft) -> None:
    alike: dict[Any, list[Node]] = defaultdict(list)
    for node in calls(draft.graph, *OUTPUTS):
        key = _kind(draft, node)
        if key is not None:
            alike[key].append(node)
    unlike = [
        nodes
        for nodes in alike.values()
        if len({draft.bits_of(node.args[1]) for node in nodes}) > 1
    ]
    reach = Reach(draft) if unlike else None
    before, bound = held(draft.graph), most(draft.graph)
    for nodes in alike.values():
        for those in _of_alike_digits(draft, nodes, reach):
            for together in _held_at_once(those, before, bound):
                if len(together) > 1:
                    _join(draft, together, reach)


def _of_alike_digits(draft: Draft, nodes: list[Node], reach: Reach | None) -> list[list[Node]]:
    """Groups layers that may be joined.

    A joined layer has the fraction bits of the most exact one, which may leave too little range for
    some layers. These form groups of their own."""
    most = draft.bits_of(*(node.args[1] for node in nodes))
    by_bits: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        own = draft.bits_of(node.args[1])
        has_room = own < most and reach is not None and reach.allows(draft, node, most)
        by_bits[most if has_room else own].append(node)
    return list(by_bits.values())


def _held_at_once(nodes: list[Node], before: dict[fx.Node, int], bound: int) -> list[list[Node]]:
    """Groups as many layers as may be in memory, with their ReLUs, in addition to what is there
    when the first one runs."""
    found: list[list[Node]] = []
    there = 0
    for node in nodes:
        own = size(node) + (work(next(iter(node.users))) if _is_rectified(node) else 0)
        there += own
        if not found or there > bound:
            found.append([])
            there = before[node] - size(node) + own
        found[-1].append(node)
    return found


def _kind(draft: Draft, node: Node) -> Any:
    """Returns what layers that are joined have in common, or ``None`` if a layer cannot be
    joined."""
    bias: Any = node.args[2] if len(node.args) > 2 else None
    weight = draft.weight(node.args[1])
    if weight is None or (bias is not None and draft.weight(bias) is None) or node.kwargs:
        return None
    if not draft.may_copy(node.args[1]):
        return None
    steps = tuple(tuple(each) if isinstance(each, list | tuple) else each for each in node.args[3:])
    if node.target in CONVOLUTIONS and len(node.args) > 6 and node.args[6] != 1:
        return None
    # Without a batch, or with one bias for all channels, results have another layout.
    rank = len(node.args[0].meta["value"].shape)
    if weight.dim() < 2 or (node.target in CONVOLUTIONS and rank != weight.dim()):
        return None
    if bias is not None and draft.weights[bias.name].shape != weight.shape[:1]:
        return None
    return node.target, node.args[0], tuple(weight.shape[1:]), bias is None, steps


def _join(draft: Draft, nodes: list[Node], reach: Reach | None) -> None:
    first, graph = nodes[0], draft.graph
    names = [node.args[1].name for node in nodes]
    weights = [draft.weights[name] for name in names]
    known = [draft.reaches[name] for name in names if name in draft.reaches]
    known += [
        each for each in (reach.of(node) for node in nodes if reach is not None) if each is not None
    ]
    bits = draft.bits_of(*(node.args[1] for node in nodes))
    weight = draft.add_weight(f"{names[0]}_all", torch.cat(weights), bits, max(known, default=None))
    bias = None
    if len(first.args) > 2 and first.args[2] is not None:
        values = [draft.weights[node.args[2].name] for node in nodes]
        bias = draft.add_weight(f"{names[0]}_offsets", torch.cat(values))
    with graph.inserting_after(first):
        made = graph.call_function(first.target, (first.args[0], weight, bias, *first.args[3:]))
    made.meta = {"layer": first.meta["layer"]}
    if all(_is_rectified(node) for node in nodes):
        # The joined layer has one ReLU, which is fused with it later.
        with graph.inserting_after(made):
            made = graph.call_function(aten.relu.default, (made,))
        made.meta = {"layer": first.meta["layer"]}
        nodes = [_without_relu(graph, node) for node in nodes]
    start, after = 0, made
    for node, rows in zip(nodes, map(len, weights), strict=True):
        with graph.inserting_after(after):
            after = graph.call_function(
                aten.slice.Tensor, (made, OUTPUTS[first.target], start, start + rows)
            )
        after.meta = {key: node.meta[key] for key in ("layer", "value")}
        node.replace_all_uses_with(after)
        graph.erase_node(node)
        start += rows


def _is_rectified(node: Node) -> bool:
    """Returns whether a ReLU is the only user of a node."""
    return len(node.users) == 1 and next(iter(node.users)).target is aten.relu.default


def _without_relu(graph: fx.Graph, node: Node) -> Node:
    """Removes the ReLU of a node and returns the node, which then stands for the ReLU."""
    (relu,) = node.users
    relu.replace_all_uses_with(node)
    graph.erase_node(relu)
    return node
