"""Changes of dtype. Between floating-point dtypes nothing happens: inside all are fixed point."""

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
    """A copy of another dtype. From booleans: at most two rounds. To booleans: a comparison with
    zero. From
    fractions to integers: towards zero, a comparison and 14 rounds at most. From integers to
    fractions: as they are, so numbers below 2^46, and below 2^30 where they meet fractions of 16
    bits."""
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
        # Exact, since nothing stands after the point.
        parts = shares.truncate(x._session, whole._parts, bits)
        return x.like(parts, WHOLE, dtype, unreduced=may_be_unreduced(dtype))
    words = as_words(x)
    return words.like(
        words._parts, dtype=dtype, unreduced=may_be_unreduced(dtype) and x.dtype != torch.bool
    )
