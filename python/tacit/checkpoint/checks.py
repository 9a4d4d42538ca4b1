"""Checks of a checkpoint against a module and an optimiser, before either is changed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch.optim import Optimizer

from tacit.errors import MisuseError
from tacit.tensor import SecretTensor


def kind(tensor: torch.Tensor) -> list[Any]:
    """Returns dtype and shape of a tensor, and the fraction bits of a secret one."""
    bits = tensor._scale.bits if isinstance(tensor, SecretTensor) else None
    return [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), bits]


def class_of(optimizer: Optimizer) -> str:
    """Returns the name of an optimiser's class.

    The name has no module, since a program that resumes may define the class in another file."""
    return type(optimizer).__name__


def groups_of(optimizer: Optimizer, module: torch.nn.Module) -> list[list[Any]]:
    """Returns the parameters of each group in order.

    A parameter is given by its name in the module, or by its shape if it is not in the module."""
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    return [
        [names.get(id(parameter), list(parameter.shape)) for parameter in group["params"]]
        for group in optimizer.param_groups
    ]


def check_module(module: torch.nn.Module, saved: Mapping[str, Any], file: Path) -> None:
    """Checks the tensors of a module against the saved ones.

    Raises:
        MisuseError: names, shapes or dtypes differ, or a tensor that was saved plain is secret.
    """
    mine = {f"module.{name}": kind(tensor) for name, tensor in module.state_dict().items()}
    theirs = {name: each for name, each in saved.items() if name.startswith("module.")}
    for what, at in (("shape", 1), ("dtype", 0)):
        for name in sorted({*mine, *theirs}):
            here, there = (kinds[name][at] if name in kinds else "none" for kinds in (mine, theirs))
            if here != there:
                shown = name.removeprefix("module.")[:80]
                raise MisuseError(
                    f"{file} is of another architecture: {shown} has {what} {there} there and "
                    f"{here} here"
                )
    for name, (_, _, bits) in mine.items():
        if bits is not None and theirs[name][2] is None:
            raise MisuseError(
                f"{file} has a plain {name.removeprefix('module.')}, which is secret here"
            )


def check_optimizer(
    optimizer: Optimizer | None,
    module: torch.nn.Module,
    saved: Mapping[str, Any] | None,
    state: Any,
    file: Path,
) -> None:
    """Checks an optimiser against the saved one and its state, with or without tensors in it.

    Raises:
        MisuseError: only one of both exists; their classes or the parameters in their groups
            differ; or the state is not one of such an optimiser.
    """
    if optimizer is None or saved is None:
        if optimizer is None and saved is None:
            return
        raise MisuseError(f"{file} was saved {'without' if optimizer else 'with'} an optimizer")
    if saved["class"] != class_of(optimizer):
        raise MisuseError(
            f"{file} was saved with the optimizer {saved['class'][:80]}, and this is "
            f"{class_of(optimizer)}"
        )
    mine, theirs = groups_of(optimizer, module), saved["groups"]
    if mine != theirs:
        _refuse_groups(mine, theirs, file)
    match state:
        case {"state": dict(states), "param_groups": [*groups]} if len(state) == 2:
            count = sum(map(len, mine))
            is_right = all(type(at) is int and 0 <= at < count for at in states) and (
                all(isinstance(each, dict) for each in states.values())
                and len(groups) == len(mine)
                and all(
                    map(_is_group, groups, optimizer.param_groups, [optimizer.defaults] * len(mine))
                )
            )
        case _:
            is_right = False
    if not is_right:
        raise MisuseError(
            f"{file} has a state that does not fit this {class_of(optimizer)} optimizer"
        )


def _is_group(saved: Any, own: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether a saved group has as many parameters, and all options that the optimiser uses."""
    return (
        isinstance(saved, dict)
        and isinstance(saved.get("params"), list)
        and len(saved["params"]) == len(own["params"])
        and set(options) <= set(saved)
    )


def _refuse_groups(mine: list[list[Any]], theirs: list[list[Any]], file: Path) -> NoReturn:
    what = f"{len(theirs)} of them there and {len(mine)} here"
    if len(mine) == len(theirs):
        at = next(at for at in range(len(mine)) if mine[at] != theirs[at])
        there, here = (
            ", ".join(map(str, groups[at]))[:200] or "nothing" for groups in (theirs, mine)
        )
        what = f"number {at} has {there} there and {here} here"
    raise MisuseError(f"{file} is of an optimizer with other parameter groups: {what}")
