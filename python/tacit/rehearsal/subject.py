"""The subject of a rehearsal: a module with an example of its inputs, or a whole program."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tacit.errors import MisuseError, NoSessionError, cause
from tacit.module import share_module
from tacit.sessions import session
from tacit.sharing import share

#: Parties that own the weights and the inputs of a module with an example.
MODEL_OWNER, DATA_OWNER = 0, 1

#: Names of the work of a module with an example outside its layers. They appear in tables only,
#: since names of steps travel in frames.
SHARING_MODEL, SHARING_INPUTS, REVEALING = (
    "(sharing the model)",
    "(sharing the inputs)",
    "(revealing)",
)

#: A module, or a program that every party runs.
Subject = torch.nn.Module | Callable[[], Any]


def program_of(subject: Subject, example: Any) -> Callable[[], Any]:
    """Returns the program that every party runs.

    It is the subject itself, or it calls the module with secret weights on secret inputs and
    reveals the result to the owner of the inputs.
    """
    parts = parts_of(subject, example)

    def program() -> None:
        for _ in parts():
            pass

    return program


def parts_of(subject: Subject, example: Any) -> Callable[[], Iterator[str]]:
    """Returns the program in parts, each of which ends with its name.

    The name "" is the subject itself.
    """
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
    """Returns an example as the arguments of a call.

    A tuple has them by position, a mapping by name. Anything else is the only argument.
    """
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
    """Loads a subject and its example by ``FILE:CALLABLE``.

    It names a function without arguments, which returns a pair of a module and an example of its
    inputs. If the function shares tensors instead, it is itself the program, without an example.

    Raises:
        MisuseError: there is no such file or function, or it returns something else.
    """
    function = function_of(text)
    try:
        made = function()
    except NoSessionError:
        # The function shares tensors itself, so it is a program.
        return function, None
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):
        return made
    raise MisuseError(
        f"{text} returns {type(made).__name__}: return a pair of a module and an example of its "
        f"inputs, "
        "or name a program that shares tensors itself"
    )


def function_of(text: str) -> Callable[..., Any]:
    """Returns the function that ``FILE:CALLABLE`` names.

    Raises:
        MisuseError: there is no such file or function.
    """
    return function_with_source(text)[0]


def function_with_source(text: str) -> tuple[Callable[..., Any], bytes]:
    """Returns the function that ``FILE:CALLABLE`` names, and the content of the file.

    The file is read once: that content is what runs.

    Raises:
        MisuseError: there is no such file or function.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name:
        raise MisuseError(
            f"{text!r} names no function: write FILE:CALLABLE, such as model.py:build"
        )
    path = Path(file)
    if not path.is_file():
        raise MisuseError(f"there is no file {path}")
    # No other module has this name. The module is registered under it, so that objects that the
    # file defines can be pickled.
    spec = spec_from_file_location(f"rehearsed:{path.stem}", path)
    if spec is None or spec.loader is None:
        raise MisuseError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise MisuseError(f"cannot read {path}: {cause(error)}") from None
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[spec.name] = module
    try:
        exec(_compiled(source, path), vars(module))
    except (SyntaxError, ImportError) as error:
        raise MisuseError(f"{path}: {error}") from None
    found = getattr(module, name, None)
    if not callable(found):
        raise MisuseError(f"{path} has no function {name!r}")
    return found, source


def _compiled(source: bytes, path: Path) -> CodeType:
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except ValueError as error:
        # Python 3.11 reports null bytes so.
        raise SyntaxError(str(error)) from None
