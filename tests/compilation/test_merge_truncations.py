"""One truncation for several consecutive layers.

Truncations are merged only with a proof. The tests check the precision, and that the cost never
rises.
"""

import json
import random
from functools import cache
from typing import Any

import pytest
import torch
from ran import THREE, TWO, changed, exact, run
from torch import nn

import tacit
from models import normalised
from tacit.compilation.dry_run import metered
from tacit.compilation.execute import share_weights
from tacit.compilation.format import canonical
from tacit.compilation.graph import Draft
from tacit.compilation.importers.exported import of_module
from tacit.compilation.inspect import inspect
from tacit.compilation.passes import improve
from tacit.compilation.passes.assign_widths import assign_widths
from tacit.compilation.passes.merge_truncations import merge_truncations, truncations
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights, of_draft
from tacit.errors import MisuseError
from tacit.fixed import Scale

IMAGES = torch.randn(6, 3, 6, 6, generator=torch.Generator().manual_seed(5))


def kept(program: Program) -> list[int]:
    """Returns the fraction bits of each result that is not truncated."""
    return [step.scale for step in inspect(program, []).steps if step.scale is not None]


def without(program: Program) -> Program:
    """Returns the program with all truncations restored."""
    return changed(program, scale=None)


def cost(program: Program, setting: dict[str, Any]) -> tuple[int, int]:
    """Returns the rounds, and the bytes of the party that sends most."""
    found = tacit.launch(metered, program, **setting)
    return max(each.rounds for each in found), max(each.bytes_sent for each in found)


# Chains
# ----------------------------------------------------------------------------


CHAINS: dict[str, tuple[list[nn.Module], int]] = {
    "convolutions": ([nn.Conv2d(3, 6, 1), nn.Conv2d(6, 4, 3)], 1),
    "three": ([nn.Conv2d(3, 6, 1), nn.Conv2d(6, 4, 3), nn.Conv2d(4, 4, 1, groups=2)], 2),
    "linear": ([nn.Flatten(), nn.Linear(108, 20), nn.Linear(20, 7)], 1),
    "moved": ([nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(32, 5)], 1),
    "normalised between": ([nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3)], 1),
    "averages": ([nn.Conv2d(3, 4, 1), nn.AvgPool2d(2)], 1),
    "thirds": ([nn.Conv2d(3, 4, 1), nn.AvgPool2d(3)], 1),
    "average of all": (
        [nn.Conv2d(3, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)],
        1,
    ),
}


@cache
def chained(name: str) -> tuple[Program, Weights]:
    return tacit.compile(normalised(nn.Sequential(*CHAINS[name][0])), IMAGES[:2], calibrate=IMAGES)


@pytest.mark.parametrize("setting", [THREE, TWO], ids=["replicated", "additive"])
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_truncated_once(name: str, setting: dict[str, Any]) -> None:
    merged, (program, weights) = CHAINS[name][1], chained(name)
    assert len(kept(program)) == merged
    found = run(program, weights.values, IMAGES[:2], setting).to(torch.float64)
    # One truncation is off by at most one unit. Averages also round their public factors.
    units = 2 if name == "thirds" else 1
    torch.testing.assert_close(
        found, exact(program, weights.values, IMAGES[:2]), rtol=0, atol=units * 2.0**-program.scale
    )
    (rounds, sent), (before, more) = cost(program, setting), cost(without(program), setting)
    # Each truncation takes a round after that of its product. Between two parties, the final check
    # of all steps may take that round if no message is left to carry it.
    assert rounds == before - merged if setting is THREE else rounds <= before
    assert sent < more


def test_rounds_are_saved_between_two_parties_too() -> None:
    module = normalised(nn.Sequential(*CHAINS["three"][0], nn.Hardtanh(), nn.Conv2d(4, 2, 1)))
    program, _ = tacit.compile(module, IMAGES[:2], calibrate=IMAGES)
    assert len(kept(program)) == 2
    assert cost(program, TWO)[0] == cost(without(program), TWO)[0] - 2


@pytest.mark.parametrize("setting", [THREE, TWO], ids=["replicated", "additive"])
def test_a_relu_behind_a_chain_starts_beside_its_truncation(setting: dict[str, Any]) -> None:
    module = normalised(
        nn.Sequential(nn.Flatten(), nn.Linear(108, 20), nn.Linear(20, 9), nn.ReLU())
    )
    program, weights = tacit.compile(module, IMAGES[:2], calibrate=IMAGES)
    assert [step.operator for step in inspect(program, []).steps][-1] == "tacit.rectified_affine"
    assert len(kept(program)) == 1
    found = run(program, weights.values, IMAGES[:2], setting).to(torch.float64)
    torch.testing.assert_close(
        found, exact(program, weights.values, IMAGES[:2]), rtol=0, atol=2.0**-program.scale
    )
    (rounds, sent), (before, more) = cost(program, setting), cost(without(program), setting)
    assert rounds == before - 1 if setting is THREE else rounds <= before
    assert sent < more


# Near misses
# ----------------------------------------------------------------------------


class Function(nn.Module):
    """A function of two layers and an input."""

    def __init__(self, function: Any, inner: int = 4) -> None:
        super().__init__()
        self._function = function
        self.first, self.second = nn.Conv2d(3, inner, 1), nn.Conv2d(inner, 4, 1)

    def forward(self, x: torch.Tensor) -> Any:
        return self._function(self, x)


@pytest.mark.parametrize(
    ("function", "inner"),
    [
        pytest.param(lambda m, x: m.second(torch.relu(m.first(x))), 4, id="activation between"),
        pytest.param(lambda m, x: torch.cat([m.second(y := m.first(x)), y]), 4, id="second user"),
        pytest.param(lambda m, x: m.second(y := m.first(x)) + y, 4, id="added to what follows"),
        pytest.param(lambda m, x: (m.second(y := m.first(x)), y), 4, id="given too"),
        pytest.param(lambda m, x: m.second(m.first(x)), 3, id="more elements behind it"),
        pytest.param(lambda m, x: m.second(m.first(x) ** 2), 4, id="no linear map between"),
        pytest.param(lambda m, x: m.first(x).amax(1), 4, id="a comparison behind it"),
        pytest.param(
            lambda m, x: m.first(x) * torch.sigmoid(m.first.weight.sum()), 4, id="a secret factor"
        ),
    ],
)
def test_others_are_truncated(function: Any, inner: int) -> None:
    program, _ = tacit.compile(normalised(Function(function, inner)), IMAGES[:2], calibrate=IMAGES)
    assert kept(program) == []
    found = inspect(program, [])
    assert found.truncations["before"] == found.truncations["after"] > 0


def chain(greatest: float, factors: tuple[float, float], bits: int = 16) -> Draft:
    """Two layers on one number.

    Args:
        greatest: The largest magnitude of the input.
        factors: The weights of the layers.
        bits: The fraction bits of numbers.
    """
    module = nn.Sequential(*(nn.Linear(1, 1, bias=False) for _ in factors))
    with torch.no_grad():
        for layer, factor in zip(module, factors, strict=True):
            layer.weight.fill_(factor)
    draft = of_module(module.eval(), (torch.zeros(2, 1),), {})
    improve(draft)
    draft.scale = Scale(bits)
    draft.intervals = dict.fromkeys(draft.examples, (-greatest, greatest))
    assign_widths(draft)
    merge_truncations(draft)
    return draft


#: If a product of three numbers with 16 fraction bits is below this, its words are below 2^62.
LIMIT = 2.0**14


@pytest.mark.parametrize(
    ("greatest", "factors", "left"),
    [
        (0.99 * LIMIT, (1.0, 1.0), 1),
        (0.99 * LIMIT, (1.0, 2.0), 2),
        (0.99 * LIMIT, (2.0, 1.0), 2),
        (0.99 * LIMIT, (2.0, 0.5), 1),
        # The rounding of the input counts too.
        (LIMIT - 2.0**-16, (1.0, 1.0), 2),
    ],
)
def test_one_bit_more_than_a_word_holds_is_too_many(
    greatest: float, factors: tuple[float, float], left: int
) -> None:
    draft = chain(greatest, factors)
    assert truncations(draft.graph) == left
    assert truncations(draft.graph, merged=False) == 2
    program = Program.of(draft)
    # The input as float32 represents it.
    within = greatest * (1 - 2.0**-20)
    x = torch.tensor([[within], [-within]])
    wanted = x * factors[0] * factors[1]
    for setting in (THREE, TWO):
        found = run(program, of_draft(draft), x, setting)
        torch.testing.assert_close(found, wanted, rtol=2.0**-23, atol=2.0**-15)


def test_too_many_fraction_bits_are_too_many() -> None:
    # With 20 fraction bits a product of three numbers has 60, which is permitted; with 21 it has
    # 63.
    assert [truncations(chain(0.5, (0.5, 0.5), bits).graph) for bits in (20, 21)] == [1, 2]


def test_what_nobody_promised_is_truncated_as_usual() -> None:
    draft = chain(1.0, (1.0, 1.0))
    program, weights = Program.of(draft), of_draft(draft)
    assert len(kept(program)) == 1
    # With the fraction bits of all three factors, its word would be 2^64.
    far = torch.full((2, 1), 2.0**16)

    def shown() -> Any:
        party = tacit.session().party
        bound = share_weights(program, weights if party == 0 else None, 0)
        return bound(tacit.share(far if party == 1 else None, owner=1)).reveal()

    for setting in (THREE, TWO):
        torch.testing.assert_close(tacit.launch(shown, **setting)[0], far, rtol=0, atol=2.0**-15)


def test_a_public_input_is_right_too() -> None:
    module = normalised(nn.Sequential(nn.Flatten(), nn.Linear(108, 20), nn.Linear(20, 7)))
    program, weights = tacit.compile(module, IMAGES[:2], calibrate=IMAGES)
    assert len(kept(program)) == 1

    def run() -> Any:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        return bound(IMAGES[:2]).reveal()

    with torch.no_grad():
        wanted = module(IMAGES[:2])
    torch.testing.assert_close(tacit.launch(run, **THREE)[0], wanted, rtol=0, atol=0.05)


def test_nothing_is_merged_without_a_proof() -> None:
    module = normalised(nn.Sequential(nn.Flatten(), nn.Linear(108, 20), nn.Linear(20, 7)))
    assert kept(tacit.compile(module, IMAGES[:2])[0]) == []
    # With uniform widths the proved intervals are not recorded.
    assert kept(tacit.compile(module, IMAGES[:2], calibrate=IMAGES, widths="uniform")[0]) == []


# Random chains
# ----------------------------------------------------------------------------


class Drawn(nn.Module):
    """Consecutive layers; some are used twice."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        drawn = random.Random(seed)
        channels, layers = 3, []
        self.skips = []
        for _ in range(6):
            following = drawn.choice([2, 3, 4, 6])
            kind = drawn.choice(
                [nn.Conv2d, nn.Conv2d, nn.Conv2d, nn.ReLU, nn.AvgPool2d, nn.BatchNorm2d]
            )
            if kind is nn.Conv2d:
                size = drawn.choice([1, 3])
                layers.append(nn.Conv2d(channels, following, size, padding=size // 2))
                channels = following
            else:
                layers.append({nn.ReLU: nn.ReLU(), nn.AvgPool2d: nn.AvgPool2d(3, 1, 1)}.get(kind))
                if layers[-1] is None:
                    layers[-1] = nn.BatchNorm2d(channels)
            self.skips.append(drawn.random() < 0.2)
        self.layers, self.last = nn.ModuleList(layers), nn.Linear(channels, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, is_skipped in zip(self.layers, self.skips, strict=True):
            y = layer(x)
            x = x + y if is_skipped and x.shape == y.shape else y
        return self.last(x.mean((2, 3)))


@cache
def drawn(seed: int) -> tuple[nn.Module, Program, Weights]:
    module = normalised(Drawn(seed), seed)
    return module, *tacit.compile(module, IMAGES[:2], calibrate=IMAGES)


#: Seeds of the drawn models.
SEEDS = range(6)


@pytest.mark.parametrize("setting", [THREE, TWO], ids=["replicated", "additive"])
@pytest.mark.parametrize("seed", SEEDS)
def test_models_are_right_and_no_dearer(seed: int, setting: dict[str, Any]) -> None:
    module, program, weights = drawn(seed)
    merged, apart = (
        run(each, weights.values, IMAGES[:2], setting) for each in (program, without(program))
    )
    with torch.no_grad():
        wanted = module(IMAGES[:2])
    # Weights are rounded alike in both. Fewer truncations give equal precision, up to chance.
    errors = [
        float((each - wanted).square().sum() / wanted.square().sum()) for each in (merged, apart)
    ]
    assert max(errors) < 2e-3, errors
    (rounds, sent), (before, more) = cost(program, setting), cost(without(program), setting)
    assert rounds <= before
    assert sent <= more


def test_random_models_have_chains() -> None:
    found = [len(kept(drawn(seed)[1])) for seed in SEEDS]
    assert sum(map(bool, found)) >= 3, found


# Reports
# ----------------------------------------------------------------------------


def test_it_is_shown_and_told() -> None:
    told: list[str] = []
    module = normalised(nn.Sequential(nn.Flatten(), nn.Linear(108, 20), nn.Linear(20, 7)))
    program, _ = tacit.compile(module, IMAGES[:2], calibrate=IMAGES, progress=told.append)
    assert "1 truncations are left of 2" in told
    found = inspect(program, [])
    assert found.as_json()["truncations"] == {"before": 2, "after": 1}
    (scale,) = kept(program)
    assert scale == 2 * program.scale
    shown = " ".join(str(found).split())
    assert f"keeps {scale} fraction bits: truncated with what follows" in shown
    assert "truncations: 1 steps, 2 before they were merged" in shown


@pytest.mark.parametrize("scale", [0, 10, 41, -1, True, 20.0, "20", [20]])
def test_scales_that_cannot_be_are_refused(scale: Any) -> None:
    program, _ = chained("linear")
    content = json.loads(program.text)
    assert program.scale >= 10
    next(node for node in content["nodes"] if node["scale"])["scale"] = scale
    with pytest.raises(MisuseError, match=r"keeps .* fraction bits"):
        Program.parsed(canonical(content), "the file")


def test_only_layers_keep_a_scale() -> None:
    content = json.loads(chained("linear")[0].text)
    content["nodes"][0]["scale"] = 24
    with pytest.raises(MisuseError, match="keeps 24 fraction bits"):
        Program.parsed(canonical(content), "the file")
