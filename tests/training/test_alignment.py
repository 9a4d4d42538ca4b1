"""The loss of alignments (CTC): lengths that differ, repeated labels, secret targets, gradients."""

from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}

LOGITS = torch.randn(6, 3, 5, generator=torch.Generator().manual_seed(7))

#: With a label twice, one label, and none.
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
            functional.ctc_loss(x[:, 0], secret(row[:2]), torch.tensor(5), torch.tensor(2), blank=4),
        ]

    def program() -> Any:
        found = forms(tacit.share(LOGITS, owner=0), lambda x: tacit.share(x, owner=1))
        return [one.reveal() for one in found]

    for mine, plain in zip(tacit.launch(program)[0], forms(LOGITS, lambda x: x), strict=True):
        assert mine.shape == plain.shape
        assert abs(mine - plain) <= 15 * 2.0**-12


def test_what_fits_no_input() -> None:
    """Refused where that is known; 0 where it is wanted, of secret targets too."""
    steps, labels = [6, 1, 2], [3, 1, 2]
    twice = torch.tensor([[1, 1, 3], [4, 0, 0], [2, 2, 0]])

    def loss(x: torch.Tensor, targets: torch.Tensor, **how: Any) -> torch.Tensor:
        return functional.ctc_loss(x.log_softmax(2), targets, steps, labels, reduction="none", **how)

    def program() -> Any:
        x = tacit.share(LOGITS, owner=0)
        with pytest.raises(tacit.UnsupportedOperatorError, match="zero_infinity=True"):
            loss(x, twice)
        with pytest.raises(tacit.UnsupportedOperatorError, match="ctc_loss by secret lengths"):
            functional.ctc_loss(x, twice, tacit.share(STEPS, owner=0), LABELS)
        found = loss(x, twice, zero_infinity=True), loss(x, tacit.share(twice, owner=0), zero_infinity=True)
        return [one.reveal() for one in found]

    plain = loss(LOGITS, twice, zero_infinity=True)
    assert plain[2] == 0
    for mine in tacit.launch(program, protocol="plain", parties=2)[0]:
        assert mine[2] == 0
        assert (mine - plain).abs().max() <= 6 * 2.0**-12
