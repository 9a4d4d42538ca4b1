"""Real numbers as fixed point in Z_2^64: x is held as round(x·2^scale) modulo 2^64."""

import math

import torch

from tacit.errors import EncodingError
from tacit.session import SCALE

#: Products of two encoded numbers stay below 2^62, where truncation is exact to one unit.
RANGE = 62

#: Significant bits of public factors: as many as float32 has, and still 2^24 is a safe size for what is
#: multiplied by them.
FACTOR_BITS = 22


def largest(scale: int) -> float:
    """Values of this scale are smaller than this, so that their product with 1.0 is in range."""
    return 2.0 ** (RANGE - SCALE - scale)


def encode(values: torch.Tensor, scale: int) -> torch.Tensor:
    """Int64 words of a tensor of numbers, rounded to the nearest.

    Raises:
        EncodingError: a value is NaN, infinite, or not smaller than ``largest(scale)``.
    """
    if values.numel() == 0:
        return values.to(torch.int64)
    limit = largest(scale)
    if not values.is_floating_point():
        words = values.to(torch.int64)
        if bool((words.abs() >= int(limit)).any()) or bool((words == torch.iinfo(torch.int64).min).any()):
            raise EncodingError(_too_large(int(words.abs().max()), limit, scale))
        return words << scale
    wide = values.detach().to(torch.float64)
    if not bool(torch.isfinite(wide).all()):
        raise EncodingError(
            "a value is NaN or infinite, which has no fixed-point encoding; "
            f"the largest magnitude allowed is below {limit:g}"
        )
    greatest = float(wide.abs().max())
    if greatest >= limit:
        raise EncodingError(_too_large(greatest, limit, scale))
    return (wide * 2.0**scale).round_().to(torch.int64)


def _too_large(greatest: float, limit: float, scale: int) -> str:
    return (
        f"a value of magnitude {greatest:g} is too large for fixed point with {scale} fraction bits; "
        f"the largest magnitude allowed is below {limit:g}: scale the data down"
    )


def decode(words: torch.Tensor, scale: int, dtype: torch.dtype) -> torch.Tensor:
    """The numbers that words stand for."""
    if not dtype.is_floating_point:
        return words.to(dtype)
    return (words.to(torch.float64) * 2.0**-scale).to(dtype)


def factor(values: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Public factors as words, and the scale that gives the largest of them FACTOR_BITS bits. Whole
    numbers of that size have scale 0: nothing is to be truncated after a product with them.

    Raises:
        EncodingError: a value is NaN, infinite, or too large.
    """
    if not values.is_floating_point():
        return encode(values, 0), 0
    wide = values.detach().to(torch.float64)
    if not bool(torch.isfinite(wide).all()):
        raise EncodingError("a public factor or divisor makes NaN or infinity (a division by zero?)")
    greatest = float(wide.abs().max()) if wide.numel() else 0.0
    if greatest >= largest(0):
        raise EncodingError(_too_large(greatest, largest(0), 0))
    if greatest == 0.0 or (greatest < 2**FACTOR_BITS and bool((wide == wide.round()).all())):
        return wide.to(torch.int64), 0
    scale = min(max(FACTOR_BITS - math.frexp(greatest)[1], 0), RANGE - 1)
    return (wide * 2.0**scale).round_().to(torch.int64), scale
