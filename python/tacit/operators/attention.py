"""Scaled dot-product attention.

Values are weighted by a softmax of the products of queries and keys.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from tacit.fixed import Scale
from tacit.modes import outside_trace
from tacit.operators.arithmetic import mul
from tacit.operators.dispatch.operands import at_session_scale, rescaled
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.softmax import Exponentials, exponentials
from tacit.operators.where import masked_fill
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

Mask = torch.Tensor | None


def scores(query: Any, key: Any, mask: Mask, causal: bool, scale: float | None) -> Any:
    """Returns the products of queries and keys, minus infinity where a query does not see a key.

    Args:
        mask: numbers to add, or booleans that say whether a query sees a key.
        causal: whether each query sees only the keys up to its own position.
        scale: factor of the products; by default one over the root of their last dimension.
    """
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    found = torch.matmul(query if scale == 1.0 else query * scale, key.transpose(-2, -1))
    if causal:
        found = found.masked_fill(torch.ones(found.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    if mask is None:
        return found
    if mask.dtype != torch.bool:
        return found + mask
    return masked_fill(found, ~mask, -math.inf)


def repeated(x: Any, query: Any) -> Any:
    """Repeats keys or values until they have as many heads as the queries.

    Several heads of the queries may share one head of keys or values.
    """
    if x.dim() < 3 or x.shape[-3] == query.shape[-3]:
        return x
    return x.repeat_interleave(query.shape[-3] // x.shape[-3], -3)


def _summed(gradient: Any, x: Any) -> Any:
    """Returns the gradient of x from the gradient of ``repeated(x)``."""
    if gradient.shape == x.shape:
        return gradient
    return gradient.unflatten(-3, (x.shape[-3], -1)).sum(-3)


def weights(found: Any, mask: Mask) -> tuple[Any, Exponentials | None]:
    """Returns the softmax of scores and, if they are secret, the exponentials it was computed from.

    A query that sees no key gets zeros. Only a mask can cause that. For a public mask it is public
    which queries these are.
    """
    if not isinstance(found, SecretTensor):
        return aten._safe_softmax.default(found, -1), None
    made = exponentials(found, [-1])
    normalized = made.normalized()
    if isinstance(mask, SecretTensor):
        normalized = mul(normalized, made.seen())
    elif mask is not None and (blind := _blind(mask)) is not None:
        normalized = masked_fill(normalized, blind, 0.0)
    return normalized, made


@outside_trace
def _blind(mask: torch.Tensor) -> torch.Tensor | None:
    """Returns which queries see no key, (..., queries, 1), or ``None`` if there are none."""
    found = ~mask.any(-1, True) if mask.dtype == torch.bool else (mask == -math.inf).all(-1, True)
    return found if found.any() else None


@dataclass
class _DeferredLogsumexp:
    """Logarithms of the sums of exponentials, computed only when they are asked for.

    PyTorch keeps them for the gradient. The gradient here uses the weights instead, which are kept
    with them.
    """

    exponentials: Exponentials
    weights: SecretTensor
    #: Scale of the logarithms, whatever scale the session has when they are computed.
    scale: Scale

    def parts(self) -> Parts:
        """Returns the components, in the rounds of a logarithm."""
        return rescaled(self.exponentials.logarithm(), self.scale)._parts


@implements(aten._scaled_dot_product_flash_attention_for_cpu.default, scale=of_session)
def flash_attention(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Mask = None,
    scale: float | None = None,
) -> tuple[Any, Any]:
    """Computes what ``scaled_dot_product_attention`` calls if it does not drop.

    Takes the rounds of two products and a softmax. The logarithms of the sums are computed only
    when they are used.
    """
    if dropout_p:
        unsupported("dropout within attention", "call model.eval()")
    key, value = repeated(key, query), repeated(value, query)
    found = scores(query, key, attn_mask, is_causal, scale)
    weighing, made = weights(found, attn_mask)
    result = torch.matmul(weighing, value)
    if made is None:
        return result, found.logsumexp(-1)
    session = found._session
    kept = _DeferredLogsumexp(made, weighing, session.scale)
    later = SecretTensor(
        (), session.scale, session, found.dtype, shape=found.shape[:-1], later=kept
    )
    return result, later


@implements(aten._scaled_dot_product_flash_attention_for_cpu_backward.default, scale=of_session)
def flash_attention_backward(
    gradient: Any,
    query: Any,
    key: Any,
    value: Any,
    result: Any,
    logarithms: Any,
    _dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Mask = None,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Returns the gradients of query, key and value, from the weights of the forward pass.

    Takes the rounds of five products.
    """
    heads = key, value
    key, value = repeated(key, query), repeated(value, query)
    kept = logarithms._later if isinstance(logarithms, SecretTensor) else None
    if isinstance(kept, _DeferredLogsumexp):
        weighing: Any = kept.weights
    else:
        weighing, _ = weights(scores(query, key, attn_mask, is_causal, scale), attn_mask)
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    of_value = torch.matmul(weighing.transpose(-2, -1), gradient)
    of_weights = torch.matmul(gradient, value.transpose(-2, -1))
    # The weights of a query always sum to 1. So the gradient of a score is reduced by Σ
    # weights·gradient, which equals Σ result·gradient.
    along = (gradient * result).sum(-1, keepdim=True)
    of_scores = weighing * (of_weights - along) * scale
    of_query = torch.matmul(of_scores, key)
    of_key = _summed(torch.matmul(of_scores.transpose(-2, -1), query), heads[0])
    of_value = _summed(of_value, heads[1])
    return tuple(map(at_session_scale, (of_query, of_key, of_value)))
