"""Whether a client's model matches the servers': names, shapes and order."""

import re
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn
from worlds import LONG, Servers, written

import tacit
from tacit.errors import MisuseError, PeerError
from tacit.federated import Client
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.states import (
    MOST_TENSORS,
    State,
    change_of,
    in_a_row,
    in_form,
    layout_of,
)
from tacit.federated.service.report import Report
from tacit.federated.service.terms import Terms


def model() -> nn.Module:
    """A model with two layers of equal size, which could be confused."""
    return nn.Sequential(OrderedDict(first=nn.Linear(3, 3), second=nn.Linear(3, 3, bias=False)))


def renamed() -> nn.Module:
    return nn.Sequential(OrderedDict(first=nn.Linear(3, 3), third=nn.Linear(3, 3, bias=False)))


def reordered() -> dict[str, torch.Tensor]:
    return dict(reversed(model().state_dict().items()))


def reshaped() -> dict[str, torch.Tensor]:
    state = model().state_dict()
    return {**state, "first.bias": state["first.bias"].reshape(1, 3)}


SIZE = len(in_a_row(model()))

WRONG = [
    (
        renamed(),
        "third.weight of shape [3, 3], tensor 2 of the state, has another name, shape or place",
    ),
    (
        reordered(),
        "second.weight of shape [3, 3], tensor 0 of the state, has another name, shape or place",
    ),
    (
        reshaped(),
        "first.bias of shape [1, 3], tensor 1 of the state, has another name, shape or place",
    ),
    (
        {"first.weight": torch.zeros(3, 3)},
        "a state of 1 tensors; the model of this round has 3: hand in the",
    ),
    (
        {**model().state_dict(), "last": torch.zeros(1)},
        "last of shape [1], tensor 3 of the state, has another name, shape or place in the model "
        "of this",
    ),
]


@pytest.mark.parametrize(("state", "message"), WRONG)
def test_a_state_of_another_model_is_refused_by_its_first_parameter(
    state: State, message: str
) -> None:
    layout = layout_of(model())
    with pytest.raises(MisuseError, match=re.escape(message)):
        change_of(state, torch.zeros(SIZE), layout)


def test_what_is_of_the_same_model_is_taken() -> None:
    """Accepts a module and its state in any precision, and a row, which has no names. Servers with
    a row accept everything."""
    layout, start = layout_of(model().state_dict()), torch.zeros(SIZE)
    for state in (model(), model().state_dict(), model().double(), torch.zeros(SIZE)):
        assert len(change_of(state, start, layout)) == SIZE
    for state, _ in WRONG[:3]:
        assert len(change_of(state, start, layout_of(start))) == SIZE
    counting = nn.BatchNorm1d(2).state_dict()
    assert layout_of(counting) == layout_of({name: counting[name] for name in list(counting)[:4]})
    many = {str(number): torch.zeros(1) for number in range(MOST_TENSORS + 1)}
    with pytest.raises(
        MisuseError, match="a model of 4097 tensors; at most 4096 are compared by name: give all"
    ):
        layout_of(many)


def test_a_row_takes_the_form_of_a_state() -> None:
    state = {**nn.BatchNorm1d(2).state_dict(), "half": torch.zeros(2, 1, dtype=torch.float16)}
    row = torch.arange(10.0)
    made = in_form(row, state)
    assert isinstance(made, dict)
    assert list(made) == list(state)
    assert all(
        (made[name].shape, made[name].dtype) == (state[name].shape, state[name].dtype)
        for name in state
    )
    assert torch.equal(in_a_row(made).float(), row)
    assert in_form(row, row) is row


def test_terms_that_hold_no_layout() -> None:
    terms = Terms(Settings(), SIZE, clients=3, layout=layout_of(model()))
    assert Terms.from_bytes(terms.to_bytes()) == terms
    for wrong in (b'"0123456"', b"7", b"null"):
        told = terms.to_bytes().replace(b'"' + terms.layout.encode() + b'"', wrong)
        with pytest.raises(PeerError, match="not of this release"):
            Terms.from_bytes(told)


def test_clients_hear_of_the_models_names_in_every_round(tmp_path: Path) -> None:
    """Clients receive the names also in rounds that servers start from a row, as in their last
    report."""
    config = written(tmp_path, 2, rules="norm = 4.0")
    start = model()

    def two(
        server: tacit.federated.service.server.Server,
    ) -> list[Report]:
        first = server.round(start)
        return [first, server.round(first.model)]

    servers = Servers(config, two)

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number)
        for _ in range(2):
            task = client.join(LONG)
            with pytest.raises(
                MisuseError, match=r"third\.weight of shape \[3, 3\], tensor 2 of the state"
            ):
                client.submit(renamed())
            trained = model()
            nn.utils.vector_to_parameters(task.model + 0.25, trained.parameters())
            client.submit(trained)
            found = client.result(LONG)
        return found

    with ThreadPoolExecutor(2) as pool:
        learned = list(pool.map(learn, range(2)))
    for found in learned:
        torch.testing.assert_close(found, in_a_row(start).float() + 0.5, rtol=0, atol=1e-5)
    servers.ended()
