"""Requires: normalised; weights known, as the owner knows them. Ensures: a product with a matrix of weights
is a linear layer; weights that the channels of a layer's result are multiplied by, and those that are added
to them, are in the layer's own, in float64, as TensorFlow writes normalisations and biases. Saves: a product
and a truncation for each element; what other passes do with layers, they do with these."""

from typing import Any

import torch

from tacit.compile.draft import Draft, Node, calls, takes
from tacit.compile.passes.fold_normalisation import CONVOLUTIONS, rescaled

aten = torch.ops.aten

PRODUCTS, SUMS, DIFFERENCES = (aten.mul.Tensor,), (aten.add.Tensor,), (aten.sub.Tensor,)
MATRIX_PRODUCTS = (aten.matmul.default, aten.mm.default)


def whole_layers(draft: Draft) -> None:
    """Carries the pass out."""
    for node in calls(draft.graph, *MATRIX_PRODUCTS):
        _as_linear(draft, node)
    for node in calls(draft.graph, *PRODUCTS, *SUMS, *DIFFERENCES):
        _into_layer(draft, node)
    draft.drop_dead()


def _as_linear(draft: Draft, node: Node) -> None:
    """A product with a matrix that nothing else uses."""
    weight = draft.weight(node.args[1])
    if weight is None or weight.dim() != 2 or len(node.args[1].users) > 1:
        return
    bits = draft.weight_scales.get(node.args[1].name)
    turned = draft.add_weight(f"{node.args[1].name}_turned", weight.t().contiguous(), bits)
    node.target = aten.linear.default
    node.args = (node.args[0], turned)


def _into_layer(draft: Draft, node: Node) -> None:
    """Weights that meet what a layer gives."""
    if len(node.args) != 2 or node.kwargs:
        return
    layer, other = node.args
    if node.target not in DIFFERENCES and draft.weight(layer) is not None:
        layer, other = other, layer
    weight = draft.weight(other)
    if weight is None or not takes(layer, *CONVOLUTIONS, aten.linear.default):
        return
    channels = _by_channel(weight, layer)
    if channels is None:
        return
    zeros, ones = torch.zeros_like(channels), torch.ones_like(channels)
    if node.target in PRODUCTS:
        rescaled(draft, node, layer, channels, zeros)
    else:
        rescaled(draft, node, layer, ones, -channels if node.target in DIFFERENCES else channels)


def _by_channel(weight: torch.Tensor, layer: Any) -> torch.Tensor | None:
    """The weights, one for each channel of the layer, if they tell channels apart alone."""
    shape = layer.meta["value"].shape
    at = len(shape) - 1
    if layer.target in CONVOLUTIONS:
        # Channels come before the places of an image, which may stand without a batch.
        at -= 1 + CONVOLUTIONS.index(layer.target)
    if weight.dim() > len(shape):
        return None
    aligned = (1,) * (len(shape) - weight.dim()) + tuple(weight.shape)
    if any(size != 1 for axis, size in enumerate(aligned) if axis != at) or aligned[at] not in (1, shape[at]):
        return None
    return weight.reshape(-1).expand(shape[at])
