"""What PyTorch does late, done at once: before processes are forked, parties begin in threads, or a
server waits for clients, who have a deadline."""

from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

import torch


class _Subclass(torch.Tensor):
    """A tensor that carries its operators out itself, as secret ones do."""

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, _func: Any, _types: Any, _args: tuple[Any, ...] = (), _kwargs: Any = None
    ) -> None:
        return None


#: Of who prepares: servers may be threads of one process.
_preparing = Lock()


def prepare() -> None:
    """Imports what is not imported yet, and binds the operators that have come since it was called
    last."""
    with _preparing:
        _import_all()
        _bind_operators()


@cache
def _import_all() -> None:
    """At the first operator of such a tensor PyTorch imports as much again as at its own import."""
    made = torch.Tensor._make_wrapper_subclass(_Subclass, torch.Size([1]))
    torch.ops.aten.detach.default(made)


#: The names of the operators that are bound.
_bound: set[str] = set()


def _bind_operators() -> None:
    """Makes the Python object of each operator, which PyTorch would make when Python first sees the
    operator.

    Two threads that first see one at once make two objects. The later takes the earlier's place in
    ``torch.ops``; but of the earlier PyTorch keeps the address, and uses it after it has been
    collected."""
    names = set(torch._C._dispatch_get_all_op_names())
    for qualified in names - _bound:
        space, _, name = qualified.partition("::")
        name, _, overload = name.partition(".")
        # There are none of what is declared without a schema, such as kernels for operators to
        # come.
        with suppress(AttributeError):
            getattr(getattr(getattr(torch.ops, space), name), overload or "default")
    _bound.update(names)
