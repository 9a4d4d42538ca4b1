"""Operators handle mixed dtypes, public operands, writes in place and edge cases of precision.

PyTorch's operator database does not test these.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tacit

#: Options of tacit.launch for the programs in this file, by name.
SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}

#: Tests that every run tries with additive sharing. The others are marked as long.
QUICK = ("test_boolean_logic", "test_the_first_of_equals_wins", "test_writing_in_place")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each test that uses on_shares under every setting."""
    if "on_shares" in metafunc.fixturenames:
        quick = metafunc.function.__name__.startswith(QUICK)
        marks = () if quick else (pytest.mark.long,)
        variants = [pytest.param("replicated"), pytest.param("additive", marks=marks)]
        metafunc.parametrize("on_shares", variants, indirect=True)


OnShares = Callable[..., Any]


@pytest.fixture
def on_shares(request: pytest.FixtureRequest) -> OnShares:
    """Returns a function that runs a program in all parties and gives the result of party 0."""
    return lambda fn, *args: tacit.launch(fn, *args, **SETTINGS[request.param])[0]


def shown(value: Any) -> Any:
    """Returns a value, revealed if it is secret."""
    return value.reveal() if isinstance(value, tacit.SecretTensor) else value


FLOATS = torch.tensor([-3.5, -1.0, -0.25, 0.0, 0.5, 2.0, 7.75])
INTEGERS = torch.tensor([-7, -1, 0, 1, 2, 3, 1_000_000])
BOOLEANS = torch.tensor([True, False, True, True, False, False, True])
OPERANDS = {
    "floats": FLOATS,
    "integers": INTEGERS,
    "booleans": BOOLEANS,
    "number": 1.5,
    "whole number": -3,
}
BINARY = {
    "+": lambda x, y: x + y,
    "*": lambda x, y: x * y,
    "<": lambda x, y: x < y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "where": lambda x, y: torch.where(BOOLEANS, x, y),
}


@pytest.mark.parametrize("operator", BINARY)
def test_every_kind_meets_every_other(on_shares: OnShares, operator: str) -> None:
    apply = BINARY[operator]

    def program() -> list[Any]:
        found = []
        for left, right in itertools.product(OPERANDS.values(), repeat=2):
            if not isinstance(left, torch.Tensor):
                continue
            secret = tacit.share(left, owner=0)
            found.append(shown(apply(secret, right)))
            if isinstance(right, torch.Tensor):
                found.append(shown(apply(left, tacit.share(right, owner=1))))
                found.append(shown(apply(secret, tacit.share(right, owner=1))))
        return found

    found = iter(on_shares(program))
    for left, right in itertools.product(OPERANDS.values(), repeat=2):
        if not isinstance(left, torch.Tensor):
            continue
        for _ in range(3 if isinstance(right, torch.Tensor) else 1):
            mine, plain = next(found), apply(left, right)
            assert mine.dtype == plain.dtype
            large = plain.abs().max() if plain.dtype.is_floating_point else 0
            assert torch.allclose(mine.double(), plain.double(), atol=2e-4 + 1e-6 * float(large)), (
                left,
                right,
            )


def test_subtraction_negation_and_powers(on_shares: OnShares) -> None:
    def program() -> list[Any]:
        x, n = tacit.share(FLOATS, owner=0), tacit.share(INTEGERS, owner=1)
        return [
            shown(v)
            for v in (
                x - n,
                1 - x,
                -n,
                x - 0.5,
                x**3,
                n**2,
                x.square(),
                x / 7,
                n / 4,
                x / FLOATS.exp(),
            )
        ]

    plain = [
        FLOATS - INTEGERS,
        1 - FLOATS,
        -INTEGERS,
        FLOATS - 0.5,
        FLOATS**3,
        INTEGERS**2,
        FLOATS.square(),
        FLOATS / 7,
        INTEGERS / 4,
        FLOATS / FLOATS.exp(),
    ]
    for mine, theirs in zip(on_shares(program), plain, strict=True):
        assert mine.dtype == theirs.dtype
        assert torch.allclose(mine.double(), theirs.double(), rtol=1e-4, atol=1e-3)


def test_boolean_logic(on_shares: OnShares) -> None:
    other = BOOLEANS.flip(0)

    def program() -> list[Any]:
        a, b = tacit.share(BOOLEANS, owner=0), tacit.share(other, owner=1)
        return [
            shown(v)
            for v in (
                a & b,
                a | b,
                a ^ b,
                ~a,
                a & other,
                other | a,
                a.sum(),
                a.any(),
                a.all(),
                a.float(),
            )
        ]

    plain = [
        BOOLEANS & other,
        BOOLEANS | other,
        BOOLEANS ^ other,
        ~BOOLEANS,
        BOOLEANS & other,
        BOOLEANS | other,
        BOOLEANS.sum(),
        BOOLEANS.any(),
        BOOLEANS.all(),
        BOOLEANS.float(),
    ]
    for mine, theirs in zip(on_shares(program), plain, strict=True):
        assert mine.dtype == theirs.dtype
        assert torch.equal(mine, theirs)


def test_comparisons_are_exact_at_the_edges(on_shares: OnShares) -> None:
    unit, large = 2.0**-16, 2.0**29
    x = torch.tensor([0.0, unit, -unit, large, -large, large, -large, 1.0], dtype=torch.float64)
    y = torch.tensor(
        [0.0, 0.0, 0.0, -large, large, large - unit, -large, 1.0 + unit], dtype=torch.float64
    )

    def program() -> list[Any]:
        a, b = tacit.share(x, owner=0), tacit.share(y, owner=1)
        return [
            shown(v)
            for v in (
                a < b,
                a <= b,
                a > b,
                a >= b,
                a == b,
                a != b,
                torch.maximum(a, b),
                torch.minimum(a, b),
            )
        ]

    plain = [x < y, x <= y, x > y, x >= y, x == y, x != y, torch.maximum(x, y), torch.minimum(x, y)]
    for mine, theirs in zip(on_shares(program), plain, strict=True):
        assert torch.equal(mine, theirs)


def test_the_first_of_equals_wins(on_shares: OnShares) -> None:
    x = torch.tensor(
        [[1.0, 3.0, 3.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0, 0.0], [5.0, 1.0, 1.0, 5.0, 1.0]]
    )

    def program() -> list[Any]:
        secret = tacit.share(x, owner=0)
        return [
            shown(v)
            for v in (secret.argmax(1), secret.argmin(1), secret.argmax(0), secret.max(1).indices)
        ]

    plain = [x.argmax(1), x.argmin(1), x.argmax(0), x.max(1).indices]
    for mine, theirs in zip(on_shares(program), plain, strict=True):
        assert torch.equal(mine, theirs)


def test_nothing_is_sent_where_nothing_is_needed() -> None:
    def program() -> int:
        x, n = tacit.share(torch.randn(4, 6), owner=0), tacit.share(torch.arange(6), owner=0)
        before = tacit.session().meter.total.frames
        _ = (
            x + 1.5,
            x + torch.ones(6),
            x * 3,
            n * torch.arange(6),
            -x,
            x - x,
            x.t(),
            x.sum(0),
            torch.cat([x, x]),
        )
        _ = (
            x[1:, ::2],
            x.reshape(3, 8),
            nn.functional.pad(x, (1, 1)),
            torch.stack([n, n]),
            x.flip(0),
        )
        _ = (
            torch.where(torch.ones(6, dtype=torch.bool), x, 0.0),
            n.cumsum(0),
            x.unfold(1, 2, 1),
            x.masked_fill(torch.ones(6) > 0, 0.0),
        )
        return tacit.session().meter.total.frames - before

    assert tacit.launch(program) == [0, 0, 0]


def test_writing_in_place_is_seen_by_views(on_shares: OnShares) -> None:
    def steps(x: Any, secret: Callable[[Any], Any]) -> Any:
        y = x.view(3, 4)
        y[1] += 1.0
        y[:, 0] = secret(torch.tensor([7.0, 8.0, 9.0]))
        y[2, 1:3].mul_(2.0)
        x[0] = 5.0
        x.relu_()
        torch.nn.functional.leaky_relu(y[0], 0.1, inplace=True)
        x.clamp_(0.5, 8.0)
        y.masked_fill_(torch.eye(3, 4, dtype=torch.bool), 0.25)
        return x

    start = torch.arange(12.0) - 6

    def program() -> Any:
        return shown(steps(tacit.share(start, owner=0), lambda value: tacit.share(value, owner=1)))

    assert torch.allclose(on_shares(program), steps(start.clone(), lambda value: value), atol=1e-3)


def test_a_secret_is_not_written_into_a_plain_tensor() -> None:
    def program() -> None:
        torch.zeros(3).copy_(tacit.share(torch.ones(3), owner=0))

    with pytest.raises(tacit.UnsupportedOperatorError, match="plain tensor"):
        tacit.launch(program)


@pytest.mark.parametrize(
    "write",
    [
        lambda target, secret: target.copy_(secret),
        lambda target, secret: target.index_put_((torch.tensor([0, 1, 2]),), secret),
        lambda target, secret: torch.neg(secret, out=target),
    ],
)
def test_what_a_refused_target_held_is_not_compared(write: Callable[..., Any]) -> None:
    def program() -> torch.Tensor:
        secret = tacit.share(torch.ones(3), owner=0)
        # The contents differ in every party, like memory that was never written.
        with pytest.raises(tacit.UnsupportedOperatorError):
            write(torch.full((3,), float(tacit.session().party)), secret)
        return secret.reveal()

    assert all(torch.equal(found, torch.ones(3)) for found in tacit.launch(program))


@pytest.mark.parametrize("variance", [1e-6, 1e-3, 1.0, 1e4])
def test_the_inverse_standard_deviation_costs_no_accuracy(
    on_shares: OnShares, variance: float
) -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(5).eval()
    norm.running_var.fill_(variance).mul_(torch.rand(5) + 0.5)
    norm.running_mean.normal_()
    norm.weight.data.uniform_(0.5, 2)
    norm.bias.data.normal_()
    deviations = (norm.running_var + norm.eps).sqrt()
    x = norm.running_mean.view(1, 5, 1, 1) + torch.randn(2, 5, 4, 4) * deviations.view(1, 5, 1, 1)
    with torch.no_grad():
        plain = norm.double()(x.double())
    norm.float()

    def program() -> Any:
        return shown(tacit.share_module(norm, owner=0)(tacit.share(x, owner=1)))

    # The bound adds the input's rounding, magnified by the factor, to units of the result and of
    # the factor.
    factor = float((norm.weight.detach() / deviations).abs().max())
    assert (
        on_shares(program).double() - plain
    ).abs().max() <= factor * 2**-17 + 4 * 2**-16 + 8 * 2**-24 * factor


def test_public_factors_are_as_exact_as_float32(on_shares: OnShares) -> None:
    x = torch.tensor([1000.0, -777.25, 3.0, 0.5])
    divisors = [3.0, 49.0, 1000.0, 123456.0, 1e-3, 0.37]

    def program() -> list[Any]:
        secret = tacit.share(x, owner=0)
        return [shown(secret / divisor) for divisor in divisors]

    for divisor, mine in zip(divisors, on_shares(program), strict=True):
        plain = x.double() / divisor
        assert ((mine.double() - plain).abs() <= plain.abs() * 2**-22 + 1.5 * 2**-16).all()


def test_average_pooling_is_one_truncated_product(on_shares: OnShares) -> None:
    x = torch.randn(1, 2, 15, 13, dtype=torch.float64) * 100

    def program() -> tuple[Any, int]:
        secret = tacit.share(x, owner=0)
        before = tacit.session().meter.total.rounds
        result = nn.functional.adaptive_avg_pool2d(secret, (4, 5))
        return result.reveal(), tacit.session().meter.total.rounds - before

    found, rounds = on_shares(program)
    assert rounds <= 2 + 1 + 1
    assert (found - nn.functional.adaptive_avg_pool2d(x, (4, 5))).abs().max() < 2 * 2**-16


def test_public_weights_on_secrets_and_secret_weights_on_public_data(on_shares: OnShares) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(75, 4)
    ).eval()
    x = torch.randn(2, 2, 5, 5)
    with torch.no_grad():
        plain = model(x)

    def program() -> list[Any]:
        by_public_weights = model(tacit.share(x, owner=1)).reveal()
        return [by_public_weights, tacit.share_module(model, owner=0)(x).reveal()]

    for mine in on_shares(program):
        assert torch.allclose(mine, plain, atol=2e-3)


MOVES: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: x.transpose(0, -1),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, -1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "flatten and back": lambda x: x.flatten().reshape(x.shape),
    "slice": lambda x: x[..., :2] if x.shape[-1] > 2 else x,
    "cat": lambda x: torch.cat([x, x[:1]]),
    "expand": lambda x: x.unsqueeze(0).expand(2, *x.shape),
    "permute": lambda x: x.permute(*range(1, x.dim()), 0),
    "index": lambda x: x[[0, -1, 0]],
    "pad": lambda x: nn.functional.pad(x, (1, 0), value=2.0),
    "stack": lambda x: torch.stack([x, -x], -1),
    "repeat": lambda x: x.repeat(*[1] * (x.dim() - 1), 2),
    "squeeze": lambda x: x.squeeze(),
    "clone": lambda x: x.clone(),
    "tril": lambda x: x.tril() if x.dim() > 1 else x,
}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(sorted(MOVES)), min_size=1, max_size=6))
def test_any_chain_of_moves(names: list[str]) -> None:
    def chain(x: Any) -> Any:
        for name in names:
            if x.dim() and x.numel() < 3000:
                x = MOVES[name](x)
        return x

    start = torch.arange(24.0).reshape(2, 3, 4)
    (found, _) = tacit.launch(
        lambda: shown(chain(tacit.share(start, owner=0))), parties=2, protocol="plain"
    )
    assert torch.equal(found, chain(start))


def test_complex_numbers_and_sparse_tensors_are_refused_by_name() -> None:
    """Complex numbers must be refused, since otherwise only their real part would count."""
    units = torch.eye(3, dtype=torch.complex64)
    calls: list[Callable[[Any], Any]] = [
        *(
            lambda x: x * 1j,
            lambda x: 1j - x,
            lambda x: x == 1j,
            lambda x: x / units,
            lambda x: x @ units,
        ),
        *(
            lambda x: x.clone().add_(1j),
            lambda x: x.clone().fill_(1j),
            lambda x: torch.where(x > 0, x, 1j),
        ),
    ]

    def program() -> None:
        x = tacit.share(torch.ones(3, 3), owner=0)
        for call in calls:
            with pytest.raises(tacit.UnsupportedOperatorError, match="a complex"):
                call(x)
        with pytest.raises(tacit.UnsupportedOperatorError, match="a sparse tensor"):
            x + torch.eye(3).to_sparse()

    tacit.launch(program, protocol="plain", parties=2)
