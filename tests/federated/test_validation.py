"""The secret check of norms, for any words that a client sends."""

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import tacit
from tacit import fixed
from tacit._core import PROJECTIONS
from tacit.federated import validation
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.clipping import Clip
from tacit.federated.rounds.round_state import Held
from tacit.federated.rounds.steps import Validate
from tacit.federated.validation import UNIT, WIDEST
from tacit.fixed import WHOLE, Scale
from tacit.sessions import current_session
from tacit.sharings import shares
from tacit.sharings.bilinear import ring_projections
from tacit.tensor import SecretTensor

#: Elements of a vector; they need several blocks of weights.
SIZE = 5000


def shared(words: torch.Tensor, *, scale: int = validation.VECTOR_BITS) -> SecretTensor:
    """Shares party 0's words unchanged, since a client may send any."""
    session = tacit.session()
    parts = shares.share(session, words if session.party == 0 else None, 0, words.shape)
    return SecretTensor(parts, Scale(scale), session, torch.float64)


def honest(norm: float, seed: int = 0) -> torch.Tensor:
    """Returns the words of a vector of the given norm, in units, rounded towards zero."""
    x = torch.randn(SIZE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (x / x.norm() * norm * UNIT).trunc().long()


def weights_of(coin: bytes, count: int) -> torch.Tensor:
    """Returns the weights for the given number of words, (count, K)."""
    return ring_projections((torch.eye(count, dtype=torch.int64),), coin)[0]


def single(word: int, place: int = 0) -> torch.Tensor:
    """Returns a vector with a single nonzero word."""
    words = torch.zeros(SIZE, dtype=torch.int64)
    words[place] = word
    return words


def wrapping() -> torch.Tensor:
    """Returns words whose squares add up to 0 modulo 2^64: four times (2^31)²."""
    words = torch.zeros(SIZE, dtype=torch.int64)
    words[[1, 10, 100, 1000]] = 1 << 31
    assert int((words * words).sum()) == 0
    return words


def wrapping_to_one() -> torch.Tensor:
    """Returns many small words whose squares add up to a multiple of 2^64."""
    words = torch.zeros(1 << 18, dtype=torch.int64)
    words[:] = 1 << 23
    assert int((words * words).sum()) == 0
    return words


#: Vectors that must pass, and vectors that must not.
GOOD = [honest(0.0), honest(0.99), honest(0.99999, 1), single(UNIT), single(-UNIT, SIZE - 1)]
BAD = [
    honest(1.01),
    honest(3.0),
    single(UNIT + 1),
    single(-UNIT - 1),
    single(1 << 32),
    single(-(1 << 63), 3),
    single((1 << 63) - 1),
    single(1 << 62) + single(-(1 << 62), 7),
    torch.full((SIZE,), -(1 << 63)),
    torch.full((SIZE,), 1 << 32),
    wrapping(),
    honest(400.0),
]


def everywhere(program: Callable[..., Any], *args: Any, protocol: str = "replicated") -> Any:
    """Returns party 0's result, after checking that all parties have the same."""
    results = tacit.launch(program, *args, protocol=protocol)
    for result in results[1:]:
        assert all(torch.equal(mine, first) for mine, first in zip(result, results[0], strict=True))
    return results[0]


@pytest.mark.parametrize("protocol", ["plain", "replicated"])
def test_norms_above_the_bound_are_refused(protocol: str) -> None:
    def program(words: torch.Tensor, many: torch.Tensor) -> list[torch.Tensor]:
        weights = shared(torch.full((len(words),), UNIT))
        with tacit.comparison_width(16):  # other comparisons may have any width
            return [
                validation.within_bound(shared(words), weights),
                validation.within_bound(shared(many), shared(torch.ones(1, dtype=torch.int64))),
            ]

    found, wraps = everywhere(
        program, torch.stack(GOOD + BAD), wrapping_to_one().unsqueeze(0), protocol=protocol
    )
    assert found.tolist() == [True] * len(GOOD) + [False] * len(BAD)
    assert wraps.tolist() == [False]


def test_weights_are_from_0_to_1() -> None:
    weights = torch.tensor([0, 1, UNIT, -1, UNIT + 1, -(1 << 63), (1 << 63) - 1])

    def program() -> list[torch.Tensor]:
        vectors = shared(torch.ones(len(weights), 3, dtype=torch.int64))
        return [
            validation.within_bound(vectors, shared(weights)),
            validation.clipped(vectors, shared(weights))[0],
        ]

    for found in everywhere(program):
        assert found.tolist() == [True, True, True, False, False, False, False]


def test_long_vectors_are_shortened() -> None:
    norms = [0.5, 0.999, 1.0, 1.01, 2.0, 7.0]
    words = torch.stack(
        [honest(norm, seed) for seed, norm in enumerate(norms)] + [single(1 << 40), wrapping()]
    )

    def program() -> list[torch.Tensor]:
        vectors = shared(words)
        weights = shared(torch.ones(len(words), dtype=torch.int64))
        good, factors, counted = validation.clipped(vectors, weights)
        assert counted is weights
        with tacit.fraction_bits(validation.VECTOR_BITS):
            return [good, (vectors[good] * factors[good].unsqueeze(1)).reveal()]

    good, shortened = everywhere(program)
    assert good.tolist() == [True] * len(norms) + [False, False]
    left = 1 - validation.margin(SIZE)
    for norm, row, plain in zip(norms, shortened, words, strict=False):
        assert float(row.norm()) <= 1
        assert float(row.norm()) == pytest.approx(left * min(norm, 1), rel=validation.margin(SIZE))
        direction = plain.double() / plain.double().norm()
        assert float((row / row.norm() - direction).norm()) < 1e-3


def test_projections_are_products_with_the_coins_weights() -> None:
    coin = bytes(range(16))
    weights = weights_of(coin, 1040)
    words = torch.randint(
        -(2**63), 2**63 - 1, (3, 1040), generator=torch.Generator().manual_seed(1)
    )
    words[1], words[2] = 2**63 - 1, -(2**63)
    expected = (words.unsqueeze(2) * weights).sum(1)
    assert torch.equal(ring_projections((words,), coin)[0], expected)
    assert not torch.equal(ring_projections((words,), bytes(16))[0], expected)
    one, other = ring_projections((words[:1], words[1:2]), coin)
    assert torch.equal(torch.cat([one, other]), expected[:2])
    counts = torch.bincount((weights + 1).long().flatten(), minlength=3).double() / weights.numel()
    assert torch.allclose(counts, torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64), atol=0.005)
    # Neither rows nor columns are correlated.
    assert float(np.abs(np.corrcoef(weights.numpy().T) - np.eye(PROJECTIONS)).max()) < 0.1


def inside(rows: torch.Tensor, trials: int) -> torch.Tensor:
    """Returns which products with the weights of each coin are small, [trials, rows, K]."""
    products = [
        ring_projections((rows,), trial.to_bytes(16, "little"))[0] for trial in range(trials)
    ]
    return torch.stack([(each >= -WIDEST) & (each <= WIDEST) for each in products])


def test_every_projection_lets_half_of_what_it_is_to_stop_pass_at_most() -> None:
    """Tests the two cases of the argument, with one projection and with several, over many
    coins."""
    several = torch.zeros(SIZE, dtype=torch.int64)
    several[:32] = -(1 << 63)
    huge = [
        single(-(1 << 63)),
        single(2 * WIDEST + 1),
        single(1 << 62) + single(1 << 62, 1),
        several,
    ]
    # Norms just above 9T, and larger ones, in words that are all small, or in few words of the
    # largest permitted size.
    spread = torch.full((SIZE,), math.ceil(9 * WIDEST / SIZE**0.5))
    few = torch.zeros(SIZE, dtype=torch.int64)
    few[:21] = 2 * WIDEST
    rows, trials = torch.stack([*huge, spread, 2 * spread, few]), 200
    assert bool((rows.double().norm(dim=1)[4:] >= 9 * WIDEST).all())
    passed = inside(rows, trials).transpose(0, 1).reshape(len(rows), -1).double()
    # 8,000 projections: half of them pass, within five standard deviations. Spread vectors pass far
    # less often.
    within = 5 * 0.5 / passed.shape[1] ** 0.5
    assert float(passed.mean(1).max()) < 0.5 + within
    assert float(passed.mean(1)[0]) > 0.5 - within
    assert float(passed.mean(1)[4:].max()) < 4.3 / 9
    # Projections of one coin are independent: k of them all pass with probability 2^-k.
    for together in (2, 4, 8):
        all_passed = passed.reshape(len(rows), -1, together).prod(2)
        most = stats.binom.ppf(1 - 1e-7, all_passed.shape[1], 0.5**together)
        assert float(all_passed.sum(1).max()) <= most
    # For no coin does any of these vectors pass all projections. Honest norms pass all.
    assert not bool(inside(rows, 20).all(2).any())
    assert bool(inside(torch.stack([honest(0.99), honest(7.0), 7 * single(UNIT)]), 20).all())


def test_norms_of_a_million_words() -> None:
    """Tests the bound as above, at the size of models."""
    size = 1_000_000
    x = torch.randn(size, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    direction = x / x.norm() * UNIT
    words = torch.zeros(7, size, dtype=torch.int64)
    words[0], words[1] = (0.99 * direction).trunc().long(), (1.01 * direction).trunc().long()
    # Σ x² is 0 modulo 2^64 for rows 2 to 5. The only word of the last row is at the end.
    words[2, : 1 << 18], words[3, :: size // 4], words[4, -1] = 1 << 23, 1 << 31, 1 << 32
    words[5, -1 << 18 :] = torch.tensor([1 << 23, -(1 << 23)]).repeat(1 << 17)
    words[6, -1] = 2 * UNIT
    assert (words[2:6] * words[2:6]).sum(1).tolist() == [0] * 4

    def program() -> list[torch.Tensor]:
        return [validation.within_bound(shared(words), shared(torch.ones(len(words)).long()))]

    assert everywhere(program)[0].tolist() == [True] + [False] * 6


def known_to_pass(coin: bytes) -> torch.Tensor:
    """Returns a vector whose products with a coin's weights are all 0.

    It has words 2^63 at places where, in every row, an even number of weights is not 0.
    """
    odd = (weights_of(coin, 64) != 0).numpy()
    # One unknown per place: eliminate the 40 rows modulo 2.
    rows, pivots = odd.T.copy(), []
    for column in range(64):
        found = [row for row in range(len(pivots), PROJECTIONS) if rows[row, column]]
        if found:
            rows[[len(pivots), found[0]]] = rows[[found[0], len(pivots)]]
            for row in range(PROJECTIONS):
                if row != len(pivots) and rows[row, column]:
                    rows[row] ^= rows[len(pivots)]
            pivots.append(column)
    free = next(column for column in range(64) if column not in pivots)
    words = torch.zeros(1, SIZE, dtype=torch.int64)
    words[0, free] = -(1 << 63)
    words[0, [pivot for row, pivot in enumerate(pivots) if rows[row, free]]] = -(1 << 63)
    return words


def test_who_knew_the_coin_could_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coin must therefore be tossed after vectors are handed in, and anew each time."""
    words = known_to_pass(bytes(16))

    def program() -> list[torch.Tensor]:
        return [validation.within_bound(shared(words), shared(torch.ones(1, dtype=torch.int64)))]

    assert everywhere(program)[0].tolist() == [False]
    monkeypatch.setattr(validation, "public_coin", lambda: bytes(16))
    assert everywhere(program)[0].tolist() == [True]


def test_who_knows_what_a_server_draws_is_refused_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server has revealed its own draw for the coin to a client in advance."""
    known, urandom = bytes(range(16)), os.urandom
    words = known_to_pass(known)
    told: list[int] = []

    def program() -> list[torch.Tensor]:
        return [validation.within_bound(shared(words), shared(torch.ones(1, dtype=torch.int64)))]

    for server in range(3):

        def draw(count: int, server: int = server) -> bytes:
            current = current_session()
            if current is None or current.party != server or count != validation.COIN:
                return urandom(count)
            told.append(server)
            return known

        monkeypatch.setattr("tacit.randomness.generators.os.urandom", draw)
        assert everywhere(program)[0].tolist() == [False]
    assert told == [0, 1, 2]


def test_vectors_that_come_multiplied_are_as_short_as_their_weights() -> None:
    """Vectors multiplied by weights are checked exactly to one word, including the slack for
    rounding."""
    quarter, slack = UNIT // 4, validation.slack(SIZE)
    cases = [
        (honest(0.2499), quarter, True),
        (honest(0.26), quarter, False),
        (single(quarter + slack), quarter, True),
        (single(quarter + slack + 1), quarter, False),
        (single(UNIT), UNIT, True),
        (single(UNIT + 1), UNIT, False),
        (honest(0.0), 0, True),
        (honest(0.9), 0, False),
        (single(slack), 0, True),
        (single(-(1 << 63)), UNIT, False),
        (honest(0.1), -quarter, False),
        (honest(0.1), -(1 << 63) + UNIT, False),
    ]
    words, weights = (
        torch.stack([case[0] for case in cases]),
        torch.tensor([case[1] for case in cases]),
    )

    def program() -> list[torch.Tensor]:
        vectors, own = shared(words), shared(weights)
        good, _, counted = validation.clipped(vectors, own, is_weighted=True)
        return [
            validation.within_bound(vectors, own, is_weighted=True),
            good,
            (counted[good].reveal() * UNIT).long(),
        ]

    found, can_be_shortened, counted = everywhere(program)
    assert found.tolist() == [case[2] for case in cases]
    assert can_be_shortened.tolist() == [True] * 9 + [False] * 3
    # A client that sends more than its weight counts as much as any client may.
    lengths = [quarter, UNIT, quarter, UNIT, UNIT, UNIT, 0, UNIT, 0]
    assert counted.tolist() == lengths


#: Number of words by which a product may be longer than its weight, by the number of parameters:
#: half the root of that number, plus two (docs/internals/security.md). The values are written out,
#: since otherwise the code's own slack would be checked against itself.
SLACK = {1: 2, 3: 2, 4: 3, 100: 7, SIZE: 37, 100_000: 160}


@pytest.mark.parametrize("parameters", SLACK)
def test_the_slack_is_what_is_written(parameters: int) -> None:
    """The slack is exact to one word for any weight, in secret and in the reference.

    A product of weight 0 moves the sum by no more than the slack.
    """
    weights = torch.tensor([0, 1, UNIT // 4, UNIT - SLACK[parameters] - 1]).repeat_interleave(4)
    lengths = SLACK[parameters] + torch.tensor([0, 1, 0, 1]).repeat(4)
    words = torch.zeros(len(weights), parameters, dtype=torch.int64)
    words[:, -1] = (weights + lengths) * torch.tensor([1, 1, -1, -1]).repeat(4)
    expected = [True, False, True, False] * 4

    def program() -> list[torch.Tensor]:
        return [validation.within_bound(shared(words), shared(weights), is_weighted=True)]

    assert everywhere(program)[0].tolist() == expected
    step = Validate("refuse", 1, is_weighted=True)
    plain = Held(tuple(range(len(weights))), words.double() / UNIT, weights.double() / UNIT)
    assert list(step.plain(plain).clients) == [at for at, each in enumerate(expected) if each]


@pytest.mark.parametrize("parameters", [1, 3, SIZE])
def test_what_an_honest_client_rounds_is_within_the_slack(parameters: int) -> None:
    """Tests the worst rounding: every element of the product is rounded up by half a word, and the
    weight down."""
    step, rows, weights = Clip(1.0, 1.0), [], []
    for examples in (1e-7, 0.0009765, 0.25, 1 / 3, 0.7, 1.0):
        for halves in (0.5, 0.499, 0.0):
            length = math.floor(examples * UNIT / parameters**0.5) + halves
            vector = torch.full((parameters,), length / examples / UNIT, dtype=torch.float64)
            sent = step.client(Outgoing.of(Update(vector, examples)))
            update = sent.by(sent.weight).update()
            rows.append(fixed.encode(update.vector, Scale(validation.VECTOR_BITS)))
            weights.append(fixed.encode(torch.tensor(update.weight), Scale(validation.VECTOR_BITS)))
    words, own = torch.stack(rows), torch.stack(weights)

    def program() -> list[torch.Tensor]:
        return [validation.within_bound(shared(words), shared(own), is_weighted=True)]

    assert everywhere(program)[0].all()


def test_what_validation_cannot_take() -> None:
    def program(scale: int) -> None:
        validation.within_bound(
            shared(torch.ones(1, 2, dtype=torch.int64), scale=scale), shared(torch.ones(1).long())
        )

    with pytest.raises(tacit.MisuseError, match="clients' vectors have 22 fraction bits, not 16"):
        tacit.launch(program, 16)


def test_squares_are_exact() -> None:
    words = torch.stack([honest(0.7), single((1 << 31) - 1)])

    def program() -> list[torch.Tensor]:
        square = validation.squares(shared(words))
        assert square._scale == WHOLE
        return [square.reveal()]

    assert torch.equal(everywhere(program)[0], (words * words).sum(1))
