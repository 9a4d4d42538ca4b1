"""Scales chosen by calibration.

Every output counts, relative to its own norm. Numeric outputs are held to a stricter limit than
classes. No accuracy is lost.
"""

from typing import Any

import pytest
import torch
from torch import nn

import tacit
from models import spent
from tacit.compilation import compiler
from tacit.compilation.inspect import inspect
from tacit.compilation.passes.assign_scales import Data, Merit
from tacit.compilation.program import Program
from tacit.compilation.try_model import Trial, tried
from tacit.fixed import DEFAULT
from tacit.providers import REFERENCE

X = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))


class Several(nn.Module):
    """Two outputs: a layer's numbers, and a small multiple of them."""

    def __init__(self, small: float = 1e-3) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer, self._small = nn.Linear(8, 4), small

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layer(x)
        return y, y * self._small


def compiled(module: nn.Module, x: torch.Tensor = X) -> tuple[Program, Trial]:
    program, weights = tacit.compile(module.eval(), x, calibrate=x)
    return program, tried(program, weights, [x], parties=2, protocol=REFERENCE, transport="memory")


def test_a_small_output_counts_by_its_own_norm() -> None:
    program, found = compiled(Several())
    assert program.scale > 10
    assert found.compiled.normalised_squared_error < 1e-3


def test_a_trial_tells_of_the_worst_output() -> None:
    # No scale can hold the second output; every scale holds the first.
    program, weights = tacit.compile(Several(1e-6).eval(), X)
    found = tried(program, weights, [X], parties=2, protocol=REFERENCE, transport="memory")
    assert found.compiled.normalised_squared_error > 0.1
    assert (found.compiled.argmax_agreement or 0.0) < 1.0


@pytest.mark.parametrize(
    "module", [nn.Linear(8, 1), nn.Sequential(nn.Linear(8, 6), nn.Unflatten(1, (2, 3)))]
)
def test_numbers_that_are_no_classes_keep_a_thousandth(module: nn.Module) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(0.02)
    program, found = compiled(module)
    assert program.scale > 10
    assert found.compiled.normalised_squared_error < 2e-6


def test_probabilities_are_right_to_a_thousandth() -> None:
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)).eval()
    x = torch.randn(256, 8)
    for has_softmax in (False, True):
        last = [nn.Softmax(1)] if has_softmax else []
        program, found = compiled(nn.Sequential(module, *last), x)
        if has_softmax:
            assert program.scale > 10
            assert found.compiled.normalised_squared_error < 2e-6
        else:
            # The numbers that softmax takes stand for classes alone.
            assert program.scale == 10


def test_results_are_judged_output_by_output() -> None:
    classes, numbers, whole = 2 * torch.eye(4), torch.arange(4.0).unsqueeze(1), torch.arange(4)
    data = Data([], [classes, numbers, whole], None)
    assert data.judge([classes, numbers, whole]) == Merit(0.0, 0.0)
    assert data.judge([classes, numbers * 1.1, whole]) is None
    assert data.judge([classes * 0.5, numbers, whole]) is None
    assert data.judge([classes, numbers, whole.flip(0)]) == Merit(1.0, 0.0)
    # The error of class outputs also counts when scales must be as good as others.
    halved = data.judge([classes * 0.99, numbers, whole])
    assert halved is not None
    assert (halved.lost, halved.error) == (0.0, 0.0)
    assert halved.most == pytest.approx(1e-4, rel=1e-3)
    assert not halved.is_as_good(Merit(0.0, 0.0))
    merit = data.judge([classes, numbers * 1.01, whole])
    assert merit is not None
    assert not merit.is_enough
    # The right classes are known for the first output only. The plain model gets one of them right.
    labelled = Data([], [classes, classes], torch.tensor([0, 0, 0, 0]))
    assert labelled.judge([classes, classes]) == Merit(0.0, 0.0)
    # Probabilities of classes are numbers as well.
    probabilities = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    data = Data([], [probabilities], None)
    assert data.judge([probabilities]) == Merit(0.0, 0.0)
    nearly = data.judge([probabilities + 0.01])
    assert nearly is not None
    assert (nearly.lost, nearly.is_enough) == (0.0, False)


def of_size(size: float, outputs: int = 4) -> nn.Module:
    """A layer with weights of about the given size."""
    torch.manual_seed(3)
    layer = nn.Linear(8, outputs, bias=False)
    with torch.no_grad():
        layer.weight.mul_(size)
    return layer


def bits_of(program: Program) -> int:
    (weight,) = program.weights.values()
    return weight.bits


@pytest.fixture
def as_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves inputs as they are, so that weights must fit numbers of any magnitude."""
    monkeypatch.setattr(compiler, "scale_inputs", lambda *_: None)


@pytest.mark.parametrize("outputs", [4, 1])
@pytest.mark.usefixtures("as_given")
@pytest.mark.filterwarnings("ignore::tacit.PrecisionWarning")
def test_small_weights_get_more_bits_than_numbers(outputs: int) -> None:
    # With more fraction bits the numbers would leave the range. Weights with as few fraction bits
    # as the numbers would be rounded to almost nothing.
    program, found = compiled(of_size(1e-5, outputs), X * 1e7)
    assert bits_of(program) > program.scale
    assert found.compiled.normalised_squared_error < 1e-3 < found.eager.normalised_squared_error
    assert f"weights with {bits_of(program)} fraction bits: " in str(inspect(program, []))
    assert f"numbers have {program.scale} fraction bits" in str(inspect(program, []))


def test_large_weights_get_fewer_bits_than_numbers() -> None:
    program, found = compiled(of_size(1e6))
    assert bits_of(program) < program.scale
    assert found.compiled.normalised_squared_error < 1e-6


NUMBERS = nn.Unflatten(1, (2, 100))


@pytest.mark.parametrize(
    ("module", "size", "rises"),
    [
        (of_size(1.0, 200), 1.0, False),
        (nn.Sequential(of_size(1.0, 200), NUMBERS), 1.0, False),
        # Small numbers, and small weights.
        (nn.Sequential(of_size(0.02, 200), NUMBERS), 1.0, True),
        (of_size(1e-5, 200), 1e7, True),
    ],
)
@pytest.mark.parametrize(
    "setting",
    [
        {"protocol": "replicated", "parties": 3},
        {"protocol": "additive", "parties": 2, "source": "dealer"},
    ],
)
@pytest.mark.usefixtures("as_given")
@pytest.mark.filterwarnings("ignore::tacit.PrecisionWarning")
def test_what_is_sent_rises_for_better_results_alone(
    module: nn.Module, size: float, rises: bool, setting: dict[str, Any]
) -> None:
    x = X * size
    program, weights = tacit.compile(module.eval(), x, calibrate=x)
    assert (bits_of(program) > DEFAULT.bits) == rises
    before = weights.as_it_was()
    now, eager = (
        spent(*each, x, **setting) for each in ((program, weights), (weights.model, before))
    )
    if max(now) > max(eager):
        found = tried(program, weights, [x], transport="memory", **setting)
        assert found.compiled.normalised_squared_error <= found.eager.normalised_squared_error / 2
    # Between two parties a truncation costs the same for any number of bits.
    assert (max(now) > max(eager)) == (rises and setting["protocol"] == "replicated")


def test_what_is_as_good() -> None:
    enough, not_enough = Merit(0.0, 1e-7, 1e-7), Merit(0.0, 1e-5, 1e-5)
    assert Merit(0.0, 2e-7, 2e-7).is_as_good(enough)
    assert not Merit(0.0, 3e-7, 3e-7).is_as_good(enough)
    assert not Merit(0.1, 1e-7, 1e-7).is_as_good(enough)
    assert not Merit(0.0, 1.5e-6, 1.5e-6).is_as_good(Merit(0.0, 9e-7, 9e-7))
    assert Merit(0.0, 1.5e-5, 1.5e-5).is_as_good(not_enough)
    assert Merit(-0.1, 0.0, 1e-4).is_better(Merit(0.0, 0.0, 1e-4))
    assert not Merit(0.0, 6e-6, 6e-6).is_better(not_enough)


def test_biases_keep_the_bits_of_numbers() -> None:
    torch.manual_seed(3)
    module = nn.Linear(8, 4)
    with torch.no_grad():
        module.weight.mul_(1e6)
    program, _ = compiled(module)
    bits = {len(each.shape): each.bits for each in program.weights.values()}
    assert bits[2] < bits[1] == program.scale


def test_a_sum_of_a_normalised_layer_and_another_one_has_a_scale() -> None:
    class Branches(nn.Module):
        """Two layers, only one of which has weights with their own fraction bits."""

        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm, self.other = (
                nn.Conv2d(4, 4, 1),
                nn.BatchNorm2d(4),
                nn.Conv2d(4, 4, 1),
            )
            with torch.no_grad():
                self.norm.weight.fill_(0.1)
            self.eval()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(self.layer(x)) + self.other(x * x)

    torch.manual_seed(1)
    images = torch.randn(4, 4, 4, 4)
    program, weights = tacit.compile(Branches(), images[:1], calibrate=images)
    assert [node for node in program.graph.nodes if node.target is torch.ops.tacit.affine.default]
    found = tried(
        program, weights, [images[:1]], parties=3, protocol="replicated", transport="memory"
    )
    assert found.compiled.normalised_squared_error < 2e-3
