"""Models and functions send fewer bytes than the limits set here.

The bytes follow from shapes alone, so they are the same on every machine. The party that sends most
counts, after everything is shared.
"""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import tacit
from tacit.bench import models

#: By name: the module, its example input, and the limit in megabytes.
CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor], float]] = {
    "softmax of 100 × 1,000": (lambda: nn.Softmax(1), lambda: torch.randn(100, 1000), 30),
    "transformer block": (models.transformer_block, lambda: torch.randn(1, 128, 768), 120),
}


def sent(module: nn.Module, example: torch.Tensor) -> float:
    """Returns the megabytes that the busiest party sends after everything is shared."""

    def program() -> int:
        tacit.share_module(module, owner=0)
        x = tacit.share(example, owner=1)
        before = tacit.session().meter.total.bytes_sent
        with torch.inference_mode():
            module(x)
        return tacit.session().meter.total.bytes_sent - before

    return float(max(tacit.launch(program, threads=1, timeout=600.0))) / 1e6


@pytest.mark.parametrize("name", CASES)
def test_megabytes(name: str) -> None:
    module, example, most = CASES[name]
    torch.manual_seed(0)
    assert 0 < sent(module().eval(), example()) <= most


@pytest.mark.long
def test_megabytes_of_bert() -> None:
    """BERT-base runs on 128 tokens. All three parties and their shares are in this process."""

    module, tokens = models.bert_base()
    assert 0 < sent(module.eval(), tokens) <= 1500
