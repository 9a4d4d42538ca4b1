"""Hugging Face's BERT by a mask that nobody sees: which places are padding stays secret."""

import pytest
import torch
import transformers

import tacit

WORDS = torch.tensor([[3, 7, 9, 1, 0, 0], [4, 4, 8, 2, 6, 5]])

MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    return transformers.BertModel(transformers.BertConfig(vocab_size=12, **sizes)).eval()


def test_a_secret_mask_is_given_with_four_dimensions() -> None:
    def program() -> torch.Tensor:
        module = tacit.share_module(model(), owner=0)
        words, mask = tacit.share(WORDS, owner=1), tacit.share(MASK, owner=1)
        with pytest.raises(tacit.MisuseError, match="a condition, such as `if tensor:`"):
            module(words, attention_mask=mask)
        pairs = mask.bool()[:, None, None, :].expand(-1, 1, mask.shape[1], -1)
        return module(words, attention_mask=pairs).last_hidden_state.reveal()

    plain = model()(WORDS, attention_mask=MASK).last_hidden_state
    assert torch.allclose(tacit.launch(program, protocol="plain", parties=2)[0], plain, atol=4e-3)
