"""What a norm must be: found out in secret, whatever a client sends."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from tacit import shares
from tacit.federated import validation
from tacit.federated.projections import AT_ONCE, PROJECTIONS, projections, stream_of, weights_of
from tacit.federated.validation import UNIT, WIDEST
from tacit.fixed import WHOLE, Scale
from tacit.tensor import SecretTensor

#: Elements of vectors; several pieces of weights.
SIZE = 5000


def shared(words: torch.Tensor, *, scale: int = validation.VECTOR_BITS) -> SecretTensor:
    """Words as they are, of party 0: a client may send any."""
    session = tacit.session()
    parts = shares.share(session, words if session.party == 0 else None, 0, words.shape)
    return SecretTensor(parts, Scale(scale), session, torch.float64)


def honest(norm: float, seed: int = 0) -> torch.Tensor:
    """Words of a vector of that norm, in units; rounded towards zero."""
    x = torch.randn(SIZE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (x / x.norm() * norm * UNIT).trunc().long()


def single(word: int, place: int = 0) -> torch.Tensor:
    """One word alone."""
    words = torch.zeros(SIZE, dtype=torch.int64)
    words[place] = word
    return words


def wrapping() -> torch.Tensor:
    """Words whose squares add up to 0 modulo 2^64: four times (2^31)²."""
    words = torch.zeros(SIZE, dtype=torch.int64)
    words[[1, 10, 100, 1000]] = 1 << 31
    assert int((words * words).sum()) == 0
    return words


def wrapping_to_one() -> torch.Tensor:
    """A multitude of words that are not large, and whose squares add up to 2^64."""
    words = torch.zeros(1 << 18, dtype=torch.int64)
    words[:] = 1 << 23
    assert int((words * words).sum()) == 0
    return words


#: Vectors that are to pass, and others.
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
    """What party 0 found; all found the same."""
    results = tacit.launch(program, *args, protocol=protocol)
    for result in results[1:]:
        assert all(torch.equal(mine, first) for mine, first in zip(result, results[0], strict=True))
    return results[0]


@pytest.mark.parametrize("protocol", ["plain", "replicated"])
def test_norms_above_the_bound_are_refused(protocol: str) -> None:
    def program(words: torch.Tensor, many: torch.Tensor) -> list[torch.Tensor]:
        weights = shared(torch.full((len(words),), UNIT))
        with tacit.comparison_width(16):  # what a program compares otherwise does not matter
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
        good, factors = validation.clipped(vectors, shared(torch.ones(len(words), dtype=torch.int64)))
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
    weights = weights_of(stream_of(coin), 5040)
    assert AT_ONCE < 5040
    words = torch.randint(-(2**63), 2**63 - 1, (3, 5040), generator=torch.Generator().manual_seed(1))
    words[1], words[2] = 2**63 - 1, -(2**63)
    expected = (words.unsqueeze(2) * weights.long()).sum(1)
    assert torch.equal(projections((words,), coin)[0], expected)
    assert not torch.equal(projections((words,), bytes(16))[0], expected)
    one, other = projections((words[:1], words[1:2]), coin)
    assert torch.equal(torch.cat([one, other]), expected[:2])
    counts = torch.bincount((weights + 1).long().flatten(), minlength=3).double() / weights.numel()
    assert torch.allclose(counts, torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64), atol=0.005)
    # Neither rows nor columns are alike.
    assert float(np.abs(np.corrcoef(weights.numpy().T) - np.eye(PROJECTIONS)).max()) < 0.1


def test_every_projection_lets_half_of_huge_entries_pass_at_most() -> None:
    """The argument's two cases, one projection at a time, over many coins."""
    huge = torch.stack([single(-(1 << 63)), single(2 * WIDEST + 1), single(1 << 62) + single(1 << 62, 1)])
    # Just above 9T in norm, in words that are all small.
    spread = torch.full((1, SIZE), int(9.1 * WIDEST / SIZE**0.5))
    rows, passed, trials = torch.cat([huge, spread]), torch.zeros(4), 300
    for trial in range(trials):
        (products,) = projections((rows[:, :2048],), trial.to_bytes(16, "little"))
        inside = (products >= -WIDEST) & (products <= WIDEST)
        passed += inside.double().mean(1)
    # 12,000 projections: half, and five standard deviations.
    assert float((passed / trials).max()) < 0.5 + 5 * 0.5 / (trials * PROJECTIONS) ** 0.5


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
