"""torchvision's models run unmodified and match their plain outputs."""

from typing import Any

import pytest
import torch
import torchvision

import tacit

MODELS = ["resnet18", "alexnet", "vgg11", "squeezenet1_0", "mobilenet_v2"]

#: The models that only long tests try, since they have the most weights.
LARGE = ["alexnet", "vgg11"]

#: The models that every test run tries by additive sharing, by parties and source.
QUICK = {
    (2, "dealer"): ["resnet18"],
    (3, "dealer"): ["mobilenet_v2"],
    (2, "he"): ["squeezenet1_0"],
}

#: The bound on the squared error divided by the squared norm.
LARGEST_ERROR = 1e-4


def build(name: str) -> torch.nn.Module:
    """Builds a model with random weights, and with statistics as after training."""
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None).eval()
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 2)
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.1)
    return model


def classify(model: torch.nn.Module, image: torch.Tensor) -> torch.Tensor | None:
    """Runs in every party. Party 0 owns the weights; party 1 owns the image and gets the result."""
    party = tacit.session().party
    if party != 0:
        for tensor in model.state_dict().values():
            tensor.zero_()
    tacit.share_module(model, owner=0)
    secret = tacit.share(image if party == 1 else None, owner=1)
    with torch.inference_mode():
        return model(secret).reveal(to=1)


def compare(name: str, **setting: Any) -> None:
    """Compares a model's result on secret inputs with its plain result."""
    image = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    model = build(name)
    with torch.no_grad():
        plain = model(image)
    none, secret, *others = tacit.launch(classify, model, image, timeout=300, **setting)
    assert none is None
    assert all(other is None for other in others)
    error = (secret - plain).square().sum() / plain.square().sum()
    assert error < LARGEST_ERROR
    assert secret.argmax(1).equal(plain.argmax(1))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long) if name in LARGE else name for name in MODELS],
)
def test_model(name: str) -> None:
    compare(name)


@pytest.mark.parametrize(
    ("name", "parties", "source"),
    [
        pytest.param(name, *setting, marks=() if name in quick else pytest.mark.long)
        for name in MODELS
        for setting, quick in QUICK.items()
    ],
)
def test_model_by_additive_sharing(name: str, parties: int, source: str) -> None:
    compare(name, parties=parties, protocol="additive", source=source)
