"""Hugging Face's models take secret attention masks: the positions of padding stay secret."""

import pytest
import torch
import transformers

import tacit

WORDS = torch.tensor([[3, 7, 9, 1, 0, 0], [4, 4, 8, 2, 6, 5]])

MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    return transformers.BertModel(transformers.BertConfig(vocab_size=12, **sizes)).eval()


#: The error of a condition on a mask inside transformers.
SAID = r"a condition, such as `if tensor:` .* \(in .*mask\w*\.py:\d+\); give the mask with four dimensions"


def test_a_secret_mask_is_given_with_four_dimensions() -> None:
    def program() -> torch.Tensor:
        module = tacit.share_module(model(), owner=0)
        words, mask = tacit.share(WORDS, owner=1), tacit.share(MASK, owner=1)
        with pytest.raises(tacit.MisuseError, match=SAID):
            module(words, attention_mask=mask)
        pairs = mask.bool()[:, None, None, :].expand(-1, 1, mask.shape[1], -1)
        return module(words, attention_mask=pairs).last_hidden_state.reveal()

    plain = model()(WORDS, attention_mask=MASK).last_hidden_state
    assert torch.allclose(tacit.launch(program, protocol="plain", parties=2)[0], plain, atol=4e-3)


def causal() -> torch.nn.Module:
    torch.manual_seed(0)
    return transformers.GPT2Model(
        transformers.GPT2Config(vocab_size=12, n_embd=16, n_layer=1, n_head=2)
    ).eval()


def test_of_a_causal_model_it_leaves_out_what_comes_later() -> None:
    def program() -> torch.Tensor:
        module = tacit.share_module(causal(), owner=0)
        # GPT-2 has conditions on the words of a text, but none on their embeddings.
        embedded, mask = module.wte(tacit.share(WORDS, owner=1)), tacit.share(MASK, owner=1)
        with pytest.raises(tacit.MisuseError, match=SAID):
            module(inputs_embeds=embedded, attention_mask=mask)
        n = mask.shape[1]
        pairs = mask.bool()[:, None, None, :].expand(-1, 1, n, -1) & torch.ones(n, n).bool().tril()
        return module(inputs_embeds=embedded, attention_mask=pairs).last_hidden_state.reveal()

    plain = causal()(WORDS, attention_mask=MASK).last_hidden_state
    found = tacit.launch(program, protocol="plain", parties=2)[0]
    assert torch.allclose(found[MASK.bool()], plain[MASK.bool()], atol=4e-3)


def test_a_check_knows_the_remedy() -> None:
    inputs = {"input_ids": WORDS, "attention_mask": MASK}
    gaps = [gap for gap in tacit.check(model(), inputs).gaps if gap.what.startswith("a condition")]
    assert gaps
    assert all("mask" in gap.line and "with four dimensions" in gap.remedy for gap in gaps)


def test_a_condition_of_the_program_itself_says_where_it_is() -> None:
    def program() -> None:
        with pytest.raises(
            tacit.MisuseError, match=r"\(in .*test_secret_masks\.py:\d+\); call reveal\(\)"
        ):
            bool(tacit.share(MASK, owner=0).all())

    tacit.launch(program, protocol="plain", parties=2)
