"""Recurrent layers take packed sequences of different lengths, unmodified, and have gradients."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import tacit

X = torch.linspace(-4, 4, 48).sin().reshape(3, 4, 4)

LENGTHS = torch.tensor([2, 4, 3])

LAYERS: dict[str, type[nn.RNNBase]] = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}


def layer(name: str) -> Any:
    torch.manual_seed(4)
    return LAYERS[name](4, 5, batch_first=True, bidirectional=name == "LSTM")


def outputs(module: Any, x: Any) -> list[Any]:
    """Returns padded outputs, the last state, and the gradients of the input and of a weight."""
    x = x.detach().requires_grad_()
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    made, state = module(packed)
    padded, lengths = pad_packed_sequence(
        made, batch_first=True, padding_value=-1.5, total_length=5
    )
    assert torch.equal(lengths, LENGTHS)
    padded.square().sum().backward()
    last = state[0] if isinstance(state, tuple) else state
    found = [padded.detach(), last.detach(), x.grad]
    return [*found, module.weight_ih_l0.grad] if module.weight_ih_l0.requires_grad else found


@pytest.mark.parametrize("weights", ["public", "secret"])
@pytest.mark.parametrize("name", LAYERS)
def test_as_of_plain_sequences(name: str, weights: str) -> None:
    def program() -> list[torch.Tensor]:
        module = layer(name)
        if weights == "secret":
            tacit.share_module(module, owner=1, trainable=True)
        else:
            module.requires_grad_(False)
        return [one.reveal() for one in outputs(module, tacit.share(X, owner=0))]

    module = layer(name).requires_grad_(weights == "secret")
    plain = outputs(module, X)
    found = tacit.launch(program, protocol="plain", parties=2)[0]
    for mine, theirs in zip(found, plain, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-2, atol=4e-3)


def test_on_shares() -> None:
    def program() -> torch.Tensor:
        return outputs(layer("GRU").requires_grad_(False), tacit.share(X, owner=0))[0].reveal()

    plain = outputs(layer("GRU").requires_grad_(False), X)[0]
    assert torch.allclose(tacit.launch(program)[0], plain, atol=2e-3)


def test_secret_lengths_are_refused() -> None:
    def program() -> None:
        lengths = tacit.share(LENGTHS, owner=0)
        with pytest.raises(tacit.UnsupportedOperatorError, match=r"secret lengths.*torch.gather"):
            pack_padded_sequence(
                tacit.share(X, owner=0), lengths, batch_first=True, enforce_sorted=False
            )

    tacit.launch(program, protocol="plain", parties=2)


def test_plain_sequences_are_pytorchs_own() -> None:
    script = torch.jit.script(pad_packed_sequence)
    packed = pack_padded_sequence(X, LENGTHS, batch_first=True, enforce_sorted=False)
    for one, other in zip(script(packed, True), pad_packed_sequence(packed, True), strict=True):
        assert torch.equal(one, other)
