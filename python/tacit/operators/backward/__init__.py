"""Gradients: the operators that PyTorch's autograd calls and nobody else does."""

from tacit.operators.backward import (
    composed,
    losses,
    movement,
    normalization,
    piecewise,
    resampling,
    smooth,
)

__all__ = ["composed", "losses", "movement", "normalization", "piecewise", "resampling", "smooth"]
