"""Control flow whose course is public: the taken branch of an If, and the rounds of a Loop.

A condition is public if it follows from shapes, ranks, constants and public inputs. Then the nodes
of the branch, or of each round of a loop, take the place of the node, under names of their own. A
graph sees the values around it, and may hide them by names that it defines itself. A condition of
weights alone is decided here as well. The program shows how, so these weights are reported."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch

from tacit.compilation.importers.onnx.problems import NotImportedError, quoted

#: Greatest number of rounds of a loop, and of nodes that control flow may add to a file.
MOST_ROUNDS, MOST_ADDED = 1 << 12, 1 << 17

#: Remedy for what depends on secret values.
BOTH_WAYS = (
    "write it without (torch.where computes both ways), or export with the condition fixed, or give "
    "what it depends on by public, --public NAME=VALUE, if it is an input"
)


class Bodies:
    """Copies of graphs inside of nodes, under names that are free."""

    def __init__(self, names: Collection[str]) -> None:
        """Takes all names of a file."""
        self._added = self._copies = 0
        # What every copy's names begin with, and no name of the file.
        self._root = "/"
        while any(map(self._copied, names)):
            self._root += "~"

    def _begins(self, name: str) -> bool:
        return name.startswith(self._root)

    def in_file(self, name: str) -> str:
        """Returns what the file calls a value: without the prefix of the copy that it is in."""
        return name.removeprefix(self._root).partition("/")[2] if self._copied(name) else name

    def _copied(self, name: str) -> bool:
        return self._begins(name) and name[len(self._root) :][:1].isdigit()

    def copy(self, graph: Any, given: Mapping[str, str]) -> tuple[list[Any], dict[str, str], str]:
        """Returns copies of a graph's nodes, the new names of its values, and their prefix.

        Args:
            graph: of an attribute.
            given: what the graph's inputs are called outside.

        Raises:
            NotImportedError: there are too many nodes.
        """
        self._copies += 1
        prefix = f"{self._root}{self._copies}/"
        names = dict(given)
        names.update((each.name, prefix + each.name) for each in graph.initializer)
        nodes = []
        self._added += 1 + _size(graph)
        if self._added > MOST_ADDED:
            raise NotImportedError(
                f"its branches and rounds have more than {MOST_ADDED} operators",
                "export with fewer rounds",
            )
        for node in graph.node:
            copied = renamed(node, names)
            for at, name in enumerate(node.output):
                if name:
                    names[name] = copied.output[at] = prefix + name
            nodes.append(copied)
        return nodes, names, prefix


def graphs_of(node: Any) -> Iterator[Any]:
    """Yields the graphs among a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _size(graph: Any) -> int:
    """Returns the number of nodes of a graph, and of the graphs inside of them."""
    return sum(1 + sum(map(_size, graphs_of(node))) for node in graph.node)


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """Returns a copy of a node that takes values under their new names, also within its graphs."""
    copied = type(node)()
    copied.CopyFrom(node)
    for at, name in enumerate(node.input):
        copied.input[at] = names.get(name, name)
    for graph in graphs_of(copied):
        _rename_seen(graph, names)
    return copied


def _rename_seen(graph: Any, names: Mapping[str, str]) -> None:
    """Renames what a graph sees of the values around it, in place."""
    own = set(_defined(graph))
    seen = {name: new for name, new in names.items() if name not in own}
    nodes = [renamed(node, seen) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for each in graph.output:
        each.name = seen.get(each.name, each.name)


def names_in(graph: Any) -> set[str]:
    """Returns the names of all values of a graph, and of the graphs inside of its nodes."""
    inner = (names_in(each) for node in graph.node for each in graphs_of(node))
    return set(_defined(graph)).union(*inner)


def tensors_in(graph: Any) -> Iterator[str]:
    """Yields the names of the tensors that a graph holds, and the graphs inside of its nodes."""
    for tensor in graph.initializer:
        yield tensor.name
    for node in graph.node:
        if node.op_type == "Constant":
            yield from node.output
        for inner in graphs_of(node):
            yield from tensors_in(inner)


def _defined(graph: Any) -> Iterator[str]:
    for each in (*graph.input, *graph.initializer):
        yield each.name
    for node in graph.node:
        yield from node.output


def body(node: Any, name: str) -> Any:
    """Returns a graph among a node's attributes.

    Raises:
        NotImportedError: there is none.
    """
    for attribute in node.attribute:
        if attribute.name == name and attribute.HasField("g"):
            return attribute.g
    raise NotImportedError(f"it has no {name}", "export the model again")


def single(known: torch.Tensor | None, what: str) -> int:
    """Returns a number of rounds, or a condition as 0 or 1, that is known while importing.

    Raises:
        NotImportedError: it depends on secret values.
    """
    if known is None:
        raise NotImportedError(
            f"{what} depends on secret values, and so would what parties see it do", BOTH_WAYS
        )
    if known.numel() != 1:
        raise ValueError(f"{what} has {known.numel()} elements")
    return int(known.reshape(()).item())


def check_lengths(what: str, found: Sequence[Any], wanted: int) -> None:
    """Checks that a graph has as many inputs or results as its node."""
    if len(found) != wanted:
        raise ValueError(f"{what} has {len(found)} values where {wanted} are wanted")


def check_rounds(rounds: int, name: str) -> None:
    """Refuses a loop of too many rounds."""
    if rounds > MOST_ROUNDS:
        raise NotImportedError(
            f"it would go on for more than {MOST_ROUNDS} rounds ({quoted(name)})",
            "export with fewer rounds",
        )
