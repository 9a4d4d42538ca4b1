"""Adaptive clipping: the bound follows a quantile of the clients' norms."""

import math
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import LONG, Servers, known_of, written

import tacit
from tacit import fixed
from tacit.errors import MisuseError, PeerError, SetupError
from tacit.federated import Client
from tacit.federated.privacy.account import Account, Mechanism, epsilons
from tacit.federated.rounds.adaptive import (
    LOG_BITS,
    MOST_LOG,
    ZERO,
    Count,
    bound_of,
    moved,
    with_count,
)
from tacit.federated.rounds.round_state import Held
from tacit.federated.rounds.settings import Settings, mechanism_of
from tacit.federated.rounds.steps import Round
from tacit.federated.service.config import Federation
from tacit.federated.service.terms import Terms
from tacit.federated.validation import UNIT, VECTOR_BITS, shorter, slack
from tacit.sessions import session

#: The norms of the clients' updates, in every round.
NORMS = (0.5, 1.0, 2.0, 4.0)
RULES = "norm = 8.0\nquantile = 0.5\nquantile_rate = 1.0\ngreatest_weight = 2.0\n"


def test_the_bound_moves_as_the_paper_says() -> None:
    log = 0
    expected = 3.0
    for fraction in (1.0, 0.75, 0.0, 0.5, 0.25):
        log = moved(log, fraction, 0.5, 0.2)
        expected *= math.exp(-0.2 * (fraction - 0.5))
        assert bound_of(3.0, log) == pytest.approx(expected, rel=1e-5)
    assert bound_of(3.0, 0) == 3.0 == bound_of(3.0, ZERO)
    for _ in range(100):
        log = moved(log, 0.0, 0.9, 1.0)
    assert log == ZERO + MOST_LOG
    assert MOST_LOG == 20 * 2**LOG_BITS


@pytest.mark.parametrize("is_weighted", [True, False])
def test_vectors_shorter_than_the_bound_are_found_exactly(is_weighted: bool) -> None:
    weights = [UNIT, UNIT, UNIT // 2, UNIT // 2, 0, 1, UNIT, UNIT // 2]
    longest = [each - 2 * slack(9) if is_weighted else UNIT - 2 * slack(9) for each in weights]
    norms = [longest[0] - 1, longest[1], longest[2] - 1, longest[3], 0, 0, UNIT, 0]
    rows = torch.zeros(len(norms), 9, dtype=torch.int64)
    rows[:, 4] = torch.tensor(norms)

    def judged() -> torch.Tensor:
        current = session()
        first = current.party == 0
        with current.using(scale=fixed.Scale(VECTOR_BITS)):
            vectors = words(rows if first else None)
            return shorter(
                vectors, words(torch.tensor(weights) if first else None), is_weighted=is_weighted
            ).reveal()

    def words(given: torch.Tensor | None) -> Any:
        shared = tacit.share(given, owner=0)
        return shared.like(shared._parts, fixed.Scale(VECTOR_BITS), torch.float32)

    found = tacit.launch(judged)[0].tolist()
    # One word of weight has no room for what rounding changes.
    assert found == [True, False, True, False, False, not is_weighted, False, True]


def rounds(config: Path, many: int) -> tuple[list[Any], list[list[float]]]:
    """Runs rounds of clients of the given norms; returns a server's reports, and the bounds that
    clients heard."""

    def work(server: Any) -> list[Any]:
        reports, model = [], torch.zeros(6)
        for _ in range(many):
            reports.append(server.round(model))
            model = reports[-1].model
        return reports

    servers = Servers(config, work)

    def learn(number: int) -> list[float]:
        client, bounds = Client(config, number), []
        for _ in range(many):
            task = client.join(LONG)
            bounds.append(task.norm)
            update = torch.zeros(6)
            update[number] = NORMS[number]
            client.submit(task.model + update, 2.0 if number else 1.0)
            client.result(LONG)
        return bounds

    with ThreadPoolExecutor(len(NORMS)) as pool:
        bounds = list(pool.map(learn, range(len(NORMS))))
    reports = servers.ended()
    told = [[(each.norm, each.fraction) for each in of] for of in reports]
    assert told[0] == told[1] == told[2]
    return reports[0], bounds


@pytest.mark.filterwarnings("ignore::tacit.errors.SubmissionWarning")
@pytest.mark.parametrize(
    "rules", ["", 'bound = "clip"\nresult_to = "clients"\n', 'aggregator = "median"\n']
)
def test_servers_and_clients_follow_the_quantile(rules: str, tmp_path: Path) -> None:
    config = written(tmp_path, len(NORMS), rules=RULES + rules)
    reports, bounds = rounds(config, 4)
    norm = 8.0
    for number, report in enumerate(reports):
        fraction = sum(each < norm for each in NORMS) / len(NORMS)
        assert report.fraction == fraction
        assert report.norm == pytest.approx(norm, rel=1e-5)
        assert all(each[number] == report.norm for each in bounds)
        norm *= math.exp(-(fraction - 0.5))
    assert [each.fraction for each in reports] == [1.0, 1.0, 0.75, 0.75]
    if not rules:
        # The first round moves the model by the mean of the whole updates, and the last one by the
        # mean of shortened ones.
        step = reports[3].model - reports[2].model
        kept = torch.tensor([0.5, 2.0, 4.0, 2 * reports[3].norm, 0.0, 0.0]) / 7
        assert torch.allclose(step, kept, atol=1e-4)


@pytest.mark.filterwarnings("ignore::tacit.errors.SubmissionWarning")
def test_restarted_servers_go_on_from_the_bound(tmp_path: Path) -> None:
    config = written(tmp_path, len(NORMS), rules=RULES)
    reports, _ = rounds(config, 1)
    assert reports[0].norm == 8.0
    log = int(known_of(tmp_path, 0).split()[5])
    assert log == moved(0, 1.0, 0.5, 1.0)
    text = config.read_text()
    moved_to = tmp_path / "again"
    moved_to.mkdir()
    again = written(moved_to, len(NORMS), rules=RULES)
    for server in range(3):
        # One server was killed before it wrote the bound; the two others count.
        kept = (tmp_path / f"server-{server}.round").read_bytes()
        if server:
            (moved_to / f"server-{server}.round").write_bytes(kept)
    assert text != again.read_text()
    reports, bounds = rounds(again, 1)
    assert reports[0].norm == bounds[0][0] == pytest.approx(8.0 * math.exp(-0.5), rel=1e-5)


def test_noise_on_the_count_is_accounted_for(tmp_path: Path) -> None:
    settings = Settings(
        quantile=0.5, noise="pairs", sigma=2.0, divisor=4.0, quantile_sigma=3.0, sampling=0.5
    )
    found = mechanism_of(settings, 1e-5)
    assert with_count(2.0, 3.0) == pytest.approx(6 / math.sqrt(13))
    assert found == Mechanism.of(6 / math.sqrt(13), 3, 0.5, 1e-5, 0.0)
    alone = mechanism_of(replace(settings, quantile=None, quantile_sigma=None), 1e-5)
    assert epsilons(found, 10).to_server > epsilons(alone, 10).to_server
    joint = mechanism_of(replace(settings, noise="joint"), 1e-5)
    assert (
        joint.off
        == 2
        * mechanism_of(
            replace(settings, noise="joint", quantile=None, quantile_sigma=None), 1e-5
        ).off
    )
    rules = f'{RULES}noise = "pairs"\nsigma = 0.001\ndivisor = 7.0\nquantile_sigma = 0.01\n'
    config = written(tmp_path, len(NORMS), rules=rules)
    reports, _ = rounds(config, 1)
    # All of it, with noise of a deviation of 0.01 for each of three servers.
    assert abs(reports[0].fraction - 1.0) < 0.1
    assert reports[0].epsilons is not None


@pytest.mark.parametrize(("how", "parts"), [("pairs", 3), ("joint", 1)])
def test_the_count_has_noise_of_its_deviation(how: str, parts: int) -> None:
    deviation, draws = 50.0, 60

    def counted() -> list[float]:
        current = session()
        first = current.party == 0
        with current.using(scale=fixed.Scale(VECTOR_BITS)):
            vectors = tacit.share(
                torch.zeros(2, 3, dtype=torch.float64) if first else None, owner=0
            )
            weights = tacit.share(torch.ones(2, dtype=torch.float64) if first else None, owner=0)
            step = Count(True, how, deviation, 2.0)
            held = Held((0, 1), vectors, weights)
            fractions = [step.secret(held).fraction for _ in range(draws)]
            return [2.0 * each for each in fractions if each is not None]

    found = torch.tensor(tacit.launch(counted)[0])
    # Six standard errors of a standard deviation of that many draws, and of their mean.
    wanted = deviation * math.sqrt(parts)
    assert abs(float(found.std()) / wanted - 1) < 6 / math.sqrt(2 * draws)
    assert abs(float(found.mean()) - 2) < 6 * wanted / math.sqrt(draws)


def test_the_fraction_is_of_the_clients_that_are_expected() -> None:
    """With noise all but the coordinator, by default; the number is asked for where it matters."""
    settings = Settings(
        quantile=0.5, noise="pairs", sigma=2.0, divisor=4.0, quantile_sigma=3.0, sampling=0.5
    )

    def expected(settings: Settings, clients: int | None) -> float | None:
        account = None
        if settings.noise is not None:
            account = Account(Path("account-of-nobody"), mechanism_of(settings, 1e-5))
        (count,) = (
            each for each in Round.of(settings, account, clients).steps if isinstance(each, Count)
        )
        return count.expected

    assert expected(settings, 10) == 5.0
    assert expected(replace(settings, coordinator=9), 10) == 4.5
    assert expected(replace(settings, quantile_clients=3.25), 10) == 3.25
    assert expected(Settings(quantile=0.5), 10) is None
    for wanting in (settings, Settings(quantile=0.5)):
        with pytest.raises(MisuseError, match=r"give Round\.of\(settings, clients=\.\.\.\)"):
            expected(wanting, None)
    with pytest.raises(MisuseError, match="rounds of word_bits = 16 and quantile = None depend"):
        Round.of(Settings(word_bits=16))


def test_terms_have_a_bound_that_is_a_number() -> None:
    terms = Terms(Settings(quantile=0.5), 3, clients=2, norm=0.75)
    assert Terms.from_bytes(terms.to_bytes()) == terms
    assert terms.rules.norm == 0.75
    for wrong in (b"0.0", b"-1.5", b"Infinity", b"NaN", b'"1"', b"[1.5]", b"true", b"1"):
        told = terms.to_bytes().replace(b'"norm": 0.75', b'"norm": ' + wrong)
        assert told != terms.to_bytes()
        with pytest.raises(PeerError, match="not of this release"):
            Terms.from_bytes(told)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("quantile = 1.0", "quantile = 1 at quantile_rate = 0.2: the one is between 0 and 1"),
        ("quantile = 0.5\nquantile_rate = 2.0", "quantile = 0.5 at quantile_rate = 2: the one is"),
        ("quantile = 0.5\nquantile_rate = nan", "quantile_rate = nan: it is a finite number above"),
        ("quantile_sigma = 1.0", "quantile_sigma is of noise on a count for a quantile: give"),
        ('quantile = 0.5\nbound = "none"', "a quantile is of norms that servers validate: take"),
        (
            "quantile = 0.5\nword_bits = 16",
            "a quantile with word_bits = 16: rounding changes norms",
        ),
        (
            'quantile = 0.5\naggregator = "fltrust"\nroot = "server-0"',
            "a quantile with root = 'server-0': a server's own vector has the first bound",
        ),
        (
            'quantile = 0.5\nnoise = "pairs"\nsigma = 1.0\ndivisor = 2.0',
            "with a quantile, noise needs quantile_sigma, which hides a client in the count",
        ),
        (
            "quantile = 0.5\nquantile_sigma = 1.0",
            "with a quantile, noise needs quantile_sigma, which hides a client in the count",
        ),
        (
            'quantile = 0.5\nnoise = "pairs"\nsigma = 1.0\ndivisor = 2.0\nquantile_sigma = 1e9',
            'quantile_sigma = 1e+09: noise = "pairs" is drawn of standard deviations from 2.38e-07',
        ),
        (
            'quantile = 0.5\nnoise = "joint"\nsigma = 9.0\ndivisor = 2.0\nquantile_sigma = 100.0',
            'quantile_sigma = 100: noise = "joint" is drawn of standard deviations from',
        ),
        (
            "quantile = 0.5\nquantile_clients = 2",
            "quantile_clients is for a quantile with noise, since without noise servers know how",
        ),
    ],
)
def test_what_a_quantile_does_not_go_with(rules: str, message: str, tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=rules)
    with pytest.raises(SetupError, match=re.escape(message)):
        Federation.read(config)
