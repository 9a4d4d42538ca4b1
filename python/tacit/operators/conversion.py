"""Conversions between dtypes.

Those between floating-point dtypes do nothing, since all of these are fixed point.
"""

from typing import Any

import torch

from tacit.fixed import WHOLE
from tacit.operators.comparison import ne
from tacit.operators.dispatch.operands import as_words, may_be_unreduced
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.rounding import trunc
from tacit.sharings import shares
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten._to_copy.default)
def to_copy(
    x: SecretTensor,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **_: Any,
) -> SecretTensor:
    """Returns a copy of another dtype.

    - From booleans: at most two rounds.
    - To booleans: a comparison with zero.
    - From fractions to integers: rounded towards zero, by a comparison and at most 14 rounds.
    - From integers to fractions: unchanged. So numbers must be below 2^46, and below 2^30 where
      they meet fractions of 16 bits.
    """
    if device is not None and device.type != "cpu":
        unsupported(f"the device {device}", "leave secret tensors where they are")
    dtype = dtype or x.dtype
    if dtype.is_complex:
        unsupported("a complex dtype", "keep the real and the imaginary part as two tensors")
    if dtype == x.dtype or (x.dtype.is_floating_point and dtype.is_floating_point):
        return x.like(x._parts, dtype=dtype, unreduced=x._unreduced)
    if dtype == torch.bool:
        return ne(x, 0)
    if x.dtype.is_floating_point:
        whole, bits = trunc(x), x._scale.bits
        # Exact, since all fraction bits are zero.
        parts = shares.truncate(x._session, whole._parts, bits)
        return x.like(parts, WHOLE, dtype, unreduced=may_be_unreduced(dtype))
    words = as_words(x)
    return words.like(
        words._parts, dtype=dtype, unreduced=may_be_unreduced(dtype) and x.dtype != torch.bool
    )
