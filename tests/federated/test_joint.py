"""Noise that the servers draw together: exact checks of its tables and their sum, and tests of
samples."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

import tacit
from tacit.errors import MisuseError
from tacit.federated.privacy.account import Mechanism, epsilon, epsilons
from tacit.federated.privacy.joint import (
    GREATEST,
    MOST_VALUES,
    PRECISION,
    USUAL,
    check_values,
    joint,
    tables,
)
from tacit.federated.privacy.noise import parts
from tacit.randomness.sampling import _columns

#: Variances around which another digit is needed, and others.
VARIANCES = [16, 25, 184, 185, 186, 3000, 3051, 3052, 2**44, 2**56 - 1]


def probabilities(weights: list[int]) -> NDArray[Any]:
    """Returns the probabilities of a digit's values, from -127.5 to 127.5."""
    half = np.array([weight / (2 * sum(weights)) for weight in weights])
    return np.concatenate([half[::-1], half])


@pytest.mark.parametrize("variance", VARIANCES)
def test_digits_have_the_variance(variance: int) -> None:
    found = tables(variance)
    below = sum(USUAL * 16**level for level in range(len(found) - 1))
    last = (variance - below) / 16 ** (len(found) - 1)
    assert Decimal("5.79") < last <= GREATEST
    places = np.arange(-127.5, 128)
    for weights, expected in zip(found, [USUAL] * (len(found) - 1) + [last], strict=True):
        assert len(weights) == 128
        gaussian = np.exp(-(places**2) / (2 * float(expected)))
        assert np.allclose(
            probabilities(weights), gaussian / gaussian.sum(), rtol=1e-13, atol=1e-45
        )


def test_walkers_table_has_its_probabilities_but_for_a_unit() -> None:
    for weights in (tables(185)[0], tables(185)[1], [1, 0, 0, 7], [5, 5, 5, 5]):
        columns, size, full = _columns(weights, PRECISION), len(weights), 1 << PRECISION
        found = [0] * size
        for at, (stays, other) in enumerate(columns):
            assert 0 <= stays < full
            found[at] += stays
            found[other] += full - stays
        assert sum(found) == size * full
        for share, weight in zip(found, weights, strict=True):
            assert abs(share * sum(weights) - weight * size * full) <= sum(weights)
            assert share == 0 or weight > 0


@pytest.mark.parametrize("variance", [185, 200, 500, 3052, 9000])
def test_digits_add_up_to_a_discrete_gaussian(variance: int) -> None:
    """The sum is exact up to double precision. At these variances the last digit is the narrowest
    possible."""
    chances = np.ones(1)
    for weights in reversed(tables(variance)):
        spread = np.zeros(4 * (len(chances) - 1) + 1)
        spread[::4] = chances
        chances = np.convolve(spread, probabilities(weights))
    places = np.arange(len(chances)) - (len(chances) - 1) / 2
    expected = np.exp(-(places**2) / (2 * variance))
    expected /= expected.sum()
    seen = np.abs(places) < 7 * math.sqrt(variance)
    assert np.allclose(chances[seen] / expected[seen], 1, rtol=0, atol=1e-12)


def samples(count: int, words: list[float], **options: Any) -> list[NDArray[Any]]:
    """Returns samples with the given deviations in words."""

    def program() -> list[torch.Tensor]:
        zeros = tacit.share(torch.zeros(count, dtype=torch.float64), owner=0)
        unit = 2.0**-zeros._scale.bits
        return [joint(zeros, each * unit).reveal() / unit for each in words]

    first, *others = tacit.launch(program, **options)
    for other in others:
        assert all(torch.equal(one, two) for one, two in zip(first, other, strict=True))
    return [each.double().numpy() for each in first]


def check_samples(count: int, **options: Any) -> None:
    """Checks samples by chi-square for small integers, by Kolmogorov–Smirnov for large ones, and
    for correlations."""
    small, *large = samples(count, [4.0, 15.0, 2.0**22, 2.0**22], **options)[0:4]
    for drawn, words in ((small, 4.0), (large[0], 15.0)):
        edges = np.arange(-12, 13) * (words / 4)
        places = np.arange(-200, 200)
        chances = np.exp(-((places + 0.5) ** 2) / (2 * words**2))
        expected, _ = np.histogram(
            places, [-np.inf, *(edges - 0.25), np.inf], weights=chances / chances.sum()
        )
        observed, _ = np.histogram(drawn, [-np.inf, *(edges - 0.25), np.inf])
        assert stats.chisquare(observed, expected / expected.sum() * count).pvalue > 1e-6
    wide = [drawn / 2.0**22 for drawn in large[1:]]
    # The expected number of repetitions among this many random words, up to words drawn four times.
    again = count**2 / (4 * math.sqrt(math.pi) * 2.0**22) - count**3 / (
        12 * math.sqrt(3) * math.pi * 2.0**44
    )
    for drawn in wide:
        assert stats.kstest(drawn, "norm").pvalue > 1e-6
        assert abs(count - len(np.unique(drawn)) - again) < 6 * math.sqrt(again) + 3
    first, other = wide
    most = 5 / math.sqrt(count)
    for distance in (1, 64, 4096):
        assert abs(float((first[distance:] * first[:-distance]).mean())) < most
    assert abs(float((first * other).mean())) < most
    # Low bits are uniform.
    bits = np.array(
        [np.bincount((large[1].astype(np.int64) >> at) & 3, minlength=4) for at in range(0, 16, 2)]
    )
    assert stats.chisquare(bits.ravel(), np.full(bits.size, count / 4)).pvalue > 1e-6


@pytest.mark.parametrize(
    "options",
    [{}, {"parties": 2, "protocol": "additive", "source": "dealer"}],
    ids=["replicated", "additive"],
)
def test_samples_are_of_a_discrete_gaussian(options: dict[str, Any]) -> None:
    check_samples(10_000, **options)


@pytest.mark.long
def test_as_many_samples_as_there_may_be_are() -> None:
    """Draws the largest number of samples under the reference: the same code on values that are not
    secret."""
    check_samples(MOST_VALUES, protocol="plain", parties=2)


def test_what_joint_noise_may_be() -> None:
    def program(words: float) -> list[torch.Tensor]:
        zeros = tacit.share(torch.zeros(2, 3), owner=0)
        noisy = joint(zeros, words * 2.0**-zeros._scale.bits)
        none = joint(tacit.share(torch.zeros(0), owner=0), 1.0)
        return [noisy.reveal(), none.reveal()]

    for words in (4.0, 2.0**28 - 1):
        found, none = tacit.launch(program, words, protocol="plain")[0]
        assert found.shape == (2, 3)
        assert none.shape == (0,)
    for words in (0.0, -1.0, 3.9, math.nan, 2.0**28):
        with pytest.raises(MisuseError, match="joint noise of standard deviation"):
            tacit.launch(program, words, protocol="plain")
    check_values(MOST_VALUES)
    with pytest.raises(
        MisuseError, match=r"at most 1,000,000 values, and the model has 1,000,001; noise ="
    ):
        check_values(MOST_VALUES + 1)


def test_all_of_joint_noise_counts_against_a_server() -> None:
    """A server knows none of the noise, but knows who takes part. So sampling hides no client from
    it."""
    mechanism = Mechanism.of(2.0, parts("joint", 3), sampling=0.25)
    found = epsilons(mechanism, 4)
    assert found.to_server == epsilon(2.0, 1.0, 4, 1e-5)
    assert found.to_others == epsilon(2.0, 0.25, 4, 1e-5) < found.to_server
    pairs = epsilons(Mechanism.of(2.0, parts("pairs", 3)), 4)
    assert pairs.to_server == found.to_server
    assert pairs.to_others == epsilon(2.0 * math.sqrt(3), 1.0, 4, 1e-5)
