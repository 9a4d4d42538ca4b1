"""How many digits weights keep that passes have changed, and that what their layers give stays in
range
beside them: a word holds numbers below 2^62, and products with weights of more fraction bits less.
"""

import math
from typing import Any

import torch

from tacit.compilation.graph import Draft, Node, plain
from tacit.compilation.intervals import intervals
from tacit.fixed import RANGE
from tacit.operators.normalization import FACTOR_SCALE

#: What is not proved to be within the range is taken to be where the calibration data stay so many
#: bits off.
DISTANCE = 6


def with_more(bits: int, factor: torch.Tensor) -> int:
    """The fraction bits with which weights that become smaller by a factor keep as many digits; no
    more than factors of normalisations have, beside which results are right below 2^22."""
    magnitudes = factor.abs()
    least = float(magnitudes[magnitudes > 0].min()) if bool((magnitudes > 0).any()) else 1.0
    return max(bits, min(bits + max(0, math.ceil(-math.log2(least))), FACTOR_SCALE.bits))


def with_free(bits: int, factor: torch.Tensor) -> int:
    """The same, but no more than take nothing of the range: results become smaller by the factor
    too."""
    greatest = float(factor.abs().max()) if factor.numel() else 0.0
    more = math.floor(-math.log2(greatest)) if 0.0 < greatest < 1.0 else 0
    return max(bits, min(bits + more, FACTOR_SCALE.bits))


def most_bits(scale: int, reach: float) -> int:
    """The fraction bits of weights beside which a layer may give numbers of that magnitude."""
    return RANGE - scale - max(0, math.ceil(math.log2(max(reach, 1.0))))


class Reach:
    """What the nodes of a draft give at most: as proved, or else so many times what the calibration
    data make of them. Of a draft without promised inputs nothing is known."""

    def __init__(self, draft: Draft) -> None:
        self._seen: dict[Node, float] = {}
        for batch in draft.calibration:
            plain(draft, batch, self._look)
        self._proved = {node: max(map(abs, ends)) for node, ends in intervals(draft).items()}

    def _look(self, node: Node, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
            self._seen[node] = max(self._seen.get(node, 0.0), float(value.abs().max()))

    def of(self, node: Node) -> float | None:
        """The greatest magnitude that a node gives, if anything is known of it."""
        known = [self._proved[node]] if node in self._proved else []
        if node in self._seen and math.isfinite(self._seen[node]):
            known.append(self._seen[node] * 2.0**DISTANCE)
        return min(known, default=None)

    def replace(self, old: Node, new: Node) -> None:
        """Another node gives what that one gave."""
        for known in (self._seen, self._proved):
            if old in known:
                known[new] = known[old]

    def allows(self, draft: Draft, node: Node, bits: int) -> bool:
        """Whether weights of so many fraction bits leave the range that a node needs."""
        reach = self.of(node)
        return reach is not None and bits <= most_bits(draft.scale.bits, reach)
