"""Secret random samples: their distributions, each party's contribution, and PyTorch's random
functions on secret tensors.

Each limit here is exceeded by chance with probability 10^-8.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.randomness import sampling

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"parties": 2, "protocol": "plain"},
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}

#: Number of samples for each test of a distribution.
SAMPLES = 100_000

#: Limits that chi-square exceeds with probability 10^-8, by degrees of freedom.
CHI_SQUARE = {1: 32.84, 3: 40.13, 9: 55.44, 11: 59.83, 23: 83.08}

WEIGHTS = torch.tensor([1.0, 0.0, 2.0, 3.0, 0.5])


def gauss(x: torch.Tensor) -> torch.Tensor:
    """The normal distribution function."""
    return (1 + torch.erf(x / math.sqrt(2))) / 2


#: Continuous distributions: how to draw them, and their distribution function.
CONTINUOUS: dict[str, tuple[Callable[[Any, int], Any], Callable[[torch.Tensor], torch.Tensor]]] = {
    "uniform": (lambda r, n: r.uniform(n, -1, 3), lambda x: ((x + 1) / 4).clamp(0, 1)),
    "normal": (lambda r, n: r.normal((n,), 2, 3), lambda x: gauss((x - 2) / 3)),
    "exponential": (lambda r, n: r.exponential(n, 0.5), lambda x: 1 - torch.exp(-x / 2)),
    "laplace": (
        lambda r, n: r.laplace(n, 1, 2),
        lambda x: 0.5 - 0.5 * (x - 1).sign() * torch.expm1(-(x - 1).abs() / 2),
    ),
}

#: Discrete distributions: how to draw them, their values, and the probabilities.
DISCRETE: dict[str, tuple[Callable[[Any, int], Any], list[float], list[float]]] = {
    "rademacher": (lambda r, n: r.rademacher(n), [-1, 1], [0.5, 0.5]),
    "bernoulli": (lambda r, n: r.bernoulli(0.3, n), [0, 1], [0.7, 0.3]),
    "bernoulli of half": (lambda r, n: r.bernoulli(0.5, n), [0, 1], [0.5, 0.5]),
    "secret bernoulli": (
        lambda r, n: r.bernoulli(tacit.share(torch.full((n,), 0.3), owner=0)),
        [0, 1],
        [0.7, 0.3],
    ),
    "choice": (lambda r, n: r.choice(WEIGHTS, n), [0, 2, 3, 4], [2 / 13, 4 / 13, 6 / 13, 1 / 13]),
    "choice by a secret": (
        lambda r, n: r.choice(tacit.share(WEIGHTS, owner=1), (n,)),
        [0, 2, 3, 4],
        [2 / 13, 4 / 13, 6 / 13, 1 / 13],
    ),
    "choice of ten": (lambda r, n: r.choice([1] * 10, n), list(range(10)), [0.1] * 10),
}


def distance(found: torch.Tensor, distribution: Callable[[torch.Tensor], torch.Tensor]) -> float:
    """Kolmogorov-Smirnov statistic, as a multiple of the limit that it exceeds with probability
    10^-8."""
    x = found.double().sort().values
    steps = torch.arange(len(x) + 1).double() / len(x)
    at = distribution(x)
    greatest = torch.maximum((at - steps[:-1]).abs(), (at - steps[1:]).abs()).max()
    return float(greatest) / math.sqrt(math.log(2e8) / 2 / len(x))


def test_no_more_is_drawn_without_replacement_than_there_is() -> None:
    def program() -> None:
        weights = tacit.share(torch.ones(3), owner=0)
        for count in (4, 0):
            with pytest.raises(
                tacit.MisuseError, match=f"of 3 weights draws 1 to 3 .*, not {count}"
            ):
                weights.multinomial(count)

    tacit.launch(program, protocol="plain", parties=2)


@pytest.mark.parametrize("setting", SETTINGS)
def test_distributions(setting: str) -> None:
    size, options = SAMPLES, SETTINGS[setting]

    def program() -> dict[str, torch.Tensor]:
        ways = [*CONTINUOUS.items(), *DISCRETE.items()]
        return {name: way[0](tacit.random, size).reveal() for name, way in ways}

    found, *others = tacit.launch(program, **options)
    for name, (_, distribution) in CONTINUOUS.items():
        assert found[name].dtype == torch.float32
        assert found[name].shape == (size,)
        assert distance(found[name], distribution) < 1, name
    for name, (_, values, probabilities) in DISCRETE.items():
        assert chi_square(found[name], values, probabilities) < CHI_SQUARE[len(values) - 1], name
    assert all(torch.equal(other[name], found[name]) for other in others for name in found)


def chi_square(found: torch.Tensor, values: list[float], probabilities: list[float]) -> float:
    """Chi-square statistic for the given values; infinite if another value occurs."""
    counts = torch.stack([(found == value).sum() for value in values])
    expected = torch.tensor(probabilities) * found.numel()
    return (
        float(((counts - expected) ** 2 / expected).sum())
        if counts.sum() == found.numel()
        else math.inf
    )


@pytest.mark.parametrize("setting", ["replicated", "additive"])
def test_one_party_that_draws_well_is_enough(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All other parties always draw the same byte: zero, or a byte of their own with half of its
    bits set."""
    size, options = SAMPLES // 10, SETTINGS[setting]
    ways = {name: way[0] for name, way in (CONTINUOUS | DISCRETE).items()}
    urandom, parties = sampling.os.urandom, options.get("parties", 3)

    def program() -> dict[str, torch.Tensor]:
        found = {name: draw(tacit.random, size).reveal() for name, draw in ways.items()}
        return found | {
            "different": tacit.random.choice([1.0] * 200, 100, replacement=False).reveal()
        }

    def drawn(honest: int | None, stuck: Callable[[int], int]) -> dict[str, torch.Tensor]:
        def draw(count: int) -> bytes:
            party = tacit.session().party
            return urandom(count) if party == honest else bytes([stuck(party)]) * count

        monkeypatch.setattr("tacit.randomness.sampling.os.urandom", draw)
        found: dict[str, torch.Tensor] = tacit.launch(program, **options)[0]
        return found

    def wrong(found: dict[str, torch.Tensor]) -> list[str]:
        # The sum of a hundred out of two hundred has a standard deviation of 408.
        is_wrong = {"different": abs(int(found["different"].sum()) - 100 * 199 // 2) > 6 * 408}
        is_wrong |= {name: distance(found[name], way[1]) >= 1 for name, way in CONTINUOUS.items()}
        for name, (_, values, probabilities) in DISCRETE.items():
            most = CHI_SQUARE[len(values) - 1]
            is_wrong[name] = chi_square(found[name], values, probabilities) >= most
        return [name for name, each in is_wrong.items() if each]

    for honest in range(parties):
        for stuck in (lambda _: 0, lambda party: (0x35, 0xC6, 0x9A)[party]):
            assert not wrong(drawn(honest, stuck)), honest
    # If no party draws well, every test must notice.
    assert set(wrong(drawn(None, lambda _: 0))) == {*ways, "different"}


def test_nothing_is_shown_while_samples_are_drawn() -> None:
    """Values that are drawn in public, or opened meanwhile, are not secret, whichever party
    contributed to them."""
    shows = {"broadcast", "gather", "reveal", "reveal_bits", "seal"}

    class Silent:
        """A session's core that fails when a value is opened or published."""

        def __init__(self, core: Any) -> None:
            self._core = core

        def __getattr__(self, name: str) -> Any:
            assert name not in shows, f"{name} while samples are drawn"
            return getattr(self._core, name)

    def program() -> None:
        current, random = tacit.session(), tacit.random
        weights, x = tacit.share(WEIGHTS, owner=0), tacit.share(torch.ones(6, 4), owner=0)
        current.core = Silent(current.core)  # type: ignore[assignment]
        for draw, *_ in CONTINUOUS.values():
            draw(random, 3)
        for name in ("rademacher", "bernoulli", "choice", "choice of ten"):
            DISCRETE[name][0](random, 3)
        random.bernoulli(weights / 4)
        random.choice(weights, (3,))
        random.choice([1.0] * 5, 2, replacement=False)
        random.permutation(6)
        tacit.shuffle(x, x > 0)
        nn.functional.dropout(x)
        torch.randn_like(x)

    tacit.launch(program)


@pytest.mark.parametrize("setting", SETTINGS)
def test_orders_and_draws_without_replacement(setting: str) -> None:
    """Every order of four is equally likely. The second of two draws has its conditional
    probability."""
    options, times = SETTINGS[setting], 1000
    rows = WEIGHTS.repeat(SAMPLES // 2, 1)

    def program() -> tuple[torch.Tensor, ...]:
        orders = torch.stack([tacit.random.permutation(4) for _ in range(times)])
        pairs = tacit.share(rows, owner=0).multinomial(2)
        return orders.reveal(), pairs.reveal()

    orders, pairs = tacit.launch(program, **options)[0]
    possible = torch.tensor(list(itertools.permutations(range(4))))
    counts = (orders[:, None] == possible).all(-1).sum(0)
    assert counts.sum() == times
    assert ((counts - times / 24) ** 2 / (times / 24)).sum() < CHI_SQUARE[23]
    weight = dict(enumerate(WEIGHTS.tolist()))
    total, square = sum(weight.values()), 0.0
    drawn = list(itertools.permutations([at for at in weight if weight[at]], 2))
    for first, second in drawn:
        count = int(((pairs[:, 0] == first) & (pairs[:, 1] == second)).sum())
        expected = len(rows) * weight[first] / total * weight[second] / (total - weight[first])
        square += (count - expected) ** 2 / expected
    assert square < CHI_SQUARE[len(drawn) - 1]


def test_columns_have_the_probabilities_of_their_weights() -> None:
    generator = torch.Generator().manual_seed(1)
    for weights in (torch.rand(3, 16, generator=generator) ** 4, torch.eye(2), torch.ones(1, 8)):
        bits = sampling._table(weights)
        powers = 2 ** torch.arange(sampling.PRECISION)
        stays = (bits[..., : sampling.PRECISION] * powers).sum(-1) / 2.0**sampling.PRECISION
        others = (
            bits[..., sampling.PRECISION :] * powers[: bits.shape[-1] - sampling.PRECISION]
        ).sum(-1)
        mass = stays.double().scatter_add(1, others, 1 - stays.double()) / weights.shape[1]
        assert torch.allclose(
            mass, (weights / weights.sum(1, keepdim=True)).double(), rtol=0, atol=1e-7
        )


def test_shapes_scales_and_arguments() -> None:
    def program() -> list[Any]:
        random = tacit.random
        with tacit.fraction_bits(3):
            coarse = random.normal((50, 4)), random.uniform(200), random.laplace(200)
        with tacit.fraction_bits(24):
            fine = random.normal(200)
        return [
            random.permutation(30).reveal(),
            random.choice(WEIGHTS, 4, replacement=False).reveal(),
            random.choice([2.0], 3).reveal(),
            random.bernoulli(torch.tensor([0.0, 1.0]), (9, 2)).reveal(),
            random.uniform(()).reveal(),
            random.normal((2, 0)).reveal(),
            random.exponential(3, dtype=torch.float64).reveal(),
            *(each.reveal() for each in coarse),
            fine.reveal(),
        ]

    order, chosen, one, sure, number, none, wide, *coarse, fine = tacit.launch(program)[0]
    assert torch.equal(order.sort().values, torch.arange(30))
    assert torch.equal(chosen.sort().values, torch.tensor([0, 2, 3, 4]))
    assert torch.equal(one, torch.zeros(3, dtype=torch.int64))
    assert torch.equal(sure, torch.tensor([[False, True]] * 9))
    assert 0 <= number < 1
    assert none.shape == (2, 0)
    assert wide.dtype == torch.float64
    assert coarse[0].shape == (50, 4)
    assert all(torch.equal(each * 8, (each * 8).round()) for each in coarse)
    assert not torch.equal(fine * 2**16, (fine * 2**16).round())


def test_mistakes_are_named() -> None:
    def program() -> None:
        random, x = tacit.random, tacit.share(torch.ones(3), owner=0)
        for wrong, says in (
            (lambda: random.uniform(3, 1, 0), "the first must not be greater"),
            (lambda: random.normal(3, 0, -1), "std=-1"),
            (lambda: random.exponential(3, 0), "rate=0"),
            (lambda: random.uniform(-3), "of shape"),
            (lambda: random.normal(3, dtype=torch.int64), "floating-point"),
            (lambda: random.bernoulli(1.5, 3), "from 0 to 1"),
            (lambda: random.bernoulli(x, 3), "has their shape"),
            (lambda: random.bernoulli(torch.ones(4) / 2, 3), "probabilities of shape"),
            (lambda: random.choice([1.0, -1.0], 3), "none of them negative"),
            (lambda: random.choice(WEIGHTS, 5, replacement=False), "choice.. of 4 without"),
            (lambda: random.choice([1, 5000], 1, replacement=False), "factor of at most"),
            (lambda: random.choice(x, 2, replacement=False), "with replacement"),
            (lambda: x.uniform_(generator=torch.Generator()), "a generator that is named"),
        ):
            with pytest.raises(tacit.MisuseError, match=says):
                wrong()

    tacit.launch(program, **SETTINGS["plain"])


def test_parties_that_draw_differently_are_told() -> None:
    def program() -> None:
        tacit.random.uniform(3, 0, 1 + tacit.session().party).reveal()

    with pytest.raises(tacit.TacitError, match="public"):
        tacit.launch(program)


# PyTorch's random functions on secret tensors
# ----------------------------------------------------------------------

DRAWS: dict[str, tuple[Callable[[Any], Any], Callable[[torch.Tensor], torch.Tensor]]] = {
    "rand_like": (torch.rand_like, lambda x: x.clamp(0, 1)),
    "randn_like": (torch.randn_like, gauss),
    "uniform_": (lambda x: x.clone().uniform_(2, 4), lambda x: (x / 2 - 1).clamp(0, 1)),
    "normal_": (lambda x: x.clone().normal_(1, 2), lambda x: gauss((x - 1) / 2)),
    "exponential_": (lambda x: x.clone().exponential_(2), lambda x: 1 - torch.exp(-2 * x)),
    "normal by the mean": (lambda x: torch.normal(x + 1, 2.0), lambda x: gauss((x - 1) / 2)),
    "normal by both": (
        lambda x: torch.normal(torch.ones(100, 100), x + 2),
        lambda x: gauss((x - 1) / 2),
    ),
    "init": (nn.init.xavier_uniform_, lambda x: (x / math.sqrt(6 / 200) / 2 + 0.5).clamp(0, 1)),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_samples_like_a_secret_tensor(setting: str) -> None:
    def program() -> list[Any]:
        x = tacit.share(torch.zeros(100, 100), owner=0)
        found: list[Any] = [draw(x).reveal() for draw, _ in DRAWS.values()]
        with tacit.public_random():
            public = [draw(x) for draw, _ in DRAWS.values()]
        found += [
            each.reveal() if isinstance(each, tacit.SecretTensor) else each for each in public
        ]
        return found

    for found in zip(*tacit.launch(program, **SETTINGS[setting]), strict=True):
        assert all(torch.equal(found[0], other) for other in found)
    for at, found in enumerate(tacit.launch(program, **SETTINGS[setting])[0]):
        assert distance(found.flatten(), list(DRAWS.values())[at % len(DRAWS)][1]) < 1


@pytest.mark.parametrize("setting", SETTINGS)
def test_multinomial(setting: str) -> None:
    rows = torch.stack([WEIGHTS, WEIGHTS.flip(0)])

    def program() -> list[Any]:
        weights = tacit.share(rows, owner=0)
        with tacit.public_random():
            public = weights.multinomial(5000, replacement=True).reveal()
        return [
            weights.multinomial(5000, replacement=True).reveal(),
            public,
            weights.multinomial(1).reveal(),
            weights.multinomial(4).reveal(),
            torch.bernoulli((weights > 1).float()).reveal(),
        ]

    *found, one, different, sure = tacit.launch(program, **SETTINGS[setting])[0]
    assert one.shape == (2, 1)
    # All numbers with a positive weight are drawn.
    assert different.sort().values.tolist() == [[0, 2, 3, 4], [0, 1, 2, 4]]
    assert torch.equal(sure, (rows > 1).float())
    for first, second in found:
        for drawn in (first, 4 - second):
            counts = torch.bincount(drawn, minlength=5)[[0, 2, 3, 4]]
            expected = WEIGHTS[[0, 2, 3, 4]] / WEIGHTS.sum() * 5000
            assert counts.sum() == 5000
            assert ((counts - expected) ** 2 / expected).sum() < CHI_SQUARE[3]


@pytest.mark.parametrize("setting", SETTINGS)
def test_dropout(setting: str) -> None:
    values = torch.arange(1, 5001.0).reshape(50, 10, 10)
    ways: list[Callable[[Any], Any]] = [
        lambda x: nn.functional.dropout(x, 0.25),
        lambda x: torch.native_dropout(x, 0.25, True)[0],
        lambda x: nn.functional.dropout1d(x, 0.25),
        lambda x: x * torch.bernoulli(x.detach(), 0.75) / 0.75,
        lambda x: x * torch.bernoulli(0 * x.detach() + 0.75) / 0.75,
    ]

    def program() -> list[Any]:
        found = []
        for way in ways:
            x = tacit.share(values, owner=0).requires_grad_()
            y = way(x)
            y.sum().backward()
            with tacit.public_random():
                public = way(x)
            found.append((y.reveal(), x.grad.reveal(), public.reveal()))
        return found

    for y, gradient, public in tacit.launch(program, **SETTINGS[setting])[0]:
        for kept in (y, public):
            share = kept != 0
            assert torch.allclose(kept[share], values[share] / 0.75, rtol=1e-4)
            # A binomial distribution over at least 500 channels; the bound is six standard
            # deviations.
            assert abs(share.double().mean() - 0.75) < 6 * math.sqrt(0.25 * 0.75 / 500)
        assert torch.allclose(gradient, (y != 0) / 0.75, atol=1e-3)
    # At probability 0 or 1, everything or nothing is kept.
    assert all(
        torch.equal(
            tacit.launch(
                lambda p=p: torch.native_dropout(tacit.share(values, owner=0), p, True)[0].reveal()
            )[0],
            kept,
        )
        for p, kept in ((0.0, values), (1.0, 0 * values))
    )
