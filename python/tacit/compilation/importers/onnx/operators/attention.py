"""Attention of transformers."""

import math
from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.table import Node, implements


def _heads(x: torch.Tensor, count: int) -> torch.Tensor:
    """Splits (batch, sequence, heads · size) so that the heads are a dimension."""
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], count, -1).transpose(1, 2)


@implements("Attention", known=(6,), folds=False)
def attention(
    node: Node,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    past_key: torch.Tensor | None = None,
    past_value: torch.Tensor | None = None,
    lengths: list[int] | None = None,
) -> Any:
    """Attention with many heads, or with fewer of keys and values if queries share them. A row that
    sees nothing is 0."""
    flat, head = query.ndim == 3, node.integer("q_num_heads")
    query, key, value = (
        _heads(query, head), *(_heads(each, node.integer("kv_num_heads")) for each in (key, value)),
    )  # fmt: skip
    before = 0
    if past_key is not None and past_value is not None:
        before = past_key.shape[2]
        key, value = torch.cat([past_key, key], 2), torch.cat([past_value, value], 2)
    present = key, value
    shared = query.shape[1] // key.shape[1]
    if shared > 1:
        key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    bias = _bias(node, query.shape[2], key.shape[2], before, lengths, mask)
    scale = node.number("scale", 0.0) or 1 / math.sqrt(query.shape[3])
    cap = node.number("softcap", 0.0)
    scores = None
    if cap or node.results > 3:
        found, scores = _in_steps(node, query, key, value, bias, scale, cap)
    else:
        found = functional.scaled_dot_product_attention(query, key, value, bias, scale=scale)
    if flat:
        found = found.transpose(1, 2).flatten(2)
    return (found, *present, scores) if node.results > 1 else found


def _bias(
    node: Node,
    rows: int,
    columns: int,
    before: int,
    lengths: list[int] | None,
    mask: torch.Tensor | None,
) -> torch.Tensor | None:
    """Returns what each row sees, or what is added to its scores.

    A row sees nothing that comes later if the attention is causal, nothing outside a window or
    after the end of a sequence, and only what the mask allows. The mask may also add to the
    scores."""
    starts = torch.tensor([before] if lengths is None else [length - rows for length in lengths])
    distance = starts.reshape(-1, 1, 1) + torch.arange(rows).unsqueeze(1) - torch.arange(columns)
    seen = []
    if node.flag("is_causal"):
        seen.append(distance >= 0)
    for name, sign in (("left_window_size", 1), ("right_window_size", -1)):
        if (width := node.integer(name, -1)) >= 0:
            seen.append(sign * distance <= width)
    if lengths is not None:
        seen.append((torch.arange(columns) < torch.tensor(lengths).unsqueeze(1)).unsqueeze(1))
    allowed: torch.Tensor | None = None
    for each in seen:
        allowed = each if allowed is None else allowed & each
    if allowed is not None:
        allowed = allowed[0] if allowed.shape[0] == 1 else allowed.unsqueeze(1)
    if mask is None:
        return allowed
    real = mask.is_floating_point()
    if (missing := columns - mask.shape[-1]) > 0:
        mask = functional.pad(mask, [0, missing], value=-torch.inf if real else False)
    if allowed is None:
        return mask
    return torch.where(allowed, mask, -torch.inf) if real else mask & allowed


def _in_steps(
    node: Node,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: Any,
    scale: float,
    cap: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes attention step by step, and returns the result and the scores at the point that the
    file asks for."""
    mode = node.integer("qk_matmul_output_mode")
    stages = [torch.matmul(query, key.transpose(2, 3)) * scale]
    capped = cap * torch.tanh(stages[0] / cap) if cap else stages[0]
    real = bias is not None and bias.is_floating_point()
    if bias is None:
        biased, blind = capped, None
    else:
        biased = capped + bias if real else torch.where(bias, capped, -torch.inf)
        blind = (bias == -torch.inf if real else ~bias).all(-1, keepdim=True)
    weights = torch.softmax(biased, -1)
    if blind is not None:
        weights = torch.where(blind, 0.0, weights)
    stages += [capped, biased, weights]
    return torch.matmul(weights, value), stages[mode]


@implements("RotaryEmbedding")
def rotary_embedding(
    node: Node,
    x: torch.Tensor,
    cosines: torch.Tensor,
    sines: torch.Tensor,
    places: torch.Tensor | None = None,
) -> torch.Tensor:
    """Turns pairs of features by angles that grow with the position."""
    flat = x.ndim == 3
    heads = x.reshape(*x.shape[:2], node.integer("num_heads"), -1) if flat else x.transpose(1, 2)
    size = node.integer("rotary_embedding_dim") or heads.shape[-1]
    turned, rest = heads[..., :size], heads[..., size:]
    if places is not None:
        cosines, sines = (
            functional.embedding(places.to(torch.int64), each) for each in (cosines, sines)
        )
    cosines, sines = cosines.unsqueeze(2), sines.unsqueeze(2)
    apart = node.flag("interleaved")
    one, other = (turned[..., 0::2], turned[..., 1::2]) if apart else turned.chunk(2, -1)
    pair = (cosines * one - sines * other, sines * one + cosines * other)
    turned = torch.stack(pair, -1).flatten(-2) if apart else torch.cat(pair, -1)
    found = torch.cat([turned, rest], -1) if rest.shape[-1] else turned
    return found.reshape(x.shape) if flat else found.transpose(1, 2)
