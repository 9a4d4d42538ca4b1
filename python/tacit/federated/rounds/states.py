"""What clients hand in and servers begin from: all numbers of a model in a row, from what holds
them."""

import json
from collections.abc import Mapping

import torch

from tacit import _core
from tacit.errors import MisuseError
from tacit.federated.rounds.client_update import Change

#: Hexadecimal digits that stand for a tensor's name and shape, and tensors that are told so at
#: most.
DIGITS, MOST_TENSORS = 8, 4096

#: What a client may submit: all parameters in a row, or a module or its state, whose floating-point
#: tensors are taken in their order. Whole numbers without dimensions, as BatchNorm counts its
#: steps, are left out.
State = torch.Tensor | torch.nn.Module | Mapping[str, torch.Tensor]


def change_of(state: State, model: torch.Tensor, layout: str = "") -> Change:
    """What was learned beyond a model, whose names and shapes are as ``layout`` says, if it does.

    Raises:
        MisuseError: there are more or fewer values, or what are none that can be learned; or they
            are called otherwise, and which is the first.
    """
    change = Change(named(state), model)
    if layout and not isinstance(state, torch.Tensor):
        _check_layout(named(state), layout)
    if len(change) != len(model):
        raise MisuseError(
            f"a state of {len(change)} values; the model of this round has {len(model)}"
        )
    return change


def layout_of(state: State) -> str:
    """What stands for the names and shapes of a model's tensors, in their order: so many digits of
    a hash for each. That tells mistakes, and is no proof against whoever looks for a name of the
    same hash. Nothing of a row, which has no names.

    Raises:
        MisuseError: there are too many to be told of.
    """
    if isinstance(state, torch.Tensor):
        return ""
    found = named(state)
    if len(found) > MOST_TENSORS:
        raise MisuseError(
            f"a model of {len(found)} tensors; at most {MOST_TENSORS} are told by name: give all "
            f"its values "
            "in a row"
        )
    return "".join(_digits(name, value) for name, value in found.items())


def _digits(name: str, value: torch.Tensor) -> str:
    return _core.blake3(json.dumps([name, list(value.shape)]).encode())[:DIGITS]


def _check_layout(found: Mapping[str, torch.Tensor], layout: str) -> None:
    expected = [layout[at : at + DIGITS] for at in range(0, len(layout), DIGITS)]
    remedy = (
        "hand in the state of the module that the servers' model is of, or, if its values are the "
        "same in "
        "this order, all of them in a row"
    )
    for place, (name, value) in enumerate(found.items()):
        if place >= len(expected) or _digits(name, value) != expected[place]:
            raise MisuseError(
                f"{name} of shape {list(value.shape)}, tensor {place} of the state, has another "
                f"name, shape "
                f"or place in the model of this round: {remedy}"
            )
    if len(found) < len(expected):
        raise MisuseError(
            f"a state of {len(found)} tensors; the model of this round has {len(expected)}: "
            f"{remedy}"
        )


def in_form(row: torch.Tensor, form: State) -> torch.Tensor | dict[str, torch.Tensor]:
    """Values in a row under the names and in the shapes of a state; a row, if that is one."""
    if isinstance(form, torch.Tensor):
        return row
    places = named(form)
    made, begin = {}, 0
    for name, value in places.items():
        made[name] = row[begin : begin + value.numel()].reshape(value.shape).to(value.dtype)
        begin += value.numel()
    every = form if isinstance(form, Mapping) else made
    return {name: made.get(name, value) for name, value in every.items()}


def named(state: State) -> dict[str, torch.Tensor]:
    """All tensors of floating-point values in their order.

    Raises:
        MisuseError: something else is there; what it is called, and why it cannot be.
    """
    if isinstance(state, torch.Tensor):
        entries: Mapping[str, object] = {"the vector": state}
    elif isinstance(state, torch.nn.Module):
        entries = dict(state.named_parameters())
    elif isinstance(state, Mapping):
        entries = state
    else:
        raise MisuseError(
            f"a state of type {type(state).__name__}; it is a tensor, a module or its state_dict()"
        )
    found = {}
    for name, value in entries.items():
        if not isinstance(value, torch.Tensor):
            raise MisuseError(f"{name} is of type {type(value).__name__}; a state holds tensors")
        if not _is_count(value) or isinstance(state, torch.Tensor):
            _check_tensor(name, value)
            found[name] = value
    return found


def _is_count(value: torch.Tensor) -> bool:
    """Whether it is a whole number of no dimension: a module counts its steps by such ones."""
    return not value.dim() and not value.is_floating_point() and not value.is_complex()


def _check_tensor(name: str, value: torch.Tensor) -> None:
    if not value.is_floating_point():
        raise MisuseError(
            f"{name} is of {value.dtype}; floating-point numbers are learned: leave it out, or "
            f"give the "
            "module, of which the parameters are taken"
        )
    if value.layout != torch.strided:
        raise MisuseError(f"{name} is of layout {value.layout}; give it as to_dense() makes it")
    if value.device.type != "cpu":
        raise MisuseError(f"{name} lies on {value.device}; give it as cpu() makes it")


def in_a_row(state: State) -> torch.Tensor:
    """All floating-point values in their order, in double precision.

    Raises:
        EncodingError: a value is no finite number; which, by its name.
    """
    change = Change(named(state))
    change.measured()
    return change.values()
