"""Recognises functions that file formats write as several operators.

Requires: a normalised draft without common subexpressions. Ensures: such operators are the one
function that secret tensors have: an inverse square root, SiLU, GELU by erf, RMS normalisation, and
layer normalisation as Keras writes it. Saves: the rounds and bits of a root, a product or a
quotient. Small variances also keep their digits, which means of squares do not."""

import math
from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple

import torch
from torch import fx

from tacit.compilation.graph import Draft, Node, calls, takes

aten = torch.ops.aten

PRODUCT, QUOTIENT, SUM = aten.mul.Tensor, aten.div.Tensor, aten.add.Tensor
MEAN, ERF = aten.mean.dim, aten.erf.default

#: How far numbers of a formula may be from their exact values, since they were rounded to float32.
ROUNDING = 1e-6


def whole_functions(draft: Draft) -> None:
    """Replaces functions that are written as several operators, in place."""
    for node in calls(draft.graph, aten.reciprocal.default):
        if takes(node.args[0], aten.sqrt.default):
            _becomes(draft, node, aten.rsqrt.default, node.args[0].args[0])
    draft.drop_dead()
    for node in calls(draft.graph, aten.rsqrt.default):
        _layer_norm(draft, node)
    for node in (*calls(draft.graph, PRODUCT), *calls(draft.graph, QUOTIENT)):
        _rms_norm(draft, node)
    for node in calls(draft.graph, PRODUCT):
        _silu(draft, node)
    for node in calls(draft.graph, PRODUCT):
        _gelu(draft, node)
    draft.drop_dead()


def _becomes(draft: Draft, node: Node, target: Any, *args: Any) -> None:
    with draft.graph.inserting_before(node):
        made = draft.graph.call_function(target, args)
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    draft.graph.erase_node(node)


def _orders(node: Any) -> Iterator[tuple[Any, ...]]:
    """Yields both orders of the operands of a product or a sum."""
    if isinstance(node, fx.Node) and len(node.args) == 2 and not node.kwargs:
        yield from permutations(node.args)


# Activations
# ----------------------------------------------------------------------------


def _silu(draft: Draft, node: Node) -> None:
    """Recognises x · sigmoid(x)."""
    for gate, x in _orders(node):
        if takes(gate, aten.sigmoid.default) and gate.args[0] is x:
            return _becomes(draft, node, aten.silu.default, x)
    return None


def _gelu(draft: Draft, node: Node) -> None:
    """Recognises x/2 · (1 + erf(x/√2)), with the factor 1/2 anywhere and the sign in either of two
    places."""
    for gate, other in _orders(node):
        found = _one_and_erf(gate)
        if found is None:
            continue
        x, half = _multiple(other)
        argument, slope = _multiple(found.of)
        if argument is not x or not _is(found.sign * slope, math.sqrt(0.5)):
            continue
        if _is(half, 0.5):
            return _becomes(draft, node, aten.gelu.default, x)
        user = next(iter(node.users))
        outer, factor = _multiple(user, 1)
        if takes(node, PRODUCT) and outer is node and _is(half * factor, 0.5):
            return _becomes(draft, user, aten.gelu.default, x)
    return None


class _Gate(NamedTuple):
    """The expression 1 + sign · erf(of)."""

    of: Any
    sign: float


def _one_and_erf(node: Any) -> _Gate | None:
    if takes(node, SUM) and len(node.args) == 2 and not node.kwargs and takes(node.args[0], ERF):
        return _Gate(node.args[0].args[0], 1.0) if node.args[1] == 1 else None
    if (
        takes(node, aten.rsub.Scalar)
        and len(node.args) == 2
        and not node.kwargs
        and takes(node.args[0], ERF)
    ):
        return _Gate(node.args[0].args[0], -1.0) if node.args[1] == 1 else None
    return None


def _multiple(node: Any, most: int = 3) -> tuple[Any, float]:
    """Returns the node of which a node is a public multiple, and the factor."""
    factor = 1.0
    for _ in range(most):
        if not isinstance(node, fx.Node) or node.kwargs:
            break
        if node.target is aten.neg.default:
            factor = -factor
        elif node.target in (PRODUCT, aten.div.Tensor) and isinstance(node.args[1], int | float):
            number = float(node.args[1])
            factor = factor * number if node.target is PRODUCT else factor / (number or math.nan)
        else:
            break
        node = node.args[0]
    return node, factor


def _is(number: float, wanted: float) -> bool:
    return abs(number - wanted) <= ROUNDING


# Normalisation
# ----------------------------------------------------------------------------


def _rms_norm(draft: Draft, node: Node) -> None:
    """Recognises x · (mean of x² + ε)^(−1/2), or x divided by the root."""
    is_product = node.target is PRODUCT
    orders = _orders(node) if is_product else [tuple(node.args)] if len(node.args) == 2 else []
    for x, root in () if node.kwargs else orders:
        if not takes(root, aten.rsqrt.default if is_product else aten.sqrt.default):
            continue
        sums = root.args[0]
        if (
            not takes(sums, SUM)
            or len(sums.args) != 2
            or sums.kwargs
            or not isinstance(sums.args[1], float)
        ):
            continue
        average, epsilon = sums.args
        count = _last(average) if takes(average, MEAN) else None
        if count is None or epsilon < 0 or not _is_square(average.args[0], x):
            continue
        if node.meta["value"] == x.meta["value"]:
            shape = list(x.meta["value"].shape[-count:])
            return _becomes(draft, node, aten.rms_norm.default, x, shape, None, epsilon)
    return None


def _is_square(node: Any, x: Any) -> bool:
    if not isinstance(node, fx.Node) or not isinstance(x, fx.Node) or node.kwargs:
        return False
    if node.args[0] is not x:
        return False
    by_power = node.target is aten.pow.Tensor_Scalar and node.args[1:] == (2,)
    return by_power or node.target is aten.square.default or _is_call(node, PRODUCT, x, x)


class _Rows(NamedTuple):
    """Rows that a layer normalisation normalises."""

    x: Node
    mean: Node
    #: Number of last dimensions that make a row.
    dimensions: int
    epsilon: float


def _layer_norm(draft: Draft, inverse: Node) -> None:
    """Recognises x·s + (shift − mean·s), where s is a factor times the inverse root of variance
    plus epsilon."""
    rows = _rows(inverse.args[0])
    scaled = next(iter(inverse.users))
    if rows is None or not takes(inverse, inverse.target) or len(scaled.users) != 2:
        return None
    for data, means in permutations(scaled.users):
        moved, result = next(iter(means.users)), next(iter(data.users))
        if (
            _is_call(data, PRODUCT, rows.x, scaled)
            and any(
                _is_call(means, PRODUCT, each, scaled)
                for each in rows.mean.users
                if _is_negative(each)
            )
            and _is_call(result, SUM, data, moved)
            and all(takes(each, each.target) for each in (data, means, moved))
        ):
            shape = list(rows.x.meta["value"].shape[-rows.dimensions :])
            factor = _of_rows(draft, scaled, PRODUCT, inverse, shape)
            shift = _of_rows(draft, moved, SUM, means, shape)
            if factor is None or shift is None or result.meta["value"] != rows.x.meta["value"]:
                continue
            weights = (
                draft.add_weight(f"{result.name}_factor", factor),
                draft.add_weight(f"{result.name}_shift", shift),
            )
            return _becomes(
                draft, result, aten.layer_norm.default, rows.x, shape, *weights, rows.epsilon
            )
    return None


def _rows(node: Any) -> _Rows | None:
    """Returns the rows of which a node is the variance plus a number."""
    if (
        not takes(node, SUM)
        or len(node.args) != 2
        or node.kwargs
        or not isinstance(node.args[1], float)
    ):
        return None
    average, epsilon = node.args
    squares: Any = average.args[0] if takes(average, MEAN) else None
    deviations: Any = squares.args[0] if takes(squares, PRODUCT) else None
    if not takes(deviations, aten.sub.Tensor) or not _is_call(
        squares, PRODUCT, deviations, deviations
    ):
        return None
    x, mean = deviations.args[:2]
    count = _last(average)
    if not _is_call(deviations, aten.sub.Tensor, x, mean) or not isinstance(mean, fx.Node):
        return None
    if mean.target is not MEAN or mean.args[0] is not x or count is None or _last(mean) != count:
        return None
    return _Rows(x, mean, count, epsilon)


def _last(mean: Node) -> int | None:
    """Returns how many last dimensions a mean is taken over, if it is over these alone and keeps
    them."""
    if len(mean.args) != 3 or not mean.args[2] or mean.kwargs:
        return None
    rank, dims = len(mean.args[0].meta["value"].shape), mean.args[1]
    return len(dims) if {dim % rank for dim in dims} == set(range(rank - len(dims), rank)) else None


def _is_call(node: Any, target: Any, *operands: Any) -> bool:
    """Returns whether a node calls an operator on these two operands, in either order if the order
    does not matter."""
    if (
        node.op != "call_function"
        or node.target is not target
        or len(node.args) != 2
        or node.kwargs
    ):
        return False
    given = tuple(node.args)
    return given == operands or (target in (PRODUCT, SUM) and given[::-1] == operands)


def _is_negative(node: Node) -> bool:
    return node.target is aten.neg.default


def _of_rows(
    draft: Draft, node: Node, target: Any, known: Node, shape: list[int]
) -> torch.Tensor | None:
    """Returns the weight that is combined with the known operand, if it has one number for each
    element of a row."""
    for weight in node.args:
        value = draft.weight(weight)
        if value is not None and _is_call(node, target, known, weight):
            rows = [1] * (value.dim() - len(shape)) + shape
            return value.reshape(shape) if list(value.shape) == rows else None
    return None
