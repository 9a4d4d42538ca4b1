"""Products that several gradients need."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit.tensor import SecretTensor


def weighted(x: Any, gradient: Any, factor: float) -> Any:
    """Returns x·gradient·factor for a public factor, which may be small.

    It is small in the mean of a loss over many elements. The factor is applied last, or is combined
    with a public gradient, so that no bits are lost before.
    """
    if isinstance(gradient, SecretTensor):
        return (x * gradient) * factor
    return x * (gradient.to(torch.float64) * factor)


def dots(x: Any, y: Any, dims: Sequence[int]) -> Any:
    """Returns sums of x·y over ``dims``, which keep size 1.

    The sums are products of rows and columns, truncated once. Two rounds.
    """
    rest = [dim for dim in range(x.dim()) if dim not in dims]
    order = [*rest, *dims]
    size, count = (math.prod(x.shape[dim] for dim in group) for group in (dims, rest))
    rows = x.permute(order).reshape(count, 1, size)
    columns = y.permute(order).reshape(count, size, 1)
    shape = [1 if dim in dims else extent for dim, extent in enumerate(x.shape)]
    return torch.bmm(rows, columns).reshape(shape)
