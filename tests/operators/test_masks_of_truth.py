"""Secret boolean masks work in PyTorch's own attention modules.

Results, weights and gradients match those of plain masks. Which places are masked stays secret.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(5))

#: Masks for two texts. The last word of the first text is padding; each word sees only earlier
#: words and itself.
PADDING = torch.tensor([[False, False, True], [False, False, False]])
LATER = torch.ones(3, 3, dtype=torch.bool).triu(1)

Mask = Callable[[torch.Tensor], torch.Tensor]


def attention(x: torch.Tensor, mask: Mask) -> list[torch.Tensor]:
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    return list(layer(x, x, x, key_padding_mask=mask(PADDING), attn_mask=mask(LATER)))


def encoder(x: torch.Tensor, mask: Mask) -> list[torch.Tensor]:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    module = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    return [module(x, mask=mask(LATER), src_key_padding_mask=mask(PADDING), is_causal=False)]


def decoder(x: torch.Tensor, mask: Mask) -> list[torch.Tensor]:
    module = nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    hidden = mask(PADDING)
    return [module(x, x * 0.5, tgt_key_padding_mask=hidden, memory_key_padding_mask=hidden)]


def dot_products(x: torch.Tensor, mask: Mask) -> list[torch.Tensor]:
    return [functional.scaled_dot_product_attention(x, x, x, attn_mask=mask(~LATER))]


def results(form: Any, x: torch.Tensor, mask: Mask) -> list[torch.Tensor]:
    torch.manual_seed(1)
    x = x.clone().requires_grad_()
    found = form(x, mask)
    found[0].square().sum().backward()
    return [*(one.detach() for one in found), x.grad]


@pytest.mark.parametrize("setting", SETTINGS)
def test_secret_masks_hide_what_plain_ones_hide(setting: str) -> None:
    forms = (attention, encoder, decoder, dot_products)

    def program() -> Any:
        def secret(mask: torch.Tensor) -> torch.Tensor:
            return tacit.share(mask, owner=1)

        # All parties create layers with equal weights.
        with tacit.public_random():
            return [
                [one.reveal() for one in results(form, tacit.share(X, owner=0), secret)]
                for form in forms
            ]

    for found, form in zip(tacit.launch(program, **SETTINGS[setting])[0], forms, strict=True):
        for mine, plain in zip(found, results(form, X, lambda mask: mask), strict=True):
            assert (mine - plain).abs().max() < 2e-3, form


def test_zeros_like_a_mask_are_public_unless_they_are_fractions() -> None:
    """The secret mask is later written into fractions, as attention does."""

    def program() -> list[bool]:
        mask = tacit.share(PADDING, owner=0)
        made = (
            torch.zeros_like(mask),
            torch.zeros_like(mask, dtype=torch.int64),
            torch.zeros_like(mask * 1.5),
        )
        kinds = [isinstance(one, tacit.SecretTensor) for one in made]
        filled = torch.zeros_like(mask, dtype=torch.float32).masked_fill_(mask, 2.0)
        assert filled.reveal().tolist() == (PADDING * 2.0).tolist()
        return kinds

    assert tacit.launch(program, protocol="plain", parties=2)[0] == [False, False, False]
