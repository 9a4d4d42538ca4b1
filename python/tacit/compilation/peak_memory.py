"""How many numbers a program holds at once. Steps that go side by side, and layers that are made
one, are in
memory together: so many of them as are no more than the program holds at its most one step after
another, but for what is too little to count."""

from torch import fx

from tacit.compilation.approximating import functions_of
from tacit.compilation.comparing import COMPARING
from tacit.compilation.graph import Value

#: Numbers that any program may hold: of each component 8 MB, which is little beside what a party
#: takes.
FEW = 1 << 20

#: What a comparison takes for each number while it is under way: masks, bits and what makes them,
#: between three and sixteen words by protocol and source.
WORK = 8


def size(node: fx.Node) -> int:
    """Of what a step gives; of several results only those count that are taken apart."""
    return _numbers(node) if node.op == "call_function" else 0


def work(node: fx.Node) -> int:
    """What a step takes besides, until it has ended."""
    if node.target not in COMPARING and not functions_of(node):
        return 0
    # Of windows, half of what they lie on is compared at first.
    source = max(map(_numbers, node.all_input_nodes[:1]), default=0)
    return WORK * max(_numbers(node), source // 2)


def _numbers(node: fx.Node) -> int:
    value = node.meta.get("value")
    return value.numbers if isinstance(value, Value) else 0


def held(graph: fx.Graph) -> dict[fx.Node, int]:
    """How many numbers there are while each step is carried out, one after another: what it takes
    and gives, what it needs besides, and what a later one takes. Weights and what goes in are
    apart."""
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
    """How many numbers it may hold."""
    return max(FEW, *held(graph).values())
