"""The large models of `tacit bench`: their results against plain ones, at the bound of CrypTen's paper."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit
from tacit.bench import models

#: Squared error over squared norm (Knott and others 2021, section 6).
LARGEST_ERROR = 4e-4

MODELS: dict[str, Callable[[], models.Example]] = {
    "text sentiment": models.text_sentiment,
    "Wav2Letter": models.wav2letter,
    "ResNet-18": lambda: models.of_image("resnet18"),
    "ViT-B/16": models.vit_b16,
    "BERT-base": models.bert_base,
}


def made(name: str) -> models.Example:
    """The same in every party."""
    torch.manual_seed(5)
    model, x = MODELS[name]()
    return model.eval(), x


def result_of(model: torch.nn.Module, x: Any) -> Any:
    """What counts of what a model gives."""
    with torch.no_grad():
        result = model(x)
    return getattr(result, "last_hidden_state", result)


def program(name: str) -> torch.Tensor:
    """In a party: the model is party 0's, what goes in party 1's."""
    model, x = made(name)
    tacit.share_module(model, owner=0)
    return result_of(model, tacit.share(x, owner=1)).reveal()


@pytest.mark.long  # Minutes, and gigabytes.
@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_measured(name: str) -> None:
    plain = result_of(*made(name))
    secret = tacit.launch(program, name, timeout=600)[0]
    assert plain.std() > 0.01
    error = (secret - plain).square().sum() / plain.square().sum()
    assert error < LARGEST_ERROR
