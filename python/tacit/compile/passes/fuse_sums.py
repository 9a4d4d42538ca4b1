"""Requires: normalised; after ``fold_normalisation``. Ensures: a sum of two convolutions of one geometry, of
which each is used there alone, is one convolution of both inputs side by side; one by 1×1 filters takes every
s-th place itself first. Saves: one of two truncations, its message of each element, and its rounds."""

from typing import Any

import torch
from torch import fx

from tacit.compile.draft import Draft, Node, calls, takes

aten = torch.ops.aten


def fuse_sums(draft: Draft) -> None:
    """Carries the pass out."""
    for node in calls(draft.graph, aten.add.Tensor):
        if not node.kwargs and len(node.args) == 2:
            _fuse(draft, node, *map(_Convolution.of, [draft] * 2, node.args))
    draft.drop_dead()


class _Convolution:
    """A convolution in two dimensions that the sum alone uses."""

    def __init__(self, draft: Draft, node: Node) -> None:
        self.node = node
        args = [*node.args, *[None] * (7 - len(node.args))]
        self.source, self.weight_node, self.bias_node = args[:3]
        self.weight = draft.weight(self.weight_node)
        self.bias = draft.weight(self.bias_node)
        self.stride, self.padding, self.dilation = (
            tuple(given or default)
            for given, default in zip(args[3:6], ([1, 1], [0, 0], [1, 1]), strict=True)
        )
        self.groups = args[6] or 1

    @staticmethod
    def of(draft: Draft, node: Any) -> "_Convolution | None":
        if not takes(node, aten.conv2d.default) or node.kwargs:
            return None
        made = _Convolution(draft, node)
        if len(node.meta["value"].shape) != 4:
            return None
        if made.weight is None or made.groups != 1 or made.dilation != (1, 1):
            return None
        return None if made.bias_node is not None and made.bias is None else made

    @property
    def geometry(self) -> tuple[Any, ...]:
        """What two must have alike."""
        kernel = tuple(self.weight_node.meta["value"].shape[2:])
        # Filters of one place skip places as well before as in the convolution.
        return kernel, (1, 1) if self.is_pointwise else self.stride, self.padding

    @property
    def places(self) -> tuple[int, ...]:
        """How large the images are that its filters go over, which those of two must be alike."""
        of = self.node if self.is_pointwise else self.source
        return tuple(of.meta["value"].shape[2:])

    @property
    def is_pointwise(self) -> bool:
        return self.weight_node.meta["value"].shape[2:] == (1, 1) and self.padding == (0, 0)


def _fuse(draft: Draft, total: Node, a: _Convolution | None, b: _Convolution | None) -> None:
    if a is None or b is None or a.node is b.node or a.geometry != b.geometry:
        return
    if a.node.meta["value"].shape != b.node.meta["value"].shape:
        return
    if a.places != b.places:
        return
    assert a.weight is not None
    assert b.weight is not None
    graph, name = draft.graph, a.weight_node.name
    weight = draft.add_weight(
        f"{name}_beside", torch.cat([a.weight, b.weight], 1), draft.bits_of(a.weight_node, b.weight_node)
    )
    biases = [bias for bias in (a.bias, b.bias) if bias is not None]
    bias = draft.add_weight(f"{name}_offset", sum(biases, torch.zeros(()))) if biases else None
    pieces = [_at_places(graph, total, each) for each in (a, b)]
    _, stride, padding = a.geometry
    with graph.inserting_before(total):
        both = graph.call_function(aten.cat.default, (pieces, 1))
        args = (both, weight, bias, list(stride), list(padding), [1, 1], 1)
        made = graph.call_function(aten.conv2d.default, args)
    both.meta = {"layer": a.node.meta["layer"]}
    made.meta = {"layer": a.node.meta["layer"], "value": total.meta["value"]}
    total.replace_all_uses_with(made)
    graph.erase_node(total)


def _at_places(graph: fx.Graph, before: Node, of: _Convolution) -> Node:
    """The input at every place that 1×1 filters take; of others all of it."""
    source: Node = of.source
    if not of.is_pointwise or of.stride == (1, 1):
        return source
    for dim, step in enumerate(of.stride, 2):
        if step > 1:
            with graph.inserting_before(before):
                source = graph.call_function(aten.slice.Tensor, (source, dim, 0, 2**62, step))
            source.meta = {"layer": of.node.meta["layer"]}
    return source
