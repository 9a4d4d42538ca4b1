"""Recognises layers that file formats write as several operators.

Requires: a normalised draft; weights in the clear, as the owner knows them. Ensures: a product with
a matrix of weights is a linear layer. Weights that multiply the channels of a layer's result, or
are added to them, are folded into the layer's own, in float64; TensorFlow writes normalisations and
biases so. For images that come from no layer, such weights are a normalisation. Saves: a product
and a truncation for each element, and whatever other passes save for layers and normalisations."""

from typing import Any

import torch

from tacit.compilation.digits import with_free
from tacit.compilation.graph import Draft, Node, calls, takes
from tacit.compilation.passes.fold_normalisation import CONVOLUTIONS, rescaled

aten = torch.ops.aten

PRODUCTS, SUMS, DIFFERENCES = (aten.mul.Tensor,), (aten.add.Tensor,), (aten.sub.Tensor,)
MATRIX_PRODUCTS = (aten.matmul.default, aten.mm.default)


def whole_layers(draft: Draft) -> None:
    """Replaces layers that are written as several operators, in place."""
    for node in calls(draft.graph, *MATRIX_PRODUCTS):
        _as_linear(draft, node)
    for node in calls(draft.graph, *PRODUCTS, *SUMS, *DIFFERENCES):
        _into_layer(draft, node)
    for node in calls(draft.graph, *PRODUCTS):
        _as_normalisation(draft, node)
    draft.drop_dead()


def _as_linear(draft: Draft, node: Node) -> None:
    """Turns a product with a matrix of weights that nothing else uses into a linear layer."""
    weight = draft.weight(node.args[1])
    if weight is None or weight.dim() != 2 or len(node.args[1].users) > 1:
        return
    bits = draft.weight_scales.get(node.args[1].name)
    turned = draft.add_weight(f"{node.args[1].name}_turned", weight.t().contiguous(), bits)
    node.target = aten.linear.default
    node.args = (node.args[0], turned)


def _into_layer(draft: Draft, node: Node) -> None:
    """Folds weights that a layer's result is combined with into the layer."""
    layer, weight = _with_weight(draft, node)
    if weight is None or not takes(layer, *CONVOLUTIONS, aten.linear.default):
        return
    shape = layer.meta["value"].shape
    # Channels come before the places of an image. There may be no batch dimension.
    places = 1 + CONVOLUTIONS.index(layer.target) if layer.target in CONVOLUTIONS else 0
    channels = _by_channel(weight, shape, len(shape) - 1 - places)
    if channels is None:
        return
    if node.target in PRODUCTS:
        rescaled(draft, node, layer, channels, torch.zeros_like(channels), with_free)
    else:
        rescaled(draft, node, layer, None, -channels if node.target in DIFFERENCES else channels)


def _as_normalisation(draft: Draft, product: Node) -> None:
    """Turns a product of the channels of images with weights, and a sum that may follow, into a
    normalisation."""
    source, weight = _with_weight(draft, product)
    factor = None if weight is None or weight.numel() == 1 else _of_images(weight, source)
    if factor is None:
        return
    result, offset = product, torch.zeros_like(factor)
    after = next(iter(product.users))
    if takes(product, *PRODUCTS) and after.target in SUMS:
        shifted, added = _with_weight(draft, after)
        by = None if added is None or shifted is not product else _of_images(added, product)
        result, offset = (product, offset) if by is None else (after, by)
    values = {
        "factor": factor,
        "offset": offset,
        "mean": 0 * factor,
        "variance": torch.ones_like(factor),
    }
    weights = [draft.add_weight(f"{product.name}_{name}", value) for name, value in values.items()]
    with draft.graph.inserting_before(result):
        args = (source, *weights, False, 0.0, 0.0, False)
        made = draft.graph.call_function(aten.batch_norm.default, args)
    made.meta = dict(result.meta)
    result.replace_all_uses_with(made)
    draft.graph.erase_node(result)
    if result is not product:
        draft.graph.erase_node(product)


def _with_weight(draft: Draft, node: Node) -> tuple[Any, torch.Tensor | None]:
    """Returns the operands of a product or a sum: any node, and a weight if there is one."""
    if len(node.args) != 2 or node.kwargs:
        return None, None
    left, right = node.args
    if node.target not in DIFFERENCES and draft.weight(left) is not None:
        left, right = right, left
    return left, draft.weight(right)


def _of_images(weight: torch.Tensor, source: Any) -> torch.Tensor | None:
    value = source.meta["value"]
    return _by_channel(weight, value.shape, 1) if len(value.shape) == 4 else None


def _by_channel(weight: torch.Tensor, shape: tuple[int, ...], at: int) -> torch.Tensor | None:
    """Returns one weight for each channel of a shape, if the weights differ by channel alone."""
    if weight.dim() > len(shape):
        return None
    aligned = (1,) * (len(shape) - weight.dim()) + tuple(weight.shape)
    if any(size != 1 for axis, size in enumerate(aligned) if axis != at) or aligned[at] not in (
        1,
        shape[at],
    ):
        return None
    return weight.reshape(-1).expand(shape[at]).clone()
