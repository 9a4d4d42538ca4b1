"""Means, covariances and correlations that are right whenever their result is in range.

PyTorch composes them of sums that are divided afterwards. Here each number is divided first, so a
sum that would leave the range does no harm.
"""

import math
from typing import Any

import torch

from tacit.operators.composed import composes
from tacit.operators.dispatch.table import unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@composes(aten.nanmean.default)
def nanmean(
    x: SecretTensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Returns the mean, since no shared number is NaN."""
    return torch.mean(x, dim, keepdim, dtype=dtype)


@composes(aten.cov.default)
def covariance(
    x: SecretTensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None
) -> torch.Tensor:
    """Returns the covariances of rows: products of deviations / √count.

    Public weights count as in PyTorch. The result is right whenever the variances are in range.

    Raises:
        UnsupportedOperatorError: weights are secret, or no more observations count than the
            correction.
    """
    if isinstance(fweights, SecretTensor) or isinstance(aweights, SecretTensor):
        unsupported(
            "a covariance by secret weights", "multiply the deviations by the weights' roots"
        )
    # Raises PyTorch's own errors about shape, dtype and weights. With correction 0 PyTorch does not
    # warn of corrections that leave nothing.
    torch.cov(
        torch.zeros(x.shape, dtype=x.dtype), correction=0, fweights=fweights, aweights=aweights
    )
    rows = _rows(x)
    weights = torch.ones(rows.shape[1], dtype=torch.float64)
    weights = weights if fweights is None else weights * fweights
    weights = weights if aweights is None else weights * aweights
    total = float(weights.sum())
    repeated = 1.0 if aweights is None else float((weights * aweights).sum()) / total
    count = total - correction * repeated
    if count <= 0:
        unsupported(
            "the covariance of so few observations", "give it more observations than the correction"
        )
    # The plain mean is subtracted first, so that the few bits of a public weight affect deviations
    # only.
    deviations = rows - rows.mean(1, keepdim=True)
    if fweights is not None or aweights is not None:
        deviations = deviations - (deviations @ (weights / total).to(rows.dtype)).unsqueeze(1)
    parts = deviations * (weights / count).sqrt().to(rows.dtype)
    return (parts @ parts.T).squeeze()


@composes(aten.corrcoef.default)
def correlation(x: SecretTensor) -> torch.Tensor:
    """Returns the correlations of rows, between −1 and 1.

    They are products of deviations, each divided by the standard deviation of its row. A row of
    equal numbers has correlation 0, where PyTorch has NaN. Domain: rows with standard deviations
    from 2^−8.
    """
    if x.dim() > 2:
        unsupported("a correlation of more than two dimensions", "give it rows")
    rows = _rows(x)
    count = rows.shape[1] - 1
    if count <= 0:
        unsupported("the correlation of so few observations", "give it at least two observations")
    deviations = (rows - rows.mean(1, keepdim=True)) / rows.std(1, keepdim=True)
    parts = deviations / math.sqrt(count)
    return (parts @ parts.T).squeeze().clamp(-1, 1)


def _rows(x: SecretTensor) -> torch.Tensor:
    """Returns one row of fractions for each variable."""
    rows = x if x.dim() == 2 else x.reshape(1, -1)
    return rows if rows.dtype.is_floating_point else rows.to(torch.get_default_dtype())
