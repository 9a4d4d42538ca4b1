"""Structure of an ensemble of trees, as public indices and secret numbers.

All nodes of all trees are compared at once. What a comparison says is a *literal* of the node's
true branch, and its negation one of the false branch. A leaf is reached if all literals on its path
are true. Paths are combined by doubling: after k steps each literal stands for the 2^k last ones of
its path. So a forest of depth d takes ⌈log2 d⌉ steps after its comparisons, whatever its shape
is."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Part

#: Greatest number of targets, and of weights: one for each leaf and target.
MOST_TARGETS, MOST_WEIGHTS = 1 << 12, 1 << 24

#: Greatest number of nodes of an ensemble, and greatest depth of a tree.
MOST_TREE_NODES, MOST_DEPTH = 1 << 20, 1 << 10

#: Comparisons with a number, by their names in ONNX, and the one that asks for a set's members.
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
MEMBER = "BRANCH_MEMBER"

#: Greatest number of members of all sets.
MOST_MEMBERS = 1 << 20


@dataclass(frozen=True)
class Branch:
    """An inner node of a tree."""

    mode: str
    feature: int
    threshold: float
    #: What follows if the comparison is true, and if it is false.
    true: "Branch | Leaf"
    false: "Branch | Leaf"
    #: The members of its set, all different; none for other comparisons.
    members: tuple[float, ...] = ()


@dataclass(frozen=True)
class Leaf:
    """A leaf, with its weight for each target."""

    weights: tuple[tuple[int, float], ...]


Tree = Branch | Leaf


class Forest:
    """Trees, with their branches and leaves in order."""

    def __init__(self, trees: Sequence[Tree], targets: int) -> None:
        #: Branches, in the order of their modes, so that each mode is one comparison.
        self.branches: list[Branch] = []
        #: Leaves behind a branch, with the literals that lead to them.
        self.leaves: list[tuple[Leaf, int]] = []
        #: Literal before each literal on its path, or -1, and the length of its path.
        self.before: list[int] = []
        self.depth: list[int] = []
        if not 0 < targets <= MOST_TARGETS:
            raise ValueError(f"{targets} targets, where at most {MOST_TARGETS} are imported")
        self.targets = targets
        #: Sum of the leaves of trees that have no branches.
        self.constant = torch.zeros(targets, dtype=torch.float64)
        self.trees = len(trees)
        #: Tree of each of these leaves, and the leaves of trees that have no branches, by tree.
        self._tree_of: list[int] = []
        self._alone: dict[int, Leaf] = {}
        for number, tree in enumerate(trees):
            self._enter(number, tree)
        kinds = (*MODES, MEMBER)
        self._sort(
            sorted(range(len(self.branches)), key=lambda at: kinds.index(self.branches[at].mode))
        )

    def _enter(self, number: int, tree: Tree) -> None:
        waiting: list[tuple[Tree, int]] = [(tree, -1)]
        while waiting:
            part, literal = waiting.pop()
            if isinstance(part, Leaf):
                if literal < 0:
                    self.constant += _row(part, self.targets)
                    self._alone[number] = part
                else:
                    self.leaves.append((part, literal))
                    self._tree_of.append(number)
                continue
            depth = 1 + (self.depth[literal] if literal >= 0 else 0)
            if depth > MOST_DEPTH or len(self.branches) >= MOST_TREE_NODES:
                raise NotImportedError(
                    f"its trees have more than {MOST_TREE_NODES} nodes or are more than "
                    f"{MOST_DEPTH} deep",
                    "train smaller trees",
                )
            own = 2 * len(self.branches)
            self.branches.append(part)
            self.before += [literal, literal]
            self.depth += [depth, depth]
            waiting += [(part.true, own), (part.false, own + 1)]

    def _sort(self, order: list[int]) -> None:
        """Numbers literals anew: those of the true branches in this order, then the others."""
        new = [0] * len(self.before)
        for to, at in enumerate(order):
            new[2 * at], new[2 * at + 1] = to, len(order) + to
        before, depth = [0] * len(new), [0] * len(new)
        for old, to in enumerate(new):
            before[to] = new[self.before[old]] if self.before[old] >= 0 else -1
            depth[to] = self.depth[old]
        self.branches = [self.branches[at] for at in order]
        self.before, self.depth = before, depth
        self.leaves = [(leaf, new[literal]) for leaf, literal in self.leaves]

    def steps(self) -> tuple[list[tuple[list[int], list[int], list[int]]], list[Leaf]]:
        """Returns the steps that combine literals, and the leaves in the order of the last one's
        results.

        A step has three lists of places in the results before it, at first in the literals. It
        combines the first two, keeps the third, and gives both, in this order."""
        leaf_of = {literal: leaf for leaf, literal in self.leaves}
        jumps, orders, wanted = self._jumps(), [], list(leaf_of)
        for reach in reversed(range(len(jumps))):
            joined = [each for each in wanted if self.depth[each] > 1 << reach]
            kept = [each for each in wanted if self.depth[each] <= 1 << reach]
            orders.append((joined, [jumps[reach][each] for each in joined], kept))
            wanted = list(dict.fromkeys([*joined, *orders[-1][1], *kept]))
        if not orders:
            orders.append(([], [], wanted))
        place = {literal: literal for literal in range(len(self.before))}
        made = []
        for joined, with_them, kept in reversed(orders):
            first, second, third = (
                [place[each] for each in of] for of in (joined, with_them, kept)
            )
            made.append((first, second, third))
            place = {literal: at for at, literal in enumerate([*joined, *kept])}
        return made, [leaf_of[literal] for literal in place]

    def _jumps(self) -> list[list[int]]:
        """Returns for each k the literal that lies 2^k before each literal, or -1."""
        longest = max((self.depth[literal] for _, literal in self.leaves), default=0)
        jumps: list[list[int]] = []
        reach = self.before
        while 1 << len(jumps) < longest:
            jumps.append(reach)
            reach = [reach[at] if at >= 0 else -1 for at in reach]
        return jumps

    def scale(self, factor: float) -> None:
        """Multiplies what the leaves count for."""
        self.constant *= factor
        self.leaves = [
            (Leaf(tuple((target, factor * weight) for target, weight in leaf.weights)), literal)
            for leaf, literal in self.leaves
        ]

    def of_target(self, target: int) -> None:
        """Keeps one target, as the only one."""
        self.targets, self.constant = 1, self.constant[target : target + 1]
        self.leaves = [
            (Leaf(tuple((0, weight) for at, weight in leaf.weights if at == target)), literal)
            for leaf, literal in self.leaves
        ]

    def by_tree(self) -> list[list[int]]:
        """Gives each tree targets of its own, and returns which of them belong to each target.

        A tree counts for a target if all of its leaves do."""
        found: dict[int, list[frozenset[int]]] = {}
        for number, leaf in (
            *self._alone.items(),
            *zip(self._tree_of, (leaf for leaf, _ in self.leaves), strict=True),
        ):
            found.setdefault(number, []).append(frozenset(target for target, _ in leaf.weights))
        if any(len(set(each)) > 1 for each in found.values()):
            raise NotImportedError(
                "some of its trees have leaves that count for a target, and others that do not, so "
                "that the least or greatest is of other trees for each row",
                "give each leaf a weight for the same targets, or combine by SUM",
            )
        pairs = sorted((target, number) for number, each in found.items() for target in each[0])
        place = {pair: at for at, pair in enumerate(pairs)}
        groups = [[place[pair] for pair in pairs if pair[0] == at] for at in range(self.targets)]

        def own(number: int, leaf: Leaf) -> Leaf:
            return Leaf(tuple((place[target, number], weight) for target, weight in leaf.weights))

        self.leaves = [
            (own(number, leaf), literal)
            for number, (leaf, literal) in zip(self._tree_of, self.leaves, strict=True)
        ]
        if not 0 < len(pairs) <= MOST_TARGETS:
            raise NotImportedError(
                f"its trees count {len(pairs)} times for a target", "use 1 to 4096 trees"
            )
        self.targets = len(pairs)
        self.constant = torch.zeros(self.targets, dtype=torch.float64)
        for number, leaf in self._alone.items():
            self.constant += _row(own(number, leaf), self.targets)
        return groups

    def parts(self, columns: int) -> list[Part]:
        """Returns what the operator takes, in the order of ``reached`` and then of the sum: the
        thresholds and then the members of sets, the columns that the branches of each mode look at,
        the columns of the members, the members of each set, the lists of each step, the weights of
        the leaves, and what is added to their sum."""
        if wrong := [each.feature for each in self.branches if not 0 <= each.feature < columns]:
            raise ValueError(f"a node looks at column {wrong[0]} of {columns}")
        asking = [each for each in self.branches if each.mode == MEMBER]
        members = [member for each in asking for member in each.members]
        if len(members) > MOST_MEMBERS:
            raise NotImportedError(
                f"its sets have {len(members)} members, more than {MOST_MEMBERS}",
                "use smaller sets",
            )
        edges = [each.threshold for each in self.branches if each.mode != MEMBER]
        thresholds = torch.tensor([*edges, *members], dtype=torch.float64)
        looks = [[each.feature for each in self.branches if each.mode == mode] for mode in MODES]
        looks.append([each.feature for each in asking for _ in each.members])
        steps, leaves = self.steps()
        if len(leaves) * self.targets > MOST_WEIGHTS:
            raise NotImportedError(
                f"its {len(leaves)} leaves count for {self.targets} targets each: more than "
                f"{MOST_WEIGHTS} weights",
                "train smaller trees",
            )
        rows = [_row(leaf, self.targets) for leaf in leaves]
        weights = torch.stack(rows, 1) if rows else torch.zeros(self.targets, 0)
        made = [Part("thresholds", thresholds.float())]
        made += [_places(f"columns{at}", of) for at, of in enumerate(looks)]
        made.append(Part("sets", _sets(asking), public=True))
        for at, lists in enumerate(steps):
            names = (f"joined{at}", f"with{at}", f"kept{at}")
            made += [_places(name, of) for name, of in zip(names, lists, strict=True)]
        return [*made, Part("leaves", weights.float()), Part("base", self.constant.float())]


def _sets(asking: Sequence[Branch]) -> torch.Tensor:
    """Returns the places of the members of each set, (greatest size, sets). Smaller sets are filled
    with the place after all members, where nothing is."""
    if not asking:
        return torch.zeros(0, 0, dtype=torch.int64)
    sizes = [len(each.members) for each in asking]
    rows, first = [], 0
    for size in sizes:
        own = list(range(first, first + size))
        rows.append(own + [sum(sizes)] * (max(sizes) - size))
        first += size
    return torch.tensor(rows, dtype=torch.int64).t().contiguous()


def _places(name: str, places: Sequence[int]) -> Part:
    return Part(name, torch.tensor(places, dtype=torch.int64), public=True)


def _row(leaf: Leaf, targets: int) -> torch.Tensor:
    row = torch.zeros(targets, dtype=torch.float64)
    for target, weight in leaf.weights:
        if not 0 <= target < targets:
            raise ValueError(f"a leaf counts for target {target} of {targets}")
        row[target] += weight
    return row


#: The comparison of each mode.
COMPARISONS = (torch.le, torch.lt, torch.ge, torch.gt, torch.eq, torch.ne)


def reached(
    x: torch.Tensor,
    thresholds: torch.Tensor,
    columns: Sequence[torch.Tensor],
    sets: torch.Tensor,
    steps: Sequence[torch.Tensor],
) -> torch.Tensor:
    """Returns whether each row reaches each leaf, (leaves, rows).

    Rows are last, so that what is chosen by index lies together in memory.

    Args:
        x: the features, (columns, rows).
        thresholds: what each branch compares with, and then the members of sets.
        columns: the columns that the branches of each mode look at, and those of the members.
        sets: the places of the members of each set.
        steps: the three lists of each step, one after another.
    """
    found, first = [], 0
    for compare, looks in zip(COMPARISONS, columns[:-1], strict=True):
        if count := looks.shape[0]:
            edges = thresholds[first : first + count].unsqueeze(1)
            found.append(compare(torch.index_select(x, 0, looks), edges))
            first += count
    if sets.shape[0]:
        looks, edges = columns[-1], thresholds[first:].unsqueeze(1)
        are_equal = torch.index_select(x, 0, looks) == edges
        are_equal = torch.cat([are_equal, are_equal[:1] ^ are_equal[:1]])
        # Members that differ in the file may be equal as they are encoded.
        is_member = _taken(are_equal, sets[0])
        for at in range(1, sets.shape[0]):
            is_member = is_member | _taken(are_equal, sets[at])
        found.append(is_member)
    true = _joined(found)
    literals = torch.cat([true, ~true])
    for at in range(0, len(steps), 3):
        joined, others, kept = steps[at : at + 3]
        parts = []
        if joined.shape[0]:
            parts.append(_taken(literals, joined) & _taken(literals, others))
        if kept.shape[0]:
            parts.append(_taken(literals, kept))
        literals = _joined(parts)
    return literals


def _taken(literals: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return torch.index_select(literals, 0, places)


def _joined(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
