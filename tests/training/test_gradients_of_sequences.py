"""Gradients of sequence layers match plain ones in one training step.

Each model classifies every place of a sequence.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from steps import Loss, classes, relative_errors
from torch import nn
from transformers.models.bert.modeling_bert import BertLayer

Step = tuple[nn.Module, torch.Tensor, torch.Tensor, Loss]

CLASSES = 5


class Tagger(nn.Module):
    """A recurrent model that classifies each secret word."""

    def __init__(self, recurrent: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.recurrent = recurrent(8, 12, batch_first=True, bidirectional=True)
        self.last = nn.Linear(24, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns scores with the classes before the places, as PyTorch's losses expect."""
        return self.last(self.recurrent(self.embedding(x))[0]).transpose(1, 2)


class Encoded(nn.Module):
    """A layer followed by a classification of each place."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.last = layer, nn.Linear(width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns scores with the classes before the places."""
        return self.last(self.layer(x)).transpose(1, 2)


def tagger(recurrent: type[nn.RNNBase]) -> Step:
    return (
        Tagger(recurrent),
        torch.randint(0, 20, (3, 6)),
        targets(3, 6),
        nn.functional.cross_entropy,
    )


def encoder(**form: Any) -> Step:
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, **form)
    return Encoded(layer, 16), torch.randn(2, 6, 16), targets(2, 6), nn.functional.cross_entropy


def bert(places: int, **sizes: int) -> Step:
    """Builds a training step of Hugging Face's BERT layer, with BERT-base's sizes by default."""
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    configuration = transformers.BertConfig(**sizes, **none, attn_implementation="sdpa")
    layer, width = BertLayer(configuration), configuration.hidden_size
    for part in layer.modules():
        if isinstance(part, nn.Linear):
            # BERT's own initialisation.
            nn.init.normal_(part.weight, 0, configuration.initializer_range)
    return (
        Encoded(layer, width),
        torch.randn(2, places, width),
        targets(2, places),
        nn.functional.cross_entropy,
    )


def targets(batch: int, places: int) -> torch.Tensor:
    return classes(CLASSES, batch * places).reshape(batch, places)


STEPS: dict[str, Callable[[], Step]] = {
    "LSTM": lambda: tagger(nn.LSTM),
    "GRU": lambda: tagger(nn.GRU),
    "encoder": lambda: encoder(),
    "encoder by GELU": lambda: encoder(activation="gelu", norm_first=True),
    "BERT": lambda: bert(6, hidden_size=16, num_attention_heads=4, intermediate_size=32),
    "BERT-base": lambda: bert(8),
}


@pytest.mark.parametrize("name", STEPS)
def test_gradients_of_a_step(name: str) -> None:
    torch.manual_seed(11)
    errors = relative_errors(*STEPS[name](), protocol="plain", parties=2)
    assert errors["loss"] < 5e-3
    assert errors["all gradients"] < 0.02, errors


SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["LSTM", "BERT"])
def test_gradients_of_a_step_on_shares(name: str, setting: str) -> None:
    torch.manual_seed(11)
    errors = relative_errors(*STEPS[name](), **SETTINGS[setting])
    assert errors["all gradients"] < 0.02, errors
