"""Requires: weights, scales, widths, guards and what is not truncated as they will be. Ensures: a
layer's product is narrow, so that parties may compute its lowest 51 bits alone, only where it is
proved to be below 2^49 before it is truncated, if all guards before it hold; the sign of its ReLU,
and its guard, have the room that they need in what is left of a word. Saves: with replicated
sharing three fifths of the instructions of products, for 13 bits more of each result over all links
together; so only layers with many products a result have narrow ones."""

import torch

from tacit import fixed
from tacit.compilation.comparing import Guard
from tacit.compilation.graph import NARROWING, Draft, Node, calls
from tacit.compilation.intervals import Prover
from tacit.compilation.passes.affine_maps import AffineMap
from tacit.compilation.passes.merge_truncations import bits_taken, finer, is_below
from tacit.operators.dispatch import custom_ops

#: Products that each result is a sum of, at least: of fewer less time is saved than a third of 13
#: bits takes on a link of a gigabit a second.
LEAST = 64

#: Of fewer results of an output or inputs that a linear layer has, or fewer filters of a group,
#: products are not computed by tiles (``crates/kernels``), and so not faster by their lowest bits.
LEAST_ROWS, LEAST_FILTERS = 7, 4


def narrow_products(draft: Draft, *, uniform: bool = False) -> None:
    """Carries the pass out.

    Args:
        uniform: all that may pay are narrow or none is, so that it tells little which.
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
            # A layer of public numbers is no secret product, and adds up what others truncate.
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
    """The fraction bits of its product if that is proved to be narrow, with all that is added to it
    before or after it is truncated, or else 0."""
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
