"""Requires: weights, scales and approximations as they will be. Ensures: each comparison of
fractions, those of a function with its cutoffs too, has as many bits as what it compares is proved
to need, and one more for the sign; where nothing is proved it has all. With calibration data a
comparison that decides what is rectified may have fewer, which a guard holds it against; behind it
intervals begin anew. Saves: bits of masks and messages, and with fewer than 44 bits a round."""

import math
from collections.abc import Mapping

import torch

from tacit import fixed
from tacit.compilation.approximating import looks_at_sides
from tacit.compilation.comparing import COMPARING, RECTIFYING, WITH_ZERO, Guard, compares
from tacit.compilation.graph import Draft, Interval, Node, calls
from tacit.compilation.intervals import Prover, bounds

aten = torch.ops.aten

#: Widths below this are not taken: what is saved by them is little.
LEAST = 12

#: How many times greater what is compared may be than in calibration, before a guard fails.
MARGIN = 4.0

#: Bits that guards save a program at least, or it has none unless they are asked for: what a link
#: of a gigabit a second carries in ten rounds of a millisecond, which looking at guards takes.
WORTH = 1e7


def assign_widths(
    draft: Draft,
    seen: Mapping[str, Interval] | None = None,
    margin: float | None = None,
    *,
    uniform: bool = False,
) -> None:
    """Carries the pass out.

    Args:
        seen: between which numbers each node's comparisons were in calibration.
        margin: how many times more passes a guard; without it the usual margin, and guards where
            they are worth their rounds.
        uniform: one width for all comparisons, and no intervals but those of inputs: the program
            tells less of weights.
    """
    prover, unit = Prover(draft), _unit(draft)
    for node in draft.graph.nodes:
        prover.enter(node)
        has_width = compares(node) or (looks_at_sides(node) and not uniform)
        width = _proved(node, prover.compared(node), unit) if has_width else None
        node.meta.update(interval=prover.known.get(node), width=width, guard=None)
    guards = None if seen is None else _Guards(prover, seen, MARGIN if margin is None else margin)
    if uniform:
        _make_uniform(draft, guards)
    elif guards is not None:
        guards.assign()
    if guards is not None and margin is None and not guards.are_worth_it():
        for node in draft.graph.nodes:
            node.meta["guard"] = None
            node.meta["interval"] = None if uniform else prover.known.get(node)


def _unit(draft: Draft) -> float:
    """What public numbers may be off when they are encoded."""
    return 4 * 2.0**-draft.scale.bits


def most_compared(node: Node, around: Interval | None, unit: float) -> float | None:
    """The greatest magnitude of all numbers that are compared, and of their differences."""
    if around is None:
        return None
    numbers = [
        number for number in (0.0, *bounds(node)) if number is not None and math.isfinite(number)
    ]
    low, high = min(around[0], *numbers), max(around[1], *numbers)
    if node.target in WITH_ZERO:
        return max(abs(low), abs(high)) + unit
    return max(abs(low), abs(high), high - low) + unit


def _proved(node: Node, around: Interval | None, unit: float) -> int | None:
    greatest = most_compared(node, around, unit)
    if greatest is None:
        return None
    # |x| < 2^(w − 1) as a word; strictly, so a power of two needs a bit more.
    bits = max(LEAST, 2 + fixed.DEFAULT.bits + math.floor(math.log2(greatest)))
    return bits if bits < fixed.WORD else None


class _Guards:
    """Goes through a graph once, and lets intervals begin anew behind each guard."""

    def __init__(self, without: Prover, seen: Mapping[str, Interval], margin: float) -> None:
        self._without, self._draft, self._unit = without, without.draft, _unit(without.draft)
        self._seen, self._margin = seen, margin

    def assign(self, least: int = LEAST, *, always: bool = False) -> list[Guard]:
        """Gives each comparison its guard, and tells all that are no proofs.

        Args:
            least: no width is less.
            always: whether what can be guarded is, even where a proof is cheaper.
        """
        prover = Prover(self._draft, self._without)
        made: list[Guard] = []
        for node in self._draft.graph.nodes:
            if compares(node):
                around = prover.compared(node)
                guarded, width = (
                    self._guarded(node, around, least),
                    _proved(node, around, self._unit),
                )
                best = guarded
                if guarded is None or not always:
                    proved = None if width is None else Guard(max(least, width), 0)
                    both = [each for each in (proved, guarded) if each is not None]
                    best = min(both, key=lambda each: each.cost, default=None)
                if best is not None and best.reach:
                    prover.guarded[node] = best.most + self._unit
                    made.append(best)
                node.meta["guard"] = None if best == (node.meta["width"], 0) else best
            prover.enter(node)
            node.meta["interval"] = prover.known.get(node)
        return made

    def are_worth_it(self) -> bool:
        """Whether they save more than looking at them costs."""
        saved = 0
        for node in self._draft.graph.nodes:
            guard, width = node.meta.get("guard"), node.meta.get("width")
            if guard is not None:
                saved += _comparisons(node) * (Guard(width or fixed.WORD, 0).cost - guard.cost)
        return saved >= WORTH

    def _guarded(self, node: Node, around: Interval | None, least: int) -> Guard | None:
        seen = most_compared(node, self._seen.get(node.name), self._unit)
        if seen is None or node.target not in RECTIFYING:
            return None
        bits = 4 + fixed.DEFAULT.bits + math.floor(math.log2(self._margin * seen + self._unit))
        guard = Guard(max(least, bits), 0)
        # A word has no more above those that are compared, before it is truncated.
        room = (
            fixed.WORD - self._truncated(node) - (fixed.width(guard.width, self._draft.scale) - 2)
        )
        if room < 2:
            return None
        greatest = most_compared(node, around, self._unit)
        if greatest is None:
            return guard._replace(reach=room)
        # |x + 2^(b − 1)| < 2^b·(2^reach − 2), for b of two bits less than the width.
        reach = 1 + math.floor(math.log2(greatest / (2 * guard.passes) + 2.5))
        return guard._replace(reach=min(room, reach))

    def _truncated(self, node: Node) -> int:
        """Bits that are dropped of what is compared."""
        return (
            self._draft.bits_of(*node.args[1])
            if node.target is torch.ops.tacit.rectified_affine.default
            else 0
        )


def _comparisons(node: Node) -> int:
    """How many a node takes, about: of a pooling one for each place of a window."""
    places = node.meta["value"].numbers
    if node.target in (aten.max_pool2d.default, torch.ops.tacit.rectified_max_pool2d.default):
        places *= math.prod([*node.args[1], *node.args[1]][:2])
    return places


def _make_uniform(draft: Draft, guards: _Guards | None) -> None:
    nodes = list(calls(draft.graph, *COMPARING))
    widths = [node.meta["width"] for node in nodes]
    widest = None if not widths or None in widths else max(widths)
    for node in nodes:
        node.meta["width"] = widest
    least, made = 0, [] if guards is None else guards.assign(always=True)
    while guards is not None and made and least < max(made).width:
        least = max(made).width
        made = guards.assign(least, always=True)
    reach = max((each.reach for each in made), default=0)
    is_cheaper = made and Guard(least, reach).cost < Guard(widest or fixed.WORD, 0).cost
    for node in nodes:
        guard = node.meta["guard"] if is_cheaper else None
        if guard is not None:
            # One that is proved to need more is compared in full.
            guard = Guard(least, guard.reach and reach) if guard.width == least else None
        node.meta["guard"] = guard
    for node in draft.graph.nodes:
        node.meta["interval"] = None
