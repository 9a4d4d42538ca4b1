"""Secret permutations: their effect on all kinds of tensors, their routing, and their
uniformity."""

import itertools
from typing import Any

import pytest
import torch

import tacit
from tacit.randomness import shuffling
from tacit.randomness.shuffling import _drawn, columns, routed

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"parties": 2, "protocol": "plain"},
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}


def through(switches: torch.Tensor, size: int) -> torch.Tensor:
    """Returns the order of elements after the network."""
    x, at = torch.arange(size), 0
    for low, high in columns(size):
        swaps = switches[at : at + low.numel()].bool()
        at += low.numel()
        left, right = x[low], x[high]
        x[low], x[high] = torch.where(swaps, right, left), torch.where(swaps, left, right)
    assert at == switches.numel()
    return x


def test_every_permutation_is_routed() -> None:
    for size in range(7):
        for permutation in itertools.permutations(range(size)):
            target = torch.tensor(permutation, dtype=torch.int64)
            assert torch.equal(through(routed(target), size)[target], torch.arange(size))
    for size in (17, 1000):
        target = _drawn(size)
        assert torch.equal(through(routed(target), size)[target], torch.arange(size))


@pytest.mark.parametrize("setting", SETTINGS)
def test_slices_stay_whole_and_together(setting: str) -> None:
    rows = torch.arange(-26.0, 26.0).reshape(2, 13, 2)
    labels = torch.arange(13) * 1_000_003
    marks = torch.arange(13) % 3 == 0

    def program() -> list[Any]:
        x, y, z = (tacit.share(each, owner=0) for each in (rows, labels, marks))
        together = tacit.shuffle(x.transpose(0, 1), y, z)
        alone = (
            tacit.shuffle(x, dim=1),
            tacit.shuffle(z),
            tacit.shuffle(y[:1]),
            tacit.shuffle(y[:0]),
        )
        return [each.reveal() for each in (*together, *alone)]

    (x, y, z, alone, bits, one, none), *others = tacit.launch(program, **SETTINGS[setting])
    order = y // 1_000_003
    assert torch.equal(order.sort().values, torch.arange(13))
    assert torch.equal(x, rows.transpose(0, 1)[order])
    assert torch.equal(z, marks[order])
    assert torch.equal(alone[0].sort(0).values, rows[0])
    assert torch.equal(alone[1], alone[0] + 26)
    assert (bits.sum(), one, none.shape) == (marks.sum(), labels[:1], (0,))
    assert all(torch.equal(mine, order * 1_000_003) for _, mine, *_ in others)


def statistic(order: torch.Tensor, before: torch.Tensor) -> float:
    """Chi-square statistic of how many elements move from each tenth to each tenth.

    The margins are fixed, so there are 81 degrees of freedom.
    """
    tenths = 10
    part = order.numel() // tenths
    counts = torch.bincount(order // part * tenths + before // part, minlength=tenths**2)
    expected = order.numel() / tenths**2
    return float(((counts - expected) ** 2 / expected).sum())


#: Chi-square is above the first and below the second with probability 1 − 10^-7 each.
USUAL = (31.1, 165.3)


@pytest.mark.parametrize("setting", SETTINGS)
def test_orders_are_uniform(setting: str) -> None:
    size = 100_000

    def program() -> torch.Tensor:
        return tacit.random.permutation(size).reveal()

    order = tacit.launch(program, **SETTINGS[setting])[0]
    assert USUAL[0] < statistic(order, torch.arange(size)) < USUAL[1]


@pytest.mark.parametrize("setting", ["replicated", "additive"])
def test_one_party_that_draws_well_is_enough(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parties but one always draw the same permutation. The result must still be uniform and
    differ each time, so that neither a single party nor all but one together know it."""
    size, options = 10_000, SETTINGS[setting]
    drawn = shuffling._drawn
    same = [
        torch.randperm(size, generator=torch.Generator().manual_seed(party)) for party in range(3)
    ]

    def program() -> list[torch.Tensor]:
        x = tacit.share(torch.arange(size), owner=0)
        return [tacit.random.permutation(size).reveal(), tacit.shuffle(x, x > 3)[0].reveal()]

    def orders(honest: int | None) -> tuple[torch.Tensor, torch.Tensor]:
        def draw(count: int) -> torch.Tensor:
            party = tacit.session().party
            return drawn(count) if party == honest else same[party]

        monkeypatch.setattr(shuffling, "_drawn", draw)
        one, other = tacit.launch(program, **options)[0]
        return one, other

    for honest in range(options.get("parties", 3)):
        one, other = orders(honest)
        for before in (torch.arange(size), other, *same):
            assert USUAL[0] < statistic(one, before) < USUAL[1], honest
    assert torch.equal(*orders(None))


def test_every_order_comes_as_often() -> None:
    found = torch.stack([_drawn(3) for _ in range(6000)])
    counts = torch.bincount(found @ torch.tensor([9, 3, 1]), minlength=27)
    # Five degrees of freedom: chi-square is below this with probability 1 − 10^-7.
    statistic = float(((counts[counts > 0] - 1000.0) ** 2 / 1000).sum())
    assert (counts > 0).sum() == 6
    assert statistic < 40.9


def test_mistakes_are_named() -> None:
    def program() -> None:
        x, y = tacit.share(torch.ones(4, 2), owner=0), tacit.share(torch.ones(3), owner=0)
        for wrong, says in (
            (lambda: tacit.shuffle(x, y), "the same size"),
            (lambda: tacit.shuffle(torch.ones(4)), "takes secret tensors"),
            (lambda: tacit.shuffle(x, 1), "by name"),
            (lambda: tacit.shuffle(x, dim=2), "no such dimension"),
            (lambda: tacit.shuffle(x.requires_grad_()), "gradients do not pass"),
        ):
            with pytest.raises(tacit.MisuseError, match=says):
                wrong()

    tacit.launch(program, **SETTINGS["plain"])
