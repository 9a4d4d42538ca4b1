"""Benchmark cases: by name, a function that prepares secret inputs and returns the work to be
timed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import tacit
from tacit.bench import models
from tacit.providers import transfers_matrices

Work = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One benchmark case."""

    prepare: Callable[[], Work]
    repetitions: int = 5
    #: Number of runs in one measurement, whose time is divided by it: parties that share cores are
    #: switched within milliseconds, and the clock of the slowest one counts.
    runs_in_each: int = 1
    #: Whether its matrix products or convolutions take gigabytes of oblivious transfers.
    costly_by_transfer: bool = False
    #: Whether it is measured only if it is named, because it takes long, or much memory.
    only_by_name: bool = False
    #: Network that links imitate unless another one is asked for, as ``tacit.launch`` takes it.
    network: str | None = None

    def runs(self, source: str | None) -> tuple[int, int, int]:
        """Returns the number of runs to warm up, the number of measurements, and the number of runs
        in each of these."""
        if transfers_matrices(source):
            return (0, 1, 1) if self.costly_by_transfer else (1, self.repetitions, 1)
        return self.runs_in_each, self.repetitions, self.runs_in_each


def secret(*shape: int) -> tacit.SecretTensor:
    """Random numbers of party 0."""
    return tacit.share(torch.rand(shape) * 4 - 2 if tacit.session().party == 0 else None, owner=0)


def _mul() -> Work:
    x, y = secret(1_000_000), secret(1_000_000)
    return lambda: x * y


def _mul_integers() -> Work:
    numbers = torch.arange(1_000_000) if tacit.session().party == 0 else None
    x, y = (tacit.share(numbers, owner=0) for _ in range(2))
    return lambda: x * y


def _matmul() -> Work:
    x, y = secret(512, 512), secret(512, 512)
    return lambda: x @ y


def module(own: nn.Module, *shape: int) -> Work:
    """Inference by a module of party 0, on secret numbers of this shape."""
    x = secret(*shape)
    tacit.share_module(own.eval(), owner=0)

    def work() -> Any:
        with torch.inference_mode():
            return own(x)

    return work


def _relu() -> Work:
    x = secret(1_000_000)
    return lambda: torch.relu(x)


def _relu_short() -> Work:
    x = secret(1_000_000)

    def work() -> Any:
        with tacit.comparison_width(32):
            return torch.relu(x)

    return work


def _less() -> Work:
    x, y = secret(1_000_000), secret(1_000_000)
    return lambda: x < y


def _argmax() -> Work:
    x = secret(1000, 10)
    return lambda: x.argmax(1)


def _softmax(rows: int, classes: int) -> Work:
    x = secret(rows, classes)
    return lambda: torch.softmax(x, 1)


def _gelu() -> Work:
    x = secret(1_000_000)
    return lambda: nn.functional.gelu(x)


def _sort() -> Work:
    x = secret(10_000)
    return lambda: x.sort().values


def _latency() -> Work:
    x, y = secret(1), secret(1)

    def work() -> Any:
        result: torch.Tensor = x
        for _ in range(1000):
            result = result * y
        return result

    return work


def inference(make: Callable[[], models.Example]) -> Work:
    """Inference with a model of party 0, on an input of party 1."""
    own, x = make()
    shared = tacit.share(x, owner=1)
    tacit.share_module(own.eval(), owner=0)

    def work() -> Any:
        with torch.inference_mode():
            return own(shared)

    return work


def training(make: Callable[[], nn.Module], *shape: int) -> Work:
    """A step of SGD: forward, loss, backward, update."""
    x = secret(*shape)
    targets = tacit.share(
        torch.arange(shape[0]) % 10 if tacit.session().party == 0 else None, owner=0
    )
    own = tacit.share_module(make(), owner=0, trainable=True)
    optimizer = torch.optim.SGD(own.parameters(), lr=0.01)

    def work() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(own(x), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return work


def _large(prepare: Callable[[], Work]) -> Case:
    return Case(prepare, 2, costly_by_transfer=True, only_by_name=True)


CASES: dict[str, Case] = {
    "mul_1e6": Case(_mul, runs_in_each=10),
    "mul_integers_1e6": Case(_mul_integers, runs_in_each=10),
    "matmul_512": Case(_matmul, costly_by_transfer=True),
    "conv_64x56x56": Case(
        lambda: module(nn.Conv2d(64, 64, 3, padding=1), 1, 64, 56, 56), costly_by_transfer=True
    ),
    "relu_1e6": Case(_relu),
    "relu_1e6_w32": Case(_relu_short),
    "less_1e6": Case(_less),
    "maxpool_64x112x112": Case(lambda: module(nn.MaxPool2d(2), 1, 64, 112, 112)),
    "argmax_1000x10": Case(_argmax),
    "softmax_100x1000": Case(lambda: _softmax(100, 1000)),
    "softmax_1000x10": Case(lambda: _softmax(1000, 10)),
    "gelu_1e6": Case(_gelu, 3),
    "layernorm_128x768": Case(lambda: module(nn.LayerNorm(768), 128, 768)),
    "sort_1e4": Case(_sort),
    "transformer_block": Case(
        lambda: module(models.transformer_block(), 1, 128, 768), 3, costly_by_transfer=True
    ),
    "lenet_1": Case(lambda: module(models.lenet(), 1, 1, 28, 28)),
    "lenet_128": Case(lambda: module(models.lenet(), 128, 1, 28, 28), 3, costly_by_transfer=True),
    "lenet_training_128": Case(
        lambda: training(models.lenet, 128, 1, 28, 28), 3, costly_by_transfer=True
    ),
    "resnet18_1": Case(
        lambda: inference(lambda: models.of_image("resnet18")), 3, costly_by_transfer=True
    ),
    "latency_mul_1000": Case(_latency, 3),
    "alexnet_training_32": _large(lambda: training(models.alexnet, 32, 3, 32, 32)),
    "vgg16_training_32": _large(lambda: training(models.vgg16, 32, 3, 32, 32)),
    "bert_base_128": _large(lambda: inference(models.bert_base)),
    "vit_b16_1": _large(lambda: inference(models.vit_b16)),
    "text_sentiment_32": _large(lambda: inference(models.text_sentiment)),
    "wav2letter": _large(lambda: inference(models.wav2letter)),
}
