"""Sums and means of rows of a table (bags of words). The sizes of the bags are public."""

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
    """Returns the sum or mean of each bag's rows.

    Indices, table, and weights of the rows may be secret. Takes the rounds of secret indices and at
    most four.
    """
    if mode == MAX:
        unsupported("embedding_bag by maxima", "take sums or means, or amax() of an embedding")
    if isinstance(offsets, SecretTensor) or padding >= 0:
        unsupported(
            "embedding_bag with secret offsets, or padding",
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
    rows = target(embedding(weight, index) if is_secret(weight, index) else weight[index], session)
    if sample_weights is not None:
        rows = mul(rows, sample_weights.unsqueeze(-1))
    zeros = shares.trivial(session, torch.zeros(len(sizes), rows.shape[1], dtype=torch.int64))
    summed: Any = rows.like(zeros).index_add(0, bags, rows)
    if mode == MEAN:
        summed = mul(summed, 1 / sizes.clamp(min=1).to(torch.float64).unsqueeze(-1))
    summed = rescaled(summed, session.scale)
    return (
        summed.like(summed._parts, dtype=weight.dtype),
        bags,
        sizes,
        torch.empty(0, dtype=torch.int64),
    )


@implements(aten._embedding_bag_backward.default, scale=of_session)
def embedding_bag_backward(
    grad: Any,
    index: torch.Tensor,
    _offsets: torch.Tensor,
    bags: torch.Tensor,
    sizes: torch.Tensor,
    _greatest: torch.Tensor,
    rows: int,
    by_frequency: bool,
    mode: int,
    _sparse: bool,
    sample_weights: Any,
    padding: int = -1,
) -> SecretTensor:
    """Returns the gradient of the table: the gradient of each bag goes to all of its rows."""
    session = session_of(grad, index, sample_weights)
    grad = target(grad, session)
    if mode == MEAN:
        grad = mul(grad, 1 / sizes.clamp(min=1).to(torch.float64).unsqueeze(-1))
    each = grad.like(tuple(part[bags] for part in grad._parts))
    if sample_weights is not None:
        each = mul(each, sample_weights.unsqueeze(-1))
    return rescaled(
        embedding_dense_backward(each, index, rows, padding, by_frequency), session.scale
    )
