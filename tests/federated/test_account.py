"""What is said of privacy, and what is kept of it."""

import json
import math
from pathlib import Path

import pytest
import torch
from scipy import optimize, special, stats

import tacit
from tacit.errors import MisuseError, SetupError
from tacit.federated.account import Account, Epsilons, Mechanism, epsilon, epsilons
from tacit.federated.noise import noise, rounded_gaussian

DELTA = 1e-5


def closed_form(sigma: float, delta: float) -> float:
    """The ε of one Gaussian of sensitivity 1 (Balle, Wang 2018, theorem 8)."""

    def excess(found: float) -> float:
        first, second = 1 / (2 * sigma) - found * sigma, -1 / (2 * sigma) - found * sigma
        return special.ndtr(first) - math.exp(found + special.log_ndtr(second)) - delta

    return float(optimize.brentq(excess, 0, 500))


@pytest.mark.parametrize(("sigma", "rounds"), [(0.5, 1), (1.0, 1), (1.0, 20), (4.0, 100), (20.0, 3)])
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


def test_a_server_sees_more_than_those_who_see_models() -> None:
    """It lacks one part of three, and knows who takes part."""
    mechanism = Mechanism.of(2.0, parts=3, sampling=0.25, delta=DELTA)
    found = epsilons(mechanism, 4)
    assert found.to_server == epsilon(2.0, 1.0, 4, DELTA)
    assert found.to_others == epsilon(2.0 * math.sqrt(3), 0.25, 4, DELTA)
    assert found.to_others < found.to_server
    assert epsilons(mechanism, 0) == Epsilons(0.0, 0.0)


@pytest.mark.parametrize("wrong", [(0.0, 1.0, DELTA), (1.0, 0.0, DELTA), (1.0, 1.5, DELTA), (1.0, 1.0, 1.0)])
def test_mechanisms_that_cannot_be(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(MisuseError, match="noise is positive, sampling above 0"):
        Mechanism.of(wrong[0], 3, *wrong[1:])


def test_a_budget_ends_rounds_and_outlasts_restarts(tmp_path: Path) -> None:
    mechanism = Mechanism.of(2.0, delta=DELTA)
    budget = epsilon(2.0, 1.0, 3, DELTA) + 1e-6
    path = tmp_path / "account.json"
    for _ in range(3):
        # Each time a server starts again.
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
    for text in ("", "[]", "{}", '{"rounds": 1}', "null"):
        path.write_text(text)
        with pytest.raises(SetupError, match="is no account"):
            Account(path, mechanism)
    Account(tmp_path / "other", Mechanism.of(2.0)).spend()
    with pytest.raises(SetupError, match="a federation keeps its noise"):
        Account(tmp_path / "other", mechanism)
    entries = json.loads((tmp_path / "other").read_text())
    (tmp_path / "other").write_text(json.dumps(entries | {"rounds": -1}))
    with pytest.raises(SetupError, match="-1 rounds"):
        Account(tmp_path / "other", Mechanism.of(2.0))
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
            with pytest.raises(SetupError, match="No space left"):
                account.spend()
        assert Account(path, mechanism).rounds == 1


def test_noise_is_a_rounded_gaussian() -> None:
    """Chi-square of small integers, Kolmogorov and Smirnov's test of large ones, each on 10^6 samples."""
    count = 1_000_000
    small = rounded_gaussian(count, 1.3)
    edges = torch.arange(-5, 6) - 0.5
    expected = torch.special.ndtr(edges.double() / 1.3).diff(prepend=torch.zeros(1), append=torch.ones(1))
    observed = torch.bincount((small.clamp(-6, 5) + 6), minlength=12)
    assert stats.chisquare(observed, expected * count).pvalue > 1e-6
    large = rounded_gaussian(count, 2.0**30).double() * 2.0**-30
    assert stats.kstest(large.numpy(), "norm").pvalue > 1e-6
    assert float((large[1:] * large[:-1]).mean()) == pytest.approx(0, abs=6e-3)


def test_what_noise_may_be() -> None:
    def program(deviation: float) -> None:
        noise(tacit.share(torch.zeros(2), owner=0), deviation)

    for deviation in (0.0, -1.0, math.nan, 2.0**24):
        with pytest.raises(MisuseError, match="noise of standard deviation"):
            tacit.launch(program, deviation, protocol="plain")


def test_an_audit_by_membership_stays_below_epsilon() -> None:
    """Whoever sees a result, and knows everything but whether one client was there, guesses by the noise
    along its vector: what it wins is less than ε allows (Clopper and Pearson's bounds at 10^-6)."""
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
    # The audit is no empty one: half of the noise would not pass it.
    assert best > epsilon(2 * sigma, 1.0, 1, DELTA)
