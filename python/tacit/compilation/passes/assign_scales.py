"""Requires: weights as they will be, calibration data. Ensures: numbers, and the weights that
layers multiply them by, have the fewest fraction bits with which the program is as good on the
calibration data as the plain model is, computed in the very integers that parties compute with; if
none is, those with which it is best.
Saves: bits of truncations and comparisons. Where more than the usual fraction bits are chosen, a
program may
send more than its model: only for results that are better by them.

One is swept after the other. Numbers first, from the fewest bits on, beside weights of as many. If
that is not enough, weights get more beside the best of these, as long as they better the results by
half; if nothing holds the model, more or fewer beside each scale of numbers. Last, weights get
fewer, as long as results are
as good: enough, if they were, no more classes wrong, and a squared error that is no more than twice
as large.

Classes are as good if as many are right. Other numbers are if the squared error, by their squared
norm, is 1e-6 at most (a thousandth of their size), or if two bits more do not halve it, since it is
then that of the series of functions. Every output counts, each by its own norm."""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch.utils import _pytree as pytree

from tacit.compilation.calibration import Batches, observed
from tacit.compilation.execute import revealed, share_weights
from tacit.compilation.graph import Draft, Node
from tacit.compilation.passes.digits import DISTANCE, Reach, most_bits
from tacit.compilation.passes.fold_normalisation import CONVOLUTIONS, TRANSPOSED
from tacit.compilation.program import Program
from tacit.compilation.weights import of_draft
from tacit.errors import EncodingError, MisuseError, PrecisionWarning, RangeWarning
from tacit.fixed import MOST_FRACTION_BITS, Scale
from tacit.parties.launch import launch
from tacit.providers import REFERENCE
from tacit.sessions import session

#: Fraction bits that are tried, the fewest first.
SCALES = (10, 12, 14, 16, 18, 20, 22)

#: How many bits more, or fewer, than numbers weights are tried with where those do not do.
FARTHER = (4, 8)

#: By how many bits at a time weights get fewer, and how many are left at least.
STEP, LEAST = 2, 6

#: What multiplies by weights: its second argument, or a list of them.
MULTIPLYING = (
    *CONVOLUTIONS,
    *TRANSPOSED,
    torch.ops.aten.linear.default,
    torch.ops.tacit.affine.default,
    torch.ops.tacit.rectified_affine.default,
)

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
    """The classes that are right of the first output, if they are known; else what the plain model
    says."""

    def judge(self, results: Sequence[torch.Tensor]) -> "Merit | None":
        """How good results are; nothing if one of them is too far off."""
        lost, error, most = 0.0, 0.0, 0.0
        for at, (found, plain) in enumerate(zip(results, self.plain, strict=True)):
            own = normalised_error(found, plain)
            if not plain.is_floating_point():
                lost = max(lost, float((found != plain).double().mean()) if plain.numel() else 0.0)
            elif own > TOLERANCE or not math.isfinite(own):
                return None
            else:
                most = max(most, own)
            if are_classes(plain):
                right = plain.argmax(1) if at or self.labels is None else self.labels
                wrong = (result.argmax(1) != right for result in (found, plain))
                now, before = (float(each.double().mean()) for each in wrong)
                lost = max(lost, now - before)
            elif plain.is_floating_point():
                error = max(error, own)
        return Merit(lost, error, most)


class Merit(NamedTuple):
    """The less, the better."""

    lost: float
    """The share of classes that the plain model has right and the program has not."""
    error: float
    """Of what are no classes: normalised squared error."""
    most: float = 0.0
    """Of all numbers, those that stand for classes too: normalised squared error."""

    @property
    def is_enough(self) -> bool:
        """Whether more bits gain nothing."""
        return self.lost <= 0.0 and self.error <= OF_NUMBERS

    def is_better(self, other: "Merit") -> bool:
        """Whether it is worth more bits than the other had."""
        if self.lost == other.lost <= 0.0:
            return self.error <= other.error / 2 and self.error < other.error
        return (self.lost, self.error) < (other.lost, other.error)

    def is_as_good(self, other: "Merit") -> bool:
        """Whether fewer bits than the other had do."""
        return (
            (self.is_enough or not other.is_enough)
            and self.lost <= other.lost
            and self.error <= 2 * other.error
            and self.most <= 2 * other.most
        )


def are_classes(result: torch.Tensor) -> bool:
    """Whether rows of numbers stand for classes, the greatest one for what the row is."""
    return result.is_floating_point() and result.dim() == 2 and result.shape[1] > 1


class Tried(NamedTuple):
    """A draft at scales that hold it."""

    draft: Draft
    bits: int
    of_weights: int
    merit: Merit


def assign_scales(
    draft: Draft, data: Data, choose: Callable[[Draft], None] = lambda _: None
) -> None:
    """Carries the pass out.

    Args:
        choose: is shown each draft before it is tried, to choose its approximations.

    Raises:
        MisuseError: at no scale the numbers of the calibration data are in range and near the plain
            ones.
    """
    sweep = _Sweep(draft, data, choose)
    found = sweep.alike() or sweep.apart()
    if found is None:
        reasons = sweep.reasons
        raise MisuseError(
            f"at no scale from {SCALES[0]} to {SCALES[-1]} fraction bits is the model right on its "
            f"calibration data; with {SCALES[0]}: {reasons[SCALES[0]]}; with {SCALES[-1]}: "
            f"{reasons[SCALES[-1]]}; scale down the data or the weights of what leaves its range, "
            f"scale up "
            "what is too small, or give a smaller error budget"
        )
    chosen = sweep.coarser(found if found.merit.is_enough else sweep.finer(found)).draft
    draft.scale, draft.weight_scales = chosen.scale, chosen.weight_scales


class _Sweep:
    """Scales of numbers and of weights, each tried in the integers of the parties."""

    def __init__(self, draft: Draft, data: Data, choose: Callable[[Draft], None]) -> None:
        self._draft, self._data, self._choose = draft, data, choose
        #: Why numbers of so many bits are none beside weights of as many.
        self.reasons: dict[int, str] = {}

    def alike(self) -> Tried | None:
        """Numbers and weights of as many bits, the fewest that are enough; if none is, the best."""
        best: Tried | None = None
        for bits in SCALES:
            tried = self._tried(bits, bits)
            if tried is None:
                continue
            if best is None or tried.merit.is_better(best.merit):
                best = tried
            elif tried.merit.lost == best.merit.lost <= 0.0:
                break
            if best.merit.is_enough:
                break
        return best

    def apart(self) -> Tried | None:
        """The best beside weights of other bits than numbers: of fewer where something leaves its
        range."""
        best: Tried | None = None
        for bits in SCALES:
            sign = 1 if self.reasons[bits] == TOO_FAR else -1
            for more in FARTHER:
                tried = self._tried(bits, bits + sign * more)
                if tried is not None and (best is None or tried.merit.is_better(best.merit)):
                    best = tried
                if best is not None and best.merit.is_enough:
                    return best
        return best

    def finer(self, best: Tried) -> Tried:
        """Weights of more bits, as long as these better the results."""
        for more in FARTHER:
            tried = (
                self._tried(best.bits, best.bits + more)
                if best.of_weights < best.bits + more
                else None
            )
            if tried is None or not tried.merit.is_better(best.merit):
                break
            best = tried
        return best

    def coarser(self, best: Tried) -> Tried:
        """Weights of fewer bits, as long as results are as good."""
        wanted = best.merit
        for of_weights in range(best.of_weights - STEP, LEAST - 1, -STEP):
            tried = self._tried(best.bits, of_weights)
            if tried is None or not tried.merit.is_as_good(wanted):
                break
            best = tried
        return best

    def _tried(self, bits: int, of_weights: int) -> Tried | None:
        made = at_scale(self._draft, bits)
        if of_weights != bits:
            if of_weights < LEAST or not self._multiplying:
                return None
            for name, reach in self._multiplying.items():
                own = made.weight_scales.get(name, bits) + of_weights - bits
                # More bits than numbers have are not to take the range that the layer's results
                # need.
                most = max(bits, made.weight_scales.get(name, bits), most_bits(bits, reach))
                made.weight_scales[name] = max(1, min(own, most, MOST_FRACTION_BITS))
        results = _results(made, self._data, self._choose)
        merit = None if isinstance(results, str) else self._data.judge(results)
        if merit is None:
            if of_weights == bits:
                self.reasons[bits] = results if isinstance(results, str) else TOO_FAR
            return None
        return Tried(made, bits, of_weights, merit)

    @cached_property
    def _multiplying(self) -> dict[str, float]:
        """Weights that layers multiply by, and nothing else uses; and what their layers give at
        most, as far as the calibration data can tell."""
        layers = {
            weight.name: list(weight.users)
            for weight in self._draft.graph.nodes
            if weight.name in self._draft.weights
            and weight.users
            and all(_multiplies(user, weight) for user in weight.users)
        }
        try:
            reach = Reach(self._draft)
        except EncodingError:
            # Nothing can be proved of weights that the usual scale does not hold.
            return {}
        compared = observed(
            self._draft, Batches([dict(each) for each in self._draft.calibration], None)
        )

        def of(layer: Node) -> float:
            ends = compared.get(layer.name)
            seen = max(map(abs, ends)) * 2.0**DISTANCE if ends else 0.0
            known = reach.of(layer)
            return math.inf if known is None else max(known, seen)

        return {name: max(map(of, users)) for name, users in layers.items()}


def _multiplies(node: Node, weight: Node) -> bool:
    """Whether a node takes that weight as what it multiplies by, and as nothing else."""
    if node.target not in MULTIPLYING:
        return False
    others = [each for at, each in enumerate(node.args) if at != 1]
    return weight in pytree.tree_leaves(node.args[1]) and weight not in pytree.tree_leaves(others)


def at_scale(draft: Draft, bits: int) -> Draft:
    """The same draft at another scale; weights that have more fraction bits keep as many more, but
    for what the range of their layer's results does not leave."""
    made = draft.copy()
    more = bits - draft.scale.bits
    made.scale = Scale(bits)
    made.weight_scales = {
        name: max(1, min(own + more, MOST_FRACTION_BITS))
        for name, own in draft.weight_scales.items()
    }
    for name, reach in draft.reaches.items():
        made.weight_scales[name] = max(bits, min(made.weight_scales[name], most_bits(bits, reach)))
    return made


def _results(draft: Draft, data: Data, choose: Callable[[Draft], None]) -> list[torch.Tensor] | str:
    """What it gives under the reference, in the integers of the parties; if numbers leave their
    range, where first, and which."""
    try:
        choose(draft)
        program = Program.of(draft)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)
            # It is tried whether it matters.
            warnings.simplefilter("ignore", PrecisionWarning)
            told = launch(
                _reference, program, of_draft(draft), data.inputs, parties=2, protocol=REFERENCE
            )
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
        results.append(
            [value.reshape(shape or (1,)) for shape, value in shown if value is not None]
        )
    return [torch.cat(each) for each in zip(*results, strict=True)], session().reported


def normalised_error(results: torch.Tensor, plain: torch.Tensor) -> float:
    """The squared norm of the difference, by that of what it should be."""
    difference = float((results.double() - plain.double()).square().sum())
    norm = float(plain.double().square().sum())
    return difference / norm if norm else difference
