"""Intervals of the results of layers, computed channel by channel from the weights as they are
encoded."""

from collections.abc import Sequence

import torch

from tacit.compilation.graph import Interval, Node
from tacit.compilation.normalisations import BATCH_NORM, NATIVE_BATCH_NORM, factors
from tacit.compilation.prover import Prover, rule
from tacit.operators.normalization import FACTOR_SCALE

aten = torch.ops.aten


@rule(aten.conv1d.default, aten.conv2d.default, aten.conv3d.default, aten.linear.default)
def _weighted(prover: Prover, node: Node) -> Interval | None:
    """Bounds Σ w·x for each channel, with x at the end of its interval that makes the sum extreme,
    and zero in the padding."""
    bias = node.args[2] if len(node.args) > 2 else None
    ends = _of_channels(prover, [node.args[0]], [node.args[1]], bias)
    return ends and prover.rounded(float(ends[0].min()), float(ends[1].max()))


@rule(BATCH_NORM, NATIVE_BATCH_NORM)
def _normalised(prover: Prover, node: Node) -> Interval | None:
    """Bounds factor·x + offset for each channel."""
    x, folded = prover.of(node.args[0]), factors(prover.draft, node)
    if x is None or folded is None:
        return None
    ends = torch.stack([folded[0] * end + folded[1] for end in x])
    rounding = 2.0**-FACTOR_SCALE.bits * max(map(abs, x))
    return prover.rounded(float(ends.min()) - rounding, float(ends.max()) + rounding)


@rule(torch.ops.tacit.affine.default)
def _mapped(prover: Prover, node: Node) -> Interval | None:
    """Bounds the sum of several layers and of the addends."""
    x, weight, bias, addends, _ = node.args
    ends = _of_channels(prover, x, weight, bias)
    more = [prover.of(each) for each in addends]
    if ends is None or None in more:
        return None
    low = float(ends[0].min()) + sum(each[0] for each in more if each is not None)
    high = float(ends[1].max()) + sum(each[1] for each in more if each is not None)
    return prover.rounded(low, high)


def _of_channels(
    prover: Prover, x: Sequence[Node], weight: Sequence[Node], bias: Node | None
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Returns the least and the greatest result of each channel."""
    offset = torch.zeros((), dtype=torch.float64) if bias is None else prover.encoded(bias)
    if offset is None:
        return None
    low = high = offset
    for each, factor in zip(map(prover.of, x), weight, strict=True):
        signed = prover.signed(factor)
        if each is None or signed is None:
            return None
        # Padding is zeros.
        is_linear = len(factor.meta["value"].shape) == 2
        ends = each if is_linear else (min(each[0], 0.0), max(each[1], 0.0))
        positive, negative = signed
        low = low + positive * ends[0] + negative * ends[1]
        high = high + positive * ends[1] + negative * ends[0]
    return low, high
