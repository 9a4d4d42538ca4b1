"""Operators of ONNX, one family per file. Importing this package fills the table."""

from tacit.compilation.importers.onnx.operators import (
    activation,
    attention,
    convolution,
    creation,
    elementwise,
    linear,
    losses,
    normalisation,
    pooling,
    quantised,
    recurrent,
    reductions,
    resize,
    selection,
    shapes,
    signals,
)

__all__ = [
    "activation",
    "attention",
    "convolution",
    "creation",
    "elementwise",
    "linear",
    "losses",
    "normalisation",
    "pooling",
    "quantised",
    "recurrent",
    "reductions",
    "resize",
    "selection",
    "shapes",
    "signals",
]
