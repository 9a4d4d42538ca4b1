"""What goes to another party, or comes back, as bytes: by cloudpickle, which takes functions and
classes of a program too; and modules with parametrised weights and what torch.jit made, which
PyTorch itself does not pickle."""

from importlib import import_module
from io import BytesIO
from types import ModuleType
from typing import Any

import cloudpickle
import torch
from torch import nn
from torch.nn.utils import parametrize

from tacit.errors import MisuseError


def pickled(value: Any, what: str = "the program, or what it uses,") -> bytes:
    """A value as ``pickle.loads`` takes it.

    Raises:
        MisuseError: it holds what cannot be taken elsewhere, such as a lock or an open file.
    """
    content = BytesIO()
    try:
        _Pickler(content).dump(value)
    except MisuseError:
        raise
    except Exception as error:
        raise MisuseError(
            f"{what} holds what another party cannot be given ({error}): make that inside the "
            f"program, and "
            "hand over and return tensors and plain values"
        ) from error
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A parametrised module is of a class that PyTorch made for it alone: it is made again there.
    What is scripted or traced goes as PyTorch saves it; a function comes back as a module that is
    called alike."""

    def reducer_override(self, value: Any) -> Any:
        """How a value is taken apart."""
        if isinstance(value, nn.Module) and parametrize.is_parametrized(value):
            own = type(value)
            names = list(value.parametrizations)  # type: ignore[arg-type]
            return _parametrized, (own.__base__, names), super(own, value).__getstate__()
        if isinstance(value, ModuleType) and type(value) is not ModuleType:
            # One of a class of its own, as torch.backends.cudnn is; cloudpickle takes the others.
            return import_module, (value.__name__,)
        if isinstance(value, torch.jit.ScriptModule | torch.jit.ScriptFunction):
            content = BytesIO()
            torch.jit.save(value, content)
            return _scripted, (content.getvalue(),)
        return super().reducer_override(value)


def _parametrized(kind: type[nn.Module], names: list[str]) -> nn.Module:
    """A module of that class, to be filled, of which these tensors are computed when they are asked
    for."""
    module = kind.__new__(kind)
    parametrize._inject_new_class(module)
    for name in names:
        parametrize._inject_property(module, name)
    return module


def _scripted(content: bytes) -> Any:
    """What ``torch.jit.save`` wrote."""
    return torch.jit.load(BytesIO(content))  # type: ignore[no-untyped-call]
