"""Means, covariances and correlations, whose sums PyTorch composes before it divides: here each
number is divided first, so that they are right wherever what comes out is in range, though a sum is
not."""

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
    """The mean: of what is shared nothing is NaN."""
    return torch.mean(x, dim, keepdim, dtype=dtype)


@composes(aten.cov.default)
def covariance(
    x: SecretTensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None
) -> torch.Tensor:
    """Of rows: products of deviations / √count, weighted as PyTorch weighs them, by public weights;
    in range wherever the variances are.

    Raises:
        UnsupportedOperatorError: weights are secret, or no more count than the correction.
    """
    if isinstance(fweights, SecretTensor) or isinstance(aweights, SecretTensor):
        unsupported("a covariance by secret weights", "multiply the deviations by their roots")
    # What PyTorch refuses of shape, dtype and weights; it warns of corrections that leave nothing.
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
        unsupported("the covariance of so few observations", "give it more than the correction")
    # Of their mean first, so that a public weight's few bits tell of deviations alone.
    deviations = rows - rows.mean(1, keepdim=True)
    if fweights is not None or aweights is not None:
        deviations = deviations - (deviations @ (weights / total).to(rows.dtype)).unsqueeze(1)
    parts = deviations * (weights / count).sqrt().to(rows.dtype)
    return (parts @ parts.T).squeeze()


@composes(aten.corrcoef.default)
def correlation(x: SecretTensor) -> torch.Tensor:
    """Of rows: products of deviations, each in standard deviations of its row, between −1 and 1; 0
    for a row of equal numbers, for which PyTorch has NaN. Domain: rows with standard deviations
    from 2^−8."""
    if x.dim() > 2:
        unsupported("a correlation of more than two dimensions", "give it rows")
    rows = _rows(x)
    count = rows.shape[1] - 1
    if count <= 0:
        unsupported("the correlation of so few observations", "give it two at least")
    deviations = (rows - rows.mean(1, keepdim=True)) / rows.std(1, keepdim=True)
    parts = deviations / math.sqrt(count)
    return (parts @ parts.T).squeeze().clamp(-1, 1)


def _rows(x: SecretTensor) -> torch.Tensor:
    """A row for each variable, of fractions."""
    rows = x if x.dim() == 2 else x.reshape(1, -1)
    return rows if rows.dtype.is_floating_point else rows.to(torch.get_default_dtype())
