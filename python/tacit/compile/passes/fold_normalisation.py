"""Requires: normalised; weights known, as the owner knows them. Ensures: no batch normalisation is left; what
follows a convolution or a linear layer is in its weights, in float64, what stands before the ReLU of others
in theirs; any other one is a product and a sum for each channel; an average over the whole image is in the
linear layer after it. Saves: a product and a truncation for each element, and two rounds each."""

import math
from operator import getitem
from typing import Any, NamedTuple

import torch

from tacit.compile.draft import Draft, Node, calls, takes
from tacit.compile.passes.digits import with_more
from tacit.compile.passes.normalised_behind import into_layers_behind
from tacit.operators.normalization import FACTOR_SCALE, fold

aten = torch.ops.aten

CONVOLUTIONS = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)

#: Batch normalisation, of which the one gives a tensor and the other three.
WHOLE, OF_THREE = aten.batch_norm.default, aten._native_batch_norm_legit_no_training.default

#: They give the elements of an image in order.
RESHAPING = (aten.view.default, aten.reshape.default, aten.flatten.using_ints, aten.squeeze.dims)


def fold_normalisation(draft: Draft) -> None:
    """Carries the pass out."""
    _fold_all(draft, into_layers=True)
    for node in calls(draft.graph, aten.linear.default):
        _fold_average(draft, node)
    draft.drop_dead()


def as_eager(draft: Draft) -> None:
    """Batch normalisation as ``share_module`` has it, each a product and a sum for each channel: what a model
    costs that is not compiled."""
    _fold_all(draft, into_layers=False)
    draft.drop_dead()


def _fold_all(draft: Draft, *, into_layers: bool) -> None:
    found = [_normalised(draft, node, node, 7) for node in calls(draft.graph, WHOLE) if not node.args[5]]
    for node in calls(draft.graph, OF_THREE):
        users = [user for user in node.users if user.target is getitem and user.args[1] == 0]
        found += [_normalised(draft, user, node, 6) for user in users]
    left = [each for each in found if each is not None]
    # The layer behind one may be the layer before another, into which that goes first.
    for into in (_into_layer, into_layers_behind) if into_layers else ():
        left = [each for each in left if not into(draft, each.result, each.node.args[0], *each.folded)]
    for each in left:
        _as_products(draft, each.result, each.node.args[0], *each.folded)


class _Normalised(NamedTuple):
    """A normalised batch."""

    result: Node
    node: Node
    """What normalises it."""
    folded: tuple[torch.Tensor, torch.Tensor]
    """Factor and offset of each channel."""


def _normalised(draft: Draft, result: Node, node: Node, epsilon_at: int) -> _Normalised | None:
    statistics = node.args[1:5]
    values = [None if each is None else draft.weight(each) for each in statistics]
    if any(value is None and each is not None for value, each in zip(values, statistics, strict=True)):
        return None
    mean, variance = values[2:]
    if mean is None or variance is None:
        return None
    folded = fold(values[0], values[1], mean, variance, float(node.args[epsilon_at]))
    return _Normalised(result, node, folded)


def _into_layer(draft: Draft, result: Node, source: Any, factor: torch.Tensor, offset: torch.Tensor) -> bool:
    """Into the weights of the layer before it, if that is one which nobody else uses."""
    if not takes(source, *CONVOLUTIONS, aten.linear.default):
        return False
    weight = draft.weight(source.args[1])
    # Channels are the second dimension; they are not of what has more of these, or no batch.
    if weight is None or len(source.meta["value"].shape) != weight.dim():
        return False
    return rescaled(draft, result, source, factor, offset)


def rescaled(draft: Draft, result: Node, source: Node, factor: torch.Tensor, offset: torch.Tensor) -> bool:
    """Puts a layer in the place of what makes ``factor · source + offset`` of its channels."""
    weight = draft.weight(source.args[1])
    bias_node = source.args[2] if len(source.args) > 2 else None
    bias = torch.zeros_like(offset) if bias_node is None else draft.weight(bias_node)
    if weight is None or bias is None:
        return False
    folded = weight * factor.reshape(-1, *(1,) * (weight.dim() - 1))
    name = source.args[1].name
    bits = with_more(draft.bits_of(source.args[1]), factor)
    new_weight = draft.add_weight(f"{name}_folded", folded, bits)
    new_bias = draft.add_weight(f"{name}_offset", bias * factor + offset)
    with draft.graph.inserting_after(source):
        args = (source.args[0], new_weight, new_bias, *source.args[3:])
        made = draft.graph.call_function(source.target, args)
    _take_place(draft, result, made, source.meta["layer"])
    return True


def _as_products(draft: Draft, result: Node, source: Any, factor: torch.Tensor, offset: torch.Tensor) -> None:
    """As a convolution with one weight a channel: each is masked once, whatever the image's size."""
    value = source.meta["value"]
    channels = value.shape[1]
    weight = draft.add_weight(f"{result.name}_factor", factor.reshape(channels, 1, 1, 1), FACTOR_SCALE.bits)
    bias = draft.add_weight(f"{result.name}_offset", offset)
    rest = math.prod(value.shape[2:])
    graph = draft.graph
    with graph.inserting_after(result):
        image = graph.call_function(aten.reshape.default, (source, [value.shape[0], channels, 1, rest]))
    with graph.inserting_after(image):
        args = (image, weight, bias, [1, 1], [0, 0], [1, 1], channels)
        made = graph.call_function(aten.conv2d.default, args)
    with graph.inserting_after(made):
        back = graph.call_function(aten.reshape.default, (made, list(value.shape)))
    image.meta, made.meta = ({"layer": result.meta["layer"]} for _ in range(2))
    _take_place(draft, result, back, result.meta["layer"])


def _take_place(draft: Draft, old: Node, new: Node, layer: str) -> None:
    new.meta = {"layer": layer}
    if "value" in old.meta:
        new.meta["value"] = old.meta["value"]
    old.replace_all_uses_with(new)
    draft.graph.erase_node(old)


# Averages -------------------------------------------------------------------------------------------------


def _fold_average(draft: Draft, linear: Node) -> None:
    """Linear layers whose input is an average over all places: the sum in its place, by smaller weights."""
    weight = draft.weight(linear.args[1])
    average: Node = linear.args[0]
    while takes(average, *RESHAPING):
        average = average.args[0]
    places = _averaged(average)
    if weight is None or places is None or list(linear.args[0].users) != [linear]:
        return
    name = linear.args[1].name
    # As many digits as before the division.
    bits = with_more(draft.bits_of(linear.args[1]), torch.tensor(1.0 / places))
    smaller = draft.add_weight(f"{name}_averaged", weight / places, bits)
    source = average.args[0]
    with draft.graph.inserting_before(average):
        total = draft.graph.call_function(aten.sum.dim_IntList, (source, [-2, -1], True))
    _take_place(draft, average, total, average.meta["layer"])
    linear.args = (linear.args[0], smaller, *linear.args[2:])


def _averaged(node: Node) -> int | None:
    """How many places the node averages into one, if it does."""
    if takes(node, aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default):
        if list(node.args[1]) != [1, 1]:
            return None
    elif takes(node, aten.mean.dim):
        rank = len(node.args[0].meta["value"].shape)
        if rank < 3 or {dim % rank for dim in node.args[1]} != {rank - 2, rank - 1}:
            return None
        if not (len(node.args) > 2 and node.args[2]):
            return None
    else:
        return None
    return math.prod(node.args[0].meta["value"].shape[-2:])
