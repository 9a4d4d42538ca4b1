"""Changes of dtype. Between floating-point dtypes nothing happens: inside all are fixed point."""

from typing import Any

import torch

from tacit.operators.comparison import ne
from tacit.operators.operands import as_words, is_loose
from tacit.operators.table import implements, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten._to_copy.default)
def to_copy(
    x: SecretTensor, *, dtype: torch.dtype | None = None, device: torch.device | None = None, **_: Any
) -> SecretTensor:
    """A copy of another dtype. From booleans: at most two rounds. To booleans: a comparison with zero."""
    if device is not None and device.type != "cpu":
        unsupported(f"the device {device}", "leave secret tensors where they are")
    dtype = dtype or x.dtype
    if dtype == x.dtype or (x.dtype.is_floating_point and dtype.is_floating_point):
        return x.like(x._parts, dtype=dtype, loose=x._loose)
    if dtype == torch.bool:
        return ne(x, 0)
    if x.dtype.is_floating_point:
        unsupported("rounding to integers", "keep floating-point tensors, or compare")
    words = as_words(x)
    return words.like(words._parts, dtype=dtype, loose=is_loose(dtype) and x.dtype != torch.bool)
