"""The large models of `tacit bench` match plain results within the bound of CrypTen's paper."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from rich.console import Console

import tacit
from tacit.bench import models, tables
from tacit.bench.settings import Setting

#: The bound on the squared error divided by the squared norm (Knott and others 2021, section 6).
LARGEST_ERROR = 4e-4

MODELS: dict[str, Callable[[], models.Example]] = {
    "text sentiment": models.text_sentiment,
    "Wav2Letter": models.wav2letter,
    "ResNet-18": lambda: models.of_image("resnet18"),
    "ViT-B/16": models.vit_b16,
    "BERT-base": models.bert_base,
}


def made(name: str) -> models.Example:
    """Builds a model and its input, equal in every party."""
    torch.manual_seed(5)
    model, x = MODELS[name]()
    return model.eval(), x


def result_of(model: torch.nn.Module, x: Any) -> Any:
    """Returns the output of a model that the test compares."""
    with torch.no_grad():
        result = model(x)
    return getattr(result, "last_hidden_state", result)


def program(name: str) -> torch.Tensor:
    """Runs in a party. Party 0 owns the model and party 1 owns the input."""
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


def test_a_table_of_compiled_models_shows_all_digits_where_lines_are_short() -> None:
    found = {
        "seconds_median": 12.3456, "seconds_min": 11.5432, "bytes_sent_per_party": [518_123_456],
        "rounds": 1494, "memory_per_party": [5_120_000_000],
    }  # fmt: skip
    name = "compiled_logistic_regression_argmax"
    entry = {"name": name, "eager": found, "compiled": found, "seconds_to_compile": 35.1}
    console = Console(width=80, record=True)
    console.print(tables.compiled_models(Setting(), [entry]))
    shown = console.export_text()
    assert "…" not in shown
    assert all(each in shown for each in ("12.3456", "11.5432", "518.12", "1494", "5.12", "35.1"))
