"""Losses with secret targets match plain ones, and so do their gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit

torch.manual_seed(8)
LOGITS = torch.randn(6, 4) * 2
IMAGES = torch.randn(2, 3, 2, 2)
PROBABILITIES = torch.randn(6, 4).softmax(1)
NUMBERS = torch.tensor([0, 3, 1, 2, 2, 0])
IGNORED = torch.tensor([0, -100, 1, 2, -100, 0])
WEIGHTS = torch.tensor([0.5, 1.0, 2.0, 0.25])
TRUTH = torch.randn(6, 4)
CHANCES = torch.rand(6, 4) * 0.8 + 0.1
LABELS = (torch.arange(24).reshape(6, 4) % 3 == 0).float()

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

#: By name: predictions, targets, and the loss.
LOSSES: dict[str, tuple[torch.Tensor, torch.Tensor, Loss]] = {
    "cross entropy of probabilities": (LOGITS, PROBABILITIES, functional.cross_entropy),
    "of probabilities, smoothed and weighted": (
        LOGITS,
        PROBABILITIES,
        lambda x, y: functional.cross_entropy(x, y, WEIGHTS, label_smoothing=0.1),
    ),
    "cross entropy of classes": (LOGITS, NUMBERS, functional.cross_entropy),
    "of classes, smoothed": (
        LOGITS,
        NUMBERS,
        lambda x, y: functional.cross_entropy(x, y, label_smoothing=0.2, reduction="sum"),
    ),
    "of classes, weighted": (LOGITS, NUMBERS, lambda x, y: functional.cross_entropy(x, y, WEIGHTS)),
    "of classes, smoothed and weighted": (
        LOGITS,
        NUMBERS,
        lambda x, y: functional.cross_entropy(x, y, WEIGHTS, label_smoothing=0.2),
    ),
    "of classes, smoothed, weighted, some ignored": (
        LOGITS,
        IGNORED,
        lambda x, y: functional.cross_entropy(x, y, WEIGHTS, label_smoothing=0.1),
    ),
    "of classes, smoothed, weighted, another ignored": (
        LOGITS,
        NUMBERS,
        lambda x, y: functional.cross_entropy(x, y, WEIGHTS, ignore_index=2, label_smoothing=0.1),
    ),
    "of classes of pixels, smoothed and weighted": (
        IMAGES,
        torch.tensor([[[0, 1], [2, 0]], [[1, -100], [0, 2]]]),
        lambda x, y: functional.cross_entropy(x, y, WEIGHTS[1:], label_smoothing=0.1),
    ),
    "of a class, smoothed and weighted": (
        LOGITS[0],
        NUMBERS[1],
        lambda x, y: functional.cross_entropy(x, y, WEIGHTS, label_smoothing=0.1),
    ),
    "of classes, some ignored": (LOGITS, IGNORED, functional.cross_entropy),
    "of classes, another ignored": (
        LOGITS,
        NUMBERS,
        lambda x, y: functional.cross_entropy(x, y, ignore_index=2),
    ),
    "of classes, one by one": (
        LOGITS,
        NUMBERS,
        lambda x, y: functional.cross_entropy(x, y, reduction="none"),
    ),
    "of classes of pixels": (
        IMAGES,
        torch.tensor([[[0, 1], [2, 0]], [[1, 1], [0, 2]]]),
        functional.cross_entropy,
    ),
    "nll": (LOGITS, NUMBERS, lambda x, y: functional.nll_loss(functional.log_softmax(x, 1), y)),
    "mse": (LOGITS, TRUTH, functional.mse_loss),
    "l1": (LOGITS, TRUTH, functional.l1_loss),
    "smooth l1": (LOGITS, TRUTH, lambda x, y: functional.smooth_l1_loss(x, y, beta=0.5)),
    "huber": (LOGITS, TRUTH, lambda x, y: functional.huber_loss(x, y, reduction="sum", delta=0.7)),
    "bce": (CHANCES, LABELS, functional.binary_cross_entropy),
    "bce, weighted": (
        CHANCES,
        LABELS,
        lambda x, y: functional.binary_cross_entropy(x, y, WEIGHTS, reduction="none"),
    ),
    "bce with logits": (LOGITS, LABELS, functional.binary_cross_entropy_with_logits),
    "bce with logits, weighted": (
        LOGITS,
        LABELS,
        lambda x, y: functional.binary_cross_entropy_with_logits(x, y, pos_weight=WEIGHTS),
    ),
    "kl": (
        LOGITS,
        PROBABILITIES,
        lambda x, y: functional.kl_div(functional.log_softmax(x, 1), y, reduction="batchmean"),
    ),
}


def step(name: str, x: torch.Tensor, y: torch.Tensor) -> list[Any]:
    """Returns the loss and the gradient of the predictions."""
    x = x.detach().requires_grad_()
    loss = LOSSES[name][2](x, y)
    loss.sum().backward()
    return [loss.detach(), x.grad]


def check(name: str, found: list[torch.Tensor]) -> None:
    for mine, plain in zip(found, step(name, *LOSSES[name][:2]), strict=True):
        assert (mine.dtype, mine.shape) == (plain.dtype, plain.shape)
        assert torch.allclose(mine, plain, rtol=2e-3, atol=1e-3), (name, mine - plain)


def secret_step(names: list[str]) -> list[list[torch.Tensor]]:
    """Runs in a party. Computes losses and gradients on secrets, and reveals them."""
    found = []
    for name in names:
        x, y, _ = LOSSES[name]
        results = step(name, tacit.share(x, owner=0), tacit.share(y, owner=1))
        found.append([each.reveal() for each in results])
    return found


@pytest.mark.parametrize("name", LOSSES)
def test_secret_targets(name: str) -> None:
    check(name, tacit.launch(secret_step, [name], protocol="plain", parties=2)[0][0])


@pytest.mark.parametrize(
    ("protocol", "parties", "source"), [("replicated", 3, None), ("additive", 2, "dealer")]
)
def test_secret_targets_on_shares(protocol: str, parties: int, source: str | None) -> None:
    names = [
        "cross entropy of probabilities",
        "of classes, some ignored",
        "of classes, smoothed, weighted, some ignored",
        "smooth l1",
        "bce with logits",
        "kl",
    ]
    found = tacit.launch(secret_step, names, protocol=protocol, parties=parties, source=source)[0]
    for name, results in zip(names, found, strict=True):
        check(name, results)


@pytest.mark.parametrize("is_public", [True, False])
def test_secret_weights_of_classes_that_are_smoothed(is_public: bool) -> None:
    def loss(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(x, y, weight, label_smoothing=0.1)

    def program() -> torch.Tensor:
        x = LOGITS if is_public else tacit.share(LOGITS, owner=0)
        return loss(x, tacit.share(IGNORED, owner=1), tacit.share(WEIGHTS, owner=0)).reveal()

    assert torch.allclose(tacit.launch(program)[0], loss(LOGITS, IGNORED, WEIGHTS), atol=1e-3)


def test_the_mean_of_many_losses_has_gradients_to_a_unit() -> None:
    torch.manual_seed(4)
    x, y = torch.randn(5000, 3), torch.randint(0, 3, (5000,))

    def program() -> tuple[torch.Tensor, torch.Tensor, int, int]:
        meter = tacit.session().meter
        secret, targets = tacit.share(x, owner=0).requires_grad_(), tacit.share(y, owner=1)
        logarithms = torch.log_softmax(secret, 1)
        before = meter.total
        loss = functional.nll_loss(logarithms, targets)
        between = meter.total
        gradient = torch.autograd.grad(loss, logarithms)[0]
        spent = meter.total - between
        compared = between - before
        return (
            loss.detach().reveal(),
            gradient.reveal(),
            spent.payload_bytes,
            compared.payload_bytes,
        )

    plain = x.requires_grad_().log_softmax(1)
    loss = functional.nll_loss(plain, y)
    expected = torch.autograd.grad(loss, plain)[0]
    found, gradient, spent, compared = tacit.launch(program)[0]
    assert abs(found - loss) < 2**-12
    # The error is about a unit of the scale of gradients. Each target contributes 210 units.
    assert (gradient - expected).norm() < 0.005 * expected.norm()
    # The forward pass compares the targets, and the backward pass does not repeat it.
    assert 2 * spent < compared
