"""Segments, bags by maxima, sampled volumes and running log-sums, beyond PyTorch's samples."""

from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit

SETTINGS = [("plain", 2, None), ("replicated", 3, None), ("additive", 2, "dealer")]


def run(program: Any, setting: tuple[str, int, str | None] = SETTINGS[0]) -> Any:
    protocol, parties, source = setting
    return tacit.launch(program, protocol=protocol, parties=parties, source=source)[0]


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_segments_of_several_axes(reduce: str, setting: tuple[str, int, str | None]) -> None:
    data = torch.randn(2, 6, 3)
    lengths = torch.tensor([[2, 3, 1], [1, 1, 4]])

    def program() -> list[torch.Tensor]:
        x = tacit.share(data, owner=0)
        found = torch.segment_reduce(x, reduce, lengths=lengths, axis=1)
        first = torch.segment_reduce(x, reduce, lengths=torch.tensor([0, 2]), initial=0.5)
        return [found.reveal(), first.reveal()]

    found, first = run(program, setting)
    assert torch.allclose(
        found, torch.segment_reduce(data, reduce, lengths=lengths, axis=1), atol=1e-3
    )
    plain = torch.segment_reduce(data, reduce, lengths=torch.tensor([0, 2]), initial=0.5)
    assert torch.allclose(first, plain, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"lengths": torch.tensor([2, 5])}, "add up to 6"),
        ({"lengths": torch.tensor([6, 0])}, "give an initial value"),
        ({"lengths": torch.tensor([7, -1])}, "give nonnegative sizes"),
        ({"lengths": torch.tensor([[6], [6]])}, "give nonnegative sizes"),
    ],
    ids=["too many", "an empty one", "negative", "another shape"],
)
def test_sizes_that_do_not_fit_are_refused(options: dict[str, Any], remedy: str) -> None:
    def program() -> None:
        with pytest.raises(tacit.UnsupportedOperatorError, match=remedy):
            torch.segment_reduce(tacit.share(torch.ones(6), owner=0), "max", unsafe=True, **options)

    run(program)


BAGS: list[dict[str, Any]] = [
    {"mode": "max"},
    {"mode": "max", "padding_idx": 3},
    {"mode": "mean", "padding_idx": 3},
    {"mode": "sum", "padding_idx": 2, "per_sample_weights": torch.randn(6)},
]


@pytest.mark.parametrize("options", BAGS, ids=lambda each: "-".join(each) + each["mode"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_bags(options: dict[str, Any], setting: tuple[str, int, str | None]) -> None:
    table, weights = torch.randn(7, 4), torch.randn(4, 4)
    index, offsets = torch.tensor([1, 2, 6, 3, 3, 0]), torch.tensor([0, 2, 2, 5])

    def program(secretly: bool, secret_index: bool) -> list[torch.Tensor]:
        x: Any = (tacit.share(table, owner=0) if secretly else table.clone()).requires_grad_()
        given = dict(options)
        if secretly and "per_sample_weights" in given:
            given["per_sample_weights"] = tacit.share(given["per_sample_weights"], owner=1)
        places = tacit.share(index, owner=1) if secret_index else index
        found = functional.embedding_bag(places, x, offsets, **given)
        (found * weights).sum().backward()
        results = [found.detach(), x.grad]
        return [each.reveal() for each in results] if secretly else results

    plain = program(False, False)
    for is_secret in (False, True):
        if is_secret and "padding_idx" in options:
            continue
        for mine, theirs in zip(
            run(lambda is_secret=is_secret: program(True, is_secret), setting), plain, strict=True
        ):
            assert torch.allclose(mine, theirs, atol=1e-3)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("secret_grid", [False, True])
@pytest.mark.parametrize("corners", [False, True])
def test_volumes(padding: str, mode: str, secret_grid: bool, corners: bool) -> None:
    volumes, grid = torch.randn(2, 3, 3, 4, 5), torch.randn(2, 2, 2, 3, 3) * 1.5
    grid = (grid * 2.0**13).round() * 2.0**-13
    options: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": corners}

    def program() -> torch.Tensor:
        places = tacit.share(grid, owner=1) if secret_grid else grid
        return functional.grid_sample(tacit.share(volumes, owner=0), places, **options).reveal()

    assert torch.allclose(run(program), functional.grid_sample(volumes, grid, **options), atol=2e-3)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_log_sums_so_far(setting: tuple[str, int, str | None]) -> None:
    x = torch.cat([torch.linspace(-9, 9, 30), torch.tensor([1e4, -1e6, 1e4, 1e9, 0.0])])

    def program() -> torch.Tensor:
        return torch.logcumsumexp(tacit.share(x.double(), owner=0), 0).reveal()

    off = (run(program, setting) - torch.logcumsumexp(x.double(), 0)).abs()
    assert float(off.max()) <= 6 * 2.0**-13
