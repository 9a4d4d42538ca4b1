"""Sums, means and maxima of rows of a table (bags of words). The sizes of the bags are public."""

from typing import Any

import torch

from tacit.operators.arithmetic import mul
from tacit.operators.dispatch.operands import is_secret, rescaled, session_of
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.indexing import embedding, embedding_dense_backward
from tacit.operators.selection import target
from tacit.sharings import shares
from tacit.tensor import SecretTensor

aten = torch.ops.aten

SUM, MEAN, MAX = 0, 1, 2


@implements(aten._embedding_bag.default, aten._embedding_bag_forward_only.default, scale=of_session)
def embedding_bag(
    weight: Any,
    index: torch.Tensor,
    offsets: torch.Tensor,
    by_frequency: bool = False,  # noqa: ARG001
    mode: int = SUM,
    sparse: bool = False,  # noqa: ARG001
    sample_weights: Any = None,
    include_last: bool = False,
    padding: int = -1,
) -> tuple[SecretTensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the sum, mean or maximum of each bag's rows; zeros for a bag without rows.

    Indices, table, and weights of the rows may be secret. Takes the rounds of secret indices and at
    most four, or those of a maximum over the longest bag. The last result, of maxima, holds the
    place of each in its bag, which the gradient takes.
    """
    if isinstance(offsets, SecretTensor) or (padding >= 0 and isinstance(index, SecretTensor)):
        unsupported(
            "embedding_bag with secret offsets, or padding of secret indices",
            "make bags of public sizes without padding",
        )
    session = session_of(weight, index, sample_weights)
    ends = (
        offsets[1:]
        if include_last
        else torch.cat([offsets[1:], offsets.new_tensor([index.numel()])])
    )
    sizes = ends - (offsets[:-1] if include_last else offsets)
    bags = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    own = bags
    if padding >= 0:
        kept = index != padding
        index, own = index[kept], bags[kept]
        sizes = torch.bincount(own, minlength=len(sizes))
        sample_weights = None if sample_weights is None else sample_weights[kept]
    rows = target(embedding(weight, index) if is_secret(weight, index) else weight[index], session)
    if sample_weights is not None:
        rows = mul(rows, sample_weights.unsqueeze(-1))
    rows = rows.like(rows._parts, dtype=weight.dtype)
    if mode == MAX:
        found, places = _maxima(rows, own, sizes)
        return found, bags, sizes, places
    zeros = shares.trivial(session, torch.zeros(len(sizes), rows.shape[1], dtype=torch.int64))
    summed: Any = rows.like(zeros).index_add(0, own, rows)
    if mode == MEAN:
        summed = mul(summed, 1 / sizes.clamp(min=1).to(torch.float64).unsqueeze(-1))
    summed = rescaled(summed, session.scale)
    return (
        summed.like(summed._parts, dtype=weight.dtype),
        bags,
        sizes,
        torch.empty(0, dtype=torch.int64),
    )


def _table(bags: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Returns the rows of each bag, (bags, longest). The last one fills up shorter bags."""
    ends = sizes.cumsum(0)
    places = (ends - sizes).unsqueeze(1) + torch.arange(max(1, int(sizes.max())))
    return places.minimum((ends - 1).unsqueeze(1)).clamp(0, max(0, len(bags) - 1))


def _maxima(
    rows: SecretTensor, bags: torch.Tensor, sizes: torch.Tensor
) -> tuple[SecretTensor, Any]:
    """Returns the maxima of all bags, and the place of each in its bag."""
    session, has_rows = rows._session, (sizes > 0).unsqueeze(1)
    if not len(bags):
        words = torch.zeros(len(sizes), rows.shape[1], dtype=torch.int64)
        zeros = rows.like(shares.trivial(session, words), session.scale)
        return zeros, torch.zeros(zeros.shape, dtype=torch.int64)
    greatest, places = rows[_table(bags, sizes)].max(1)
    found = rescaled(greatest * has_rows, session.scale)
    return found.like(found._parts, dtype=rows.dtype), places


@implements(aten._embedding_bag_backward.default, scale=of_session)
def embedding_bag_backward(
    grad: Any,
    index: torch.Tensor,
    _offsets: torch.Tensor,
    bags: torch.Tensor,
    sizes: torch.Tensor,
    greatest: Any,
    rows: int,
    by_frequency: bool,
    mode: int,
    _sparse: bool,
    sample_weights: Any,
    padding: int = -1,
) -> SecretTensor:
    """Returns the gradient of the table: the gradient of each bag goes to all of its rows.

    That of a maximum goes to its row alone.
    """
    if padding >= 0:
        kept = index != padding
        index, bags = index[kept], bags[kept]
        sample_weights = None if sample_weights is None else sample_weights[kept]
    session = session_of(grad, index, sample_weights, greatest)
    grad = target(grad, session)
    if mode == MEAN:
        grad = mul(grad, 1 / sizes.clamp(min=1).to(torch.float64).unsqueeze(-1))
    each = grad.like(tuple(part[bags] for part in grad._parts))
    if mode == MAX:
        starts = sizes.cumsum(0) - sizes
        own = torch.arange(len(bags)) - starts[bags]
        each = mul(each, greatest[bags] == own.unsqueeze(1))
    if sample_weights is not None:
        each = mul(each, sample_weights.unsqueeze(-1))
    return rescaled(
        embedding_dense_backward(each, index, rows, padding, by_frequency), session.scale
    )


@implements(aten._embedding_bag_per_sample_weights_backward.default, scale=of_session)
def of_sample_weights(
    grad: Any,
    weight: Any,
    index: torch.Tensor,
    _offsets: torch.Tensor,
    bags: torch.Tensor,
    _mode: int,
    padding: int = -1,
) -> Any:
    """Returns the gradient of the weights of rows: each row times the gradient of its bag."""
    kept = torch.ones(len(index), dtype=torch.bool) if padding < 0 else index != padding
    index = index if padding < 0 else index[kept]
    rows = embedding(weight, index) if is_secret(weight, index) else weight[index]
    found: Any = mul(grad[bags[kept]], rows).sum(1)
    if bool(kept.all()):
        return found
    zeros = torch.zeros(len(kept), dtype=weight.dtype)
    return zeros.index_put((kept.nonzero().reshape(-1),), found)
