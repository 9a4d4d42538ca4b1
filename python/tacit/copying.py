"""What goes to another party, or comes back, as bytes: by cloudpickle, which takes functions and classes of a
program too; and modules with parametrised weights, which PyTorch itself does not pickle."""

from io import BytesIO
from typing import Any

import cloudpickle
from torch import nn
from torch.nn.utils import parametrize


def pickled(value: Any) -> bytes:
    """A value as ``pickle.loads`` takes it."""
    content = BytesIO()
    _Pickler(content).dump(value)
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A parametrised module is of a class that PyTorch made for it alone: it is made again there."""

    def reducer_override(self, value: Any) -> Any:
        """How a value is taken apart."""
        if isinstance(value, nn.Module) and parametrize.is_parametrized(value):
            own = type(value)
            names = list(value.parametrizations)  # type: ignore[arg-type]
            return _parametrized, (own.__base__, names), super(own, value).__getstate__()
        return super().reducer_override(value)


def _parametrized(kind: type[nn.Module], names: list[str]) -> nn.Module:
    """A module of that class, to be filled, of which these tensors are computed when they are asked for."""
    module = kind.__new__(kind)
    parametrize._inject_new_class(module)
    for name in names:
        parametrize._inject_property(module, name)
    return module
