"""Requires: widths and guards as they will be. Ensures: a ReLU of fractions, be it beside a layer
too, does not look at the low bits of what it compares that a tolerance allows: a positive number
below 2^(dropped − scale) may become zero, and nothing else changes. That holds in every protocol,
with any number of parties, as each drops as many bits as keep it. All other comparisons keep their
bits: those that the model writes itself, those with other numbers than zero (a clamp, ReLU6), those
of a pooling, where one loser after another would err, and those of numbers whose normalisation is
in the layers behind, which are other numbers than the model's. Saves: bits of masks and messages,
and rounds where few bits are left."""

import math

from tacit import fixed
from tacit.compilation.comparing import DROPPING
from tacit.compilation.graph import Draft, Node, calls
from tacit.compilation.intervals import Prover
from tacit.compilation.passes.assign_widths import most_compared
from tacit.errors import MisuseError


def drop_low_bits(draft: Draft, tolerance: float, *, uniform: bool = False) -> list[int]:
    """Carries the pass out; how many bits each ReLU drops.

    Args:
        tolerance: what a ReLU may err by at most.
        uniform: as many bits for all, which are the fewest: the program tells less of weights.

    Raises:
        MisuseError: it is less than what one bit holds.
    """
    most = _below(tolerance) + draft.scale.bits
    if most < 1:
        least = 2.0 ** (1 - draft.scale.bits)
        raise MisuseError(
            f"a tolerance of {tolerance:g} drops no bit: numbers have {draft.scale.bits} fraction "
            f"bits, of "
            f"which one takes {least:g}; give at least that, or none"
        )
    rooms = _Rooms(draft)
    found = {
        node: min(most, rooms.of[node])
        for node in calls(draft.graph, *DROPPING)
        if node in rooms.of
    }
    if uniform and found:
        found = dict.fromkeys(found, min(found.values()))
    for node, dropped in found.items():
        node.meta["dropped"] = dropped
    return list(found.values())


class _Rooms:
    """How many low bits each ReLU of fractions can do without, by what its widths leave above the
    numbers that it compares."""

    def __init__(self, draft: Draft) -> None:
        self._scale = draft.scale
        self.of: dict[Node, int] = {}
        proved = Prover(draft)
        guarded = Prover(draft, proved)
        for node in draft.graph.nodes:
            width, guard = node.meta.get("width"), node.meta.get("guard")
            if guard is not None and guard.reach:
                guarded.guarded[node] = guard.most + guarded.unit
            if node.target in DROPPING and node.meta["value"].dtype.is_floating_point:
                rooms = [self._of(proved, node, width)]
                if guard is not None:
                    own = (
                        self._left(guard.width)
                        if guard.reach
                        else self._of(guarded, node, guard.width)
                    )
                    rooms.append(own)
                self.of[node] = max(0, min(rooms))
            proved.enter(node)
            guarded.enter(node)

    def _left(self, width: int | None) -> int:
        """All but the fewest that are compared. What a guard passes leaves as
        much room above it."""
        bits = fixed.WORD if width is None else fixed.width(width, self._scale)
        return bits - fixed.LEAST_COMPARED

    def _of(self, prover: Prover, node: Node, width: int | None) -> int:
        """Of a proved width, which must hold the lost bits besides: |x| ≤ 2^(width − 1) −
        2^dropped."""
        left = self._left(width)
        if width is None:
            return left
        most = most_compared(node, prover.compared(node), prover.unit)
        room = 0.0 if most is None else 2.0 ** (width - 1 - fixed.DEFAULT.bits) - most
        return min(left, _below(room) + self._scale.bits) if room > 0 else 0


def _below(number: float) -> int:
    """The exponent of the greatest power of two that is no more."""
    return math.frexp(number)[1] - 1
