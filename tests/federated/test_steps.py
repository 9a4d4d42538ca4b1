"""Rounds: what clients send, what servers compute from it, and what is refused."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tacit
from tacit.errors import DesyncError, EncodingError, MisuseError, PeerError
from tacit.federated import validation
from tacit.federated.aggregators import AGGREGATORS, Quotient, geometric_median
from tacit.federated.privacy.account import Account
from tacit.federated.rounds.clipping import Clip
from tacit.federated.rounds.round_state import Held, Outcome, RoundError, Step
from tacit.federated.rounds.settings import Settings, mechanism_of
from tacit.federated.rounds.steps import Round
from tacit.federated.rounds.submission import Submitted
from tacit.federated.validation import VECTOR_BITS

CLIENTS = (3, 5, 8, 9)


def updates() -> torch.Tensor:
    """Returns the updates of four clients, with norms from 1 to 3."""
    x = torch.randn(4, 12, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True) * torch.tensor([1.0, 1.5, 2.0, 3.0]).unsqueeze(1)


def submitted(vectors: torch.Tensor, weights: torch.Tensor) -> Submitted:
    """Returns the vectors and weights in the form in which servers receive them."""
    is_host = tacit.session().party == 0
    with tacit.fraction_bits(VECTOR_BITS):
        rows = tacit.share(vectors if is_host else None, owner=0)
        counts = tacit.share(weights if is_host else None, owner=0)
    return Submitted(list(CLIENTS), rows, counts)


def round_of(settings: Settings, folder: Path) -> Round:
    """Returns a round, with an account if it has noise."""
    account = None
    if settings.sigma is not None:
        account = Account(folder / "account", mechanism_of(settings, 1e-5))
    return Round.of(settings, account)


def both(
    settings: Settings, vectors: torch.Tensor, weights: torch.Tensor, folder: Path
) -> tuple[Outcome, Outcome]:
    """Runs a round in secret, with equal outcomes at all servers, and in the clear."""

    def program() -> Outcome:
        own = folder / str(tacit.session().party)
        own.mkdir(exist_ok=True)
        return round_of(settings, own).secret(submitted(vectors, weights))

    first, *others = tacit.launch(program)
    for other in others:
        assert torch.equal(other.vector, first.vector)
        assert other[1:] == first[1:]
    return first, round_of(settings, folder).plain(CLIENTS, vectors, weights)


@pytest.mark.parametrize("bound", ["none", "refuse", "clip"])
def test_a_mean_is_of_what_clients_weigh(bound: str, tmp_path: Path) -> None:
    settings = Settings(norm=4.0, bound=bound, greatest_weight=200.0)
    counts = [50.0, 100.0, 200.0, 999.0]
    sent = [Round.of(settings).client(x, count) for x, count in zip(updates(), counts, strict=True)]
    vectors, weights = (
        torch.stack([each.vector for each in sent]),
        torch.tensor([each.weight for each in sent]),
    )
    assert weights.tolist() == [0.25, 0.5, 1.0, 1.0]
    secret, plain = both(settings, vectors, weights.double(), tmp_path)
    expected = (updates() * weights.unsqueeze(1)).sum(0) / weights.sum()
    torch.testing.assert_close(
        plain.vector, expected, rtol=0, atol=2e-3 if bound == "clip" else 1e-6
    )
    # Factors for shortening are as precise as a root: 2^-13 of the bound.
    torch.testing.assert_close(
        secret.vector, plain.vector, rtol=0, atol=5e-4 if bound == "clip" else 1e-5
    )
    assert secret.accepted == plain.accepted == CLIENTS
    assert secret.refused == {}


@pytest.mark.parametrize("aggregator", ["fedavg", "geometric-median"])
@pytest.mark.parametrize("bound", ["refuse", "clip"])
def test_who_does_not_keep_to_the_bound(bound: str, aggregator: str, tmp_path: Path) -> None:
    """Two clients send vectors that are too long: one by a little, the other beyond what can be
    shortened."""
    settings = Settings(aggregator=aggregator, norm=2.0, bound=bound, minimum_clients=2)
    vectors = updates() / 4
    vectors[1] *= 5
    vectors[2, 3] = 2.0**20
    secret, plain = both(settings, vectors, torch.ones(4, dtype=torch.float64), tmp_path)
    assert (
        secret.refused
        == plain.refused
        == ({5: "norm", 8: "norm"} if bound == "refuse" else {8: "norm"})
    )
    assert secret.accepted == plain.accepted == ((3, 9) if bound == "refuse" else (3, 5, 9))
    torch.testing.assert_close(secret.vector, plain.vector, rtol=0, atol=2e-3)


@pytest.mark.parametrize("bound", ["refuse", "clip"])
def test_a_small_weight_moves_little(bound: str, tmp_path: Path) -> None:
    """Tests a client that claims no weight and sends a vector of the whole bound.

    Three other clients have small weights. The fourth is refused, or counts like a client of full
    weight.
    """
    settings = Settings(norm=2.0, bound=bound, greatest_weight=100.0)
    sent = [
        Round.of(settings).client(x, count)
        for x, count in zip(updates(), (1, 2, 4, 100), strict=True)
    ]
    vectors = torch.stack([each.vector for each in sent])
    weights = torch.tensor([*(each.weight for each in sent[:3]), 0.0], dtype=torch.float64)
    secret, plain = both(settings, vectors, weights, tmp_path)
    assert secret.refused == plain.refused == ({9: "norm"} if bound == "refuse" else {})
    # Factors are off by up to 2^-12 of the bound. Weights that add up to 0.07 of one magnify that.
    torch.testing.assert_close(
        secret.vector, plain.vector, rtol=0, atol=1e-3 if bound == "clip" else 1e-4
    )
    for outcome in (secret, plain):
        assert outcome.vector is not None
        assert float(outcome.vector.norm()) < 2.0


def test_honest_clients_of_any_weight_pass(tmp_path: Path) -> None:
    """The vectors are at the bound, with the rounding of the encoding."""
    settings = Settings(norm=2.0, greatest_weight=1e6)
    x = 10 * torch.randn(4, 3000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    sent = [
        Round.of(settings).client(row, count)
        for row, count in zip(x, (1e-3, 1, 4e3, 1e6), strict=True)
    ]
    vectors = torch.stack([each.vector for each in sent])
    weights = torch.tensor([each.weight for each in sent], dtype=torch.float64)
    secret, plain = both(settings, vectors, weights, tmp_path)
    assert secret.refused == plain.refused == {}


def test_a_root_takes_no_part_itself(tmp_path: Path) -> None:
    settings = Settings(aggregator="fltrust", norm=4.0, root=5)
    vectors = torch.stack([Round.of(settings).client(x).vector for x in updates().abs()])
    secret, plain = both(settings, vectors, torch.ones(4, dtype=torch.float64), tmp_path)
    assert secret.accepted == plain.accepted == (3, 8, 9)
    torch.testing.assert_close(secret.vector, plain.vector, rtol=0, atol=1e-3)
    with pytest.raises(
        RoundError, match="the vector of 4, who is trusted, does not count in this round"
    ):
        Round.of(replace(settings, root=4)).plain(CLIENTS, vectors, torch.ones(4))
    for minimum, refused in ((4, ()), (1, (0, 2, 3))):
        rules = replace(settings, minimum_clients=minimum, reveals_single=True)
        sent = vectors.clone()
        sent[list(refused)] = 2.0
        left = 3 - len(refused)
        with pytest.raises(
            RoundError, match=f"the vectors of {left} clients count, and a round"
        ) as failed:
            Round.of(rules).plain(CLIENTS, sent, torch.ones(4))
        assert failed.value.refused == {CLIENTS[row]: "norm" for row in refused}


def ordered_by_distance() -> torch.Tensor:
    """Returns vectors of ten clients, each farther from the others than the one before. Only one
    coordinate matters."""
    x = torch.zeros(10, 3, dtype=torch.float64)
    x[:, 0] = torch.tensor([0.0, 0.01, 0.03, 0.06, 0.1, 0.16, 0.25, 0.38, 0.6, 0.9])
    return x


@pytest.mark.parametrize(
    ("settings", "counting"),
    [
        # Of ten clients, f attack and n - f count, or the given number. The given number is dropped
        # at each end.
        (Settings(aggregator="multi-krum"), slice(0, 8)),
        (Settings(aggregator="multi-krum", attackers=0.4), slice(0, 6)),
        # These are in the middle of the others. By the definition, 0.0507, 0.0547 and 0.0724 are
        # the smallest sums.
        (Settings(aggregator="multi-krum", chosen=3), slice(2, 5)),
        (Settings(aggregator="multi-krum", attackers=0.1, chosen=9), slice(0, 9)),
        (Settings(aggregator="trimmed-mean", trimmed=0.4), slice(4, 6)),
        (Settings(aggregator="trimmed-mean", trimmed=0.0), slice(0, 10)),
        # 0.3·10 is 3, whatever floating point computes.
        (Settings(aggregator="trimmed-mean", trimmed=0.3), slice(3, 7)),
    ],
)
def test_an_aggregator_does_what_its_settings_say(settings: Settings, counting: slice) -> None:
    x = ordered_by_distance()

    def program() -> Outcome:
        is_host = tacit.session().party == 0
        with tacit.fraction_bits(VECTOR_BITS):
            rows = tacit.share(x if is_host else None, owner=0)
            counts = tacit.share(torch.ones(10, dtype=torch.float64) if is_host else None, owner=0)
        return Round.of(settings).secret(Submitted(list(range(10)), rows, counts))

    plain = Round.of(settings).plain(range(10), x, torch.ones(10, dtype=torch.float64))
    for outcome in (tacit.launch(program)[0], plain):
        torch.testing.assert_close(outcome.vector, x[counting].mean(0), rtol=0, atol=1e-5)


def test_steps_are_those_that_are_set() -> None:
    x = torch.randn(10, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64) / 10
    found = [
        Round.of(Settings(aggregator="geometric-median", steps=steps)).plain(
            range(10), x, torch.ones(10)
        )
        for steps in (1, 16, None)
    ]
    assert found[0].vector is not None
    assert found[1].vector is not None
    assert torch.equal(found[1].vector, geometric_median(x, x[:, 0], steps=16))
    assert not torch.allclose(found[0].vector, found[1].vector)
    assert torch.equal(found[1].vector, found[2].vector)


@pytest.mark.parametrize("name", ["krum", "multi-krum", "geometric-median", "fltrust"])
def test_too_many_clients_for_an_aggregator(name: str) -> None:
    settings = Settings(aggregator=name, root=0 if name == "fltrust" else None)
    count = 65 + (name == "fltrust")
    message = f"{name} of 65 clients: its ranges hold for 64 at most"
    with pytest.raises(MisuseError, match=message):
        Round.of(settings).plain(range(count), torch.zeros(count, 3), torch.ones(count))
    Round.of(settings).plain(range(count - 1), torch.ones(count - 1, 3) / 4, torch.ones(count - 1))


@pytest.mark.parametrize(("how", "lacked"), [("pairs", 3), ("joint", 1)])
def test_noise_has_its_deviation_and_is_counted(how: str, lacked: int, tmp_path: Path) -> None:
    size, sigma = 20_000, 0.5
    settings = Settings(norm=2.0, noise=how, sigma=sigma, divisor=8.0)
    vectors = torch.zeros(4, size, dtype=torch.float64)
    vectors[:, 0] = 0.75
    secret, plain = both(settings, vectors, torch.ones(4, dtype=torch.float64), tmp_path)
    assert secret.vector is not None
    assert plain.vector is not None
    assert plain.vector[0] == 2.0 * 3.0 / 8.0
    # Noise by pairs has three parts, of which every server lacks one.
    deviation = 2.0 * sigma * math.sqrt(lacked) / 8.0
    drawn = secret.vector - plain.vector
    assert float(drawn.std()) == pytest.approx(deviation, rel=5 / math.sqrt(2 * size))
    assert abs(float(drawn.mean())) < 5 * deviation / math.sqrt(size)
    for party in range(3):
        assert Account(tmp_path / str(party) / "account", mechanism_of(settings, 1e-5)).rounds == 1
    assert not (tmp_path / "account").exists()


def test_servers_need_not_see_the_result() -> None:
    settings = Settings(result_to="clients", bound="none")
    vectors, weights = updates(), torch.tensor([1.0, 0.5, 0.5, 0.25], dtype=torch.float64)

    def program() -> list[Any]:
        outcome = Round.of(settings).secret(submitted(vectors, weights))
        assert outcome.vector is None
        assert isinstance(outcome.sealed, tacit.SecretTensor)
        return [outcome.sealed.reveal(to=2)]

    opened = tacit.launch(program)[2][0]
    found = Round.of(settings).opened(opened, 12)
    torch.testing.assert_close(found, vectors.sum(0) / weights.sum(), rtol=0, atol=1e-5)


def test_a_server_that_was_shown_other_bits_goes_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that is shown other bits stops within a round, not only at the end.

    The bits are for an equal number of clients, so that steps and sizes are the same.
    """
    within_bound, vectors, weights = validation.within_bound, updates() / 4, torch.ones(4)
    at: dict[int, int] = {}

    def shown(*args: Any, **options: Any) -> torch.Tensor:
        within_bound(*args, **options)
        own = tacit.session()
        at[own.party] = own.meter.total.rounds
        return torch.tensor([True, own.party != 1, own.party == 1, True])

    def program() -> int:
        with pytest.raises((DesyncError, PeerError), match="programs differ"):
            Round.of(Settings(aggregator="median")).secret(submitted(vectors, weights))
        return tacit.session().meter.total.rounds

    monkeypatch.setattr(validation, "within_bound", shown)
    for party, rounds in enumerate(tacit.launch(program)):
        assert rounds <= at[party] + 1


def test_a_client_sends_what_keeps_to_the_bound() -> None:
    round_ = Round.of(Settings(norm=0.5, greatest_weight=10.0))
    vector, weight = round_.client(torch.full((300,), 7.0), 20)
    assert weight == 1.0
    # Rounding to the numbers that are sent never exceeds the bound.
    rounded = (vector * 2.0**VECTOR_BITS).round() * 2.0**-VECTOR_BITS
    assert 1 - 1e-5 < float(rounded.norm()) <= 1
    vector, weight = round_.client(torch.full((4,), 0.1), 5)
    torch.testing.assert_close(vector, torch.full((4,), 0.1, dtype=torch.float64) / 0.5 * 0.5)
    assert weight == 0.5


def test_what_a_client_cannot_send() -> None:
    round_ = Round.of(Settings(norm=0.5, bound="none"))
    for value, message in [
        (math.nan, "value 2 of the update is nan, which is no finite number"),
        (-math.inf, "value 2 of the update is -inf, which is no finite number"),
        (
            1e9,
            r"value 2 of the update is 1e\+09; with a bound of 0.5, magnitudes below 8.38861e\+06 "
            r"are sent",
        ),
    ]:
        vector = torch.zeros(4)
        vector[2] = value
        with pytest.raises(EncodingError, match=message):
            round_.client(vector, 1)
    for weight in (0, -1, math.nan, math.inf):
        with pytest.raises(MisuseError, match="weights are positive"):
            round_.client(torch.zeros(4), weight)


@pytest.mark.parametrize("least", [0, 1])
def test_a_round_whose_clients_are_all_refused_comes_to_nothing(least: int, tmp_path: Path) -> None:
    """This holds for every aggregator. Without noise there is nothing to reveal."""
    settings = [
        Settings(aggregator=name, minimum_clients=least, reveals_single=True)
        for name in AGGREGATORS
        if not AGGREGATORS[name].needs_root
    ]
    long, weights = (
        torch.full((4, 12), 5.0, dtype=torch.float64),
        torch.ones(4, dtype=torch.float64),
    )

    def program() -> list[str]:
        found = []
        for each in settings:
            with pytest.raises(RoundError) as failed:
                Round.of(each).secret(submitted(long, weights))
            assert failed.value.refused == dict.fromkeys(CLIENTS, "norm")
            found.append(str(failed.value))
        return found

    assert set(tacit.launch(program)[0]) == {"the vectors of 0 clients count, and a round needs 1"}
    for each in settings:
        with pytest.raises(RoundError, match="the vectors of 0 clients count"):
            Round.of(each).plain(CLIENTS, long, weights)
    # Noise hides that no client counts.
    noisy = Settings(noise="pairs", sigma=0.01, divisor=4.0, minimum_clients=0)
    secret, plain = both(noisy, long, weights, tmp_path)
    assert secret.accepted == plain.accepted == ()
    assert float(plain.vector.abs().max()) == 0 < float(secret.vector.abs().max()) < 0.1


#: Invalid results of user-defined aggregators, and the errors for them.
NO_RESULTS = [
    (
        "vectors.mean()",
        r"mine.py:combine returned a tensor of shape \[\]; a tensor of shape \[12\] is wanted",
    ),
    (
        "vectors.mean(0)[:1]",
        r"returned a tensor of shape \[1\]; a tensor of shape \[12\] is wanted",
    ),
    (
        "torch.cat([vectors.mean(0), weights[:1]])",
        r"returned a tensor of shape \[13\]; a tensor of shape",
    ),
    ("None", r"mine.py:combine returned a NoneType; a tensor of shape \[12\] is wanted"),
]


def test_an_aggregator_that_returns_something_else_is_refused(tmp_path: Path) -> None:
    """A result with one more value could be taken for a quotient, and a single value for all of
    them."""
    vectors, weights = updates() / 4, torch.ones(4, dtype=torch.float64)
    results = [
        *NO_RESULTS,
        ("torch.zeros(12)", "mine.py:combine returned a tensor that is not secret"),
    ]
    rounds = []
    for number, (result, _) in enumerate(results):
        file = tmp_path / str(number) / "mine.py"
        file.parent.mkdir()
        file.write_text(f"import torch\n\n\ndef combine(vectors, weights):\n    return {result}\n")
        rounds.append(Round.of(Settings(aggregator=f"{file}:combine")))

    def program() -> None:
        for each, (_, said) in zip(rounds, results, strict=True):
            with pytest.raises(MisuseError, match=said):
                each.secret(submitted(vectors, weights))

    tacit.launch(program)
    for each, (_, said) in zip(rounds, NO_RESULTS, strict=False):
        with pytest.raises(MisuseError, match=said):
            each.plain(CLIENTS, vectors, weights)


def test_too_few_clients_end_a_round() -> None:
    settings = Settings(minimum_clients=3)
    with pytest.raises(RoundError, match="the vectors of 2 clients count, and a round needs 3"):
        Round.of(settings).plain((1, 2), torch.zeros(2, 3), torch.ones(2))
    vectors = torch.zeros(3, 3)
    vectors[1] = 2.0
    with pytest.raises(RoundError, match="the vectors of 2 clients count, and a round needs 3"):
        Round.of(settings).plain((1, 2, 3), vectors, torch.ones(3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(bound="shorten"), "bound = 'shorten': known are none, refuse, clip"),
        (Settings(result_to="servers"), "result_to = 'servers'"),
        (Settings(norm=0.0), "norm = 0.0: it is a finite number above 0"),
        (Settings(aggregator="krum", bound="none"), "krum takes vectors whose norms are validated"),
        (Settings(aggregator="fltrust"), "fltrust needs a root"),
        (Settings(noise="single", sigma=1.0), "noise = 'single': known are pairs, joint"),
        (
            Settings(noise="joint", divisor=1.0),
            "says how it is drawn, sigma how much, in bounds: give both or none",
        ),
        (Settings(sigma=1.0), "says how it is drawn, sigma how much, in bounds: give both or none"),
        (
            Settings(noise="pairs", sigma=0.0, divisor=1.0),
            "sigma = 0.0: it is a finite number above 0",
        ),
        (Settings(divisor=2.0), "a divisor divides a sum with noise, and there is no noise"),
        (
            Settings(minimum_clients=1),
            "minimum_clients = 1 without noise: a round of one client reveals its update",
        ),
        (
            Settings(aggregator="median", noise="pairs", sigma=1.0, divisor=1.0),
            "by how much one client changes its result is not",
        ),
        (
            Settings(bound="none", noise="pairs", sigma=1.0, divisor=1.0),
            "noise hides a client whose norm is validated",
        ),
        (
            Settings(noise="pairs", sigma=1.0),
            "noise without a divisor: give what the sum is divided by",
        ),
        (
            Settings(noise="pairs", sigma=1.0, divisor=2.0),
            "noise goes with an account of what is spent",
        ),
    ],
)
def test_settings_that_do_not_go_together(settings: Settings, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        Round.of(settings)


def test_vectors_of_another_scale() -> None:
    def program() -> None:
        x = tacit.share(torch.zeros(2, 3), owner=0)
        Round.of(Settings()).secret(Submitted([1, 2], x, x[:, 0]))

    with pytest.raises(MisuseError, match="clients' vectors and weights have 22 fraction bits"):
        tacit.launch(program, protocol="plain")


def test_a_step_of_ones_own() -> None:
    """A round is the list of its steps."""

    class Halve(Step):
        def secret(self, held: Held) -> Held:
            return replace(held, vectors=held.vectors * 0.5)

    usual = Round.of(Settings(bound="none"))
    own = Round((usual.steps[0], Halve(), *usual.steps[1:]), usual.unit)
    vectors, weights = updates(), torch.ones(4, dtype=torch.float64)
    expected = usual.plain(CLIENTS, vectors, weights).vector
    assert expected is not None
    torch.testing.assert_close(own.plain(CLIENTS, vectors, weights).vector, expected / 2)
    found = tacit.launch(lambda: own.secret(submitted(vectors, weights)).vector, protocol="plain")[
        0
    ]
    torch.testing.assert_close(found, expected / 2, rtol=0, atol=1e-5)
    assert isinstance(usual.steps[1], Clip)


@pytest.mark.parametrize("protocol", ["replicated", "replicated-malicious"])
@pytest.mark.parametrize("to", ["all", "clients"])
def test_what_leaves_its_range_is_no_result_in_checked_mode(to: str, protocol: str) -> None:
    """Runs a user-defined step with an overflow."""

    class Grow(Step):
        def secret(self, held: Held) -> Held:
            return replace(
                held,
                vectors=held.vectors * (held.vectors.abs() * 2.0**18) * (held.vectors * 2.0**18),
            )

    def program(checked: bool) -> str:
        usual = Round.of(Settings(bound="clip", norm=4.0, result_to=to, checked=checked))
        own = replace(usual, steps=(*usual.steps[:3], Grow(), *usual.steps[3:]))
        try:
            own.secret(submitted(updates() / 4, torch.ones(4, dtype=torch.float64)))
        except RoundError as failed:
            return str(failed)
        return "a result"

    assert tacit.launch(program, False, protocol=protocol) == ["a result"] * 3
    for told in tacit.launch(program, True, protocol=protocol):
        assert "aten.mul.Tensor" in told
        assert "test_steps.py" in told


@pytest.mark.parametrize("protocol", ["replicated", "replicated-malicious"])
@pytest.mark.parametrize("bound", ["refuse", "clip"])
def test_words_of_any_size_end_no_round_in_checked_mode(bound: str, protocol: str) -> None:
    """The client chooses the words, and is refused."""
    rules = Round.of(Settings(bound=bound, checked=True))

    def program() -> Outcome:
        sent = submitted(updates() / 4, torch.ones(4, dtype=torch.float64))
        assert isinstance(sent.vectors, tacit.SecretTensor)
        for part in sent.vectors._parts:
            part[2] <<= 41
        return rules.secret(sent)

    expected = (updates() / 4)[[0, 1, 3]].mean(0)
    for outcome in tacit.launch(program, protocol=protocol):
        assert outcome.refused == {8: "norm"}
        torch.testing.assert_close(outcome.vector, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("aggregator", [name for name in AGGREGATORS if name != "fltrust"])
def test_rounds_in_checked_mode_give_what_others_do(aggregator: str, tmp_path: Path) -> None:
    settings = Settings(aggregator=aggregator, norm=4.0, checked=True)
    vectors = torch.stack([Round.of(settings).client(x).vector for x in updates()])
    secret, plain = both(settings, vectors, torch.ones(4, dtype=torch.float64), tmp_path)
    assert secret.accepted == plain.accepted == CLIENTS
    torch.testing.assert_close(secret.vector, plain.vector, rtol=0, atol=2e-3)


def test_a_quotient_is_a_row_wherever_it_lies() -> None:
    """Vectors of clients are rows already; computed ones may have another layout in memory."""
    words = torch.arange(12.0)

    def program() -> list[torch.Tensor]:
        rows = tacit.share(words.reshape(1, 12), owner=0)
        lying = Quotient(rows[0, :-1], rows[0, -1])
        row = lying.row()
        assert isinstance(row, tacit.SecretTensor)
        assert row._parts[0].data_ptr() == rows._parts[0].data_ptr()
        others = [
            Quotient(rows[0, :-2], rows[0, -1]),
            Quotient(rows[0, ::2], rows[0, -1]),
            Quotient(rows[0, 1:], rows[0, 0]),
            Quotient(rows[0, :-1] + 1, rows[0, -1]),
        ]
        return [each.row().reveal() for each in (lying, *others)]

    expected = [
        words,
        torch.cat([words[:-2], words[-1:]]),
        torch.cat([words[::2], words[-1:]]),
        torch.cat([words[1:], words[:1]]),
        torch.cat([words[:-1] + 1, words[-1:]]),
    ]
    for found in tacit.launch(program):
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
