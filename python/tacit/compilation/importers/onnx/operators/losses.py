"""Losses, in which some files end."""

from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.table import Node, implements

#: Value of ``ignore_index`` that leaves out no class.
NONE = -(1 << 31)


@implements("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    node: Node, x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None
) -> torch.Tensor:
    """Negative log-likelihood, from logarithms of probabilities."""
    left_out = node.integer("ignore_index", NONE)
    how = node.text("reduction", "mean")
    return functional.nll_loss(
        x, target.to(torch.int64), weight, ignore_index=left_out, reduction=how
    )


@implements("SoftmaxCrossEntropyLoss")
def cross_entropy(
    node: Node, x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None
) -> Any:
    """Cross entropy of scores, and the logarithms of their probabilities if the file uses them."""
    logarithms = torch.log_softmax(x, 1)
    loss = negative_log_likelihood(node, logarithms, target, weight)
    return (loss, logarithms) if node.results > 1 else loss
