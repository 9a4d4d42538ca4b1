"""How many digits weights keep that passes have changed."""

import math

import torch

from tacit.operators.normalization import FACTOR_SCALE


def with_more(bits: int, factor: torch.Tensor) -> int:
    """The fraction bits with which weights that become smaller by a factor keep as many digits; no more than
    factors of normalisations have, beside which results are right below 2^22."""
    magnitudes = factor.abs()
    least = float(magnitudes[magnitudes > 0].min()) if bool((magnitudes > 0).any()) else 1.0
    return max(bits, min(bits + max(0, math.ceil(-math.log2(least))), FACTOR_SCALE.bits))
