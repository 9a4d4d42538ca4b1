"""Between which numbers each value lies, proved operator by operator from what the owners of inputs promise
and from the weights as they are encoded: no calibration enters, but by guards, behind which intervals begin
anew. What is not proved has no interval."""

import math
from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any

import torch
from torch import fx

from tacit import fixed
from tacit.compile.draft import Draft, Interval, Node
from tacit.compile.normalisations import OF_THREE, WHOLE, factors
from tacit.fixed import Scale
from tacit.operators.normalization import FACTOR_SCALE

aten = torch.ops.aten

#: Of a node from those of its arguments.
Rule = Callable[["Prover", Node], Interval | None]

RULES: dict[Any, Rule] = {}

#: They give elements of their first argument, wherever these lie.
MOVES = (
    getitem,
    aten.alias.default,
    aten.chunk.default,
    aten.expand.default,
    aten.flatten.using_ints,
    aten.gather.default,
    aten.index_select.default,
    aten.max_pool1d.default,
    aten.max_pool2d.default,
    aten.max_pool3d.default,
    aten.adaptive_max_pool2d.default,
    aten.adaptive_max_pool3d.default,
    aten.narrow.default,
    aten.permute.default,
    aten.pixel_shuffle.default,
    aten.reshape.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.view.default,
    aten.amax.default,
    aten.amin.default,
)


def intervals(draft: Draft) -> dict[Node, Interval]:
    """Of all nodes of which one is proved."""
    prover = Prover(draft)
    for node in draft.graph.nodes:
        prover.enter(node)
    return prover.known


class Prover:
    """Goes through a graph once."""

    def __init__(self, draft: Draft, like: "Prover | None" = None) -> None:
        """Of a draft; another one of the same weights has worked out of them what there is to know."""
        self.draft = draft
        self._signed: dict[Node, tuple[torch.Tensor, torch.Tensor] | None] = (
            {} if like is None else like._signed
        )
        self.known: dict[Node, Interval] = {}
        #: Of nodes whose comparisons are guarded the magnitude that what is compared has at most, or else the
        #: guard fails.
        self.guarded: dict[Node, float] = {}
        #: What an operator's rounding may add: its last digit, and one of a bias that is added to it.
        self.unit = 4 * 2.0**-draft.scale.bits

    def enter(self, node: Node) -> None:
        """Works out the interval of a node, of which those before it are entered."""
        found = self._prove(node)
        if found is not None and all(map(math.isfinite, found)):
            self.known[node] = found

    def _prove(self, node: Node) -> Interval | None:
        """The interval of a node, if there is a rule and its arguments have theirs."""
        if node.op == "placeholder":
            return self._given(node)
        if node.op != "call_function" or node.target not in RULES:
            return None
        return RULES[node.target](self, node)

    def of(self, argument: Any) -> Interval | None:
        """Of an argument: a node, or a number."""
        if isinstance(argument, fx.Node):
            return self.known.get(argument)
        return (float(argument), float(argument)) if isinstance(argument, int | float) else None

    def encoded(self, node: Any) -> torch.Tensor | None:
        """A weight as the parties will have it; the numbers of a constant."""
        value = self.draft.weight(node)
        if value is None:
            return self.draft.constants[node.name].to(torch.float64) if self.draft.is_constant(node) else None
        scale = Scale(self.draft.weight_scales.get(node.name, self.draft.scale.bits))
        return fixed.decode(fixed.encode(value, scale), scale, torch.float64)

    def signed(self, node: Node) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Of each row of a weight the sum of what is positive in it, and of what is negative."""
        if node not in self._signed:
            weight = self.encoded(node)
            rows = None if weight is None else weight.flatten(1)
            self._signed[node] = (
                None if rows is None else (rows.clamp_min(0).sum(1), rows.clamp_max(0).sum(1))
            )
        return self._signed[node]

    def rounded(self, low: float, high: float) -> Interval:
        """With room for the rounding of the result, and of the float64 in which it is worked out."""
        margin = self.unit + 1e-9 * max(abs(low), abs(high))
        return low - margin, high + margin

    def compared(self, node: Node) -> Interval | None:
        """Between which numbers that lies which a node compares with itself, with zero or with bounds."""
        if node.target is torch.ops.tacit.rectified_affine.default:
            return _mapped(self, node)
        return hull(*map(self.of, node.all_input_nodes))

    def against_zero(self, node: Node) -> Interval | None:
        """The same of a node that compares with zero alone, as its guard leaves it."""
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
    """The least interval with all of these in it."""
    if not parts or any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    return min(low for low, _ in known), max(high for _, high in known)


def _rule(*targets: Any) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(targets, rule))
        return rule

    return enter


@_rule(*MOVES)
def _moved(prover: Prover, node: Node) -> Interval | None:
    return prover.of(node.args[0])


@_rule(aten.relu.default, torch.ops.tacit.rectified_affine.default)
def _rectified(prover: Prover, node: Node) -> Interval | None:
    x = prover.against_zero(node)
    return x and (max(x[0], 0.0), max(x[1], 0.0))


@_rule(aten.abs.default)
def _magnitude(prover: Prover, node: Node) -> Interval | None:
    x = prover.against_zero(node)
    return x and (max(x[0], -x[1], 0.0), max(-x[0], x[1]))


@_rule(aten.leaky_relu.default)
def _bent(prover: Prover, node: Node) -> Interval | None:
    x, slope = prover.against_zero(node), float(node.args[1]) if len(node.args) > 1 else 0.01
    if x is None or slope < 0:
        return None
    return prover.rounded(*(end if end > 0 else slope * end for end in x))


@_rule(torch.ops.tacit.rectified_max_pool2d.default)
def _rectified_pool(prover: Prover, node: Node) -> Interval | None:
    x, most = prover.of(node.args[0]), prover.guarded.get(node)
    if most is not None:
        # Each comparison of those that a winner comes through, one after another from zero on.
        kernel = [*node.args[1], *node.args[1]][:2]
        most *= sum(math.ceil(math.log2(places + 1)) for places in kernel)
        x = (-most, most) if x is None else (x[0], min(x[1], most))
    return x and (max(x[0], 0.0), max(x[1], 0.0))


@_rule(aten.hardtanh.default, aten.relu6.default, aten.clamp.default, aten.clamp_min.default)
def _clamped(prover: Prover, node: Node) -> Interval | None:
    x = prover.of(node.args[0])
    low, high = bounds(node)
    if x is None:
        return None if low is None or high is None else prover.rounded(low, high)
    if low is not None:
        x = max(x[0], low), max(x[1], low)
    if high is not None:
        x = min(x[0], high), min(x[1], high)
    return prover.rounded(*x)


def bounds(node: Node) -> tuple[float | None, float | None]:
    """Between which public numbers an operator clamps."""
    if node.target is aten.relu6.default:
        return 0.0, 6.0
    default = (-1.0, 1.0) if node.target is aten.hardtanh.default else (None, None)
    names = ("min_val", "max_val") if node.target is aten.hardtanh.default else ("min", "max")
    given: list[Any] = [*node.args[1:3], *default[len(node.args) - 1 :]][:2]
    given = [node.kwargs.get(name, value) for name, value in zip(names, given, strict=True)]
    low, high = (float(each) if isinstance(each, int | float) else None for each in given)
    return low, high


@_rule(aten.sigmoid.default, aten.softmax.int, aten._softmax.default, aten.hardsigmoid.default)
def _between_zero_and_one(_: Prover, __: Node) -> Interval | None:
    return -SATURATED, 1.0 + SATURATED


@_rule(aten.tanh.default, aten.erf.default)
def _between_ones(_: Prover, __: Node) -> Interval | None:
    return -1.0 - SATURATED, 1.0 + SATURATED


#: What approximations may leave their range by: the greatest error budget that a program may have, and far
#: more than the errors that are declared of the usual ones.
SATURATED = 2.0**-6


@_rule(aten.gelu.default, aten.silu.default)
def _gated(prover: Prover, node: Node) -> Interval | None:
    """x times a number from 0 to 1, and from its least on."""
    x = prover.of(node.args[0])
    return x and (_LEAST_GATED - SATURATED, max(x[1], 0.0) * (1.0 + SATURATED) + SATURATED)


#: SiLU is nowhere less, and GELU is not.
_LEAST_GATED = -0.279


@_rule(aten.softplus.default)
def _soft(prover: Prover, node: Node) -> Interval | None:
    """At most ln 2 above what is rectified."""
    x = prover.of(node.args[0])
    if x is None or len(node.args) > 1 or node.kwargs:
        return None
    return -SATURATED, max(x[1], 0.0) * (1.0 + SATURATED) + math.log(2.0) + SATURATED


@_rule(aten.cat.default)
def _joined(prover: Prover, node: Node) -> Interval | None:
    return hull(*map(prover.of, node.args[0]))


@_rule(aten.neg.default)
def _negated(prover: Prover, node: Node) -> Interval | None:
    x = prover.of(node.args[0])
    return x and (-x[1], -x[0])


@_rule(aten.add.Tensor, aten.sub.Tensor)
def _summed(prover: Prover, node: Node) -> Interval | None:
    x, y = map(prover.of, node.args[:2])
    if x is None or y is None or node.kwargs.get("alpha", 1) != 1:
        return None
    if node.target is aten.sub.Tensor:
        y = -y[1], -y[0]
    return prover.rounded(x[0] + y[0], x[1] + y[1])


@_rule(aten.mul.Tensor)
def _multiplied(prover: Prover, node: Node) -> Interval | None:
    x, y = map(prover.of, node.args[:2])
    if x is None or y is None:
        return None
    corners = [a * b for a in x for b in y]
    return prover.rounded(min(corners), max(corners))


@_rule(aten.div.Tensor)
def _divided(prover: Prover, node: Node) -> Interval | None:
    x, divisor = prover.of(node.args[0]), node.args[1]
    if x is None or not isinstance(divisor, int | float) or not divisor:
        return None
    ends = sorted(end / divisor for end in x)
    return prover.rounded(ends[0], ends[1])


@_rule(aten.sum.dim_IntList)
def _added_up(prover: Prover, node: Node) -> Interval | None:
    x = prover.of(node.args[0])
    if x is None:
        return None
    source, result = (each.meta["value"].shape for each in (node.args[0], node))
    count = math.prod(source) / max(1, math.prod(result))
    return prover.rounded(count * x[0], count * x[1])


@_rule(
    aten.avg_pool1d.default,
    aten.avg_pool2d.default,
    aten.avg_pool3d.default,
    aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool3d.default,
    aten._adaptive_avg_pool3d.default,
    aten.adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool2d.default,
    aten.mean.dim,
)
def _averaged(prover: Prover, node: Node) -> Interval | None:
    x = prover.of(node.args[0])
    # Padding counts as zeros; with a divisor of one's own it may be anything.
    if x is None or len(node.args) > 6:
        return None
    return prover.rounded(min(x[0], 0.0), max(x[1], 0.0))


@_rule(aten.conv1d.default, aten.conv2d.default, aten.conv3d.default, aten.linear.default)
def _weighted(prover: Prover, node: Node) -> Interval | None:
    """Σ w·x for each channel, with x at whichever end makes it greatest, and zeros in the padding."""
    bias = node.args[2] if len(node.args) > 2 else None
    ends = _of_channels(prover, [node.args[0]], [node.args[1]], bias)
    return ends and prover.rounded(float(ends[0].min()), float(ends[1].max()))


@_rule(WHOLE, OF_THREE)
def _normalised(prover: Prover, node: Node) -> Interval | None:
    """A factor and an offset for each channel."""
    x, folded = prover.of(node.args[0]), factors(prover.draft, node)
    if x is None or folded is None:
        return None
    ends = torch.stack([folded[0] * end + folded[1] for end in x])
    rounding = 2.0**-FACTOR_SCALE.bits * max(map(abs, x))
    return prover.rounded(float(ends.min()) - rounding, float(ends.max()) + rounding)


@_rule(torch.ops.tacit.affine.default)
def _mapped(prover: Prover, node: Node) -> Interval | None:
    """The same of several layers, and of what is added to them."""
    x, weight, bias, addends, _ = node.args
    ends = _of_channels(prover, x, weight, bias)
    more = [prover.of(each) for each in addends]
    if ends is None or None in more:
        return None
    low = float(ends[0].min()) + sum(each[0] for each in more if each is not None)
    high = float(ends[1].max()) + sum(each[1] for each in more if each is not None)
    return prover.rounded(low, high)


def _of_channels(
    prover: Prover, x: Sequence[Node], weight: Sequence[Node], bias: Node | None
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Least and greatest of each channel."""
    offset = torch.zeros((), dtype=torch.float64) if bias is None else prover.encoded(bias)
    if offset is None:
        return None
    low = high = offset
    for each, factor in zip(map(prover.of, x), weight, strict=True):
        signed = prover.signed(factor)
        if each is None or signed is None:
            return None
        # Padding is zeros.
        is_linear = len(factor.meta["value"].shape) == 2
        ends = each if is_linear else (min(each[0], 0.0), max(each[1], 0.0))
        positive, negative = signed
        low = low + positive * ends[0] + negative * ends[1]
        high = high + positive * ends[1] + negative * ends[0]
    return low, high
