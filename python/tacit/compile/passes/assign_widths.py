"""Requires: weights and scales as they will be. Ensures: each comparison of fractions has as many bits as
what it compares is proved to need, and one more for the sign; where nothing is proved it has all. Saves: bits
of masks and messages, and with fewer than 44 bits a round."""

import math

import torch

from tacit import fixed
from tacit.compile.draft import Draft, Interval, Node, calls
from tacit.compile.intervals import bounds, hull, intervals

aten = torch.ops.aten

#: Operators that are nothing but comparisons of their operands with each other, with zero and with public
#: numbers, and choices.
COMPARING = (
    aten.abs.default,
    aten.amax.default,
    aten.amin.default,
    aten.argmax.default,
    aten.clamp.default,
    aten.clamp_min.default,
    aten.hardtanh.default,
    aten.leaky_relu.default,
    aten.max_pool2d.default,
    aten.maximum.default,
    aten.minimum.default,
    aten.relu.default,
    aten.relu6.default,
    torch.ops.tacit.rectified_max_pool2d.default,
)

#: Widths below this are not taken: what is saved by them is little.
LEAST = 12


def assign_widths(draft: Draft) -> None:
    """Carries the pass out."""
    known = intervals(draft)
    for node in draft.graph.nodes:
        node.meta["interval"] = known.get(node)
        node.meta["width"] = None
    for node in calls(draft.graph, *COMPARING):
        node.meta["width"] = _width(node, 4 * 2.0**-draft.scale.bits)


def _width(node: Node, unit: float) -> int | None:
    """Bits, counted at the default scale as ``comparison_width`` does, for all numbers that are compared and
    their differences; a unit is what public numbers may be off when they are encoded."""
    compared: list[Interval | None] = [source.meta["interval"] for source in node.all_input_nodes]
    around = hull(*compared)
    if around is None:
        return None
    low, high = around
    numbers = [number for number in (0.0, *bounds(node)) if number is not None and math.isfinite(number)]
    low, high = min(low, *numbers), max(high, *numbers)
    greatest = max(abs(low), abs(high), high - low) + unit
    # |x| < 2^(w − 1) as a word; strictly, so a power of two needs a bit more.
    bits = max(LEAST, 2 + fixed.DEFAULT.bits + math.floor(math.log2(greatest)))
    return bits if bits < fixed.WORD else None


def make_uniform(draft: Draft) -> None:
    """One width for all comparisons, and no intervals but those of inputs: the program tells less of
    weights."""
    nodes = list(calls(draft.graph, *COMPARING))
    widths = [node.meta["width"] for node in nodes]
    widest = None if not widths or None in widths else max(widths)
    for node in draft.graph.nodes:
        node.meta["interval"] = None
    for node in nodes:
        node.meta["width"] = widest
