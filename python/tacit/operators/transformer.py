"""Multi-head attention and encoder layers of a transformer, which PyTorch fuses.

They are composed as PyTorch's modules are in training, with all three projections in one product.
"""

from typing import Any

import torch
from torch.nn.functional import gelu, layer_norm, linear, relu

from tacit.operators.attention import scores, weights
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.tensor import SecretTensor

aten = torch.ops.aten

Mask = torch.Tensor | None


def _hidden(mask: torch.Tensor, kind: int | None) -> torch.Tensor:
    """Returns where PyTorch's mask hides a key, for (batch, heads, queries, keys).

    A mask hides where it is not zero. Its kinds are 0, for queries and keys; 1, for keys in a
    batch; and 2, both merged.
    """
    hidden = mask.to(torch.bool)
    return hidden[:, None, None, :] if kind == 1 else hidden


def _projected(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> list[Any]:
    if query is key and key is value:
        return list(linear(query, weight, bias).chunk(3, -1))
    parts = zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True)
    return [linear(*part) for part in parts]


@implements(aten._native_multi_head_attention.default, scale=of_session)
def multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    _embed_dim: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Mask = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    """Computes what ``nn.MultiheadAttention`` calls in evaluation.

    Takes the rounds of four products and a softmax.
    """
    projected = _projected(query, key, value, qkv_weight, qkv_bias)
    by_head = [one.unflatten(-1, (heads, -1)).transpose(1, 2) for one in projected]
    seen = None if mask is None else ~_hidden(mask, mask_type)
    weighing, _ = weights(scores(by_head[0], by_head[1], seen, False, None), seen)
    result = torch.matmul(weighing, by_head[2]).transpose(1, 2).flatten(2)
    shown = None
    if need_weights:
        shown = weighing.mean(1) if average_attn_weights else weighing
    projection = linear(result, proj_weight, proj_bias)
    return projection, shown


@implements(aten._transformer_encoder_layer_fwd.default, scale=of_session)
def encoder_layer(
    x: Any,
    embed_dim: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Mask = None,
    mask_type: int | None = None,
) -> SecretTensor:
    """Computes what ``nn.TransformerEncoderLayer`` calls in evaluation.

    Takes the rounds of six products, a softmax, an activation and two normalisations.
    """

    def first_norm(x: Any) -> Any:
        return layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Any) -> Any:
        return layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attended(x: Any) -> Any:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        found = multi_head_attention(
            x, x, x, embed_dim, heads, *projections, mask, False, True, mask_type
        )
        return found[0]

    def fed_forward(x: Any) -> Any:
        activation = gelu if use_gelu else relu
        return linear(activation(linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = x + attended(first_norm(x))
        x = x + fed_forward(second_norm(x))
    else:
        x = first_norm(x + attended(x))
        x = second_norm(x + fed_forward(x))
    return x
