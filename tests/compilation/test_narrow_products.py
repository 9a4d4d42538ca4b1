"""Products computed from their lowest bits alone.

Products are narrow only with a proof. The tests check that results are right up to the limit.
"""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from ran import THREE, TWO, changed, exact, run
from torch import nn

import tacit
from models import normalised
from tacit import fixed
from tacit.compilation import compiler
from tacit.compilation.dry_run import metered
from tacit.compilation.execute import share_weights
from tacit.compilation.format import canonical
from tacit.compilation.graph import Draft
from tacit.compilation.importers.exported import of_module
from tacit.compilation.inspect import inspect
from tacit.compilation.passes import improve, narrow_products
from tacit.compilation.passes.assign_widths import assign_widths
from tacit.compilation.passes.merge_truncations import merge_truncations
from tacit.compilation.program import Program
from tacit.compilation.verify import verify_draft
from tacit.compilation.weights import Weights, of_draft
from tacit.errors import MisuseError, RangeError
from tacit.fixed import Scale

SETTINGS = [THREE, TWO]
IDS = ["replicated", "additive"]

IMAGES = torch.randn(4, 8, 6, 6, generator=torch.Generator().manual_seed(5))


def narrow(program: Program) -> list[bool]:
    """Returns whether each layer's products are narrow."""
    layers = ("linear", "conv2d", "tacit.affine", "tacit.rectified_affine")
    return [
        step.narrow is not None for step in inspect(program, []).steps if step.operator in layers
    ]


def without(program: Program) -> Program:
    """Returns the program with full-width products."""
    return changed(program, narrow=0)


def cost(program: Program, setting: dict[str, Any]) -> tuple[int, int]:
    """Returns the rounds, and the bytes of all parties."""
    found = tacit.launch(metered, program, **setting)
    return max(each.rounds for each in found), sum(each.bytes_sent for each in found)


# The limit
# ----------------------------------------------------------------------------

#: The number of products per result, and of rows, from which narrow products pay.
DEEP, ROWS = narrow_products.LEAST, narrow_products.LEAST_ROWS


def layer(
    greatest: float,
    *behind: nn.Module,
    deep: int = DEEP,
    rows: int = ROWS,
    outputs: int = 8,
    offset: float = 0.0,
    bits: int = 16,
) -> Draft:
    """A linear layer with bounded sums, followed by other layers.

    Args:
        greatest: The largest magnitude of the sums.
        behind: The layers that follow.
        deep: The number of products per result.
        rows: The number of rows.
        outputs: The number of outputs.
        offset: The value of the bias.
        bits: The fraction bits of numbers.
    """
    linear = nn.Linear(deep, outputs)
    with torch.no_grad():
        linear.weight.fill_(1.0)
        linear.weight[1::2] = -1.0
        linear.bias.fill_(offset)
    draft = of_module(nn.Sequential(linear, *behind).eval(), (torch.zeros(rows, deep),), {})
    improve(draft)
    draft.scale = Scale(bits)
    draft.intervals = dict.fromkeys(draft.examples, (-greatest / deep, greatest / deep))
    assign_widths(draft)
    merge_truncations(draft)
    verify_draft(draft)
    narrow_products.narrow_products(draft)
    verify_draft(draft)
    return draft


#: If a product of two numbers with 16 fraction bits is below this, its words are below 2^49.
LIMIT = 2.0**17


@pytest.mark.parametrize("setting", SETTINGS, ids=IDS)
@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize(
    ("greatest", "offset", "bits", "is_narrow"),
    [
        (LIMIT * (1 - 2.0**-10), 0.0, 16, True),
        # The bias counts, whether it is added before or after the truncation.
        (LIMIT / 2 - 1, LIMIT / 4 - 1, 16, True),
        (LIMIT / 2, -LIMIT / 2, 16, False),
        (LIMIT - 2.0**-16, 0.0, 16, False),
        (LIMIT * (1 + 2.0**-10), 0.0, 16, False),
        (LIMIT * 2.0**12 * (1 - 2.0**-10), 0.0, 10, True),
        (LIMIT * 2.0**12 * (1 + 2.0**-10), 0.0, 10, False),
    ],
)
def test_up_to_the_limit(
    greatest: float,
    offset: float,
    bits: int,
    is_narrow: bool,
    rectified: bool,
    setting: dict[str, Any],
) -> None:
    behind = [nn.ReLU()] if rectified else []
    draft = layer(greatest, *behind, offset=offset, bits=bits)
    program, weights = Program.of(draft), of_draft(draft)
    assert narrow(program) == [is_narrow]
    # The input as float32 represents it.
    x = torch.full((ROWS, DEEP), greatest / DEEP * (1 - 2.0**-20))
    x[::2] *= -1
    x[3] *= torch.linspace(-1, 1, DEEP)
    found = run(program, weights, x, setting).to(torch.float64)
    wanted = exact(program, weights, x)
    torch.testing.assert_close(found, wanted, rtol=2.0**-23, atol=2.0**-bits)


def test_more_would_be_wrong() -> None:
    """The limit is tight: without the proof, results beyond it are wrong."""
    draft = layer(LIMIT * 8)
    for node in draft.graph.nodes:
        node.meta["narrow"] = 32 if node.target is torch.ops.aten.linear.default else 0
    x = torch.full((ROWS, DEEP), 7.9 * LIMIT / DEEP)
    found = run(Program.of(draft), of_draft(draft), x, THREE)
    assert (found.abs() - 7.9 * LIMIT).abs().max() > LIMIT
    # The reference warns of it.
    with pytest.warns(tacit.RangeWarning, match="as a word, where less than 2.49 is right"):
        run(
            Program.of(draft),
            of_draft(draft),
            x,
            {"parties": 2, "protocol": "plain", "transport": "memory"},
        )


# Near misses
# ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes",
    [{"deep": DEEP - 1}, {"rows": ROWS - 1}, {"outputs": ROWS - 1}],
    ids=["few products", "few inputs", "few results"],
)
def test_where_it_does_not_pay_products_are_whole(sizes: dict[str, int]) -> None:
    assert narrow(Program.of(layer(1.0, **sizes))) == [False]


def test_what_is_not_truncated_is_whole() -> None:
    draft = layer(1.0, nn.Linear(8, 8, bias=False))
    program = Program.of(draft)
    assert [step.scale for step in inspect(program, []).steps] == [32, None]
    assert narrow(program) == [False, False]


@pytest.mark.parametrize("calibrate", [None, IMAGES], ids=["without", "with"])
def test_only_what_is_proved_is_narrow(calibrate: torch.Tensor | None) -> None:
    module = normalised(nn.Sequential(nn.Conv2d(8, 9, 3), nn.ReLU(), nn.Conv2d(9, 4, 3)))
    program, _ = tacit.compile(module, IMAGES[:1], calibrate=calibrate)
    assert narrow(program) == [calibrate is not None] * 2


def test_what_nobody_promised_is_whole() -> None:
    draft = layer(1.0)
    program, weights = Program.of(draft), of_draft(draft)
    assert narrow(program) == [True]
    far = torch.full((ROWS, DEEP), 2.0**16)

    def shown() -> Any:
        party = tacit.session().party
        bound = share_weights(program, weights if party == 0 else None, 0)
        secret = bound(tacit.share(far if party == 1 else None, owner=1)).reveal()
        return secret, bound(torch.full((ROWS, DEEP), 2.0**-6)).reveal()

    for setting in SETTINGS:
        secret, public = tacit.launch(shown, **setting)[0]
        torch.testing.assert_close(
            secret.abs(), torch.full((ROWS, 8), 2.0**22), rtol=0, atol=2.0**-15
        )
        torch.testing.assert_close(public.abs(), torch.full((ROWS, 8), 1.0), rtol=0, atol=2.0**-15)


def test_uniform_programs_have_all_products_narrow_or_none() -> None:
    small = normalised(nn.Sequential(nn.Conv2d(8, 9, 3), nn.ReLU(), nn.Conv2d(9, 4, 3)))
    program, _ = tacit.compile(small, IMAGES[:1], calibrate=IMAGES, widths="uniform")
    assert narrow(program) == [True, True]
    large = normalised(nn.Sequential(nn.Conv2d(8, 9, 3), nn.Tanh(), nn.Conv2d(9, 4, 3)))
    with torch.no_grad():
        large[2].weight.mul_(1e8)
    for widths, wanted in (("proved", [True, False]), ("uniform", [False, False])):
        program, _ = tacit.compile(large, IMAGES[:1], calibrate=IMAGES, widths=widths)
        assert narrow(program) == wanted


@pytest.mark.parametrize(("filters", "groups"), [(3, 1), (6, 2), (4, 1), (8, 2)])
def test_few_filters_are_no_tiles(filters: int, groups: int) -> None:
    module = normalised(nn.Conv2d(64, filters, 3, groups=groups))
    images = torch.rand(2, 64, 5, 5)
    program, _ = tacit.compile(module, images[:1], calibrate=images)
    assert narrow(program) == [filters // groups > 3]


class Rooted(nn.Module):
    """A layer of inverse roots, which have eight more fraction bits than other numbers."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 8)
        with torch.no_grad():
            self.layer.weight.fill_(factor)
            self.layer.bias.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(torch.rsqrt(x).clamp(0, 1))
        return y


@pytest.mark.parametrize("factor", [10.0, 100.0, 1000.0])
def test_what_has_more_fraction_bits_than_was_thought_is_whole(factor: float) -> None:
    x = torch.ones(ROWS, 64)
    program, weights = tacit.compile(Rooted(factor).eval(), x)
    wanted = torch.full((ROWS, 8), 64 * factor)
    torch.testing.assert_close(
        run(program, weights.values, x, THREE), wanted, rtol=2.0**-14, atol=0
    )
    # A program that claims narrow products here gives the right result too.
    content = json.loads(program.text)
    (node,) = (each for each in content["nodes"] if each["operator"] == "aten.linear.default")
    assert node["narrow"] == 0
    node["narrow"] = 32
    said = Program.parsed(canonical(content), "the same")
    torch.testing.assert_close(run(said, weights.values, x, THREE), wanted, rtol=2.0**-14, atol=0)


def test_a_layer_of_inverse_roots_is_truncated() -> None:
    module = normalised(nn.Sequential(Rooted(1.0), nn.Linear(8, 8)))
    x = torch.rand(ROWS, 64) + 1
    program, _ = tacit.compile(module, x, calibrate=x)
    assert [step.scale for step in inspect(program, []).steps if step.operator == "linear"] == [
        None,
        None,
    ]


class Cancelled(nn.Module):
    """A layer of secret numbers and one of public numbers that almost cancel."""

    def __init__(self, constant: float) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(64, 8, bias=False), nn.Linear(64, 8, bias=False)
        self.register_buffer("constant", torch.full((ROWS, 64), -constant))
        with torch.no_grad():
            self.a.weight.fill_(1.0)
            self.b.weight.fill_(1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.a(x) + self.b(self.constant))


def test_a_sum_that_is_narrow_has_terms_that_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    # Their owner does not make the numbers small.
    monkeypatch.setattr(compiler, "scale_inputs", lambda *_: None)
    constant = 3 * 2.0**26
    x = constant + 32 * torch.randint(
        0, 4096, (ROWS, 64), generator=torch.Generator().manual_seed(1)
    )
    program, weights = tacit.compile(Cancelled(constant).eval(), x, calibrate=x)
    wanted = (x - constant).sum(1, keepdim=True).expand(-1, 8)
    content = json.loads(program.text)
    said = False
    for node in content["nodes"]:
        if node["operator"] in ("tacit.affine.default", "tacit.rectified_affine.default"):
            node["narrow"], said = 2 * program.scale, True
    assert said
    for each in (program, Program.parsed(canonical(content), "the same")):
        found = run(each, weights.values, x, THREE)
        torch.testing.assert_close(found, wanted, rtol=0.001, atol=1024)


# Guards
# ----------------------------------------------------------------------------


FACTOR = 2.0**20


def guarded() -> tuple[Program, Weights]:
    """Two layers whose numbers are bounded by guards and not by the intervals of their inputs."""
    module = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 8), nn.ReLU())
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_() if parameter.dim() == 1 else parameter.fill_(1.0)
        module[2].weight.fill_(FACTOR)
    calibrate = torch.linspace(-1, 1, 1024).repeat(ROWS, 1)
    calibrate[:, 0] = torch.linspace(-1, 1, ROWS)
    return tacit.compile(module.eval(), calibrate, calibrate=calibrate, margin=4.0)


@pytest.mark.parametrize("setting", SETTINGS, ids=IDS)
def test_a_guard_that_fails_leaves_no_result(setting: dict[str, Any]) -> None:
    program, weights = guarded()
    steps = inspect(program, []).steps
    assert narrow(program) == [True, True]
    assert steps[0].guard is not None
    assert steps[0].guard.reach
    # Without that guard the sums of the second layer could be too large.
    bits = program.scale + program.weights["p_2_weight"].bits
    assert (
        64 * FACTOR * steps[0].guard.most * 2.0**bits
        < 2.0**fixed.NARROW
        < 64 * FACTOR * 1536 * 2.0**bits
    )

    def shown(x: torch.Tensor) -> Any:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        result = bound(bound.given(x if tacit.session().party == 1 else None, owner=1, count=1))
        try:
            return result.reveal(to=1)
        except RangeError as error:
            return error

    few = torch.zeros(ROWS, 1024)
    few[:, :3] = 0.25
    found = tacit.launch(shown, few, **setting)[1]
    torch.testing.assert_close(found, torch.full((ROWS, 8), 64 * FACTOR * 0.75), rtol=0.01, atol=0)
    failed = tacit.launch(shown, torch.ones(ROWS, 1024), **setting)[1]
    assert isinstance(failed, RangeError)


# Cost
# ----------------------------------------------------------------------------


def test_a_result_takes_thirteen_bits_more_and_no_round() -> None:
    """The cost is as declared; the results fill whole words."""
    draft = layer(1.0, rows=1536)
    program = Program.of(draft)
    assert narrow(program) == [True]
    (rounds, sent), (before, less) = cost(program, THREE), cost(without(program), THREE)
    assert rounds == before
    assert sent - less == 1536 * 8 * 13 / 8
    assert cost(program, TWO) == cost(without(program), TWO)


# Random models
# ----------------------------------------------------------------------------


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every eligible product narrow, whether it pays or not."""
    monkeypatch.setattr(narrow_products, "LEAST", 1)
    monkeypatch.setattr(narrow_products, "LEAST_ROWS", 1)


def drawn(seed: int) -> nn.Module:
    """Layers of all kinds in sequence, with and without ReLUs; some are added up."""
    generator = random.Random(seed)

    class Drawn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            channels = 8
            self.layers = nn.ModuleList()
            for _ in range(5):
                following, size = generator.choice([2, 5, 8, 8]), generator.choice([1, 3])
                groups = generator.choice([1, 1, 1, 2]) if channels % 2 == following % 2 == 0 else 1
                made = nn.Conv2d(channels, following, size, padding=size // 2, groups=groups)
                extras: list[Callable[[], nn.Module]] = [
                    nn.ReLU,
                    nn.ReLU,
                    nn.Identity,
                    lambda following=following: nn.BatchNorm2d(following),  # type: ignore[misc]
                ]
                self.layers.append(nn.Sequential(made, generator.choice(extras)()))
                channels = following
            self.last = nn.Linear(channels, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for each in self.layers:
                y = each(x)
                x = x + y if x.shape == y.shape else y
            return self.last(x.mean((2, 3)))  # type: ignore[no-any-return]

    return normalised(Drawn(), seed)


@cache
def compiled(seed: int) -> tuple[Program, Weights]:
    return tacit.compile(drawn(seed), IMAGES[:2], calibrate=IMAGES)


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("setting", SETTINGS, ids=IDS)
@pytest.mark.parametrize("seed", range(8))
def test_models_are_as_right_as_with_whole_products(seed: int, setting: dict[str, Any]) -> None:
    program, weights = compiled(seed)
    assert sum(narrow(program)) >= 3
    found, whole = (
        run(each, weights.values, IMAGES[:2], setting) for each in (program, without(program))
    )
    with torch.no_grad():
        wanted = drawn(seed)(IMAGES[:2])
    # Weights are rounded alike in both.
    errors = [
        float((each - wanted).square().sum() / wanted.square().sum()) for each in (found, whole)
    ]
    assert max(errors) < 2e-3, errors
    torch.testing.assert_close(found, whole, rtol=0.01, atol=64 * 2.0**-program.scale)


# Reports
# ----------------------------------------------------------------------------


def test_it_is_shown() -> None:
    told = " ".join(str(inspect(Program.of(layer(1.0)), [])).split())
    assert "products of 51 bits, as it is below 2^49 before it is truncated" in told
    assert "products of" not in str(inspect(Program.of(layer(2 * LIMIT)), []))


@pytest.mark.parametrize(
    "change",
    [
        {"narrow": True},
        {"narrow": None},
        {"narrow": -1},
        {"narrow": 61},
        {"narrow": 32.0},
        {"scale": 32},
        {"operator": "aten.relu.default"},
    ],
)
def test_a_file_that_says_what_cannot_be_is_refused(change: dict[str, Any]) -> None:
    content = json.loads(Program.of(layer(1.0)).text)
    node = next(each for each in content["nodes"] if each["narrow"])
    node.update(change)
    if "operator" in change:
        node["arguments"] = node["arguments"][:1]
    with pytest.raises(MisuseError, match="for the fraction bits of a narrow product"):
        Program.parsed(canonical(content), "a file")


def test_the_verifier_sees_what_cannot_be() -> None:
    draft = layer(1.0, nn.Sigmoid())
    for node in draft.graph.nodes:
        if node.target is torch.ops.aten.sigmoid.default:
            node.meta["narrow"] = 32
    with pytest.raises(MisuseError, match="narrow product"):
        verify_draft(draft)
