"""Checks of an operator's arguments before it is called, without data.

PyTorch trusts some of its arguments: for wrong ones it reads beyond its memory, or makes lists of
any length."""

import math
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tacit.compilation.allowlist import by_names
from tacit.errors import MisuseError

aten = torch.ops.aten

#: Types that a dtype has in the schemas of PyTorch's operators.
DTYPES = frozenset({"ScalarType", "Optional[ScalarType]"})

#: Operators that return a list of tensors, whose length is an argument or a size of their input.
CUTTING = frozenset({"chunk", "split", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split"})

#: Operators that take the number of pieces as an argument. They cut even an empty tensor into that
#: number of empty pieces.
CHUNKING = frozenset({"chunk", "unsafe_chunk"})

#: Recurrent operators: they cut their input into steps, along one of two dimensions, and their
#: states into layers.
RECURRENT = frozenset({"gru", "lstm"})

#: Normalisations that read one number per channel from their weights and statistics, without
#: checking that these are long enough.
BY_CHANNELS = (
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_no_training.default,
    aten.native_batch_norm.default,
)

#: Greatest size along any dimension of a tensor that is cut, and so the greatest number of pieces.
MOST_PIECES = 1 << 14


def check(node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Checks the arguments of an operator before it is called with them.

    Returns:
        About how many tensors the operator makes.

    Raises:
        MisuseError: the operator may not be called with these arguments.
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
    """Checks that required arguments are positional, where the readers of a program look for
    them."""
    for argument in schema.arguments:
        if (
            argument.name in node.kwargs
            and not argument.kwarg_only
            and not argument.has_default_value()
        ):
            raise MisuseError(f"{argument.name} is a named argument, and must be a positional one")


def _check_dtypes(node: fx.Node, schema: Any) -> None:
    """Checks that arguments of the type dtype are dtypes.

    PyTorch also takes integers for them. For an integer that stands for no dtype, PyTorch reads
    beyond its table of dtypes, which ends the process."""
    for at, argument in enumerate(schema.arguments):
        given = node.args[at] if at < len(node.args) else node.kwargs.get(argument.name)
        if str(argument.real_type) in DTYPES and not isinstance(given, torch.dtype | None):
            raise MisuseError(f"{given!r:.80} is not a dtype")


def _check_channels(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    given = by_names(schema, args, kwargs)
    x = given["input"]
    channels = x.shape[1] if isinstance(x, torch.Tensor) and x.dim() > 1 else 0
    for name in ("weight", "bias", "running_mean", "running_var"):
        held = given.get(name)
        if held is not None and not (isinstance(held, torch.Tensor) and held.shape == (channels,)):
            raise MisuseError(f"{name} is not one number for each of {channels} channels")


def _pieces(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Returns a bound on the number of pieces that an operator cuts a tensor into."""
    lengths = [*args[0].shape] if args and isinstance(args[0], torch.Tensor) else []
    if name in CHUNKING:
        count = args[1] if len(args) > 1 else kwargs.get("chunks")
        lengths += [count] if isinstance(count, int) else []
    return _few(max(lengths, default=0))


def _steps(args: tuple[Any, ...]) -> int:
    """Returns a bound on the number of steps of all layers of a recurrent network together.

    PyTorch counts the layers by the first kind of state, and looks for the other kind in each."""
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
        raise MisuseError(f"a dimension that is cut into pieces is at most {MOST_PIECES} long")
    return max(length, 1)
