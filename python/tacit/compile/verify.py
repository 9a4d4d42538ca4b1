"""The one verifier, which runs after each pass and on whatever is loaded: of every value the shape and dtype
are worked out anew by PyTorch itself, without data, and every operator is one that programs may call."""

import math
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tacit.compile.allowed import is_allowed, name_of, trains
from tacit.compile.approximating import looks_at_sides
from tacit.compile.comparing import COMPARING, DROPPING
from tacit.compile.draft import KEEPING, Draft, Interval, Value, outputs
from tacit.errors import MisuseError
from tacit.fixed import MOST_FRACTION_BITS, WORD
from tacit.sharing import MOST_DIMENSIONS, MOST_ELEMENTS


def verify(graph: fx.Graph, given: dict[str, Value]) -> None:
    """Works out all values, and leaves them at their nodes.

    Args:
        given: what each placeholder is.

    Raises:
        MisuseError: a node does not fit; the message names it.
    """
    values: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        match node.op:
            case "placeholder":
                if node.name not in given:
                    raise MisuseError(f"nothing is known of {node.name}")
                known = given[node.name]
                values[node] = torch.empty(known.shape, dtype=known.dtype, device="meta")
            case "call_function":
                values[node] = _given(node, values)
            case "output":
                break
            case _:
                raise MisuseError(f"{node.name} is no operator of a program ({node.op})")
        node.meta["value"] = pytree.tree_map(_value, values[node])
    for node in outputs(graph):
        if not isinstance(node, fx.Node) or not isinstance(values.get(node), torch.Tensor):
            raise MisuseError("a program gives tensors")


def _given(node: fx.Node, values: dict[fx.Node, Any]) -> Any:
    if not is_allowed(node.target):
        raise MisuseError(f"{node.name} calls {name_of(node.target)}, which no program may")
    if trains(node.target, node.args, node.kwargs):
        raise MisuseError(
            f"{node.name} calls {name_of(node.target)} in training mode, in which no program is"
        )
    try:
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda of: values[of])
        _check_dtypes(node)
        _check_pieces(node, args)
        result = node.target(*args, **kwargs)  # type: ignore[operator]
    except MisuseError as error:
        raise MisuseError(f"{node.name}: {error}") from None
    except Exception as error:  # Whatever PyTorch has to say of arguments that do not fit.
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise MisuseError(f"{node.name}, {name_of(node.target)}: {reason[0]}") from None
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor):
            _check_size(node.name, leaf)
    return result


#: What a dtype is among the arguments of PyTorch's operators.
DTYPES = frozenset({"ScalarType", "Optional[ScalarType]"})


def _check_dtypes(node: fx.Node) -> None:
    """Looks whether dtypes are some: PyTorch takes numbers for them, and reads beyond its table of dtypes for
    one that stands for none, which ends the process."""
    schema = getattr(node.target, "_schema", None)
    for at, argument in enumerate(schema.arguments if schema else ()):
        given = node.args[at] if at < len(node.args) else node.kwargs.get(argument.name)
        if str(argument.real_type) in DTYPES and not isinstance(given, torch.dtype | None):
            raise MisuseError(f"{given!r:.80} is no dtype")


#: Operators that give as many tensors as a number says, or as a tensor is long.
CUTTING = frozenset({"chunk", "split", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split"})

#: Those that cut their input into steps, along one of two dimensions, and their states into layers.
RECURRENT = frozenset({"gru", "lstm"})

#: Elements along any dimension of what is cut, and so pieces, at most.
MOST_PIECES = 1 << 14


def _check_pieces(node: fx.Node, args: tuple[Any, ...]) -> None:
    """Looks into how many pieces a tensor may be cut, before it is."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not args or not isinstance(args[0], torch.Tensor):
        return
    name = schema.name.removeprefix("aten::").removesuffix("_copy")
    lengths = list(args[0].shape) if name in CUTTING else []
    if name in RECURRENT:
        states = [each for each in pytree.tree_leaves(args[1:2]) if isinstance(each, torch.Tensor)]
        lengths = [*args[0].shape[:2], *(each.shape[0] for each in states if each.dim())]
    if max(lengths, default=0) > MOST_PIECES:
        raise MisuseError(f"what is cut into pieces is at most {MOST_PIECES} long")


def _check_size(name: str, tensor: torch.Tensor) -> None:
    if tensor.dim() > MOST_DIMENSIONS or tensor.numel() > MOST_ELEMENTS:
        raise MisuseError(
            f"{name} has shape {tuple(tensor.shape)}; at most {MOST_ELEMENTS} elements are computed at once"
        )


def _value(leaf: Any) -> Any:
    return Value(tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf


def verify_draft(draft: Draft) -> None:
    """The same of a draft; and what is known of it fits: scales, promises, and what was chosen for its nodes,
    which either all or none of them have."""
    held = {**draft.examples, **draft.weights, **draft.constants}
    given = {name: Value(tuple(held[name].shape), _dtype(draft, name, held[name])) for name in held}
    draft.graph.lint()
    verify(draft.graph, given)
    _check_scales(draft)
    chosen = [node for node in draft.graph.nodes if node.op == "call_function" and "width" in node.meta]
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
            raise MisuseError(f"{min(strange)} has a scale or an interval, and is none of the draft's")
    for name, bits in {"the session": draft.scale.bits, **draft.weight_scales}.items():
        if not 1 <= bits <= MOST_FRACTION_BITS:
            raise MisuseError(f"{name} has {bits} fraction bits, of 1 to {MOST_FRACTION_BITS}")
    for name, promised in draft.intervals.items():
        _check_interval(name, promised)


def _check_chosen(draft: Draft, node: fx.Node) -> None:
    """What the passes after the graph's own have left at a node."""
    if missing := {"interval", "width", "guard"} - node.meta.keys():
        raise MisuseError(f"{node.name} has a width and no {min(missing)}")
    _check_interval(node.name, node.meta["interval"])
    width, kept, dropped = (node.meta.get(name) for name in ("width", "scale", "dropped"))
    if width is not None and not (0 < width <= WORD and (node.target in COMPARING or looks_at_sides(node))):
        raise MisuseError(f"{node.name} compares {width} bits")
    if node.meta["guard"] is not None and node.target not in COMPARING:
        raise MisuseError(f"{node.name} is guarded, and compares nothing")
    if kept and not (node.target in KEEPING and draft.scale.bits < kept <= MOST_FRACTION_BITS):
        raise MisuseError(f"{node.name} keeps {kept} fraction bits")
    if dropped and node.target not in DROPPING:
        raise MisuseError(f"{node.name} drops {dropped} low bits")


def _check_interval(name: str, interval: Interval | None) -> None:
    if interval is not None and not (all(map(math.isfinite, interval)) and interval[0] <= interval[1]):
        raise MisuseError(f"{name} lies between {interval[0]} and {interval[1]}, which is nowhere")


def _dtype(draft: Draft, name: str, value: torch.Tensor) -> torch.dtype:
    """Weights that are float64 for their owner are float32 in the program."""
    return torch.float32 if name in draft.weights and value.is_floating_point() else value.dtype
