"""Requires: weights, scales, widths, guards and what is not truncated as they will be. Ensures: a layer's
product is narrow, so that parties may work out its lowest 51 bits alone, only where it is proved to be below
2^49 before it is truncated, if all guards before it hold; the sign of its ReLU, and its guard, have the room
that they need in what is left of a word. Saves: with replicated sharing three fifths of the instructions of
products, for 13 bits more of each result over all links together; so only layers with many products a result
have narrow ones."""

import torch

from tacit import fixed
from tacit.compile.comparing import Guard
from tacit.compile.draft import NARROWING, Draft, Node, calls
from tacit.compile.intervals import Prover
from tacit.compile.passes.affine_maps import AffineMap
from tacit.compile.passes.merge_truncations import bits_taken, is_below

#: Products that each result is a sum of, at least: of fewer less time is saved than a third of 13 bits takes
#: on a link of a gigabit a second.
LEAST = 64

#: Results of linear layers that an output has, at least: fewer are not multiplied by tiles.
LEAST_ROWS = 8


def narrow_products(draft: Draft, *, uniform: bool = False) -> None:
    """Carries the pass out.

    Args:
        uniform: all that may pay are narrow or none is, so that it tells little which.
    """
    prover = Prover(draft)
    found: dict[Node, bool] = {}
    for node in draft.graph.nodes:
        guard = node.meta.get("guard")
        if guard is not None and guard.reach:
            prover.guarded[node] = guard.most + prover.unit
        prover.enter(node)
    for node in calls(draft.graph, *NARROWING):
        made = AffineMap.of(draft, node)
        if made is not None and node.meta.get("scale") is None and _pays(node, made):
            found[node] = _is_narrow(prover, node, made)
    everywhere = all(found.values())
    for node in draft.graph.nodes:
        node.meta["narrow"] = found.get(node, False) and (everywhere or not uniform)


def _pays(node: Node, made: AffineMap) -> bool:
    outputs = made.weight[0].meta["value"].shape[0]
    products = sum(each.meta["value"].numbers for each in made.weight) // outputs
    results = node.meta["value"].numbers // outputs
    return products >= LEAST and (made.rank != 2 or results >= LEAST_ROWS)


def _is_narrow(prover: Prover, node: Node, made: AffineMap) -> bool:
    """Whether it is proved, with all that is added to it before or after it is truncated."""
    draft = prover.draft
    scales = [bits_taken(draft, x) + draft.bits_of(w) for x, w in zip(made.x, made.weight, strict=True)]
    total, dropped = max(scales), max(scales) - draft.scale.bits
    width, reach = node.meta["guard"] or Guard(node.meta["width"] or fixed.WORD, 0)
    is_rectified = node.target is torch.ops.tacit.rectified_affine.default
    compared = fixed.width(width, draft.scale) + max(0, reach - 2) if is_rectified else 0
    if dropped <= 0 or dropped + fixed.ABOVE + compared > fixed.WORD:
        return False
    summed = prover.compared(node) if is_rectified else prover.known.get(node)
    parts = [prover.of(each) for each in (*made.bias, *made.addends)]
    return is_below([summed, *parts], total, fixed.NARROW)
