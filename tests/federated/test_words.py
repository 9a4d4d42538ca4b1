"""Data that leave a client: words of 64 or 32 bits, computed from trained parameters in place."""

import math
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from worlds import LONG, Servers, written

from tacit.errors import EncodingError, MisuseError, SetupError
from tacit.federated import Client
from tacit.federated.rounds import width
from tacit.federated.rounds.client_update import Change, Outgoing
from tacit.federated.rounds.round_state import Step
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.states import State, change_of
from tacit.federated.rounds.steps import Round
from tacit.federated.service.config import Federation
from tacit.federated.service.terms import Terms
from tacit.federated.validation import UNIT

#: Largest number of clients whose numbers within the bound fit into 32 bits.
MOST = 511


def test_a_change_is_the_difference_in_double_precision() -> None:
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(30, generator=generator)
    trained = {
        "weight": torch.randn(4, 5, generator=generator).T,
        "half": torch.randn(4, generator=generator).to(torch.bfloat16),
        "none": torch.zeros(0),
        "double": torch.randn(6, generator=generator, dtype=torch.float64),
    }
    change = Change(trained, start)
    row = torch.cat([value.to(torch.float64).reshape(-1) for value in trained.values()])
    assert torch.equal(change.values(), row - start)
    norm, greatest = change.measured()
    assert norm == pytest.approx(float(change.values().norm()), rel=1e-14)
    assert greatest == float(change.values().abs().max())
    assert Change({}).measured() == (0.0, 0.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_named(value: float) -> None:
    linear = torch.nn.Linear(3, 2)
    state = {name: tensor.clone() for name, tensor in linear.state_dict().items()}
    state["bias"][1] = value
    with pytest.raises(
        EncodingError, match=f"value 1 of bias is {value}, which is no finite number"
    ):
        change_of(state, torch.zeros(8)).measured()
    start = torch.zeros(8)
    start[2] = value
    with pytest.raises(EncodingError, match=r"value 2 of weight is .*, which is no finite number"):
        change_of(linear, start).measured()


@dataclass(frozen=True)
class Signs(Step):
    """Reduces a change to its signs."""

    def client(self, outgoing: Outgoing) -> Outgoing:
        update = outgoing.update()
        return Outgoing.of(update._replace(vector=update.vector.sign()))


def test_a_step_may_look_at_what_is_to_be_sent() -> None:
    usual = Round.of(Settings(bound="none", norm=2.0, greatest_weight=4.0))
    linear = torch.nn.Linear(2, 1)
    change = change_of(linear, torch.full((3,), 0.25))
    signs = torch.cat([value.detach().reshape(-1) - 0.25 for value in linear.parameters()]).sign()
    for steps in ((Signs(), *usual.steps), (*usual.steps, Signs())):
        sent = Round(steps, 2.0).sent(Outgoing(change, 2.0))
        assert sent.weight == 0.5
        first = isinstance(steps[0], Signs)
        factor = 0.25 if first else 1.0
        assert sent.factor == factor
        assert torch.equal(sent.update().vector, signs.double() * factor)
        # The data sent are computed from this change only.
        assert sent.change.from_there is None
        assert torch.equal(torch.from_numpy(sent.change.pieces[0]), signs.double())


@pytest.mark.parametrize(("bits", "clients"), [(64, 16), (32, 2), (32, 16), (32, MOST)])
def test_the_limit_of_a_number_is_where_it_is_said(bits: int, clients: int) -> None:
    norm = 0.25
    round_ = Round.of(Settings(bound="none", norm=norm, word_bits=bits), clients=clients)
    limit = width.limit(bits, clients)
    assert limit == (2.0**24 if bits == 64 else ((2**31 - 1) // clients) / 2**22)
    below = math.nextafter(limit * norm, 0.0)
    for sign in (1.0, -1.0):
        sent = round_.client(torch.tensor([0.125, sign * below], dtype=torch.float64))
        # Rounded, it is at most the limit, and the sum over all clients fits.
        rounded = round(float(sent.vector[1].abs()) * UNIT)
        assert rounded == round(limit * UNIT)
        assert bits == 64 or clients * rounded < 2**31
        for beyond in (limit * norm, 2 * limit * norm):
            said = re.escape(f"magnitudes below {limit * norm:g} are sent")
            with pytest.raises(EncodingError, match=f"value 1 of the update is .*{said}"):
                round_.client(torch.tensor([0.125, sign * beyond], dtype=torch.float64))


def test_32_bits_are_for_sums_that_fit(tmp_path: Path) -> None:
    narrow = Settings(bound="none", word_bits=32)
    Round.of(narrow, clients=MOST)
    with pytest.raises(
        MisuseError, match=r"word_bits = 32 with 512 clients: .* at most 511 clients are possible"
    ):
        Round.of(narrow, clients=MOST + 1)
    assert width.limit(32, MOST) > 1 >= width.limit(32, MOST + 1)
    for wrong in (
        replace(narrow, bound="refuse"),
        replace(narrow, bound="clip"),
        Settings(aggregator="median", word_bits=32),
    ):
        with pytest.raises(
            MisuseError, match="word_bits = 32 is for a sum whose vectors are not validated"
        ):
            Round.of(wrong, clients=4)
    with pytest.raises(MisuseError, match="word_bits = 24: numbers travel in 64, 32, 16 or 8"):
        Round.of(replace(narrow, word_bits=24), clients=4)
    config = written(tmp_path, 2, rules='bound = "none"\nword_bits = 32')
    right = config.read_text()
    assert Federation.read(config).settings.word_bits == 32
    for before, after, message in (
        ("count = 2", "count = 512", "word_bits = 32 with 512 clients"),
        ('"none"', '"refuse"', "word_bits = 32 is for a sum"),
        ("= 32", "= 33", "word_bits = 33: numbers travel"),
    ):
        config.write_text(right.replace(before, after))
        with pytest.raises(SetupError, match=message):
            Federation.read(config)


@pytest.mark.parametrize(("parameters", "words"), [(1, 1), (2, 2), (9, 5)])
def test_two_numbers_to_a_word(parameters: int, words: int) -> None:
    terms = Terms(Settings(bound="none", word_bits=32), parameters, clients=3)
    assert (terms.numbers, terms.words) == (parameters + 1, words)
    assert Terms.from_bytes(terms.to_bytes()) == terms
    assert replace(terms, settings=Settings()).words == parameters + 1


@pytest.mark.parametrize("result_to", ["all", "clients"])
@pytest.mark.parametrize("size", [5, 4000])
def test_sums_in_32_bits_are_those_in_64(tmp_path: Path, result_to: str, size: int) -> None:
    """Includes clients that all send values just below the limit, of equal sign."""
    norm, weights = 0.5, [1.0, 3.0, 2.0]
    limit = width.limit(32, 3) * norm
    updates = torch.randn(3, size, generator=torch.Generator().manual_seed(4))
    updates[:, 0], updates[:, 1] = limit * 0.9999, -limit * 0.9999
    expected = torch.tensor(weights) @ updates / sum(weights)
    up = {}
    for bits in (64, 32):
        folder = tmp_path / str(bits)
        folder.mkdir()
        rules = f'bound = "none"\nnorm = {norm}\ngreatest_weight = 3.0\nword_bits = {bits}'
        config = written(folder, 3, rules=f'{rules}\nresult_to = "{result_to}"')

        def learn(number: int, config: Path = config) -> tuple[torch.Tensor, int]:
            client = Client(config, number)
            task = client.join(LONG)
            before = client.traffic[0]
            client.submit(task.model + updates[number], weight=weights[number])
            sent = client.traffic[0] - before
            return client.result(LONG), sent

        servers = Servers(config, lambda server: server.round(torch.zeros(size)))
        with ThreadPoolExecutor(3) as pool:
            learned = list(pool.map(learn, range(3)))
        assert all(report.accepted == [0, 1, 2] for report in servers.ended())
        for model, sent in learned:
            torch.testing.assert_close(model.double(), expected.double(), rtol=1e-6, atol=1e-6)
            up[bits] = sent
    # Half the bytes, except for parts that do not grow with the vector: a word more or less, and
    # TLS records.
    assert abs((up[64] - up[32]) - 4 * (size + 1)) <= 8 + 0.01 * up[32]


class Counting(torch.nn.Module):
    """A model with parameters, statistics, and a count of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(2)


def test_a_state_is_of_floating_point_tensors_alone() -> None:
    start = torch.zeros(8)
    row, halves = torch.arange(8.0), torch.arange(8.0).half()
    for state in (
        row,
        row.double(),
        halves,
        {"a": row[:3], "b": halves[3:], "steps": torch.tensor(7)},
    ):
        assert torch.equal(change_of(state, start).values(), row.double())
    assert len(change_of(Counting().state_dict(), start)) == 8
    assert len(change_of(Counting(), torch.zeros(4))) == 4
    for tied in (row.reshape(2, 4).t(), row.flip(0)[::1]):
        assert len(change_of(tied, start)) == 8


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            torch.zeros(8, dtype=torch.complex64),
            "the vector is of torch.complex64; floating-point numbers are",
        ),
        (
            torch.zeros(8, dtype=torch.bool),
            "the vector is of torch.bool; floating-point numbers are learned",
        ),
        (
            torch.zeros(8, dtype=torch.int64),
            "the vector is of torch.int64; floating-point numbers are learned",
        ),
        (torch.tensor(3), "the vector is of torch.int64; floating-point numbers are learned"),
        (
            torch.zeros(8).to_sparse(),
            "the vector is of layout torch.sparse_coo; give it as to_dense() makes",
        ),
        (
            torch.eye(8).to_sparse_csr(),
            "the vector is of layout torch.sparse_csr; give it as to_dense()",
        ),
        (torch.zeros(8, device="meta"), "the vector lies on meta; give it as cpu() makes it"),
        ([0.0] * 8, "a state of type list; it is a tensor, a module or its state_dict()"),
        (None, "a state of type NoneType; it is a tensor, a module or its state_dict()"),
        ("weights", "a state of type str; it is a tensor, a module or its state_dict()"),
        ({"a": torch.zeros(7), "b": 1}, "b is of type int; a state holds tensors"),
        ({"a": [0.0] * 8}, "a is of type list; a state holds tensors"),
        (
            {"a": torch.zeros(8), "b": torch.arange(3)},
            "b is of torch.int64; floating-point numbers are learned",
        ),
        (
            {"a": torch.zeros(8), "b": torch.zeros((), dtype=torch.complex64)},
            "b is of torch.complex64; float",
        ),
        (
            {"a": torch.zeros(8), "b": torch.ones(2).bool()},
            "b is of torch.bool; floating-point numbers are",
        ),
    ],
)
def test_a_state_that_is_none_is_refused_by_name(state: State, message: str) -> None:
    with pytest.raises(MisuseError, match=re.escape(message)):
        change_of(state, torch.zeros(8))
