"""Assigns widths to comparisons, and guards.

Requires: final weights, scales and approximations. Ensures: each comparison of fractions, including
those of a function with its cutoffs, has as many bits as the compared numbers are proved to need,
and one more for the sign. If nothing is proved, it has all bits. With calibration data, a
comparison that decides what is rectified may have fewer bits, and a guard then tests that its
numbers fit. Intervals begin anew after the guard. Saves: bits of masks and messages, and with fewer
than 44 bits a round."""

import math
from collections.abc import Mapping

import torch

from tacit import fixed
from tacit.compilation.approximating import compares_with_cutoffs
from tacit.compilation.comparing import COMPARING, RECTIFYING, WITH_ZERO, Guard, compares
from tacit.compilation.graph import Draft, Interval, Node, calls
from tacit.compilation.intervals import Prover, bounds

aten = torch.ops.aten

#: Least width: smaller ones would save little more.
LEAST = 12

#: How many times greater than in calibration compared numbers may be by default before a guard
#: fails.
MARGIN = 4.0

#: Bits that guards must save in a program, unless they are asked for. A link of a gigabit per
#: second carries as many in the ten rounds of a millisecond each that testing guards takes.
WORTH = 1e7


def assign_widths(
    draft: Draft,
    seen: Mapping[str, Interval] | None = None,
    margin: float | None = None,
    *,
    uniform: bool = False,
) -> None:
    """Assigns widths and guards to the comparisons of a draft, in place.

    Args:
        seen: interval of what each node compared in calibration.
        margin: how many times greater than in calibration a number may be and still pass a guard.
            By default the usual margin, and guards only if they are worth their rounds.
        uniform: one width for all comparisons, and no intervals except those of inputs, so that the
            program reveals less about the weights.
    """
    prover, unit = Prover(draft), _unit(draft)
    for node in draft.graph.nodes:
        prover.enter(node)
        has_width = compares(node) or (compares_with_cutoffs(node) and not uniform)
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
    """Returns a bound on the error of encoded public numbers."""
    return 4 * 2.0**-draft.scale.bits


def most_compared(node: Node, around: Interval | None, unit: float) -> float | None:
    """Returns the greatest magnitude of all numbers that are compared, and of their differences."""
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
    # |x| < 2^(w − 1) as a word. The bound is strict, so a power of two needs one more bit.
    bits = max(LEAST, 2 + fixed.DEFAULT.bits + math.floor(math.log2(greatest)))
    return bits if bits < fixed.WORD else None


class _Guards:
    """Assignment of guards: goes through a graph once, and lets intervals begin anew after each
    guard."""

    def __init__(self, without: Prover, seen: Mapping[str, Interval], margin: float) -> None:
        self._without, self._draft, self._unit = without, without.draft, _unit(without.draft)
        self._seen, self._margin = seen, margin

    def assign(self, least: int = LEAST, *, always: bool = False) -> list[Guard]:
        """Gives each comparison its guard, and returns all guards that are not proofs.

        Args:
            least: least width.
            always: whether everything that can be guarded is, even if a proof is cheaper.
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
        """Returns whether the guards save more than testing them costs."""
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
        # Before it is truncated, a word has no more bits above those that are compared.
        room = (
            fixed.WORD - self._truncated(node) - (fixed.width(guard.width, self._draft.scale) - 2)
        )
        if room < 2:
            return None
        greatest = most_compared(node, around, self._unit)
        if greatest is None:
            return guard._replace(reach=room)
        # |x + 2^(b − 1)| < 2^b·(2^reach − 2), where b is the width minus two.
        reach = 1 + math.floor(math.log2(greatest / (2 * guard.passes) + 2.5))
        return guard._replace(reach=min(room, reach))

    def _truncated(self, node: Node) -> int:
        """Returns the number of bits that truncation drops from what is compared."""
        return (
            self._draft.bits_of(*node.args[1])
            if node.target is torch.ops.tacit.rectified_affine.default
            else 0
        )


def _comparisons(node: Node) -> int:
    """Returns about how many comparisons a node takes: a pooling takes one for each place of a
    window."""
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
            # A comparison that is proved to need more bits has all of them.
            guard = Guard(least, guard.reach and reach) if guard.width == least else None
        node.meta["guard"] = guard
    for node in draft.graph.nodes:
        node.meta["interval"] = None
