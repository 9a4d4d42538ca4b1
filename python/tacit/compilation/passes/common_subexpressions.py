"""Requires: normalised. Ensures: no two nodes compute the same of the same. Saves: one of two equal
comparisons, products and openings, as of a skip path that repeats an activation."""

from typing import Any

import torch

from tacit.compilation.graph import Draft, Node


def common_subexpressions(draft: Draft) -> None:
    """Carries the pass out."""
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
    # 1, 1.0 and True are equal, and 0.0 and −0.0, and are not the same.
    return (
        (type(argument), repr(argument))
        if isinstance(argument, int | float | torch.dtype)
        else argument
    )
