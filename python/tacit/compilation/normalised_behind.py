"""Folds a normalisation before a ReLU into the weights of the layers after the ReLU.

With y = x + b/a, max(a·x + b, 0) is a·max(y, 0), and a·min(y, 0) if a is negative. So y takes no
product, keeping one side of it takes the messages of a ReLU, and the layers have as many weights as
before. Which a are negative stays their owner's secret: there are booleans among the weights even
if no a is negative, and the kept numbers are assumed to lie on both sides of zero. The intervals
after the layers reveal something about the products of a with the layers' weights, as they do about
all weights."""

from typing import Any

import torch

from tacit.compilation.affine_maps import AffineMap
from tacit.compilation.digits import Reach, with_more
from tacit.compilation.graph import Draft, Node, takes

aten = torch.ops.aten

#: Greatest offset: greater ones do not belong to numbers that words hold well.
MOST_OFFSET = 2.0**10

#: Least factor: a smaller one leaves nothing of any number except the offset.
NONE_LEFT = 2.0**-30


def into_layers_behind(
    draft: Draft,
    reach: Reach,
    result: Node,
    source: Any,
    factor: torch.Tensor,
    offset: torch.Tensor,
) -> bool:
    """Folds a normalised batch, ``result`` of ``source``, into the weights of what uses its ReLU.

    All users must be convolutions of images, whose results must stay in range with weights of that
    many digits. Returns whether the batch was folded."""
    relu: Any = next(iter(result.users), None)
    if not takes(result, result.target) or relu.target is not aten.relu.default:
        return False
    maps = [(user, _convolution(draft, user)) for user in relu.users]
    known = [each for _, each in maps if each is not None]
    if not all(
        _has_room(draft, reach, user, each, factor) for user, each in maps if each is not None
    ):
        return False
    copied = [node for each in known for node in each.weight if not draft.may_copy(node)]
    # The product that is saved would open each element.
    if sum(node.meta["value"].numbers for node in copied) > result.meta["value"].numbers:
        return False
    idle = factor.abs() < NONE_LEFT
    shift = torch.where(idle, 0.0, offset / torch.where(idle, 1.0, factor))
    if not maps or len(known) < len(maps) or bool((shift.abs() > MOST_OFFSET).any()):
        return False
    # Idle channels are left with their offset, which filters would miss in the padding.
    left = torch.where(idle, offset.clamp_min(0), 0.0)
    if bool(left.any()) and any(any(each.geometry[2:4]) for each in known):
        return False
    name = result.name
    with draft.graph.inserting_before(result):
        by = draft.add_weight(f"{name}_shift", shift.reshape(-1, 1, 1))
        shifted = draft.graph.call_function(aten.add.Tensor, (source, by))
        below = draft.add_weight(f"{name}_below", (factor < 0).reshape(-1, 1, 1))
        kept = draft.graph.call_function(torch.ops.tacit.one_sided.default, (shifted, below))
    shifted.meta = {"layer": result.meta["layer"], "value": result.meta["value"]}
    kept.meta = {"layer": relu.meta["layer"], "value": relu.meta["value"]}
    for user, each in maps:
        assert each is not None
        _take_factor(draft, reach, user, each, kept, torch.where(idle, 0.0, factor), left)
    return True


def _convolution(draft: Draft, node: Node) -> AffineMap | None:
    """Returns the map of a convolution of images that has a single group."""
    found = AffineMap.of(draft, node) if node.target is aten.conv2d.default else None
    return found if found is not None and found.geometry[-1] == 1 else None


def _has_room(
    draft: Draft, reach: Reach, user: Node, layer: AffineMap, factor: torch.Tensor
) -> bool:
    own = draft.bits_of(*layer.weight)
    bits = with_more(own, factor)
    return bits == own or reach.allows(draft, user, bits)


def _take_factor(
    draft: Draft,
    reach: Reach,
    user: Node,
    layer: AffineMap,
    kept: Node,
    factor: torch.Tensor,
    left: torch.Tensor,
) -> None:
    """Replaces a layer by one that takes what is kept of y."""
    (node,) = layer.weight
    weight = draft.weights[node.name]
    bits, most = with_more(draft.bits_of(node), factor), reach.of(user)
    scaled = draft.add_weight(
        f"{node.name}_scaled", weight * factor.reshape(1, -1, 1, 1), bits, most
    )
    more = (weight * left.reshape(1, -1, 1, 1)).sum((1, 2, 3))
    bias = draft.weights[layer.bias[0].name] + more if layer.bias else more
    offset = draft.add_weight(f"{node.name}_offset", bias)
    with draft.graph.inserting_before(user):
        made = draft.graph.call_function(user.target, (kept, scaled, offset, *user.args[3:]))
    made.meta = {"layer": user.meta["layer"], "value": user.meta["value"]}
    reach.replace(user, made)
    user.replace_all_uses_with(made)
    draft.graph.erase_node(user)
