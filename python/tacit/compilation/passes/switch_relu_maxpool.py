"""Moves activations behind max poolings.

Requires: a normalised draft. Ensures: a monotone activation that only a max pooling uses comes
after the pooling. For ReLU, zero is one more candidate of the pooling. Saves: activations of
elements that no window keeps; for ReLU, all its rounds and bits except those of a candidate."""

from operator import getitem
from typing import Any

import torch

from tacit.compilation.graph import Draft, Node, calls, takes

aten = torch.ops.aten

#: Max poolings, of which the last ones return indices too.
WITH_INDICES = (aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
POOLS = (aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default, *WITH_INDICES)

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
    """Moves activations behind max poolings, in place."""
    for pool in calls(draft.graph, *POOLS):
        source = pool.args[0]
        if pool.target in WITH_INDICES:
            _switch_values(draft, pool, source)
        elif pool.target is aten.max_pool1d.default and takes(source, aten.relu.default):
            _rectify_sequence(draft, pool, source.args[0])
        elif pool.target is not aten.max_pool2d.default:
            if _may_switch(source) or takes(source, aten.relu.default):
                _switch(draft, pool, pool, source)
        elif takes(source, aten.relu.default):
            _rectify(draft, pool, source.args[0])
        elif _pads_with_zero(source) and takes(source.args[0], aten.relu.default):
            # ReLU never gives less than zero, so its input may be padded with zeros instead of its
            # result.
            source.args = (source.args[0].args[0], *source.args[1:])
            _rectify(draft, pool, source)
        elif _may_switch(source):
            _switch(draft, pool, pool, source)
    draft.drop_dead()


def _may_switch(source: Any) -> bool:
    return takes(source, *MONOTONE) or _never_decreases(source)


def _switch_values(draft: Draft, pool: Node, source: Any) -> None:
    """Moves an activation behind the values of a pooling that also returns indices.

    Nothing may use the indices: ReLU makes more elements equal."""
    users = list(pool.users)
    if not (_may_switch(source) or takes(source, aten.relu.default)):
        return
    if len(users) == 1 and users[0].target is getitem and users[0].args[1] == 0:
        _switch(draft, pool, users[0], source)


def _rectify_sequence(draft: Draft, pool: Node, source: Any) -> None:
    """Pools a rectified sequence as images of one column, with zero as a candidate."""
    kernel, *steps = pool.args[1:]
    # Stride, padding and dilation, each with its value in the second dimension; then
    # ceil_mode.
    pairs = [
        [*each, idle] if each else [] for each, idle in zip(steps[:3], (1, 0, 1), strict=False)
    ]
    graph, value = draft.graph, source.meta["value"]
    with graph.inserting_before(pool):
        image = graph.call_function(aten.unsqueeze.default, (source, -1))
        args = (image, [*kernel, 1], *pairs, *steps[3:])
        made = graph.call_function(torch.ops.tacit.rectified_max_pool2d.default, args)
        back = graph.call_function(aten.squeeze.dim, (made, -1))
    image.meta = {"layer": pool.meta["layer"], "value": value._replace(shape=(*value.shape, 1))}
    made.meta, back.meta = {"layer": pool.meta["layer"]}, dict(pool.meta)
    pool.replace_all_uses_with(back)
    graph.erase_node(pool)


def _rectify(draft: Draft, pool: Node, source: Any) -> None:
    with draft.graph.inserting_before(pool):
        made = draft.graph.call_function(
            torch.ops.tacit.rectified_max_pool2d.default,
            (source, *pool.args[1:]),
            dict(pool.kwargs),
        )
    made.meta = dict(pool.meta)
    pool.replace_all_uses_with(made)
    draft.graph.erase_node(pool)


def _pads_with_zero(node: Any) -> bool:
    """Returns whether a node pads images with zeros, as TensorFlow does before a pooling with a
    stride."""
    if takes(node, aten.constant_pad_nd.default):
        return not node.kwargs and (len(node.args) < 3 or node.args[2] == 0)
    if not takes(node, aten.pad.default) or node.kwargs:
        return False
    mode = node.args[2] if len(node.args) > 2 else "constant"
    return mode == "constant" and not (len(node.args) > 3 and node.args[3])


def _never_decreases(node: Any) -> bool:
    """Returns whether an activation with slopes as arguments never decreases, because no slope is
    negative."""
    if not takes(node, aten.leaky_relu.default, aten.elu.default) or node.kwargs:
        return False
    return all(isinstance(slope, int | float) and slope >= 0 for slope in node.args[1:])


def _switch(draft: Draft, pool: Node, values: Node, activation: Node) -> None:
    """Moves an activation before a pooling behind the values of the pooling."""
    with draft.graph.inserting_after(values):
        made = draft.graph.call_function(
            activation.target, activation.args, dict(activation.kwargs)
        )
    made.meta = {"layer": activation.meta["layer"]}
    if "value" in values.meta:
        made.meta["value"] = values.meta["value"]
    values.replace_all_uses_with(made)
    made.args = (values, *activation.args[1:])
    pool.args = (activation.args[0], *pool.args[1:])
