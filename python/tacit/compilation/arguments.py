"""What is looked at before an operator of a program is called, though without data: PyTorch
believes some of its arguments, reads beyond its memory or makes lists of any length of them."""

import math
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tacit.compilation.allowlist import by_names
from tacit.errors import MisuseError

aten = torch.ops.aten

#: What a dtype is among the arguments of PyTorch's operators.
DTYPES = frozenset({"ScalarType", "Optional[ScalarType]"})

#: Operators that give as many tensors as a number says, or as a tensor is long.
CUTTING = frozenset({"chunk", "split", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split"})

#: Those of which the number of pieces is an argument; of nothing they make as many empty ones.
CHUNKING = frozenset({"chunk", "unsafe_chunk"})

#: Those that cut their input into steps, along one of two dimensions, and their states into layers.
RECURRENT = frozenset({"gru", "lstm"})

#: Normalisations that look at as many numbers as there are channels, whether they are there or not.
BY_CHANNELS = (
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_no_training.default,
    aten.native_batch_norm.default,
)

#: Elements along any dimension of what is cut, and so pieces, at most.
MOST_PIECES = 1 << 14


def check(node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Looks at the arguments of an operator before it is called with them; about how many tensors
    it makes.

    Raises:
        MisuseError: they are none that it may be called with.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return 1
    _check_places(node, schema)
    _check_dtypes(node, schema)
    if node.target in BY_CHANNELS:
        _check_channels(schema, args, kwargs)
    name = schema.name.removeprefix("aten::").removesuffix("_copy")
    if name in CUTTING:
        return _pieces(name, args, kwargs)
    return _steps(args) if name in RECURRENT else 1


def _check_places(node: fx.Node, schema: Any) -> None:
    """What an operator cannot do without stands at its place, where whoever goes through a program
    looks."""
    for argument in schema.arguments:
        if (
            argument.name in node.kwargs
            and not argument.kwarg_only
            and not argument.has_default_value()
        ):
            raise MisuseError(f"{argument.name} stands among its named arguments")


def _check_dtypes(node: fx.Node, schema: Any) -> None:
    """Looks whether dtypes are some: PyTorch takes numbers for them, and reads beyond its table of
    dtypes for one that stands for none, which ends the process."""
    for at, argument in enumerate(schema.arguments):
        given = node.args[at] if at < len(node.args) else node.kwargs.get(argument.name)
        if str(argument.real_type) in DTYPES and not isinstance(given, torch.dtype | None):
            raise MisuseError(f"{given!r:.80} is no dtype")


def _check_channels(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    given = by_names(schema, args, kwargs)
    x = given["input"]
    channels = x.shape[1] if isinstance(x, torch.Tensor) and x.dim() > 1 else 0
    for name in ("weight", "bias", "running_mean", "running_var"):
        held = given.get(name)
        if held is not None and not (isinstance(held, torch.Tensor) and held.shape == (channels,)):
            raise MisuseError(f"{name} is not one number for each of {channels} channels")


def _pieces(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Into how many pieces a tensor may be cut, at most."""
    lengths = [*args[0].shape] if args and isinstance(args[0], torch.Tensor) else []
    if name in CHUNKING:
        count = args[1] if len(args) > 1 else kwargs.get("chunks")
        lengths += [count] if isinstance(count, int) else []
    return _few(max(lengths, default=0))


def _steps(args: tuple[Any, ...]) -> int:
    """How many steps the layers of a recurrent network take together, at most. The states of each
    layer are looked for wherever there are some of the first kind."""
    if not args or not isinstance(args[0], torch.Tensor):
        return 1
    states = [each for each in pytree.tree_leaves(args[1:2]) if isinstance(each, torch.Tensor)]
    if len({each.shape for each in states}) > 1 and _layers(states[0]) != _layers(states[1]):
        raise MisuseError("its states are of different numbers of layers")
    steps, layers = max(args[0].shape[:2], default=1), max(map(_layers, states), default=1)
    return math.prod(_few(each) for each in (steps, layers))


def _layers(state: torch.Tensor) -> int:
    return state.shape[0] if state.dim() else 0


def _few(length: int) -> int:
    if length > MOST_PIECES:
        raise MisuseError(f"what is cut into pieces is at most {MOST_PIECES} long")
    return max(length, 1)
