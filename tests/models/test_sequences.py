"""PyTorch's own sequence layers run unmodified, including the fused ones."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit

Case = tuple[nn.Module, tuple[Any, ...]]


def _drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def _encoder(**form: Any) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **form)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


CAUSAL = nn.Transformer.generate_square_subsequent_mask(4)
PADDED = torch.tensor([[False, False, False, True], [False, False, False, False]])

CASES: dict[str, Callable[[], Case]] = {
    "LSTM": lambda: (nn.LSTM(5, 7, 2, bidirectional=True, batch_first=True), (_drawn(2, 4, 5),)),
    "LSTM of a state": lambda: (
        nn.LSTM(5, 7),
        (_drawn(4, 2, 5), (_drawn(1, 2, 7), _drawn(1, 2, 7))),
    ),
    "LSTM that projects": lambda: (nn.LSTM(5, 7, proj_size=3, bias=False), (_drawn(4, 2, 5),)),
    "GRU": lambda: (nn.GRU(5, 7, bidirectional=True), (_drawn(4, 2, 5),)),
    "GRU of a state": lambda: (nn.GRU(5, 7), (_drawn(4, 2, 5), _drawn(1, 2, 7))),
    "RNN": lambda: (nn.RNN(5, 7), (_drawn(4, 5),)),
    "RNN by ReLU": lambda: (nn.RNN(5, 7, nonlinearity="relu"), (_drawn(4, 2, 5),)),
    "LSTM cell": lambda: (nn.LSTMCell(5, 7), (_drawn(2, 5),)),
    "GRU cell": lambda: (nn.GRUCell(5, 7), (_drawn(2, 5),)),
    "attention": lambda: (nn.MultiheadAttention(8, 2), (_drawn(4, 2, 8),) * 3),
    "encoder": lambda: (_encoder(), (_drawn(2, 4, 8),)),
    "encoder by GELU": lambda: (_encoder(activation="gelu", norm_first=True), (_drawn(2, 4, 8),)),
    "encoder with masks": lambda: (_encoder(), (_drawn(2, 4, 8), CAUSAL, PADDED)),
    "transformer": lambda: (nn.Transformer(8, 2, 1, 1, 16), (_drawn(4, 2, 8), _drawn(3, 2, 8))),
}


def made(name: str) -> Case:
    """Builds a module and its arguments, equal in every party."""
    torch.manual_seed(3)
    module, args = CASES[name]()
    return module.eval(), args


def leaves(result: Any) -> list[torch.Tensor]:
    """Returns all tensors of a result."""
    return [
        leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)
    ]


def shared(args: Any) -> Any:
    """Shares all tensors except masks."""
    return torch.utils._pytree.tree_map(
        lambda leaf: leaf if leaf is CAUSAL or leaf is PADDED else tacit.share(leaf, owner=0), args
    )


@pytest.mark.parametrize("name", CASES)
def test_layers_for_sequences(name: str) -> None:
    def program() -> list[Any]:
        found = []
        for owner in (None, 1):
            module, args = made(name)
            args = shared(args)
            if owner is not None:
                tacit.share_module(module, owner=owner)
            # In inference mode PyTorch decomposes layers at other places.
            for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode):
                with mode():
                    found.append([leaf.detach().reveal() for leaf in leaves(module(*args))])
        return found

    module, args = made(name)
    with torch.no_grad():
        plain = leaves(module(*args))
    for mine in tacit.launch(program, parties=2, protocol="plain")[0]:
        for secret, expected in zip(mine, plain, strict=True):
            assert (secret - expected).abs().max() < 3e-3


@pytest.mark.parametrize("name", ["LSTM", "encoder with masks"])
def test_layers_for_sequences_on_shares(name: str) -> None:
    """Outputs and gradients are right in replicated sharing."""

    def trained(module: nn.Module, args: Any) -> list[torch.Tensor]:
        result = leaves(module.train(name == "LSTM")(*args))
        # A plain sum of squares is constant after normalisation, so its gradient would be zero.
        (
            result[0] * torch.arange(result[0].numel()).reshape(result[0].shape).cos()
        ).sum().backward()
        return [result[0].detach(), *(parameter.grad for parameter in module.parameters())]

    def program() -> list[Any]:
        module, args = made(name)
        tacit.share_module(module, owner=1)
        for parameter in module.parameters():
            parameter.requires_grad_()
        found = trained(module, shared(args))
        # The gradient of the last bias is public, since it follows from the public loss alone.
        return [one.reveal() if isinstance(one, tacit.SecretTensor) else one for one in found]

    for secret, expected in zip(tacit.launch(program)[0], trained(*made(name)), strict=True):
        assert (secret - expected).norm() <= 0.01 * expected.norm()
