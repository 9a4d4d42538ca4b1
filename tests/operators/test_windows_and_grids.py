"""Overlapping windows, grids, and zeros that PyTorch itself writes into match plain tensors.

The incoming gradients are secret.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit

IMAGES = torch.linspace(-2, 2, 60).sin().reshape(1, 2, 5, 6)
COLUMNS = torch.linspace(-3, 3, 96).cos().reshape(2, 12, 4)
TURNED = torch.tensor([[[0.9, 0.15, 0.05], [-0.1, 1.1, 0.02]]])


def turned(images: Any, theta: Any) -> Any:
    """Applies a spatial transformer."""
    grid = functional.affine_grid(theta, [1, 2, 4, 3], align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


#: A function, and its inputs.
WAYS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "fold": (nn.Fold(5, 2, stride=2, padding=0), (COLUMNS,)),
    "fold that overlaps": (
        nn.Fold((3, 4), (3, 2), padding=1, dilation=(1, 3)),
        (COLUMNS.repeat(1, 1, 3)[..., :9],),
    ),
    "unfold": (nn.Unfold(2, padding=1), (IMAGES,)),
    "transformer": (turned, (IMAGES, TURNED)),
    "interpolation": (lambda x: functional.interpolate(x, (7, 9), mode="bilinear"), (IMAGES,)),
    "interpolation without aliases": (
        lambda x: functional.interpolate(x, (3, 4), mode="bicubic", antialias=True),
        (IMAGES,),
    ),
    "nearest": (lambda x: functional.interpolate(x, scale_factor=2), (IMAGES,)),
    "rows": (lambda x: x.index_select(1, torch.tensor([1, 0, 1])), (IMAGES,)),
    "columns": (lambda x: x[:, :, [1, 3, 3]], (IMAGES,)),
}


def differentiated(compute: Callable[..., Any], inputs: list[Any]) -> list[Any]:
    """Returns the result, and the gradients of the sum of its squares.

    The incoming gradient is secret if the inputs are.
    """
    leaves = [x.detach().requires_grad_() for x in inputs]
    result = compute(*leaves)
    return [result.detach(), *torch.autograd.grad(result.square().sum(), leaves)]


@pytest.mark.parametrize("setting", [("plain", 2), ("replicated", 3)], ids=str)
def test_results_and_gradients(setting: tuple[str, int]) -> None:
    protocol, parties = setting

    def program() -> list[list[torch.Tensor]]:
        found = []
        for compute, inputs in WAYS.values():
            shared = [tacit.share(x, owner=0) for x in inputs]
            found.append([one.reveal() for one in differentiated(compute, shared)])
        return found

    found = tacit.launch(program, protocol=protocol, parties=parties)[0]
    for (name, (compute, inputs)), mine in zip(WAYS.items(), found, strict=True):
        for one, plain in zip(mine, differentiated(compute, list(inputs)), strict=True):
            # Each gradient adds differences of six pixels, each multiplied by a sum.
            assert torch.allclose(one, plain, rtol=5e-3, atol=5e-3), name


def test_public_parts_stay_public() -> None:
    def program() -> list[torch.Tensor]:
        images = tacit.share(IMAGES, owner=0).requires_grad_()
        turned(images, TURNED).square().sum().backward()
        theta = tacit.share(TURNED, owner=1).requires_grad_()
        turned(IMAGES, theta).square().sum().backward()
        return [images.grad.reveal(), theta.grad.reveal()]

    _, *plain = differentiated(turned, [IMAGES, TURNED])
    for mine, theirs in zip(
        tacit.launch(program, protocol="plain", parties=2)[0], plain, strict=True
    ):
        assert torch.allclose(mine, theirs, rtol=5e-3, atol=5e-3)


def test_hard_choices_by_gumbel() -> None:
    logits = torch.tensor([2.0, 0.0, 1.0, -1.0]).repeat(3000, 1)

    def program() -> tuple[torch.Tensor, torch.Tensor]:
        x = tacit.share(logits, owner=0).requires_grad_()
        chosen = functional.gumbel_softmax(x, tau=0.5, hard=True)
        (chosen * torch.arange(4.0)).sum().backward()
        return chosen.reveal(), x.grad.reveal()

    chosen, gradient = tacit.launch(program)[0]
    chosen = chosen.round()
    assert torch.equal(chosen.sum(1), torch.ones(3000))
    expected = logits[0].softmax(0) * 3000
    # A chi-squared bound for 3 degrees of freedom, exceeded with probability 10^-8.
    assert ((chosen.sum(0) - expected) ** 2 / expected).sum() < 40.13
    # The gradient of the soft choice, which sums to zero.
    assert gradient.abs().max() > 0.1
    assert gradient.sum(1).abs().max() < 0.02
