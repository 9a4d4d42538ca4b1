"""A model on its way through the compiler: a graph of ATen operators with static shapes, and what
its owner alone knows.

The graph is a ``torch.fx`` graph. Its placeholders are inputs, weights and public constants, in
this order; all other nodes call an operator (``allowlist``) or take one of several results. What is
known of a node is in
its ``meta``: see :class:`Value`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from operator import getitem
from typing import Any, NamedTuple

import torch
from torch import fx

from tacit.fixed import DEFAULT, Scale
from tacit.operators.dispatch import custom_ops  # noqa: F401

#: A node of a graph. To type checkers it is anything: what its arguments may be, PyTorch says as a
#: union of sixteen types, of which each pass knows which one it meets.
Node = Any

#: Least and greatest number.
Interval = tuple[float, float]


#: Layers whose results may keep the scale of a product: they are not truncated then, but what
#: follows is.
KEEPING = (
    torch.ops.aten.conv1d.default,
    torch.ops.aten.conv2d.default,
    torch.ops.aten.conv3d.default,
    torch.ops.aten.linear.default,
)

#: Layers whose products may be narrow.
NARROWING = (
    torch.ops.aten.conv2d.default,
    torch.ops.aten.linear.default,
    torch.ops.tacit.affine.default,
    torch.ops.tacit.rectified_affine.default,
)


class Value(NamedTuple):
    """What is known of what a node gives."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def numbers(self) -> int:
        """How many it is."""
        return math.prod(self.shape)


@dataclass
class Draft:
    """A model under compilation. Passes change it in place."""

    graph: fx.Graph
    examples: dict[str, torch.Tensor]
    """Of each input, by placeholder."""
    weights: dict[str, torch.Tensor] = field(repr=False)
    """The owner's, by placeholder, in float64; or booleans."""
    constants: dict[str, torch.Tensor]
    """Public ones, by placeholder."""
    scale: Scale = DEFAULT
    """Of the session that it will run in."""
    weight_scales: dict[str, int] = field(default_factory=dict)
    """Fraction bits of weights that have others than the session."""
    intervals: dict[str, Interval] = field(default_factory=dict)
    """Of inputs: what their owners promise."""
    reaches: dict[str, float] = field(default_factory=dict)
    """The greatest magnitude that is expected of the layers of weights that have more fraction
    bits: at no scale they have so many that it would leave the range."""
    calibration: Sequence[Mapping[str, torch.Tensor]] = field(default=(), repr=False)
    """Batches of inputs like those to come, by placeholder."""
    names: dict[str, str] = field(default_factory=dict)
    """Of inputs, where their owners call them otherwise than their placeholders."""
    public: list[str] = field(default_factory=list)
    """Numbers of a file that became part of the graph, though they might have been learned."""

    def add_weight(
        self, hint: str, value: torch.Tensor, bits: int | None = None, reach: float | None = None
    ) -> Node:
        """A new weight, with fraction bits of its own where it needs more than the session has, as
        long as what its layer gives, of that magnitude at most, stays in range."""
        node = self._added(hint, value)
        self.weights[node.name] = of_dtype(value.detach(), torch.float64)
        if bits is not None:
            self.weight_scales[node.name] = bits
        if reach is not None:
            self.reaches[node.name] = reach
        return node

    def add_constant(self, hint: str, value: torch.Tensor) -> Node:
        """A new public constant."""
        node = self._added(hint, value)
        self.constants[node.name] = value.detach().contiguous()
        return node

    def _added(self, hint: str, value: torch.Tensor) -> Node:
        last = [node for node in self.graph.nodes if node.op == "placeholder"][-1]
        with self.graph.inserting_after(last):
            node = self.graph.placeholder(hint)
        node.meta = {"value": Value(tuple(value.shape), value.dtype), "layer": ""}
        return node

    def bits_of(self, *nodes: Node) -> int:
        """Fraction bits of weights: the most that one of them has."""
        return max(self.weight_scales.get(node.name, self.scale.bits) for node in nodes)

    def may_copy(self, weight: Node, opened: int = 0) -> bool:
        """Whether a layer may have a changed copy of a weight, where that opens so many words less.
        Others may keep the weight, and additive sharing opens each of both once, masked."""
        return len(weight.users) == 1 or weight.meta["value"].numbers <= opened

    def is_constant(self, node: Any) -> bool:
        """Whether it is a public constant."""
        return isinstance(node, fx.Node) and node.name in self.constants

    def weight(self, node: Any) -> torch.Tensor | None:
        """The owner's value of a node, if it is a weight."""
        return self.weights.get(node.name) if isinstance(node, fx.Node) else None

    def drop_dead(self) -> None:
        """Removes what nobody uses: weights and constants too, but no input."""
        self.graph.eliminate_dead_code()
        for node in reversed(list(self.graph.nodes)):
            if node.op == "placeholder" and not node.users and node.name not in self.examples:
                self.graph.erase_node(node)
        present = {node.name for node in self.graph.nodes}
        for known in (self.weights, self.constants, self.weight_scales, self.reaches):
            for name in set(known) - present:
                del known[name]

    def copy(self) -> "Draft":
        """Another draft, whose graph can be changed without this one's."""
        graph = fx.Graph()
        nodes: dict[fx.Node, fx.Node] = {}
        for node in self.graph.nodes:
            nodes[node] = graph.node_copy(node, lambda old: nodes[old])
            nodes[node].meta = dict(node.meta)
        held: dict[str, Any] = {name: dict(getattr(self, name)) for name in _MAPPINGS}
        renamed = {old.name: new.name for old, new in nodes.items()}
        assert all(old == new for old, new in renamed.items()), "a copied node has another name"
        return replace(self, graph=graph, **held)


_MAPPINGS = ("examples", "weights", "constants", "weight_scales", "intervals", "reaches", "names")


def calls(graph: fx.Graph, *targets: Any) -> Iterator[Node]:
    """The nodes that call one of these operators, as they stand now; those that are erased
    meanwhile are left out."""
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in targets and not node._erased:
            yield node


def takes(node: Any, *targets: Any) -> bool:
    """Whether a node calls one of these operators, and one other alone uses what it gives."""
    return (
        isinstance(node, fx.Node)
        and node.op == "call_function"
        and node.target in targets
        and len(node.users) == 1
    )


def outputs(graph: fx.Graph) -> tuple[fx.Node, ...]:
    """What the graph gives."""
    returned: Any = graph.output_node().args[0]
    return tuple(returned) if isinstance(returned, tuple | list) else (returned,)


#: What is done around each node that is carried out.
Around = Callable[[fx.Node], AbstractContextManager[Any]]


def walk(
    graph: fx.Graph,
    given: Mapping[str, Any],
    *,
    around: Around = lambda _: nullcontext(),
    seen: Callable[[fx.Node, Any], None] | None = None,
) -> tuple[Any, ...]:
    """Carries a graph out, on tensors of any kind; each value is let go after its last use.

    Args:
        given: by placeholder.
        around: a context for each operator.
        seen: is shown what each node gives.
    """
    values = Values(graph, given)
    for node in graph.nodes:
        if node.op == "call_function":
            with around(node):
                result = values.carry_out(node)
            if seen is not None:
                seen(node, result)
        elif node.op == "placeholder" and seen is not None:
            seen(node, given[node.name])
    return values.results()


class Values:
    """What the nodes of a graph gave, each as long as somebody is still to use it; in any order in
    which nodes stand behind those that they use."""

    def __init__(self, graph: fx.Graph, given: Mapping[str, Any]) -> None:
        """With what is given, by placeholder."""
        self._graph = graph
        self._values: dict[fx.Node, Any] = {}
        #: Those who are still to use each. The output never has.
        self._left: dict[fx.Node, int] = {}
        for node in graph.nodes:
            self._left[node] = len(node.users)
            if node.op == "placeholder" and node.users:
                self._values[node] = given[node.name]

    def carry_out(self, node: Node, taken: Callable[[Any], Any] = lambda value: value) -> Any:
        """What a node gives of what others gave, each as it is ``taken``."""
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda of: taken(self._values[of]))
        result = node.target(*args, **kwargs)
        for source in node.all_input_nodes:
            self._left[source] -= 1
            if not self._left[source]:
                del self._values[source]
        if node.users:
            self._values[node] = result
        return result

    def results(self) -> tuple[Any, ...]:
        """What the graph gives, once all its nodes have."""
        return tuple(self._values[node] for node in outputs(self._graph))


def is_call(node: Any) -> bool:
    """Whether it calls an operator, as all nodes do but placeholders and outputs."""
    return isinstance(node, fx.Node) and node.op == "call_function" and node.target is not getitem


def plain(
    draft: Draft,
    inputs: Mapping[str, torch.Tensor],
    seen: Callable[[fx.Node, Any], None] | None = None,
) -> tuple[Any, ...]:
    """What the draft gives on plain inputs, in their precision."""
    dtype = next(
        (x.dtype for x in inputs.values() if x.is_floating_point()), torch.get_default_dtype()
    )
    held = {
        name: of_dtype(value, dtype) for name, value in (draft.weights | draft.constants).items()
    }
    with torch.no_grad():
        return walk(draft.graph, {**inputs, **held}, seen=seen)


def of_dtype(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Fractions in that precision; whole numbers and booleans as they are."""
    return value.to(dtype) if value.is_floating_point() else value
