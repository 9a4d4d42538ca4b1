"""Prover of intervals: goes through a graph and computes the interval of each value by the rules of
its operator (``intervals.py``, ``layer_intervals.py``)."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from tacit import fixed
from tacit.compilation.comparing import compared_by
from tacit.compilation.graph import Draft, Interval, Node
from tacit.errors import EncodingError
from tacit.fixed import Scale

#: Computes the interval of a node from those of its arguments.
Rule = Callable[["Prover", Node], Interval | None]

RULES: dict[Any, Rule] = {}


class Prover:
    """Computes the intervals of a graph's nodes, in one pass over the graph."""

    def __init__(self, draft: Draft, like: "Prover | None" = None) -> None:
        """Starts without intervals.

        ``like`` is a prover of a draft with the same weights, whose sums of weights are reused."""
        self.draft = draft
        self._signed: dict[Node, tuple[torch.Tensor, torch.Tensor] | None] = (
            {} if like is None else like._signed
        )
        self.known: dict[Node, Interval] = {}
        #: Greatest magnitude of what each guarded node compares; for greater numbers its guard
        #: fails.
        self.guarded: dict[Node, float] = {}
        #: What an operator's rounding may add: its last digit, and that of a bias that is added to
        #: it.
        self.unit = 4 * 2.0**-draft.scale.bits

    def enter(self, node: Node) -> None:
        """Computes the interval of a node; the nodes before it must have been entered."""
        found = self._prove(node)
        if found is not None and all(map(math.isfinite, found)):
            self.known[node] = found

    def _prove(self, node: Node) -> Interval | None:
        """Returns the interval of a node, if there is a rule and its arguments have intervals."""
        if node.op == "placeholder":
            return self._given(node)
        if node.op != "call_function" or node.target not in RULES:
            return None
        return RULES[node.target](self, node)

    def of(self, argument: Any) -> Interval | None:
        """Returns the interval of an argument: a node, or a number."""
        if isinstance(argument, fx.Node):
            return self.known.get(argument)
        return (float(argument), float(argument)) if isinstance(argument, int | float) else None

    def encoded(self, node: Any) -> torch.Tensor | None:
        """Returns a weight as the parties will have it, or the numbers of a constant.

        Raises:
            EncodingError: the weight's scale leaves it no range; the error names its layer.
        """
        value = self.draft.weight(node)
        if value is None:
            return (
                self.draft.constants[node.name].to(torch.float64)
                if self.draft.is_constant(node)
                else None
            )
        scale = Scale(self.draft.weight_scales.get(node.name, self.draft.scale.bits))
        try:
            return fixed.decode(fixed.encode(value, scale), scale, torch.float64)
        except EncodingError as error:
            layers = sorted({user.meta.get("layer") or user.name for user in node.users})
            raise EncodingError(
                f"{node.name}, a weight of layer {' and '.join(layers)}: {error}"
            ) from None

    def signed(self, node: Node) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Returns for each row of a weight the sum of its positive elements and that of its
        negative ones."""
        if node not in self._signed:
            weight = self.encoded(node)
            rows = None if weight is None else weight.flatten(1)
            self._signed[node] = (
                None if rows is None else (rows.clamp_min(0).sum(1), rows.clamp_max(0).sum(1))
            )
        return self._signed[node]

    def rounded(self, low: float, high: float) -> Interval:
        """Widens an interval by the rounding of the result, and of the float64 in which it is
        computed."""
        margin = self.unit + 1e-9 * max(abs(low), abs(high))
        return low - margin, high + margin

    def compared(self, node: Node) -> Interval | None:
        """Returns the interval of the numbers that a node compares with each other, with zero or
        with bounds."""
        if node.target is torch.ops.tacit.rectified_affine.default:
            return RULES[torch.ops.tacit.affine.default](self, node)
        return hull(*map(self.of, compared_by(node)))

    def against_zero(self, node: Node) -> Interval | None:
        """Returns the interval of what a node compares with zero alone, as its guard restricts
        it."""
        x, most = self.compared(node), self.guarded.get(node)
        if most is None:
            return x
        return (-most, most) if x is None else (max(x[0], -most), min(x[1], most))

    def _given(self, node: Node) -> Interval | None:
        if node.name in self.draft.examples:
            promised = self.draft.intervals.get(node.name)
            return promised and self.rounded(*promised)
        values = self.encoded(node)
        if values is None or not values.numel():
            return None
        return float(values.min()), float(values.max())


def hull(*parts: Interval | None) -> Interval | None:
    """Returns the least interval that contains all of these."""
    if not parts or any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    return min(low for low, _ in known), max(high for _, high in known)


def rule(*targets: Any) -> Callable[[Rule], Rule]:
    """Registers a function as the rule of operators."""

    def enter(entered: Rule) -> Rule:
        RULES.update(dict.fromkeys(targets, entered))
        return entered

    return enter
