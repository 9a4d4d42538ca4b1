"""Conversions between a model's state and one row of all its numbers.

Clients submit such a row, and servers begin from one.
"""

import json
from collections.abc import Mapping

import torch

from tacit import _core
from tacit.errors import MisuseError
from tacit.federated.rounds.client_update import Change
from tacit.federated.rounds.selection import EVERYTHING, Selection

#: Hexadecimal digits that stand for a tensor's name and shape, and the most tensors of a model that
#: has such a layout.
DIGITS, MOST_TENSORS = 8, 4096

#: What a client may submit: all parameters in a row, or a module or its state. The floating-point
#: tensors of a state are taken in their order. Integers without dimensions are left out: BatchNorm
#: counts its steps by them.
State = torch.Tensor | torch.nn.Module | Mapping[str, torch.Tensor]


def change_of(
    state: State, model: torch.Tensor, layout: str = "", travelling: Selection = EVERYTHING
) -> Change:
    """Returns the change from a model to a trained state.

    Args:
        state: the trained state. A row has only the values that travel.
        model: the model's numbers that travel, in a row.
        layout: stands for the names and shapes of the tensors that travel, see :func:`layout_of`;
            empty if they are not known.
        travelling: which tensors these are.

    Raises:
        MisuseError: the number of values differs; a value is not a real floating-point number;
            names or shapes differ, of which the error names the first; or a pattern matches no
            tensor.
    """
    found = named(state, travelling)
    change = Change(found, model)
    if layout and not isinstance(state, torch.Tensor):
        _check_layout(found, layout)
    if len(change) != len(model):
        raise MisuseError(
            f"a state of {len(change)} values; the model of this round has {len(model)}"
        )
    return change


def layout_of(state: State, travelling: Selection = EVERYTHING) -> str:
    """Returns a text that stands for the names and shapes of the tensors that travel, in their
    order.

    It has ``DIGITS`` digits of a hash for each tensor. That detects mistakes. It is no protection
    against someone who looks for a name with the same hash. It is empty for a row, which has no
    names.

    Raises:
        MisuseError: there are too many tensors; or as :func:`named` does.
    """
    if isinstance(state, torch.Tensor):
        return ""
    found = named(state, travelling)
    if len(found) > MOST_TENSORS:
        raise MisuseError(
            f"a model of {len(found)} tensors; at most {MOST_TENSORS} are compared by name: give "
            f"all its values in a row"
        )
    return _layout(found)


def _layout(found: Mapping[str, torch.Tensor]) -> str:
    return "".join(_digits(name, value) for name, value in found.items())


def _digits(name: str, value: torch.Tensor) -> str:
    return _core.blake3(json.dumps([name, list(value.shape)]).encode())[:DIGITS]


def _check_layout(found: Mapping[str, torch.Tensor], layout: str) -> None:
    expected = [layout[at : at + DIGITS] for at in range(0, len(layout), DIGITS)]
    remedy = (
        "hand in the state of the module that the servers' model is of, or, if its values are the "
        "same in this order, all of them in a row"
    )
    for place, (name, value) in enumerate(found.items()):
        if place >= len(expected) or _digits(name, value) != expected[place]:
            raise MisuseError(
                f"{name} of shape {list(value.shape)}, tensor {place} of the state, has another "
                f"name, shape or place in the model of this round: {remedy}"
            )
    if len(found) < len(expected):
        raise MisuseError(
            f"a state of {len(found)} tensors; the model of this round has {len(expected)}: "
            f"{remedy}"
        )


def in_form(
    row: torch.Tensor, form: State, travelling: Selection = EVERYTHING
) -> torch.Tensor | dict[str, torch.Tensor]:
    """Returns the values of a row in the form of a state: under its names and in its shapes.

    Tensors that do not travel are those of ``form``. A row, if ``form`` is one.
    """
    if isinstance(form, torch.Tensor):
        return row
    places = named(form, travelling)
    made, begin = {}, 0
    for name, value in places.items():
        made[name] = row[begin : begin + value.numel()].reshape(value.shape).to(value.dtype)
        begin += value.numel()
    every = form if isinstance(form, Mapping) else made
    return {name: made.get(name, value) for name, value in every.items()}


def load(
    row: torch.Tensor,
    module: torch.nn.Module,
    layout: str = "",
    travelling: Selection = EVERYTHING,
) -> None:
    """Writes the values of a row into those tensors of a module that travel.

    Args:
        row: the values.
        module: its parameters get them; or the floating-point tensors of its ``state_dict()``, if
            servers began from one with buffers. They may lie on any device.
        layout: as in :func:`change_of`.
        travelling: which tensors these are.

    Raises:
        MisuseError: the module is not of the model that the values are of; a pattern matches none
            of its names; or a tensor that travels shares memory with one that does not.
    """
    places = _floating(module, travelling)
    fits = _layout(places) == layout if layout else _size(places) == len(row)
    if not fits:
        places = _floating(module.state_dict(), travelling)
    if layout:
        _check_layout(places, layout)
    if _size(places) != len(row):
        raise MisuseError(
            f"a module of {_size(places)} values that travel; the model of this round has "
            f"{len(row)}"
        )
    begin = 0
    with torch.no_grad():
        for value in places.values():
            value.copy_(row[begin : begin + value.numel()].reshape(value.shape))
            begin += value.numel()


def _floating(
    state: torch.nn.Module | Mapping[str, torch.Tensor], travelling: Selection
) -> dict[str, torch.Tensor]:
    """Returns the tensors of floating-point values that travel, wherever they lie."""
    return {
        name: value
        for name, value in _entries(state, travelling).items()
        if travelling.takes(name) and isinstance(value, torch.Tensor) and value.is_floating_point()
    }


def _size(found: Mapping[str, torch.Tensor]) -> int:
    return sum(value.numel() for value in found.values())


def named(state: State, travelling: Selection = EVERYTHING) -> dict[str, torch.Tensor]:
    """Returns the tensors of floating-point values that travel by name, in their order.

    Of a tensor that does not travel, nothing is asked. A row has no names, and travels.

    Raises:
        MisuseError: the state holds something else; the error names it and says why it is refused.
            Or a pattern matches none of the names that the state has; for a module these include
            the names of its ``state_dict()``. Or a tensor that travels shares memory with one that
            does not.
    """
    found = {}
    for name, value in _entries(state, travelling).items():
        if not isinstance(state, torch.Tensor) and not travelling.takes(name):
            continue
        if not isinstance(value, torch.Tensor):
            raise MisuseError(f"{name} is of type {type(value).__name__}; a state holds tensors")
        if not _is_count(value) or isinstance(state, torch.Tensor):
            _check_tensor(name, value)
            found[name] = value
    return found


def _entries(state: State, travelling: Selection) -> Mapping[str, object]:
    """Returns what a state has by name: of a module its parameters, whose names patterns fit."""
    if isinstance(state, torch.Tensor):
        return {"the vector": state}
    if isinstance(state, torch.nn.Module):
        entries: Mapping[str, object] = dict(state.named_parameters())
        every: Mapping[str, object] = {
            **dict(state.named_parameters(remove_duplicate=False)),
            **state.state_dict(),
        }
    elif isinstance(state, Mapping):
        entries = every = state
    else:
        raise MisuseError(
            f"a state of type {type(state).__name__}; it is a tensor, a module or its state_dict()"
        )
    travelling.check_names(every)
    if not travelling.is_everything:
        _check_ties(every, travelling)
    return entries


def _check_ties(entries: Mapping[str, object], travelling: Selection) -> None:
    """Checks that no tensor that travels shares memory with one that does not, as tied layers do.

    What is written to the one would change the other.

    Raises:
        MisuseError: two do; the error names both.
    """
    spans: dict[tuple[torch.device, int], list[tuple[int, int, bool, str]]] = {}
    for name, value in entries.items():
        if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.numel():
            # No element lies beyond the sum of the last steps in all dimensions.
            sizes = zip(value.shape, value.stride(), strict=True)
            last = sum((size - 1) * stride for size, stride in sizes)
            first, end = value.data_ptr(), value.data_ptr() + (last + 1) * value.element_size()
            place = value.device, value.untyped_storage().data_ptr()
            spans.setdefault(place, []).append((first, end, travelling.takes(name), name))
    for shared in spans.values():
        for first, end, travels, name in shared:
            for other_first, other_end, other_travels, other in shared:
                if travels and not other_travels and first < other_end and other_first < end:
                    raise MisuseError(
                        f"{name}, which travels, and {other}, which does not, are the same memory: "
                        "let both travel or none, by include and exclude under [round], in the "
                        "files of all servers and clients"
                    )


def _is_count(value: torch.Tensor) -> bool:
    """Tells whether it is an integer without dimensions, by which a module counts its steps."""
    return not value.dim() and not value.is_floating_point() and not value.is_complex()


def _check_tensor(name: str, value: torch.Tensor) -> None:
    if not value.is_floating_point():
        raise MisuseError(
            f"{name} is of {value.dtype}; floating-point numbers are learned: leave it out, or "
            f"give the module, of which the parameters are taken"
        )
    if value.layout != torch.strided:
        raise MisuseError(f"{name} is of layout {value.layout}; give it as to_dense() makes it")
    if value.device.type != "cpu":
        raise MisuseError(f"{name} lies on {value.device}; give it as cpu() makes it")


def in_a_row(state: State, travelling: Selection = EVERYTHING) -> torch.Tensor:
    """Returns all floating-point values that travel in their order, in double precision.

    Raises:
        EncodingError: a value is NaN or infinite; the error names it.
    """
    change = Change(named(state, travelling))
    change.measured()
    return change.values()
