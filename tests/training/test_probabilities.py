"""Losses of probabilities from a sigmoid or a softmax are computed from the logits.

They are therefore exact near probabilities of 0 and 1 too.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit

LOGITS = torch.tensor(
    [[-30.0, -12.0, -8.0], [-2.0, 0.5, 7.75], [9.0, 14.0, 25.0]], dtype=torch.float64
)
LABELS = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
CLASSES = torch.tensor([0, 2, 1])
MODEST = torch.tensor([[-2.0, 0.5, 1.5]], dtype=torch.float64)

Loss = Callable[[Any, Any], Any]

#: By name: a loss of logits and labels, and an equivalent loss that loses no digits.
LOSSES: dict[str, tuple[Loss, Loss]] = {
    "bce": (
        lambda x, y: functional.binary_cross_entropy(x.sigmoid(), y),
        functional.binary_cross_entropy_with_logits,
    ),
    "bce, weighted, of a view": (
        lambda x, y: functional.binary_cross_entropy(
            torch.sigmoid(x.unsqueeze(1)).squeeze(1), y, LABELS + 0.5, reduction="sum"
        ),
        lambda x, y: functional.binary_cross_entropy_with_logits(
            x, y, LABELS + 0.5, reduction="sum"
        ),
    ),
    "bce of another shape": (
        lambda x, y: functional.binary_cross_entropy(torch.sigmoid(x).view(-1), y.flatten()),
        functional.binary_cross_entropy_with_logits,
    ),
    "logarithms": (
        lambda x, y: -(torch.log(torch.sigmoid(x)) * y).sum(),
        lambda x, y: -(functional.logsigmoid(x) * y).sum(),
    ),
    "nll": (
        lambda x, y: functional.nll_loss(torch.log(x.softmax(1)), CLASSES) + 0 * y.sum(),
        lambda x, y: functional.cross_entropy(x, CLASSES) + 0 * y.sum(),
    ),
    "nll of columns": (
        lambda x, y: -(x.softmax(0).log() * y).sum(),
        lambda x, y: -(x.log_softmax(0) * y).sum(),
    ),
}


def step(loss: Loss, x: Any, y: Any) -> list[Any]:
    x = x.detach().requires_grad_()
    found = loss(x, y)
    found.backward()
    return [found.detach(), x.grad]


SETTINGS = [("plain", 2, None), ("replicated", 3, None), ("additive", 2, "dealer")]


@pytest.mark.parametrize(("protocol", "parties", "source"), SETTINGS)
def test_losses_of_probabilities_are_those_of_their_arguments(
    protocol: str, parties: int, source: str | None
) -> None:
    def program() -> list[list[torch.Tensor]]:
        x, y = tacit.share(LOGITS, owner=0), tacit.share(LABELS, owner=1)
        return [[each.reveal() for each in step(loss, x, y)] for loss, _ in LOSSES.values()]

    found = tacit.launch(program, protocol=protocol, parties=parties, source=source)[0]
    for (name, (_, exact)), results in zip(LOSSES.items(), found, strict=True):
        for mine, plain in zip(results, step(exact, LOGITS, LABELS), strict=True):
            assert torch.allclose(mine, plain, rtol=2e-3, atol=2e-3), (name, mine, plain)


def test_a_classifier_that_ends_with_a_sigmoid_learns_where_it_is_wrong_and_sure() -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    nn.init.constant_(model[0].weight, 6.0)
    x, y = torch.rand(5, 4) + 0.5, torch.zeros(5, 1)

    def program() -> torch.Tensor:
        secret = tacit.share_module(model, owner=0, trainable=True)
        nn.BCELoss()(secret(tacit.share(x, owner=1)), tacit.share(y, owner=1)).backward()
        return secret[0].weight.grad.reveal()

    found = tacit.launch(program)[0]
    assert torch.allclose(found, x.mean(0, keepdim=True), rtol=2e-3, atol=1e-3)


ROWS = [slice(None), slice(1, None), (slice(None), 0), (0, slice(1, None))]


def test_logarithms_of_any_view_and_without_gradients() -> None:
    def views(p: Any, logarithm: Callable[[Any], Any]) -> list[Any]:
        return [logarithm(p[rows]) for rows in ROWS] + [
            logarithm(p.T),
            logarithm(p.T[1:]),
            logarithm(p.reshape(-1)),
        ]

    def program() -> list[list[torch.Tensor]]:
        found = []
        for function in (torch.sigmoid, lambda x: x.softmax(1)):
            found.append(
                [each.reveal() for each in views(function(tacit.share(LOGITS, owner=0)), torch.log)]
            )
            transposed = function(tacit.share(LOGITS.T.contiguous(), owner=0).T)
            found.append([each.reveal() for each in views(transposed, torch.log)])
        with torch.inference_mode():
            found.append([torch.log(tacit.share(LOGITS, owner=0).sigmoid()).reveal()])
        return found

    by_sigmoid, by_softmax = (
        views(x, lambda p: p) for x in (functional.logsigmoid(LOGITS), LOGITS.log_softmax(1))
    )
    expected = [by_sigmoid, by_sigmoid, by_softmax, by_softmax, [functional.logsigmoid(LOGITS)]]
    for mine, plain in zip(tacit.launch(program)[0], expected, strict=True):
        for one, other in zip(mine, plain, strict=True):
            assert torch.allclose(one, other, atol=2e-3), (one, other)


def test_nothing_is_remembered_of_what_was_written_to() -> None:
    def program() -> list[torch.Tensor]:
        found = []
        for function in (torch.sigmoid, lambda x: x.softmax(1)):
            x = tacit.share(MODEST, owner=0)
            p = function(x)
            p[0, 0] = 0.25
            found.append(p.log())
            p = function(x)
            p.view(-1).mul_(0.5)
            found.append(p.log())
            p = function(x)
            # A later write to the logits does not change the probabilities or their logarithm.
            x.zero_()
            found.append(p.log())
        return [each.reveal() for each in found]

    expected = []
    for p in (MODEST.sigmoid(), MODEST.softmax(1)):
        written = p.clone()
        written[0, 0] = 0.25
        expected += [written.log(), (p * 0.5).log(), p.log()]
    for mine, plain in zip(tacit.launch(program)[0], expected, strict=True):
        assert torch.allclose(mine, plain, atol=0.02), (mine, plain)


def test_a_gradient_that_somebody_looks_at_or_changes_is_a_quotient() -> None:
    x, y = LOGITS[1:2, :2], LABELS[1:2, :2]

    def gradients(x: Any, y: Any, change: Callable[[Any], Any]) -> list[Any]:
        found = []
        for loss in (
            lambda p: functional.binary_cross_entropy(p, y, reduction="sum"),
            lambda p: p.log().sum(),
        ):
            for function in (torch.sigmoid, lambda x: x.softmax(1)):
                leaf = x.detach().requires_grad_()
                p = function(leaf)
                p.register_hook(change)
                p.retain_grad()
                loss(p).backward()
                found += [p.grad, leaf.grad]
        return found

    def changed_in_place(gradient: Any) -> None:
        gradient.view(-1).mul_(0.5)

    changes = [
        lambda gradient: gradient * 2.0,
        changed_in_place,
        lambda gradient: gradient.flip(1),
        lambda _: None,
    ]

    def program() -> list[torch.Tensor]:
        secrets = tacit.share(x, owner=0), tacit.share(y, owner=1)
        return [each.reveal() for change in changes for each in gradients(*secrets, change)]

    expected = [each for change in changes for each in gradients(x, y, change)]
    for mine, plain in zip(tacit.launch(program)[0], expected, strict=True):
        assert torch.allclose(mine, plain, rtol=1e-2, atol=5e-3), (mine, plain)


def test_nothing_is_divided_on_the_way_back() -> None:
    def program() -> list[int]:
        x, y = tacit.share(LOGITS, owner=0), tacit.share(LABELS, owner=1)
        spent = []
        for loss in (LOSSES["bce"], LOSSES["logarithms"], LOSSES["nll"]):
            leaf = x.detach().requires_grad_()
            found = loss[0](leaf, y)
            before = tacit.session().meter.total.rounds
            found.backward()
            spent.append(tacit.session().meter.total.rounds - before)
        return spent

    # A division takes 59 rounds.
    assert max(tacit.launch(program)[0]) < 20


# Probabilities that are clamped
# ----------------------------------------------------------------------------

#: Logits, some of which have probabilities beyond 1e-7 and 1 - 1e-7. 16 fraction bits do not
#: distinguish these from 0 and 1.
WIDE = torch.tensor([-20.0, -15.0, -12.0, -9.0, -5.0, -1.0, 0.0, 5.0, 12.0, 15.0, 18.0])
TRUE = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0])


def _cross_entropy(p: Any, t: Any) -> Any:
    return -(t * torch.log(p) + (1 - t) * torch.log(1 - p))


def _focal(p: Any, t: Any) -> Any:
    return -(0.25 * (1 - p) ** 2 * t * torch.log(p) + 0.75 * p**2 * (1 - t) * torch.log(1 - p))


def _of_two(x: Any) -> Any:
    return torch.softmax(torch.stack([x, -x]), 0)


BOUNDED: dict[str, Any] = {
    "a logarithm": lambda x, _t: -torch.sigmoid(x).clamp(1e-7, 1 - 1e-7).log(),
    "one bound": lambda x, _t: -torch.sigmoid(x).clamp(min=1e-7).log(),
    "a complement": lambda x, _t: -torch.log(1 - torch.sigmoid(x)),
    "cross-entropy by hand": lambda x, t: _cross_entropy(torch.sigmoid(x).clamp(1e-7, 1 - 1e-7), t),
    "cross-entropy without bounds": lambda x, t: _cross_entropy(torch.sigmoid(x), t),
    "focal loss": lambda x, t: _focal(torch.sigmoid(x).clamp(1e-7, 1 - 1e-7), t),
    "BCELoss": lambda x, t: torch.nn.functional.binary_cross_entropy(
        torch.sigmoid(x).clamp(1e-7, 1 - 1e-7), t, reduction="none"
    ),
    "softmax": lambda x, _t: -_of_two(x).clamp(1e-7, 1 - 1e-7).log().sum(0),
    "focal loss of a softmax": lambda x, t: _focal(_of_two(x).clamp(min=1e-7)[0], t * 0 + 1),
    "compared": lambda x, _t: (torch.sigmoid(x) > 1e-6) * (torch.sigmoid(x) < 1 - 1e-5) * x,
}


def _bounded(name: str, x: torch.Tensor, t: torch.Tensor) -> list[torch.Tensor]:
    losses = BOUNDED[name](x.requires_grad_(), t)
    losses.sum().backward()
    assert x.grad is not None
    return [losses.detach(), x.grad]


def _bounded_in_secret(names: list[str]) -> list[list[torch.Tensor]]:
    found = []
    for name in names:
        x, t = tacit.share(WIDE, owner=0), tacit.share(TRUE, owner=1)
        found.append([each.reveal() for each in _bounded(name, x, t)])
    return found


@pytest.mark.parametrize("setting", [{"protocol": "plain", "parties": 2}, {}])
def test_bounds_below_the_resolution(setting: dict[str, Any]) -> None:
    """Results match PyTorch's in float64, for logits of ±12 too, and are clamped beyond ±16.1."""
    for name, found in zip(
        BOUNDED, tacit.launch(_bounded_in_secret, list(BOUNDED), **setting)[0], strict=True
    ):
        plain = _bounded(name, WIDE.double(), TRUE.double())
        for mine, expected in zip(found, plain, strict=True):
            assert torch.allclose(mine.double(), expected, atol=1e-3), name


def test_a_quotient_that_somebody_asks_for_is_computed() -> None:
    def program() -> torch.Tensor:
        x = tacit.share(WIDE[5:8], owner=0).requires_grad_()
        p = torch.sigmoid(x)
        bounded = p.clamp(1e-3, 0.999)
        p.retain_grad()
        bounded.retain_grad()
        (torch.log(bounded) + bounded * 2).sum().backward()
        return torch.stack([bounded.grad, p.grad, x.grad]).reveal()

    x = WIDE[5:8].clone().requires_grad_()
    p = torch.sigmoid(x)
    bounded = p.clamp(1e-3, 0.999)
    p.retain_grad()
    bounded.retain_grad()
    (torch.log(bounded) + bounded * 2).sum().backward()
    expected = torch.stack([each.grad for each in (bounded, p, x) if each.grad is not None])
    found = tacit.launch(program, protocol="plain", parties=2)[0]
    assert torch.allclose(found, expected, atol=1e-2, rtol=1e-2)
