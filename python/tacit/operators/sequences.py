"""Packed sequences of public lengths.

PyTorch writes them into plain tensors. Here they are rows, selected by the indices that PyTorch's
own packing and padding give. So gradients pass as in any selection of rows. No interaction.
"""

from typing import Any

import torch
from torch import _VF
from torch.jit import _builtins as scripts

from tacit.operators.dispatch.operands import is_secret
from tacit.operators.dispatch.table import unsupported
from tacit.tensor import SecretTensor

_PLAIN_PACK, _PLAIN_PAD = _VF._pack_padded_sequence, _VF._pad_packed_sequence


def _pack(x: Any, lengths: Any, batch_first: bool) -> tuple[Any, torch.Tensor]:
    """Returns what ``pack_padded_sequence`` calls for: the rows of all sequences, step by step.

    Also returns the number of rows of each step.
    """
    if is_secret(lengths):
        unsupported(
            "a packed sequence of secret lengths, whose size depends on them",
            "give the layer all steps, and select the last ones by torch.gather",
        )
    if not isinstance(x, SecretTensor):
        return _PLAIN_PACK(x, lengths, batch_first)
    rows = torch.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2])
    chosen, sizes = _PLAIN_PACK(rows, lengths, batch_first)
    return x.flatten(0, 1).index_select(0, chosen), sizes


def _pad(
    data: Any, sizes: torch.Tensor, batch_first: bool, padding: float, total: int
) -> tuple[Any, torch.Tensor]:
    """Returns what ``pad_packed_sequence`` calls for: padded sequences, and their lengths."""
    if not isinstance(data, SecretTensor):
        return _PLAIN_PAD(data, sizes, batch_first, padding, total)
    count = data.shape[0]
    rows, lengths = _PLAIN_PAD(torch.arange(count), sizes, batch_first, count, total)
    fill = torch.full((1, *data.shape[1:]), padding, dtype=data.dtype)
    chosen = torch.cat([data, fill]).index_select(0, rows.flatten())
    return chosen.reshape([*rows.shape, *data.shape[1:]]), lengths


# PyTorch composes both of writes into new plain tensors before it looks at the operands, and calls
# the functions by these names. TorchScript still compiles the names as before.
for _mine, _name in ((_pack, "_pack_padded_sequence"), (_pad, "_pad_packed_sequence")):
    scripts._register_builtin(_mine, f"aten::{_name}")
    setattr(_VF, _name, _mine)
