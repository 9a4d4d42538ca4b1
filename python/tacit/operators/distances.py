"""Distances between rows: norms of all their differences."""

from typing import Any

import torch

from tacit.operators.arithmetic import mul, sub
from tacit.operators.dispatch.operands import Number, moved, summed
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.norms import check_order, vector_norm
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _differences(x: Any, y: Any) -> SecretTensor:
    """Returns the differences of all rows, (..., rows of x, rows of y, columns)."""
    return sub(moved(x, lambda part: part.unsqueeze(-2)), moved(y, lambda part: part.unsqueeze(-3)))


@implements(aten.dist.default, scale=of_session)
def dist(x: Any, y: Any, p: Number = 2) -> SecretTensor:
    """Returns the norm of the difference."""
    check_order(p, x, y)
    return vector_norm(sub(x, y), p)


@implements(aten._cdist_forward.default, aten._euclidean_dist.default, scale=of_session)
def cdist(x: Any, y: Any, p: Number = 2, compute_mode: int | None = None) -> SecretTensor:  # noqa: ARG001
    """Returns the distance of each row of x from each row of y, as the norm of order p."""
    differences = _differences(x, y)
    return vector_norm(differences, p, [-1])


@implements(aten._pdist_forward.default, scale=of_session)
def pdist(x: SecretTensor, p: Number = 2) -> SecretTensor:
    """Returns the distance of each row from each row that follows, as the norm of order p."""
    first, second = torch.triu_indices(len(x), len(x), 1)
    differences = sub(moved(x, lambda part: part[first]), moved(x, lambda part: part[second]))
    return vector_norm(differences, p, [-1])


@implements(aten._cdist_backward.default, scale=of_session)
def cdist_backward(gradient: Any, x: Any, y: Any, p: Number, distances: Any) -> SecretTensor:
    """Returns the gradient of x, for distances of order 1 and 2. It is 0 between equal rows."""
    differences = _differences(x, y)
    if p == 1:
        slopes = mul(
            aten.sign.default(differences), moved(gradient, lambda part: part.unsqueeze(-1))
        )
    elif p == 2:
        ratio = torch.div(gradient, distances)
        slopes = mul(differences, moved(ratio, lambda part: part.unsqueeze(-1)))
    else:
        unsupported(f"the gradient of distances of order {p}", "use order 1 or 2")
    return summed(slopes, slopes.shape[-2], lambda part: part.sum(-2))
