"""Aggregators on secret vectors, checked against the same code on plain ones and against their
definitions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from tacit.errors import MisuseError
from tacit.federated.aggregators import AGGREGATORS, Quotient, aggregator, geometric_median
from tacit.federated.validation import VECTOR_BITS

#: Largest difference of a secret result from its reference, relative to the bound. Aggregators that
#: take roots of small norms have larger limits.
UNITS = 2.0**-18
CLOSE = {"fltrust": 2.0**-10, "norm-clipping": 2.0**-10, "geometric-median": 2.0**-15}


def vectors(clients: int, parameters: int, seed: int) -> torch.Tensor:
    """Draws vectors of norms up to 1 that are exact with the fraction bits that clients send."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(clients, parameters, generator=generator, dtype=torch.float64)
    sizes = torch.rand(clients, 1, generator=generator, dtype=torch.float64)
    x = x / x.norm(dim=1, keepdim=True) * (0.01 + 0.98 * sizes)
    return (x * 2.0**VECTOR_BITS).round() * 2.0**-VECTOR_BITS


def combined(name: str, x: torch.Tensor) -> torch.Tensor:
    """Returns the result as a plain vector. If the aggregator needs a root, it is the first
    vector."""
    chosen = AGGREGATORS[name]
    rows, root = (x[1:], [x[0]]) if chosen.needs_root else (x, [])
    result = chosen.combine(rows, torch.ones_like(rows[:, 0]), *root)
    if isinstance(result, Quotient):
        parts = (part.reveal() if isinstance(part, tacit.SecretTensor) else part for part in result)
        return Quotient(*parts).divided()
    return result.reveal() if isinstance(result, tacit.SecretTensor) else result


def in_secret(cases: Sequence[torch.Tensor], names: Sequence[str]) -> list[dict[str, torch.Tensor]]:
    """Combines all cases; every party runs this function."""
    found = []
    with tacit.fraction_bits(VECTOR_BITS):
        for x in cases:
            secret: Any = tacit.share(x if tacit.session().party == 0 else None, owner=0)
            found.append({name: combined(name, secret) for name in names})
    return found


def check(name: str, x: torch.Tensor, found: torch.Tensor) -> None:
    """Checks a result against the reference, and Krum's also against its definition. Ties go to the
    lowest number."""
    torch.testing.assert_close(
        found, combined(name, x), rtol=0, atol=CLOSE.get(name, UNITS), msg=name
    )
    if name in CHOSEN:
        torch.testing.assert_close(
            found, defined_krum(x, *CHOSEN[name](len(x))), rtol=0, atol=UNITS
        )


#: The number of attackers, and of vectors that count, for a given number of clients.
CHOSEN: dict[str, Callable[[int], tuple[int, int]]] = {
    "krum": lambda count: (int(0.25 * count), 1),
    "multi-krum": lambda count: (int(0.25 * count), count - int(0.25 * count)),
}


def defined_krum(x: torch.Tensor, attackers: int, chosen: int) -> torch.Tensor:
    """Computes Krum in integers of any size: the mean of the vectors with the smallest sums, the
    first of equal ones."""
    words = [[round(value) for value in row] for row in (x * 2**VECTOR_BITS).tolist()]
    away = [[sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for y in words] for x in words]
    nearest = max(1, len(x) - attackers - 2)
    sums = [sum(sorted(row[:at] + row[at + 1 :])[:nearest]) for at, row in enumerate(away)]
    order = sorted(range(len(x)), key=lambda client: (sums[client], client))
    return x[order[:chosen]].mean(0)


def edges() -> list[torch.Tensor]:
    """Returns edge cases: one to 64 clients, equal vectors, zeros, opposite vectors, small ones."""
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
    for x, found in zip(
        cases, tacit.launch(in_secret, cases, NAMES, protocol=protocol)[0], strict=True
    ):
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
    found = tacit.launch(in_secret, [x], NAMES, parties=2, protocol="additive", source="dealer")[0][
        0
    ]
    for name in NAMES:
        check(name, x, found[name])


def test_many_columns_are_many_cases_of_coordinates() -> None:
    """Aggregates columns with few distinct elements, so that ties occur too."""
    cases = [(vectors(clients, 700, clients) * 16).round() / 16 for clients in (1, 2, 3, 7, 8, 12)]
    names = ["fedavg", "median", "trimmed-mean"]
    for x, found in zip(
        cases, tacit.launch(in_secret, cases, names, protocol="replicated")[0], strict=True
    ):
        expected = {
            "fedavg": x.mean(0).numpy(),
            "median": np.median(x.numpy(), 0),
            "trimmed-mean": _trimmed(x.numpy(), 0.25),
        }
        for name in names:
            np.testing.assert_allclose(
                found[name].numpy(), expected[name], rtol=0, atol=UNITS, err_msg=name
            )


def _trimmed(x: Any, part: float) -> Any:
    dropped = int(part * len(x))
    return np.sort(x, 0)[dropped : len(x) - dropped].mean(0)


def test_references_are_what_they_are_called() -> None:
    """Checks references on plain tensors against definitions, if they can be written down."""
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
    """A quarter of the clients sends vectors far from all others."""
    x = vectors(12, 8, 6) * 0.05 + 0.1
    attacked = x.clone()
    attacked[-3:] = -0.9 / 8**0.5
    for name in ("krum", "multi-krum", "geometric-median", "median", "trimmed-mean"):
        moved = (combined(name, attacked) - combined(name, x)).norm()
        assert moved < 0.1, name
    assert (combined("fedavg", attacked) - combined("fedavg", x)).norm() > 0.2


def late(scale: float, attackers_scale: float) -> torch.Tensor:
    """Draws updates with norms about ``scale``: of 12 clients that agree up to noise, and of four
    attackers."""
    generator = torch.Generator().manual_seed(7)
    direction = torch.randn(100, generator=generator, dtype=torch.float64)
    direction = direction / direction.norm()
    noise = torch.randn(12, 100, generator=generator, dtype=torch.float64) / 10
    attackers = (-attackers_scale * direction).expand(4, -1)
    return torch.cat([scale * (direction + 0.5 * noise), attackers])


#: Norms from near the bound down to thirty units, and how much longer the attackers' vectors are.
#: The last ones reach the bound.
LATE = [
    (1e-4, 1),
    *((scale, factor) for scale in (0.3, 1e-3, 1e-5) for factor in (3, 0.999 / scale)),
]

#: Largest distance of results from the honest mean, relative to its norm, without rounding. Krum
#: has the noise of one client's vector. The shortened attackers turn a fourth of the mean.
MOVED = {
    "fltrust": 0.15,
    "krum": 0.55,
    "multi-krum": 0.05,
    "geometric-median": 0.2,
    "norm-clipping": 0.6,
}


def test_results_are_as_robust_for_short_updates() -> None:
    """For norms far below the bound, results are as robust up to rounding to units."""
    unit = 2.0**-VECTOR_BITS
    cases = [late(scale, scale * factor) for scale, factor in LATE]
    found = tacit.launch(in_secret, cases, list(MOVED), protocol="replicated")[0]
    for (scale, factor), x, results in zip(LATE, cases, found, strict=True):
        honest = x[:12].mean(0)
        for name, part in MOVED.items():
            # Rounding of elements, and of the norms that are compared.
            rounding = 0.6 * 100**0.5 * unit * (4 if name == "krum" else 2)
            off = float((results[name] - honest).norm())
            assert off < part * float(honest.norm()) + rounding, (name, scale, factor, off)


def near_half() -> list[torch.Tensor]:
    """Draws the largest possible number of attackers at one point: opposite to the others,
    elsewhere, and next to them."""
    cases = []
    for count in (3, 9, 20, 33, 63, 64):
        attackers = (count - 1) // 2
        for seed, (spread, how) in enumerate(
            [(0.1, "opposite"), (0.01, "elsewhere"), (0.1, "beside")]
        ):
            generator = torch.Generator().manual_seed(seed)
            direction, other = (
                torch.nn.functional.normalize(row, dim=0)
                for row in torch.randn(2, 10, generator=generator, dtype=torch.float64)
            )
            noise = (
                torch.randn(count - attackers, 10, generator=generator, dtype=torch.float64)
                / 10**0.5
            )
            honest = 0.3 * direction + spread * noise
            point = {
                "opposite": -0.999 * direction,
                "elsewhere": 0.5 * other,
                "beside": 0.3 * direction + 3 * spread * other,
            }[how]
            cases.append(torch.cat([honest, point.expand(attackers, -1)]))
    return cases


def converged(x: torch.Tensor) -> torch.Tensor:
    """Computes the geometric median by a hundred thousand Weiszfeld steps."""
    point = x.median(0).values
    for _ in range(100_000):
        inverse = 1 / (x - point).norm(dim=1).clamp(min=1e-13)
        last, point = point, inverse @ x / inverse.sum()
        if float((point - last).norm()) < 1e-14:
            break
    return point


def radius(x: torch.Tensor) -> float:
    """Returns the radius of the smallest ball around a vector that contains more than half of
    them."""
    return float(torch.cdist(x, x).sort().values[:, len(x) // 2].min())


def test_the_geometric_median_is_converged() -> None:
    """The result is as close to the median as the docstring says, even with almost half
    attackers."""
    for x in near_half():
        point, best, size = combined("geometric-median", x), converged(x), radius(x)
        assert (point - best).norm() < size / 16, (len(x), float((point - best).norm()) / size)
        sums = [float((x - at).norm(dim=1).sum()) for at in (point, best)]
        assert sums[0] < sums[1] + len(x) * size / 1000
        # The number of steps is what makes the bound hold.
        assert len(x) < 60 or (geometric_median(x, x[:, 0], steps=4) - best).norm() > size / 16


def test_equal_sums_of_krum_are_the_lowest_numbers() -> None:
    """With three and four clients only one neighbour counts, so the closest two always tie."""
    generator = torch.Generator().manual_seed(5)
    cases = [
        torch.randn(3 + at % 2, 10, generator=generator, dtype=torch.float64) * 0.2
        for at in range(12)
    ]
    cases.append(cases[0][:1].repeat(7, 1))
    found = tacit.launch(in_secret, cases, ["krum", "multi-krum"], protocol="replicated")[0]
    for x, results in zip(cases, found, strict=True):
        closest = (torch.cdist(x, x) + 9 * torch.eye(len(x))).min(1).values
        first = int(closest.argmin())
        assert int((x - results["krum"]).norm(dim=1).argmin()) == first
        check("krum", x, results["krum"])
        check("multi-krum", x, results["multi-krum"])


def test_weights_count_in_the_mean_alone() -> None:
    """Clients send vectors multiplied by their weights, and the sum is divided by the sum of
    weights."""
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
    """Draws vectors of two to 64 clients, with few as likely as many.

    Vectors have up to 12 elements. Some are equal or zero, or take few values, so that ties occur.
    """
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
    """Runs every aggregator on every case."""
    for x, found in zip(
        cases, tacit.launch(in_secret, cases, NAMES, protocol=protocol)[0], strict=True
    ):
        for name in NAMES:
            check(name, x, found[name])


def test_random_cases() -> None:
    """Runs a part of the ten thousand cases. In the last one many numbers are equal."""
    check_all([drawn(seed) for seed in (*range(5), 1189)], "replicated")


#: Random cases on shares for each aggregator, and the parts they are divided into.
CASES, PARTS = 1250, 10


@pytest.mark.long  # About two minutes for each part.
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_cases(part: int) -> None:
    """Runs a tenth of the cases on shares. Each session takes many."""
    check_all([drawn(seed) for seed in range(part, CASES, PARTS)], "replicated")
