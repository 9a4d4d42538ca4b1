"""Public values that differ between the parties: the error names the place, and no party gets a
wrong value."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.operators.dispatch.agreement import _bytes

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}


def of(party: int) -> torch.Tensor:
    """Makes a tensor that differs in each party."""
    return torch.full((2, 2), 1.0 + party)


#: Mistakes: what party `me` does with a secret x of shape (2, 2), and the text that the error
#: contains.
MISTAKES: dict[str, tuple[Callable[[Any, int], Any], str]] = {
    "a sum": (lambda x, me: x + of(me), "aten.add.Tensor"),
    "a product": (lambda x, me: x * of(me), "aten.mul.Tensor"),
    "a number": (lambda x, me: x * (1.5 + me), "aten.mul.Tensor"),
    "a whole number": (lambda x, me: x + me, "aten.add.Tensor"),
    "a matrix": (lambda x, me: x @ of(me), "aten.mm.default"),
    "a mask": (lambda x, me: x.masked_fill(of(me) > 1.5, 0.0), "aten.masked_fill"),
    "indices": (lambda x, me: x[torch.tensor([me % 2, 0])], "aten.index.Tensor"),
    "what is written": (lambda x, me: x.copy_(of(me)), "aten.copy_"),
    "what goes into a secret": (lambda x, me: torch.add(of(me), 1.0, out=x), "aten.add.out"),
    "a layer of one's own": (lambda x, me: _layer(me)(x), "aten.addmm.default in module 'Linear'"),
    # Products by these weights drop fewer bits than products by others.
    "weights of many bits": (
        lambda x, me: _layer(me, 1.1)(x),
        "aten.addmm.default in module 'Linear'",
    ),
}


def _layer(seed: int, times: float = 1.0) -> nn.Module:
    layer = nn.Linear(2, 2)
    values = of(seed) * times
    layer.load_state_dict({"weight": values, "bias": values[0]})
    return layer


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_named_before_anything_is_opened(what: str, setting: str) -> None:
    mistake, name = MISTAKES[what]

    def program() -> None:
        x = tacit.share(torch.ones(2, 2), owner=0)
        (mistake(x, tacit.session().party) * 1).reveal()
        raise AssertionError("a wrong value was returned")

    with pytest.raises(tacit.DesyncError) as caught:
        tacit.launch(program, **SETTINGS[setting])
    assert name in str(caught.value)
    assert "tacit.public_random" in str(caught.value)


def test_the_length_of_what_is_compared_in_private_tells_nothing_of_numbers() -> None:
    lengths = {len(_bytes(number)) for number in (0, 9, 10, -1, 2**62, -(2**63))}
    assert len(lengths) == 1
    assert len({len(_bytes(number)) for number in (0.0, 1e300, -0.5)}) == 1
    assert _bytes(9) != _bytes(10)


def test_all_of_a_tensor_is_compared_however_it_lies() -> None:
    table = torch.arange(6.0).reshape(2, 3)
    for value in (
        table,
        table.T,
        table[:, 1:],
        table[1:],
        torch.tensor(3.0),
        torch.tensor(3.0).expand(1),
    ):
        assert bytes(_bytes(value)) == value.numpy().tobytes()
    assert not len(_bytes(torch.empty(0, 2)))


STEPS: dict[str, Callable[[Any, int], Any]] = {
    "a dimension": lambda x, me: x.sum(me % 2),
    "an operator": lambda x, me: x.relu() if me else x.abs(),
    "a receiver": lambda x, me: x.reveal(to=me),
    "a scale": lambda x, me: _scaled(x, me),
    "a width": lambda x, me: _narrow(x, me),
    "a shape": lambda x, me: x[: 1 + me % 2] * x[: 1 + me % 2],
    # All have the same shape and scale, so only their identity differs.
    "a row": lambda x, me: x[me % 2],
    "an order": lambda x, me: torch.cat([x, x * x] if me else [x * x, x]),
    "a difference": lambda x, me: _ordered(torch.sub, x, x + x, me),
    "what is revealed": lambda x, me: (x if me else x + x).reveal(),
    "what is kept": lambda x, me: (x, x + x)[me % 2],
    "data": lambda x, me: _other_data(x, me),
    "what is written to": lambda x, me: _written(x, me),
    "what is shuffled": lambda x, me: tacit.shuffle(x if me else x + x),
}


def _ordered(operator: Callable[[Any, Any], Any], x: Any, y: Any, me: int) -> Any:
    return operator(x, y) if me else operator(y, x)


def _other_data(x: Any, me: int) -> Any:
    other = x + x
    if me:
        x.data = other
    return x


def _written(x: Any, me: int) -> Any:
    other = x + x
    (x if me else other).neg_()
    return x


def _scaled(x: Any, me: int) -> Any:
    with tacit.fraction_bits(16 + me):
        return x * x


def _narrow(x: Any, me: int) -> Any:
    with tacit.comparison_width(32 + me):
        return x > 0


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("what", STEPS)
def test_steps_that_differ_end_the_session(what: str, setting: str) -> None:
    def program() -> None:
        x = tacit.share(torch.ones(2, 2), owner=0)
        result = STEPS[what](x, tacit.session().party)
        if isinstance(result, tacit.SecretTensor):
            result.sum().reveal()
        tacit.share(torch.ones(1), owner=0).reveal()
        raise AssertionError("a wrong value was returned")

    # Each party waits for a message that no party sends, so only the timeout detects it.
    with pytest.raises(tacit.PeerError, match="programs differ"):
        tacit.launch(program, timeout=8, **SETTINGS[setting])


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_copy_at_one_party_alone_is_no_difference(setting: str) -> None:
    def program() -> torch.Tensor:
        x = tacit.share(torch.ones(2, 2), owner=0)
        if tacit.session().party == 0:
            x, _ = copy.deepcopy(x), copy.deepcopy(x)
        return ((x + x) * x).reveal()

    for found in tacit.launch(program, **SETTINGS[setting]):
        torch.testing.assert_close(found, torch.full((2, 2), 2.0))


@pytest.mark.parametrize("setting", SETTINGS)
def test_equal_values_cost_no_rounds(setting: str) -> None:
    def program() -> int:
        x = tacit.share(torch.ones(2, 2), owner=0)
        before = tacit.session().meter.total.rounds
        y = x * 0.5 + of(3)
        (y * y).relu()
        return tacit.session().meter.total.rounds - before

    def without() -> int:
        x = tacit.share(torch.ones(2, 2), owner=0)
        before = tacit.session().meter.total.rounds
        (x * x).relu()
        return tacit.session().meter.total.rounds - before

    options = SETTINGS[setting]
    # The product by 0.5 in the first program also has a truncation.
    assert max(tacit.launch(program, **options)) <= max(tacit.launch(without, **options)) + 2
