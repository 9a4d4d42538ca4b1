"""Pickling of programs for other parties, and of their results.

cloudpickle also takes functions and classes of a program. In addition, this module pickles modules
with parametrised weights, and objects of torch.jit, which PyTorch itself does not pickle."""

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
    """Pickles a value for ``pickle.loads``.

    Raises:
        MisuseError: the value holds something that cannot be pickled, such as a lock or an open
            file.
    """
    content = BytesIO()
    try:
        _Pickler(content).dump(value)
    except MisuseError:
        raise
    except Exception as error:
        raise MisuseError(
            f"{what} holds something that cannot be sent to another party ({error}): create it "
            f"inside the program, and pass and return only tensors and plain values"
        ) from error
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A cloudpickle pickler for parametrised modules and objects of torch.jit.

    PyTorch makes a class for each parametrised module, which the receiver makes again. Scripted and
    traced objects are sent as ``torch.jit.save`` writes them. A function comes back as a module
    that is called in the same way."""

    def reducer_override(self, value: Any) -> Any:
        """Returns how a value is pickled."""
        if isinstance(value, nn.Module) and parametrize.is_parametrized(value):
            own = type(value)
            names = list(value.parametrizations)  # type: ignore[arg-type]
            return _parametrized, (own.__base__, names), super(own, value).__getstate__()
        if isinstance(value, ModuleType) and type(value) is not ModuleType:
            # A module object of a special class, such as torch.backends.cudnn. cloudpickle takes
            # ordinary ones.
            return import_module, (value.__name__,)
        if isinstance(value, torch.jit.ScriptModule | torch.jit.ScriptFunction):
            content = BytesIO()
            torch.jit.save(value, content)
            return _scripted, (content.getvalue(),)
        return super().reducer_override(value)


def _parametrized(kind: type[nn.Module], names: list[str]) -> nn.Module:
    """Makes an empty module of a class in which the named tensors are parametrised."""
    module = kind.__new__(kind)
    parametrize._inject_new_class(module)
    for name in names:
        parametrize._inject_property(module, name)
    return module


def _scripted(content: bytes) -> Any:
    """Loads what ``torch.jit.save`` wrote."""
    return torch.jit.load(BytesIO(content))  # type: ignore[no-untyped-call]
