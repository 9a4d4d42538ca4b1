"""Every limit of the table in docs/numbers.md, tested with numbers drawn near it.

Results are compared with exact arithmetic, for single operations and for chains of them, in both
families of protocols.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

import tacit

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "replicated-malicious": {"protocol": "replicated-malicious"},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
    # Three parties truncate by another protocol.
    "additive of three": {"parties": 3, "protocol": "additive", "source": "dealer"},
}

#: A unit of the default scale; then the limits of fractions, of normalisations, and of a comparison
#: width of 32 bits.
UNIT = 2.0**-16
LIMIT = 2.0**30
NORMALISED = 2.0**22
NARROW = 2.0**15

#: Error of public weights, relative to the largest.
WEIGHTS = 2.0**-19

at_the_limit = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

OnShares = Callable[[Callable[[], Any]], Any]


@pytest.fixture(params=SETTINGS)
def on_shares(request: pytest.FixtureRequest) -> OnShares:
    """Runs a program in all parties; returns the result of party 0."""
    return lambda program: tacit.launch(program, **SETTINGS[request.param])[0]


def double(values: Any) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


def near(limit: float, largest: int = 1 << 12) -> st.SearchStrategy[float]:
    """Draws numbers of either sign that are a few units from a limit."""
    return st.builds(
        lambda units, sign: sign * (limit - units * UNIT),
        st.integers(1, largest),
        st.sampled_from([1, -1]),
    )


def several(numbers: st.SearchStrategy[Any], size: int = 8) -> st.SearchStrategy[list[Any]]:
    return st.lists(numbers, min_size=size, max_size=size)


@st.composite
def factors(draw: st.DrawFn, limit: float = LIMIT) -> tuple[float, float]:
    """Draws two fractions of any magnitude, whose product is as near to the limit as units
    allow."""
    words = draw(st.integers(1, (1 << 46) - 1))
    other = min((int(limit) << 32) // words - 1, (1 << 46) - 1)
    return draw(st.sampled_from([1, -1])) * words * UNIT, max(other, 0) * UNIT


def off(found: torch.Tensor, wanted: list[Fraction]) -> float:
    """Returns the greatest error, in exact arithmetic."""
    pairs = zip(found.double().flatten().tolist(), wanted, strict=True)
    return max(float(abs(Fraction(mine) - exact)) for mine, exact in pairs)


def shared(*values: Any) -> list[Any]:
    """Shares tensors by different owners."""
    return [tacit.share(double(value), owner=at % 2) for at, value in enumerate(values)]


# Fractions
# ----------------------------------------------------------------------------


@at_the_limit
@given(pairs=several(factors()))
def test_a_product_is_a_unit_off_at_most_and_right_if_it_is_exact(
    on_shares: OnShares, pairs: list[tuple[float, float]]
) -> None:
    left, right = zip(*pairs, strict=True)

    def program() -> Any:
        x, y = shared(left, right)
        return (x * y).reveal(), (x * 1).reveal(), ((x * 0.5) * 2).reveal()

    product, same, halves = on_shares(program)
    assert off(product, [Fraction(a) * Fraction(b) for a, b in pairs]) <= UNIT
    assert same.tolist() == list(left)
    assert off(halves, [Fraction(a) for a in left]) <= UNIT


@at_the_limit
@given(pairs=several(factors(LIMIT / 8)))
def test_sums_of_products(on_shares: OnShares, pairs: list[tuple[float, float]]) -> None:
    left, right = zip(*pairs, strict=True)
    total = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))

    def program() -> Any:
        x, y = shared(left, right)
        image, kernel = x.reshape(1, 2, 2, 2), y.reshape(1, 2, 2, 2)
        return torch.stack(
            [
                x @ y,
                (x.reshape(1, 8) @ y.reshape(8, 1))[0, 0],
                functional.conv2d(image, kernel)[0, 0, 0, 0],
            ]
        ).reveal()

    assert off(on_shares(program), [total] * 3) <= UNIT


@at_the_limit
@given(x=several(near(LIMIT)), factor=st.floats(1e-6, 1.0), divisor=st.integers(1, 1 << 30))
def test_public_factors_and_divisors(
    on_shares: OnShares, x: list[float], factor: float, divisor: int
) -> None:
    by = [factor, -factor, 1.0 / divisor]

    def program() -> Any:
        (secret,) = shared(x)
        return torch.stack([secret * factor, secret * -factor, secret / divisor]).reveal()

    found, plain = on_shares(program), torch.stack([double(x) * each for each in by])
    assert ((found - plain).abs() <= 1.001 * UNIT + plain.abs() * 2.0**-22).all()


@at_the_limit
@given(x=several(near(LIMIT)), weights=several(st.floats(-1.0, 1.0)), divisor=st.integers(1, 9))
def test_chains_of_public_weights_pooling_and_division(
    on_shares: OnShares, x: list[float], weights: list[float], divisor: int
) -> None:
    row = double(weights)
    # The weights keep the greatest result as large as the greatest number.
    row = row / max(float(row.abs().sum()), 1e-3)
    kernel = row.reshape(1, 1, 2, 4)

    def chain(numbers: Any) -> list[Any]:
        image = numbers.reshape(1, 1, 2, 4)
        pooled = functional.avg_pool2d(image, 2)
        return [
            functional.linear(numbers, row),
            functional.conv2d(image, kernel).flatten(),
            (pooled / divisor * divisor).flatten(),
            functional.max_pool2d(image / divisor, 2).flatten(),
            functional.conv2d(pooled.repeat(1, 1, 2, 2), kernel).flatten(),
        ]

    def program() -> Any:
        return [result.reveal() for result in chain(shared(x)[0])]

    for found, plain in zip(on_shares(program), chain(double(x)), strict=True):
        allowed = 4 * UNIT * divisor + LIMIT * (2 * WEIGHTS * float(row.abs().max()) * 8 + 2.0**-21)
        assert ((found - plain).abs() <= allowed).all(), (found, plain)


@at_the_limit
@given(x=several(near(LIMIT)), deviations=several(near(NARROW), 6))
def test_means_and_variances(on_shares: OnShares, x: list[float], deviations: list[float]) -> None:
    def statistics(numbers: Any, spread: Any) -> list[Any]:
        return [
            numbers.mean(),
            numbers.reshape(2, 4).mean(1),
            spread.var(correction=0),
            (spread / 2).reshape(2, 3).var(1),
            spread.std(correction=0),
            numbers.nanmean(),
            numbers.reshape(2, 4).nanmean(1),
            torch.cov((spread / 2).reshape(2, 3)),
            torch.cov(spread, correction=0),
        ]

    def program() -> Any:
        return [result.reveal() for result in statistics(*shared(x, deviations))]

    # A mean has 22 significant bits. So a standard deviation is right except for the mean's error.
    mean, covariance = LIMIT * 2.0**-22, NARROW**2 * 2.0**-20
    allowed = [mean] * 2 + [4 * UNIT] * 2 + [4 * UNIT + NARROW * 2.0**-22]
    allowed += [mean] * 2 + [covariance] * 2
    wanted = statistics(double(x), double(deviations))
    for found, plain, atol in zip(on_shares(program), wanted, allowed, strict=True):
        assert torch.allclose(found, plain, rtol=2.0**-12, atol=atol), (found, plain)


@at_the_limit
@given(units=st.integers(0, 1 << 20), sign=st.sampled_from([1, -1]))
def test_what_cannot_be_encoded_is_refused(on_shares: OnShares, units: int, sign: int) -> None:
    def program() -> Any:
        with pytest.raises(
            tacit.EncodingError, match="too large for fixed point with 16 fraction bits"
        ):
            tacit.fixed.encode(double([sign * (LIMIT + units * UNIT)]), tacit.fixed.DEFAULT)
        return tacit.share(double([sign * (LIMIT - UNIT)]), owner=0).reveal()

    assert float(on_shares(program)) == sign * (LIMIT - UNIT)


@at_the_limit
@given(bits=several(st.integers(4, 30), 2), more=st.integers(1, 100))
def test_products_at_other_scales(on_shares: OnShares, bits: list[int], more: int) -> None:
    """At scales s and t, products below 2^(62 − s − t) are right if both factors can be encoded."""
    first, second = bits
    limit = 2.0 ** (62 - first - second)
    left = min(2.0 ** (46 - first) - more * 2.0**-first, limit)
    right = math.floor(min(limit / left, 2.0 ** (46 - second)) * 2.0**second - 1) * 2.0**-second

    def program() -> Any:
        x = tacit.share(double([left, -left]), owner=0, scale=first)
        y = tacit.share(double([right, right]), owner=1, scale=second)
        return (x * y).reveal()

    exact = Fraction(left) * Fraction(right)
    scale = min(16, first + second)
    # The last summand is the error of double precision.
    assert off(on_shares(program), [exact, -exact]) <= 2.0**-scale + float(exact) * 2.0**-53


# Normalisation
# ----------------------------------------------------------------------------


@at_the_limit
@given(x=several(near(NORMALISED / 4, 1 << 20), 4), variance=several(st.floats(0.1, 10.0), 2))
def test_results_of_batch_normalisation(
    on_shares: OnShares, x: list[float], variance: list[float]
) -> None:
    """Normalises by secret statistics up to the limit, twice, and computes with the results."""
    norm = nn.BatchNorm1d(2).eval().double()
    norm.running_var.copy_(double(variance))
    # Results are near ±2^22, four times the inputs.
    norm.weight.data.copy_((norm.running_var + norm.eps).sqrt() * 4)
    batch = double(x).reshape(2, 2)

    def chain(layer: Any, numbers: Any) -> list[Any]:
        once = layer(numbers)
        return [
            once,
            layer(once / 4),
            (once / 2**12).square(),
            functional.avg_pool1d(once.unsqueeze(0), 2),
        ]

    def program() -> Any:
        secret = tacit.share_module(norm, owner=0)
        return [result.reveal() for result in chain(secret, tacit.share(batch, owner=1))]

    with torch.no_grad():
        wanted = chain(norm, batch)
    for found, plain in zip(on_shares(program), wanted, strict=True):
        assert torch.allclose(found, plain, rtol=2.0**-18, atol=NORMALISED * 2.0**-20), (
            found,
            plain,
        )


@at_the_limit
@given(deviations=several(near(2.0**11, 1 << 16), 8))
def test_variances_of_normalisations(on_shares: OnShares, deviations: list[float]) -> None:
    """Layer, group and instance normalisation of numbers whose variance is near 2^22."""
    image = double(deviations).reshape(1, 2, 4)

    def normalised(x: Any) -> list[Any]:
        return [
            functional.layer_norm(x, (4,)),
            functional.group_norm(x, 1),
            functional.instance_norm(x.repeat(1, 1, 2)),
            functional.batch_norm(x, None, None, training=True),
        ]

    def program() -> Any:
        return [result.reveal() for result in normalised(tacit.share(image, owner=0))]

    for found, plain in zip(on_shares(program), normalised(image), strict=True):
        assert torch.allclose(found, plain, rtol=2.0**-11, atol=2.0**-11), (found, plain)


# Integers
# ----------------------------------------------------------------------------

#: All of int64, with a preference for its ends.
whole = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-(1 << 63), -(1 << 63) + 3),
    st.integers((1 << 63) - 4, (1 << 63) - 1),
)


def wrapped(number: int, bits: int = 64) -> int:
    """Wraps an integer around to the given number of bits, with a sign."""
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@at_the_limit
@given(x=several(whole), y=several(whole))
def test_integers_are_all_of_their_dtype(on_shares: OnShares, x: list[int], y: list[int]) -> None:
    left, right = torch.tensor(x), torch.tensor(y)

    def program() -> Any:
        a, b = tacit.share(left, owner=0), tacit.share(right, owner=1)
        small = tacit.share(left.to(torch.int8), owner=0)
        results = (
            a + b,
            a * b,
            a - b,
            a < b,
            a == b,
            a == a,
            torch.maximum(a, b),
            small * 3,
            small > 3,
        )
        return [result.reveal().tolist() for result in results]

    pairs = list(zip(x, y, strict=True))
    bytes_ = [wrapped(a, 8) for a in x]
    assert on_shares(program) == [
        [wrapped(a + b) for a, b in pairs],
        [wrapped(a * b) for a, b in pairs],
        [wrapped(a - b) for a, b in pairs],
        [a < b for a, b in pairs],
        [a == b for a, b in pairs],
        [True] * len(x),
        [max(a, b) for a, b in pairs],
        [wrapped(a * 3, 8) for a in bytes_],
        [a > 3 for a in bytes_],
    ]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
@settings(at_the_limit, max_examples=2)
@given(x=several(whole), y=several(whole))
def test_integers_of_fewer_bits_wrap_around(
    on_shares: OnShares, dtype: torch.dtype, x: list[int], y: list[int]
) -> None:
    """They wrap around as PyTorch's do, also before comparisons and divisions, and also at their
    ends."""
    ends = [torch.iinfo(dtype).min, torch.iinfo(dtype).max, 1]
    left = torch.cat([torch.tensor(x).to(dtype), torch.tensor(ends + ends, dtype=dtype)])
    right = torch.cat(
        [torch.tensor(y).to(dtype), torch.tensor([*ends, 1, 1, ends[0]], dtype=dtype)]
    )

    def computed(a: Any, b: Any) -> list[Any]:
        results = [a + b, a * b, a - b, a + b < a, a - b == b, torch.maximum(a * 3, b), a * b > 3]
        return [*results, (a + b) // 3, (a * b) % 5]

    def program() -> Any:
        results = computed(tacit.share(left, owner=0), tacit.share(right, owner=1))
        return [result.reveal() for result in results]

    for found, plain in zip(on_shares(program), computed(left, right), strict=True):
        assert found.dtype == plain.dtype
        assert found.tolist() == plain.tolist()


@settings(at_the_limit, max_examples=2)
@given(x=several(whole, 4), y=several(whole.filter(bool), 4), divisor=whole.filter(bool))
def test_integers_are_divided_exactly(
    on_shares: OnShares, x: list[int], y: list[int], divisor: int
) -> None:
    left, right = torch.tensor(x), torch.tensor(y)

    def program() -> Any:
        a, b = tacit.share(left, owner=0), tacit.share(right, owner=1)
        return [result.reveal().tolist() for result in (a // b, a % b, a // divisor, a % divisor)]

    quotients, rests, by_public, left_over = on_shares(program)
    for a, b, quotient, rest, one, over in zip(
        x, y, quotients, rests, by_public, left_over, strict=True
    ):
        assert (quotient, rest) == (wrapped(a // b), a % b), (a, b)
        assert (one, over) == (wrapped(a // divisor), a % divisor), (a, divisor)


@at_the_limit
@given(x=several(st.integers(1, 1000)), sign=st.sampled_from([1, -1]))
def test_integers_meet_fractions_below_the_limit(
    on_shares: OnShares, x: list[int], sign: int
) -> None:
    numbers = [sign * ((1 << 30) - each) for each in x]

    def program() -> Any:
        a = tacit.share(torch.tensor(numbers), owner=0)
        return (a + 0.25).double().reveal(), (a * 0.5).reveal(), a.double().mean().reveal()

    added, halves, mean = on_shares(program)
    # In single precision with 24 significant bits, except for the last bit.
    assert torch.allclose(added, double(numbers) + 0.25, rtol=2.0**-23)
    assert torch.allclose(halves.double(), double(numbers) * 0.5, rtol=2.0**-22)
    assert abs(float(mean) - sum(numbers) / len(numbers)) <= LIMIT * 2.0**-22


# Comparisons
# ----------------------------------------------------------------------------


@at_the_limit
@given(x=several(near(LIMIT)), y=several(near(LIMIT)))
def test_comparisons_of_all_fractions(on_shares: OnShares, x: list[float], y: list[float]) -> None:
    left, right = double(x), double(y)

    def compared(a: Any, b: Any) -> list[Any]:
        results = (
            a < b,
            a >= b,
            a == b,
            a == a,
            torch.maximum(a, b),
            torch.relu(a),
            a.abs(),
            a.sort()[0],
        )
        return [*results, a.amax(), b.clamp(-1.0, 1.0)]

    def program() -> Any:
        return [result.reveal() for result in compared(*shared(x, y))]

    for found, plain in zip(on_shares(program), compared(left, right), strict=True):
        assert torch.equal(found, plain)


@at_the_limit
@given(x=several(near(NARROW)), scale=st.sampled_from([8, 16, 24]))
def test_comparisons_of_a_narrow_width(on_shares: OnShares, x: list[float], scale: int) -> None:
    """Magnitudes and differences below 2^15 at any scale, and functions that compare inside."""
    # As near to the limit as numbers of that scale can be.
    numbers = double(x) if scale > 8 else (double(x) * 2.0**8).trunc() * 2.0**-8
    numbers = numbers - numbers.sign() * 2.0**-8

    def compared(a: Any) -> list[Any]:
        half = a * 0.5
        results = [a > 0, torch.relu(a), a.abs(), torch.maximum(half, -half)]
        return [*results, functional.gelu(a), torch.sigmoid(a), torch.exp(-a.abs()), torch.atan(a)]

    def program() -> Any:
        with tacit.comparison_width(32):
            return [
                result.reveal() for result in compared(tacit.share(numbers, owner=0, scale=scale))
            ]

    for found, plain in zip(on_shares(program), compared(numbers), strict=True):
        if plain.dtype == torch.bool:
            assert torch.equal(found, plain)
        else:
            assert torch.allclose(found, plain, atol=2.0**-10), (found, plain)


@pytest.mark.parametrize("bits", [8, 64])
@at_the_limit
@given(less=several(st.integers(1, 6)), sign=several(st.sampled_from([1, -1])))
def test_comparisons_at_both_ends_of_widths(
    on_shares: OnShares, bits: int, less: list[int], sign: list[int]
) -> None:
    """Fractions and integers whose words need all bits, up to the bits that fractions have."""
    limit = 1 << (bits - 1)
    whole = torch.tensor([one * (limit - each) for each, one in zip(less, sign, strict=True)])
    words = [one * (min(limit, 1 << 46) - each) for each, one in zip(less, sign, strict=True)]
    fractions = double(words) * UNIT

    def compared(a: Any, half: Any) -> list[Any]:
        return [a > 0, a < half, a == a, a == half, torch.relu(a), a.abs(), torch.maximum(a, half)]

    def program() -> Any:
        with tacit.comparison_width(bits):
            results = []
            for numbers in (whole, fractions):
                a = tacit.share(numbers, owner=0)
                half = tacit.share(numbers // 2 if numbers is whole else numbers / 2, owner=1)
                results += [result.reveal() for result in compared(a, half)]
            return results

    halves = (fractions / UNIT / 2).round() * UNIT
    wanted = compared(whole, whole // 2) + compared(fractions, halves)
    for found, plain in zip(on_shares(program), wanted, strict=True):
        assert torch.equal(found, plain), (found, plain)


def test_a_comparison_width_beyond_its_ends_is_refused() -> None:
    def program() -> None:
        for bits in (7, 65):
            with (
                pytest.raises(tacit.MisuseError, match="8 to 64 bits"),
                tacit.comparison_width(bits),
            ):
                pass

    tacit.launch(program)


# Elements
# ----------------------------------------------------------------------------


def test_a_tensor_of_more_elements_than_the_limit_is_refused() -> None:
    told = (
        "at most 134217728 elements are shared at once",
        "party 0 refused tacit.share of its tensor",
    )

    def program() -> None:
        with pytest.raises(tacit.MisuseError, match=told[tacit.session().party]):
            tacit.share(torch.zeros(1).expand((1 << 27) + 1), owner=0)

    tacit.launch(program, parties=2, protocol="plain")


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["plain", "additive"])
def test_a_tensor_of_as_many_elements_as_the_limit(protocol: str) -> None:
    """Shares the tensor, computes locally, and reveals it to its owner. Takes long, because its
    shares have gigabytes."""

    def program() -> bool:
        numbers = torch.arange(1 << 27) if tacit.session().party == 0 else None
        secret = tacit.share(numbers, owner=0)
        assert secret.shape == (1 << 27,)
        found = (secret + 1).reveal(to=0)
        return found is None or torch.equal(found, torch.arange(1, (1 << 27) + 1))

    source = "dealer" if protocol == "additive" else None
    assert all(tacit.launch(program, parties=2, protocol=protocol, source=source, timeout=600.0))


# Weights that are trained
# ----------------------------------------------------------------------------------


@at_the_limit
@given(weight=near(2.0**10, 100), x=st.integers(1, 100))
def test_products_by_weights_that_are_trained(on_shares: OnShares, weight: float, x: int) -> None:
    """Weights of 20 fraction bits times inputs of 16 fraction bits are right below 2^26."""
    number = 2.0**16 - x
    linear = nn.Linear(2, 1, bias=False)
    linear.weight.data = torch.tensor([[weight, 0.0]])

    def program() -> Any:
        secret = tacit.share_module(linear, owner=0, trainable=True)
        assert secret.weight._scale.bits == 20
        return secret(tacit.share(torch.tensor([[number, 1.0]]), owner=1)).double().reveal()

    exact = float(linear.weight.data[0, 0]) * number
    assert abs(float(on_shares(program)) - exact) <= max(UNIT, abs(exact) * 2.0**-23)
