"""The operators of ONNX, one family a file. Importing this fills the table."""

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
