"""Merges the truncations of consecutive layers.

Requires: final weights, scales, widths and guards. Ensures: the result of a layer is not truncated
if a single other layer, or an average pooling, uses it, and if the result of both is proved,
without guards, to stay below 2^62 before it is truncated for both. The final result is at most one
unit off the exact result of the encoded numbers. Saves: a truncation for each element, and its
rounds. The last truncation drops more bits, each of which is sent as a bit of the first one is, so
the last may not have more elements than the first."""

import torch
from torch import fx

from tacit import fixed
from tacit.compilation.affine_maps import AffineMap
from tacit.compilation.comparing import Guard
from tacit.compilation.graph import KEEPING, Draft, Interval, Node, calls
from tacit.compilation.intervals import Prover

aten = torch.ops.aten

#: Average poolings, whose public factors leave room for encoded words.
AVERAGING = (
    aten.avg_pool2d.default,
    aten.adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool2d.default,
)

#: Operators that may stand between two layers: they move or add elements and keep the scale of
#: their operand.
BETWEEN = (
    aten.flatten.using_ints,
    aten.permute.default,
    aten.reshape.default,
    aten.sum.dim_IntList,
    aten.transpose.int,
    aten.view.default,
)

#: Operators whose results are truncated.
TRUNCATING = (
    *KEEPING,
    *AVERAGING,
    aten.convolution.default,
    torch.ops.tacit.affine.default,
    torch.ops.tacit.rectified_affine.default,
    aten.matmul.default,
    aten.mm.default,
    aten.addmm.default,
    aten.bmm.default,
    aten.mul.Tensor,
    aten.mul.Scalar,
    aten.div.Tensor,
    aten.div.Scalar,
    aten.mean.dim,
    aten.batch_norm.default,
    aten._native_batch_norm_legit_no_training.default,
)


def truncations(graph: fx.Graph, *, merged: bool = True) -> int:
    """Returns how many operators truncate a product to the scale of its operands. With
    ``merged=False``, counts them as if no truncations were merged."""
    return sum(not merged or node.meta.get("scale") is None for node in calls(graph, *TRUNCATING))


def merge_truncations(draft: Draft) -> None:
    """Merges truncations, in place: the scale of each result that is not truncated is stored at its
    node."""
    found = _Chains(draft)
    # The first layer of a chain comes first, so that the scale of what a later one takes is known.
    for node in calls(draft.graph, *KEEPING):
        scale = found.scale_of_product(node)
        if scale is not None and found.can_keep(node, scale):
            node.meta["scale"] = scale


class _Chains:
    """Intervals and scales of layers that follow one another."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._prover, self._finer = draft, Prover(draft), finer(draft.graph)
        for node in draft.graph.nodes:
            self._prover.enter(node)

    def scale_of_product(self, node: Node) -> int | None:
        """Returns the fraction bits of a layer's product before truncation, if its weights are the
        owner's."""
        bias = node.args[2] if len(node.args) > 2 else None
        known = [self._draft.weight(each) for each in (node.args[1], bias) if each is not None]
        if any(each is None for each in known) or not node.meta["value"].dtype.is_floating_point:
            return None
        if node.args[0] in self._finer:
            return None
        return bits_taken(self._draft, node.args[0]) + self._draft.bits_of(node.args[1])

    def can_keep(self, node: Node, scale: int) -> bool:
        """Returns whether a layer's result at this scale is used by one other layer alone, whose
        product can hold it."""
        if scale > fixed.MOST_FRACTION_BITS or not self._is_below(node, scale, fixed.RANGE):
            return False
        last = node
        while True:
            if len(last.users) != 1:
                return False
            (user,) = last.users
            if user.op != "call_function" or user.target not in BETWEEN:
                break
            if not self._is_below(user, scale, fixed.RANGE):
                return False
            last = user
        if user.op != "call_function" or user.meta["value"].numbers > node.meta["value"].numbers:
            return False
        if user.target in AVERAGING:
            return self._is_below(user.args[0], scale, fixed.ENCODED)
        return self._holds(user, last, scale)

    def _holds(self, user: Node, x: Node, scale: int) -> bool:
        """Returns whether a layer's product is in range before truncation, if its operand has this
        scale."""
        is_rectified = user.target is _RECTIFIED
        made = (
            AffineMap.of(self._draft, user)
            if user.target in (*KEEPING, _AFFINE, _RECTIFIED)
            else None
        )
        if made is None or made.x != [x] or x in made.addends:
            return False
        own = self._draft.bits_of(*made.weight)
        total = scale + own
        if total > fixed.MOST_IN_PRODUCT:
            return False
        if is_rectified and not self._has_room(user, scale - self._draft.scale.bits, own):
            return False
        summed = self._prover.compared(user) if is_rectified else self._prover.known.get(user)
        # The summands are checked too: some are truncated before they are added, some after.
        parts = [self._prover.of(each) for each in (*made.bias, *made.addends)]
        return is_below([summed, *parts], total, fixed.RANGE)

    def _has_room(self, user: Node, more: int, dropped: int) -> bool:
        """Returns whether the sign of a ReLU can still be computed during the truncation, at its
        own width, if it can be now.

        For that, the truncated bits and the compared bits must fit into a word together."""
        width, guard = user.meta.get("width"), user.meta.get("guard")
        compared = [Guard(width or fixed.WORD, 0), *([guard] if guard else [])]
        for each, reach in compared:
            own = fixed.width(each, self._draft.scale)
            needed = dropped + own + max(0, reach - 2)
            if needed <= fixed.WORD < needed + more:
                return False
        return True

    def _is_below(self, node: Node, scale: int, bits: int) -> bool:
        return is_below([self._prover.known.get(node)], scale, bits)


_AFFINE, _RECTIFIED = torch.ops.tacit.affine.default, torch.ops.tacit.rectified_affine.default


def finer(graph: fx.Graph) -> set[Node]:
    """Returns the nodes that may have more fraction bits than the session although no product's
    were kept.

    They are inverse roots, and whatever is computed from them and not truncated."""
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op == "call_function" and (
            node.target is aten.rsqrt.default
            or (node.target not in TRUNCATING and not found.isdisjoint(node.all_input_nodes))
        ):
            found.add(node)
    return found


def bits_taken(draft: Draft, node: Node) -> int:
    """Returns the fraction bits of a layer's operand that is not among ``finer``: those of the
    session, unless those of a product were kept."""
    while node.op == "call_function" and node.target in BETWEEN:
        node = node.args[0]
    return int(node.meta.get("scale") or draft.scale.bits)


def is_below(summands: list[Interval | None], scale: int, bits: int) -> bool:
    """Returns whether the magnitudes of all summands together are proved to be below 2^``bits``, as
    words of a scale."""
    known = [each for each in summands if each is not None]
    greatest = sum(max(-low, high, 0.0) for low, high in known)
    return len(known) == len(summands) and greatest * 2.0**scale < 2.0**bits
