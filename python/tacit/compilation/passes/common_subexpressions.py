"""Eliminates common subexpressions.

Requires: a normalised draft. Ensures: no two nodes call the same operator on the same arguments.
Saves: one of two equal comparisons, products or openings, such as those of a skip path that repeats
an activation."""

from typing import Any

import torch

from tacit.compilation.graph import Draft, Node


def common_subexpressions(draft: Draft) -> None:
    """Eliminates common subexpressions, in place."""
    known: dict[Any, Node] = {}
    for node in list(draft.graph.nodes):
        if node.op != "call_function":
            continue
        first = known.setdefault(_key(node), node)
        if first is not node:
            node.replace_all_uses_with(first)
            draft.graph.erase_node(node)


def _key(node: Node) -> Any:
    return node.target, _hashable(node.args), _hashable(node.kwargs)


def _hashable(argument: Any) -> Any:
    if isinstance(argument, dict):
        return tuple((name, _hashable(value)) for name, value in sorted(argument.items()))
    if isinstance(argument, tuple | list):
        return tuple(map(_hashable, argument))
    # 1, 1.0 and True are equal, and so are 0.0 and −0.0, but they are not the same argument.
    return (
        (type(argument), repr(argument))
        if isinstance(argument, int | float | torch.dtype)
        else argument
    )
