"""Drops low bits of the comparisons of ReLUs, within a tolerance.

Requires: final widths and guards. Ensures: a ReLU of fractions, also one that is fused with a
layer, ignores those low bits of its operand that the tolerance allows. A positive number below
2^(dropped − scale) may become zero, and nothing else changes. This holds in every protocol and with
any number of parties, because each protocol drops only as many bits as keep it true. All other
comparisons keep their bits: those that the model itself writes; those with numbers other than zero
(a clamp, ReLU6); those of a pooling, where the errors of successive comparisons would add up; and
those of numbers whose normalisation is in the layers after them, because they are not the model's
numbers. Saves: bits of masks and messages, and rounds if few bits are left."""

import math

from tacit import fixed
from tacit.compilation.comparing import DROPPING
from tacit.compilation.graph import Draft, Node, calls
from tacit.compilation.intervals import Prover
from tacit.compilation.passes.assign_widths import most_compared
from tacit.errors import MisuseError


def drop_low_bits(draft: Draft, tolerance: float, *, uniform: bool = False) -> list[int]:
    """Drops low bits of ReLUs, in place, and returns how many bits each of them drops.

    Args:
        tolerance: greatest error of a ReLU.
        uniform: whether all ReLUs drop the same number of bits, which is the least, so that the
            program reveals less about the weights.

    Raises:
        MisuseError: the tolerance is less than the value of one bit.
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
    """Low bits that each ReLU of fractions can ignore, by the room that its widths leave above the
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
        """Returns all bits except the fewest that are compared.

        Numbers that pass a guard leave as much room above them."""
        bits = fixed.WORD if width is None else fixed.width(width, self._scale)
        return bits - fixed.LEAST_COMPARED

    def _of(self, prover: Prover, node: Node, width: int | None) -> int:
        """Returns the room in a proved width, which must also hold the dropped bits: |x| ≤ 2^(width
        − 1) − 2^dropped."""
        left = self._left(width)
        if width is None:
            return left
        most = most_compared(node, prover.compared(node), prover.unit)
        room = 0.0 if most is None else 2.0 ** (width - 1 - fixed.DEFAULT.bits) - most
        return min(left, _below(room) + self._scale.bits) if room > 0 else 0


def _below(number: float) -> int:
    """Returns the exponent of the greatest power of two that is at most ``number``."""
    return math.frexp(number)[1] - 1
