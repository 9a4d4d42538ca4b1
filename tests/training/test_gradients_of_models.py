"""Losses and gradients of whole models match plain ones in one training step."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from steps import Loss, classes, relative_errors
from torch import nn


def logistic() -> tuple[nn.Module, torch.Tensor, torch.Tensor, Loss]:
    return (
        nn.Linear(12, 1),
        torch.randn(16, 12),
        (torch.arange(16) % 2).float().reshape(16, 1),
        (nn.functional.binary_cross_entropy_with_logits),
    )


def perceptron() -> tuple[nn.Module, torch.Tensor, torch.Tensor, Loss]:
    model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 5))
    return model, torch.randn(16, 20), classes(5, 16), nn.functional.cross_entropy


def lenet(activation: Callable[[], nn.Module], pool: Callable[[int], nn.Module]) -> Any:
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        activation(),
        pool(2),
        nn.Conv2d(6, 16, 5),
        activation(),
        pool(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        activation(),
        nn.Linear(120, 84),
        activation(),
        nn.Linear(84, 10),
    )
    return model, torch.rand(8, 1, 28, 28), classes(10, 8), nn.functional.cross_entropy


MODELS = {
    "logistic regression": logistic,
    "perceptron": perceptron,
    "LeNet with tanh": lambda: lenet(nn.Tanh, nn.AvgPool2d),
    "LeNet with ReLU": lambda: lenet(nn.ReLU, nn.MaxPool2d),
}


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_a_step(name: str) -> None:
    torch.manual_seed(11)
    errors = relative_errors(*MODELS[name]())
    assert errors["loss"] < 5e-3
    assert errors["all gradients"] < 0.02, errors


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_a_step_by_additive_sharing(name: str) -> None:
    torch.manual_seed(11)
    errors = relative_errors(*MODELS[name](), parties=2, protocol="additive", source="dealer")
    assert errors["all gradients"] < 0.02, errors


def alexnet() -> Any:
    """Builds the AlexNet of Falcon (Wagh and others 2020) for images of CIFAR-10's shape."""
    model = nn.Sequential(
        *(
            nn.Conv2d(3, 96, 11, stride=4, padding=9),
            nn.MaxPool2d(3, 2),
            nn.ReLU(),
            nn.BatchNorm2d(96),
        ),
        *(nn.Conv2d(96, 256, 5, padding=1), nn.MaxPool2d(2, 1), nn.ReLU(), nn.BatchNorm2d(256)),
        *(nn.Conv2d(256, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *(
            nn.Flatten(),
            nn.LazyLinear(256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 10),
        ),
    )
    x = torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        model(x)
    return model, x, classes(10, 4), nn.functional.cross_entropy


def vgg16() -> Any:
    """Builds torchvision's VGG-16 for images of CIFAR-10's shape."""
    from torchvision.models import vgg16

    model = vgg16(weights=None)
    model.avgpool = nn.Identity()
    model.classifier = nn.Sequential(
        nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    return model, torch.randn(4, 3, 32, 32), classes(10, 4), nn.functional.cross_entropy


LARGE = {"AlexNet": alexnet, "VGG-16": vgg16}


@pytest.mark.long
@pytest.mark.parametrize(("protocol", "parties"), [("plain", 2), ("replicated", 3)])
@pytest.mark.parametrize("name", LARGE)
def test_gradients_of_a_step_of_large_models(name: str, protocol: str, parties: int) -> None:
    """VGG-16 needs the additional fraction bits of weights.

    With the fraction bits of data, noise of a unit in sixteen layers would often change what ReLU
    passes and what pooling selects. Gradients would then be more than 2% off.
    """
    torch.manual_seed(11)
    errors = relative_errors(*LARGE[name](), protocol=protocol, parties=parties)
    assert errors["all gradients"] < 0.02, errors
