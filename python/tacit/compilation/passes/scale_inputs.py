"""Scales the columns of inputs, at their owners.

Requires: calibration data; the graph as it was imported. Ensures: columns that are far from one in
magnitude, such as salaries, timestamps and rates, are multiplied by public powers of two before
they are shared, and the weights that meet them have these factors in them. So all columns have
about the same number of significant bits, and one scale fits them all. Saves: bits of comparisons,
and rounds off less.

An input is scaled if everything that takes it can have the factors in its weights: sums, products,
comparisons and layers that take one of their operands from the owner of the model. Otherwise the
input stays as it is. The factors are public, and tell the magnitude of each column to the nearest
power of two."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from tacit.compilation.comparing import BETWEEN_TENSORS, OF_NUMBERS
from tacit.compilation.graph import Draft, Node, outputs
from tacit.compilation.intervals import REARRANGING
from tacit.compilation.signature import MOST_EXPONENT

aten = torch.ops.aten

#: Magnitude of the columns that are scaled, as an exponent of two: 2^3 leaves about as many bits
#: above the point as a normalised feature needs.
WANTED = 3

#: Magnitudes between which a column stays as it is, as exponents of two. The least is below that of
#: one grey level of 255: pixels that are dark in calibration may be bright later.
LEAST, MOST = -10, 10

#: Magnitude up to which a column stays as it is if it is only compared. More bits than a comparison
#: takes are no loss, while a single large number, such as one that stands for a missing value,
#: would leave few bits for the others.
MOST_COMPARED = 20

#: Operators that only move elements of their operand, or repeat them.
MOVING = (*REARRANGING, aten.clone.default)


class _NotScaledError(Exception):
    """Something takes the input that cannot have its factors."""


def scale_inputs(draft: Draft, given: Sequence[Mapping[str, torch.Tensor]]) -> None:
    """Scales the inputs of a draft, in place, by what is given of each in calibration.

    ``draft.exponents`` has the exponents of two of each column of an input that is scaled."""
    for name in draft.examples:
        values = [batch[name] for batch in given]
        changed, exponents = _scaled(draft, name, values)
        if changed is None:
            continue
        draft.graph, draft.weights, draft.constants = (
            changed.graph,
            changed.weights,
            changed.constants,
        )
        draft.exponents[name] = exponents


def _scaled(
    draft: Draft, name: str, values: Sequence[torch.Tensor]
) -> tuple[Draft | None, list[int]]:
    """Returns a draft with an input scaled, and its exponents; no draft if it stays as it is."""
    for wanted, most in ((WANTED, MOST), (MOST_COMPARED, MOST_COMPARED)):
        exponents = _exponents(values, wanted, most)
        if not any(exponents):
            return None, []
        changed, changes = draft.copy(), _Changes()
        try:
            changes.follow(changed, name, exponents)
        except _NotScaledError:
            return None, []
        if changes.is_multiplied:
            break
    changed.drop_dead()
    return changed, exponents


def _exponents(values: Sequence[torch.Tensor], wanted: int, most: int) -> list[int]:
    if not values[0].is_floating_point() or values[0].dim() < 2 or not values[0].numel():
        return []
    largest = torch.stack([each.abs().flatten(0, -2).amax(0) for each in values]).amax(0)
    found = []
    for magnitude in largest.tolist():
        at = math.ceil(math.log2(magnitude)) if magnitude > 0 else 0
        goal = at if LEAST <= at <= most else WANTED if at < LEAST else wanted
        found.append(max(-MOST_EXPONENT, min(goal - at, MOST_EXPONENT)))
    return found


class _Changes:
    """Factors of the values of a graph, followed from an input to whatever takes them in."""

    def __init__(self) -> None:
        #: By how much a value is too large, element by element.
        self._factors: dict[Node, torch.Tensor] = {}
        #: Whether the input is multiplied by something, and not compared alone.
        self.is_multiplied = False

    def follow(self, draft: Draft, name: str, exponents: Sequence[int]) -> None:
        """Scales an input and changes all weights that meet it.

        Raises:
            _NotScaledError: a step cannot have the factors in its weights.
        """
        for node in list(draft.graph.nodes):
            if node.op == "placeholder" and node.name == name:
                ones = torch.ones(draft.examples[name].shape, dtype=torch.float64)
                self._factors[node] = torch.ldexp(ones, torch.tensor(exponents))
            elif any(source in self._factors for source in node.all_input_nodes):
                if node.op == "output":
                    break
                self._enter(draft, node)
        if any(node in self._factors for node in outputs(draft.graph)):
            raise _NotScaledError

    def _enter(self, draft: Draft, node: Node) -> None:
        self._change(draft, node)
        # Columns that stay as they are may go anywhere.
        if node in self._factors and bool((self._factors[node] == 1).all()):
            del self._factors[node]

    def _change(self, draft: Draft, node: Node) -> None:
        target, args = node.target, node.args
        first = args[0] if args and isinstance(args[0], fx.Node) else None
        factor = self._factors.get(first) if first is not None else None
        if target in MOVING and len(node.all_input_nodes) == 1:
            self._move(node)
        elif target is aten.index_select.default and factor is not None:
            self._factors[node] = factor.index_select(args[1], _constant(draft, args[2]))
        elif target is aten.cat.default:
            parts = [self._of(each) for each in args[0]]
            self._factors[node] = torch.cat(parts, *args[1:])
        elif target is aten.linear.default and factor is not None:
            if any(each in self._factors for each in args[2:]):
                raise _NotScaledError
            self.is_multiplied = True
            _replace(draft, node, 1, lambda weight: weight / _of_columns(factor))
        elif target in (aten.matmul.default, aten.mm.default) and factor is not None:
            self.is_multiplied = True
            _replace(draft, node, 1, lambda weight: weight / _of_rows(factor, weight))
        elif target in (aten.mul.Tensor, aten.div.Tensor) and factor is not None:
            self._multiply(draft, node, factor)
        elif target in (
            *BETWEEN_TENSORS,
            *OF_NUMBERS,
            aten.add.Tensor,
            aten.sub.Tensor,
            aten.where.self,
        ):
            self._meet(draft, node)
        else:
            raise _NotScaledError

    def _of(self, node: Node) -> torch.Tensor:
        """Returns the factors of a value; ones if it has none."""
        if node in self._factors:
            return self._factors[node]
        return torch.ones(node.meta["value"].shape, dtype=torch.float64)

    def _move(self, node: Node) -> None:
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), self._of)
        self._factors[node] = node.target(*args, **kwargs)

    def _multiply(self, draft: Draft, node: Node, factor: torch.Tensor) -> None:
        other, self.is_multiplied = node.args[1], True
        if not isinstance(other, fx.Node):
            self._factors[node] = factor
            return
        if other in self._factors:
            raise _NotScaledError
        least = _least(factor)
        if node.target is aten.mul.Tensor:
            _replace(draft, node, 1, lambda weight: weight / least)
        else:
            _replace(draft, node, 1, lambda weight: weight * least)

    def _meet(self, draft: Draft, node: Node) -> None:
        """Multiplies the other operand of a sum, a comparison or a selection likewise."""
        places = (1, 2) if node.target is aten.where.self else (0, 1)
        if (node.target is aten.where.self and node.args[0] in self._factors) or node.kwargs:
            raise _NotScaledError
        own = [at for at in places if node.args[at] in self._factors]
        if len(own) == 2:
            both = [self._factors[node.args[at]] for at in own]
            if both[0].shape != both[1].shape or not torch.equal(*both):
                raise _NotScaledError
        factor = self._factors[node.args[own[0]]]
        if len(own) == 1:
            least = _least(factor)
            _replace(draft, node, sum(places) - own[0], lambda weight: weight * least)
            node.target = OF_NUMBERS.get(node.target, node.target)
        if node.target not in BETWEEN_TENSORS:
            shape = node.meta["value"].shape
            self._factors[node] = factor.expand(shape)


def _least(factor: torch.Tensor) -> torch.Tensor:
    """Returns factors without the dimensions along which they do not change."""
    for dim in range(factor.dim()):
        first = factor.narrow(dim, 0, 1)
        if torch.equal(first.expand_as(factor), factor):
            factor = first
    return factor


def _of_rows(factor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Returns the factors of the rows of a matrix, or of the elements of a vector."""
    columns = _of_columns(factor)
    return columns.unsqueeze(-1) if weight.dim() > 1 else columns


def _of_columns(factor: torch.Tensor) -> torch.Tensor:
    """Returns the factors of the last dimension, which must be the same in all rows."""
    if factor.dim() < 2:
        raise _NotScaledError
    rows = factor.flatten(0, -2)
    if not torch.equal(rows[:1].expand_as(rows), rows):
        raise _NotScaledError
    return rows[0]


def _constant(draft: Draft, node: Any) -> torch.Tensor:
    if not draft.is_constant(node):
        raise _NotScaledError
    return draft.constants[node.name]


def _replace(draft: Draft, node: Node, at: int, change: Any) -> None:
    """Replaces an operand that the owner of the model has, or that is public."""
    operand = node.args[at]
    args = list(node.args)
    if isinstance(operand, int | float) and not isinstance(operand, bool):
        value = change(torch.tensor(float(operand), dtype=torch.float64))
        args[at] = draft.add_constant("scaled", value.to(torch.float32))
    elif (known := _known(draft, operand)) is not None:
        value, is_public = change(known[0].to(torch.float64)), known[1]
        hint = f"{operand.name}_scaled"
        add = draft.add_constant if is_public else draft.add_weight
        args[at] = add(hint, value.to(torch.float32) if is_public else value)
    else:
        raise _NotScaledError
    node.args = tuple(args)


def _known(draft: Draft, node: Any) -> tuple[torch.Tensor, bool] | None:
    """Returns a value that the owner of the model has, or moves, and whether it is public."""
    if draft.is_constant(node):
        return draft.constants[node.name], True
    if (weight := draft.weight(node)) is not None:
        return (weight, False) if weight.is_floating_point() else None
    if not isinstance(node, fx.Node) or node.target not in MOVING or len(node.all_input_nodes) != 1:
        return None
    source = _known(draft, node.all_input_nodes[0])
    if source is None:
        return None
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda _: source[0])
    return node.target(*args, **kwargs), source[1]
