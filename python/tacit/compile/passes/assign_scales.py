"""Requires: weights as they will be, calibration data. Ensures: numbers have the fewest fraction bits with
which the program is as good on the calibration data as the plain model is, worked out in the very integers
that parties compute with; if none is, those with which it is best. Saves: bits of truncations and
comparisons."""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from tacit.compile.draft import Draft
from tacit.compile.execute import revealed, share_weights
from tacit.compile.program import Program
from tacit.compile.weights import of_draft
from tacit.errors import EncodingError, MisuseError, PrecisionWarning, RangeWarning
from tacit.fixed import MOST_FRACTION_BITS, Scale
from tacit.launch import launch
from tacit.providers import REFERENCE
from tacit.session import session

#: Fraction bits that are tried, the fewest first.
SCALES = (10, 12, 14, 16, 18, 20, 22)

#: A scale at which results differ from the plain ones by more is none: normalised squared error.
TOLERANCE = 1e-3


class Data(NamedTuple):
    """What scales are tried on."""

    inputs: Sequence[dict[str, torch.Tensor]]
    """Batches, by placeholder."""
    plain: torch.Tensor
    """What the model gives of them all."""
    labels: torch.Tensor | None
    """The classes that are right, if they are known; else what the plain model says is."""

    def score(self, results: torch.Tensor) -> float:
        """The share of the right classes; of what are no classes, 1."""
        if results.dim() != 2:
            return 1.0
        right = self.plain.argmax(1) if self.labels is None else self.labels
        return float((results.argmax(1) == right).float().mean())


def assign_scales(draft: Draft, data: Data, choose: Callable[[Draft], None] = lambda _: None) -> None:
    """Carries the pass out.

    Args:
        choose: is shown each draft before it is tried, to choose its approximations.

    Raises:
        MisuseError: at no scale the numbers of the calibration data are in range and near the plain ones.
    """
    wanted, best = data.score(data.plain), -1.0
    chosen: Draft | None = None
    for bits in SCALES:
        tried = at_scale(draft, bits)
        results = _results(tried, data, choose)
        if results is None or _error(results, data.plain) > TOLERANCE:
            continue
        score = data.score(results)
        if score > best:
            chosen, best = tried, score
        if score >= wanted:
            break
    if chosen is None:
        raise MisuseError(
            f"at no scale from {SCALES[0]} to {SCALES[-1]} fraction bits is the model right on its "
            "calibration data: numbers leave their range, are too small, or an error budget is too large for "
            "it; tacit compare names the layers"
        )
    draft.scale, draft.weight_scales = chosen.scale, chosen.weight_scales


def at_scale(draft: Draft, bits: int) -> Draft:
    """The same draft at another scale; weights that have more fraction bits keep as many more."""
    made = draft.copy()
    more = bits - draft.scale.bits
    made.scale = Scale(bits)
    made.weight_scales = {
        name: max(1, min(own + more, MOST_FRACTION_BITS)) for name, own in draft.weight_scales.items()
    }
    return made


def _results(draft: Draft, data: Data, choose: Callable[[Draft], None]) -> torch.Tensor | None:
    """What it gives under the reference, in the integers of the parties; nothing if numbers leave their
    range."""
    try:
        choose(draft)
        program = Program.of(draft)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)
            # It is tried whether it matters.
            warnings.simplefilter("ignore", PrecisionWarning)
            told = launch(_reference, program, of_draft(draft), data.inputs, parties=2, protocol=REFERENCE)
    except EncodingError:
        return None
    results, overflows = told[0]
    return None if overflows else results


def _reference(
    program: Program, weights: dict[str, torch.Tensor], batches: Sequence[dict[str, torch.Tensor]]
) -> tuple[torch.Tensor, bool]:
    bound = share_weights(program, weights, 0)
    results: list[torch.Tensor] = []
    for batch in batches:
        given = [bound.given(values, owner=1, name=name) for name, values in batch.items()]
        result = bound(*given)
        first = result[0] if isinstance(result, tuple) else result
        shown = revealed(first)
        assert shown is not None
        results.append(shown.reshape(first.shape or (1,)))
    return torch.cat(results), bool(session().reported)


def _error(results: torch.Tensor, plain: torch.Tensor) -> float:
    difference, norm = (results - plain).double().square().sum(), plain.double().square().sum()
    return float(difference / norm) if float(norm) else float(difference)
