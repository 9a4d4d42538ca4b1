"""Requires: weights as they will be, calibration data. Ensures: numbers have the fewest fraction bits with
which the program is as good on the calibration data as the plain model is, worked out in the very integers
that parties compute with; if none is, those with which it is best. Saves: bits of truncations and
comparisons.

Classes are as good if as many are right. Other numbers are if the squared error, by their squared norm, is
1e-6 at most (a thousandth of their size), or if two bits more do not halve it, since it is then that of the
series of functions. Every output counts, each by its own norm."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from tacit.compile.draft import Draft
from tacit.compile.execute import revealed, share_weights
from tacit.compile.passes.digits import most_bits
from tacit.compile.program import Program
from tacit.compile.weights import of_draft
from tacit.errors import EncodingError, MisuseError, PrecisionWarning, RangeWarning
from tacit.fixed import MOST_FRACTION_BITS, Scale
from tacit.launch import launch
from tacit.providers import REFERENCE
from tacit.session import session

#: Fraction bits that are tried, the fewest first.
SCALES = (10, 12, 14, 16, 18, 20, 22)

#: A scale at which an output differs from the plain one by more is none: normalised squared error.
TOLERANCE = 1e-3

#: The same of numbers that are no classes, where it can be had.
OF_NUMBERS = 1e-6

#: Why a scale is none where nothing leaves its range.
TOO_FAR = f"results have a normalised squared error above {TOLERANCE:g}"


class Data(NamedTuple):
    """What scales are tried on."""

    inputs: Sequence[dict[str, torch.Tensor]]
    """Batches, by placeholder."""
    plain: Sequence[torch.Tensor]
    """What the model gives of them all, output by output."""
    labels: torch.Tensor | None
    """The classes that are right of the first output, if they are known; else what the plain model says."""

    def judge(self, results: Sequence[torch.Tensor]) -> "Merit | None":
        """How good results are; nothing if one of them is too far off."""
        lost, error = 0.0, 0.0
        for at, (found, plain) in enumerate(zip(results, self.plain, strict=True)):
            own = normalised_error(found, plain)
            if not plain.is_floating_point():
                lost = max(lost, float((found != plain).double().mean()) if plain.numel() else 0.0)
            elif own > TOLERANCE or not math.isfinite(own):
                return None
            elif are_classes(plain):
                right = plain.argmax(1) if at or self.labels is None else self.labels
                wrong = (result.argmax(1) != right for result in (found, plain))
                now, before = (float(each.double().mean()) for each in wrong)
                lost = max(lost, now - before)
            else:
                error = max(error, own)
        return Merit(lost, error)


class Merit(NamedTuple):
    """The less, the better."""

    lost: float
    """The share of classes that the plain model has right and the program has not."""
    error: float
    """Of what are no classes: normalised squared error."""

    @property
    def is_enough(self) -> bool:
        """Whether more bits gain nothing."""
        return self.lost <= 0.0 and self.error <= OF_NUMBERS


def are_classes(result: torch.Tensor) -> bool:
    """Whether rows of numbers stand for classes, the greatest one for what the row is."""
    return result.is_floating_point() and result.dim() == 2 and result.shape[1] > 1


def assign_scales(draft: Draft, data: Data, choose: Callable[[Draft], None] = lambda _: None) -> None:
    """Carries the pass out.

    Args:
        choose: is shown each draft before it is tried, to choose its approximations.

    Raises:
        MisuseError: at no scale the numbers of the calibration data are in range and near the plain ones.
    """
    chosen: Draft | None = None
    best = Merit(math.inf, math.inf)
    reasons: dict[int, str] = {}
    for bits in SCALES:
        tried = at_scale(draft, bits)
        results = _results(tried, data, choose)
        merit = None if isinstance(results, str) else data.judge(results)
        if merit is None:
            reasons[bits] = results if isinstance(results, str) else TOO_FAR
            continue
        if merit.lost == best.lost <= 0.0 and merit.error > best.error / 2:
            break
        if merit < best:
            chosen, best = tried, merit
        if merit.is_enough:
            break
    if chosen is None:
        raise MisuseError(
            f"at no scale from {SCALES[0]} to {SCALES[-1]} fraction bits is the model right on its "
            f"calibration data; with {SCALES[0]}: {reasons[SCALES[0]]}; with {SCALES[-1]}: "
            f"{reasons[SCALES[-1]]}; scale down the data or the weights of what leaves its range, scale up "
            "what is too small, or give a smaller error budget"
        )
    draft.scale, draft.weight_scales = chosen.scale, chosen.weight_scales


def at_scale(draft: Draft, bits: int) -> Draft:
    """The same draft at another scale; weights that have more fraction bits keep as many more, but for what
    the range of their layer's results does not leave."""
    made = draft.copy()
    more = bits - draft.scale.bits
    made.scale = Scale(bits)
    made.weight_scales = {
        name: max(1, min(own + more, MOST_FRACTION_BITS)) for name, own in draft.weight_scales.items()
    }
    for name, reach in draft.reaches.items():
        made.weight_scales[name] = max(bits, min(made.weight_scales[name], most_bits(bits, reach)))
    return made


def _results(draft: Draft, data: Data, choose: Callable[[Draft], None]) -> list[torch.Tensor] | str:
    """What it gives under the reference, in the integers of the parties; if numbers leave their range, where
    first, and which."""
    try:
        choose(draft)
        program = Program.of(draft)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)
            # It is tried whether it matters.
            warnings.simplefilter("ignore", PrecisionWarning)
            told = launch(_reference, program, of_draft(draft), data.inputs, parties=2, protocol=REFERENCE)
    except EncodingError as error:
        return str(error)
    results, overflows = told[0]
    return next((f"{where} has {what}" for where, what in overflows.items()), results)


def _reference(
    program: Program, weights: dict[str, torch.Tensor], batches: Sequence[dict[str, torch.Tensor]]
) -> tuple[list[torch.Tensor], dict[str, str]]:
    bound = share_weights(program, weights, 0)
    results: list[list[torch.Tensor]] = []
    for batch in batches:
        given = [bound.given(values, owner=1, name=name) for name, values in batch.items()]
        returned = bound(*given)
        several = returned if isinstance(returned, tuple) else (returned,)
        shown = [(each.shape, revealed(each)) for each in several]
        results.append([value.reshape(shape or (1,)) for shape, value in shown if value is not None])
    return [torch.cat(each) for each in zip(*results, strict=True)], session().reported


def normalised_error(results: torch.Tensor, plain: torch.Tensor) -> float:
    """The squared norm of the difference, by that of what it should be."""
    difference = float((results.double() - plain.double()).square().sum())
    norm = float(plain.double().square().sum())
    return difference / norm if norm else difference
