"""Early execution of what PyTorch does lazily.

It is done before processes are forked, before parties start as threads, and before a server waits
for clients, which have a deadline."""

from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

import torch


class _Subclass(torch.Tensor):
    """A tensor class that runs operators itself, as secret tensors do."""

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, _func: Any, _types: Any, _args: tuple[Any, ...] = (), _kwargs: Any = None
    ) -> None:
        return None


#: Lock of ``prepare``, since servers may be threads of one process.
_preparing = Lock()


def prepare() -> None:
    """Imports what PyTorch imports lazily, and binds operators that are new since the last call."""
    with _preparing:
        _import_all()
        _bind_operators()


@cache
def _import_all() -> None:
    """Triggers PyTorch's lazy imports, by an operator on a tensor subclass.

    At the first such operator, PyTorch imports as much again as at its own import."""
    made = torch.Tensor._make_wrapper_subclass(_Subclass, torch.Size([1]))
    torch.ops.aten.detach.default(made)


#: Names of the bound operators.
_bound: set[str] = set()


def _bind_operators() -> None:
    """Makes the Python object of each operator, which PyTorch would make at the first access.

    If two threads first access an operator at once, they make two objects. The later object
    replaces the earlier one in ``torch.ops``. But PyTorch keeps the address of the earlier object,
    and uses it after the object was collected."""
    names = set(torch._C._dispatch_get_all_op_names())
    for qualified in names - _bound:
        space, _, name = qualified.partition("::")
        name, _, overload = name.partition(".")
        # Names without a schema, such as kernels of operators that are not defined yet, have no
        # object.
        with suppress(AttributeError):
            getattr(getattr(getattr(torch.ops, space), name), overload or "default")
    _bound.update(names)
