"""Aggregators on secret vectors against the same code on plain ones, and against what they are."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from tacit.errors import MisuseError
from tacit.federated.aggregators import AGGREGATORS, Quotient, aggregator
from tacit.federated.aggregators.gram import squared_distances
from tacit.federated.validation import VECTOR_BITS

#: How far a secret result may be from its reference, in bounds; those with roots of small norms may be
#: farther.
UNITS = 2.0**-18
CLOSE = {"fltrust": 2.0**-10, "norm-clipping": 2.0**-10, "geometric-median": 2.0**-15}

#: Sums of distances that differ by less may be taken for each other: n·2^-28.
TIE = 2.0**-22

#: Ways to choose among vectors that tie, of which each is tried.
MOST_WAYS = 5000


def vectors(clients: int, parameters: int, seed: int) -> torch.Tensor:
    """Of norms up to 1, and exact with as many fraction bits as are sent."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(clients, parameters, generator=generator, dtype=torch.float64)
    sizes = torch.rand(clients, 1, generator=generator, dtype=torch.float64)
    x = x / x.norm(dim=1, keepdim=True) * (0.01 + 0.98 * sizes)
    return (x * 2.0**VECTOR_BITS).round() * 2.0**-VECTOR_BITS


def combined(name: str, x: torch.Tensor) -> torch.Tensor:
    """The result, plain; the first vector is the root where there is one."""
    chosen = AGGREGATORS[name]
    rows, root = (x[1:], [x[0]]) if chosen.needs_root else (x, [])
    result = chosen.combine(rows, torch.ones_like(rows[:, 0]), *root)
    if isinstance(result, Quotient):
        parts = (part.reveal() if isinstance(part, tacit.SecretTensor) else part for part in result)
        return Quotient(*parts).divided()
    return result.reveal() if isinstance(result, tacit.SecretTensor) else result


def in_secret(cases: Sequence[torch.Tensor], names: Sequence[str]) -> list[dict[str, torch.Tensor]]:
    """What every party runs."""
    found = []
    with tacit.fraction_bits(VECTOR_BITS):
        for x in cases:
            secret: Any = tacit.share(x if tacit.session().party == 0 else None, owner=0)
            found.append({name: combined(name, secret) for name in names})
    return found


def check(name: str, x: torch.Tensor, found: torch.Tensor) -> None:
    """Against the reference; Krum's choice, among vectors whose sums are about the least."""
    if "krum" in name:
        check_krum(name, x, found)
        return
    torch.testing.assert_close(found, combined(name, x), rtol=0, atol=CLOSE.get(name, UNITS), msg=name)


def check_krum(name: str, x: torch.Tensor, found: torch.Tensor) -> None:
    """By definition: the mean of vectors none of which has a greater sum than one that was left out."""
    count = len(x)
    attackers = int(0.25 * count)
    chosen = 1 if name == "krum" else count - attackers
    if count == 1 or chosen == count:
        torch.testing.assert_close(found, x.mean(0), rtol=0, atol=UNITS)
        return
    distances = squared_distances(x).sort().values[:, 1 : max(2, count - attackers - 1)]
    sums = distances.sum(1)
    order = sums.argsort()
    last = sums[order[chosen - 1]]
    certain, possible = sums < last - TIE, (sums <= last + TIE) & (sums >= last - TIE)
    # Whatever of those that tie is chosen; of very many ways to choose, any mean of them.
    best, missing, ties = found * chosen - x[certain].sum(0), chosen - int(certain.sum()), x[possible]
    if math.comb(len(ties), missing) > MOST_WAYS:
        low, high = ties.amin(0) * missing, ties.amax(0) * missing
        off = (best - best.clamp(low, high)).norm()
    else:
        ways = list(itertools.combinations(range(len(ties)), missing))
        sums = torch.stack([ties[list(way)].sum(0) for way in ways])
        off = (sums - best).norm(dim=1).min()
    assert float(off) < UNITS * chosen * 4, (name, float(off))


def edges() -> list[torch.Tensor]:
    """One client to 64, equal vectors, zeros, vectors in both directions, small ones."""
    equal = vectors(1, 5, 7).repeat(6, 1)
    opposite = torch.cat([vectors(1, 4, 8), -vectors(1, 4, 8)]).repeat(2, 1)
    few = vectors(9, 3, 9)
    few[::2] = 0
    return [
        *(vectors(clients, 6, clients) for clients in (2, 3, 4, 5, 16, 33, 64)),
        vectors(5, 1, 12),
        equal,
        opposite,
        few,
        torch.zeros(4, 3, dtype=torch.float64),
        vectors(7, 20, 1) * 2.0**-6,
        torch.eye(6, dtype=torch.float64) * 0.99,
    ]


NAMES = list(AGGREGATORS)


@pytest.mark.parametrize("protocol", ["plain", "replicated"])
def test_a_secret_result_is_the_reference(protocol: str) -> None:
    cases = edges()
    for x, found in zip(cases, tacit.launch(in_secret, cases, NAMES, protocol=protocol)[0], strict=True):
        for name in NAMES:
            check(name, x, found[name])


@pytest.mark.parametrize("protocol", ["plain", "replicated"])
def test_one_client_is_its_own_result(protocol: str) -> None:
    x = vectors(1, 6, 3)
    names = [name for name in NAMES if name != "fltrust"]
    for name, found in tacit.launch(in_secret, [x], names, protocol=protocol)[0][0].items():
        torch.testing.assert_close(found, x[0], rtol=0, atol=CLOSE.get(name, UNITS), msg=name)


def test_additive_sharing_has_the_same() -> None:
    x = vectors(5, 4, 2)
    found = tacit.launch(in_secret, [x], NAMES, parties=2, protocol="additive", source="dealer")[0][0]
    for name in NAMES:
        check(name, x, found[name])


def test_many_columns_are_many_cases_of_coordinates() -> None:
    """Ties too: elements are few different ones."""
    cases = [(vectors(clients, 700, clients) * 16).round() / 16 for clients in (1, 2, 3, 7, 8, 12)]
    names = ["fedavg", "median", "trimmed-mean"]
    for x, found in zip(cases, tacit.launch(in_secret, cases, names, protocol="replicated")[0], strict=True):
        expected = {
            "fedavg": x.mean(0).numpy(),
            "median": np.median(x.numpy(), 0),
            "trimmed-mean": _trimmed(x.numpy(), 0.25),
        }
        for name in names:
            np.testing.assert_allclose(found[name].numpy(), expected[name], rtol=0, atol=UNITS, err_msg=name)


def _trimmed(x: Any, part: float) -> Any:
    dropped = int(part * len(x))
    return np.sort(x, 0)[dropped : len(x) - dropped].mean(0)


def test_references_are_what_they_are_called() -> None:
    """On plain tensors, where a definition can be written down."""
    x = vectors(9, 12, 4)
    point = combined("geometric-median", x)
    sums = [(x - (point + 0.01 * step)).norm(dim=1).sum() for step in vectors(30, 12, 5)]
    assert (x - point).norm(dim=1).sum() <= min(sums) + 1e-4
    clipped = x * (x.norm(dim=1).median() / x.norm(dim=1)).clamp(max=1).unsqueeze(1)
    torch.testing.assert_close(combined("norm-clipping", x), clipped.mean(0))
    root, others = x[0], x[1:]
    trust = torch.relu(torch.cosine_similarity(others, root.unsqueeze(0)))
    scaled = others / others.norm(dim=1, keepdim=True) * root.norm()
    expected = (trust.unsqueeze(1) * scaled).sum(0) / trust.sum()
    torch.testing.assert_close(combined("fltrust", x), expected)


def test_far_vectors_do_not_move_robust_results() -> None:
    """A quarter of the clients sends what is far from all others."""
    x = vectors(12, 8, 6) * 0.05 + 0.1
    attacked = x.clone()
    attacked[-3:] = -0.9 / 8**0.5
    for name in ("krum", "multi-krum", "geometric-median", "median", "trimmed-mean"):
        moved = (combined(name, attacked) - combined(name, x)).norm()
        assert moved < 0.1, name
    assert (combined("fedavg", attacked) - combined("fedavg", x)).norm() > 0.2


def test_weights_count_in_the_mean_alone() -> None:
    """Clients send products by their weights, and the sum is divided by the weights' sum."""
    x, weights = vectors(4, 3, 1), torch.tensor([1.0, 0.5, 0.25, 0.0], dtype=torch.float64)
    result = AGGREGATORS["fedavg"].combine(x * weights.unsqueeze(1), weights)
    assert isinstance(result, Quotient)
    torch.testing.assert_close(result.divided(), (x * weights.unsqueeze(1)).sum(0) / weights.sum())


def test_an_aggregator_of_ones_own(tmp_path: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def combine(vectors, weights):\n    return 2 * vectors.mean(0)\n")
    x = vectors(3, 4, 1)
    found = aggregator(f"{file}:combine")
    torch.testing.assert_close(found.combine(x, x[:, 0]), 2 * x.mean(0))
    assert found.needs_bound
    assert found.sensitivity is None
    with pytest.raises(
        MisuseError, match=r"no aggregator is called 'average'; known are fedavg, fltrust, krum"
    ):
        aggregator("average")
    with pytest.raises(MisuseError, match="has no function 'other'"):
        aggregator(f"{file}:other")


def drawn(seed: int) -> torch.Tensor:
    """Two clients to 64, few as often as many; vectors of up to 12 elements, of which some are equal, zero,
    or take few values, so that there are ties."""
    generator = torch.Generator().manual_seed(seed)
    size, parameters = (float(part) for part in torch.rand(2, generator=generator))
    x = vectors(1 + int(64**size), 1 + int(12 * parameters), seed)
    kind, rows = seed % 4, torch.randperm(len(x), generator=generator)
    if kind == 1:
        x[rows[: len(x) // 2]] = x[rows[0]].clone()
    elif kind == 2:
        x[rows[: len(x) // 3]] = 0
    elif kind == 3:
        x = (x * 8).round() / 8
    x = x / x.norm(dim=1, keepdim=True).clamp(min=1) * (1 - 2.0**-10)
    return (x * 2.0**VECTOR_BITS).round() * 2.0**-VECTOR_BITS


def check_all(cases: Sequence[torch.Tensor], protocol: str) -> None:
    """Every aggregator on every case."""
    for x, found in zip(cases, tacit.launch(in_secret, cases, NAMES, protocol=protocol)[0], strict=True):
        for name in NAMES:
            check(name, x, found[name])


def test_random_cases() -> None:
    """A share of the ten thousand; the last one is of numbers among which many are equal."""
    check_all([drawn(seed) for seed in (*range(5), 1189)], "replicated")


#: Random cases on shares, of each aggregator.
CASES, PARTS = 1250, 10


@pytest.mark.long  # About two minutes for each part.
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_cases(part: int) -> None:
    """On shares, a tenth of them; each session takes many."""
    check_all([drawn(seed) for seed in range(part, CASES, PARTS)], "replicated")
