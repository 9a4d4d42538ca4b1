"""Batch normalisation in evaluation mode, with parameters that the owner of the weights knows."""

import torch

from tacit.compilation.graph import Draft, Node
from tacit.operators.normalization import fold

aten = torch.ops.aten

#: Batch normalisation: the first operator returns one tensor, the second returns three.
#: ``EPSILON_AT`` gives the position of the argument epsilon in each.
BATCH_NORM, NATIVE_BATCH_NORM = (
    aten.batch_norm.default,
    aten._native_batch_norm_legit_no_training.default,
)
EPSILON_AT = {BATCH_NORM: 7, NATIVE_BATCH_NORM: 6}


def factors(draft: Draft, node: Node) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Returns factor and offset of each channel in float64, or ``None`` if they do not follow from
    the owner's weights."""
    statistics = node.args[1:5]
    values = [None if each is None else draft.weight(each) for each in statistics]
    if any(
        value is None and each is not None for value, each in zip(values, statistics, strict=True)
    ):
        return None
    mean, variance = values[2:]
    if mean is None or variance is None:
        return None
    return fold(values[0], values[1], mean, variance, float(node.args[EPSILON_AT[node.target]]))
