"""What is rehearsed: a module with an example of its inputs, or a whole program."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tacit.errors import MisuseError, NoSessionError
from tacit.module import share_module
from tacit.sessions import session
from tacit.sharing import share

#: Who owns what, of a module with an example.
MODEL_OWNER, DATA_OWNER = 0, 1

#: Names of what a module with an example does outside its layers; for tables alone, since names of
#: steps travel in frames.
SHARING_MODEL, SHARING_INPUTS, REVEALING = (
    "(sharing the model)",
    "(sharing the inputs)",
    "(revealing)",
)

#: A module, or what every party runs.
Subject = torch.nn.Module | Callable[[], Any]


def program_of(subject: Subject, example: Any) -> Callable[[], Any]:
    """What every party runs: the subject itself, or a module on secret inputs by secret weights, of
    which the inputs' owner learns what comes out."""
    parts = parts_of(subject, example)

    def program() -> None:
        for _ in parts():
            pass

    return program


def parts_of(subject: Subject, example: Any) -> Callable[[], Iterator[str]]:
    """The same in parts, each of which ends with its name; "" is the subject itself."""
    if not isinstance(subject, torch.nn.Module):
        if example is not None:
            raise MisuseError("an example of inputs belongs to a module; a program has its own")
        program = subject

        def whole() -> Iterator[str]:
            program()
            yield ""

        return whole
    module = subject
    args, kwargs = arguments(example)

    def parts() -> Iterator[str]:
        share_module(module, owner=MODEL_OWNER)
        yield SHARING_MODEL
        secret_args, secret_kwargs = pytree.tree_map(_shared, (args, kwargs))
        yield SHARING_INPUTS
        with torch.no_grad():
            result = module(*secret_args, **secret_kwargs)
        yield ""
        pytree.tree_map(_revealed, result)
        yield REVEALING

    return parts


def arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """An example as a call's arguments: a tuple has them by position, a mapping by name; anything
    else is the only one."""
    if example is None:
        raise MisuseError(
            "a module needs an example of its inputs: a tensor, a tuple of them, or a dict"
        )
    if isinstance(example, Mapping):
        return (), dict(example)
    return tuple(example) if isinstance(example, tuple | list) else (example,), {}


def _shared(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return share(leaf if session().party == DATA_OWNER else None, owner=DATA_OWNER)


def _revealed(leaf: Any) -> Any:
    return leaf.reveal(to=DATA_OWNER) if hasattr(leaf, "reveal") else leaf


def load(text: str) -> tuple[Subject, Any]:
    """What ``FILE:CALLABLE`` names, a function without arguments: what it returns, a pair of a
    module and an example of its inputs; or the function itself, if it shares tensors and so is a
    program.

    Raises:
        MisuseError: there is no such file or function, or it returns something else.
    """
    function = function_of(text)
    try:
        made = function()
    except NoSessionError:
        # It shares by itself.
        return function, None
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):
        return made
    raise MisuseError(
        f"{text} returns {type(made).__name__}: a pair is wanted of a module and an example of its "
        f"inputs, "
        "or a program that shares tensors itself"
    )


def function_of(text: str) -> Callable[..., Any]:
    """The function that ``FILE:CALLABLE`` names.

    Raises:
        MisuseError: there is no such file or function.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name:
        raise MisuseError(
            f"{text!r} names no function: FILE:CALLABLE is wanted, such as model.py:build"
        )
    path = Path(file)
    if not path.is_file():
        raise MisuseError(f"there is no file {path}")
    # No module that there is takes this name, and who copies what the file defines finds it there.
    spec = spec_from_file_location(f"rehearsed:{path.stem}", path)
    if spec is None or spec.loader is None:
        raise MisuseError(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError) as error:
        raise MisuseError(f"{path}: {error}") from None
    found = getattr(module, name, None)
    if not callable(found):
        raise MisuseError(f"{path} has no function {name!r}")
    function: Callable[..., Any] = found
    return function
