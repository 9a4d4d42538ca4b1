"""Functions of a program use the cheapest series within the error budget.

Results are as close to the plain ones as the series declares. Arguments without a proved interval
use the usual series.
"""

import json
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

import tacit
from tacit.compilation.approximating import error_of, functions_of
from tacit.compilation.format import canonical
from tacit.compilation.inspect import inspect
from tacit.compilation.program import Program
from tacit.compilation.try_model import tried
from tacit.errors import MisuseError

#: Activations with a bound on their slope.
ACTIVATIONS: list[tuple[Any, float]] = [
    (torch.tanh, 1.0),
    (torch.sigmoid, 0.25),
    (torch.erf, 1.13),
    (functional.gelu, 1.13),
    (lambda x: functional.gelu(x, approximate="tanh"), 1.13),
    (functional.silu, 1.1),
    (functional.softplus, 1.0),
]

FEATURES = 6

#: Seed and budget of a model whose results are so small that its relative error exceeds the limit.
TOO_MUCH = (9, 2.0**-6)


class Drawn(nn.Module):
    """Linear layers with activations between them; some of the layers have large weights."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        drawn, generator = random.Random(seed), torch.Generator().manual_seed(seed)
        self.layers = nn.ModuleList(nn.Linear(FEATURES, FEATURES) for _ in range(3))
        self.chosen = [drawn.choice(ACTIVATIONS) for _ in range(3)]
        for layer in self.layers:
            size = drawn.choice([0.1, 0.3, 1.0])
            for parameter in layer.parameters():
                parameter.data = torch.randn(parameter.shape, generator=generator) * size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, (activation, _) in zip(self.layers, self.chosen, strict=True):
            x = activation(layer(x))
        return x

    def bound(self, x: torch.Tensor, errors: list[float], unit: float) -> float:
        """Bounds the error of results, given the activations' errors and the unit to which numbers
        are rounded."""
        off = 0.0
        for layer, (activation, slope), error in zip(self.layers, self.chosen, errors, strict=True):
            # Each number and its weight are rounded, and so is the result.
            rounding = unit * (
                2 + float(layer.weight.abs().sum(1).max()) + float(x.abs().sum(1).max())
            )
            off = off * float(layer.weight.abs().sum(1).max()) + rounding
            off = off * (slope + FEATURES * unit) + error + 3 * unit
            x = activation(layer(x))
        return off


def functions(program: Program) -> list[Any]:
    """Returns the nodes that are approximated."""
    return [node for node in program.graph.nodes if functions_of(node)]


def errors(program: Program) -> list[float]:
    """Returns the declared error of each approximated node."""
    return [error_of(node, node.meta["fits"]) for node in functions(program)]


def keys(program: Program) -> list[str]:
    """Returns the series that were chosen."""
    return [key for node in functions(program) for key in node.meta["fits"].values()]


@pytest.mark.parametrize("seed", range(4, 10))
@pytest.mark.parametrize("budget", [None, 2.0**-8, 2.0**-6])
def test_a_program_is_as_near_as_declared_and_no_dearer(seed: int, budget: float | None) -> None:
    module = Drawn(seed).eval()
    x = torch.rand(8, FEATURES, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    # The calibration data promise intervals: their range plus a quarter of their span on each side.
    if (seed, budget) == TOO_MUCH:
        with pytest.raises(
            MisuseError, match=r"squared error above .* or give a smaller error budget"
        ):
            tacit.compile(module, x, calibrate=x, error_budget=budget)
        return
    program, weights = tacit.compile(module, x, calibrate=x, error_budget=budget)
    usual = [error_of(node, {}) for node in functions(program)]
    for declared, least in zip(errors(program), usual, strict=True):
        assert declared <= max(least, budget or 0.0)
    parties, protocol, source = (3, "replicated", None) if seed % 3 else (2, "additive", "dealer")
    found = tried(
        program, weights, [x], parties=parties, protocol=protocol, source=source, transport="memory"
    )
    assert found.compiled.rounds <= found.eager.rounds
    assert max(found.compiled.bytes_sent_per_party) <= max(found.eager.bytes_sent_per_party)

    def run(program: Program, weights: Any) -> torch.Tensor:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        own = x if tacit.session().party == 1 else None
        return bound(bound.given(own, owner=1)).reveal()

    result = tacit.launch(run, program, weights, parties=2, protocol="plain")[0]
    with torch.no_grad():
        bound = module.bound(x, errors(program), 2.0**-program.scale)
        assert float((result - module(x)).abs().max()) <= bound


def small() -> nn.Module:
    """A model whose first activation takes numbers up to 1.25, and whose second takes numbers
    without a proved interval."""

    class Small(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.gelu(x) + torch.sigmoid(torch.reciprocal(x + 3.0))

    return Small().eval()


INPUT = torch.linspace(-1, 1, 64).reshape(8, 8)


def compiled(**settings: Any) -> tuple[Program, Any]:
    return tacit.compile(small(), INPUT, **{"calibrate": INPUT, **settings})


def test_what_is_proved_is_chosen_by_and_nothing_else() -> None:
    program, _ = compiled(error_budget=2.0**-8)
    # x + 3 is proved to be positive. Nothing is proved about its reciprocal.
    assert keys(program) == ["degree 4 within 2", "degree 4 from 0", "degree 4"]
    assert keys(tacit.compile(small(), INPUT, error_budget=2.0**-8)[0]) == [
        "degree 4",
        "degree 4",
    ]


def test_without_a_budget_nothing_is_less_exact() -> None:
    program, _ = compiled()
    assert all(
        error_of(node, node.meta["fits"]) <= error_of(node, {})
        for node in program.graph.nodes
        if functions_of(node)
    )
    assert keys(program) == ["degree 4 within 2", "degree 6 from 0", "degree 8"]


def test_uniform_programs_tell_nothing_of_where_numbers_are() -> None:
    assert not any("within" in key or "from" in key for key in keys(compiled(widths="uniform")[0]))


def test_numbers_that_nobody_promised_anything_about_have_the_usual_series() -> None:
    program, weights = compiled(error_budget=2.0**-6)
    far = INPUT * 7

    def run() -> torch.Tensor:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        # ``given`` would refuse these inputs, which lie outside the promised interval.
        return bound(tacit.share(far, owner=1, scale=program.scale)).reveal()

    found = tacit.launch(run, parties=2, protocol="plain")[0]
    near = (far + 3).abs() > 0.1
    torch.testing.assert_close(found[near], small()(far)[near], rtol=0, atol=2.0**-5)


#: Functions of numbers that are proved to be below 64, but not to be on one side of zero or within
#: a cutoff.
WIDE: dict[str, Any] = {
    "sigmoid": lambda x: torch.sigmoid(20 * x),
    "tanh": lambda x: torch.tanh(20 * x),
    "erf": lambda x: torch.erf(20 * x),
    "gelu": lambda x: functional.gelu(20 * x),
    "silu": lambda x: functional.silu(20 * x),
    "softplus": lambda x: functional.softplus(20 * x),
    "exp": lambda x: torch.exp(11 * x),
    "reciprocal": lambda x: torch.reciprocal(20 * x + 25.5),
    "rsqrt": lambda x: torch.rsqrt(20 * x + 25.5),
    "sqrt": lambda x: torch.sqrt(20 * x + 25.5),
    "log": lambda x: torch.log(20 * x + 25.5),
}


@pytest.mark.parametrize("function", WIDE)
def test_cutoffs_are_compared_with_as_many_bits_as_are_proved(function: str) -> None:
    class Wide(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return WIDE[function](x)

    x = torch.linspace(-1.0, 1.0, 1024)
    program, weights = tacit.compile(Wide().eval(), x, calibrate=x)
    node = functions(program)[0]
    assert node.meta["width"] in (22, 23), node.meta
    uniform = tacit.compile(Wide().eval(), x, calibrate=x, widths="uniform")[0]
    assert functions(uniform)[0].meta["width"] is None
    for setting in (
        {"parties": 3, "protocol": "replicated"},
        {"parties": 2, "protocol": "additive"},
    ):
        found = tried(program, weights, [x], transport="memory", **setting)
        assert found.compiled.rounds <= found.eager.rounds
        assert max(found.compiled.bytes_sent_per_party) < max(found.eager.bytes_sent_per_party)

    def run() -> torch.Tensor:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        return bound(bound.given(x, owner=0)).reveal()

    plain = WIDE[function](x)
    for setting in ({"parties": 2, "protocol": "plain"}, {"parties": 3}):
        off = (tacit.launch(run, **setting)[0] - plain).abs() / plain.abs().clamp_min(1)
        # exp magnifies the rounding of an argument most.
        assert float(off.max()) <= errors(program)[0] + 16 * 2.0**-program.scale


def test_another_function_of_the_same_operator_has_its_own_series() -> None:
    class Steep(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.softplus(x, 2.0) + functional.softplus(x)

    program, _ = tacit.compile(Steep().eval(), INPUT, calibrate=INPUT, error_budget=2.0**-6)
    # The proved position of x does not carry over to 2x.
    assert [
        bool(node.meta["fits"]) for node in program.graph.nodes if "softplus" in str(node.target)
    ] == [
        False,
        True,
    ]


def test_a_softmax_is_off_by_what_its_parts_are() -> None:
    class Classes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x * 4, 1)

    program, weights = tacit.compile(Classes().eval(), INPUT, error_budget=2.0**-7)
    assert keys(program) == ["degree 6", "degree 4"]
    found = tried(program, weights, [INPUT], parties=3, protocol="replicated", transport="memory")
    assert found.compiled.rounds < found.eager.rounds
    assert max(found.compiled.bytes_sent_per_party) < max(found.eager.bytes_sent_per_party)

    def run() -> torch.Tensor:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        return bound(bound.given(INPUT, owner=0)).reveal()

    result = tacit.launch(run, parties=2, protocol="plain")[0]
    assert float((result - torch.softmax(INPUT * 4, 1)).abs().max()) <= errors(program)[0]


def test_inspect_shows_series_and_errors() -> None:
    program, _ = compiled(error_budget=2.0**-8)
    found = inspect(program, [])
    first = next(step for step in found.steps if step.operator == "gelu")
    assert first.fits == {"gelu": "degree 4 within 2"}
    assert first.error == 2.0**-12
    shown = " ".join(str(found).split())
    assert "off by 2^-12.0 at most: gelu by a series of degree 4 within 2" in shown


@pytest.mark.parametrize("budget", [-1.0, 0.02, float("nan"), float("inf")])
def test_budgets_that_are_none_are_refused(budget: float) -> None:
    with pytest.raises(MisuseError, match="an error budget is 0 to"):
        compiled(error_budget=budget)


@pytest.mark.parametrize(
    "fits",
    [
        None, [], "gelu", {"gelu": "usual"}, {"gelu": "degree 5"}, {"gelu": 4}, {"gelu": None}, {"gelu": []},
        {"gelu": {}}, {"gelu_tanh": "degree 4"}, {"exp": "degree 2"}, {"of": "degree 2"}, {"": ""},
    ],
)  # fmt: skip
def test_a_program_with_series_that_there_are_none_of_is_refused(fits: Any) -> None:
    content = json.loads(compiled()[0].text)
    next(node for node in content["nodes"] if "gelu" in node["operator"])["fits"] = fits
    with pytest.raises(MisuseError, match=r"series"):
        Program.parsed(canonical(content), "the file")


def test_what_compares_nothing_has_no_width() -> None:
    content = json.loads(PROGRAM)
    next(node for node in content["nodes"] if "gelu" in node["operator"])["width"] = 24
    with pytest.raises(MisuseError, match="compares 24 bits"):
        Program.parsed(canonical(content), "the file")


def test_what_is_no_function_has_no_series() -> None:
    content = json.loads(compiled()[0].text)
    next(node for node in content["nodes"] if "add" in node["operator"])["fits"] = {
        "gelu": "degree 4"
    }
    with pytest.raises(MisuseError, match="has no functions"):
        Program.parsed(canonical(content), "the file")


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.integers(),
            st.text(max_size=8),
            st.sampled_from(["gelu", "degree 4", "usual"]),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["gelu", "sigmoid", "x"]), inner, max_size=3),
        ),
        max_leaves=6,
    )
)
def test_anything_for_series_is_refused_or_one(fits: Any) -> None:
    content = json.loads(PROGRAM)
    next(node for node in content["nodes"] if "gelu" in node["operator"])["fits"] = fits
    try:
        program = Program.parsed(canonical(content), "the file")
    except MisuseError:
        return
    assert fits in ({}, {"gelu": "degree 4"})
    assert keys(program)[: len(fits)] == list(fits.values())


PROGRAM = compiled()[0].text
