"""Chooses the layers whose products are narrow.

Requires: final weights, scales, widths and guards, and merged truncations. Ensures: a layer's
product is narrow, so that parties may compute only its lowest 51 bits, only if it is proved to be
below 2^49 before truncation, provided that all guards before it hold. The sign of its ReLU, and its
guard, have the room that they need in the rest of the word. Saves: with replicated sharing, three
fifths of the instructions of products, for 13 more bits of each result over all links together. So
only layers with many products for each result have narrow ones."""

import torch

from tacit import fixed
from tacit.compilation.affine_maps import AffineMap
from tacit.compilation.comparing import Guard
from tacit.compilation.graph import NARROWING, Draft, Node, calls
from tacit.compilation.intervals import Prover
from tacit.compilation.passes.merge_truncations import bits_taken, finer, is_below
from tacit.operators.dispatch import custom_ops

#: Least number of products that each result is a sum of. With fewer, the time saved is less than a
#: third of what 13 bits take on a link of a gigabit per second.
LEAST = 64

#: Least number of outputs, and of results for each output, of a linear layer; least number of
#: filters in a group. With fewer, products are not computed in tiles (``crates/kernels``), so
#: computing only their lowest bits is not faster.
LEAST_ROWS, LEAST_FILTERS = 7, 4


def narrow_products(draft: Draft, *, uniform: bool = False) -> None:
    """Chooses the layers of a draft whose products are narrow, in place.

    Args:
        uniform: whether either all layers that may benefit are narrow or none is, so that the
            choice reveals little.
    """
    prover, more = Prover(draft), finer(draft.graph)
    found: dict[Node, int] = {}
    for node in draft.graph.nodes:
        guard = node.meta.get("guard")
        if guard is not None and guard.reach:
            prover.guarded[node] = guard.most + prover.unit
        prover.enter(node)
    for node in calls(draft.graph, *NARROWING):
        made = AffineMap.of(draft, node)
        if made is not None and node.meta.get("scale") is None and _pays(node, made):
            # A layer on public numbers is not a secret product, and adds up what others truncate.
            is_known = more.isdisjoint([*made.x, *made.addends]) and not any(
                map(draft.is_constant, made.x)
            )
            found[node] = _narrow(prover, node, made) if is_known else 0
    everywhere = all(found.values())
    for node in draft.graph.nodes:
        node.meta["narrow"] = found.get(node, 0) if everywhere or not uniform else 0


def _pays(node: Node, made: AffineMap) -> bool:
    outputs = made.weight[0].meta["value"].shape[0]
    products = sum(each.meta["value"].numbers for each in made.weight) // outputs
    if made.rank == 2:
        has_tiles = min(outputs, node.meta["value"].numbers // outputs) >= LEAST_ROWS
    else:
        groups = max(how.groups for how in custom_ops.Steps.all_of(made.geometry))
        has_tiles = outputs // groups >= LEAST_FILTERS
    return products >= LEAST and has_tiles


def _narrow(prover: Prover, node: Node, made: AffineMap) -> int:
    """Returns the fraction bits of a layer's product if it is proved to be narrow, or else 0.

    The proof includes all that is added to the product before or after it is truncated."""
    draft = prover.draft
    scales = [
        bits_taken(draft, x) + draft.bits_of(w) for x, w in zip(made.x, made.weight, strict=True)
    ]
    total, dropped = max(scales), max(scales) - draft.scale.bits
    width, reach = node.meta["guard"] or Guard(node.meta["width"] or fixed.WORD, 0)
    is_rectified = node.target is torch.ops.tacit.rectified_affine.default
    compared = fixed.width(width, draft.scale) + max(0, reach - 2) if is_rectified else 0
    if not 0 < dropped < fixed.NARROW or dropped + fixed.ABOVE + compared > fixed.WORD:
        return 0
    summed = prover.compared(node) if is_rectified else prover.known.get(node)
    parts = [prover.of(each) for each in (*made.bias, *made.addends)]
    return total if is_below([summed, *parts], total, fixed.NARROW) else 0
