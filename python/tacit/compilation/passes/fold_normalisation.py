"""Folds batch normalisations and averages into layers.

Requires: a normalised draft; weights in the clear, as the owner knows them. Ensures: no batch
normalisation is left. One after a convolution or a linear layer is folded into that layer's
weights, in float64. One before a ReLU is folded into the layers after the ReLU. Any other one
becomes a product and a sum for each channel. An average over the whole image is folded into the
linear layer after it. Saves: a product and a truncation for each element, and two rounds each."""

import math
from collections.abc import Callable
from operator import getitem
from typing import Any, NamedTuple

import torch

from tacit.compilation.digits import Reach, with_more
from tacit.compilation.graph import Draft, Node, calls, takes
from tacit.compilation.normalisations import BATCH_NORM, NATIVE_BATCH_NORM, factors
from tacit.compilation.normalised_behind import into_layers_behind
from tacit.operators.normalization import FACTOR_SCALE

aten = torch.ops.aten

CONVOLUTIONS = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)

TRANSPOSED = (
    aten.conv_transpose1d.default,
    aten.conv_transpose2d.input,
    aten.conv_transpose3d.input,
)

#: Operators that give the elements of an image in order.
RESHAPING = (aten.view.default, aten.reshape.default, aten.flatten.using_ints, aten.squeeze.dims)


def fold_normalisation(draft: Draft) -> None:
    """Folds batch normalisations and averages into layers, in place."""
    _fold_all(draft, into_layers=True)
    _fold_averages(draft)
    draft.drop_dead()


def as_eager(draft: Draft) -> None:
    """Replaces batch normalisations as ``share_module`` does, each by a product and a sum for each
    channel.

    This is what a model costs without compilation."""
    _fold_all(draft, into_layers=False)
    draft.drop_dead()


def _fold_all(draft: Draft, *, into_layers: bool) -> None:
    found = [
        _normalised(draft, node, node)
        for node in calls(draft.graph, BATCH_NORM)
        if not node.args[5]
    ]
    for node in calls(draft.graph, NATIVE_BATCH_NORM):
        users = [user for user in node.users if user.target is getitem and user.args[1] == 0]
        found += [_normalised(draft, user, node) for user in users]
    left = [each for each in found if each is not None]
    if into_layers:
        # The layer after one normalisation may be the layer before another. The other one is folded
        # into it first.
        left = [
            each
            for each in left
            if not _into_layer(draft, each.result, each.node.args[0], *each.folded)
        ]
        reach = Reach(draft) if left else None
        left = [each for each in left if not _behind(draft, each, reach)]
    for each in left:
        _as_products(draft, each.result, each.node.args[0], *each.folded)


class _Normalised(NamedTuple):
    """Result of a batch normalisation."""

    result: Node
    #: Node that normalises the batch.
    node: Node
    #: Factor and offset of each channel.
    folded: tuple[torch.Tensor, torch.Tensor]


def _normalised(draft: Draft, result: Node, node: Node) -> _Normalised | None:
    folded = factors(draft, node)
    return None if folded is None else _Normalised(result, node, folded)


def _behind(draft: Draft, each: _Normalised, reach: Reach | None) -> bool:
    assert reach is not None
    return into_layers_behind(draft, reach, each.result, each.node.args[0], *each.folded)


def _into_layer(
    draft: Draft, result: Node, source: Any, factor: torch.Tensor, offset: torch.Tensor
) -> bool:
    """Folds a normalisation into the weights of the layer before it, if nothing else uses that
    layer."""
    if not takes(source, *CONVOLUTIONS, *TRANSPOSED, aten.linear.default):
        return False
    weight = draft.weight(source.args[1])
    # Channels are the second dimension, except in results with more dimensions than the weight or
    # without a batch.
    if weight is None or len(source.meta["value"].shape) != weight.dim():
        return False
    return rescaled(draft, result, source, factor, offset)


def rescaled(
    draft: Draft,
    result: Node,
    source: Node,
    factor: torch.Tensor | None,
    offset: torch.Tensor,
    digits: Callable[[int, torch.Tensor], int] = with_more,
) -> bool:
    """Replaces ``factor · source + offset`` of a layer's channels by a layer, if that opens no more
    words.

    Without a factor it replaces ``source + offset``. Returns whether it did.

    Args:
        digits: computes the fraction bits of the new weights. The default keeps the range of a
            normalisation.
    """
    weight = draft.weight(source.args[1])
    bias_node = source.args[2] if len(source.args) > 2 else None
    bias = torch.zeros_like(offset) if bias_node is None else draft.weight(bias_node)
    if weight is None or bias is None:
        return False
    name, new_weight = source.args[1].name, source.args[1]
    if factor is not None:
        # The product that is saved would open each element of the result.
        if not draft.may_copy(source.args[1], source.meta["value"].numbers):
            return False
        bits = digits(draft.bits_of(source.args[1]), factor)
        new_weight = draft.add_weight(f"{name}_folded", _scaled(source, weight, factor), bits)
        bias = bias * factor
    new_bias = draft.add_weight(f"{name}_offset", bias + offset)
    with draft.graph.inserting_after(source):
        args = (source.args[0], new_weight, new_bias, *source.args[3:])
        made = draft.graph.call_function(source.target, args)
    _take_place(draft, result, made, source.meta["layer"])
    # Dead nodes must not count as users of their weights.
    for dead in (*source.users, source):
        if not dead.users:
            draft.graph.erase_node(dead)
    return True


def _scaled(source: Node, weight: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Multiplies the weights of each channel of a layer's result by a factor."""
    places = (1,) * (weight.dim() - 2)
    if source.target not in TRANSPOSED:
        return weight * factor.reshape(-1, 1, *places)
    # Transposed weights are ordered by the channels of the input, and then by those of the result
    # in each group.
    groups = int((*source.args[6:7], 1)[0])
    apart = weight.reshape(groups, -1, *weight.shape[1:])
    return (apart * factor.reshape(groups, 1, -1, *places)).reshape(weight.shape)


def _as_products(
    draft: Draft, result: Node, source: Any, factor: torch.Tensor, offset: torch.Tensor
) -> None:
    """Replaces a normalisation by a convolution with one weight for each channel: each weight is
    masked once, whatever the size of the image."""
    value = source.meta["value"]
    channels = value.shape[1]
    weight = draft.add_weight(
        f"{result.name}_factor", factor.reshape(channels, 1, 1, 1), FACTOR_SCALE.bits
    )
    bias = draft.add_weight(f"{result.name}_offset", offset)
    rest = math.prod(value.shape[2:])
    graph = draft.graph
    with graph.inserting_after(result):
        image = graph.call_function(
            aten.reshape.default, (source, [value.shape[0], channels, 1, rest])
        )
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


# Averages
# ----------------------------------------------------------------------------


def _fold_averages(draft: Draft) -> None:
    found = [
        (node, _average_before(draft, node)) for node in calls(draft.graph, aten.linear.default)
    ]
    known = [(linear, average) for linear, average in found if average is not None]
    reach = Reach(draft) if known else None
    for linear, (average, places) in known:
        assert reach is not None
        _fold_average(draft, reach, linear, average, places)


def _average_before(draft: Draft, linear: Node) -> tuple[Node, int] | None:
    """Returns the average over all places that only a linear layer uses, and the number of places,
    or ``None``."""
    average: Node = linear.args[0]
    while takes(average, *RESHAPING):
        average = average.args[0]
    places = _averaged(average)
    weight = linear.args[1]
    if (
        draft.weight(weight) is None
        or not draft.may_copy(weight)
        or places is None
        or list(linear.args[0].users) != [linear]
    ):
        return None
    return average, places


def _fold_average(draft: Draft, reach: Reach, linear: Node, average: Node, places: int) -> None:
    """Replaces an average by a sum, with smaller weights in the linear layer after it.

    The smaller weights need more digits. These take some of the range of the layer's result, which
    the truncation of the average does not."""
    name = linear.args[1].name
    own = draft.bits_of(linear.args[1])
    # As many digits as before the division.
    bits = with_more(own, torch.tensor(1.0 / places))
    if bits > own and not reach.allows(draft, linear, bits):
        return
    weight = draft.weights[name] / places
    smaller = draft.add_weight(f"{name}_averaged", weight, bits, reach.of(linear))
    source = average.args[0]
    dims = list(range(2 - len(source.meta["value"].shape), 0))
    with draft.graph.inserting_before(average):
        total = draft.graph.call_function(aten.sum.dim_IntList, (source, dims, True))
    _take_place(draft, average, total, average.meta["layer"])
    linear.args = (linear.args[0], smaller, *linear.args[2:])


#: Operators that average images of one, two or three dimensions.
ADAPTIVE = {
    aten.adaptive_avg_pool1d.default: 1,
    aten.adaptive_avg_pool2d.default: 2,
    aten._adaptive_avg_pool2d.default: 2,
    aten.adaptive_avg_pool3d.default: 3,
    aten._adaptive_avg_pool3d.default: 3,
}
IN_WINDOWS = {aten.avg_pool1d.default: 1, aten.avg_pool2d.default: 2, aten.avg_pool3d.default: 3}


def _averaged(node: Node) -> int | None:
    """Returns how many places a node averages into one, if it averages all places of each
    channel."""
    if not takes(node, *ADAPTIVE, *IN_WINDOWS, aten.mean.dim) or node.kwargs:
        return None
    shape = node.args[0].meta["value"].shape
    dims = len(shape) - 2
    image = tuple(shape[2:])
    if node.target in ADAPTIVE:
        is_whole = ADAPTIVE[node.target] == dims and all(size == 1 for size in node.args[1])
    elif node.target in IN_WINDOWS:
        # Padding would count, and an explicit divisor divides by something else.
        padding, divisor = (*node.args[3:4], [0])[0], node.args[6:7]
        windows = tuple(node.args[1]) * (1 if len(node.args[1]) > 1 else dims)
        is_plain = not any(padding) and not any(divisor)
        is_whole = IN_WINDOWS[node.target] == dims and is_plain and windows == image
    else:
        keeps = len(node.args) > 2 and bool(node.args[2])
        is_whole = (
            dims > 0
            and keeps
            and {dim % len(shape) for dim in node.args[1]} == set(range(2, 2 + dims))
        )
    return math.prod(image) if is_whole else None
