"""File format of a program, ``model.tacit``: canonical JSON.

There is exactly one way to write a program, so programs of the same meaning have the same hash. A
file is bounded and checked before it is trusted, and holds no code.

Arguments of operators are JSON numbers, booleans, ``null``, strings and lists. ``{"of": NAME}``
stands for the result of another node, ``{"dtype": NAME}`` for a dtype, and ``{"number": "inf"}``
for a number that JSON cannot express."""

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

import torch
from torch import fx

from tacit import checksums, fixed
from tacit.buffers import bytes_in_order
from tacit.compilation.allowlist import PLACES, by_name, name_of
from tacit.compilation.approximating import Choice, compares_with_cutoffs, functions_of
from tacit.compilation.comparing import COMPARING, DROPPING, RECTIFYING, Guard
from tacit.compilation.graph import KEEPING, NARROWING
from tacit.compilation.signature import MOST_EXPONENT
from tacit.errors import MisuseError, printable
from tacit.fixed import DTYPES, Scale
from tacit.operators.numerics.approximation.fits import FITS, USUAL
from tacit.sharing import MOST_DIMENSIONS, MOST_ELEMENTS

#: Format name and version that a file states.
FORMAT, VERSION = "tacit-program", 9

#: Kind of the checksum.
KIND = "program"

#: Remedy for a file that tacit compile cannot have written.
DAMAGED = (
    "the file was damaged or changed: get the file that tacit compile wrote from the party that "
    "compiled the model"
)

#: Greatest size of a file in bytes, and greatest number of nodes of a program.
MOST_BYTES, MOST_NODES = 1 << 28, 1 << 16

#: Greatest number of bytes that are not data of constants: in memory they take up to thirty times
#: as many. A node has about two hundred.
MOST_BARE = 512 * MOST_NODES

#: Greatest magnitude of an interval's end: beyond all numbers that have an encoding.
MOST_NUMBER = 2.0**64

#: Least number of bits of a guarded comparison.
LEAST_GUARDED = 4

#: Greatest number of characters that are shown of the name of an input or a layer.
MOST_SHOWN = 500

#: Greatest depth of nested lists, and greatest length of each.
MOST_NESTED, MOST_LISTED = 4, 1 << 14

#: Ending that names may not have: PyTorch numbers names by the digits at their end, and Python
#: refuses to parse so many.
_NUMBERED = re.compile(r"[0-9]{600}\Z")

#: Data of a constant. Nothing else in a file is long, and base64 has no character that JSON treats
#: specially.
_DATA = re.compile(rb'"data":"([A-Za-z0-9+/=]*)"')

_INFINITE = {"inf": math.inf, "-inf": -math.inf}


def canonical(content: Mapping[str, Any]) -> bytes:
    """Writes a program in its one canonical form, with a checksum over all of it."""
    whole = {**content, "checksum": checksums.field(KIND)}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return checksums.filled(text.encode("ascii"), KIND)


def read(text: bytes, what: str) -> dict[str, Any]:
    """Reads the content of a file of the version that this tacit supports.

    Raises:
        MisuseError: the file is something else.
    """
    if len(text) > MOST_BYTES:
        raise MisuseError(
            f"{what} is larger than the {MOST_BYTES} bytes that a program has at most: compile "
            f"parts of the "
            "model, or have its large public constants as weights"
        )
    if _bare(text) > MOST_BARE:
        raise MisuseError(
            f"{what} has more than the {MOST_BARE} bytes that a program has at most beside its "
            f"public "
            "constants: compile parts of the model, one after another"
        )
    try:
        # A text with other characters would take four bytes for each.
        content = json.loads(text.decode("ascii"), parse_constant=_refuse_number)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        damaged = f"; {DAMAGED}" if checksums.wrong(text, KIND) == checksums.DAMAGED else ""
        raise MisuseError(f"{what} is not a compiled program: tacit compile makes one{damaged}")
    if content.get("version") != VERSION:
        raise MisuseError(
            f"{what} has version {content.get('version')!r:.80} of the program format, and this "
            f"tacit reads version {VERSION}: compile the model again, with the tacit that runs it"
        )
    return content


def _bare(text: bytes) -> int:
    """Counts the bytes that are not data of constants. Constants beyond the greatest possible
    number of them count too."""
    constants = islice(_DATA.finditer(text), MOST_NODES)
    return len(text) - sum(each.end(1) - each.start(1) for each in constants)


# Tensors
# ----------------------------------------------------------------------------


def _refuse_number(text: str) -> None:
    raise ValueError(text)


def dtype_name(dtype: torch.dtype) -> str:
    """Returns the name of a dtype as programs write it."""
    return str(dtype).removeprefix("torch.")


def dtype_of(name: Any) -> torch.dtype:
    """Returns the dtype with a name."""
    if not isinstance(name, str) or name not in DTYPES:
        raise MisuseError(f"{name!r} is not a dtype that programs have")
    return DTYPES[name]


def shown_name(name: str) -> str:
    """Returns the name of an input or a layer as programs write it.

    It contains no characters that would disturb the text around it, so any party can be shown
    it."""
    return printable(name, MOST_SHOWN)


def is_name(entry: Any) -> bool:
    """Returns whether an entry can be the name of a node."""
    return (
        isinstance(entry, str)
        and entry.isidentifier()
        and entry.isascii()
        and not _NUMBERED.search(entry)
    )


def check_shown(name: str) -> None:
    """Checks that a name in a file is one that ``shown_name`` would write."""
    if name != shown_name(name):
        raise MisuseError(
            f"an input or a layer has a name that could not be shown, such as "
            f"{printable(name, 40)!r}"
        )


def shape_of(sizes: Any) -> tuple[int, ...]:
    """Checks that sizes can be a shape and returns the shape."""
    is_shape = isinstance(sizes, list) and len(sizes) <= MOST_DIMENSIONS
    if not is_shape or not all(type(size) is int and 0 <= size <= MOST_ELEMENTS for size in sizes):
        raise MisuseError(
            f"a shape is a list of at most {MOST_DIMENSIONS} whole sizes, each up to "
            f"{MOST_ELEMENTS}; "
            "compile the model for the shapes that it will run on"
        )
    if math.prod(max(size, 1) for size in sizes) > MOST_ELEMENTS:
        raise MisuseError(f"a tensor has {MOST_ELEMENTS} elements at most")
    return tuple(sizes)


def tensor_text(value: torch.Tensor) -> dict[str, Any]:
    """Encodes a public constant."""
    data = bytes_in_order(value).tobytes()
    return {
        "dtype": dtype_name(value.dtype),
        "shape": list(value.shape),
        "data": base64.b64encode(data).decode("ascii"),
    }


def tensor_of(entry: Any) -> torch.Tensor:
    """Decodes a constant that ``tensor_text`` encoded."""
    match entry:
        case {"dtype": name, "shape": sizes, "data": str(text), **rest} if not rest:
            dtype, shape = dtype_of(name), shape_of(sizes)
        case _:
            raise MisuseError("a constant has dtype, shape and data")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise MisuseError("a constant's data are not base64") from None
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise MisuseError(
            "the data of a constant must have the size that its shape and dtype require"
        )
    if dtype == torch.bool and data.strip(b"\x00\x01"):
        raise MisuseError("a boolean is 0 or 1")
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)


# Nodes
# ----------------------------------------------------------------------------


def node_text(node: fx.Node) -> dict[str, Any]:
    """Encodes a call of an operator."""
    return {
        "name": node.name,
        "operator": name_of(node.target),
        "arguments": [_argument_text(each) for each in node.args],
        "named": {name: _argument_text(value) for name, value in node.kwargs.items()},
        "layer": shown_name(node.meta.get("layer", "")),
        "interval": list(node.meta["interval"]) if node.meta.get("interval") else None,
        "width": node.meta.get("width"),
        "guard": list(node.meta["guard"]) if node.meta.get("guard") else None,
        "narrow": node.meta.get("narrow") or 0,
        "dropped": node.meta.get("dropped") or 0,
        "fits": dict(node.meta.get("fits") or {}),
        "scale": node.meta.get("scale"),
    }


def _argument_text(argument: Any) -> Any:
    match argument:
        case fx.Node():
            return {"of": argument.name}
        case torch.dtype():
            return {"dtype": dtype_name(argument)}
        case float() if not math.isfinite(argument):
            if math.isnan(argument):
                raise MisuseError("a program holds no NaN")
            return {"number": str(argument)}
        case None | bool() | int() | float() | str():
            return argument
        case tuple() | list():
            return [_argument_text(each) for each in argument]
    raise MisuseError(f"{type(argument).__name__} is nothing that an operator of a program takes")


def add_node(graph: fx.Graph, entry: Any, nodes: dict[str, fx.Node], scale: Scale) -> fx.Node:
    """Adds a call of an operator to a graph.

    Its arguments may be results of earlier nodes. ``scale`` is that of the session in which the
    program runs.

    Raises:
        MisuseError: the entry is not a valid call.
    """
    match entry:
        case {
            "name": str(name),
            "operator": str(operator),
            "arguments": list(arguments),
            "named": dict(named),
            "layer": str(layer),
            "interval": interval,
            "width": width,
            "guard": guard,
            "narrow": narrow,
            "dropped": dropped,
            "fits": fits,
            "scale": kept,
            **rest,
        } if not rest and is_name(name) and name not in nodes:
            pass
        case _:
            raise MisuseError("a node needs a name of its own, an operator and its arguments")
    check_shown(layer)
    target = by_name().get(operator)
    if target is None:
        raise MisuseError(f"{name} calls {operator[:80]!r}, which no program may call")
    if placed := PLACES & named.keys():
        raise MisuseError(f"{name} sets {min(placed)}, which no program does")
    try:
        args = tuple(_argument(each, nodes) for each in arguments)
        kwargs = {key: _argument(value, nodes) for key, value in named.items()}
    except MisuseError as error:
        raise MisuseError(f"{name}: {error}") from None
    node = graph.create_node("call_function", target, args, kwargs, name)
    if node.name != name:
        raise MisuseError(f"{name[:80]!r} cannot be the name of a node")
    node.meta = {"layer": layer, "interval": interval_of(interval), "width": width}
    node.meta["guard"] = _guard_of(name, target, guard, scale)
    node.meta["fits"] = _fits_of(node, fits)
    if width is not None and not (
        (target in COMPARING or compares_with_cutoffs(node)) and _is_width(width)
    ):
        raise MisuseError(f"{name} compares {width!r} bits")
    node.meta["narrow"] = _narrow_of(node, narrow, kept)
    node.meta["dropped"] = _dropped_of(node, dropped, scale)
    node.meta["scale"] = _kept_of(node, kept, scale)
    return node


def _is_width(entry: Any) -> bool:
    return type(entry) is int and 8 <= entry <= fixed.WORD


def _guard_of(name: str, target: Any, entry: Any, scale: Scale) -> Guard | None:
    """Returns the width of a comparison in runs with guards, or ``None``.

    The operator must be one that may be guarded, and a word must have that number of bits.

    Raises:
        MisuseError: the entry is no such width.
    """
    match entry:
        case None:
            return None
        case [int(width), int(reach)] if _is_width(width) and type(reach) is int:
            guard, own = Guard(width, reach), fixed.width(width, scale)
            if reach == 0 and target in COMPARING:
                return guard
            if (
                target in RECTIFYING
                and own >= LEAST_GUARDED
                and 2 <= reach <= fixed.WORD - (own - 2)
            ):
                return guard
    raise MisuseError(f"{name} guards {entry!r}")


def _dropped_of(node: fx.Node, entry: Any, scale: Scale) -> int:
    """Returns the number of low bits that a ReLU does not compare. Some bits of each of its widths
    must remain.

    Raises:
        MisuseError: no bits remain, or the node is not a ReLU.
    """
    if type(entry) is int and entry >= 0:
        widths = [node.meta["width"] or fixed.WORD, *(node.meta["guard"] or ())[:1]]
        left = min(fixed.width(width, scale) for width in widths) - entry
        if entry == 0 or (node.target in DROPPING and left >= fixed.LEAST_COMPARED):
            return entry
    raise MisuseError(f"{node.name} drops {entry!r} low bits")


def _narrow_of(node: fx.Node, entry: Any, kept: Any) -> int:
    """Returns the fraction bits of a layer's narrow product, or 0.

    Raises:
        MisuseError: the number is out of range, or the node is not a layer that is truncated.
    """
    is_layer = node.target in NARROWING and kept is None
    if type(entry) is int and 0 <= entry <= (fixed.MOST_IN_PRODUCT if is_layer else 0):
        return entry
    raise MisuseError(f"{node.name} has {entry!r} for the fraction bits of a narrow product")


def _fits_of(node: fx.Node, entry: Any) -> Choice:
    """Returns the chosen series of an operator's functions where they are not the usual ones.

    Raises:
        MisuseError: a function has no such series.
    """
    if not isinstance(entry, dict) or not entry.keys() <= set(functions_of(node)):
        raise MisuseError(
            f"{node.name} has no functions that could have {entry!r:.80} as their series"
        )
    for function, key in entry.items():
        if not isinstance(key, str) or key == USUAL or key not in FITS[function]:
            raise MisuseError(
                f"{node.name} chooses for {function} the series {key!r:.80}, which does not exist"
            )
    return entry


def _kept_of(node: fx.Node, entry: Any, scale: Scale) -> int | None:
    """Returns the fraction bits of a layer's result that is not truncated, or ``None``.

    They are more than those of the session.

    Raises:
        MisuseError: the number is out of range, or the node is not such a layer.
    """
    if entry is None:
        return None
    if (
        type(entry) is int
        and node.target in KEEPING
        and scale.bits < entry <= fixed.MOST_FRACTION_BITS
    ):
        return entry
    raise MisuseError(f"{node.name} keeps {entry!r} fraction bits")


def interval_of(entry: Any) -> tuple[float, float] | None:
    """Decodes an interval, or ``None``."""
    if entry is None:
        return None
    match entry:
        case [int() | float() as low, int() | float() as high] if (
            -MOST_NUMBER <= low <= high <= MOST_NUMBER
        ):
            return float(low), float(high)
    raise MisuseError(
        "an interval is a low and a high end, the low one first, of magnitude 2^64 at most"
    )


def exponents_of(entry: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Decodes the exponents by which the owner of an input scales its columns."""
    fits = isinstance(entry, list) and len(entry) in (0, *shape[-1:])
    if not fits or not all(type(each) is int and abs(each) <= MOST_EXPONENT for each in entry):
        raise MisuseError(
            f"an input has an exponent for each column, of magnitude {MOST_EXPONENT} at most, or "
            "none"
        )
    return tuple(entry)


def _argument(entry: Any, nodes: dict[str, fx.Node], depth: int = 0) -> Any:
    match entry:
        case {"of": str(name), **rest} if not rest:
            if name not in nodes:
                raise MisuseError(
                    f"it takes {name[:80]!r}, which no earlier node gives: nodes form a cycle or "
                    "are out of order"
                )
            return nodes[name]
        case {"dtype": name, **rest} if not rest:
            return dtype_of(name)
        case {"number": str(name), **rest} if not rest and name in _INFINITE:
            return _INFINITE[name]
        case None | bool() | float() | str():
            return entry
        case int() if -(2**63) <= entry < 2**63:
            return entry
        case list() if depth < MOST_NESTED and len(entry) <= MOST_LISTED:
            return [_argument(each, nodes, depth + 1) for each in entry]
    raise MisuseError(
        f"an argument is a number, a list, or what another node gives, not {entry!r:.80}"
    )
