"""Interval analysis: proves an interval for each value, operator by operator.

The proofs start from what the owners of inputs promise and from the weights as they are encoded.
Calibration plays no part, except through guards, after which intervals begin anew. A value of which
nothing is proved has no interval. This file has the rules of operators that move, add, compare and
approximate; ``layer_intervals.py`` has those of layers."""

import math
from operator import getitem
from typing import Any

import torch

from tacit.compilation import layer_intervals  # noqa: F401
from tacit.compilation.graph import Draft, Interval, Node
from tacit.compilation.prover import Prover, hull, rule

__all__ = ["MOVES", "REARRANGING", "SATURATED", "Prover", "bounds", "intervals"]

aten = torch.ops.aten

#: Operators whose one result has elements of their one operand, at positions that do not depend on
#: it.
REARRANGING = (
    aten.alias.default,
    aten.expand.default,
    aten.flatten.using_ints,
    aten.narrow.default,
    aten.permute.default,
    aten.pixel_shuffle.default,
    aten.reshape.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.t.default,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.view.default,
)

#: Operators whose results are elements of their first argument, at any positions.
MOVES = (
    *REARRANGING,
    getitem,
    aten.chunk.default,
    aten.gather.default,
    aten.index_select.default,
    aten.max_pool1d.default,
    aten.max_pool2d.default,
    aten.max_pool3d.default,
    aten.adaptive_max_pool2d.default,
    aten.adaptive_max_pool3d.default,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.amax.default,
    aten.amin.default,
)


def intervals(draft: Draft) -> dict[Node, Interval]:
    """Returns the intervals of all nodes for which one is proved."""
    prover = Prover(draft)
    for node in draft.graph.nodes:
        prover.enter(node)
    return prover.known


@rule(*MOVES)
def _moved(prover: Prover, node: Node) -> Interval | None:
    return prover.of(node.args[0])


@rule(aten.relu.default, torch.ops.tacit.rectified_affine.default)
def _rectified(prover: Prover, node: Node) -> Interval | None:
    x = prover.against_zero(node)
    return x and (max(x[0], 0.0), max(x[1], 0.0))


@rule(torch.ops.tacit.one_sided.default)
def _one_sided(prover: Prover, node: Node) -> Interval | None:
    x = prover.against_zero(node)
    return x and (min(x[0], 0.0), max(x[1], 0.0))


@rule(aten.abs.default)
def _magnitude(prover: Prover, node: Node) -> Interval | None:
    x = prover.against_zero(node)
    return x and (max(x[0], -x[1], 0.0), max(-x[0], x[1]))


@rule(aten.leaky_relu.default)
def _leaky_relu(prover: Prover, node: Node) -> Interval | None:
    x, slope = prover.against_zero(node), float(node.args[1]) if len(node.args) > 1 else 0.01
    if x is None or slope < 0:
        return None
    return prover.rounded(*(end if end > 0 else slope * end for end in x))


@rule(torch.ops.tacit.rectified_max_pool2d.default)
def _rectified_pool(prover: Prover, node: Node) -> Interval | None:
    x, most = prover.of(node.args[0]), prover.guarded.get(node)
    if most is not None:
        # A maximum comes through this many comparisons, one after another, starting from zero. The
        # guard bounds each difference, so the maximum is at most their sum.
        kernel = [*node.args[1], *node.args[1]][:2]
        most *= sum(math.ceil(math.log2(places + 1)) for places in kernel)
        x = (-most, most) if x is None else (x[0], min(x[1], most))
    return x and (max(x[0], 0.0), max(x[1], 0.0))


@rule(aten.hardtanh.default, aten.relu6.default, aten.clamp.default, aten.clamp_min.default)
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
    """Returns the public bounds between which an operator clamps."""
    if node.target is aten.relu6.default:
        return 0.0, 6.0
    default = (-1.0, 1.0) if node.target is aten.hardtanh.default else (None, None)
    names = ("min_val", "max_val") if node.target is aten.hardtanh.default else ("min", "max")
    given: list[Any] = [*node.args[1:3], *default[len(node.args) - 1 :]][:2]
    given = [node.kwargs.get(name, value) for name, value in zip(names, given, strict=True)]
    low, high = (float(each) if isinstance(each, int | float) else None for each in given)
    return low, high


@rule(aten.sigmoid.default, aten.softmax.int, aten._softmax.default, aten.hardsigmoid.default)
def _between_zero_and_one(_: Prover, __: Node) -> Interval | None:
    return -SATURATED, 1.0 + SATURATED


@rule(aten.tanh.default, aten.erf.default)
def _between_ones(_: Prover, __: Node) -> Interval | None:
    return -1.0 - SATURATED, 1.0 + SATURATED


#: How far approximations may leave their range: the greatest error budget that a program may have,
#: which is far more than the declared errors of the usual series.
SATURATED = 2.0**-6


@rule(aten.gelu.default, aten.silu.default)
def _gated(prover: Prover, node: Node) -> Interval | None:
    """x times a number from 0 to 1, but no less than the function's minimum."""
    x = prover.of(node.args[0])
    return x and (_LEAST_GATED - SATURATED, max(x[1], 0.0) * (1.0 + SATURATED) + SATURATED)


#: Lower bound of SiLU and of GELU.
_LEAST_GATED = -0.279


@rule(aten.softplus.default)
def _soft(prover: Prover, node: Node) -> Interval | None:
    """At most ln 2 above ReLU."""
    x = prover.of(node.args[0])
    if x is None or len(node.args) > 1 or node.kwargs:
        return None
    return -SATURATED, max(x[1], 0.0) * (1.0 + SATURATED) + math.log(2.0) + SATURATED


@rule(aten.cat.default)
def _joined(prover: Prover, node: Node) -> Interval | None:
    return hull(*map(prover.of, node.args[0]))


@rule(aten.neg.default)
def _negated(prover: Prover, node: Node) -> Interval | None:
    x = prover.of(node.args[0])
    return x and (-x[1], -x[0])


@rule(aten.add.Tensor, aten.sub.Tensor)
def _summed(prover: Prover, node: Node) -> Interval | None:
    x, y = map(prover.of, node.args[:2])
    if x is None or y is None or node.kwargs.get("alpha", 1) != 1:
        return None
    if node.target is aten.sub.Tensor:
        y = -y[1], -y[0]
    return prover.rounded(x[0] + y[0], x[1] + y[1])


@rule(aten.mul.Tensor)
def _multiplied(prover: Prover, node: Node) -> Interval | None:
    x, y = map(prover.of, node.args[:2])
    if x is None or y is None:
        return None
    corners = [a * b for a in x for b in y]
    return prover.rounded(min(corners), max(corners))


@rule(aten.div.Tensor)
def _divided(prover: Prover, node: Node) -> Interval | None:
    x, divisor = prover.of(node.args[0]), node.args[1]
    if x is None or not isinstance(divisor, int | float) or not divisor:
        return None
    ends = sorted(end / divisor for end in x)
    return prover.rounded(ends[0], ends[1])


@rule(aten.sum.dim_IntList)
def _added_up(prover: Prover, node: Node) -> Interval | None:
    x = prover.of(node.args[0])
    if x is None:
        return None
    source, result = (each.meta["value"].shape for each in (node.args[0], node))
    count = math.prod(source) / max(1, math.prod(result))
    return prover.rounded(count * x[0], count * x[1])


@rule(
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
    # Padding counts as zeros. With an explicit divisor the average may be anything.
    if x is None or len(node.args) > 6:
        return None
    return prover.rounded(min(x[0], 0.0), max(x[1], 0.0))
