"""Bounds on the numbers that a program holds in memory at once.

Steps that run side by side, and layers that are joined, are in memory together. Their number is
limited: together they take no more than the peak of the program when its steps run one after
another, or an amount that is too small to matter."""

from torch import fx

from tacit.compilation.approximating import functions_of
from tacit.compilation.comparing import COMPARING
from tacit.compilation.graph import Value

#: Numbers that any program may hold: 8 MB for each component, which is little compared with what a
#: party takes.
FEW = 1 << 20

#: Words that a comparison takes for each number while it runs, for masks, bits and what makes them:
#: between three and sixteen, by protocol and source.
WORK = 8


def size(node: fx.Node) -> int:
    """Returns the size of a step's result; of several results only those that are taken apart
    count."""
    return _numbers(node) if node.op == "call_function" else 0


def work(node: fx.Node) -> int:
    """Returns the memory that a step needs in addition, until it has ended."""
    if node.target not in COMPARING and not functions_of(node):
        return 0
    # A maximum over windows first compares half of the elements that the windows cover.
    source = max(map(_numbers, node.all_input_nodes[:1]), default=0)
    return WORK * max(_numbers(node), source // 2)


def _numbers(node: fx.Node) -> int:
    value = node.meta.get("value")
    return value.numbers if isinstance(value, Value) else 0


def held(graph: fx.Graph) -> dict[fx.Node, int]:
    """Returns how many numbers exist while each step is carried out, one after another.

    They are the operands and the result of the step, what it needs in addition, and what later
    steps use. Weights and inputs are not counted."""
    left = {node: len(node.users) for node in graph.nodes}
    found: dict[fx.Node, int] = {}
    alive = 0
    for node in graph.nodes:
        alive += size(node)
        found[node] = alive + work(node)
        for source in node.all_input_nodes:
            left[source] -= 1
            if not left[source]:
                alive -= size(source)
        if not left[node]:
            alive -= size(node)
    return found


def most(graph: fx.Graph) -> int:
    """Returns how many numbers a program may hold."""
    return max(FEW, *held(graph).values())
