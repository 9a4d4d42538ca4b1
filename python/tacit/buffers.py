"""A component of a sharing and the array that it lies in, between PyTorch and the core, without a
copy; and the bytes of any plain tensor."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

#: Where a component keeps the array that it was made as, with its own identity: PyTorch copies
#: attributes with a component, and the copied array has other memory than the copied component.
_ARRAY = "_tacit_array"


def made_of(memory: NDArray[Any]) -> torch.Tensor:
    """A component in the memory of an array, which is kept with it."""
    part = torch.from_numpy(memory)
    part.__dict__[_ARRAY] = id(part), memory
    return part


def array(part: torch.Tensor) -> NDArray[Any]:
    """A component as it lies in memory, or in order; with at least one dimension."""
    made_as = _made_as(part)
    if made_as is not None:
        return made_as
    part = part.contiguous()
    return part.numpy() if part.dim() else part.view(1).numpy()


def bytes_in_order(tensor: torch.Tensor) -> NDArray[np.uint8]:
    """The elements of a plain tensor in order, as bytes; copied only where they lie otherwise."""
    # One element counts as contiguous whatever its stride, which may be 0, as of an expanded
    # gradient.
    row = tensor.contiguous().as_strided((tensor.numel(),), (1,))
    return row.view(torch.uint8).numpy() if tensor.numel() else np.empty(0, np.uint8)


def is_whole(part: torch.Tensor) -> bool:
    """Whether a component is, as it lies in memory, what an operation of the core wrote, and no
    view."""
    return _made_as(part) is not None


def _made_as(part: torch.Tensor) -> NDArray[Any] | None:
    """The array that a component was made of; a copy of the component has its
    mark, and is another."""
    kept = part.__dict__.get(_ARRAY)
    return kept[1] if kept is not None and kept[0] == id(part) else None
