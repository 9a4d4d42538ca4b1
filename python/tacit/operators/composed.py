"""Operators that PyTorch composes of others, by its registry of decompositions.

Not every decomposition is sound in fixed point: one may take the exponential of a large number, or
add numbers that are lost among larger ones. So each one is listed here by name, after its
composition was reviewed and its samples in PyTorch's database gave correct results. All others are
refused. Each takes the rounds of its parts.

The table cannot replace what PyTorch composes above autograd. ``composes`` does that.
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

#: Moves, sums and selections only, which are exact. The result has the scale of the operands.
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
    aten.nan_to_num.default,  # replaces NaN and infinities, which do not occur
    aten.nansum.default,
)

#: Sums, means, products by public numbers and products of secrets, selected by comparisons.
POLYNOMIAL = (
    aten.affine_grid_generator.default,
    aten.deg2rad.default,
    aten.grid_sampler_2d.default,  # the grid is public or takes few products
    aten.hardshrink.default,
    aten.huber_loss.default,  # the branch not selected is multiplied by zero
    aten.linalg_cross.default,
    aten.mse_loss.default,
    aten.multi_margin_loss.default,
    aten.multilabel_margin_loss_forward.default,
    aten.rad2deg.default,
    aten.smooth_l1_loss.default,
    aten.softshrink.default,
)

#: Approximated functions, whose arguments are in their domain whenever x is in range.
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
    """Returns an operator as PyTorch composes it.

    Its intermediate values may be any numbers, so they are compared at the full width of a word.
    """
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

#: Library object. Its additions to PyTorch's own operators last as long as it does.
_LIBRARY = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]


def composes(overload: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a composition that replaces PyTorch's own for secret arguments.

    It applies above autograd, before autograd sees the parts. Plain arguments keep PyTorch's
    composition, and so do calls for which ``NotImplemented`` is returned.
    """

    def register(compose: Callable[..., Any]) -> Callable[..., Any]:
        def composed(*args: Any, **kwargs: Any) -> Any:
            is_secret = any(isinstance(each, SecretTensor) for each in args)
            result = compose(*args, **kwargs) if is_secret else NotImplemented
            return overload.decompose(*args, **kwargs) if result is NotImplemented else result

        # The dispatch key of tensors that implement ``__torch_dispatch__``.
        _LIBRARY.impl(overload, composed, "PythonTLSSnapshot")  # type: ignore[no-untyped-call]
        return compose

    return register
