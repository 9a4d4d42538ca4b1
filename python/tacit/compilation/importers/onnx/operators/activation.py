"""Activations and softmax."""

from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements, plain

plain(
    {
        "HardSwish": functional.hardswish,
        "Mish": functional.mish,
        "Relu": functional.relu,
        "Sigmoid": torch.sigmoid,
        "Softplus": functional.softplus,
        "Softsign": functional.softsign,
    }
)


@implements("Celu")
def celu(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns max(0, x) + min(0, α(exp(x/α) − 1))."""
    return functional.celu(x, node.number("alpha", 1.0))


@implements("Elu")
def elu(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns x, or α(exp(x) − 1) below 0."""
    return functional.elu(x, node.number("alpha", 1.0))


@implements("Gelu")
def gelu(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns x·Φ(x), or its approximation by tanh."""
    return functional.gelu(x, approximate=node.text("approximate", "none"))


@implements("HardSigmoid")
def hard_sigmoid(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns αx + β, clamped between 0 and 1."""
    return torch.clamp(node.number("alpha", 0.2) * x + node.number("beta", 0.5), 0.0, 1.0)


@implements("LeakyRelu")
def leaky_relu(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns x, or αx below 0."""
    return functional.leaky_relu(x, node.number("alpha", 0.01))


@implements("PRelu")
def prelu(_: Node, x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """Returns x, or x times a slope below 0; the slope is broadcast to x."""
    channels = x.shape[1] if x.ndim > 1 else 1
    by_channel = slope.ndim == x.ndim - 1 and slope.numel() == channels == slope.shape[0]
    if x.is_floating_point() and (slope.numel() == 1 or by_channel):
        return functional.prelu(x, slope.reshape(-1))
    return torch.where(x >= 0, x, x * slope)


@implements("Selu")
def selu(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns γ times x, or γα(exp(x) − 1) below 0."""
    alpha = node.number("alpha", 1.67326319217681884765625)
    gamma = node.number("gamma", 1.05070102214813232421875)
    return gamma * functional.elu(x, alpha)


@implements("Shrink")
def shrink(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Moves x towards 0 by a bias if |x| is above a threshold, and returns 0 otherwise."""
    edge, bias = node.number("lambd", 0.5), node.number("bias", 0.0)
    zero = torch.zeros_like(x)
    found = torch.where(x < -edge, x + bias, torch.where(x > edge, x - bias, zero))
    return found.to(x.dtype)


@implements("Swish")
def swish(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns x·sigmoid(αx)."""
    alpha = node.number("alpha", 1.0)
    return functional.silu(x) if alpha == 1.0 else x * torch.sigmoid(alpha * x)


@implements("SwiGLU")
def gated_swish(node: Node, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Returns Swish of x times the gate."""
    return swish(node, x) * gate


@implements("ThresholdedRelu")
def thresholded_relu(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns x above α, and 0 elsewhere."""
    return functional.threshold(x, node.number("alpha", 1.0), 0.0)


@implements("Softmax")
def softmax(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Softmax along one axis."""
    return torch.softmax(x, node.integer("axis", -1))


@implements("LogSoftmax")
def log_softmax(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Logarithm of a softmax along one axis."""
    return torch.log_softmax(x, node.integer("axis", -1))


@implements("Hardmax")
def hardmax(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns 1 at the first maximum along an axis, and 0 elsewhere."""
    axis = node.integer("axis", -1)
    places = torch.arange(x.shape[axis]).reshape([-1] + [1] * (x.ndim - 1 - axis % x.ndim))
    return (torch.argmax(x, axis, keepdim=True) == places).to(x.dtype)


def named(name: str, alpha: float | None, beta: float | None) -> Any:
    """Returns an activation of a recurrent layer by its name in ONNX."""
    functions = {
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "relu": torch.relu,
        "softsign": functional.softsign,
        "softplus": functional.softplus,
        "leakyrelu": lambda x: functional.leaky_relu(x, 0.01 if alpha is None else alpha),
        "elu": lambda x: functional.elu(x, 1.0 if alpha is None else alpha),
        "thresholdedrelu": lambda x: functional.threshold(x, 1.0 if alpha is None else alpha, 0.0),
        "affine": lambda x: (1.0 if alpha is None else alpha) * x + (beta or 0.0),
        "scaledtanh": lambda x: (
            (1.0 if alpha is None else alpha) * torch.tanh((1.0 if beta is None else beta) * x)
        ),
        "hardsigmoid": lambda x: torch.clamp(
            (0.2 if alpha is None else alpha) * x + (0.5 if beta is None else beta), 0.0, 1.0
        ),
    }
    if name.lower() not in functions:
        raise NotImportedError(
            f"the activation {name[:40]} is not imported", f"use one of {', '.join(functions)}"
        )
    return functions[name.lower()]
