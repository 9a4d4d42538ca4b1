"""What clients hand in and servers begin from: all numbers of a model in a row, from what holds them."""

from collections.abc import Mapping

import torch

from tacit.errors import MisuseError
from tacit.federated.change import Change

#: What a client may submit: all parameters in a row, or a module or its state, whose floating-point tensors
#: are taken in their order. Whole numbers without dimensions, as BatchNorm counts its steps, are left out.
State = torch.Tensor | torch.nn.Module | Mapping[str, torch.Tensor]


def change_of(state: State, model: torch.Tensor) -> Change:
    """What was learned beyond a model.

    Raises:
        MisuseError: there are more or fewer values, or what are none that can be learned.
    """
    change = Change(named(state), model)
    if len(change) != len(model):
        raise MisuseError(f"a state of {len(change)} values; the model of this round has {len(model)}")
    return change


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
            f"{name} is of {value.dtype}; floating-point numbers are learned: leave it out, or give the "
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
