"""Convolutions in one to three dimensions, also transposed, are right and have gradients.

The inputs, the weights and the bias are secret or public.
"""

from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit

#: Dimensions, groups, stride, padding, dilation, output padding.
SETTINGS = [
    (1, 1, 2, 1, 1, 1),
    (1, 2, 3, 0, 2, 2),
    (2, 1, 1, 1, 2, 0),
    (2, 2, (2, 3), (1, 0), (1, 2), (1, 2)),
    (3, 1, (2, 1, 2), (1, 0, 2), (2, 1, 1), (1, 0, 1)),
    (3, 2, 2, 1, 1, 0),
]


def operands(
    dims: int, groups: int, transposed: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, 2 * groups, *(7, 6, 5)[:dims], generator=generator)
    # Each group has 2 channels of the input and 3 of the output.
    channels = (2 * groups, 3) if transposed else (3 * groups, 2)
    weight = torch.randn(*channels, *(3, 2, 3)[:dims], generator=generator)
    return x, weight, torch.randn(3 * groups, generator=generator)


def apply(x: Any, weight: Any, bias: Any, transposed: bool, setting: tuple[Any, ...]) -> Any:
    dims, groups, stride, padding, dilation, more = setting
    if transposed:
        transpose = getattr(functional, f"conv_transpose{dims}d")
        return transpose(x, weight, bias, stride, padding, more, groups, dilation)
    return getattr(functional, f"conv{dims}d")(x, weight, bias, stride, padding, dilation, groups)


def with_gradients(secret: str, transposed: bool, setting: tuple[Any, ...]) -> list[Any]:
    """Returns the result and the gradients of all operands. The named operands are secret."""
    tensors = dict(zip("xwb", operands(*setting[:2], transposed), strict=True))
    for name in secret:
        tensors[name] = tacit.share(tensors[name], owner=0)
    for tensor in tensors.values():
        tensor.requires_grad_()
    result = apply(*tensors.values(), transposed, setting)
    result.square().sum().backward()
    found = [result.detach(), *(tensor.grad for tensor in tensors.values())]
    return [value.reveal() if isinstance(value, tacit.SecretTensor) else value for value in found]


def check(found: list[Any], transposed: bool, setting: tuple[Any, ...]) -> None:
    for mine, plain in zip(found, with_gradients("", transposed, setting), strict=True):
        assert mine.shape == plain.shape
        assert torch.allclose(mine, plain, rtol=1e-3, atol=4e-3), (transposed, setting)


@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_and_their_gradients(transposed: bool) -> None:
    whose = ["xwb", "xw"]
    for setting in SETTINGS:
        found = tacit.launch(
            lambda setting=setting: [
                with_gradients(secret, transposed, setting) for secret in whose
            ],
            protocol="plain",
        )[0]
        for one in found:
            check(one, transposed, setting)


@pytest.mark.parametrize("protocol", ["replicated", "additive"])
def test_convolutions_and_their_gradients_on_shares(protocol: str) -> None:
    chosen = [(False, SETTINGS[4]), (True, SETTINGS[3]), (True, SETTINGS[4])]
    more = {"parties": 2, "source": "dealer"} if protocol == "additive" else {}
    results = tacit.launch(
        lambda: [with_gradients("xwb", *case) for case in chosen], protocol=protocol, **more
    )[0]
    for found, case in zip(results, chosen, strict=True):
        check(found, *case)


def test_integers_are_convolved_exactly() -> None:
    x, weight = torch.randint(-9, 9, (1, 2, 4, 4, 4)), torch.randint(-9, 9, (2, 3, 2, 2, 2))

    def program() -> list[Any]:
        shared = tacit.share(x, owner=0)
        return [
            functional.conv_transpose3d(shared, weight, stride=2).reveal(),
            functional.conv3d(
                shared, tacit.share(weight.transpose(0, 1).contiguous(), owner=1)
            ).reveal(),
        ]

    plain = [
        functional.conv_transpose3d(x, weight, stride=2),
        functional.conv3d(x, weight.transpose(0, 1)),
    ]
    for mine, theirs in zip(tacit.launch(program)[0], plain, strict=True):
        assert torch.equal(mine, theirs)


def test_weights_that_last_are_masked_once() -> None:
    """Weights of a transposed convolution, which are flipped, are also masked only once."""

    def program() -> list[float]:
        layer = tacit.share_module(torch.nn.ConvTranspose2d(4, 4, 3, stride=2), owner=0)
        x = tacit.share(torch.ones(1, 4, 2, 2), owner=0)
        sent = []
        for _ in range(2):
            before = tacit.session().meter.total.payload_bytes
            layer(x)
            sent.append(tacit.session().meter.total.payload_bytes - before)
        return sent

    first, second = tacit.launch(program, parties=2, protocol="additive", source="dealer")[0]
    assert first - second == 8 * 4 * 4 * 3 * 3
