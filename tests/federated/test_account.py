"""Reports of privacy, and the account of it."""

import json
import logging
import math
import random
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import optimize, special, stats
from views import watch

import tacit
from tacit import checksums
from tacit.errors import MisuseError, SetupError
from tacit.federated.privacy.account import (
    GREATEST,
    GRID,
    ORDERS,
    Account,
    Epsilons,
    Mechanism,
    epsilon,
    epsilons,
)
from tacit.federated.privacy.noise import OFF, pairs, rounded_gaussian
from tacit.federated.rounds.settings import Settings, mechanism_of
from tacit.federated.rounds.steps import Noise, Reveal, Round
from tacit.federated.rounds.submission import Submitted
from tacit.federated.validation import VECTOR_BITS

DELTA = 1e-5


def closed_form(sigma: float, delta: float) -> float:
    """Returns the ε of one Gaussian of sensitivity 1 (Balle, Wang 2018, theorem 8)."""

    def excess(found: float) -> float:
        first, second = 1 / (2 * sigma) - found * sigma, -1 / (2 * sigma) - found * sigma
        return special.ndtr(first) - math.exp(found + special.log_ndtr(second)) - delta

    return float(optimize.brentq(excess, 0, 500))


@pytest.mark.parametrize(
    ("sigma", "rounds"), [(0.5, 1), (1.0, 1), (1.0, 20), (4.0, 100), (20.0, 3)]
)
def test_rounds_of_gaussians_have_the_closed_form(sigma: float, rounds: int) -> None:
    exact = closed_form(sigma / math.sqrt(rounds), DELTA)
    found = epsilon(sigma, 1.0, rounds, DELTA)
    assert exact <= found * (1 + 1e-9)
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-3)


def test_sampled_rounds_have_dp_accountings_own_figure() -> None:
    import dp_accounting
    from dp_accounting import pld

    event = dp_accounting.PoissonSampledDpEvent(0.2, dp_accounting.GaussianDpEvent(1.5))
    expected = pld.PLDAccountant().compose(event, 8).get_epsilon(DELTA)
    assert epsilon(1.5, 0.2, 8, DELTA) == pytest.approx(expected, rel=1e-9)
    assert expected < epsilon(1.5, 1.0, 8, DELTA) / 2


def sampled_closed_form(sigma: float, sampling: float, delta: float) -> float:
    """Returns the ε of one round with a Poisson sample.

    It follows from the probability that the privacy loss of the mixture exceeds ε, both for a
    client that joins and for one that leaves.
    """

    def place(ratio: float) -> float:
        """Returns where the mixture has the given ratio to the density of the Gaussian without the
        client."""
        within = (ratio - (1 - sampling)) / sampling
        return sigma**2 * math.log(within) + 0.5 if within > 0 else -math.inf

    def without(x: float) -> float:
        return float(special.ndtr(x / sigma))

    def mixture(x: float) -> float:
        return (1 - sampling) * without(x) + sampling * float(special.ndtr((x - 1) / sigma))

    def leaves(found: float) -> float:
        x = place(math.exp(found))
        return (1 - mixture(x)) - math.exp(found) * (1 - without(x)) - delta

    def comes(found: float) -> float:
        x = place(math.exp(-found))
        return without(x) - math.exp(found) * mixture(x) - delta

    return max(
        float(optimize.brentq(excess, 1e-9, 50)) for excess in (leaves, comes) if excess(1e-9) > 0
    )


@pytest.mark.parametrize(("sigma", "sampling"), [(0.7, 0.1), (1.5, 0.5), (3.0, 0.9)])
def test_a_sampled_round_has_the_closed_form(sigma: float, sampling: float) -> None:
    exact = sampled_closed_form(sigma, sampling, DELTA)
    found = epsilon(sigma, sampling, 1, DELTA)
    assert exact <= found * (1 + 1e-9)
    assert found == pytest.approx(exact, rel=2e-3, abs=2e-4)


def test_what_is_told_is_no_less_than_the_closed_form_and_little_more() -> None:
    """Compares with Gaussians of any noise, rounds and δ: from an ε near 0 to one that hides
    nothing."""
    rnd = random.Random(7)
    for _ in range(60):
        sigma, delta = 10 ** rnd.uniform(-4, 3), 10 ** rnd.uniform(-10, -1)
        rounds = int(10 ** rnd.uniform(0, 6))
        exact, found = (
            gaussian(sigma / math.sqrt(rounds), delta),
            epsilon(sigma, 1.0, rounds, delta),
        )
        most = exact * 1.005 + GRID if found <= GREATEST else exact * 1.05
        assert exact * (1 - 1e-9) <= found <= most


def gaussian(sigma: float, delta: float) -> float:
    """Computes ``closed_form`` with logarithms, so that no ε is too large."""

    def excess(found: float) -> float:
        first = float(special.log_ndtr(1 / (2 * sigma) - found * sigma))
        second = found + float(special.log_ndtr(-1 / (2 * sigma) - found * sigma))
        return (
            first + math.log(-math.expm1(second - first)) - math.log(delta)
            if second < first
            else -1e9
        )

    most = 1.0
    while excess(most) > 0:
        most *= 2
    return float(optimize.brentq(excess, 0, most, xtol=1e-12)) if excess(0.0) > 0 else 0.0


@pytest.mark.parametrize(
    ("sigma", "sampling", "rounds", "delta"),
    [(0.8, 0.02, 60, 1e-6), (1.0, 0.25, 20, 1e-5), (3.0, 0.6, 100, 1e-4), (0.6, 0.5, 10, 1e-5)],
)
def test_rounds_of_samples_are_told_as_by_a_finer_grid(
    sigma: float, sampling: float, rounds: int, delta: float
) -> None:
    import dp_accounting
    from dp_accounting import pld

    found = epsilon(sigma, sampling, rounds, delta)
    event = dp_accounting.PoissonSampledDpEvent(sampling, dp_accounting.GaussianDpEvent(sigma))
    # A tenth of the accountant's step, which is relative to ε if ε is above 1.
    finer = pld.PLDAccountant(value_discretization_interval=GRID / 10 * max(1.0, found))
    reference = float(finer.compose(event, rounds).get_epsilon(delta))
    assert reference * (1 - 1e-6) <= found <= reference * 1.005 + 5 * GRID


@pytest.mark.parametrize(
    ("sigma", "sampling", "rounds"), [(4.0, 1.0, 3), (2.0, 0.25, 4), (1.0, 1.0, 2)]
)
def test_what_noise_is_off_by_is_a_part_of_delta(
    sigma: float, sampling: float, rounds: int
) -> None:
    """The reported ε is nearly the smallest one: the δ that remains after the sampling error
    at this ε proves the same ε."""
    off = OFF["joint"]
    found = epsilon(sigma, sampling, rounds, DELTA, off)
    left = DELTA - rounds * off * (1 + math.exp(found))
    assert 0 < left < DELTA
    least = epsilon(sigma, sampling, rounds, left)
    assert epsilon(sigma, sampling, rounds, DELTA) < least <= found * (1 + 1e-6)
    assert found == pytest.approx(least, rel=1e-4)
    # The error is too large for δ, so nothing is proved.
    assert epsilon(0.5, 1.0, rounds, DELTA, off) == math.inf > epsilon(0.5, 1.0, rounds, DELTA)
    assert epsilon(sigma, sampling, rounds, DELTA, 1e-4) == math.inf


def test_an_account_of_other_noise_is_refused(tmp_path: Path) -> None:
    """Refuses an account that differs in any part of its mechanism, and checks that the remedy
    works.

    An account without an entry for the error of joint noise remains valid.
    """
    for how in ("pairs", "joint"):
        settings = Settings(noise=how, sigma=2.0, divisor=8.0, sampling=0.5)
        right = mechanism_of(settings, DELTA)
        assert right.off == (2.0**-39 if how == "joint" else 0.0)
        for wrong in (
            replace(right, noise_to_server=2.5),
            replace(right, noise_to_others=20.0),
            replace(right, sampling=0.25),
            replace(right, off=1e-6),
        ):
            with pytest.raises(
                MisuseError, match=r"the account is of .*, and these rounds are of .*make the"
            ):
                Round.of(settings, Account(tmp_path / "account", wrong))
        Round.of(settings, Account(tmp_path / "account", right))
        earlier = {name: value for name, value in asdict(right).items() if name != "off"}
        path = tmp_path / f"earlier-{how}"
        entries = {"mechanism": earlier, "rounds": 3, "checksum": checksums.field("account")}
        path.write_bytes(checksums.filled(json.dumps(entries).encode(), "account"))
        assert Account(path, right).rounds == 3
    with pytest.raises(MisuseError, match="these rounds have none"):
        Round.of(Settings(), Account(tmp_path / "account", right))


class CrashError(Exception):
    """Ends a server at this point."""


@pytest.mark.parametrize("result_to", ["all", "clients"])
def test_what_is_revealed_is_spent_before(
    result_to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stops a server at the reveal, the file from which it restarts includes the round."""
    settings = Settings(noise="pairs", sigma=2.0, divisor=2.0, bound="clip", result_to=result_to)
    mechanism = mechanism_of(settings, DELTA)

    def crashes(*_: object) -> None:
        raise CrashError

    monkeypatch.setattr(Reveal, "secret", crashes)

    def program() -> int:
        party = tacit.session().party
        path = tmp_path / f"account-{party}"
        round_ = Round.of(settings, Account(path, mechanism))
        with tacit.fraction_bits(VECTOR_BITS):
            rows = tacit.share(torch.ones(2, 3) / 4 if party == 0 else None, owner=0)
            weights = tacit.share(torch.ones(2) if party == 0 else None, owner=0)
        with pytest.raises(CrashError):
            round_.secret(Submitted([0, 1], rows, weights))
        return Account(path, mechanism).rounds

    assert tacit.launch(program) == [1, 1, 1]


@pytest.mark.parametrize(("sigma", "rounds"), [(1.0, 1), (2.0, 30), (10.0, 5)])
def test_renyis_divergence_gives_no_less(sigma: float, rounds: int) -> None:
    """Rényi accounting gives no smaller ε.

    The references are the closed form k·α/2σ² at the order α (Mironov 2017, corollary 3), with the
    conversion of Canonne, Kamath, Steinke 2020, proposition 12, and dp-accounting's result for the
    same.
    """
    from dp_accounting import GaussianDpEvent, rdp

    orders = np.array(ORDERS, float)
    spent = rounds * orders / (2 * sigma**2)
    converted = spent + np.log1p(-1 / orders) - np.log(DELTA * orders) / (orders - 1)
    least = max(0.0, float(converted.min()))
    theirs = rdp.RdpAccountant(ORDERS).compose(GaussianDpEvent(sigma), rounds).get_epsilon(DELTA)
    assert theirs == pytest.approx(least, rel=1e-9)
    assert (
        closed_form(sigma / math.sqrt(rounds), DELTA) <= epsilon(sigma, 1.0, rounds, DELTA) <= least
    )


def test_a_server_sees_more_than_those_who_see_models() -> None:
    """A server lacks only one of three parts of the noise, and knows who takes part."""
    mechanism = Mechanism.of(2.0, parts=3, sampling=0.25, delta=DELTA)
    found = epsilons(mechanism, 4)
    assert found.to_server == epsilon(2.0, 1.0, 4, DELTA)
    assert found.to_others == epsilon(2.0 * math.sqrt(3), 0.25, 4, DELTA)
    assert found.to_others < found.to_server
    assert epsilons(mechanism, 0) == Epsilons(0.0, 0.0)


def test_orders_that_are_left_out_are_nobodys_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """With little noise on a sample, dp-accounting warns of each order that it leaves out."""
    epsilon.cache_clear()
    assert 0 < epsilon(0.866025, 0.5, 1, 1e-5) < GREATEST
    assert not caplog.records
    logging.getLogger("absl").warning("of something else")
    assert len(caplog.records) == 1


def test_mechanisms_that_cannot_be() -> None:
    """Each error names the argument and its valid range, for invalid values and for values out of
    range."""
    none: list[Any] = [0.0, -1.0, math.nan, math.inf, 1e-300, 1e300, 10**400, "1", True, None]
    for wrong in [*none, 1e-5, 1e7]:
        with pytest.raises(
            MisuseError, match=r"sigma = .* cannot be accounted: from 0\.0001 to 1000000; less"
        ):
            Mechanism.of(wrong)
    for wrong in [*none, 1e-7, 1.5]:
        if wrong is not True:
            with pytest.raises(
                MisuseError, match=r"sampling = .* cannot be accounted: from 1e-06 to 1; it"
            ):
                Mechanism.of(1.0, sampling=wrong)
    for wrong in [*none, 1e-11, 1.0]:
        with pytest.raises(
            MisuseError, match=r"δ = .* cannot be accounted: from 1e-10 to 0\.9999999999; it"
        ):
            Mechanism.of(1.0, delta=wrong)
    for rounds in (-1, 1_000_001, 10**400):
        with pytest.raises(MisuseError, match=r"at most 1000000 rounds.* add up both"):
            epsilons(Mechanism.of(1.0), rounds)


def test_an_epsilon_that_hides_nothing_is_told() -> None:
    """Checks the closed form of Rényi's bound, with too little noise to compose privacy losses."""
    for sigma, sampling in ((1e-4, 1.0), (1e-4, 0.5), (1e-3, 1.0), (0.02, 0.5), (1e-3, 1e-6)):
        found = epsilon(sigma, sampling, 1, DELTA)
        assert (
            1000 < found < 1.1 * (1 / (2 * sigma**2) + math.sqrt(2 * math.log(1 / DELTA)) / sigma)
        )
    assert epsilon(2.0, 1.0, 100_000, DELTA) > 12_500
    # The results on both sides of the switch between accounting methods are nearly equal.
    below, above = (epsilon(sigma, 1.0, 1, DELTA) for sigma in (0.0250, 0.0242))
    assert 950 < below < 1000 < above < 1100


@pytest.mark.parametrize("trials", [12, pytest.param(100, marks=pytest.mark.long)])
def test_what_can_be_accounted_is(trials: int) -> None:
    """Any noise, sampling, rounds and δ give a finite ε, or one of tacit's errors. More noise never
    gives a larger ε."""
    rnd = random.Random(trials)
    for _ in range(trials):
        noise, delta = 10 ** rnd.uniform(-4.2, 6.2), 10 ** rnd.uniform(-10.2, 0.0)
        sampling = rnd.choice((1.0, 10 ** rnd.uniform(-6.2, 0.0)))
        rounds = int(10 ** rnd.uniform(0.0, 2.0 if sampling < 1 else 6.1))
        try:
            found = epsilons(Mechanism.of(noise, 1, sampling, delta), rounds)
        except MisuseError:
            # Only values outside the supported ranges are refused.
            within = 1e-4 <= noise <= 1e6 and sampling >= 1e-6 and 1 <= rounds <= 1_000_000
            assert not (within and 1e-10 <= delta <= 1 - 1e-10)
            continue
        for each in (found.to_server, found.to_others):
            assert 0 <= each < math.inf
        assert found.to_others <= found.to_server + 1e-4
        if noise < 1e6:
            louder = epsilons(Mechanism.of(min(2 * noise, 1e6), 1, sampling, delta), rounds)
            assert louder.to_server <= found.to_server + 1e-4


def test_a_budget_ends_rounds_and_outlasts_restarts(tmp_path: Path) -> None:
    mechanism = Mechanism.of(2.0, delta=DELTA)
    budget = epsilon(2.0, 1.0, 3, DELTA) + 1e-6
    path = tmp_path / "account.json"
    for _ in range(3):
        # A server restarts before each round.
        Account(path, mechanism, budget).spend()
    account = Account(path, mechanism, budget)
    assert account.rounds == 3
    assert account.spent.to_server <= budget
    before = path.read_text()
    with pytest.raises(MisuseError, match=r"round 4 would spend ε = .* no more rounds"):
        account.spend()
    assert path.read_text() == before
    assert account.rounds == 3
    assert [file.name for file in tmp_path.iterdir()] == ["account.json"]


def test_accounts_that_are_none(tmp_path: Path) -> None:
    mechanism, path = Mechanism.of(1.0), tmp_path / "account.json"
    kept = json.dumps(asdict(mechanism))
    rounds = ("-1", "1000001", "true", "1.0", "NaN", '"1"', "9" * 400, "9" * 5000)
    for text in ("", "[]", "{}", '{"rounds": 1}', "null", "[" * 100_000, *rounds):
        whole = f'{{"mechanism": {kept}, "rounds": {text}}}' if text in rounds else text
        path.write_text(whole)
        with pytest.raises(SetupError, match="is not taken for the account: it has no checksum"):
            Account(path, mechanism)
        sealed = f'{{"checksum": "{checksums.field("account")}", {whole.removeprefix("{")}'
        path.write_bytes(checksums.filled(sealed.encode(), "account"))
        with pytest.raises(
            SetupError, match=r"account\.json is not an account: .*put it back as it was, or copy"
        ):
            Account(path, mechanism)
    Account(tmp_path / "other", Mechanism.of(2.0)).spend()
    with pytest.raises(SetupError, match="a federation keeps its noise"):
        Account(tmp_path / "other", mechanism)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SetupError, match="is not taken for the account: it was damaged"):
        Account(path, mechanism)
    with pytest.raises(SetupError, match=r"cannot read the account .*: it is a folder"):
        Account(tmp_path, mechanism)


def test_an_account_of_an_earlier_release_is_taken_when_somebody_says_so(tmp_path: Path) -> None:
    mechanism, path = Mechanism.of(1.0), tmp_path / "account"
    path.write_text(json.dumps({"mechanism": asdict(mechanism), "rounds": 7}) + "\n")
    with pytest.raises(SetupError, match="has no checksum") as refused:
        Account(path, mechanism)
    # The remedy of the error works.
    found = re.search(r'python -c "(.*?)"', str(refused.value))
    assert found is not None
    exec(found[1], {})
    assert Account(path, mechanism).rounds == 7
    with pytest.raises(SetupError, match="has a checksum already"):
        exec(found[1], {})


def test_an_account_cannot_be_written_nowhere(tmp_path: Path) -> None:
    mechanism = Mechanism.of(1.0)
    with pytest.raises(SetupError, match="cannot write the account"):
        Account(tmp_path / "nowhere" / "account", mechanism).spend()


def test_a_crash_leaves_the_old_account_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, mechanism = tmp_path / "account", Mechanism.of(1.0)
    Account(path, mechanism).spend()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("os.fsync", "pathlib.Path.replace"):
        account = Account(path, mechanism)
        with monkeypatch.context() as patched:
            patched.setattr(name, fails)
            with pytest.raises(SetupError, match="the disk is full"):
                account.spend()
        assert Account(path, mechanism).rounds == 1


def test_noise_is_a_rounded_gaussian() -> None:
    """Samples pass statistical tests, each on 10^6 samples: chi-square for small integers,
    Kolmogorov–Smirnov for large ones."""
    count = 1_000_000
    small = rounded_gaussian(count, 1.3)
    edges = torch.arange(-5, 6) - 0.5
    expected = torch.special.ndtr(edges.double() / 1.3).diff(
        prepend=torch.zeros(1), append=torch.ones(1)
    )
    observed = torch.bincount((small.clamp(-6, 5) + 6), minlength=12)
    assert stats.chisquare(observed, expected * count).pvalue > 1e-6
    large = rounded_gaussian(count, 2.0**30).double() * 2.0**-30
    assert stats.kstest(large.numpy(), "norm").pvalue > 1e-6
    assert float((large[1:] * large[:-1]).mean()) == pytest.approx(0, abs=6e-3)


def test_servers_noise_is_a_gaussian_and_independent() -> None:
    """Noise from the keys of three servers passes statistical tests.

    Each test takes 10^6 samples: chi-square for small integers, Kolmogorov–Smirnov for large ones,
    covariances between coordinates and between rounds.
    """
    count, small, large = 1_000_000, 1.5, 2.0**20

    def program() -> list[torch.Tensor]:
        zeros = tacit.share(torch.zeros(count), owner=0)
        one = 2.0**-zeros._scale.bits
        return [pairs(zeros, deviation * one).reveal() / one for deviation in (small, large, large)]

    few, *rounds = (drawn.double() for drawn in tacit.launch(program)[0])
    # The sum of three discrete Gaussians whose variance is rounded up.
    places = np.arange(-40, 41)
    part = np.exp(-(places**2) / (2 * math.ceil(small**2)))
    part /= part.sum()
    chances = np.convolve(np.convolve(part, part), part)[120 - 9 : 120 + 10]
    chances[[0, -1]] += (1 - chances.sum()) / 2
    observed = torch.bincount(few.clamp(-9, 9).long() + 9, minlength=19)
    assert stats.chisquare(observed, chances * count).pvalue > 1e-6
    drawn = [x.numpy() / (large * math.sqrt(3)) for x in rounds]
    for x in drawn:
        assert stats.kstest(x, "norm").pvalue > 1e-6
    (first, other), most = drawn, 5 / math.sqrt(count)
    for distance in (1, 2, 64, 4096):
        assert abs(float((first[distance:] * first[:-distance]).mean())) < most
    assert abs(float((first * other).mean())) < most
    # Sizes are not correlated either.
    assert abs(float(np.corrcoef(first**2, other**2)[0, 1])) < most
    assert abs(float(np.corrcoef(first[1:] ** 2, first[:-1] ** 2)[0, 1])) < most


def test_what_noise_may_be() -> None:
    def program(deviation: float) -> None:
        pairs(tacit.share(torch.zeros(2), owner=0), deviation)

    for deviation in (0.0, -1.0, math.nan, 2.0**24):
        with pytest.raises(MisuseError, match="noise of standard deviation"):
            tacit.launch(program, deviation, protocol="plain")


def test_an_audit_of_noise_stays_below_epsilon() -> None:
    """Audits the noise by guessing whether one client took part.

    The adversary sees a result and knows everything but whether the client was there. It guesses by
    the noise along the client's vector. Its advantage is below what ε allows (Clopper–Pearson
    bounds at 10^-6).
    """
    sigma, trials, scale = 1.0, 200_000, 2.0**22
    deviation = sigma * scale
    without = rounded_gaussian(trials, deviation).double() / scale
    present = rounded_gaussian(trials, deviation).double() / scale + 1.0
    bound, claimed = 1e-6, epsilon(sigma, 1.0, 1, DELTA)
    best = 0.0
    for threshold in torch.linspace(0, 3.5, 15):
        hits, false = int((present > threshold).sum()), int((without > threshold).sum())
        low = stats.beta.ppf(bound, hits, trials - hits + 1)
        high = stats.beta.ppf(1 - bound, false + 1, trials - false)
        best = max(best, math.log(max(low - DELTA, 1e-12) / high))
    assert best < claimed
    # The audit can fail: half of the noise would not pass it.
    assert best > epsilon(2 * sigma, 1.0, 1, DELTA)


#: The clients whose membership is guessed in a round, and the probability that the bounds of a
#: guess are wrong.
CANARIES, ALPHA = 1024, 0.01


def audited(scores: np.ndarray[Any, Any], present: np.ndarray[Any, Any]) -> float:
    """Returns the ε that guesses by these scores prove to be spent.

    The rate of hits is at most e^ε times the rate of false alarms, plus δ (Clopper–Pearson bounds,
    for all thresholds together).
    """
    thresholds, best = np.linspace(-2, 4, 25), 0.0
    bound, trials, others = ALPHA / (2 * len(thresholds)), int(present.sum()), int((~present).sum())
    for threshold in thresholds:
        hits, false = (
            int((scores[present] > threshold).sum()),
            int((scores[~present] > threshold).sum()),
        )
        low = stats.beta.ppf(bound, hits, trials - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - bound, false + 1, others - false) if false < others else 1.0
        best = max(best, math.log(max(low - DELTA, 1e-12) / high))
    return best


def test_an_audit_by_membership_stays_below_epsilon(tmp_path: Path) -> None:
    """Audits the noise by guessing which clients took part.

    Each client sends a vector of the largest permitted norm in its own direction, or nothing. Two
    adversaries guess who did: one sees the result, the other is also a server and knows two parts
    of the noise. The advantage of each is below what the account reports. Many clients in one round
    are as many audits of one client each, since the noise in each direction is independent. A tenth
    of the noise would not pass.
    """
    present = torch.rand(CANARIES, generator=torch.Generator().manual_seed(4)) < 0.5
    vectors, sigma = torch.diag(present.double()), 2.0

    def program(deviation: float) -> tuple[list[np.ndarray[Any, Any]], Epsilons]:
        watched, party = watch(components=False), tacit.session().party
        account = Account(tmp_path / f"{deviation}-{party}", Mechanism.of(sigma, delta=DELTA))
        with tacit.fraction_bits(VECTOR_BITS):
            rows = tacit.share(vectors if party == 0 else None, owner=0)
            weights = tacit.share(torch.ones(CANARIES) if party == 0 else None, owner=0)
        settings = Settings(norm=1.0, noise="pairs", sigma=sigma, divisor=1.0)
        round_ = Round.of(settings, account)
        steps = [
            replace(step, deviation=deviation) if isinstance(step, Noise) else step
            for step in round_.steps
        ]
        outcome = replace(round_, steps=steps).secret(
            Submitted(list(range(CANARIES)), rows, weights)
        )
        assert outcome.vector is not None
        assert not outcome.refused
        ((before, after),) = watched.noise
        known = sum(after[at].ravel() - before[at].ravel() for at in range(2)) * 2.0**-VECTOR_BITS
        seen = outcome.vector.double().numpy()
        return [seen, seen - known], account.spent

    for deviation, is_enough in ((sigma, True), (sigma / 10, False)):
        results = tacit.launch(program, deviation)
        for (seen, without_known), spent in results:
            assert (audited(seen, present.numpy()) < spent.to_others) is is_enough
            assert (audited(without_known, present.numpy()) < spent.to_server) is is_enough
