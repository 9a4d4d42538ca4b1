"""Normalisation before a ReLU: each channel keeps one side of zero, and only the model's owner
knows which side."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.compilation.format import canonical
from tacit.compilation.program import Program
from tacit.compilation.try_model import tried
from tacit.compilation.weights import Weights
from tacit.errors import MisuseError, RangeError

IMAGES = torch.rand(4, 40, 6, 6, generator=torch.Generator().manual_seed(1))
#: Makes the proved bound on inputs far larger than the sums of layers.
IMAGES[3, 0, 0, 0] = 64.0

SETTINGS: list[dict[str, Any]] = [
    {"protocol": "replicated", "parties": 3},
    {"protocol": "additive", "parties": 2, "source": "dealer"},
    {"protocol": "additive", "parties": 3, "source": "dealer"},
    {"protocol": "additive", "parties": 2, "source": "ot"},
    {"protocol": "additive", "parties": 2, "source": "he"},
    {"protocol": "plain", "parties": 2},
]


class Dense(nn.Module):
    """A layer of a dense block. The normalised value is also used elsewhere, so no earlier layer
    can absorb the normalisation."""

    def __init__(self, factors: list[float]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Conv2d(40, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 5, 3, padding=1)
        with torch.no_grad():
            self.norm.weight.copy_(torch.tensor(factors))
            self.norm.bias.copy_(torch.tensor([0.2, -0.1, 0.3, 0.0]))
            self.norm.running_mean.copy_(torch.tensor([0.1, 0.2, -0.3, 0.0]))  # type: ignore[operator]
            self.norm.running_var.copy_(torch.tensor([0.5, 1.5, 1.0, 0.1]))  # type: ignore[operator]
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return torch.cat([x, self.second(torch.relu(self.norm(x)))], 1)


#: Factors so large that no later layer needs more digits.
MIXED = [1.7, -2.9, 1.4, -1.3]


def sides(program: Program) -> list[Any]:
    return [
        node for node in program.graph.nodes if node.target is torch.ops.tacit.one_sided.default
    ]


@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda each: f"{each['protocol']} {each.get('source', '')}"
)
@pytest.mark.parametrize(
    "settings", [{}, {"calibrate": IMAGES, "margin": 1.0}], ids=["proved", "guarded"]
)
def test_channels_of_both_signs_are_right(
    setting: dict[str, Any], settings: dict[str, Any]
) -> None:
    module = Dense(MIXED)
    program, weights = tacit.compile(module, IMAGES[:2], **settings)
    (node,) = sides(program)
    assert (node.meta["guard"] is not None) == bool(settings)
    found = tried(program, weights, [IMAGES[:2]], transport="memory", **setting)
    assert found.compiled.normalised_squared_error < 1e-5

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        return bound(bound.given(IMAGES[2:], owner=1)).reveal()

    with torch.no_grad():
        plain = module(IMAGES[2:])
    secret = tacit.launch(run, **setting)[0]
    torch.testing.assert_close(secret, plain, rtol=0, atol=0.02)


def test_a_guard_of_it_fails_beyond() -> None:
    program, weights = tacit.compile(Dense(MIXED), IMAGES[:1], calibrate=IMAGES, margin=1.0)
    assert sides(program)[0].meta["guard"] is not None

    def run() -> None:
        bound = program.share(weights, owner=0)
        with pytest.raises(RangeError):
            bound(bound.given(torch.full((1, 40, 6, 6), 60.0), owner=1)).reveal()

    tacit.launch(run)


def test_a_tolerance_is_of_the_numbers_of_the_model() -> None:
    class Large(nn.Module):
        """A ReLU of numbers 64 times as large as those that are kept."""

        def __init__(self) -> None:
            super().__init__()
            self.norm, self.layer = nn.BatchNorm2d(2, eps=0.0), nn.Conv2d(2, 2, 1)
            with torch.no_grad():
                self.norm.weight.copy_(torch.tensor([64.0, -64.0]))
                self.layer.weight.copy_(torch.eye(2).reshape(2, 2, 1, 1))
                self.layer.bias.zero_()  # type: ignore[union-attr]
            self.eval()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(torch.relu(self.norm(x)))

    x = torch.linspace(-0.0625, 0.0625, 32).reshape(1, 2, 4, 4)
    # Near zero, dropped low bits can give the wrong side.
    images, tolerance = torch.cat([x, x.flip(1)]), 2.0**-4
    program, weights = tacit.compile(Large(), images, calibrate=images, tolerance=tolerance)
    assert sides(program)

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        return bound(bound.given(images, owner=1)).reveal()

    found = tacit.launch(run)[0]
    assert not (found < 0).any()
    with torch.no_grad():
        torch.testing.assert_close(found, Large()(images), rtol=0, atol=tolerance)


def test_programs_do_not_tell_which_side_channels_keep() -> None:
    told = {
        tacit.compile(Dense(factors), IMAGES[:1])[0].text
        for factors in (MIXED, [3.0] * 4, [-3.0] * 4)
    }
    assert len(told) == 1


def test_no_more_is_sent_than_by_a_relu() -> None:
    def run() -> list[tuple[int, int]]:
        current = tacit.session()
        x = tacit.share(torch.linspace(-2, 2, 500).reshape(5, 100), owner=0)
        below = tacit.share(torch.tensor([[True], [False], [True], [True], [False]]), owner=1)
        spent = []
        # The first call may wait for the other parties, so it is not counted.
        for function in (torch.relu, torch.relu, lambda x: torch.ops.tacit.one_sided(x, below)):
            before = current.meter.total
            function(x)
            cost = current.meter.total - before
            spent.append((cost.rounds, cost.bytes_sent))
        return spent

    for setting in SETTINGS:
        for _, relu, one_sided in tacit.launch(run, **setting):
            assert one_sided == relu


EDGES = torch.tensor(
    [0.0, 2.0**-16, -(2.0**-16), 1.0, -1.0, 2.0**20, -(2.0**20), 2.0**29, -(2.0**29)]
)


@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda each: f"{each['protocol']} {each.get('source', '')}"
)
def test_edges_and_random_numbers(setting: dict[str, Any]) -> None:
    random = torch.randn(2000, generator=torch.Generator().manual_seed(5)) * 2.0**12
    x = torch.cat([EDGES, random]).to(torch.float64)
    # Round as the encoding does.
    x = (x * 2**16).round() / 2**16
    which = torch.rand(2, len(x), generator=torch.Generator().manual_seed(6)) < 0.5
    which[1] = ~which[0]

    def run() -> torch.Tensor:
        secret = tacit.share(x, owner=0).expand(2, -1)
        return torch.ops.tacit.one_sided(secret, tacit.share(which, owner=1)).reveal()

    for found in tacit.launch(run, **setting):
        assert found.equal(torch.where(which, x.clamp_max(0), x.clamp_min(0)))


def test_public_numbers_and_public_sides() -> None:
    x, which = torch.tensor([-1.5, 2.5]), torch.tensor([True, False])

    def run() -> None:
        one_sided = torch.ops.tacit.one_sided
        assert one_sided(x, which).tolist() == [-1.5, 2.5]
        secret, sides = tacit.share(x, owner=0), tacit.share(which, owner=1)
        assert one_sided(secret, ~which).reveal().tolist() == [0.0, 0.0]
        assert one_sided(x, sides).reveal().tolist() == [-1.5, 2.5]
        assert one_sided(secret.reshape(2, 1).expand(2, 2), sides).reveal().tolist() == [
            [-1.5, 0],
            [0, 2.5],
        ]

    tacit.launch(run)


# Files
# ----------------------------------------------------------------------------


def test_booleans_are_written_and_read(tmp_path: Path) -> None:
    program, weights = tacit.compile(Dense(MIXED), IMAGES[:1])
    weights.save(tmp_path / "weights")
    read = tacit.load_weights(tmp_path / "weights")
    read.check(program)
    (name,) = [name for name, each in program.weights.items() if each.dtype == torch.bool]
    assert read.values[name].flatten().tolist() == [False, True, False, True]


def test_numbers_in_the_place_of_booleans_are_refused() -> None:
    program, weights = tacit.compile(Dense(MIXED), IMAGES[:1])
    for name, value in weights.values.items():
        other = value.float() if value.dtype == torch.bool else value != 0
        changed = Weights(
            {**weights.values, name: other}, program.digest, weights.model, weights.of_model
        )
        with pytest.raises(MisuseError, match=f"the weight {name} is not valid"):
            changed.check(program)


def test_numbers_that_say_on_which_side_are_refused() -> None:
    content = json.loads(tacit.compile(Dense(MIXED), IMAGES[:1])[0].text)
    for each in content["weights"]:
        each["scale"] = each["scale"] or 16
    with pytest.raises(MisuseError):
        Program.parsed(canonical(content), "the file")


def test_sides_of_more_than_there_is_are_refused() -> None:
    content = json.loads(tacit.compile(Dense(MIXED), IMAGES[:1])[0].text)
    for each in content["weights"]:
        if not each["scale"]:
            each["shape"] = [7, *each["shape"]]
    with pytest.raises(MisuseError, match="sides of shape"):
        Program.parsed(canonical(content), "the file")
