"""Schedule of a program: which steps run side by side, and so share rounds.

Examples are the branches of an Inception block, a layer on the skip path, and query, key and value
of different sizes. The schedule follows from the graph alone, so it is the same in every party.

A *stage* consists of *fibers*, none of which uses a result of another fiber of its stage. The next
stage begins when all fibers have ended, so a stage takes the rounds of its longest fiber. The
*level* of a step is the number of steps that take rounds on the longest path to it, itself
included. A stage consists of all steps of some consecutive levels. Its fibers are the connected
components of these steps, so two short steps can run next to a long one. Levels are grouped into
stages such that the sum of rounds is least. A step that takes no rounds and joins several fibers,
as ``cat`` does, forms a stage of its own after them. Fibers that would hold more at once than the
graph may (``peak_memory.py``) are divided into several consecutive stages."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import fx

from tacit.compilation.approximating import functions_of
from tacit.compilation.comparing import COMPARING
from tacit.compilation.graph import Value, is_call
from tacit.compilation.intervals import MOVES
from tacit.compilation.peak_memory import most, size, work

aten = torch.ops.aten

Fiber = list[fx.Node]
Stage = list[Fiber]

#: Operators that take maxima over windows, with the position of the argument that gives the
#: windows' size.
POOLS: dict[Any, int] = {
    aten.max_pool1d.default: 1,
    aten.max_pool2d.default: 2,
    aten.max_pool3d.default: 3,
    torch.ops.tacit.rectified_max_pool2d.default: 2,
}

#: Operators that take maxima over groups of elements. A group has as many elements as there are
#: input elements for each result.
REDUCED = (
    aten.adaptive_max_pool2d.default,
    aten.adaptive_max_pool3d.default,
    aten.amax.default,
    aten.amin.default,
    aten.argmax.default,
)

#: Operators that run on each component without rounds. If one is missing here, or has to bring
#: numbers to one scale, fibers take other rounds than estimated, but never give another result.
LOCAL = frozenset(
    {
        *(target for target in MOVES if target not in POOLS and target not in REDUCED),
        aten.add.Tensor,
        aten.cat.default,
        aten.clone.default,
        aten.constant_pad_nd.default,
        aten.neg.default,
        aten.pad.default,
        aten.stack.default,
        aten.sub.Tensor,
        aten.sum.dim_IntList,
        aten.unbind.int,
    }
)

#: Approximate rounds of a product, of a comparison with a selection by its outcome, and of an
#: approximated function.
PRODUCT, COMPARISON, FUNCTION = 2, 8, 20

#: Greatest number of levels in a stage, so that a graph of any size is divided in little time.
MOST_LEVELS = 8


def stages(graph: fx.Graph) -> list[Stage]:
    """Divides all steps of a graph into stages: each step once, after all that it uses."""
    levels = _Levels(graph)
    # For each number of first levels: the least sum of rounds, and the level after which the last
    # stage begins.
    best = [(0, 0)]
    for last in range(1, len(levels.steps)):
        earliest = max(0, last - MOST_LEVELS)
        together = _Together(levels, last)
        sums = [
            (best[first][0] + together.grown_to(first), first)
            for first in range(last - 1, earliest - 1, -1)
        ]
        best.append(min(sums))
    bounds = [len(best) - 1]
    while bounds[-1]:
        bounds.append(best[bounds[-1]][1])
    bounds.reverse()
    found: list[Stage] = [[levels.steps[0]]]
    for first, last in pairwise(bounds):
        steps = [node for level in levels.steps[first + 1 : last + 1] for node in level]
        found += _taken_apart(levels, first, last, steps)
    return _joined(_bounded(found, graph), graph)


def rounds_of(node: fx.Node) -> int:
    """Returns about how many rounds a step takes."""
    if not is_call(node) or node.target in LOCAL:
        return 0
    if node.target in POOLS:
        return COMPARISON * sum(math.ceil(math.log2(max(1, size))) for size in _sizes(node))
    if node.target in REDUCED:
        return COMPARISON * max(1, math.ceil(math.log2(_reduced(node))))
    if functions_of(node):
        return FUNCTION
    return COMPARISON if node.target in COMPARING else PRODUCT


def _sizes(node: fx.Node) -> Sequence[int]:
    """Returns the size of a window along each dimension."""
    rank, kernel = POOLS[node.target], node.args[1]
    sizes: Any = [kernel] if isinstance(kernel, int) else kernel
    return ([*sizes] * rank)[:rank]


def _reduced(node: fx.Node) -> int:
    source: Any = node.args[0]
    known = [each.meta["value"] for each in (source, node)]
    # An operator with several results has no single shape.
    before, after = (math.prod(each.shape) if isinstance(each, Value) else 1 for each in known)
    return max(2, before // max(1, after))


class _Levels:
    """Levels of a graph's steps."""

    def __init__(self, graph: fx.Graph) -> None:
        self.of: dict[fx.Node, int] = {}
        self.rounds = {node: rounds_of(node) for node in graph.nodes}
        #: Steps by level, in the graph's order. A step that takes no rounds has the level of the
        #: last step that it uses.
        self.steps: list[list[fx.Node]] = [[]]
        for node in graph.nodes:
            if node.op == "output":
                break
            below = max((self.of[source] for source in node.all_input_nodes), default=0)
            self.of[node] = level = below + bool(self.rounds[node])
            if node.op == "call_function":
                # Levels have no gaps.
                if level == len(self.steps):
                    self.steps.append([])
                self.steps[level].append(node)
        #: First level at which a step that takes rounds needs the result of each node, the node
        #: itself included.
        self.needed: dict[fx.Node, float] = {}
        for node in reversed(graph.nodes):
            later = min((self.needed[user] for user in node.users), default=math.inf)
            self.needed[node] = self.of[node] if self.rounds[node] else later


class _Together:
    """Connected components of the steps of some levels, which grow downwards from the last
    level."""

    def __init__(self, levels: _Levels, last: int) -> None:
        self._levels, self._last, self._first = levels, last, last
        self._above: dict[fx.Node, fx.Node] = {}
        self._rounds: dict[fx.Node, int] = {}
        self._longest = 0

    def grown_to(self, first: int) -> int:
        """Adds all levels after ``first`` and returns the rounds of the longest fiber then."""
        levels = self._levels
        for level in range(self._first, first, -1):
            steps = [node for node in levels.steps[level] if levels.needed[node] <= self._last]
            for node in steps:
                self._above[node], self._rounds[node] = node, levels.rounds[node]
                self._longest = max(self._longest, levels.rounds[node])
            for node in steps:
                for user in node.users:
                    if user in self._above:
                        self._tie(node, user)
        self._first = first
        return self._longest

    def _tie(self, left: fx.Node, right: fx.Node) -> None:
        left, right = self.root(left), self.root(right)
        if left is not right:
            self._above[right] = left
            self._rounds[left] += self._rounds.pop(right)
            self._longest = max(self._longest, self._rounds[left])

    def root(self, node: fx.Node) -> fx.Node:
        """Returns the representative of a step's component."""
        above = self._above
        while above[node] is not node:
            above[node] = node = above[above[node]]
        return node

    def fibers(self, steps: Iterable[fx.Node]) -> tuple[list[Fiber], Fiber]:
        """Divides steps into fibers, and separates those whose results nothing in these levels
        waits for."""
        fibers: dict[fx.Node, Fiber] = defaultdict(list)
        left: Fiber = []
        for node in steps:
            (fibers[self.root(node)] if node in self._above else left).append(node)
        return list(fibers.values()), left


def _taken_apart(levels: _Levels, first: int, last: int, steps: Fiber) -> list[Stage]:
    together = _Together(levels, last)
    together.grown_to(first)
    fibers, left = together.fibers(steps)
    return [fibers, [left]]


def _joined(found: list[Stage], graph: fx.Graph) -> list[Stage]:
    """Joins consecutive stages of one fiber, in the graph's order, in which values live
    shortest."""
    order = {node: at for at, node in enumerate(graph.nodes)}
    joined: list[Stage] = []
    for stage in found:
        fibers = [sorted(fiber, key=order.__getitem__) for fiber in stage if fiber]
        if len(fibers) == 1 and joined and len(joined[-1]) == 1:
            joined[-1] = [sorted(joined[-1][0] + fibers[0], key=order.__getitem__)]
        elif fibers:
            joined.append(fibers)
    return joined


def _bounded(found: list[Stage], graph: fx.Graph) -> list[Stage]:
    """Divides stages whose fibers would hold too much at once."""
    holding, bound = _Holding(graph), most(graph)
    bounded: list[Stage] = []
    for stage in found:
        together: Stage = []
        needed = 0
        for fiber in stage:
            own = holding.needed(fiber)
            if together and holding.alive + needed + own > bound:
                bounded.append(together)
                holding.end(together)
                together, needed = [], 0
            together.append(fiber)
            needed += own
        bounded.append(together)
        holding.end(together)
    return bounded


class _Holding:
    """Numbers that are held between stages, and those that each fiber needs in addition."""

    def __init__(self, graph: fx.Graph) -> None:
        self._left = {node: len(node.users) for node in graph.nodes}
        #: Numbers that are held now.
        self.alive = 0

    def needed(self, fiber: Fiber) -> int:
        """Returns the greatest size of what a fiber itself holds; what existed before stays until
        all fibers have ended."""
        left: dict[fx.Node, int] = {}
        own = greatest = 0
        for node in fiber:
            left[node] = self._left[node]
            own += size(node)
            greatest = max(greatest, own + work(node))
            for source in node.all_input_nodes:
                if source in left:
                    left[source] -= 1
                    own -= 0 if left[source] else size(source)
        return greatest

    def end(self, stage: Stage) -> None:
        """Releases all that no step after a stage uses."""
        steps = [node for fiber in stage for node in fiber]
        self.alive += sum(map(size, steps))
        for node in steps:
            for source in node.all_input_nodes:
                self._left[source] -= 1
                self.alive -= 0 if self._left[source] else size(source)
            self.alive -= 0 if self._left[node] else size(node)
