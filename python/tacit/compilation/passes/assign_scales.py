"""Chooses the fraction bits of numbers and of weights on the calibration data.

Requires: final weights, calibration data. Ensures: numbers, and the weights that layers multiply
them by, have the fewest fraction bits with which the program is as good on the calibration data as
the plain model. The program is computed in the very integers that the parties compute with. If no
scale is good enough, the best one is chosen. Saves: bits of truncations and comparisons. If more
than the default fraction bits are chosen, a program may send more than its model, but only for
results that are better by them.

Numbers and weights are swept one after the other. Numbers come first, from the fewest bits on, with
weights of as many bits. If that is not enough, weights get more bits at the best of these scales,
as long as the results improve by half. If no such scale holds the model, weights of more or fewer
bits are tried at each scale of numbers. Last, weights get fewer bits, as long as the results are as
good: still enough if they were enough, no more classes wrong, and at most twice the squared error.

Classes are good enough if as many are right as in the plain model. Other numbers are if their
squared error, divided by their squared norm, is at most 1e-6 (a thousandth of their size), or if
two more bits do not halve it, since the error is then that of the functions' series. Probabilities
of classes are both: who asks for them, and not for the numbers that softmax takes, reads them.
Every output counts, each by its own norm."""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch.utils import _pytree as pytree

from tacit.compilation.calibration import Batches, observed
from tacit.compilation.comparing import BETWEEN_TENSORS
from tacit.compilation.digits import DISTANCE, Reach, most_bits
from tacit.compilation.execute import revealed, share_weights
from tacit.compilation.graph import Draft, Node, calls
from tacit.compilation.passes.fold_normalisation import CONVOLUTIONS, TRANSPOSED
from tacit.compilation.program import Program
from tacit.compilation.weights import of_draft
from tacit.errors import EncodingError, MisuseError, PrecisionWarning, RangeWarning
from tacit.fixed import DEFAULT, MOST_FRACTION_BITS, Scale
from tacit.parties.launch import launch
from tacit.providers import REFERENCE
from tacit.sessions import session

#: Fraction bits that are tried, the fewest first.
SCALES = (10, 12, 14, 16, 18, 20, 22)

#: Differences between the bits of weights and those of numbers that are tried if equal bits do not
#: suffice.
FARTHER = (4, 8)

#: Step by which the bits of weights decrease, and the least number that is left.
STEP, LEAST = 2, 6

#: Operators that multiply by weights: by their second argument, or by a list of weights there.
MULTIPLYING = (
    *CONVOLUTIONS,
    *TRANSPOSED,
    torch.ops.aten.linear.default,
    torch.ops.tacit.affine.default,
    torch.ops.tacit.rectified_affine.default,
)

#: Greatest normalised squared error of an output at a usable scale.
TOLERANCE = 1e-3

#: Normalised squared error that is small enough for numbers that are no classes, and for
#: probabilities, if it can be reached.
OF_NUMBERS = 1e-6

#: How far sums of the plain model's probabilities are from 1 at most.
OF_SUMS = 1e-4

#: Why a scale is unusable if nothing leaves its range.
TOO_FAR = f"results have a normalised squared error above {TOLERANCE:g}"


class Data(NamedTuple):
    """Data on which scales are tried."""

    #: Batches of inputs, by placeholder.
    inputs: Sequence[dict[str, torch.Tensor]]
    #: What the plain model gives of all batches, output by output.
    plain: Sequence[torch.Tensor]
    #: Correct classes of the first output, if they are known; otherwise the plain model's classes
    #: count.
    labels: torch.Tensor | None

    def judge(self, results: Sequence[torch.Tensor]) -> "Merit | None":
        """Returns how good results are, or ``None`` if one of them is too far off."""
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
            if plain.is_floating_point() and (not are_classes(plain) or are_probabilities(plain)):
                error = max(error, own)
        return Merit(lost, error, most)


class Merit(NamedTuple):
    """Losses of a program on the calibration data; less is better."""

    #: Share of classes that are wrong in excess of the plain model's, or of integers that differ
    #: from the plain model's.
    lost: float
    #: Normalised squared error of results that are no classes, or their probabilities.
    error: float
    #: Normalised squared error of all numbers, including those that stand for classes.
    most: float = 0.0

    @property
    def is_enough(self) -> bool:
        """Whether more bits gain nothing."""
        return self.lost <= 0.0 and self.error <= OF_NUMBERS

    def is_better(self, other: "Merit") -> bool:
        """Returns whether these losses are worth more bits than the other's."""
        if self.lost == other.lost <= 0.0:
            return self.error <= other.error / 2 and self.error < other.error
        return (self.lost, self.error) < (other.lost, other.error)

    def is_as_good(self, other: "Merit") -> bool:
        """Returns whether these losses are good enough to use fewer bits than the other's."""
        return (
            (self.is_enough or not other.is_enough)
            and self.lost <= other.lost
            and self.error <= 2 * other.error
            and self.most <= 2 * other.most
        )


def are_classes(result: torch.Tensor) -> bool:
    """Returns whether rows of numbers stand for classes, with the greatest number at the class of
    the row."""
    return result.is_floating_point() and result.dim() == 2 and result.shape[1] > 1


def are_probabilities(result: torch.Tensor) -> bool:
    """Returns whether rows of numbers are probabilities of classes."""
    sums = result.double().sum(-1)
    return bool((result >= 0).all() and ((sums - 1).abs() <= OF_SUMS).all())


class Tried(NamedTuple):
    """A draft at scales that hold it, and its losses."""

    draft: Draft
    bits: int
    of_weights: int
    merit: Merit


def assign_scales(
    draft: Draft, data: Data, choose: Callable[[Draft], None] = lambda _: None
) -> None:
    """Chooses the scales of a draft's numbers and weights, in place.

    Args:
        choose: called with each draft before it is tried, to choose its approximations.

    Raises:
        MisuseError: at no scale are the numbers of the calibration data in range and close to those
            of the plain model.
    """
    sweep = _Sweep(draft, data, choose)
    found = sweep.equal_bits() or sweep.different_bits()
    if found is None:
        reasons = sweep.reasons
        raise MisuseError(
            f"at no scale from {SCALES[0]} to {SCALES[-1]} fraction bits is the model right on its "
            f"calibration data; with {SCALES[0]}: {reasons[SCALES[0]]}; with {SCALES[-1]}: "
            f"{reasons[SCALES[-1]]}; scale down the data or the weights of what leaves its range, "
            f"scale up "
            "what is too small, or give a smaller error budget"
        )
    chosen = sweep.with_fewer_weight_bits(
        found if found.merit.is_enough else sweep.with_more_weight_bits(found)
    ).draft
    draft.scale, draft.weight_scales = chosen.scale, chosen.weight_scales


class _Sweep:
    """Sweep over scales of numbers and of weights, each tried in the integers of the parties."""

    def __init__(self, draft: Draft, data: Data, choose: Callable[[Draft], None]) -> None:
        self._draft, self._data, self._choose = draft, data, choose
        #: Why numbers of each number of bits are unusable with weights of as many bits.
        self.reasons: dict[int, str] = {}

    def equal_bits(self) -> Tried | None:
        """Returns the fewest equal bits of numbers and weights that are enough; if none are, the
        best."""
        least = DEFAULT.bits if _decides(self._draft) else SCALES[0]
        enough = [bits for bits in SCALES if bits >= least]
        return self._fewest(enough) or self._fewest(
            [bits for bits in reversed(SCALES) if bits < least]
        )

    def _fewest(self, scales: Sequence[int]) -> Tried | None:
        best: Tried | None = None
        for bits in scales:
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

    def different_bits(self) -> Tried | None:
        """Returns the best scales with different bits of weights and numbers: fewer of weights if
        something leaves its range."""
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

    def with_more_weight_bits(self, best: Tried) -> Tried:
        """Gives weights more bits, as long as the results improve."""
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

    def with_fewer_weight_bits(self, best: Tried) -> Tried:
        """Gives weights fewer bits, as long as the results stay as good."""
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
                # Bits beyond those of numbers must not take the range that the layer's results
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
        """Weights that layers multiply by and nothing else uses, with a bound on their layers'
        results, as far as the calibration data can show it."""
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
            # Nothing can be proved of weights that the default scale does not hold.
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


def _decides(draft: Draft) -> bool:
    """Returns whether a model compares with numbers of its owner, as trees do.

    What such a comparison decides changes all at once, and calibration data hardly have numbers
    close to each threshold. So these models have no fewer bits than models without calibration."""
    owned: set[Node] = set()
    for node in draft.graph.nodes:
        sources, is_weight = node.all_input_nodes, node.name in draft.weights
        if (sources and owned.issuperset(sources)) or (node.op == "placeholder" and is_weight):
            owned.add(node)
    return any(
        len(node.all_input_nodes) == 2 and not owned.isdisjoint(node.all_input_nodes)
        for node in calls(draft.graph, *BETWEEN_TENSORS)
    )


def _multiplies(node: Node, weight: Node) -> bool:
    """Returns whether a node multiplies by a weight and uses it for nothing else."""
    if node.target not in MULTIPLYING:
        return False
    others = [each for at, each in enumerate(node.args) if at != 1]
    return weight in pytree.tree_leaves(node.args[1]) and weight not in pytree.tree_leaves(others)


def at_scale(draft: Draft, bits: int) -> Draft:
    """Returns a copy of a draft at another scale.

    Weights that have more fraction bits than the session keep the difference, as far as the range
    of their layers' results allows."""
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
    """Runs a draft under the reference, in the integers of the parties.

    Returns the results. If numbers leave their range, returns a text that says where they first do,
    and which they are."""
    try:
        choose(draft)
        program = Program.of(draft)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)
            # The trial itself shows whether the loss of precision matters.
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
    """Returns the squared norm of the difference, divided by that of the plain results if it is not
    zero."""
    difference = float((results.double() - plain.double()).square().sum())
    norm = float(plain.double().square().sum())
    return difference / norm if norm else difference
