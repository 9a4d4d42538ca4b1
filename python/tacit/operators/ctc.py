"""Connectionist temporal classification (Graves and others 2006).

It gives the likelihood of a text under the probabilities of each step, summed over all alignments.

PyTorch has one operator for it, which reads the targets. Here the recursion over steps is composed
of sums of exponentials, above autograd, so autograd also composes its gradient. An impossible event
has the logarithm ``NEVER`` instead of −∞: next to anything possible its exponential is exactly 0.
Which steps and labels exist follows from the lengths, which are public. Secret targets are one-hot
vectors, and nothing of them is opened.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from tacit import fixed
from tacit.operators.composed import composes
from tacit.operators.dispatch.table import unsupported
from tacit.sharings import ranges
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Logarithm of an impossible event. A text that is no likelier than this counts as impossible.
NEVER = -(2.0**14)

#: PyTorch's numbers for the reductions.
NONE, MEAN = 0, 1

Lengths = Sequence[int] | torch.Tensor


@composes(aten.ctc_loss.IntList)
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: int = MEAN,
    zero_infinity: bool = False,
) -> torch.Tensor:
    """Computes the CTC loss for public lengths.

    About 80 rounds for each step; the error is 2^−12 for each step. Losses are below 2^13. With
    ``zero_infinity`` the infinite loss of a target that fits no input is 0. Without it a secret
    target of n labels needs an input of 2n − 1 steps: then it fits, however many of its labels are
    equal.

    Raises:
        UnsupportedOperatorError: lengths are secret, an input has no steps, a loss is known to be
            infinite, or the loss of a secret target is not known to be finite.
    """
    steps, labels = _public(input_lengths), _public(target_lengths)
    # Raises PyTorch's own errors about shapes and lengths.
    plain = torch.zeros(log_probs.shape), torch.zeros(targets.shape, dtype=torch.int64)
    torch.ctc_loss(*plain, steps, labels, blank, NONE, True)
    if min(steps, default=1) == 0:
        unsupported("ctc_loss of an input without steps", "leave it out")
    is_batch = log_probs.dim() == 3
    log_probs = log_probs if is_batch else log_probs.unsqueeze(1)
    targets = _rows(targets, labels, is_batch)
    same = targets[:, 1:] == targets[:, :-1]
    losses = _losses(log_probs, targets, same, steps, labels, blank)
    impossible = _impossible(same, steps, labels)
    if impossible.any() and not zero_infinity:
        unsupported(
            "an infinite ctc_loss, of a target with more labels than its input has steps,",
            "give zero_infinity=True, which makes it 0, or a longer input",
        )
    is_secret = isinstance(same, SecretTensor)
    if (
        is_secret
        and not zero_infinity
        and any(2 * n - 1 > most for n, most in zip(labels, steps, strict=True))
    ):
        unsupported(
            "a ctc_loss that is infinite if a secret target has too many equal labels in succession",
            "give zero_infinity=True, which makes it 0, or for n labels an input of 2n - 1 steps",
        )
    _check(losses, impossible, is_zeroed=is_secret and zero_infinity)
    if zero_infinity:
        if is_secret:
            losses = torch.where(losses > -NEVER / 2, 0.0, losses)
        losses = torch.where(impossible, 0.0, losses)
    if reduction == NONE:
        return losses if is_batch else losses[0]
    if reduction == MEAN:
        return (losses / torch.tensor(labels, dtype=losses.dtype).clamp_min(1)).mean()
    return losses.sum()


composes(aten.ctc_loss.Tensor)(ctc_loss)


def _check(losses: Any, impossible: torch.Tensor, *, is_zeroed: bool) -> None:
    """Warns, under the reference, of losses nearly as large as those of impossible texts."""
    if isinstance(losses, SecretTensor) and losses._session.is_plain:
        words, scale = losses._parts[0].detach().abs(), losses._scale
        possible = ~impossible
        if is_zeroed:
            # All alignments of an impossible text together are about as likely as one such event.
            # So its loss is not checked.
            possible &= words < fixed.word(-NEVER * 7 / 8, scale.bits)
        consequence = "it is 0" if is_zeroed else "it is wrong"
        ranges.check_argument(
            losses._session, words[possible], scale, -NEVER / 2, "a loss", consequence
        )


def _public(lengths: Lengths) -> list[int]:
    if isinstance(lengths, SecretTensor):
        unsupported(
            "ctc_loss by secret lengths",
            "give public lengths, and a blank for steps without a label",
        )
    found: list[int] = (
        lengths.reshape(-1).tolist() if isinstance(lengths, torch.Tensor) else list(lengths)
    )
    return found


def _rows(targets: Any, labels: Sequence[int], is_batch: bool) -> Any:
    """Returns the targets as rows, all as long as the longest."""
    most = max(labels, default=0)
    if targets.dim() == 2:
        return targets[:, :most]
    if not is_batch:
        return targets[:most].unsqueeze(0)
    pieces = targets[: sum(labels)].split(labels)
    return torch.stack([functional.pad(piece, (0, most - len(piece))) for piece in pieces])


def _impossible(same: Any, steps: Sequence[int], labels: Sequence[int]) -> torch.Tensor:
    """Returns which targets are known not to fit their inputs.

    Two equal labels in succession need one more step between them.
    """
    needed = torch.tensor(labels)
    if not isinstance(same, SecretTensor):
        counted = torch.arange(same.shape[1]) < needed.unsqueeze(1) - 1
        needed = needed + (same & counted).sum(1)
    return needed > torch.tensor(steps)


def _interleaved(others: Any, labels: Any) -> Any:
    """Interleaves values at blanks with values at labels along the last dimension."""
    pairs = torch.stack([others.expand_as(labels), labels], -1).flatten(-2)
    return torch.cat([pairs, others], -1)


def _losses(
    x: Any, targets: Any, same: Any, steps: Sequence[int], labels: Sequence[int], blank: int
) -> torch.Tensor:
    count, batch, classes = x.shape
    if isinstance(targets, SecretTensor):
        ones = functional.one_hot(targets, classes).to(x.dtype)
        at_labels = (x.transpose(0, 1) @ ones.mT).transpose(0, 1)
    else:
        at_labels = x.gather(2, targets.expand(count, *targets.shape))
    emitted = _interleaved(x[:, :, blank : blank + 1], at_labels)
    never = torch.full((batch, 1), NEVER, dtype=x.dtype)
    # A step from a label to the next, without a blank between, is possible only if they differ.
    skipped = _interleaved(
        never, torch.cat([never, same.to(x.dtype) * NEVER], 1)[:, : targets.shape[1]]
    )
    begun = torch.full((emitted.shape[2],), NEVER, dtype=x.dtype)
    begun[:2] = 0.0
    reached = emitted[0] + begun
    all_reached = [reached]
    for at in range(1, max(steps)):
        one = torch.cat([never, reached], 1)[:, :-1]
        two = torch.cat([never, never, reached], 1)[:, :-2] + skipped
        reached = torch.logsumexp(torch.stack([reached, one, two]), 0) + emitted[at]
        all_reached.append(reached)
    ends = []
    for example, (last, size) in enumerate(zip(steps, labels, strict=True)):
        row = all_reached[last - 1][example]
        label = row[2 * size - 1] if size else never[0, 0]
        ends.append(torch.stack([row[2 * size], label]))
    return -torch.logsumexp(torch.stack(ends), 1)
