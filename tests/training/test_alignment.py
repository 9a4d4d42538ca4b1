"""The CTC loss handles different lengths, repeated labels and secret targets, and has gradients."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}

LOGITS = torch.randn(6, 3, 5, generator=torch.Generator().manual_seed(7))

#: A target with a repeated label, one with a single label, and an empty one.
TARGETS = torch.tensor([[1, 1, 3], [4, 0, 0], [0, 0, 0]])
STEPS, LABELS = torch.tensor([6, 4, 5]), torch.tensor([3, 1, 0])


def losses(logits: torch.Tensor, targets: torch.Tensor, **how: Any) -> list[torch.Tensor]:
    leaf = logits.clone().requires_grad_()
    found = functional.ctc_loss(leaf.log_softmax(2), targets, STEPS, LABELS, **how)
    found.sum().backward()
    return [found.detach(), leaf.grad]


@pytest.mark.parametrize("setting", SETTINGS)
def test_losses_and_gradients_are_as_of_plain_ones(setting: str) -> None:
    def program() -> Any:
        targets = tacit.share(TARGETS, owner=1)
        found = [
            losses(tacit.share(LOGITS, owner=0), targets, reduction="none"),
            losses(tacit.share(LOGITS, owner=0), TARGETS),
        ]
        return [[one.reveal() for one in pair] for pair in found]

    plain = losses(LOGITS, TARGETS, reduction="none"), losses(LOGITS, TARGETS)
    for found, wanted in zip(tacit.launch(program, **SETTINGS[setting])[0], plain, strict=True):
        for mine, theirs in zip(found, wanted, strict=True):
            assert (mine - theirs).abs().max() <= 6 * 2.0**-12


def test_targets_in_a_row_another_blank_and_no_batch() -> None:
    row, sizes = torch.tensor([0, 2, 2]), [2, 1, 0]

    def forms(x: Any, secret: Any) -> list[torch.Tensor]:
        x = x.log_softmax(2)
        return [
            functional.ctc_loss(x, secret(row), [6, 4, 5], sizes, blank=4, reduction="sum"),
            functional.ctc_loss(
                x[:, 0], secret(row[:2]), torch.tensor(5), torch.tensor(2), blank=4
            ),
        ]

    def program() -> Any:
        found = forms(tacit.share(LOGITS, owner=0), lambda x: tacit.share(x, owner=1))
        return [one.reveal() for one in found]

    for mine, plain in zip(tacit.launch(program)[0], forms(LOGITS, lambda x: x), strict=True):
        assert mine.shape == plain.shape
        assert abs(mine - plain) <= 15 * 2.0**-12


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_fits_no_input(setting: str) -> None:
    """Targets that fit no input are refused, unless ``zero_infinity`` gives them a loss of 0.

    Secret targets are also refused if they may fail to fit.
    """
    steps, labels = [6, 1, 2], [3, 1, 2]
    twice = torch.tensor([[1, 1, 3], [4, 0, 0], [2, 2, 0]])

    def loss(x: torch.Tensor, targets: torch.Tensor, **how: Any) -> torch.Tensor:
        return functional.ctc_loss(
            x.log_softmax(2), targets, steps, labels, reduction="none", **how
        )

    def program() -> Any:
        x = tacit.share(LOGITS, owner=0)
        with pytest.raises(tacit.UnsupportedOperatorError, match="zero_infinity=True"):
            loss(x, twice)
        for fitting in (twice, torch.tensor([[1, 1, 3], [4, 0, 0], [2, 3, 0]])):
            # Two labels fit two steps only if they differ, which is secret.
            with pytest.raises(
                tacit.UnsupportedOperatorError, match="for n labels an input of 2n - 1 steps"
            ):
                loss(x, tacit.share(fitting, owner=0))
        with pytest.raises(tacit.UnsupportedOperatorError, match="ctc_loss by secret lengths"):
            functional.ctc_loss(x, twice, tacit.share(STEPS, owner=0), LABELS)
        found = (
            loss(x, twice, zero_infinity=True),
            loss(x, tacit.share(twice, owner=0), zero_infinity=True),
        )
        return [one.reveal() for one in found]

    plain = loss(LOGITS, twice, zero_infinity=True)
    assert plain[2] == 0
    for mine in tacit.launch(program, **SETTINGS[setting])[0]:
        assert mine[2] == 0
        assert (mine - plain).abs().max() <= 6 * 2.0**-12


def test_no_gradient_comes_from_what_fits_no_input() -> None:
    twice = torch.tensor([[1, 1, 3], [2, 2, 0]])

    def gradient(x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = x[:, 1:].clone().requires_grad_()
        functional.ctc_loss(
            x.log_softmax(2), targets, [6, 2], [3, 2], zero_infinity=True
        ).backward()
        assert x.grad is not None
        return x.grad

    def program() -> torch.Tensor:
        return gradient(tacit.share(LOGITS, owner=0), tacit.share(twice, owner=1)).reveal()

    mine, plain = tacit.launch(program)[0], gradient(LOGITS, twice)
    assert not mine[:, 1].any()
    assert (mine - plain).abs().max() <= 6 * 2.0**-12


@pytest.mark.parametrize("how", [{}, {"zero_infinity": True}])
def test_a_trial_and_a_comparison_name_losses_too_large(how: dict[str, bool]) -> None:
    """Losses may be too large even though the target fits the input."""

    class Loss(nn.Module):
        def forward(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return functional.ctc_loss(x, targets, [6], [3], reduction="none", **how)

    x, targets = torch.full((6, 1, 5), -1500.0), torch.tensor([[1, 2, 3]])
    report = str(tacit.compare(Loss(), (x, targets)))
    assert "a loss of 8" in report
    assert (
        "where it is 0 from 8192 on" in report
        if how
        else "where it is wrong from 8192 on" in report
    )


def test_what_fits_no_input_and_is_0_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    def program() -> None:
        x, targets = (
            tacit.share(LOGITS, owner=0),
            tacit.share(torch.tensor([[1], [2], [2]]), owner=0),
        )
        functional.ctc_loss(x, targets.expand(3, 4), [6, 6, 6], [4, 4, 4], zero_infinity=True)

    tacit.launch(program, protocol="plain", parties=2)
    assert not [warning for warning in recwarn if issubclass(warning.category, tacit.RangeWarning)]
