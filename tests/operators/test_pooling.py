"""Pooling in one to three dimensions gives values, indices and gradients, and can be undone."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit
from tacit.errors import UnsupportedOperatorError
from tacit.operators import max_pooling
from tacit.operators.numerics.max_tree import Windows

#: Images with ties, in which the first of equal elements must win.
IMAGES = (
    torch.tensor([-2.0, 1.0, 1.0, 0.5, 1.0, -1.0]).repeat(40)[: 2 * 2 * 6 * 7].reshape(2, 2, 6, 7)
)
IMAGES = IMAGES + 0.25 * (torch.arange(IMAGES.numel()) % 11 == 0).reshape(IMAGES.shape)
VOLUMES = torch.randn(2, 2, 5, 6, 4, generator=torch.Generator().manual_seed(1))
SAMPLES = torch.rand(2, 2, 2, generator=torch.Generator().manual_seed(2))

MAXIMA: dict[str, tuple[torch.Tensor, Callable[[Any], Any]]] = {
    "1d": (IMAGES[0], lambda x: functional.max_pool1d(x, 3, 2, 1, return_indices=True)),
    "2d": (IMAGES, lambda x: functional.max_pool2d(x, 3, (2, 1), 1, return_indices=True)),
    "one image": (
        IMAGES[0],
        lambda x: functional.max_pool2d(x, 2, dilation=2, return_indices=True),
    ),
    "3d": (VOLUMES, lambda x: functional.max_pool3d(x, 2, ceil_mode=True, return_indices=True)),
    "adaptive": (IMAGES, lambda x: functional.adaptive_max_pool2d(x, (4, 3), return_indices=True)),
    "adaptive 3d": (VOLUMES, lambda x: functional.adaptive_max_pool3d(x, 3, return_indices=True)),
    "fractional": (
        IMAGES,
        lambda x: functional.fractional_max_pool2d(
            x, 2, (3, 4), return_indices=True, _random_samples=SAMPLES
        ),
    ),
}

AVERAGES: dict[str, tuple[torch.Tensor, Callable[[Any], Any]]] = {
    "1d": (IMAGES[0], lambda x: functional.avg_pool1d(x, 3, 2, 1)),
    "2d": (IMAGES, lambda x: functional.avg_pool2d(x, 3, 2, 1, True, False)),
    "divisor": (IMAGES, lambda x: functional.avg_pool2d(x, 2, divisor_override=3)),
    "3d": (VOLUMES, lambda x: functional.avg_pool3d(x, (2, 3, 2), 1, 1)),
    "adaptive": (IMAGES, lambda x: functional.adaptive_avg_pool2d(x, (4, 3))),
    "adaptive 3d": (VOLUMES, lambda x: functional.adaptive_avg_pool3d(x, (2, 4, 3))),
}


def shown(value: Any) -> Any:
    return value.reveal() if isinstance(value, tacit.SecretTensor) else value


def with_gradient(pool: Callable[[Any], Any], x: Any) -> list[torch.Tensor]:
    """Returns values, indices if there are any, and the gradient.

    The backward pass must not change the indices that were returned.
    """
    x.requires_grad_()
    found = pool(x)
    found = list(found) if isinstance(found, tuple) else [found]
    weights = torch.arange(found[0].numel()).reshape(found[0].shape) % 5 - 2.0
    (found[0] * weights).sum().backward()
    return [shown(value.detach()) for value in (*found, x.grad)]


def test_values_indices_and_gradients(everywhere: Callable[..., Any]) -> None:
    cases = [*MAXIMA.values(), *AVERAGES.values()]

    def program() -> list[Any]:
        return [with_gradient(pool, tacit.share(x, owner=0)) for x, pool in cases]

    for found, (x, pool) in zip(everywhere(program), cases, strict=True):
        for mine, plain in zip(found, with_gradient(pool, x.clone()), strict=True):
            assert mine.dtype == plain.dtype
            tolerance = 0 if len(found) == 3 and plain.dtype == torch.int64 else 4e-4
            assert torch.allclose(mine, plain, rtol=0, atol=tolerance)


def test_indices_cost_nothing_until_they_are_used() -> None:
    def program() -> list[int]:
        x, sent = tacit.share(IMAGES, owner=0), []

        def spent(do: Callable[[], Any]) -> Any:
            before = tacit.session().meter.total.payload_bytes
            found = do()
            sent.append(tacit.session().meter.total.payload_bytes - before)
            return found

        y = x.clone().requires_grad_()
        spent(lambda: functional.max_pool2d(x, 2))
        _, indices = spent(lambda: functional.max_pool2d(x, 2, return_indices=True))
        spent(lambda: indices + 1)
        spent(lambda: indices + 1)
        pooled = functional.max_pool2d(y, 2).sum()
        spent(lambda: pooled.backward())
        return sent

    without, with_indices, first_use, second_use, backward = tacit.launch(program)[0]
    assert with_indices == without > first_use > 0 == second_use
    # The backward pass needs as many selections.
    assert backward == first_use


def test_unpooling_by_secret_indices(everywhere: Callable[..., Any]) -> None:
    def unpooled(x: Any) -> Any:
        values, indices = functional.max_pool2d(x, 2, return_indices=True)
        return functional.max_unpool2d(2 * values, indices, 2, output_size=x.shape)

    def program() -> Any:
        x = tacit.share(IMAGES, owner=0)
        values, indices = functional.max_pool2d(x, 3, 1, return_indices=True)
        with pytest.raises(tacit.UnsupportedOperatorError, match="windows that overlap"):
            functional.max_unpool2d(values, indices, 3, 1)
        with pytest.raises(tacit.UnsupportedOperatorError, match="that no pooling gave"):
            functional.max_unpool2d(values, indices + 0, 3, 1)
        return unpooled(x).reveal()

    assert torch.equal(everywhere(program), unpooled(IMAGES))


@pytest.mark.parametrize("size", [8, 9, 2])
def test_unpooling_in_one_dimension_by_secret_indices(
    size: int, everywhere: Callable[..., Any]
) -> None:
    """PyTorch pools one dimension as a row and unpools it as a column."""
    x, weight = torch.randn(2, 3, size), torch.arange(float(size))

    def step(x: torch.Tensor) -> list[Any]:
        x = x.detach().requires_grad_()
        values, indices = functional.max_pool1d(x, 2, return_indices=True)
        found = functional.max_unpool1d(values, indices, 2, output_size=x.shape)
        (found * weight).sum().backward()
        return [found.detach(), x.grad]

    found = everywhere(lambda: [each.reveal() for each in step(tacit.share(x, owner=0))])
    for mine, plain in zip(found, step(x), strict=True):
        assert torch.allclose(mine, plain, atol=2**-12)


def test_windows_are_taken_as_by_their_indices() -> None:
    """Windows read the elements that their indices name.

    Windows with equal steps are read as slices, also at the ends.
    """
    sliced = 0
    for size, kernel, stride, dilation in product(range(1, 10), range(1, 5), range(1, 4), (1, 2)):
        for padding in range(kernel // 2 + 1):
            outputs = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            try:
                taps = max_pooling._taps(size, max(outputs, 1), kernel, stride, padding, dilation)
            except UnsupportedOperatorError:
                continue
            windows, x = Windows(-1, size, taps), torch.randint(100, (2, 3, size))
            expected = x.index_select(-1, taps.flatten()).unflatten(-1, taps.shape).movedim(-2, 0)
            assert windows.taken((x,))[0].equal(expected)
            sliced += windows._slices is not None and windows._slices.before > 0
    assert sliced > 20
