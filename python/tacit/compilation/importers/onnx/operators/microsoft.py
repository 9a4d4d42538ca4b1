"""Operators of ``com.microsoft`` that ONNX's runtime makes of several of ONNX's own.

They are those of float models. What is quantised, or written for one device, is not imported."""

from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.operators.activation import named
from tacit.compilation.importers.onnx.operators.convolution import convolution
from tacit.compilation.importers.onnx.operators.linear import gemm
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements

#: Domain of the operators.
MICROSOFT = "com.microsoft"


@implements("Gelu", domain=MICROSOFT)
def gelu(_: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns x·Φ(x)."""
    return functional.gelu(x)


@implements("BiasGelu", domain=MICROSOFT)
def bias_gelu(_: Node, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Returns GELU of x plus a bias."""
    return functional.gelu(x + bias)


@implements("FastGelu", domain=MICROSOFT)
def fast_gelu(_: Node, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Returns the approximation of GELU by tanh, of x plus a bias."""
    return functional.gelu(x if bias is None else x + bias, approximate="tanh")


@implements("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns x·sigmoid(αx)."""
    return x * torch.sigmoid(node.number("alpha", 1.702) * x)


@implements("FusedMatMul", domain=MICROSOFT, folds=False)
def fused_matmul(node: Node, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns α·xy, with either of the matrices transposed."""
    if node.flag("transBatchA") or node.flag("transBatchB"):
        raise NotImportedError(
            "it transposes the dimensions of the batch", "export without optimisations"
        )
    x = x.transpose(-1, -2) if node.flag("transA") else x
    y = y.transpose(-1, -2) if node.flag("transB") else y
    product, alpha = torch.matmul(x, y), node.number("alpha", 1.0)
    return product if alpha == 1.0 else alpha * product


@implements("FusedGemm", domain=MICROSOFT, folds=False)
def fused_gemm(
    node: Node, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Returns an activation of α·A·B + β·C."""
    alpha, beta = (
        node.number(f"activation_{name}") if f"activation_{name}" in node.attributes else None
        for name in ("alpha", "beta")
    )
    return named(node.text("activation", "Relu"), alpha, beta)(gemm(node, x, weight, bias))


@implements("FusedConv", domain=MICROSOFT, folds=False)
def fused_convolution(
    node: Node,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    addend: torch.Tensor | None = None,
) -> torch.Tensor:
    """Returns an activation of a convolution, to which another tensor may be added."""
    found = convolution(node, x, weight, bias)
    found = found if addend is None else found + addend
    if not (activation := node.text("activation")):
        return found
    alpha, beta = ([*(node.numbers("activation_params") or []), None, None])[:2]
    if activation.lower() == "clip":
        return torch.clamp(found, alpha, beta)
    return named(activation, alpha, beta)(found)


def _normalised(node: Node, x: torch.Tensor, scale: torch.Tensor, bias: Any) -> torch.Tensor:
    return functional.layer_norm(x, list(scale.shape), scale, bias, node.number("epsilon", 1e-12))


@implements("SkipLayerNormalization", domain=MICROSOFT, folds=False)
def skip_layer_normalisation(
    node: Node,
    x: torch.Tensor,
    skip: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor | None = None,
    addend: torch.Tensor | None = None,
) -> Any:
    """Normalises a sum over its last dimension. The last result is the sum itself."""
    total = x + skip if addend is None else x + skip + addend
    found = _normalised(node, total, scale, bias)
    return _with_sum(node, found, total)


@implements("SkipSimplifiedLayerNormalization", domain=MICROSOFT, folds=False)
def skip_root_mean_square(
    node: Node,
    x: torch.Tensor,
    skip: torch.Tensor,
    scale: torch.Tensor,
    addend: torch.Tensor | None = None,
) -> Any:
    """Divides a sum by the root of its mean square. The last result is the sum itself."""
    total = x + skip if addend is None else x + skip + addend
    mean = torch.mean(total * total, -1, keepdim=True)
    found = total * torch.rsqrt(mean + node.number("epsilon", 1e-12)) * scale
    return _with_sum(node, found, total)


def _with_sum(node: Node, found: torch.Tensor, total: torch.Tensor) -> Any:
    """Returns a result alone, or at the first and the sum at the fourth place."""
    if node.results == 1:
        return found
    if node.results == 4:
        # What lies between is for training, and no file of inference uses it.
        return found, torch.empty(0), torch.empty(0), total
    raise NotImportedError("it gives statistics for training", "export it for inference")
