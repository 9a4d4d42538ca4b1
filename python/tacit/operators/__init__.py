"""ATen operators on secret tensors: one table, a family of operators to a file."""

from tacit.operators import (
    activation,
    arithmetic,
    choice,
    comparison,
    conversion,
    convolution,
    creation,
    extremum,
    indexing,
    linear,
    logical,
    movement,
    normalization,
    pooling,
    reduction,
    writing,
)
from tacit.operators.table import TABLE, run

__all__ = [
    "TABLE",
    "activation",
    "arithmetic",
    "choice",
    "comparison",
    "conversion",
    "convolution",
    "creation",
    "extremum",
    "indexing",
    "linear",
    "logical",
    "movement",
    "normalization",
    "pooling",
    "reduction",
    "run",
    "writing",
]
