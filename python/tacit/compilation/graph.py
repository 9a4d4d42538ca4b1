"""Intermediate representation of the compiler: a graph of ATen operators with static shapes, and
the values that only the model's owner knows.

The graph is a ``torch.fx`` graph. Its placeholders are the inputs, weights and public constants, in
this order. Every other node calls an operator (``allowlist``) or takes one of several results. The
``meta`` of a node holds what is known of it: see :class:`Value`.
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

#: Node of a graph. Type checkers see ``Any``: PyTorch declares a node's arguments as a union of
#: sixteen types, and each pass knows which one it meets.
Node = Any

#: Least and greatest number.
Interval = tuple[float, float]


#: Layers whose results may keep the scale of a product. They are not truncated then; what follows
#: is truncated instead.
KEEPING = (
    torch.ops.aten.conv1d.default,
    torch.ops.aten.conv2d.default,
    torch.ops.aten.conv3d.default,
    torch.ops.aten.linear.default,
)

#: Layers whose products may be narrow (``passes/narrow_products.py``).
NARROWING = (
    torch.ops.aten.conv2d.default,
    torch.ops.aten.linear.default,
    torch.ops.tacit.affine.default,
    torch.ops.tacit.rectified_affine.default,
)


class Value(NamedTuple):
    """Shape and dtype of a node's result."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def numbers(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass
class Draft:
    """A model under compilation. Passes change it in place."""

    graph: fx.Graph
    #: Example of each input, by placeholder.
    examples: dict[str, torch.Tensor]
    #: The owner's weights by placeholder: in float64, or Boolean.
    weights: dict[str, torch.Tensor] = field(repr=False)
    #: Public constants by placeholder.
    constants: dict[str, torch.Tensor]
    #: Scale of the session in which the program will run.
    scale: Scale = DEFAULT
    #: Fraction bits of the weights whose scale is not the session's.
    weight_scales: dict[str, int] = field(default_factory=dict)
    #: Intervals of inputs, as their owners promise.
    intervals: dict[str, Interval] = field(default_factory=dict)
    #: Exponents of two by which owners scale the columns of their inputs, where they do.
    exponents: dict[str, list[int]] = field(default_factory=dict)
    #: Greatest magnitude that is expected of the results of layers whose weights have more fraction
    #: bits. At no scale do these weights get so many bits that the results would leave the range.
    reaches: dict[str, float] = field(default_factory=dict)
    #: Batches of inputs like those of later runs, by placeholder.
    calibration: Sequence[Mapping[str, torch.Tensor]] = field(default=(), repr=False)
    #: Names that owners use for inputs, where these differ from the placeholders.
    names: dict[str, str] = field(default_factory=dict)
    #: Numbers of a file that became public, although they may have been learned: part of the graph,
    #: or what follows from them is.
    public: list[str] = field(default_factory=list)

    def add_weight(
        self, hint: str, value: torch.Tensor, bits: int | None = None, reach: float | None = None
    ) -> Node:
        """Adds a weight.

        ``bits`` are its fraction bits, if it needs more than the session has. It gets them only as
        long as its layer's results, of magnitude ``reach`` at most, stay in range."""
        node = self._added(hint, value)
        self.weights[node.name] = of_dtype(value.detach(), torch.float64)
        if bits is not None:
            self.weight_scales[node.name] = bits
        if reach is not None:
            self.reaches[node.name] = reach
        return node

    def add_constant(self, hint: str, value: torch.Tensor) -> Node:
        """Adds a public constant."""
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
        """Returns the greatest number of fraction bits that any of these weights has."""
        return max(self.weight_scales.get(node.name, self.scale.bits) for node in nodes)

    def may_copy(self, weight: Node, opened: int = 0) -> bool:
        """Returns whether a layer may use a changed copy of a weight, if that opens ``opened``
        fewer words.

        Other layers may keep the original, and additive sharing opens each of both once, masked."""
        return len(weight.users) == 1 or weight.meta["value"].numbers <= opened

    def is_constant(self, node: Any) -> bool:
        """Returns whether a node is a public constant."""
        return isinstance(node, fx.Node) and node.name in self.constants

    def weight(self, node: Any) -> torch.Tensor | None:
        """Returns the owner's value of a node, or ``None`` if the node is not a weight."""
        return self.weights.get(node.name) if isinstance(node, fx.Node) else None

    def drop_dead(self) -> None:
        """Removes unused nodes, including weights and constants, but no inputs."""
        self.graph.eliminate_dead_code()
        for node in reversed(list(self.graph.nodes)):
            if node.op == "placeholder" and not node.users and node.name not in self.examples:
                self.graph.erase_node(node)
        present = {node.name for node in self.graph.nodes}
        for known in (self.weights, self.constants, self.weight_scales, self.reaches):
            for name in set(known) - present:
                del known[name]

    def copy(self) -> "Draft":
        """Returns a copy of the draft, whose graph can be changed without changing this one's."""
        graph = fx.Graph()
        nodes: dict[fx.Node, fx.Node] = {}
        for node in self.graph.nodes:
            nodes[node] = graph.node_copy(node, lambda old: nodes[old])
            nodes[node].meta = dict(node.meta)
        held: dict[str, Any] = {name: dict(getattr(self, name)) for name in _MAPPINGS}
        renamed = {old.name: new.name for old, new in nodes.items()}
        assert all(old == new for old, new in renamed.items()), "a copied node has another name"
        return replace(self, graph=graph, **held)


_MAPPINGS = (
    "examples",
    "weights",
    "constants",
    "weight_scales",
    "intervals",
    "exponents",
    "reaches",
    "names",
)


def calls(graph: fx.Graph, *targets: Any) -> Iterator[Node]:
    """Yields the nodes that call one of these operators now. Nodes that are erased in the meantime
    are left out."""
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in targets and not node._erased:
            yield node


def takes(node: Any, *targets: Any) -> bool:
    """Returns whether a node calls one of these operators and has exactly one user."""
    return (
        isinstance(node, fx.Node)
        and node.op == "call_function"
        and node.target in targets
        and len(node.users) == 1
    )


def outputs(graph: fx.Graph) -> tuple[fx.Node, ...]:
    """Returns the output nodes of a graph."""
    returned: Any = graph.output_node().args[0]
    return tuple(returned) if isinstance(returned, tuple | list) else (returned,)


#: Function that returns the context in which a node is carried out.
Around = Callable[[fx.Node], AbstractContextManager[Any]]


def walk(
    graph: fx.Graph,
    given: Mapping[str, Any],
    *,
    around: Around = lambda _: nullcontext(),
    seen: Callable[[fx.Node, Any], None] | None = None,
) -> tuple[Any, ...]:
    """Carries out a graph on tensors of any kind. Each value is released after its last use.

    Args:
        given: values by placeholder.
        around: a context for each operator.
        seen: called with each node and its result.
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
    """Results of a graph's nodes, each kept until its last use.

    Nodes can be carried out in any order in which each node comes after those that it uses."""

    def __init__(self, graph: fx.Graph, given: Mapping[str, Any]) -> None:
        """Starts with the given values, by placeholder."""
        self._graph = graph
        self._values: dict[fx.Node, Any] = {}
        #: Remaining uses of each value. The output node is never carried out, so the results stay.
        self._left: dict[fx.Node, int] = {}
        for node in graph.nodes:
            self._left[node] = len(node.users)
            if node.op == "placeholder" and node.users:
                self._values[node] = given[node.name]

    def carry_out(self, node: Node, taken: Callable[[Any], Any] = lambda value: value) -> Any:
        """Carries out a node and returns its result.

        ``taken`` is applied to each operand first."""
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
        """Returns the results of the graph, once all its nodes have been carried out."""
        return tuple(self._values[node] for node in outputs(self._graph))


def is_call(node: Any) -> bool:
    """Returns whether a node calls an operator: placeholders, outputs and ``getitem`` do not."""
    return isinstance(node, fx.Node) and node.op == "call_function" and node.target is not getitem


def plain(
    draft: Draft,
    inputs: Mapping[str, torch.Tensor],
    seen: Callable[[fx.Node, Any], None] | None = None,
) -> tuple[Any, ...]:
    """Runs the draft on plain inputs, in their precision, and returns its results."""
    dtype = next(
        (x.dtype for x in inputs.values() if x.is_floating_point()), torch.get_default_dtype()
    )
    held = {
        name: of_dtype(value, dtype) for name, value in (draft.weights | draft.constants).items()
    }
    with torch.no_grad():
        return walk(draft.graph, {**inputs, **held}, seen=seen)


def of_dtype(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Converts fractions to a dtype; integers and booleans are returned as they are."""
    return value.to(dtype) if value.is_floating_point() else value
