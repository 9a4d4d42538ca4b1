"""Operators that compute gradients. Only PyTorch's autograd calls them."""

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
