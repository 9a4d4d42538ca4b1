"""Merges public factors into the weights of layers.

Requires: a normalised draft; weights in the clear. Ensures: what a convolution or a linear layer
gives is not multiplied by a public number afterwards, such as that of an attention. Its weights are
multiplied instead, in float64. Saves: a truncation for each element, and its rounds."""

import math
from typing import Any

import torch
from torch import fx

from tacit.compilation.digits import with_free
from tacit.compilation.graph import Draft, Node, calls, takes
from tacit.compilation.passes.fold_normalisation import CONVOLUTIONS

aten = torch.ops.aten

PRODUCTS = (aten.mul.Tensor, aten.mul.Scalar)
QUOTIENTS = (aten.div.Tensor, aten.div.Scalar)

#: Attention, which multiplies its queries by a number.
ATTENTION = aten.scaled_dot_product_attention.default

#: Layers whose weights can take a factor.
LAYERS = (*CONVOLUTIONS, aten.linear.default)

#: Operators that only move elements.
MOVES = (aten.view.default, aten.reshape.default, aten.transpose.int, aten.permute.default)


def merge_factors(draft: Draft) -> None:
    """Merges public factors into the weights of layers, in place."""
    for node in calls(draft.graph, *PRODUCTS, *QUOTIENTS):
        number = _number(draft, node)
        if number and _is_in_layer(draft, node.args[0], number):
            node.replace_all_uses_with(node.args[0])
            draft.graph.erase_node(node)
    for node in calls(draft.graph, ATTENTION):
        number = node.kwargs.get("scale") or 1.0 / math.sqrt(node.args[0].meta["value"].shape[-1])
        if number != 1.0 and _is_in_layer(draft, node.args[0], number):
            node.kwargs = {**node.kwargs, "scale": 1.0}
    draft.drop_dead()


def _is_in_layer(draft: Draft, source: Any, number: float) -> bool:
    """Multiplies the weights of the layer that gives ``source``, if there is one, and returns
    whether there is."""
    while takes(source, *MOVES):
        source = source.args[0]
    return takes(source, *LAYERS) and _scale(draft, source, number)


def _number(draft: Draft, node: Node) -> float | None:
    """Returns the public number that a node multiplies by, or ``None``."""
    other = node.args[1]
    if isinstance(other, fx.Node):
        known = draft.constants.get(other.name)
        if (
            known is None
            or known.numel() != 1
            or known.dim() > node.args[0].meta["value"].shape.__len__()
        ):
            return None
        other = float(known)
    if not isinstance(other, int | float):
        return None
    if node.target in QUOTIENTS:
        return 1.0 / other if other else None
    return float(other)


def _scale(draft: Draft, layer: Node, number: float) -> bool:
    weight = draft.weight(layer.args[1])
    bias: Any = layer.args[2] if len(layer.args) > 2 else None
    value = draft.weight(bias)
    if weight is None or (bias is not None and value is None) or not draft.may_copy(layer.args[1]):
        return False
    name = layer.args[1].name
    bits = with_free(draft.bits_of(layer.args[1]), torch.tensor(number))
    scaled = draft.add_weight(f"{name}_scaled", weight * number, bits)
    offset = None if value is None else draft.add_weight(f"{name}_offset", value * number)
    layer.args = (layer.args[0], scaled, offset, *layer.args[3:])
    return True
