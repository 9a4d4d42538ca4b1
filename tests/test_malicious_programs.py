"""Whole programs under replicated sharing that verifies, in three processes: right results, and an
error in all parties if one of them computes with another share than it holds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from torch import nn

import tacit
from tacit.bench import models

PROGRAMS = Path(__file__).resolve().parent.parent / "crates/riscv/programs"

NAME = "replicated-malicious"

#: A program takes the number of a party that cheats, or None, and returns what it revealed.
Work = Callable[[int | None], Any]


def shared(values: torch.Tensor, liar: int | None, owner: int = 1) -> Any:
    """Shares a tensor. A party that cheats changes a word of a component that it holds."""
    mine = values if tacit.session().party == owner else None
    return falsified(tacit.share(mine, owner=owner), liar)


def falsified(secret: Any, liar: int | None) -> Any:
    if tacit.session().party == liar:
        part = secret._parts[0].view(-1)
        part[len(part) // 2] += 1 << 17
    return secret


def inferred(model: nn.Module, image: torch.Tensor) -> Work:
    def work(liar: int | None) -> Any:
        tacit.share_module(model, owner=0)
        with torch.inference_mode():
            return model(shared(image, liar)).reveal()

    return work


def lenet() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return models.lenet().eval(), torch.rand(2, 1, 28, 28)


def of_torchvision(name: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None).eval()
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            # As after training.
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 2)
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.1)
    return model, torch.rand(1, 3, 64, 64)


MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "LeNet-5": lenet,
    **{
        name: lambda name=name: of_torchvision(name)  # type: ignore[misc]
        for name in ("squeezenet1_1", "resnet18", "mobilenet_v2")
    },
}


def told(work: Work, liar: int | None) -> Any:
    """Returns what a party reveals, or the words of the error about a party that cheats."""
    try:
        return work(liar)
    except tacit.CheatingError as error:
        return str(error)


def launched(work: Work, liar: int | None = None) -> list[Any]:
    return tacit.launch(told, work, liar, protocol=NAME, timeout=300)


def check_that_all_stop(work: Work, liar: int) -> None:
    """Checks that each party's error names the two others."""
    for party, words in enumerate(launched(work, liar)):
        others = " or ".join(f"party {other}" for other in range(3) if other != party)
        assert isinstance(words, str), f"party {party} accepts a result"
        assert words.startswith(f'{others} cheated between "')
        assert words.endswith('"; nothing of this was revealed')


@pytest.mark.parametrize(
    "name",
    [
        "LeNet-5",
        "squeezenet1_1",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("resnet18", "mobilenet_v2")),
    ],
)
def test_models(name: str) -> None:
    model, image = MODELS[name]()
    with torch.no_grad():
        plain = model(image)
    work = inferred(model, image)
    for found in launched(work):
        assert (found - plain).square().sum() < 1e-4 * plain.square().sum()
    check_that_all_stop(work, liar=len(name) % 3)


def trained(model: nn.Module, x: Any, y: Any) -> list[Any]:
    """Takes two steps of training, and returns the parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return list(model.parameters())


def test_steps_of_training() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(12, 4), torch.randn(12, 2)

    def layers() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def work(liar: int | None) -> Any:
        model = layers()
        tacit.share_module(model, owner=0, trainable=True)
        parameters = trained(model, shared(x, liar), shared(y, None))
        return [each.reveal() for each in parameters]

    plain = trained(layers(), x, y)
    for found in launched(work):
        for one, other in zip(found, plain, strict=True):
            torch.testing.assert_close(one, other.detach(), atol=2e-3, rtol=0)
    check_that_all_stop(work, liar=1)


def test_a_compiled_model() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
    ).eval()
    images = torch.randn(4, 3, 16, 16)
    program, weights = tacit.compile(model, images[:1], calibrate=images, margin=4.0)

    def work(liar: int | None) -> Any:
        assert tacit.session().core.guards
        bound = program.share(weights, owner=0)
        return bound(falsified(bound.given(images[:1], owner=1), liar)).reveal()

    with torch.no_grad():
        plain = model(images[:1])
    for found in launched(work):
        assert (found - plain).abs().max() < 1e-2
    check_that_all_stop(work, liar=2)


def test_numbers_out_of_range_are_told_as_such() -> None:
    """A guard that fails is no cheating."""
    model = nn.Sequential(nn.Linear(1024, 2), nn.ReLU(), nn.Linear(2, 1)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float(parameter.dim() - 1))

    def with_sum(total: int) -> torch.Tensor:
        x = torch.ones(1, 1024)
        x[0, 512:] = -1
        x[0, 512 : 512 + total] = 0
        return x

    calibrate = torch.cat([with_sum(total) for total in (2, 4, 7)])
    program, weights = tacit.compile(model, calibrate[:1], calibrate=calibrate, margin=4.0)

    def work(total: int | None) -> Any:
        bound = program.share(weights, owner=0)
        try:
            return bound(bound.given(with_sum(total or 0), owner=1)).reveal()
        except tacit.RangeError:
            return "out of range"

    assert [float(found) for found in launched(work, 6)] == pytest.approx([12.0] * 3, abs=1e-2)
    assert launched(work, 120) == ["out of range"] * 3


def test_lists_are_intersected() -> None:
    a, b = torch.tensor([2, 5, 9, 11, 40]), torch.tensor([5, 11, 12])

    def work(liar: int | None) -> Any:
        program = tacit.riscv.load(PROGRAMS / "psi.elf")
        secret = {"a": shared(a, liar, owner=0), "b": shared(b, None)}
        found = program.run(secret=secret, output={"common": "all"}).outputs["common"]
        return sorted(int(each) for each in found if each)

    assert launched(work) == [[5, 11]] * 3
    check_that_all_stop(work, liar=2)
