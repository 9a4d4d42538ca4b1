"""Random draws of the parties, private or common, in threads and in processes."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.randomness import generators
from tacit.randomness.generators import _drawing, _takes_generator
from tacit.sessions import current_session

TRANSPORTS = ["memory", "tcp"]

#: Ways to draw from PyTorch's default generator: each operator that draws, and functions above
#: them.
DRAWS: dict[str, Callable[[], Any]] = {
    "rand": lambda: torch.rand(5),
    "randn": lambda: torch.randn(5),
    "randint": lambda: torch.randint(1000, (5,)),
    "randperm": lambda: torch.randperm(50),
    "rand_like": lambda: torch.rand_like(torch.empty(5)),
    "normal": lambda: torch.normal(torch.zeros(5), torch.ones(5)),
    "bernoulli": lambda: torch.bernoulli(torch.full((90,), 0.5)),
    "bernoulli out": lambda: torch.bernoulli(torch.full((90,), 0.5), out=torch.empty(90)),
    "multinomial": lambda: torch.ones(90).multinomial(50),
    "multinomial with replacement": lambda: torch.ones(90).multinomial(50, replacement=True),
    "poisson": lambda: torch.poisson(torch.full((20,), 100.0)),
    "binomial": lambda: torch.binomial(torch.full((20,), 100.0), torch.full((20,), 0.5)),
    "gamma": lambda: torch._standard_gamma(torch.ones(5)),
    "dirichlet": lambda: torch.distributions.Dirichlet(torch.ones(5)).sample(),
    "uniform_": lambda: torch.empty(5).uniform_(),
    "uniform_ of many": lambda: torch.empty(100_000).uniform_(),
    "normal_": lambda: torch.empty(50).normal_(),
    "random_": lambda: torch.empty(5).random_(),
    "random_ below": lambda: torch.empty(5).random_(1000),
    "random_ between": lambda: torch.empty(5).random_(5, 1000),
    "bernoulli_": lambda: torch.empty(90).bernoulli_(0.5),
    "bernoulli_ of each": lambda: torch.empty(90).bernoulli_(torch.full((90,), 0.5)),
    "exponential_": lambda: torch.empty(5).exponential_(),
    "geometric_": lambda: torch.empty(50).geometric_(0.01),
    "cauchy_": lambda: torch.empty(5).cauchy_(),
    "log_normal_": lambda: torch.empty(5).log_normal_(),
    "dropout": lambda: nn.functional.dropout(torch.ones(90)),
    "dropout in place": lambda: nn.functional.dropout(torch.ones(90), inplace=True),
    "native dropout": lambda: torch.native_dropout(torch.ones(90), 0.5, True)[0],
    "alpha dropout": lambda: nn.functional.alpha_dropout(torch.ones(90), training=True),
    "feature dropout": lambda: nn.functional.dropout2d(torch.ones(1, 90, 2, 2)),
    "rrelu": lambda: nn.functional.rrelu(-torch.ones(90), training=True),
    "rrelu in place": lambda: nn.functional.rrelu_(-torch.ones(90), training=True),
    "attention": lambda: nn.functional.scaled_dot_product_attention(
        *torch.ones(3, 1, 9, 4).unbind(), dropout_p=0.5
    ),
    "recurrent": lambda: nn.LSTM(3, 3, 2, dropout=0.5)(torch.ones(9, 3))[0].detach(),
    "linear": lambda: nn.Linear(4, 3).weight.detach(),
    "initialisation": lambda: nn.init.orthogonal_(torch.empty(4, 4)),
    "gumbel": lambda: nn.functional.gumbel_softmax(torch.zeros(9)),
    "fractional pooling": lambda: nn.functional.fractional_max_pool2d(
        torch.arange(10_000.0).view(4, 50, 50), 2, 23
    ),
    "shuffled data": lambda: torch.stack(
        list(torch.utils.data.DataLoader(torch.arange(50), shuffle=True))
    ),
    "split": lambda: torch.tensor(torch.utils.data.random_split(range(90), [45, 45])[0].indices),
    "distribution": lambda: torch.distributions.Normal(0.0, 1.0).sample((5,)),
    "named by position": lambda: torch.poisson(torch.full((20,), 100.0), torch.default_generator),
    "inference": torch.inference_mode()(lambda: torch.rand(5)),
}


def all_draws() -> list[torch.Tensor]:
    """Draws in each way."""
    return [draw() for draw in DRAWS.values()]


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[Any]]:
    """Draws in each setting, and checks that the process's generator is unchanged."""

    def seeded() -> list[torch.Tensor]:
        torch.manual_seed(tacit.session().party // 2)
        return all_draws()

    before = torch.get_rng_state()
    found = {"unseeded": tacit.launch(all_draws), "seeded": tacit.launch(seeded)}
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(0)
    return found | {"alone": [all_draws()]}


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> list[str]:
    """Returns the ways of drawing that gave equal values in both results."""
    return [name for name, x, y in zip(DRAWS, one, other, strict=True) if torch.equal(x, y)]


def test_all_that_draws_is_known() -> None:
    forms = {
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::") and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU")
    }
    packets = {
        (getattr(torch.ops.aten, form.partition(".")[0]), form.partition(".")[2]) for form in forms
    }
    drawing = {
        getattr(packet, overload or "default").name()
        for packet, overload in packets
        if _takes_generator(getattr(packet, overload or "default"))
    }
    assert drawing == {form.name() for form in _drawing()}


def test_each_thread_draws_for_itself(drawn: dict[str, list[Any]]) -> None:
    zero, one, two = drawn["unseeded"]
    assert same(zero, one) == same(one, two) == same(zero, two) == []


def test_a_seed_in_a_thread_does_what_it_does_in_a_process(drawn: dict[str, list[Any]]) -> None:
    zero, one, two = drawn["seeded"]
    assert same(zero, one) == same(zero, drawn["alone"][0]) == list(DRAWS)
    assert same(zero, two) == []


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_states_and_named_generators(transport: str) -> None:
    def program() -> list[Any]:
        party = tacit.session().party
        torch.manual_seed(7)
        state = torch.get_rng_state()
        first = torch.rand(3)
        with torch.random.fork_rng():
            torch.manual_seed(party)
            forked = torch.rand(3)
        second = torch.rand(3)
        torch.set_rng_state(state)
        assert torch.initial_seed() == 7
        assert torch.equal(torch.rand(3), first)
        assert torch.equal(torch.rand(3), second)
        named = torch.Generator().manual_seed(7)
        assert torch.equal(torch.rand(3, generator=named), first)
        state = torch.get_rng_state()
        torch.poisson(torch.ones(3), named)
        assert torch.equal(torch.get_rng_state(), state)
        torch.seed()
        return [first, second, forked, torch.rand(3)]

    zero, one, two = tacit.launch(program, transport=transport)
    for shared in (0, 1):
        assert torch.equal(zero[shared], one[shared])
        assert torch.equal(zero[shared], two[shared])
    for own in (2, 3):
        assert len({tuple(party[own].tolist()) for party in (zero, one, two)}) == 3


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_public_values_are_the_same_for_all(transport: str) -> None:
    def program() -> tuple[list[Any], list[Any]]:
        torch.manual_seed(tacit.session().party)
        own = [torch.rand(3)]
        with tacit.public_random() as coin:
            public = [torch.tensor([coin >> 1]), nn.Linear(4, 3).weight.detach(), torch.rand(3)]
            with tacit.public_random() as other:
                public += [torch.tensor([other >> 1]), torch.rand(3)]
            public.append(torch.rand(3))
        own.append(torch.rand(3))
        with suppress(ValueError), tacit.public_random():
            public.append(torch.rand(3))
            raise ValueError
        own.append(torch.rand(3))
        return public, own

    found = tacit.launch(program, transport=transport)
    for party, (public, own) in enumerate(found):
        assert all(map(torch.equal, public, found[0][0]))
        # The private draws are as if the public ones had not happened.
        alone = torch.Generator().manual_seed(party)
        assert all(torch.equal(value, torch.rand(3, generator=alone)) for value in own)
    assert len({tuple(value.flatten().tolist()) for value in found[0][0]}) == 7
    assert len({tuple(own[0].tolist()) for _, own in found}) == 3


def test_public_layers_and_own_noise() -> None:
    def program() -> torch.Tensor:
        with tacit.public_random():
            projection = nn.Linear(4, 3, bias=False)
        secret = tacit.share(torch.ones(1, 4), owner=0)
        noise = sum(tacit.share(torch.rand(3), owner=owner) for owner in range(3))
        return torch.stack(
            [projection(secret)[0].reveal(), projection.weight.detach().sum(1), noise.reveal()]
        )

    found = tacit.launch(program)
    for got, expected, _ in found:
        assert torch.allclose(got, expected, atol=1e-3)
    assert torch.equal(found[0], found[1])


@pytest.mark.parametrize(
    "setting", [{}, {"parties": 2, "protocol": "additive", "source": "dealer"}]
)
def test_every_party_has_a_part_in_a_coin(
    setting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parties but one always draw the same bytes, and the coin still differs each time."""
    urandom, parties = os.urandom, setting.get("parties", 3)

    def program() -> list[bytes]:
        return [generators.public_coin() for _ in range(2)]

    def coins(honest: int | None) -> list[bytes]:
        def draw(count: int) -> bytes:
            current = current_session()
            if current is None or current.party == honest:
                return urandom(count)
            return bytes([7 * current.party + 1]) * count

        monkeypatch.setattr(generators.os, "urandom", draw)
        found, *others = tacit.launch(program, **setting)
        assert all(other == found for other in others)
        return found

    for honest in range(parties):
        one, other = coins(honest)
        # Each of 128 bits differs with probability one half; the bound is eight standard
        # deviations.
        assert abs((int.from_bytes(one) ^ int.from_bytes(other)).bit_count() - 64) < 46
    one, other = coins(None)
    assert one == other


def test_a_coin_needs_a_session() -> None:
    with pytest.raises(tacit.MisuseError, match="no session"), tacit.public_random():
        pass


def test_parties_that_do_not_all_draw_alike_are_named() -> None:
    def program() -> None:
        secret = tacit.share(torch.ones(2), owner=0)
        if tacit.session().party == 1:
            secret.reveal()
        else:
            with tacit.public_random():
                pass

    with pytest.raises(tacit.DesyncError):
        tacit.launch(program)


def test_a_thread_that_is_no_party_draws_from_the_process() -> None:
    def program() -> list[torch.Tensor]:
        drawn = []
        if tacit.session().party == 0:
            thread = threading.Thread(target=lambda: drawn.append(torch.rand(3)))
            thread.start()
            thread.join()
        return drawn

    torch.manual_seed(11)
    found = tacit.launch(program)
    torch.manual_seed(11)
    assert torch.equal(found[0][0], torch.rand(3))
