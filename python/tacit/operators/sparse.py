"""Products of public sparse matrices and secret tensors, such as sums over the edges of a graph.

The positions are public, and so are the values. Zeros take neither time nor memory. No interaction
for integers, a truncation for fractions.
"""

from typing import Any

import torch

from tacit.fixed import Scale
from tacit.operators.dispatch import custom_ops
from tacit.operators.dispatch.operands import public, result_dtype, times_public
from tacit.operators.dispatch.scales import of_product
from tacit.operators.dispatch.table import implements, replaces
from tacit.operators.linear import gain_of_sums
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _of_values(session: Scale, values: Scale, dense: Scale, *_: Scale) -> Scale:
    return of_product(session, values, dense)


@implements(torch.ops.tacit.sparse_product.default, scale=_of_values)
def sparse_product(
    values: torch.Tensor, dense: SecretTensor, indices: torch.Tensor, rows: int
) -> SecretTensor:
    """Returns the product of a sparse matrix, given by positions and values, and (k, n)."""
    numbers = public(values)

    def apply(part: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        return custom_ops.sparse_product(words, part, indices, rows)

    return times_public(
        dense,
        numbers,
        result_dtype(dense, values),
        apply=apply,
        check=apply,
        gain=gain_of_sums(numbers, indices[0], rows),
    )


def _positions(x: Any) -> torch.Tensor:
    sparse: torch.Tensor = x if x.layout is torch.sparse_coo else x.to_sparse_coo()
    return sparse.coalesce()


def _product(sparse: Any, dense: Any) -> Any:
    """Multiplies a sparse matrix by a matrix or a vector."""
    if isinstance(sparse, SecretTensor):
        return _product(dense.t(), sparse.t()).t()
    listed = _positions(sparse)
    columns = dense.unsqueeze(1) if dense.dim() == 1 else dense
    found = torch.ops.tacit.sparse_product(
        listed.values(), columns, listed.indices(), sparse.shape[0]
    )
    return found.squeeze(1) if dense.dim() == 1 else found


@replaces(aten.mm.default, aten.mv.default)
def mm(x: Any, y: Any) -> Any:
    """Returns the product if one operand is sparse."""
    return _product(x, y)


@replaces(aten._sparse_addmm.default)
def sparse_addmm(addend: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Returns beta·addend + alpha·x·y, where x is sparse."""
    found = _product(x, y)
    found = found if alpha == 1 else found * alpha
    return found if beta == 0 else found + (addend if beta == 1 else addend * beta)
