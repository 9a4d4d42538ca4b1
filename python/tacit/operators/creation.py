"""New tensors like a secret one.

A tensor whose values are known, such as zeros, is public until a secret is written into it
(``unwritten``).
"""

from collections.abc import Sequence
from typing import Any

import torch

from tacit import fixed
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.sharings import shares
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _as_public_shape(overload: Any) -> None:
    @implements(overload, scale=of_session)
    def make(
        x: SecretTensor,
        *args: Any,
        dtype: torch.dtype | None = None,
        **_: Any,
    ) -> torch.Tensor:
        plain = torch.empty(x.shape, dtype=dtype or x.dtype)
        made: torch.Tensor = overload(plain, *args)
        session = x._session
        if made.dtype == torch.bool or not session.numerics.is_optimizing:
            return made
        # The state of an optimiser is secret from the start, with a scale of its dtype.
        scale = fixed.of_dtype(session.scale, made.dtype)
        return SecretTensor(
            shares.trivial(session, fixed.encode(made, scale)), scale, session, made.dtype
        )


for _overload in (
    aten.zeros_like.default,
    aten.ones_like.default,
    aten.full_like.default,
    aten.new_zeros.default,
    aten.new_ones.default,
    aten.new_full.default,
):
    _as_public_shape(_overload)


@implements(aten.empty_like.default, aten.new_empty.default, scale=of_session)
def empty(
    x: SecretTensor,
    shape: Sequence[int] | None = None,
    *,
    dtype: torch.dtype | None = None,
    **_: Any,
) -> SecretTensor:
    """Returns a secret tensor to be written into, with zeros until then."""
    dtype, shape = dtype or x.dtype, x.shape if shape is None else shape
    scale = fixed.of_dtype(x._session.scale, dtype)
    zeros = torch.zeros(tuple(shape), dtype=torch.uint8 if dtype == torch.bool else torch.int64)
    return SecretTensor(tuple(zeros.clone() for _ in x._parts), scale, x._session, dtype)


@implements(aten.new_empty_strided.default, scale=of_session)
def empty_strided(
    x: SecretTensor,
    shape: Sequence[int],
    strides: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    **_: Any,
) -> SecretTensor:
    """Returns a secret tensor with the given strides to be written into, with zeros until then."""
    made = empty(x, shape, dtype=dtype)
    like = [
        torch.empty_strided(tuple(shape), tuple(strides), dtype=part.dtype) for part in made._parts
    ]
    return made.like(tuple(part.zero_() for part in like))
