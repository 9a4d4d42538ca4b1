"""Attention: values weighed by a softmax of the products of queries and keys."""

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
    """The products of queries and keys, minus infinity where a key is not seen.

    Args:
        mask: numbers to be added, or booleans: whether a query sees a key.
        causal: each query sees the keys up to its own place.
        scale: of the products; one over the root of the dimension if not given.
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
    """Keys or values with as many heads as queries have, of which several may share one."""
    if x.dim() < 3 or x.shape[-3] == query.shape[-3]:
        return x
    return x.repeat_interleave(query.shape[-3] // x.shape[-3], -3)


def _summed(gradient: Any, x: Any) -> Any:
    """The gradient of what was repeated."""
    if gradient.shape == x.shape:
        return gradient
    return gradient.unflatten(-3, (x.shape[-3], -1)).sum(-3)


def weights(found: Any, mask: Mask) -> tuple[Any, Exponentials | None]:
    """The softmax of scores, with zeros for a query that sees nothing, as only a mask can make it;
    and what it is made of if it is secret. Of a public mask it is known which queries these are."""
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
    """The queries that see nothing, (..., queries, 1), if there are any."""
    found = ~mask.any(-1, True) if mask.dtype == torch.bool else (mask == -math.inf).all(-1, True)
    return found if found.any() else None


@dataclass
class _Logarithms:
    """The logarithms of the sums of exponentials, which PyTorch keeps for the gradient; and the
    weights, of which ours is made."""

    exponentials: Exponentials
    weights: SecretTensor
    #: What they have, whatever the session has when they are asked for.
    scale: Scale

    def parts(self) -> Parts:
        """The components; the rounds of a logarithm."""
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
    """What ``scaled_dot_product_attention`` calls where it does not drop: the rounds of two
    products and a softmax. The logarithms of the sums are computed when somebody uses them."""
    if dropout_p:
        unsupported("dropout within attention", "call model.eval()")
    key, value = repeated(key, query), repeated(value, query)
    found = scores(query, key, attn_mask, is_causal, scale)
    weighing, made = weights(found, attn_mask)
    result = torch.matmul(weighing, value)
    if made is None:
        return result, found.logsumexp(-1)
    session = found._session
    kept = _Logarithms(made, weighing, session.scale)
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
    """Of query, key and value: the rounds of five products, by the weights that were computed
    before."""
    heads = key, value
    key, value = repeated(key, query), repeated(value, query)
    kept = logarithms._later if isinstance(logarithms, SecretTensor) else None
    if isinstance(kept, _Logarithms):
        weighing: Any = kept.weights
    else:
        weighing, _ = weights(scores(query, key, attn_mask, is_causal, scale), attn_mask)
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    of_value = torch.matmul(weighing.transpose(-2, -1), gradient)
    of_weights = torch.matmul(gradient, value.transpose(-2, -1))
    # A softmax has a sum that does not change.
    along = (gradient * result).sum(-1, keepdim=True)
    of_scores = weighing * (of_weights - along) * scale
    of_query = torch.matmul(of_scores, key)
    of_key = _summed(torch.matmul(of_scores.transpose(-2, -1), query), heads[0])
    of_value = _summed(of_value, heads[1])
    return tuple(map(at_session_scale, (of_query, of_key, of_value)))
