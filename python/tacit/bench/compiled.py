"""Compiled models and the same models before compilation, in one report.

They are the networks of CrypTFlow (Kumar and others 2020, tables III and V and section VI). Weights
and images are random."""

import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import nn

import tacit
from tacit.bench import models
from tacit.bench.settings import Setting
from tacit.compilation.execute import revealed
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights, load_weights
from tacit.meter import verification_of

#: Number of images on which widths and scales are chosen.
CALIBRATION = 8

#: Longest wait for one message, in seconds: making correlations may take long.
TIMEOUT = 1800.0

#: Parties that own the weights and the input.
WEIGHTS_OWNER, INPUT_OWNER = 0, 1


@dataclass(frozen=True)
class Compiled:
    """One measurement of a model."""

    #: Returns the module, and the input of one inference.
    make: Callable[[], models.Example]
    warm_up: int = 5
    repetitions: int = 25
    only_by_name: bool = True


class Made(NamedTuple):
    """What a case is compiled to."""

    program: Program
    weights: Weights
    #: Input of one inference.
    x: torch.Tensor


def of_image(name: str, **options: Any) -> Compiled:
    """Measurement of torchvision's model of this name."""
    return large(lambda: models.of_image(name, **options))


def large(make_model: Callable[[], models.Example]) -> Compiled:
    """Measurement of a model of images that takes seconds."""

    def make() -> models.Example:
        module, image = make_model()
        return module, torch.rand_like(image)

    # Masked weights are opened once, in the first run, so they do not count as the cost of an
    # image.
    return Compiled(make, warm_up=1, repetitions=5)


class Class(nn.Module):
    """Module that gives the class with the greatest number of another module, instead of the
    numbers."""

    def __init__(self, numbers: nn.Module) -> None:
        super().__init__()
        self.numbers = numbers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the index of the greatest number."""
        numbers: torch.Tensor = self.numbers(x)
        return numbers.argmax(1)


#: Cases by name. The MNIST networks A to D of the paper's section VI-E1 are secureml, minionn,
#: caffe_lenet and chameleon. The paper does not say which network detects retinopathy; ResNet-50
#: was used for it at that time, and has been since.
COMPILED = {
    "compiled_logistic_regression": Compiled(lambda: (nn.Linear(784, 10), torch.rand(1, 784))),
    "compiled_logistic_regression_argmax": Compiled(
        lambda: (Class(nn.Linear(784, 10)), torch.rand(1, 784))
    ),
    "compiled_secureml": Compiled(models.secureml),
    "compiled_minionn": Compiled(models.minionn),
    "compiled_caffe_lenet": Compiled(models.caffe_lenet),
    "compiled_chameleon": Compiled(models.chameleon),
    "compiled_lenet": Compiled(lambda: (models.lenet(), torch.rand(1, 1, 28, 28))),
    "compiled_squeezenet": of_image("squeezenet1_1"),
    "compiled_resnet50": of_image("resnet50"),
    "compiled_densenet121": of_image("densenet121"),
    "compiled_chest_xray": of_image("densenet121", num_classes=14),
    "compiled_retinopathy": of_image("resnet50", num_classes=5),
}


def measure(name: str, setting: Setting, threads: int | None = None) -> tuple[dict[str, Any], int]:
    """Returns the entry of a case in the report, and the peak memory of the largest party in
    bytes."""
    case = COMPILED[name]
    threads = setting.threads(threads)
    started = time.perf_counter()
    program, weights, x = compile_case(case)
    seconds_to_compile = time.perf_counter() - started
    # A file cannot hold the same memory twice.
    copied = {name: value.clone() for name, value in weights.of_model.items()}
    before = replace(weights.as_it_was(), values=copied)
    found = {}
    for kind, each, own in (("eager", weights.model, before), ("compiled", program, weights)):
        with TemporaryDirectory() as folder:
            # Their owner alone reads them, as in tacit run, so that they do not count as memory of
            # the other parties.
            own.save(path := Path(folder) / "model.weights")
            told = session(case, each, path, x, setting, threads, is_eager=kind == "eager")
        seconds = [max(times) for times in zip(*(party["seconds"] for party in told), strict=True)]
        found[kind] = {
            "seconds_median": statistics.median(seconds),
            "seconds_min": min(seconds),
            "rounds": max(party["rounds"] for party in told),
            "bytes_sent_per_party": [party["bytes_sent"] for party in told],
            **verification_of([party["verification"] for party in told], case.repetitions),
            "memory_per_party": [party["memory"] for party in told],
        }
    entry = {
        "name": name,
        **setting.entry,
        "threads": threads,
        "warm_up": case.warm_up,
        "repetitions": case.repetitions,
        "seconds_to_compile": seconds_to_compile,
        "seconds_median": found["compiled"]["seconds_median"],
        **found,
        **({} if setting.attestation is None else {"attestation": setting.attestation}),
        **{name: found["compiled"][name] for name in found["compiled"].keys() & {"verification"}},
    }
    return entry, max(max(each["memory_per_party"]) for each in found.values())


def compile_case(case: Compiled) -> Made:
    """Compiles a case's model."""
    torch.manual_seed(0)
    module, x = case.make()
    images = torch.rand(CALIBRATION, *x.shape[1:])
    return Made(*tacit.compile(module.eval(), x, calibrate=images), x)


def session(
    case: Compiled,
    program: Program,
    path: Path,
    x: torch.Tensor,
    setting: Setting,
    threads: int,
    *,
    is_eager: bool = False,
    network: str | None = None,
) -> list[dict[str, Any]]:
    """Runs one session of a case, and returns what its parties tell.

    Args:
        case: the case, for its numbers of runs.
        program: what it was compiled to.
        path: the file of its weights.
        x: the input of one inference.
        setting: the setting.
        threads: the number of threads of each party.
        is_eager: whether operators run one by one.
        network: a network that links imitate, as ``tacit.launch`` takes it.
    """
    given = program, path, x, case.warm_up, case.repetitions, is_eager
    return setting.launch(_party, *given, threads=threads, timeout=TIMEOUT, network=network)


def _party(
    program: Program, path: Path, x: torch.Tensor, warm_up: int, repetitions: int, is_eager: bool
) -> dict[str, Any]:
    """Runs one party's part: inferences, from sharing the input to its owner's result."""
    current = tacit.session()
    weights = load_weights(path, with_model=False) if current.party == WEIGHTS_OWNER else None
    bound = program.share(weights, owner=WEIGHTS_OWNER)
    if is_eager:
        bound.one_by_one()

    def once() -> None:
        revealed(
            bound(bound.given(x if current.party == INPUT_OWNER else None, owner=INPUT_OWNER)),
            INPUT_OWNER,
        )

    for _ in range(warm_up):
        once()
    before, verified, seconds = current.meter.total, current.meter.verification, []
    for _ in range(repetitions):
        started = time.perf_counter()
        once()
        seconds.append(time.perf_counter() - started)
    spent = current.meter.total - before
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "seconds": seconds,
        "rounds": spent.rounds // repetitions,
        "bytes_sent": spent.bytes_sent // repetitions,
        "verification": current.meter.verification_since(verified),
        "attestation": current.attestation,
        "device": current.device,
        "memory": unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
