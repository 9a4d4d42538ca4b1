"""A server's view of a round: its components, and what is shown.

The tests include mutations that must be noticed. crates/mpc/tests/leaks tests what travels between
the servers in each operation, and crates/mpc/tests/submissions.rs tests a client's pieces. The
tests here cover how the steps of a round combine the operations.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from views import CLIENTS, Array, watch

import tacit
from tacit.federated import validation
from tacit.federated.privacy.account import Account, Mechanism
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round
from tacit.federated.rounds.submission import Submitted
from tacit.federated.validation import COIN, UNIT, VECTOR_BITS
from tacit.fixed import Scale
from tacit.tensor import SecretTensor

#: Vectors that all clients send, with their weight: two different ones within the bound, and one
#: far beyond it.
SHORT, OTHER, LONG = (
    [0, UNIT // 4, -5, 77],
    [UNIT // 5, -1, 0, UNIT // 7],
    [1 << 40, -(1 << 63), 3, 9],
)
WEIGHT = UNIT // 2 + 7

Work = Callable[[SecretTensor, SecretTensor], Any]

#: The three pieces of the words that all clients send.
Pieces = list[torch.Tensor]


def split(words: Any, muted: int | None = None, *, clients: int = CLIENTS) -> Pieces:
    """Splits the words of all clients into two random pieces and the rest. A muted piece is
    zero."""
    plain = torch.as_tensor(words).expand(clients, *torch.as_tensor(words).shape)
    drawn = [
        torch.frombuffer(bytearray(os.urandom(8 * plain.numel())), dtype=torch.int64)
        for _ in range(2)
    ]
    pieces = [
        torch.zeros_like(plain) if at == muted else drawn[at].view(plain.shape) for at in range(2)
    ]
    return [*pieces, plain - pieces[0] - pieces[1]]


def held(pieces: Pieces) -> SecretTensor:
    """Returns the secret tensor of the pieces that this server holds."""
    session = tacit.session()
    own = tuple(pieces[(session.party + at) % 3].clone() for at in range(2))
    return SecretTensor(own, Scale(VECTOR_BITS), session, torch.float64)


def views_of(
    vectors: Sequence[Any], work: Work, *, muted: int | None = None
) -> list[list[tuple[str | None, list[Any]]]]:
    """Returns each server's view for each vector: what its components reveal, and what is shown."""
    sent = [(split(words, muted), split(WEIGHT, muted)) for words in vectors]

    def program() -> list[tuple[str | None, list[Any]]]:
        watched, found = watch(), []
        for pieces in sent:
            rows, weights = map(held, pieces)
            for part in (*rows._parts, *weights._parts):
                watched.keep(part.numpy())
            work(rows, weights)
            found.append(watched.taken())
        return found

    return tacit.launch(program)


def refused(vectors: SecretTensor, weights: SecretTensor) -> Any:
    """Validates as rounds do."""
    return validation.within_bound(vectors, weights, is_weighted=True)


def shortened(vectors: SecretTensor, weights: SecretTensor) -> Any:
    """Validates and shortens vectors as rounds do."""
    return validation.clipped(vectors, weights, is_weighted=True)


def verdicts(found: Sequence[tuple[str | None, list[Any]]]) -> list[set[int]]:
    """Returns for each vector what is shown in addition to the coin. Checks that each coin is
    new."""
    coins = [shown[0] for _, shown in found]
    assert {(type(coin), len(coin)) for coin in coins} == {(bytes, COIN)}
    assert len(set(coins)) == len(coins)
    return [
        set(np.concatenate([part.ravel() for part in shown[1:]]).tolist()) for _, shown in found
    ]


def bits_shown(found: Sequence[tuple[str | None, list[Any]]]) -> list[int]:
    """Returns the number of words or bits shown in addition to the coin."""
    return [sum(part.size for part in shown[1:]) for _, shown in found]


@pytest.mark.parametrize("check", [refused, shortened])
def test_validation_shows_a_bit_of_each_client_and_nothing_else(check: Work) -> None:
    for found in views_of([SHORT, OTHER, LONG], check):
        assert [said for said, _ in found] == [None] * 3
        assert verdicts(found) == [{1}, {1}, {0}]
        assert bits_shown(found) == [CLIENTS] * 3


def norms_shown(vectors: SecretTensor, weights: SecretTensor) -> None:
    """A mutation that compares norms in the clear."""
    refused(vectors, weights)
    validation.squares(vectors).reveal()


def reasons_shown(vectors: SecretTensor, weights: SecretTensor) -> None:
    """A mutation that shows which requirement a client fails."""
    (validation._demands(vectors, weights) < 0).reveal()


@pytest.mark.parametrize("mutation", [norms_shown, reasons_shown])
def test_what_is_shown_too_much_is_noticed(mutation: Work) -> None:
    found = views_of([SHORT], mutation)[1]
    assert bits_shown(found) != [CLIENTS]
    assert verdicts(found) != [{1}]


@pytest.mark.parametrize("muted", [0, 1])
def test_a_piece_that_is_not_random_is_noticed(muted: int) -> None:
    """Every server notices: two hold the piece, and the third holds both others."""
    assert all(found[0][0] is not None for found in views_of([SHORT], lambda *_: None, muted=muted))


def test_products_that_are_not_masked_anew_are_noticed() -> None:
    """Uses each server's own terms of a product before a mask is added."""

    def bare(vectors: SecretTensor, weights: SecretTensor) -> None:  # noqa: ARG001
        first, second = (part.numpy() for part in weights._parts)
        watched: Any = tacit.session().core
        watched.keep(first * first + 2 * first * second)

    assert all(found[0][0] is not None for found in views_of([SHORT], bare))


class Sparing:
    """A core whose servers leave out the noise of one component, which two of them hold."""

    def __init__(self, core: Any, component: int) -> None:
        self._core, self._component = core, component

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def add_noise(self, x: list[Array], variance: int) -> None:
        before = [part.copy() for part in x]
        self._core.add_noise(x, variance)
        for at in range(2):
            if (self._core.party + at) % 3 == self._component:
                x[at][:] = before[at]


def noisy(folder: Path, lacking: int | None = None) -> list[tuple[Array, Array, list[Any]]]:
    """Runs a round with noise on zeros.

    Returns for each server the noise that it knows and the noise that it lacks, in standard
    deviations of one part, and all that is shown to it.
    """
    size, sigma = 20_000, 1.5
    sent = [split(words, clients=2) for words in (torch.zeros(size, dtype=torch.int64), UNIT)]

    def program() -> tuple[Array, Array, list[Any]]:
        session, party = tacit.session(), tacit.session().party
        if lacking is not None:
            session.core = Sparing(session.core, lacking)  # type: ignore[assignment]
        watched = watch(components=False)
        account = Account(folder / f"{lacking}-{party}", Mechanism.of(sigma))
        vectors, weights = map(held, sent)
        round_ = Round.of(Settings(noise="pairs", sigma=sigma, divisor=2.0), account)
        outcome = round_.secret(Submitted([3, 5], vectors, weights))
        assert outcome.vector is not None
        ((before, after),) = watched.noise
        known = sum(after[at].ravel() - before[at].ravel() for at in range(2)) / (sigma * UNIT)
        return known, outcome.vector.double().numpy() * 2.0 / sigma - known, watched.shown

    return tacit.launch(program)


def hides(known: Array, unknown: Array) -> bool:
    """Returns whether the unknown noise is a Gaussian of the full deviation that is independent of
    the known noise."""
    is_gaussian = stats.kstest(unknown, "norm").pvalue > 1e-6
    return bool(is_gaussian and abs(np.corrcoef(known, unknown)[0, 1]) < 5 / len(unknown) ** 0.5)


def test_noise_hides_from_every_server_and_nothing_else_is_shown(tmp_path: Path) -> None:
    for known, unknown, shown in noisy(tmp_path):
        assert hides(known, unknown)
        coin, verdicts_of_clients, result = shown
        assert len(coin) == COIN
        assert verdicts_of_clients.tolist() == [1, 1]
        assert result.shape == unknown.shape


@pytest.mark.parametrize("lacking", [0, 1, 2])
def test_noise_that_leaves_out_a_part_is_noticed(lacking: int, tmp_path: Path) -> None:
    """The server that does not hold the part notices. Nothing is hidden from it then."""
    noticed = [not hides(known, unknown) for known, unknown, _ in noisy(tmp_path, lacking)]
    assert noticed == [(party + 2) % 3 == lacking for party in range(3)]
