"""Requires: normalised. Ensures: a monotone activation that a max pooling alone uses stands behind it; of
ReLU zero is one more candidate of the pooling. Saves: activations of elements that no window keeps; of ReLU
all its rounds and bits but for a candidate."""

from typing import Any

import torch

from tacit.compile.draft import Draft, Node, calls, takes

aten = torch.ops.aten

#: Activations that never decrease.
MONOTONE = (
    aten.hardsigmoid.default,
    aten.hardtanh.default,
    aten.relu6.default,
    aten.sigmoid.default,
    aten.softplus.default,
    aten.tanh.default,
)


def switch_relu_maxpool(draft: Draft) -> None:
    """Carries the pass out."""
    for pool in calls(draft.graph, aten.max_pool2d.default):
        source = pool.args[0]
        if takes(source, aten.relu.default):
            _rectify(draft, pool, source.args[0])
        elif _pads_with_zero(source) and takes(source.args[0], aten.relu.default):
            # Zero is no more than ReLU gives anyway, so the frame may be laid around what goes into it.
            source.args = (source.args[0].args[0], *source.args[1:])
            _rectify(draft, pool, source)
        elif takes(source, *MONOTONE) or _never_decreases(source):
            _switch(draft, pool, source)
    draft.drop_dead()


def _rectify(draft: Draft, pool: Node, source: Any) -> None:
    with draft.graph.inserting_before(pool):
        made = draft.graph.call_function(
            torch.ops.tacit.rectified_max_pool2d.default, (source, *pool.args[1:]), dict(pool.kwargs)
        )
    made.meta = dict(pool.meta)
    pool.replace_all_uses_with(made)
    draft.graph.erase_node(pool)


def _pads_with_zero(node: Any) -> bool:
    """Whether it lays a frame of zeros around images, as TensorFlow does before a pooling with a stride."""
    if takes(node, aten.constant_pad_nd.default):
        return not node.kwargs and (len(node.args) < 3 or node.args[2] == 0)
    if not takes(node, aten.pad.default) or node.kwargs:
        return False
    mode = node.args[2] if len(node.args) > 2 else "constant"
    return mode == "constant" and not (len(node.args) > 3 and node.args[3])


def _never_decreases(node: Any) -> bool:
    """Whether an activation with slopes of its own does not, since none of them is negative."""
    if not takes(node, aten.leaky_relu.default, aten.elu.default) or node.kwargs:
        return False
    return all(isinstance(slope, int | float) and slope >= 0 for slope in node.args[1:])


def _switch(draft: Draft, pool: Node, activation: Node) -> None:
    with draft.graph.inserting_after(pool):
        made = draft.graph.call_function(activation.target, activation.args, dict(activation.kwargs))
    made.meta = {"layer": activation.meta["layer"]}
    pool.replace_all_uses_with(made)
    made.args = (pool, *activation.args[1:])
    pool.args = (activation.args[0], *pool.args[1:])
