"""Functions outside their domains give the results that docs/accuracy.md states."""

import math
from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit

#: The bound on numbers that the page states.
MOST = 2.0**30

#: The smallest number of the default scale.
LEAST = 2.0**-16


def double(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def program() -> dict[str, Any]:
    """Runs in a party. Makes one call for each statement of the page."""

    def secret(*values: float) -> torch.Tensor:
        return tacit.share(double(list(values)), owner=0)

    negative = secret(-(2.0**29), -1.0, -LEAST, 0.0)
    beyond = secret(-(2.0**29), -1.5, -1.0, 1.0, 1.5, 2.0**29)
    divided, by_nothing = secret(7.5, -7.5, 0.0), secret(0.0, 0.0, 0.0)
    whole = tacit.share(torch.tensor([7, -7, 0]), owner=1)
    nothing = tacit.share(torch.tensor([0, 0, 0]), owner=2 if tacit.session().parties > 2 else 1)
    found = {
        "exp far below": torch.exp(secret(-30.0, -1000.0, -(2.0**29))),
        "exp above": torch.exp(secret(21.0, 1000.0, 2.0**29)),
        "log": torch.log(negative),
        "log10": torch.log10(negative),
        "log1p": torch.log1p(secret(-1.0, -2.0, -(2.0**29))),
        "sqrt": torch.sqrt(negative),
        "rsqrt": torch.rsqrt(negative),
        "reciprocal of 0": torch.reciprocal(secret(0.0)),
        "large quotients": secret(2.0**20, -(2.0**20)) / secret(LEAST, LEAST),
        "negative powers": torch.stack([secret(0.0, LEAST, -LEAST) ** n for n in (-2, -3, -7)]),
        "acos": torch.acos(beyond),
        "asin": torch.asin(beyond),
        "atanh": torch.atanh(secret(-1.0, 1.0)),
        "atanh beyond": torch.atanh(secret(-1.5, 1.5, -1000.0, 1000.0)),
        "logit": torch.logit(secret(0.0, 1.0)),
        "logit beyond": torch.logit(secret(-1.5, 1.5, -1000.0, 1000.0)),
        "fractions by 0, floored": torch.div(divided, by_nothing, rounding_mode="floor"),
        "integers by 0, floored": torch.div(whole, nothing, rounding_mode="floor"),
        "remainder of fractions by 0": torch.remainder(divided, by_nothing),
        "remainder of integers by 0": torch.remainder(whole, nothing),
        "sin far": torch.sin(secret(*FAR)),
        "cos far": torch.cos(secret(*FAR)),
    }
    return {name: value.reveal().double() for name, value in (found | out_of_range()).items()}


def out_of_range() -> dict[str, Any]:
    """Runs in a party. Uses secret indices, classes, probabilities and weights out of range."""
    table = double([5.0, 6.0, 7.0])
    values = double([1.0, 2.0, 3.0, 4.0])
    secret, index = tacit.share(table, owner=0), tacit.share(torch.tensor([3, -1, -4, 1]), owner=1)
    losses = tacit.share(double([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]]), owner=0)
    none = [tacit.share(torch.tensor([1, number]), owner=1) for number in (3, -1)]
    zeros, one = (
        tacit.share(double([0.0, 0.0, 0.0]), owner=0),
        tacit.share(double([0.0, 2.0, 0.0]), owner=1),
    )
    written = secret.clone()
    written[index] = values
    return {
        "gather": torch.gather(secret, 0, index),
        "index_select": secret.index_select(0, index),
        "embedding": functional.embedding(index, secret[:, None])[:, 0],
        "x[i]": secret[index],
        "take": torch.take(secret, index),
        "one_hot": functional.one_hot(index, 3),
        "scatter": secret.scatter(0, index, values),
        "index_put": written,
        "nll": torch.stack([functional.nll_loss(losses, each) for each in none]),
        "cross entropy": torch.stack([functional.cross_entropy(losses, each) for each in none]),
        "bernoulli": torch.bernoulli(tacit.share(double([1.5, -0.5, 2.0, -3.0]), owner=0)),
        "multinomial of none": torch.multinomial(zeros, 4, replacement=True),
        "multinomial of one": torch.multinomial(one, 4, replacement=True),
        "multinomial without replacement": torch.multinomial(one, 2),
    }


#: Angles beyond the range that the declared error holds for.
FAR = [
    sign * (base + 0.3) for base in (65.0, 1000.0, 2.0**12, 2.0**15, 2.0**17) for sign in (1, -1)
]


@pytest.mark.parametrize(
    "setting", [("plain", 2, None), ("replicated", 3, None), ("additive", 2, "dealer")], ids=str
)
@pytest.mark.filterwarnings("ignore::tacit.RangeWarning")
def test_what_is_said_of_other_numbers(setting: tuple[str, int, str | None]) -> None:
    protocol, parties, source = setting
    found = tacit.launch(program, parties=parties, protocol=protocol, source=source)[0]

    def near(name: str, values: list[float], *, off: float = 0.01, relative: float = 0.0) -> None:
        assert torch.allclose(found[name], double(values), atol=off, rtol=relative), (
            name,
            found[name],
        )

    assert found["exp far below"].tolist() == [0.0, 0.0, 0.0]
    near("exp above", [2.0**29.98] * 3, relative=0.005)
    near("log", [-11.09] * 4)
    near("log10", [-4.82] * 4)
    near("log1p", [-11.09] * 3)
    assert found["sqrt"].tolist() == [0.0] * 4
    near("rsqrt", [256.0] * 4, relative=1e-3)
    near("reciprocal of 0", [65536.0], relative=1e-3)
    near("large quotients", [MOST, -MOST], relative=0.01)
    signs = double([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, 1.0, -1.0]])
    assert torch.allclose(found["negative powers"], signs * 2.0**29.99, atol=0.0, rtol=2e-3)
    near("acos", [math.pi, math.pi, math.pi, 0.0, 0.0, 0.0])
    near("asin", [-math.pi / 2] * 3 + [math.pi / 2] * 3)
    near("atanh", [-5.89, 5.89])
    near("logit", [-11.09, 11.09])
    for name in ("atanh beyond", "logit beyond"):
        assert float(found[name].abs().max()) < MOST, name
    near("fractions by 0, floored", [491520.0, -491520.0, 0.0], off=1.0)
    assert found["integers by 0, floored"].tolist() == [7.0, -7.0, 0.0]
    near("remainder of fractions by 0", [7.5, -7.5, 0.0])
    assert found["remainder of integers by 0"].tolist() == [7.0, -7.0, 0.0]
    angles = (double(FAR) * 2.0**16).round() * 2.0**-16
    for name, exact in (("sin far", torch.sin(angles)), ("cos far", torch.cos(angles))):
        assert bool(((found[name] - exact).abs() <= angles.abs() * 2.0**-22 + 2.0**-13).all()), name

    for name in ("gather", "index_select", "embedding"):
        near(name, [0.0, 0.0, 0.0, 6.0])
    for name in ("x[i]", "take"):
        near(name, [0.0, 7.0, 0.0, 6.0])
    assert found["one_hot"].tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0]]
    near("scatter", [5.0, 4.0, 7.0])
    near("index_put", [5.0, 4.0, 2.0])
    near("nll", [2.0, 2.0])
    near("cross entropy", [1.4076, 1.4076])
    assert found["bernoulli"].tolist() == [1, 0, 1, 0]
    assert found["multinomial of none"].tolist() == [2, 2, 2, 2]
    assert found["multinomial of one"].tolist() == [1, 1, 1, 1]
    assert found["multinomial without replacement"].tolist() == [1, 2]


UNITS = 2.0**-16 * torch.tensor([1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 100.0, 1000.0, 65536.0])
LARGE = torch.tensor([1.5, 40.0, 1000.0, 8191.0])

#: Functions whose gradients are computed from squares or cubes, with arguments up to the limits
#: that the page states.
CASES: list[tuple[Any, torch.Tensor]] = [
    (torch.rsqrt, UNITS),
    (torch.reciprocal, UNITS[1:]),
    (torch.arctan, LARGE),
    (torch.asinh, LARGE),
    (torch.acosh, LARGE),
    (torch.erf, LARGE),
    (torch.erfc, LARGE),
    (torch.sinc, torch.tensor([2.0**-12, 2.0**-10, 2.0**-8, 2.0**-5, 0.5, 3.0])),
    # The error is largest around 2^-9.5, and its size depends on the rounding.
    (torch.sinc, torch.arange(64, 4096).repeat(2) / 2**16),
]


@pytest.mark.parametrize(
    "setting",
    [{}, {"protocol": "additive", "parties": 2, "source": "dealer"}],
    ids=["replicated", "additive"],
)
def test_gradients_of_roots_and_quotients_are_right_as_far_as_is_documented(
    setting: dict[str, Any],
) -> None:
    """These gradients contain squares and cubes of numbers that become large.

    The numbers are inverses of small arguments, or large arguments.
    """

    def program() -> list[torch.Tensor]:
        found = []
        for function, numbers in CASES:
            x = tacit.share(numbers, owner=0).requires_grad_()
            function(x).sum().backward()
            found.append(x.grad.reveal())
        return found

    for (function, numbers), mine in zip(CASES, tacit.launch(program, **setting)[0], strict=True):
        x = numbers.double().requires_grad_()
        function(x).sum().backward()
        error = 2.0**-15 / numbers**2 if function is torch.sinc else 2.0**-11
        assert bool(((mine - x.grad).abs() <= 1e-3 * x.grad.abs() + error).all()), function


def test_softmax_of_what_is_masked_wholly_has_equal_parts() -> None:
    def program() -> torch.Tensor:
        x = tacit.share(torch.tensor([[1.0, 5.0], [2.0, 3.0]]), owner=0)
        return x.masked_fill(torch.tensor([[True], [False]]), -math.inf).softmax(-1).reveal()

    found = tacit.launch(program)[0]
    plain = torch.stack([torch.full((2,), 0.5), torch.tensor([2.0, 3.0]).softmax(0)])
    assert torch.allclose(found, plain, atol=1e-3)
