"""Numbers in their whole range, for both families of protocols: factors, means, scales,
normalisation, and warnings about values that leave the range.

test_limits.py tests the limits as properties.
"""

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit import fixed

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}

OnShares = Callable[..., Any]

#: A unit of the default scale.
UNIT = 2.0**-16

#: The largest magnitude that can be shared, and that a product may have.
LIMIT = 2.0**30


@pytest.fixture(params=SETTINGS)
def on_shares(request: pytest.FixtureRequest) -> OnShares:
    """Runs a program in all parties; returns the result of party 0."""
    return lambda fn, *args: tacit.launch(fn, *args, **SETTINGS[request.param])[0]


def test_many_numbers_are_decoded_as_few_are() -> None:
    words = torch.randint(-(2**50), 2**50, (3, fixed.AT_ONCE // 2 + 1))
    exact = words.double() / 2.0**20
    for found in (words, words.mT.contiguous().mT):
        for dtype in (torch.float32, torch.float64):
            assert torch.equal(fixed.decode(found, fixed.Scale(20), dtype), exact.to(dtype))


def double(values: Any) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


#: Values up to the limit, of both signs.
EDGES = double(
    [LIMIT - 1, -(LIMIT - 1), 1e8, -1e8, 2.0**25, 2.0**24 + 1, 1000.5, -1.0, UNIT, -UNIT, 0.0]
)

#: Factors and divisors of all sizes. Their results with every edge are below the limit.
FACTORS = [0.5, -0.5, 0.999, 1 / 3, 0.1, 1e-3, 1e-6, 2.0**-20]


def test_products_by_public_numbers(on_shares: OnShares) -> None:
    def program() -> list[Any]:
        x = tacit.share(EDGES, owner=0)
        return [(x * factor).reveal() for factor in FACTORS] + [
            (x / (1 / f)).reveal() for f in FACTORS
        ]

    for factor, found in zip(FACTORS * 2, on_shares(program), strict=True):
        plain = EDGES * factor
        assert ((found.double() - plain).abs() <= 1.001 * UNIT + plain.abs() * 2.0**-22).all(), (
            factor
        )


def test_numbers_divided_by_secrets(on_shares: OnShares) -> None:
    """These are as right as quotients of tensors, however far the number is from one."""
    divisors = double([300.0, -70_000.0, 3.0, 3.5e7, 0.125])
    numbers = [1000.0, -1e6, 7, True, 7_406_592.0, 0.0]

    def program() -> list[Any]:
        x = tacit.share(divisors, owner=0)
        y = tacit.share(divisors.abs().long() + 1, owner=1)
        return [(number / x).reveal() for number in numbers] + [
            (number / y).reveal() for number in numbers
        ]

    found = on_shares(program)
    wanted = [number / each for each in (divisors, divisors.abs().long() + 1) for number in numbers]
    for mine, plain in zip(found, wanted, strict=True):
        assert mine.dtype == plain.dtype
        assert torch.allclose(mine.double(), plain.double(), rtol=2.0**-13, atol=2 * UNIT), (
            mine,
            plain,
        )


def test_what_was_wrong_beyond_two_to_the_24(on_shares: OnShares) -> None:
    salaries = double([50_000.0, 61_000.0, 72_500.0, 99_999.0, 100_000.0])
    linear = nn.Linear(6, 3, dtype=torch.float64)
    inputs = double([[2.0**25, -(2.0**25), 2.0**24, 3.0, 1e7, -2e7]])

    def program() -> list[Any]:
        x = tacit.share(double([1e8, 1e8, 1e8]), owner=0)
        pay = tacit.share(salaries, owner=1)
        return [
            (x * 1.05).reveal(),
            x.mean().reveal(),
            pay.var().reveal(),
            pay.mean().reveal(),
            linear(tacit.share(inputs, owner=0)).reveal(),
            nn.functional.avg_pool1d(
                tacit.share(double([[[1e9, 1e9, 1e9, 1.0]]]), owner=0), 3, 1
            ).reveal(),
        ]

    plain = [
        double([1.05e8] * 3),
        double(1e8),
        salaries.var(),
        salaries.mean(),
        linear(inputs).detach(),
        double([[[1e9, 2 / 3 * 1e9 + 1 / 3]]]),
    ]
    for found, wanted in zip(on_shares(program), plain, strict=True):
        assert torch.allclose(found.double(), wanted, rtol=2.0**-18, atol=4 * UNIT), (found, wanted)


def test_products_of_secrets_at_the_limit(on_shares: OnShares) -> None:
    left = double([2.0**15, -(2.0**15), 2.0**29, LIMIT - 1, UNIT, -(LIMIT - 1), 32768.5])
    right = double([2.0**15 - UNIT, 2.0**15 - UNIT, 1.984375, 1.0, LIMIT - 1, 1.0, -32767.0])
    row, column = double([[2.0**14] * 4]), double([[2.0**14 - 1]] * 4)

    def program() -> list[Any]:
        a, b = tacit.share(left, owner=0), tacit.share(right, owner=1)
        r, c = tacit.share(row, owner=0), tacit.share(column, owner=1)
        kernel = c.reshape(1, 4, 1)
        return [
            (a * b).reveal(),
            (r @ c).reveal(),
            nn.functional.conv1d(r.reshape(1, 4, 1), kernel).reveal(),
            # After a chain of roundings the limit is the same, because all results return to one
            # scale.
            ((a * 0.25) * (b * 4)).reveal(),
            (a * 0.3 / 0.3 * b).reveal(),
        ]

    product = left * right
    wanted = [product, row @ column, (row @ column).reshape(1, 1, 1), product]
    *exact, last = on_shares(program)
    slack = 1e-9 * product.abs()
    for found, plain in zip(exact, wanted, strict=True):
        allowed = 2 * UNIT + slack if plain.shape == slack.shape else 2 * UNIT
        if plain is wanted[3]:
            allowed = allowed + UNIT * 4 * right.abs()
        assert ((found.double() - plain).abs() <= allowed).all(), (found, plain)
    rounding = 4 * UNIT * right.abs() + 2 * UNIT + product.abs() * 2.0**-21
    assert ((last.double() - product).abs() <= rounding).all()


def test_means_and_variances_of_many(on_shares: OnShares) -> None:
    torch.manual_seed(3)
    large = 1e9 + torch.randn(40_000, dtype=torch.float64) * 1e4
    small = torch.randn(5, 1000, dtype=torch.float64) * 0.01

    def program() -> list[Any]:
        x, y = tacit.share(large, owner=0), tacit.share(small, owner=1)
        return [
            x.mean().reveal(),
            x.var().reveal(),
            y.mean(1).reveal(),
            y.var(1).reveal(),
            y.var((0, 1), keepdim=True).reveal(),
            y.t().var(0, correction=0).reveal(),
        ]

    plain = [
        large.mean(),
        large.var(),
        small.mean(1),
        small.var(1),
        small.var((0, 1), keepdim=True),
        small.t().var(0, correction=0),
    ]
    for found, wanted in zip(on_shares(program), plain, strict=True):
        assert found.shape == wanted.shape
        assert torch.allclose(found.double(), wanted, rtol=2.0**-16, atol=3 * UNIT), (found, wanted)


def test_nothing_drifts() -> None:
    """Averages over many roundings of random shares, and of shares with a structure."""
    n = 20_000

    def program() -> list[float]:
        x = tacit.share(torch.full((n,), 1.0 + UNIT, dtype=torch.float64), owner=0)
        by = [
            (x * 0.5) * 2,
            nn.functional.avg_pool1d((x * 4).reshape(1, 1, n), 4, 4) / 4,
            x / 3 * 3,
        ]
        structured = (x - x + (1.0 + UNIT)) * 0.5 * 2
        return [
            float((v.reveal().double() - (1.0 + UNIT)).mean()) / UNIT for v in (*by, structured)
        ]

    for name, setting in SETTINGS.items():
        for drift in tacit.launch(program, **setting)[0]:
            assert abs(drift) < 0.05, name


# Scales
# ----------------------------------------------------------------------------


def test_results_return_to_the_sessions_scale(on_shares: OnShares) -> None:
    x = double([0.123456789, -1.5, 3.25])

    def program() -> list[Any]:
        fine, coarse = tacit.share(x, owner=0, scale=24), tacit.share(x, owner=1)
        products = (fine * fine, fine * coarse, fine @ coarse, fine * 0.3, coarse.square())
        assert {product._scale.bits for product in products} == {16}
        assert ((fine + coarse)._scale.bits, (fine * 3)._scale.bits, (-fine)._scale.bits) == (
            24,
            24,
            24,
        )
        with tacit.fraction_bits(20):
            shared = tacit.share(x, owner=0)
            assert (
                shared._scale.bits,
                (shared * coarse)._scale.bits,
                (fine * fine)._scale.bits,
            ) == (
                20,
                20,
                20,
            )
            finer = fine * fine
        return [
            fine.reveal(),
            finer.reveal(),
            (fine > coarse - UNIT).reveal(),
            (fine + coarse).reveal(),
        ]

    fine, finer, greater, total = on_shares(program)
    assert (fine - x).abs().max() <= 2.0**-25
    assert (finer - x * x).abs().max() <= 2.0**-20 + 2.0**-22
    assert greater.all()
    assert (total - 2 * x).abs().max() <= 2.0**-17 + 2.0**-25


@pytest.mark.parametrize("scale", [0, 41, True, 16.0, "16"])
def test_a_scale_that_cannot_be(scale: Any) -> None:
    with pytest.raises(tacit.MisuseError, match="a scale is 1 to 40 fraction bits"):
        tacit.launch(lambda: tacit.share(torch.ones(2), owner=0, scale=scale))


def test_scales_that_differ_between_parties() -> None:
    with pytest.raises(tacit.MisuseError, match="with 16 fraction bits, party 0 with 20"):
        tacit.launch(
            lambda: tacit.share(
                torch.ones(2), owner=0, scale=20 if tacit.session().party == 0 else None
            )
        )


def test_a_comparison_width_means_bits_before_the_point(on_shares: OnShares) -> None:
    """This holds at every scale, and for the results of a normalisation."""
    largest = 2.0**14 - 1
    x = double([largest, -largest, 0.5, -0.5, 0.0])
    norm = nn.BatchNorm1d(1).eval()
    norm.weight.data.fill_(math.sqrt(1 + norm.eps))

    def program() -> list[Any]:
        tacit.share_module(norm, owner=0)
        found = []
        with tacit.comparison_width(32):
            for scale in (8, 16, 24):
                secret = tacit.share(x, owner=1, scale=scale)
                found += [(secret > 0).reveal(), torch.relu(secret).reveal(), secret.max().reveal()]
            normalised = norm(tacit.share(x.reshape(-1, 1), owner=1)).reshape(-1)
            found += [
                (normalised > 0.25).reveal(),
                torch.relu(normalised).reveal(),
                normalised.max().reveal(),
            ]
        return found

    found = on_shares(program)
    for positive, rectified, greatest in zip(found[::3], found[1::3], found[2::3], strict=True):
        assert positive.tolist() == [True, False, True, False, False]
        assert torch.allclose(rectified.double(), x.relu(), atol=0.01)
        assert abs(float(greatest) - largest) < 0.01


def test_a_comparison_width_means_the_same_at_every_scale_of_the_session(
    on_shares: OnShares,
) -> None:
    """At the limit: 15 bits before the point, with 20 fraction bits too. Integers have ``bits``
    bits."""
    below = 2.0**15 - 2.0**-7
    edges = double([below, -below, 2.0**-8, -(2.0**-8), 0.0])
    whole = torch.tensor([2**31 - 1, -(2**31 - 1), 1, -1, 0])

    def program() -> list[Any]:
        found = []
        for bits in (8, 16, 20):
            with tacit.fraction_bits(bits), tacit.comparison_width(32):
                for values in (edges, whole):
                    secret = tacit.share(values, owner=0)
                    found.append([(secret > 0).reveal(), torch.relu(secret).reveal()])
        return found

    for at, (positive, rectified) in enumerate(on_shares(program)):
        values = whole if at % 2 else edges
        assert positive.tolist() == [True, False, True, False, False]
        assert torch.equal(rectified.double(), values.double().relu())


def test_counting_needs_no_width_of_the_users(on_shares: OnShares) -> None:
    def program() -> list[Any]:
        x = tacit.share(torch.ones(3, 1000, dtype=torch.bool), owner=0)
        with tacit.comparison_width(8):
            return [
                x.any().reveal(),
                x.all(1).reveal(),
                (~x).any(1).reveal(),
                x[:, :0].any(1).reveal(),
            ]

    everything, rows, none, empty = on_shares(program)
    assert everything
    assert rows.all()
    assert not none.any()
    assert not empty.any()


# Normalisation
# -------------------------------------------------------------------------------------


def normalisation() -> nn.BatchNorm1d:
    torch.manual_seed(1)
    norm = nn.BatchNorm1d(4).eval()
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    norm.weight.data.uniform_(0.5, 2)
    norm.bias.data.normal_()
    return norm


def test_a_normalisation_keeps_the_scale(on_shares: OnShares) -> None:
    norm = nn.BatchNorm1d(1).eval()

    def program() -> list[Any]:
        tacit.share_module(norm, owner=0)
        x = tacit.share(double([[200.0], [-150.0], [2.0**20]]), owner=1)
        once = norm(x)
        assert once._scale.bits == 16
        return [(once[:2] ** 2).reveal(), norm(norm(x)).reveal()]

    squares, twice = on_shares(program)
    assert torch.allclose(squares.double(), double([[40_000.0], [22_500.0]]), rtol=2e-5)
    assert torch.allclose(twice.double(), double([[200.0], [-150.0], [2.0**20]]), rtol=2e-5)


VALUES = {
    "weight": [1.0, -2.0, 0.5, 3.0],
    "bias": [0.0, 1.0, 2.0, -1.0],
    "running_mean": [0.25, -0.25, 1.0, 0.0],
    "running_var": [0.5, 1.0, 4.0, 9.0],
}

#: Changes of a normalisation; `secret` shares a value or leaves it plain.
WRITES: dict[str, Callable[[nn.BatchNorm1d, Callable[[torch.Tensor], Any]], Any]] = {
    "weight": lambda norm, _: norm.weight.data.mul_(2.0),
    "weight in place": lambda norm, secret: norm.weight.copy_(
        secret(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    ),
    "bias": lambda norm, _: norm.bias.add_(1.0),
    "mean": lambda norm, _: norm.running_mean.fill_(0.5),
    "variance": lambda norm, _: norm.running_var.mul_(4.0),
    "small variance": lambda norm, secret: norm.running_var.copy_(
        secret(torch.tensor([0.01, 900.0, 1.0, 4e4]))
    ),
    "a new parameter": lambda norm, secret: setattr(
        norm,
        "weight",
        nn.Parameter(secret(torch.tensor([3.0, 1.0, 2.0, 0.5])), requires_grad=False),
    ),
    "data": lambda norm, secret: setattr(
        norm.weight, "data", secret(torch.tensor([3.0, 1.0, 2.0, 0.5]))
    ),
    "state": lambda norm, secret: norm.load_state_dict(
        {name: secret(torch.tensor(VALUES[name])) for name in VALUES}, strict=False
    ),
    "epsilon": lambda norm, _: setattr(norm, "eps", 0.5),
    "double": lambda norm, _: norm.double(),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_normalisation_follows_every_write(on_shares: OnShares, write: str) -> None:
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))
    plain = normalisation()
    with torch.no_grad():
        before = plain(x)
        WRITES[write](plain, lambda value: value.clone())
        plain.double()
        after = plain(x.double())

    original = normalisation()

    def program() -> list[Any]:
        norm = tacit.share_module(original, owner=0)
        secret = tacit.share(x, owner=1)
        found = [norm(secret).reveal()]
        with torch.no_grad():
            WRITES[write](norm, lambda value: tacit.share(value, owner=0))
        return [*found, norm(secret).reveal(), norm(secret).reveal()]

    first, *then = on_shares(program)
    assert torch.allclose(first, before, atol=1e-3)
    for found in then:
        assert torch.allclose(found.double(), after, rtol=2e-3, atol=2e-3), (
            (found - after).abs().max()
        )


def test_a_copied_module_is_the_same_and_independent(on_shares: OnShares) -> None:
    import copy

    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))
    model = nn.Sequential(nn.Linear(4, 4), normalisation()).eval()
    with torch.no_grad():
        plain = model(x)

    def program() -> list[Any]:
        secret = tacit.share_module(model, owner=0)
        copied = copy.deepcopy(secret)
        assert all(isinstance(parameter, nn.Parameter) for parameter in copied.parameters())
        with torch.no_grad():
            secret[0].weight.zero_()
            secret[1].weight.zero_()
        return [copied(tacit.share(x, owner=1)).reveal()]

    assert torch.allclose(on_shares(program)[0], plain, atol=2e-3)


# Warnings for the owner, and in trial runs
# ---------------------------------------------------------


def test_the_owner_of_weights_that_are_too_small_is_warned() -> None:
    def program() -> list[str]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
        model[1].weight.data.mul_(1e-4)
        model[0].bias.data.mul_(1e-6)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tacit.share_module(model, owner=1)
        return [
            str(warning.message) for warning in caught if warning.category is tacit.PrecisionWarning
        ]

    # If parties were threads, they would share the list of warnings.
    none, found, also_none = tacit.launch(program, transport="tcp")
    assert none == also_none == []
    assert len(found) == 1
    assert "1.weight (" in found[0]
    assert "0.weight" not in found[0]
    assert "bias" not in found[0]
    assert "scale={name: 24}" in found[0]


def test_weights_with_a_scale_of_their_own_keep_their_digits(on_shares: OnShares) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16, bias=False), nn.Linear(16, 4, bias=False)).double()
    model[0].weight.data.mul_(1e-3)
    model[1].weight.data.mul_(1e-1)
    x = torch.randn(5, 16, dtype=torch.float64) * 1e4
    with torch.no_grad():
        plain = model(x)

    def program() -> Any:
        tacit.share_module(model, owner=0, scale={"0.weight": 28})
        assert (model[0].weight._scale.bits, model[1].weight._scale.bits) == (28, 16)
        return model(tacit.share(x, owner=1)).reveal()

    assert (on_shares(program) - plain).norm() / plain.norm() < 1e-3


def test_weights_that_are_trained_have_the_bits_of_gradients(on_shares: OnShares) -> None:
    def model(trained: bool = True) -> nn.Module:
        linear = nn.Linear(2, 1)
        linear.weight.data, linear.bias.data = (
            torch.tensor([[1024.0, 2.0**-20]]),
            torch.tensor([0.25]),
        )
        return linear.requires_grad_(trained)

    def program() -> Any:
        scales = []
        for trained, trainable, scale in (
            (True, True, None),
            (True, False, None),
            (False, True, None),
        ):
            secret = tacit.share_module(model(trained), owner=0, trainable=trainable, scale=scale)
            scales.append((secret.weight._scale.bits, secret.bias._scale.bits))
        for scale in (18, {"weight": 24}):
            secret = tacit.share_module(model(), owner=0, trainable=True, scale=scale)
            scales.append((secret.weight._scale.bits, secret.bias._scale.bits))
        with tacit.fraction_bits(30):
            scales.append(tacit.share_module(model(), owner=0, trainable=True).weight._scale.bits)
        secret = tacit.share_module(model(), owner=0, trainable=True)
        # Up to the limit of a product of 16 and 20 fraction bits.
        x = tacit.share(torch.tensor([[65535.0, 0.0], [0.0, 1024.0]]), owner=1)
        result = secret(x)
        (result * 2.0**-16).sum().backward()
        torch.optim.SGD(secret.parameters(), lr=2.0**-4).step()
        revealed = result.detach(), secret.weight.detach(), secret.bias.detach()
        return scales, result._scale.bits, [each.reveal().double() for each in revealed]

    scales, bits, (result, weight, bias) = on_shares(program)
    assert scales == [(20, 16), (16, 16), (16, 16), (18, 18), (24, 16), 30]
    assert bits == 16
    # In single precision, the first number has no digits after the point.
    assert (result - double([[65535.0 * 1024], [2.0**-10 + 0.25]])).abs().max() <= 2 * UNIT
    # The gradients are the sums of the data, divided by 2^16, with 20 fraction bits.
    moved = double([[1024.0, 2.0**-20]]) - double([[65535.0, 1024.0]]) * 2.0**-20
    assert (weight - moved).abs().max() <= 2.0**-18
    assert (bias - 0.25).abs() <= 2 * UNIT


def test_a_scale_for_a_weight_that_is_not_there() -> None:
    with pytest.raises(
        tacit.MisuseError, match="scale names 'weigth', which the module does not have"
    ):
        tacit.launch(lambda: tacit.share_module(nn.Linear(2, 2), owner=0, scale={"weigth": 20}))


def _narrow(compared: Callable[[Any], Any], x: Any) -> Any:
    with tacit.comparison_width(32):
        return compared(x)


OVERFLOWS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a product": (lambda x: x * x, "aten.mul.Tensor"),
    "a product of no dimensions": (lambda x: x[0] * x[1], "aten.mul.Tensor"),
    "a product of a view": (lambda x: x.expand(3, 2).t() * x.reshape(2, 1), "aten.mul.Tensor"),
    "a matrix product": (lambda x: x.reshape(1, 2) @ x.reshape(2, 1), "aten.mm"),
    "a convolution": (
        lambda x: nn.functional.conv1d(x.reshape(1, 1, 2), x.reshape(1, 1, 2)),
        "aten.convolution",
    ),
    "a public factor": (lambda x: x * 1e6, "aten.mul"),
    "a sum": (lambda x: (x * 4000).sum() + 2.0**29, "aten."),
    # The words of these products are small modulo 2^64.
    "a product by an integer": (lambda x: x * x.long() ** 3, "aten.mul.Tensor"),
    "a product by a whole number": (lambda x: (x / 8).floor() * 2.0**34, "aten.mul.Tensor"),
    "an integer among fractions": (lambda x: x.long() ** 3 + 0.5, "aten.add.Tensor"),
    "a norm": (lambda x: (x * 4096).expand(8, 2).norm(), "aten.linalg_vector_norm"),
    "an exponent": (torch.exp, "aten.exp.default"),
    "a hyperbolic sine": (torch.sinh, "aten.sinh.default"),
    "a power": (lambda x: x**2.5, "aten.pow.Tensor_Scalar"),
    "a secret power": (lambda x: x ** (x * 0.0 + 2.5), "aten.pow.Tensor_Tensor"),
    "an angle": (lambda x: (x * 16).sin(), "aten.sin.default"),
    "a sum of many": (lambda x: ((x / 8).floor() * 2.0**15).expand(2**18, 2).sum(), "aten.sum"),
    "a sum so far": (
        lambda x: ((x / 8).floor() * 2.0**15).expand(2**18, 2).cumsum(0),
        "aten.cumsum",
    ),
    "a dividend": (lambda x: (x.long() << 15) // (x + 1), "aten.floor_divide"),
    "a divisor": (lambda x: x // (x.long() << 15), "aten.floor_divide"),
    "a narrow comparison": (
        lambda x: _narrow(lambda x: x < -x, x.long() << 14),
        "aten.lt.Tensor",
    ),
    "a narrow maximum with zero": (lambda x: _narrow(torch.relu, x), "aten.relu.default"),
    "a narrow comparison inside": (lambda x: _narrow(torch.exp, -x), "aten.exp.default"),
}


@pytest.mark.parametrize("what", OVERFLOWS)
def test_a_trial_run_shows_every_overflow(what: str) -> None:
    apply, operator = OVERFLOWS[what]

    class Layer(nn.Module):
        def forward(self, x: Any) -> Any:
            return apply(x)

    def program(values: torch.Tensor) -> None:
        model = nn.Sequential(nn.Identity(), Layer())
        for _ in range(2):
            model(tacit.share(values, owner=0))

    def run(values: list[float]) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tacit.launch(program, double(values), protocol="plain", parties=2)
        return [
            str(warning.message) for warning in caught if warning.category is tacit.RangeWarning
        ]

    assert run([1.0, 2.0]) == []
    found = run([2.0**17, 2.0**17])
    assert len(found) == len(set(found))
    assert all("module '1'" in message for message in found)
    assert operator in found[0]


def test_outside_of_modules_each_line_is_named() -> None:
    def program() -> None:
        x = tacit.share(double([2.0**29]), owner=0)
        for _ in range(2):
            x * 3
        x * x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tacit.launch(program, protocol="plain", parties=2)
    places = [
        re.search(r"aten.mul.Tensor .*test_numbers.py:(\d+), has", str(one.message))
        for one in caught
    ]
    first, second = (int(place[1]) for place in places if place)
    assert second == first + 1


def test_views_of_what_left_its_range_are_named_too() -> None:
    def program() -> None:
        x = tacit.share(double([2.0**29, 1.0]), owner=0)
        ((x + x).expand(3, 2).t())[0, 0]

    # The warnings of all parties are caught here, because threads share the filters of warnings.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tacit.launch(program, protocol="plain", parties=2)
    named = [str(warning.message).split()[3] for warning in caught]
    assert named == ["aten.add.Tensor", "aten.expand.default", "aten.t.default", "aten.select.int"]


# Factors
# ----------------------------------------------------------------------------


def test_no_term_of_a_factor_leaves_the_range() -> None:
    generator = torch.Generator().manual_seed(5)
    magnitudes = 10.0 ** (torch.rand(400, generator=generator, dtype=torch.float64) * 20 - 12)
    for value in magnitudes.tolist():
        factor = fixed.factor(double(value), fixed.DEFAULT, fixed.DEFAULT)
        # The largest operand whose product is below the limit.
        word = min(2.0**46, LIMIT / value * 2.0**16)
        kept = 0.0
        for term in factor.terms:
            assert abs(int(term.words)) * word <= 2.0**fixed.RANGE
            assert 0 <= term.bits <= 61
            kept += int(term.words) * 2.0**-term.bits
        assert abs(kept - value) <= max(value * 2.0**-22, 2.0**-60), value


@pytest.mark.parametrize("of_operand", [0, 12, 16, 20, 26, 30])
@pytest.mark.parametrize("of_result", [12, 16, 20, 26, 30])
def test_each_term_of_a_factor_is_finer_than_the_one_before(
    of_operand: int, of_result: int
) -> None:
    # For example, a warm-up's learning rate of 1e-6 times a gradient of 30 fraction bits.
    generator = torch.Generator().manual_seed(of_operand + of_result)
    finest = fixed.RANGE - 1 - max(0, of_operand - of_result)
    for value in (
        10.0 ** (torch.rand(200, generator=generator, dtype=torch.float64) * 15 - 13)
    ).tolist():
        for values in (double(value), double([value, value / 3]), double([value, value * 1e-5])):
            for gain in (None, 8.0):
                factor = fixed.factor(values, fixed.Scale(of_operand), fixed.Scale(of_result), gain)
                bits = [term.bits for term in factor.terms]
                assert bits == sorted(set(bits)), (value, bits)
                kept = sum(term.words.double() * 2.0**-term.bits for term in factor.terms)
                assert float((kept - values).abs().max()) <= max(value * 2.0**-19, 2.0**-finest), (
                    value
                )


@pytest.mark.parametrize("rate", [1e-4, 1.3e-6, 2.7e-8, 3e-10])
def test_steps_by_small_learning_rates_are_right(rate: float) -> None:
    gradients = double([[-3e4, -3.25, 1e-3, 7.5, 2e4]])
    before = double([[1.5, -2.25, 0.0, 100.0, -7.0]])

    def program() -> torch.Tensor:
        layer = nn.Linear(5, 1, bias=False)
        layer.weight.data = before.float()
        tacit.share_module(layer, owner=0, trainable=True)
        layer(tacit.share(gradients.float(), owner=1)).sum().backward()
        torch.optim.SGD(layer.parameters(), lr=rate).step()
        return layer.weight.detach().reveal()

    for found in tacit.launch(program):
        # A unit of trainable weights, plus the rounding of a float32 near 100.
        assert (found.double() - (before - rate * gradients)).abs().max() <= 2.0**-20 + 2.0**-18


def test_no_sum_of_products_by_public_weights_leaves_the_range() -> None:
    generator = torch.Generator().manual_seed(6)
    for size in (1, 2, 7, 64, 1000):
        weights = torch.randn(3, size, generator=generator, dtype=torch.float64) / size**0.5
        gain = float(weights.abs().sum(1).max() / weights.abs().max())
        factor = fixed.factor(weights, fixed.DEFAULT, fixed.DEFAULT, gain)
        largest = 2.0**46 * min(1.0, 1.0 / float(weights.abs().sum(1).max()))
        for term in factor.terms:
            assert float(term.words.double().abs().sum(1).max()) * largest <= 2.0**fixed.RANGE
        kept = sum(term.words.double() * 2.0**-term.bits for term in factor.terms)
        assert (kept - weights).abs().max() <= weights.abs().max() * 2.0**-19
