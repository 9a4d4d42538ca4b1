"""The operators of ONNX, one family a file. Importing this fills the table."""

from tacit.compile.importers.onnx.operators import (
    activation,
    convolution,
    creation,
    elementwise,
    linear,
    normalisation,
    pooling,
    reductions,
    selection,
    shapes,
)

__all__ = [
    "activation",
    "convolution",
    "creation",
    "elementwise",
    "linear",
    "normalisation",
    "pooling",
    "reductions",
    "selection",
    "shapes",
]
