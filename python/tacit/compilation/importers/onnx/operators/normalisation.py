"""Normalisation by means and deviations."""

from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements


@implements("BatchNormalization", folds=False)
def batch_normalisation(
    node: Node,
    x: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
) -> torch.Tensor:
    """Batch normalisation by the statistics of training."""
    if node.flag("training_mode") or node.results > 1:
        raise NotImportedError("it is in training mode", "export the model in evaluation mode")
    return functional.batch_norm(
        x, mean, variance, scale, bias, False, 0.0, node.number("epsilon", 1e-5)
    )


@implements("InstanceNormalization", folds=False)
def instance_normalisation(
    node: Node, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Normalisation over the positions of each channel of each example."""
    return functional.instance_norm(x, weight=scale, bias=bias, eps=node.number("epsilon", 1e-5))


@implements("GroupNormalization", folds=False)
def group_normalisation(
    node: Node, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Normalisation over the channels of each group. Up to opset 20 a group has one scale."""
    groups, epsilon = node.integer("num_groups"), node.number("epsilon", 1e-5)
    if node.opset < 21:
        each = x.shape[1] // groups
        scale, bias = scale.repeat_interleave(each), bias.repeat_interleave(each)
    return functional.group_norm(x, groups, scale, bias, epsilon)


@implements("LayerNormalization", folds=False)
def layer_normalisation(
    node: Node, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None
) -> Any:
    """Normalisation over the last dimensions, from an axis on, with the mean and 1/deviation if the
    file uses them."""
    axis, epsilon = node.integer("axis", -1) % max(x.ndim, 1), node.number("epsilon", 1e-5)
    shape = list(x.shape[axis:])
    if list(scale.shape) == shape and (bias is None or list(bias.shape) == shape):
        found = functional.layer_norm(x, shape, scale, bias, epsilon)
    else:
        found = functional.layer_norm(x, shape, eps=epsilon) * scale
        found = found if bias is None else found + bias
    if node.results == 1:
        return found
    dims = list(range(axis, x.ndim))
    variance, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    return found, mean, torch.rsqrt(variance + epsilon)


@implements("RMSNormalization", folds=False)
def root_mean_square_normalisation(
    node: Node, x: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor:
    """Normalisation by the root of the mean square alone."""
    axis, epsilon = node.integer("axis", -1) % max(x.ndim, 1), node.number("epsilon", 1e-5)
    mean = torch.mean(x * x, list(range(axis, x.ndim)), keepdim=True)
    return x * torch.rsqrt(mean + epsilon) * scale


@implements("MeanVarianceNormalization")
def mean_variance_normalisation(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Normalisation to mean 0 and deviation 1 over some axes."""
    axes = node.integers("axes") or [0, 2, 3]
    mean = torch.mean(x, axes, keepdim=True)
    variance = torch.mean(x * x, axes, keepdim=True) - mean * mean
    return (x - mean) / (torch.sqrt(variance) + 1e-9)


@implements("LRN")
def local_response_normalisation(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Normalisation by the squares of nearby channels."""
    size = node.integer("size")
    if size % 2:
        return functional.local_response_norm(
            x, size, node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0)
        )
    raise NotImportedError(f"it is over {size} channels", "use an odd number")


@implements("LpNormalization")
def norm_normalisation(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Normalisation by the p-norm along an axis; 0 stays 0."""
    axis = node.integer("axis", -1)
    norm = torch.linalg.vector_norm(x, node.integer("p", 2), dim=axis, keepdim=True)
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)
