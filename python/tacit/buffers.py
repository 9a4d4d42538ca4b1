"""Conversions between PyTorch tensors and the core's arrays, without a copy.

A component of a sharing is kept with its array. The bytes of any plain tensor are available too."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

#: Attribute under which a component keeps its array, together with the component's own id. PyTorch
#: copies attributes with a component, but the copied component does not use the copied array.
_ARRAY = "_tacit_array"


def made_of(memory: NDArray[Any]) -> torch.Tensor:
    """Returns a component in the memory of an array, and keeps the array with it."""
    part = torch.from_numpy(memory)
    part.__dict__[_ARRAY] = id(part), memory
    return part


def array(part: torch.Tensor) -> NDArray[Any]:
    """Returns a component as an array of at least one dimension.

    It is the component's own array if it has one. Otherwise the elements are in order."""
    made_as = _made_as(part)
    if made_as is not None:
        return made_as
    part = part.contiguous()
    return part.numpy() if part.dim() else part.view(1).numpy()


def bytes_in_order(tensor: torch.Tensor) -> NDArray[np.uint8]:
    """Returns the elements of a plain tensor in order, as bytes; copies only if out of order."""
    # A single element counts as contiguous with any stride, even 0, as in an expanded gradient.
    row = tensor.contiguous().as_strided((tensor.numel(),), (1,))
    return row.view(torch.uint8).numpy() if tensor.numel() else np.empty(0, np.uint8)


def is_whole(part: torch.Tensor) -> bool:
    """Whether a component is exactly the array that an operation of the core wrote, and no view."""
    return _made_as(part) is not None


def _made_as(part: torch.Tensor) -> NDArray[Any] | None:
    """Returns the array of a component. A copy of the component has the mark, but another id."""
    kept = part.__dict__.get(_ARRAY)
    return kept[1] if kept is not None and kept[0] == id(part) else None
