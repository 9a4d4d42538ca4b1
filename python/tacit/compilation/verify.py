"""Verifier of graphs, which runs after each pass and on every loaded program.

PyTorch itself computes the shape and dtype of every value anew, without data. Every operator must
be one that programs may call."""

import math
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tacit.compilation.allowlist import is_allowed, name_of, trains
from tacit.compilation.approximating import compares_with_cutoffs
from tacit.compilation.arguments import check
from tacit.compilation.comparing import COMPARING, DROPPING
from tacit.compilation.graph import KEEPING, NARROWING, Draft, Interval, Value, outputs
from tacit.errors import MisuseError, reason
from tacit.fixed import MOST_FRACTION_BITS, WORD
from tacit.sharing import MOST_DIMENSIONS, MOST_ELEMENTS

#: Greatest number of tensors that all operators together give, and of steps that they take: each
#: takes memory and time, although it has no data.
MOST_VALUES = 1 << 18


def verify(graph: fx.Graph, given: dict[str, Value]) -> None:
    """Computes the shape and dtype of all values and stores them at their nodes.

    Args:
        given: shape and dtype of each placeholder.

    Raises:
        MisuseError: a node does not fit; the message names it.
    """
    values: dict[fx.Node, Any] = {}
    count = 0
    for node in graph.nodes:
        match node.op:
            case "placeholder":
                if node.name not in given:
                    raise MisuseError(f"nothing is known of {node.name}")
                known = given[node.name]
                values[node] = torch.empty(known.shape, dtype=known.dtype, device="meta")
            case "call_function":
                values[node], made = _given(node, values)
                if (count := count + made) > MOST_VALUES:
                    raise MisuseError(
                        f"{node.name} is one too many: a program has {MOST_VALUES} tensors and "
                        "steps at most; compile parts of the model, one after another"
                    )
            case "output":
                break
            case _:
                raise MisuseError(f"{node.name} is not an operator of a program ({node.op})")
        node.meta["value"] = pytree.tree_map(_value, values[node])
    for node in outputs(graph):
        if not isinstance(node, fx.Node) or not isinstance(values.get(node), torch.Tensor):
            raise MisuseError("the outputs of a program must be tensors")


def _given(node: fx.Node, values: dict[fx.Node, Any]) -> tuple[Any, int]:
    """Returns what a node gives, and about how many tensors it took to compute it."""
    if not is_allowed(node.target):
        raise MisuseError(f"{node.name} calls {name_of(node.target)}, which no program may call")
    if trains(node.target, node.args, node.kwargs):
        raise MisuseError(
            f"{node.name} calls {name_of(node.target)} in training mode, in which no program runs"
        )
    try:
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda of: values[of])
        pieces = check(node, args, kwargs)
        result = node.target(*args, **kwargs)  # type: ignore[operator]
    except MisuseError as error:
        raise MisuseError(f"{node.name}: {error}") from None
    except Exception as error:  # PyTorch's errors about arguments that do not fit.
        raise MisuseError(f"{node.name}, {name_of(node.target)}: {reason(error)}") from None
    leaves = pytree.tree_leaves(result)
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            _check_size(node.name, leaf)
    return result, max(pieces, len(leaves))


def _check_size(name: str, tensor: torch.Tensor) -> None:
    if tensor.dim() > MOST_DIMENSIONS or tensor.numel() > MOST_ELEMENTS:
        raise MisuseError(
            f"{name} has shape {tuple(tensor.shape)}; at most {MOST_ELEMENTS} elements are "
            f"computed at once"
        )


def _value(leaf: Any) -> Any:
    return Value(tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf


def verify_draft(draft: Draft) -> None:
    """Verifies a draft: its graph, and what is known of it.

    Scales and promised intervals must fit. Either all nodes or none have what the later passes
    choose."""
    held = {**draft.examples, **draft.weights, **draft.constants}
    given = {name: Value(tuple(held[name].shape), _dtype(draft, name, held[name])) for name in held}
    draft.graph.lint()
    verify(draft.graph, given)
    _check_scales(draft)
    chosen = [
        node for node in draft.graph.nodes if node.op == "call_function" and "width" in node.meta
    ]
    for node in chosen:
        _check_chosen(draft, node)
    if chosen and len(chosen) < sum(node.op == "call_function" for node in draft.graph.nodes):
        raise MisuseError("widths were chosen for some nodes and not for all")


def _check_scales(draft: Draft) -> None:
    for known, held in (
        (draft.weight_scales, draft.weights),
        (draft.reaches, draft.weights),
        (draft.intervals, draft.examples),
    ):
        if strange := set(known) - set(held):
            raise MisuseError(f"{min(strange)} has a scale or an interval, but is not in the draft")
    for name, bits in {"the session": draft.scale.bits, **draft.weight_scales}.items():
        if not 1 <= bits <= MOST_FRACTION_BITS:
            raise MisuseError(f"{name} has {bits} fraction bits, of 1 to {MOST_FRACTION_BITS}")
    for name, promised in draft.intervals.items():
        _check_interval(name, promised)


def _check_chosen(draft: Draft, node: fx.Node) -> None:
    """Checks what the passes after those on the graph have stored at a node."""
    if missing := {"interval", "width", "guard"} - node.meta.keys():
        raise MisuseError(f"{node.name} has a width and no {min(missing)}")
    _check_interval(node.name, node.meta["interval"])
    width, kept, dropped = (node.meta.get(name) for name in ("width", "scale", "dropped"))
    if width is not None and not (
        0 < width <= WORD and (node.target in COMPARING or compares_with_cutoffs(node))
    ):
        raise MisuseError(f"{node.name} compares {width} bits")
    if node.meta["guard"] is not None and node.target not in COMPARING:
        raise MisuseError(f"{node.name} is guarded, and compares nothing")
    if kept and not (node.target in KEEPING and draft.scale.bits < kept <= MOST_FRACTION_BITS):
        raise MisuseError(f"{node.name} keeps {kept} fraction bits")
    if node.meta.get("narrow") and (kept or node.target not in NARROWING):
        raise MisuseError(f"{node.name} has a narrow product, but is not a layer that is truncated")
    if dropped and node.target not in DROPPING:
        raise MisuseError(f"{node.name} drops {dropped} low bits")


def _check_interval(name: str, interval: Interval | None) -> None:
    if interval is not None and not (
        all(map(math.isfinite, interval)) and interval[0] <= interval[1]
    ):
        raise MisuseError(
            f"{name} has an interval from {interval[0]} to {interval[1]}, which is empty or "
            "infinite"
        )


def _dtype(draft: Draft, name: str, value: torch.Tensor) -> torch.dtype:
    """Returns the dtype of a value in the program: weights that are float64 for their owner are
    float32 there."""
    return torch.float32 if name in draft.weights and value.is_floating_point() else value.dtype
