"""Ensembles of trees: all comparisons at once, then the leaves' weights by selection.

What each node compares with, and what each leaf counts for, is secret. The shape of the trees and
the columns that their nodes look at are public (``forest.py``)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.operators.classifiers import (
    either,
    greatest,
    labels_of,
    of_two,
    transformed,
)
from tacit.compilation.importers.onnx.operators.features import columns
from tacit.compilation.importers.onnx.operators.forest import (
    MEMBER,
    MODES,
    Branch,
    Forest,
    Leaf,
    Tree,
    reached,
)
from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import CLASSICAL, Node, Part, implements

#: Aggregates and transforms of TreeEnsemble, by their numbers.
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
EXTREMES = ("MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


class _Built:
    """Trees that are built from a file's lists, from the leaves up."""

    def __init__(self, count: int) -> None:
        self._left = count

    def tree(self, root: Any, look: Any) -> Tree:
        """Builds the tree of a root.

        ``look`` returns of a node either its leaf, or what makes a branch of its two children, and
        their nodes. A node that is met more often than a file has nodes is on a cycle."""
        waiting, made = [(root, False)], []
        while waiting:
            node, is_done = waiting.pop()
            found = look(node)
            if isinstance(found, Leaf):
                made.append(found)
                continue
            make, true, false = found
            if is_done:
                second, first = made.pop(), made.pop()
                made.append(make(first, second))
                continue
            self._left -= 1
            if self._left < 0:
                raise ValueError("its nodes are no trees: one is behind itself, or behind two")
            waiting += [(node, True), (false, False), (true, False)]
        return made[0]


def _ensemble(node: Node, kind: str, targets: int) -> Forest:
    """Reads the trees of TreeEnsembleClassifier and TreeEnsembleRegressor."""
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    lists = [node.integers(f"nodes_{name}") or [] for name in names]
    modes = node.words("nodes_modes") or []
    values = _numbers(node, "nodes_values")
    if len({len(modes), len(values), *map(len, lists)}) != 1 or not modes:
        raise ValueError("the lists of its nodes have different lengths")
    at = {key: place for place, key in enumerate(zip(*lists[:2], strict=True))}
    if len(at) != len(modes):
        raise ValueError("two of its nodes have one number")
    weights: dict[tuple[int, int], list[tuple[int, float]]] = {}
    ids = [node.integers(f"{kind}_{name}") or [] for name in ("treeids", "nodeids", "ids")]
    for tree, number, target, weight in zip(*ids, _numbers(node, f"{kind}_weights"), strict=True):
        weights.setdefault((tree, number), []).append((target, weight))

    def look(key: tuple[int, int]) -> Any:
        place = at[key]
        if modes[place] == "LEAF":
            return Leaf(tuple(weights.get(key, ())))
        if modes[place] not in MODES:
            raise NotImportedError(
                f"its comparison {modes[place][:40]} is not known", f"use {', '.join(MODES)}"
            )
        feature, threshold = lists[2][place], values[place]
        true, false = (key[0], lists[3][place]), (key[0], lists[4][place])
        return (lambda a, b: Branch(modes[place], feature, threshold, a, b)), true, false

    children = {
        (tree, child)
        for of in lists[3:]
        for tree, child, mode in zip(lists[0], of, modes, strict=True)
        if mode != "LEAF"
    }
    roots = [key for key in at if key not in children]
    if len(roots) != len(set(lists[0])):
        raise ValueError("each of its trees must have one root")
    built = _Built(len(modes))
    return Forest([built.tree(root, look) for root in roots], targets)


def _numbers(node: Node, name: str) -> list[float]:
    """Returns numbers, which a file has in a list or, in more precision, in a tensor."""
    tensor = node.tensor(f"{name}_as_tensor")
    return tensor.tolist() if tensor is not None else node.numbers(name) or []


def _classifier_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    labels, ids = labels_of(node), set(node.integers("class_ids") or [])
    if len(labels) < 2:
        raise NotImportedError("it has fewer than two classes", "use a TreeEnsembleRegressor")
    forest, base = _ensemble(node, "class", len(labels)), _numbers(node, "base_values")
    if len(ids) == 1 and len(labels) > 2:
        raise NotImportedError(
            f"its leaves count for one of {len(labels)} classes, which runtimes decide differently",
            "export it with leaves of all classes, or as a TreeEnsembleRegressor",
        )
    if len(ids) == 1:
        # Leaves count for one class, and the score of the other follows from it.
        (own,) = ids
        forest.of_target(own)
        base = base[own : own + 1] if len(base) == len(labels) else base
    elif len(base) == 1 and len(labels) == 2:
        # ONNX's runtime adds the only number to the first score.
        base = [*base, 0.0]
    forest.constant += _base_of(base, forest.targets)
    return forest.parts(columns(given[0]))


def _base_of(base: Sequence[float], targets: int) -> torch.Tensor:
    """Returns what is added to the sum of each target."""
    if len(base) not in (0, 1, targets):
        raise ValueError(f"{len(base)} base values for {targets} targets")
    return torch.tensor(base or [0.0], dtype=torch.float64).expand(targets)


@implements("TreeEnsembleClassifier", domain=CLASSICAL, parts=_classifier_parts)
def tree_ensemble_classifier(node: Node, x: torch.Tensor, *held: torch.Tensor) -> Any:
    """Returns the labels, and the scores of all classes."""
    scores, labels = _sums(x, held), labels_of(node)
    if scores.shape[1] > 1 or len(labels) > 2:
        return greatest(node, scores, labels), transformed(node, scores)
    if node.text("post_transform", "NONE") not in ("NONE", "PROBIT"):
        return either(scores[:, 0] > 0, labels), of_two(node, scores)
    if min(_numbers(node, "class_weights")) < 0:
        return either(scores[:, 0] > 0, labels), of_two(node, scores)
    # Weights of one sign are shares of one class, as in a random forest.
    both = transformed(node, torch.cat([1 - scores, scores], 1))
    return either(scores[:, 0] > 0.5, labels), both


def _sums(x: torch.Tensor, held: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns the sum of the weights of the leaves that each row reaches, for each target."""
    thresholds, *places, leaves, base = held
    if not thresholds.shape[0]:
        return base.expand(x.shape[0], -1)
    count = len(MODES) + 1
    columns, sets, steps = places[:count], places[count], places[count + 1 :]
    found = reached(x.to(torch.float32).t(), thresholds, columns, sets, steps)
    return functional.linear(found.t().to(torch.float32), leaves, base)


def _regressor_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    forest = _ensemble(node, "target", node.integer("n_targets", 1))
    base = _base_of(_numbers(node, "base_values"), forest.targets)
    return _aggregate(node.text("aggregate_function", "SUM"), forest, base, columns(given[0]))


def _aggregate(how: str, forest: Forest, base: torch.Tensor, size: int) -> list[Part]:
    """Returns what the operator takes for an aggregate of trees: for the least or greatest, first
    the places of each target's trees."""
    if how not in AGGREGATES:
        raise NotImportedError(
            f"its trees are combined by {how[:40]}", f"use {', '.join(AGGREGATES)}"
        )
    if how in EXTREMES:
        groups = forest.by_tree()
        if empty := [at for at, each in enumerate(groups) if not each]:
            raise NotImportedError(
                f"no tree counts for its target {empty[0]}", "leave targets without trees out"
            )
        for target, own in enumerate(groups):
            forest.constant[own] += base[target]
        first = [
            Part(f"trees{at}", torch.tensor(own), public=True) for at, own in enumerate(groups)
        ]
        return [*first, *forest.parts(size)]
    forest.scale(1.0 if how == "SUM" else 1.0 / forest.trees)
    forest.constant += base
    return forest.parts(size)


def _combined(how: str, targets: int, x: torch.Tensor, held: Sequence[torch.Tensor]) -> Any:
    """Returns the aggregate of what the trees give, for each target."""
    if how not in EXTREMES:
        return _sums(x, held)
    groups, rest = held[:targets], held[targets:]
    sums = _sums(x, rest)
    own = [torch.index_select(sums, 1, places) for places in groups]
    extremes = [each.amin(1) if how == "MIN" else each.amax(1) for each in own]
    return torch.stack(extremes, 1)


@implements("TreeEnsembleRegressor", domain=CLASSICAL, parts=_regressor_parts)
def tree_ensemble_regressor(node: Node, x: torch.Tensor, *held: torch.Tensor) -> torch.Tensor:
    """Returns the sum, the mean, the least or the greatest of what the trees give, for each
    target."""
    how, targets = node.text("aggregate_function", "SUM"), node.integer("n_targets", 1)
    return transformed(node, _combined(how, targets, x, held))


def _numbered_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    names = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    lists = [node.integers(f"nodes_{name}") or [] for name in names]
    modes, splits = node.tensor("nodes_modes"), node.tensor("nodes_splits")
    weights, targets = node.tensor("leaf_weights"), node.integers("leaf_targetids") or []
    if modes is None or splits is None or weights is None:
        raise ValueError("it lacks modes, splits or weights")
    if len({modes.numel(), splits.numel(), *map(len, lists)}) != 1:
        raise ValueError("the lists of its nodes have different lengths")
    leaves = list(zip(targets, weights.reshape(-1).tolist(), strict=True))
    kinds, edges = modes.reshape(-1).tolist(), splits.reshape(-1).tolist()
    asking = [at for at, kind in enumerate(kinds) if kind == len(MODES)]
    sets = dict(zip(asking, _sets(node, len(asking)), strict=True))

    def look(key: tuple[int, bool]) -> Any:
        at, is_leaf = key
        if not 0 <= at < len(leaves if is_leaf else kinds):
            raise ValueError(f"it names {at} of {len(leaves)} leaves and {len(kinds)} nodes")
        if is_leaf:
            return Leaf((leaves[at],))
        if not 0 <= kinds[at] <= len(MODES):
            raise ValueError(f"the comparison {kinds[at]} is not known")
        true, false = ((lists[of][at], bool(lists[of + 2][at])) for of in (1, 2))
        mode, feature, edge = (*MODES, MEMBER)[kinds[at]], lists[0][at], edges[at]
        own = sets[at] if mode == MEMBER else ()
        return (lambda a, b: Branch(mode, feature, edge, a, b, own)), true, false

    built = _Built(modes.numel())
    roots = node.integers("tree_roots") or []
    trees = [built.tree((root, False), look) for root in roots]
    forest = Forest(trees, node.integer("n_targets", 1))
    base = torch.zeros(forest.targets, dtype=torch.float64)
    return _aggregate(_aggregate_of(node), forest, base, columns(given[0]))


def _aggregate_of(node: Node) -> str:
    how = node.integer("aggregate_function", 1)
    if not 0 <= how < len(AGGREGATES):
        raise ValueError(f"the aggregate {how} is not known")
    return AGGREGATES[how]


def _sets(node: Node, count: int) -> list[tuple[float, ...]]:
    """Returns the set of each branch that asks for members, in the order of the branches. A file
    has them one after another, with NaN between them."""
    members = node.tensor("membership_values")
    found: list[dict[float, None]] = [{}]
    for member in [] if members is None else members.reshape(-1).tolist():
        if math.isnan(member):
            found.append({})
        else:
            found[-1][member] = None
    # Some exporters end each set by NaN, and others put it between two.
    sets = [tuple(each) for each in found if each]
    if len(sets) != count:
        raise ValueError(f"{len(sets)} sets for {count} nodes that ask for members")
    return sets


@implements("TreeEnsemble", domain=CLASSICAL, parts=_numbered_parts)
def tree_ensemble(node: Node, x: torch.Tensor, *held: torch.Tensor) -> torch.Tensor:
    """Returns what the trees give, for each target."""
    how = node.integer("post_transform", 0)
    if not 0 <= how < len(TRANSFORMS):
        raise ValueError(f"the transform {how} is not known")
    named = replace(node, attributes={"post_transform": TRANSFORMS[how]})
    found = _combined(_aggregate_of(node), node.integer("n_targets", 1), x, held)
    return transformed(named, found)
