"""Operators that count or locate values: boundaries, histograms, counts and membership.

The values include some on edges and some outside all bins.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit

generator = torch.Generator().manual_seed(5)
X = torch.randint(-12, 13, (4, 6), generator=generator) / 4
EDGES = torch.tensor([-2.0, -1.0, -0.75, 0.0, 0.5, 2.5])
ROWS = torch.randint(-12, 13, (4, 5), generator=generator).sort(1).values / 4
SHUFFLED = torch.randperm(6, generator=generator)
WHOLE = torch.randint(7, (30,), generator=generator)
WEIGHTS = torch.randint(1, 9, (30,), generator=generator) / 4

#: Two operands, of which either or both are secret, and the function of them.
COUNTS: dict[str, tuple[torch.Tensor, torch.Tensor, Callable[[Any, Any], Any]]] = {
    "bucketize": (X, EDGES, lambda x, y: torch.bucketize(x, y)),
    "bucketize to the right": (
        X,
        EDGES,
        lambda x, y: torch.bucketize(x, y, right=True, out_int32=True),
    ),
    "searchsorted": (X, EDGES, lambda x, y: torch.searchsorted(y, x)),
    "searchsorted by row": (X, ROWS, lambda x, y: torch.searchsorted(y, x, side="right")),
    "searchsorted of integers": (WHOLE, WHOLE.sort().values, lambda x, y: torch.searchsorted(y, x)),
    "searchsorted in an order": (
        X,
        EDGES[SHUFFLED],
        lambda x, y: torch.searchsorted(y, x, sorter=SHUFFLED.argsort()),
    ),
    "isin": (X, EDGES, lambda x, y: torch.isin(x, y)),
    "isin, inverted": (WHOLE, WHOLE[:2].reshape(2, 1), lambda x, y: torch.isin(x, y, invert=True)),
    "histogram of bins": (X, EDGES, lambda x, y: torch.histogram(x, y).hist),
    "weighed histogram": (
        WEIGHTS,
        WEIGHTS,
        lambda x, y: torch.histogram(x, 4, range=(0.0, 2.0), weight=y).hist,
    ),
    "weighed bincount": (WHOLE, WEIGHTS, lambda x, y: torch.bincount(x, y, minlength=7)),
}

#: One secret operand, and the function of it.
ALONE: dict[str, tuple[torch.Tensor, Callable[[Any], Any]]] = {
    "histc": (X, lambda x: x.histc(8, -2, 2)),
    "histc of all": (X, lambda x: x.histc(5)),
    "histc of one value": (torch.full((3,), 2.0), lambda x: x.histc(4)),
    "histogram of one value": (torch.full((3,), 2.0), lambda x: x.histogram(4).hist),
    "edges of one value": (torch.full((3,), 2.0), lambda x: x.histogram(4).bin_edges),
    "histc of nothing": (torch.empty(0), lambda x: x.histc(4)),
    "histogram": (X, lambda x: x.histogram(4, range=(-2.0, 2.0)).hist),
    "edges": (X, lambda x: x.histogram(4, range=(-2.0, 2.0)).bin_edges),
    "histogram of all": (X, lambda x: x.histogram(3).hist),
    "edges of all": (X, lambda x: x.histogram(3).bin_edges),
    "bincount": (WHOLE, lambda x: x.bincount(minlength=7)),
    "place of a number": (EDGES, lambda x: torch.searchsorted(x, 0.5)),
    "a number among": (X, lambda x: torch.isin(0.5, x)),
    "among one number": (X, lambda x: torch.isin(x, 0.5)),
    "boundaries": (EDGES, lambda x: torch.bucketize(0.4, x)),
}


def shown(value: Any) -> Any:
    """Returns a value, revealed if it is secret."""
    return value.reveal() if isinstance(value, tacit.SecretTensor) else value


def test_counts(everywhere: Callable[..., Any]) -> None:
    def program() -> list[list[Any]]:
        found = []
        for x, y, count in COUNTS.values():
            one, other = tacit.share(x, owner=0), tacit.share(y, owner=1)
            found.append([shown(count(one, other)), shown(count(one, y))])
            found[-1].append(shown(count(x, other)))
        found += [[shown(count(tacit.share(x, owner=0)))] for x, count in ALONE.values()]
        return found

    plain = {name: count(x, y) for name, (x, y, count) in COUNTS.items()}
    plain |= {name: count(x) for name, (x, count) in ALONE.items()}
    for (name, wanted), ways in zip(plain.items(), everywhere(program), strict=True):
        for mine in ways:
            assert (mine.dtype, mine.shape) == (wanted.dtype, wanted.shape), name
            assert torch.allclose(
                mine, wanted, rtol=0, atol=0 if "edges" not in name else 2**-14
            ), name


def test_numbers_without_a_bin_are_not_counted() -> None:
    def program() -> Any:
        x = tacit.share(torch.tensor([-1, 0, 3, 3, 4, 2**40]), owner=0)
        return x.bincount(minlength=4).reveal()

    assert tacit.launch(program)[0].tolist() == [1, 0, 0, 2]


def test_what_is_refused() -> None:
    def program() -> None:
        x, whole = tacit.share(X, owner=0), tacit.share(WHOLE, owner=0)
        for wrong, says in (
            (whole.bincount, "whose size depends on the values"),
            (lambda: x.histogram(3, density=True), "density=True"),
        ):
            with pytest.raises(tacit.UnsupportedOperatorError, match=says):
                wrong()

    tacit.launch(program, parties=2, protocol="plain")
