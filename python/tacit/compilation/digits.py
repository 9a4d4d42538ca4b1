"""Fraction bits of weights that passes change.

A word holds numbers below 2^62, and products with weights of more fraction bits leave less room. So
these functions decide how many digits a changed weight keeps, and whether its layer's results stay
in range.
"""

import math
from typing import Any

import torch

from tacit.compilation.graph import Draft, Node, plain
from tacit.compilation.intervals import intervals
from tacit.fixed import RANGE
from tacit.operators.normalization import FACTOR_SCALE

#: Numbers that are not proved to be within the range are assumed to be, if the calibration data
#: stay this many bits below it.
DISTANCE = 6


def with_more(bits: int, factor: torch.Tensor) -> int:
    """Returns the fraction bits with which weights that a factor makes smaller keep as many digits.

    They are at most those of the factors of normalisations, with which results are right below
    2^22."""
    magnitudes = factor.abs()
    least = float(magnitudes[magnitudes > 0].min()) if bool((magnitudes > 0).any()) else 1.0
    return max(bits, min(bits + max(0, math.ceil(-math.log2(least))), FACTOR_SCALE.bits))


def with_free(bits: int, factor: torch.Tensor) -> int:
    """Returns the fraction bits that weights can gain from a factor without taking any of the
    range, because results become smaller by the factor too."""
    greatest = float(factor.abs().max()) if factor.numel() else 0.0
    more = math.floor(-math.log2(greatest)) if 0.0 < greatest < 1.0 else 0
    return max(bits, min(bits + more, FACTOR_SCALE.bits))


def most_bits(scale: int, reach: float) -> int:
    """Returns the greatest number of fraction bits of a layer's weights, if its results reach this
    magnitude."""
    return RANGE - scale - max(0, math.ceil(math.log2(max(reach, 1.0))))


class Reach:
    """Bounds on the results of a draft's nodes.

    They are proved, or otherwise a multiple of what the calibration data give. Without promised
    inputs nothing is known of a draft."""

    def __init__(self, draft: Draft) -> None:
        self._seen: dict[Node, float] = {}
        for batch in draft.calibration:
            plain(draft, batch, self._look)
        self._proved = {node: max(map(abs, ends)) for node, ends in intervals(draft).items()}

    def _look(self, node: Node, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
            self._seen[node] = max(self._seen.get(node, 0.0), float(value.abs().max()))

    def of(self, node: Node) -> float | None:
        """Returns the greatest magnitude of a node's result, if anything is known of it."""
        known = [self._proved[node]] if node in self._proved else []
        if node in self._seen and math.isfinite(self._seen[node]):
            known.append(self._seen[node] * 2.0**DISTANCE)
        return min(known, default=None)

    def replace(self, old: Node, new: Node) -> None:
        """Records that a new node gives what an old one gave."""
        for known in (self._seen, self._proved):
            if old in known:
                known[new] = known[old]

    def allows(self, draft: Draft, node: Node, bits: int) -> bool:
        """Returns whether weights of this number of fraction bits leave the range that a node
        needs."""
        reach = self.of(node)
        return reach is not None and bits <= most_bits(draft.scale.bits, reach)
