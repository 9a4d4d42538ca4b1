"""Affine maps add several layers, a bias and other terms with one truncation, also with ReLU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit

RECTIFIED = pytest.mark.parametrize("rectified", [False, True])


def called(rectified: bool, *operands: Any) -> Any:
    target = torch.ops.tacit.rectified_affine if rectified else torch.ops.tacit.affine
    return target(*operands)


def randn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def images() -> list[Any]:
    """Returns three convolutions of different geometries, a bias, and two more addends."""
    x = [randn(2, 4, 7, 6, seed=1), randn(2, 2, 4, 3, seed=2), randn(2, 4, 4, 3, seed=3)]
    weight = [randn(6, 4, 3, 3, seed=4), randn(6, 2, 1, 1, seed=5), randn(6, 2, 3, 2, seed=6)]
    geometry = [2, 2, 1, 1, 1, 1, 1, *(1, 1, 0, 0, 1, 1, 1), *(1, 1, 2, 1, 2, 2, 2)]
    addends = [randn(2, 6, 4, 3, seed=7), randn(2, 6, 4, 3, seed=8)]
    return [x, weight, randn(6, seed=9), addends, geometry]


def layers() -> list[Any]:
    """Returns two linear layers for inputs with two dimensions before the last."""
    x = [randn(2, 3, 5, seed=1), randn(2, 3, 4, seed=2)]
    weight = [randn(6, 5, seed=3), randn(6, 4, seed=4)]
    return [x, weight, randn(6, seed=5), [randn(2, 3, 6, seed=6)], []]


def shared(given: list[Any], scales: list[int]) -> list[Any]:
    """Shares the operands. The weights get the given scales."""
    x, weight, bias, addends, geometry = given
    secret = [tacit.share(each, owner=0) for each in x]
    weights = [
        tacit.share(each, owner=1, scale=bits) for each, bits in zip(weight, scales, strict=True)
    ]
    more = [tacit.share(each, owner=0) for each in addends]
    return [secret, weights, None if bias is None else tacit.share(bias, owner=1), more, geometry]


@RECTIFIED
@pytest.mark.parametrize(("given", "scales"), [(images(), [16, 24, 20]), (layers(), [16, 18])])
def test_many_layers(
    given: list[Any], scales: list[int], rectified: bool, everywhere: Callable[..., Any]
) -> None:
    found = everywhere(lambda: called(rectified, *shared(given, scales)).reveal())
    # The inputs of both owners are rounded, in sums of up to 50 products.
    torch.testing.assert_close(found, called(rectified, *given), rtol=0, atol=2e-3)


@RECTIFIED
@pytest.mark.parametrize("given", [images(), layers()])
def test_one_layer_alone(given: list[Any], rectified: bool, everywhere: Callable[..., Any]) -> None:
    x, weight, _, _, geometry = given
    alone = [x[:1], weight[:1], None, [], geometry[:7]]
    found = everywhere(lambda: called(rectified, *shared(alone, [16])).reveal())
    torch.testing.assert_close(found, called(rectified, *alone), rtol=0, atol=2e-3)


@RECTIFIED
@pytest.mark.parametrize("given", [images(), layers()])
def test_it_is_truncated_once(given: list[Any], rectified: bool) -> None:
    def spent() -> list[int]:
        operands = shared(given, [16] * len(given[0]))
        alone = [operands[0][:1], operands[1][:1], operands[2], [], given[4][:7]]
        readings = []
        for each in (operands, alone):
            before = tacit.session().meter.total
            called(rectified, *each)
            readings.append((tacit.session().meter.total - before).bytes_sent)
        return readings

    # In replicated sharing, messages are as large as the result, whatever the sum contains.
    all_of_them, one = tacit.launch(spent)[0]
    assert all_of_them == pytest.approx(one, rel=0.01)


@RECTIFIED
@pytest.mark.parametrize("given", [images(), layers()])
def test_what_is_public_or_has_more_digits_is_left_to_other_operators(
    given: list[Any], rectified: bool
) -> None:
    def run() -> list[torch.Tensor]:
        secret = shared(given, [16] * len(given[0]))
        x = [given[0][0], *secret[0][1:]]
        finer = [tacit.share(each, owner=0, scale=20) for each in given[3]]
        return [
            called(rectified, x, *secret[1:]).reveal(),
            called(rectified, *secret[:3], finer, secret[4]).reveal(),
            called(rectified, *secret[:2], given[2], given[3], secret[4]).reveal(),
        ]

    for found in tacit.launch(run)[0]:
        torch.testing.assert_close(found, called(rectified, *given), rtol=0, atol=2e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given[4].pop(), "7 numbers"),
        (
            lambda given: given[1].__setitem__(0, randn(6, 4, seed=1)),
            "of convolutions of images, or of",
        ),
        (
            lambda given: given[0].__setitem__(1, randn(4, 3, seed=1)),
            "of convolutions of images, or of",
        ),
        (lambda given: given[3].__setitem__(0, randn(1, 6, 4, 3, seed=1)), "summands of shapes"),
        (lambda given: (given[0].clear(), given[1].clear()), "of convolutions of images, or of"),
    ],
)
def test_what_is_no_affine_map_is_refused(change: Callable[[list[Any]], Any], message: str) -> None:
    given = images()
    change(given)
    with pytest.raises(ValueError, match=message):
        called(False, *given)
