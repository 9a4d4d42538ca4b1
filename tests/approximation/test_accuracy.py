"""Approximations are as exact as declared, and stay in range outside their domains."""

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import declared
import pytest
import survey
import torch

import tacit
from tacit.fixed import Scale
from tacit.operators.numerics import approximation
from tacit.operators.numerics.approximation import division
from tacit.operators.numerics.approximation.fits import FITS, USUAL

FUNCTIONS = declared.FUNCTIONS

NAMES = [function.name for function in FUNCTIONS]


@pytest.fixture(scope="module")
def on_the_reference() -> dict[str, torch.Tensor]:
    """Returns the result of each function on its whole grid. No number may leave its range."""
    grids = [function.grid for function in FUNCTIONS]
    return dict(
        zip(NAMES, tacit.launch(survey.results, grids, parties=2, protocol="plain")[0], strict=True)
    )


@pytest.mark.filterwarnings("error::tacit.RangeWarning")
@pytest.mark.parametrize("function", FUNCTIONS, ids=NAMES)
def test_error_on_a_dense_grid(
    function: declared.Function, on_the_reference: dict[str, torch.Tensor]
) -> None:
    assert function.off(on_the_reference[function.name]) <= function.error


@pytest.mark.parametrize(
    "setting", [("replicated", 3, None), ("additive", 3, "dealer"), ("additive", 2, "ot")], ids=str
)
def test_error_on_shares(setting: tuple[str, int, str | None]) -> None:
    protocol, parties, source = setting
    # Every hundredth point. The offset differs for each function.
    grids = [function.grid[at % 100 :: 100] for at, function in enumerate(FUNCTIONS)]
    found = tacit.launch(survey.results, grids, parties=parties, protocol=protocol, source=source)[
        0
    ]
    for function, grid, values in zip(FUNCTIONS, grids, found, strict=True):
        plain = function.exact(declared.encoded(grid))
        errors = (values.double() - plain).abs()
        if function.relative:
            errors = torch.where(errors < declared.ALLOWED, torch.zeros(()), errors / plain.abs())
        assert float(errors.max()) <= function.error, function.name


@pytest.mark.parametrize("key", list(FITS["exp_below_zero"]))
@pytest.mark.parametrize(
    "setting",
    [("replicated", 3, None), ("additive", 3, "dealer"), ("additive", 2, "dealer")],
    ids=str,
)
def test_exponentials_far_below_zero_are_exactly_zero(
    setting: tuple[str, int, str | None], key: str
) -> None:
    """Results are exactly 0 at every scale, in thousands of repetitions.

    The randomness of shares and truncations must not show in the lowest bits.
    """
    protocol, parties, source = setting
    x = torch.tensor([-16.0, -16.5, -100.0, -(2.0**29)]).repeat(2000)

    def program() -> list[torch.Tensor]:
        secret, found = tacit.share(x, owner=0), []
        with tacit.session().using(fits={} if key == USUAL else {"exp_below_zero": key}):
            for bits in (10, 16, 24, 28):
                with tacit.fraction_bits(bits):
                    found.append(approximation.exp_below_zero(secret).reveal())
        return found

    for values in tacit.launch(program, parties=parties, protocol=protocol, source=source)[0]:
        assert values.count_nonzero() == 0


def outside(x: torch.Tensor) -> dict[str, Any]:
    """Runs in a party. Evaluates functions outside their domains."""
    secret = tacit.share(x, owner=0)
    zero = tacit.share(torch.zeros(3), owner=1)
    return {
        "exp": approximation.exp(secret).reveal(),
        "log": approximation.log(secret).reveal(),
        "sqrt": approximation.sqrt(secret).reveal(),
        "rsqrt": approximation.rsqrt(secret).reveal(),
        "quotient": approximation.divide(secret, zero).reveal(),
        "large": approximation.divide(secret * 1e6, zero + 1e-3).reveal(),
    }


@pytest.mark.parametrize("setting", [("plain", 2), ("replicated", 3)])
def test_outside_of_their_domains_is_what_is_documented(setting: tuple[str, int]) -> None:
    protocol, parties = setting
    x = torch.tensor([-1000.0, 0.0, 1000.0])
    found = tacit.launch(outside, x, parties=parties, protocol=protocol)[0]
    assert found["exp"][0] == 0.0
    assert declared.LARGEST < found["exp"][2] < 2.0**30
    assert torch.allclose(found["log"][:2], torch.tensor(-11.0904), atol=1e-3)
    assert torch.equal(found["sqrt"][:2], torch.zeros(2))
    assert torch.allclose(found["rsqrt"][:2], torch.tensor(256.0), rtol=1e-3)
    assert torch.allclose(
        found["quotient"], torch.tensor([-1000.0, 0.0, 1000.0]) * 2.0**16, rtol=1e-3
    )
    assert torch.allclose(found["large"], torch.tensor([-(2.0**30), 0.0, 2.0**30]), rtol=1e-2)


@pytest.mark.parametrize("setting", [("plain", 2), ("replicated", 3)])
def test_digamma_of_negative_numbers(setting: tuple[str, int]) -> None:
    protocol, parties = setting
    x = declared.between_poles(-40.0, -(2.0**-8))
    x = torch.cat([x, torch.tensor([-1e4 - 0.25, -1e9 - 0.5], dtype=torch.float64)])

    def program() -> torch.Tensor:
        return approximation.digamma(tacit.share(x, owner=0)).reveal()

    found, plain = tacit.launch(program, parties=parties, protocol=protocol)[0], torch.digamma(x)
    assert float(((found - plain).abs() / plain.abs().clamp(min=1.0)).max()) <= 2.0**-12


@pytest.mark.parametrize("setting", [("plain", 2), ("replicated", 3)])
def test_poles_and_ends_are_what_docstrings_say(setting: tuple[str, int]) -> None:
    protocol, parties = setting

    def program() -> list[torch.Tensor]:
        ends = tacit.share(torch.tensor([-(2.0**29), -1.0, 0.0, 1.0, 2.0**29]), owner=0)
        poles = tacit.share(torch.tensor([0.0, -1.0, -3.0, 1e9, -1e9]), owner=1)
        functions = (approximation.erfinv, approximation.ndtri)
        of_poles = (approximation.lgamma, approximation.digamma)
        found = [function(ends).reveal() for function in functions]
        return [*found, *(function(poles).reveal() for function in of_poles)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.RangeWarning)
        erfinv, ndtri, lgamma, digamma = tacit.launch(program, parties=parties, protocol=protocol)[
            0
        ]
    assert torch.allclose(erfinv[[0, 1, 3, 4]].abs(), torch.tensor(3.964), atol=1e-3)
    assert torch.allclose(ndtri[[0, 1, 2]], torch.tensor(-5.606), atol=1e-3)
    assert torch.allclose(ndtri[[3, 4]], torch.tensor(5.606), atol=1e-3)
    whole = torch.tensor([11.09, 19.41 + math.log(math.pi), 19.41 + math.log(math.pi / 6)])
    assert torch.allclose(lgamma[:3], whole, atol=1e-2)
    assert torch.allclose(lgamma[3:].abs(), torch.tensor(2.0**30), rtol=0.03)
    assert torch.allclose(digamma[:3].abs(), torch.tensor(2.0**16), rtol=1e-3)


@pytest.mark.parametrize(
    ("function", "x"),
    [("lgamma", 1e9), ("erfinv", 1.0), ("ndtri", 0.0), ("ndtri", 1.5)],
)
def test_the_reference_tells_of_arguments_beyond_the_domain(function: str, x: float) -> None:
    def program() -> None:
        getattr(approximation, function)(tacit.share(torch.tensor([x]), owner=0))

    with pytest.warns(tacit.RangeWarning, match=function):
        tacit.launch(program, parties=2, protocol="plain")


#: Scales at which the results of exp, which are below 2^13, can be encoded.
SCALES = (12, 20, 24, 28)


def at_scales(x: torch.Tensor) -> list[list[torch.Tensor]]:
    """Runs in a party. Evaluates functions at each of the scales."""
    found = []
    for bits in SCALES:
        with tacit.fraction_bits(bits):
            secret = tacit.share(x, owner=0)
            found.append(
                [
                    function(secret).reveal()
                    for function in (
                        approximation.exp,
                        approximation.log,
                        approximation.sqrt,
                        approximation.reciprocal,
                        approximation.sigmoid,
                        approximation.gelu,
                        approximation.sin,
                        approximation.arctan,
                        approximation.lgamma,
                        approximation.digamma,
                    )
                ]
            )
    return found


@pytest.mark.filterwarnings("error::tacit.RangeWarning")
def test_other_scales() -> None:
    # These numbers and their results can be encoded at all scales.
    x = (torch.linspace(0.05, 9, 301) * 2.0**12).round() * 2.0**-12
    plain = [
        torch.exp(x),
        torch.log(x),
        torch.sqrt(x),
        torch.reciprocal(x),
        torch.sigmoid(x),
        torch.nn.functional.gelu(x),
        torch.sin(x),
        torch.arctan(x),
        torch.lgamma(x),
        torch.digamma(x),
    ]
    for bits, found in zip(
        SCALES, tacit.launch(at_scales, x, parties=2, protocol="plain")[0], strict=True
    ):
        for at, (mine, exact) in enumerate(zip(found, plain, strict=True)):
            tolerance = 2.0 ** -min(10, bits - 4)
            assert torch.allclose(mine, exact, rtol=2.0**-11, atol=tolerance), (bits, at)


def test_a_result_may_have_another_scale() -> None:
    def program() -> float:
        x = tacit.share(torch.tensor([3000.0]), owner=0)
        return float(approximation.reciprocal(x, positive=True, scale=Scale(30)).reveal())

    found = tacit.launch(program, parties=2, protocol="plain")[0]
    assert found == pytest.approx(1 / 3000, rel=2.0**-12)


PAGE = (Path(__file__).resolve().parents[2] / "docs/accuracy.md").read_text()


def test_the_page_is_what_the_survey_writes_but_for_what_it_measures() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")]
    heads = ["function", "---"], ["⌊x / y⌋", "---"]
    assert rows == [*heads[0], *NAMES, *heads[1], *declared.QUOTIENTS]
    parts = survey.HEAD, survey.METHODS, survey.methods(), survey.QUOTIENTS, survey.FOOT
    said, written = (
        [line for line in text.splitlines() if not line.startswith("| ")]
        for text in (PAGE, "".join(parts))
    )
    assert said == written


#: Arguments that state a fact about the input, for functions whose docstrings give a cost with it.
KNOWN: dict[str, dict[str, Any]] = {
    "reciprocal": {"positive": True},
    "rsqrt": {"positive": True},
    "sqrt": {"positive": True},
    "log": {"positive": True},
    "divide": {"bounded": True},
    "lgamma": {"positive": True},
    "digamma": {"positive": True},
}


def known(name: str) -> Callable[[Any], Any]:
    """Returns a function of x that passes the argument from KNOWN."""
    function = getattr(approximation, name)
    return lambda x: function(*[x] * (2 if name == "divide" else 1), **KNOWN[name])


def in_words(cost: survey.Cost) -> str:
    """Formats a cost as docstrings do."""
    return f"{cost.rounds} rounds, {cost.bits:.0f} bits"


def test_rounds_and_bits_on_the_page_and_in_docstrings_are_what_the_meter_counts() -> None:
    of_functions, of_quotients = survey.of_functions(), survey.of_quotients()
    counted = dict(zip([*NAMES, *declared.QUOTIENTS], [*of_functions, *of_quotients], strict=True))
    # The counts of bits are whole numbers, so the page shows them exactly.
    assert all(cost.bits == int(cost.bits) for cost in counted.values())
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in PAGE.splitlines()
        if line[:1] == "|"
    ]
    stated = {name: (rounds, bits) for name, *_, rounds, bits in cells}
    for name, cost in counted.items():
        assert stated[name] == (str(cost.rounds), f"{cost.bits:.0f}"), name
    of_known = survey.costs(tacit.launch(survey.counted, *map(known, KNOWN)))
    for name in approximation.__all__:
        said = in_words(counted[name])
        if name in KNOWN:
            (argument,) = KNOWN[name]
            said += f"; {in_words(of_known[list(KNOWN).index(name)])} with ``{argument}``"
        if name == "log":
            said += f"; {in_words(counted['log2'])} for other bases"
        assert survey.sections(getattr(approximation, name))["Cost"] == said + "."
    text = " ".join((division.by_secret.__doc__ or "").split())
    for name, cost in zip(declared.QUOTIENTS, of_quotients, strict=True):
        if name.endswith(" by a secret"):
            assert f"{in_words(cost)} of {name.removesuffix(' by a secret')}" in text


@pytest.mark.parametrize("name", approximation.__all__)
def test_docstrings_say_method_paper_domain_and_the_error_that_is_tested(name: str) -> None:
    said = survey.sections(getattr(approximation, name))
    assert list(said) == ["Method", "Domain", "Error", "Cost"]
    assert re.search(r"\([^()]*[A-Z]\w+[^()]* (19|20)\d\d[^()]*\)", said["Method"])
    function = FUNCTIONS[NAMES.index(name)]
    kind = f"relative, or {survey.power(declared.ALLOWED)} absolute where that is more"
    assert said["Error"].startswith(
        f"{survey.power(function.error)} {kind if function.relative else 'absolute'}"
    )
