"""Sessions whose parties compute on a card, by ``make test-gpu``.

Without a card they are skipped, and the reason says what is missing. With ``TACIT_REQUIRE_GPU=1``
they fail instead.
"""

import os
from typing import Any

import pytest
import torch

import tacit
from tacit.errors import SetupError

# Products that are large enough for a card, and an image model with its gradients.


def _program(kind: str) -> tuple[list[torch.Tensor], dict[str, Any]]:
    torch.manual_seed(0)
    if kind == "matrix":
        x = tacit.share(torch.linspace(-1, 1, 512 * 512).reshape(512, 512), owner=0)
        return [(x @ x).reveal()], tacit.session().device
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 32, 3, stride=2, padding=1),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 16 * 16, 10),
    )
    tacit.share_module(model, owner=0)
    images = tacit.share(torch.linspace(-1, 1, 8 * 3 * 32 * 32).reshape(8, 3, 32, 32), owner=1)
    model(images).square().mean().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    return [gradient.reveal() for gradient in gradients], tacit.session().device


@pytest.fixture(scope="module", autouse=True)
def _card() -> None:
    try:
        tacit.launch(lambda: None, parties=2, protocol="plain", device="cuda")
    except SetupError as error:
        if os.environ.get("TACIT_REQUIRE_GPU") == "1":
            raise
        pytest.skip(f"no card can be opened: {error}")


@pytest.mark.parametrize("kind", ["matrix", "model"])
@pytest.mark.parametrize("devices", [["cuda"] * 3, ["cuda", "cpu", "cuda"]])
def test_parties_with_and_without_a_card(kind: str, devices: list[str]) -> None:
    found = tacit.launch(_program, kind, transport="tcp", device=devices)
    expected = tacit.launch(_program, kind, transport="tcp")
    for (results, device), (alike, _), name in zip(found, expected, devices, strict=True):
        assert device["kind"] == name
        assert device["products"] > 0
        assert (device["bytes_copied"] > 0) == (name == "cuda")
        for result, like in zip(results, alike, strict=True):
            # Truncations round at random.
            assert torch.allclose(result, like, atol=1e-2)


def _beside_pytorch() -> list[torch.Tensor]:
    """Multiplies by turns with PyTorch, which uses the same card in this thread."""
    own = torch.linspace(-1, 1, 512 * 512, device="cuda").reshape(512, 512)
    x = tacit.share(own, owner=0)
    results = []
    for _ in range(3):
        results.append((own @ own).cpu())
        results.append((x @ x).reveal())
    return results


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no card")
@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_pytorch_uses_the_same_card(transport: str) -> None:
    for results in tacit.launch(_beside_pytorch, transport=transport, device="cuda"):
        for result in results:
            assert torch.allclose(result, results[0], atol=1e-2)


def test_a_dealer_has_a_card_too() -> None:
    """Masks that a dealer multiplies."""
    dealt: Any = {"protocol": "additive", "parties": 2, "source": "dealer", "transport": "tcp"}
    for device in ("cuda", ["cpu", "cuda", "cuda"]):
        found = tacit.launch(_program, "matrix", device=device, **dealt)
        expected = tacit.launch(_program, "matrix", **dealt)
        for (results, _), (alike, _) in zip(found, expected, strict=True):
            assert torch.allclose(results[0], alike[0], atol=1e-2)
