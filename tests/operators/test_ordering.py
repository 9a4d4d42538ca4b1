"""Sorting and operators that use it are right on ties, extreme values and every dtype.

The tests run on the reference and on shares.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit
from tacit.operators.numerics.sorting_network import network

generator = torch.Generator().manual_seed(5)
#: A tensor with many ties.
TIED = torch.randint(-6, 6, (5, 7, 3), generator=generator) / 4
INPUTS = {
    "ties": TIED,
    "edges": torch.tensor([2.0**29, -(2.0**29), 0.0, 2.0**-16, -(2.0**-16), 0.0, 1.0]),
    "one": torch.tensor([[3.0], [2.0]]),
    "none": torch.empty(2, 0),
    "number": torch.tensor(2.5),
    "int64": torch.tensor([5, -(2**45), 2**45, 5, 0, -1, 0, -1, 5]),
    "int32": torch.tensor([2**31 - 1, -(2**31), 0, 7, 0, 7], dtype=torch.int32),
    "uint8": torch.tensor([255, 0, 128, 127, 0], dtype=torch.uint8),
    "bool": torch.tensor([True, False, True, True, False]),
}


def sorts(x: Any) -> list[Any]:
    """Sorts a tensor in every way and returns values and indices alternately."""
    ways = itertools.product({-1, 0, x.dim() - 1} if x.dim() else {0}, (False, True))
    return [found for dim, down in ways for found in x.sort(stable=True, dim=dim, descending=down)]


def checked(
    everywhere: Callable[..., Any], fn: Callable[[Any], list[Any]], x: torch.Tensor
) -> None:
    """Checks that the results equal PyTorch's exactly."""
    found = everywhere(lambda: [each.reveal() for each in fn(tacit.share(x, owner=0))])
    for mine, plain in zip(found, fn(x), strict=True):
        assert mine.dtype == plain.dtype
        assert torch.equal(mine, plain)


def test_sorting(everywhere: Callable[..., Any]) -> None:
    def program() -> list[Any]:
        return [
            [found.reveal() for found in sorts(tacit.share(x, owner=0))] for x in INPUTS.values()
        ]

    for name, found in zip(INPUTS, everywhere(program), strict=True):
        for mine, plain in zip(found, sorts(INPUTS[name]), strict=True):
            assert mine.dtype == plain.dtype
            assert torch.equal(mine, plain), name


def places(x: Any) -> list[Any]:
    """Returns results that need only some places of a sort, or no order among equal elements."""
    return [
        x.topk(3, 1).values,
        x.topk(2, 0, largest=False).values,
        x.kthvalue(2, 1).values,
        x.kthvalue(7, -2, keepdim=True).values,
        x.median(),
        x.nanmedian(),
        x.median(0).values,
        x.nanmedian(2, keepdim=True).values,
        x.msort(),
        x.argsort(stable=True, dim=1),
        *x.cummax(1),
        *x.cummin(0),
        *x.mode(1),
        x.mode(0, keepdim=True).values,
    ]


def test_what_is_found_by_sorting(everywhere: Callable[..., Any]) -> None:
    checked(everywhere, places, TIED)


def test_indices_lead_to_the_values(everywhere: Callable[..., Any]) -> None:
    def program() -> list[Any]:
        x = tacit.share(TIED, owner=0)
        ways = (x.topk(3, 1), x.kthvalue(4, 1, keepdim=True), x.median(1, keepdim=True))
        return [(way.values.reveal(), way.indices.reveal()) for way in ways]

    for values, indices in everywhere(program):
        assert torch.equal(TIED.gather(1, indices), values)


def test_quantiles(everywhere: Callable[..., Any]) -> None:
    q = torch.tensor([0.0, 0.1, 0.5, 0.77, 1.0])

    def quantiles(x: Any) -> list[Any]:
        ways = ("linear", "lower", "higher", "midpoint", "nearest")
        return [
            each
            for way in ways
            for each in (x.quantile(q, 1, interpolation=way), x.nanquantile(0.3, interpolation=way))
        ]

    found = everywhere(lambda: [each.reveal() for each in quantiles(tacit.share(TIED, owner=1))])
    for mine, plain in zip(found, quantiles(TIED), strict=True):
        assert torch.allclose(mine, plain, rtol=0, atol=2**-14)


def test_words_with_no_room_for_an_index() -> None:
    # Fractions leave room for the indices of at most 2^15 elements.
    x = torch.randint(-50, 50, (2**15 + 1,), generator=generator) / 4
    found = tacit.launch(
        lambda: [each.reveal() for each in tacit.share(x, owner=0).sort()],
        parties=2,
        protocol="plain",
    )[0]
    for mine, plain in zip(found, x.sort(stable=True), strict=True):
        assert torch.equal(mine, plain)


def test_a_width_of_comparison() -> None:
    def program() -> Any:
        with tacit.comparison_width(32):
            return [
                each.reveal() for each in tacit.share(INPUTS["int64"].clamp(-9, 9), owner=0).sort()
            ]

    for mine, plain in zip(
        tacit.launch(program)[0], INPUTS["int64"].clamp(-9, 9).sort(stable=True), strict=True
    ):
        assert torch.equal(mine, plain)


def test_a_network_sorts_whatever_it_is_given() -> None:
    # All inputs of zeros and ones suffice (Knuth, volume 3, 5.3.4, theorem Z), also for a network
    # that sorts only some places.
    for size in range(2, 12):
        x = torch.tensor(list(itertools.product((0, 1), repeat=size))).T.contiguous()
        middle = size // 2
        for first, last in {
            (0, size),
            (0, 1),
            (0, 2),
            (middle, middle + 1),
            (1, middle + 1),
            (size - 1, size),
        }:
            y, found = x.clone(), network(size, first, last)
            for low, high in found.stages:
                one, other = y[low], y[high]
                y[low], y[high] = torch.minimum(one, other), torch.maximum(one, other)
            assert torch.equal(y[found.places], x.sort(0).values[first:last])


def test_few_places_take_few_comparisons() -> None:
    def comparisons(*places: int) -> int:
        return sum(low.numel() for low, _ in network(1000, *places).stages)

    assert comparisons(0, 1) == 999
    assert comparisons(0, 10) < 6 * 1000
    # A full network for 2^p elements takes (p² − p + 4)·2^(p − 2) − 1 comparisons.
    assert comparisons(0, 1000) <= (10**2 - 10 + 4) * 2**8 - 1


def test_sizes_that_would_tell_are_refused() -> None:
    def program() -> None:
        x = tacit.share(TIED, owner=0)
        for refused in (x.unique, lambda: x.unique(dim=0), x.unique_consecutive):
            with pytest.raises(
                tacit.UnsupportedOperatorError, match=r"unique.*whose size depends on the values"
            ):
                refused()

    tacit.launch(program, parties=2, protocol="plain")
