"""Operators that PyTorch itself composes of others, by its registry of decompositions.

Not every decomposition is sound in fixed point: one may take the exponential of what is large, or
add numbers that are lost among larger ones. So each stands here by name, once its composition was
looked at and its samples in PyTorch's database came out right; all others are refused. Rounds are
those of its parts.

What PyTorch composes above autograd no operator of the table replaces; ``composes`` does.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

from tacit.operators.dispatch.operands import in_full, session_of
from tacit.operators.dispatch.scales import kept, of_session
from tacit.operators.dispatch.table import implements
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Moves, sums and choices alone, which are exact: the scale is that of the operands.
EXACT = (
    aten._chunk_cat.default,
    aten._unsafe_masked_index.default,
    aten._unsafe_masked_index_put_accumulate.default,
    aten.aminmax.default,  # both extrema
    aten.block_diag.default,
    aten.copysign.Scalar,  # a choice between |x| and −|x|
    aten.copysign.Tensor,
    aten.count_nonzero.default,
    aten.count_nonzero.dim_IntList,
    aten.heaviside.default,
    aten.nan_to_num.default,  # chooses by NaN and infinities, which there are none of
    aten.nansum.default,
)

#: Sums of products by public numbers and of secrets, chosen by comparisons; means.
POLYNOMIAL = (
    aten.affine_grid_generator.default,
    aten.deg2rad.default,
    aten.grid_sampler_2d.default,  # weights follow from the grid, which is public or has few products itself
    aten.hardshrink.default,
    aten.huber_loss.default,  # what is not chosen may leave the range: it is multiplied by zero
    aten.linalg_cross.default,
    aten.mse_loss.default,
    aten.multi_margin_loss.default,
    aten.multilabel_margin_loss_forward.default,
    aten.rad2deg.default,
    aten.smooth_l1_loss.default,
    aten.softshrink.default,
)

#: Of functions that are approximated, at arguments in their domain wherever x is in range.
APPROXIMATED = (
    aten._weight_norm_interface.default,  # v·(g / |v|)
    aten.binary_cross_entropy_with_logits.default,  # by log_sigmoid
    aten.glu.default,
    aten.ldexp.Tensor,  # a product by a power of two
    aten.norm.Scalar,
    aten.norm.ScalarOpt_dim,
    aten.norm.ScalarOpt_dim_dtype,
    aten.var_mean.correction,
)


def as_composed(overload: Any) -> Callable[..., Any]:
    """An operator as PyTorch composes it. What it compares in between may be any number: words are
    compared wholly."""
    compose: Callable[..., Any] = decomposition_table[overload]

    def composed(*args: Any, **kwargs: Any) -> Any:
        with in_full(session_of(*args, *kwargs.values())):
            return compose(*args, **kwargs)

    return composed


for _overload in EXACT:
    implements(_overload, scale=kept)(decomposition_table[_overload])
for _overload in (*POLYNOMIAL, *APPROXIMATED):
    implements(_overload, scale=of_session)(as_composed(_overload))


# Composed above autograd
# -------------------------------------------------------------------------------

#: What it adds to PyTorch's own operators lasts as long as this does.
_LIBRARY = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]


def composes(overload: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What secret arguments have in the place of PyTorch's own composition, before autograd looks
    at what that is made of; plain ones keep that, and so do those for which ``NotImplemented`` is
    returned."""

    def register(compose: Callable[..., Any]) -> Callable[..., Any]:
        def composed(*args: Any, **kwargs: Any) -> Any:
            is_secret = any(isinstance(each, SecretTensor) for each in args)
            result = compose(*args, **kwargs) if is_secret else NotImplemented
            return overload.decompose(*args, **kwargs) if result is NotImplemented else result

        # For tensors that carry their operators out themselves.
        _LIBRARY.impl(overload, composed, "PythonTLSSnapshot")  # type: ignore[no-untyped-call]
        return compose

    return register
