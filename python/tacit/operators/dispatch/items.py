"""Indexing and in-place assignment with secrets, before PyTorch sees the arguments.

- A single secret number as an index selects in secret. PyTorch would read its value.
- A plain tensor that a secret is written into becomes secret, and stays the same object.
- ``plain.data = y`` takes the plain numbers of a tensor that secrets may be written into.

The methods of ``torch.Tensor`` itself are replaced, since the indexed tensor may be plain. If no
secret takes part, they call PyTorch's own. PyTorch's methods are faster without this, so they are
replaced only while a session is open in this process.
"""

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import torch

from tacit.errors import MisuseError
from tacit.modes import is_tracing
from tacit.public import PublicTensor
from tacit.sessions import while_open
from tacit.tensor import SecretTensor

#: Assignments that write into the tensor on their left.
ASSIGNMENTS = (
    "__iadd__",
    "__iand__",
    "__idiv__",
    "__ifloordiv__",
    "__ilshift__",
    "__imod__",
    "__imul__",
    "__ior__",
    "__ipow__",
    "__irshift__",
    "__isub__",
    "__itruediv__",
    "__ixor__",
)

#: PyTorch's own methods, or those that a library replaced them with.
_read = torch.Tensor.__getitem__
_write = torch.Tensor.__setitem__

_DATA: Any = torch._C.TensorBase.data

#: An index that takes all of a dimension.
_ALL = slice(None)

#: Types of indices and values that contain no secret. All indexing passes here, so this is fast.
_PLAIN = frozenset({int, slice, type(None), type(...), bool, float, torch.Tensor, np.ndarray})


def _is_secret(index: Any) -> bool:
    """Whether any index is secret."""
    if type(index) is not tuple:
        return isinstance(index, SecretTensor)
    # A generator expression takes twice as long.
    for each in index:  # noqa: SIM110
        if type(each) not in _PLAIN and isinstance(each, SecretTensor):
            return True
    return False


def _is_number(index: Any) -> bool:
    """Whether the index is a single secret integer, whose value PyTorch would read."""
    return (
        isinstance(index, SecretTensor)
        and not index.dim()
        and not index.dtype.is_floating_point
        and index.dtype not in (torch.bool, torch.uint8)
    )


def _as_row(index: Any) -> Any:
    """Reshapes a single secret number to one element; other indices stay as they are."""
    return index.reshape(1) if _is_number(index) else index


def _each(index: Any) -> list[Any]:
    """Returns the indices of all dimensions, with lists of numbers as tensors."""
    several = list(index) if type(index) is tuple else [index]
    return [torch.as_tensor(each) if isinstance(each, list) else each for each in several]


def _reach(index: Any) -> int:
    """Returns how many dimensions an index consumes."""
    if index is None or isinstance(index, bool):
        return 0
    is_mask = isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)
    return index.dim() if is_mask else 1


def _explicit(tensor: torch.Tensor, indices: list[Any]) -> list[Any]:
    """Replaces ``...`` in indices by full slices."""
    if not any(each is Ellipsis for each in indices):
        return indices
    at = next(at for at, each in enumerate(indices) if each is Ellipsis)
    rest = tensor.dim() - sum(_reach(each) for each in indices if each is not Ellipsis)
    return [*indices[:at], *[_ALL] * rest, *indices[at + 1 :]]


def _getitem(self: torch.Tensor, index: Any) -> Any:
    if type(index) in _PLAIN or not _is_secret(index):
        return _read(self, index)
    indices = _explicit(self, _each(index))
    for at, each in enumerate(indices):
        if _is_number(each):
            before = sum(map(_reach, indices[:at]))
            self = _read(self, (*[_ALL] * before, each.reshape(1)))
            indices[at] = 0
    return _read(self, tuple(indices))


def _setitem(self: torch.Tensor, index: Any, value: Any) -> None:
    if type(index) in _PLAIN and type(value) in _PLAIN:
        return _write(self, index, value)
    is_secret = _is_secret(index)
    if not is_secret and not isinstance(value, SecretTensor):
        return _write(self, index, value)
    admit(self)
    if isinstance(value, SecretTensor) and not value.dim():
        # PyTorch would read the memory of a tensor without dimensions.
        value = value.reshape(1)
    indices = _explicit(self, _each(index))
    if any(map(_is_place, indices)):
        value = (
            value if isinstance(value, torch.Tensor) else torch.as_tensor(value, dtype=self.dtype)
        )
        # PyTorch would read the memory of a tensor without dimensions.
        value = value if value.dim() else value.reshape(1)
    if not is_secret or not any(map(_is_number, indices)):
        return _write(self, index, value)
    if any(isinstance(each, torch.Tensor) and not _is_number(each) for each in indices):
        if any(each is None or isinstance(each, bool | int) for each in indices) or not _adjoin(
            indices
        ):
            raise MisuseError(
                "a secret number next to other tensors among the indices of a write: make all of "
                "them tensors of one shape, as in x[i.expand(n), places] = values"
            )
        return _write(self, tuple(map(_as_row, indices)), value)
    view = _read(self, tuple(_ALL if _is_number(each) else each for each in indices))
    # The indices of the dimensions that the view keeps.
    left: list[Any] = [
        each for each in indices if not isinstance(each, int) or isinstance(each, bool)
    ]
    places = tuple(_as_row(each) if _is_number(each) else _ALL for each in left)
    if _adjoin(left):
        # Together these indices are one dimension of the values, at the position of the first one.
        first = next(at for at, each in enumerate(left) if _is_number(each))
        behind = view.dim() - first - sum(map(_is_number, left))
        value = value.unsqueeze(value.dim() - behind) if value.dim() > behind else value
    return _write(view, places, value)


def _is_place(index: Any) -> bool:
    """Whether an index is a tensor of integers."""
    return isinstance(index, torch.Tensor) and index.dtype not in (torch.bool, torch.uint8)


def _adjoin(indices: list[Any]) -> bool:
    """Whether all tensors among the indices are adjacent."""
    places = [at for at, each in enumerate(indices) if isinstance(each, torch.Tensor)]
    return places == list(range(places[0], places[-1] + 1))


def admit(tensor: torch.Tensor) -> None:
    """Makes a plain tensor one that secrets may be written into; it stays the same object.

    Does nothing if another object uses its memory too, or if it requires gradients. PyTorch's
    operator is refused then."""
    if type(tensor) is not torch.Tensor or tensor.requires_grad or is_tracing():
        return
    is_alone = tensor._use_count() == 1 and _users(tensor) == 1 and tensor.is_contiguous()
    # A storage that cannot be resized may be an array's memory, and the array would not see writes.
    # Tensors that an operator on secrets has read are among these.
    is_alone = is_alone and tensor.untyped_storage().resizable()
    # A weak reference would refer to another tensor afterwards.
    is_alone = is_alone and not weakref.getweakrefs(tensor)
    if not is_alone or tensor.device.type != "cpu" or tensor.is_inference():
        return
    public = PublicTensor(tensor.detach())
    memory = public._memory
    memory.forget()
    torch.utils.swap_tensors(tensor, public)  # type: ignore[no-untyped-call]
    memory.add(tensor)  # type: ignore[arg-type]


def _set_data(self: torch.Tensor, value: Any) -> None:
    if type(value) is not torch.Tensor:
        value = value.settled() if isinstance(value, PublicTensor) else value
        if isinstance(value, SecretTensor):
            raise MisuseError(
                "a secret tensor as the data of a plain one: use the secret tensor itself instead, "
                "and in a module torch.nn.Parameter(secret); tacit.share_module makes all of a "
                "module's tensors secret"
            )
        if isinstance(value, PublicTensor):
            value = value.lent_to(self)
    _DATA.__set__(self, value)


def _users(tensor: torch.Tensor) -> int:
    """Returns how many PyTorch tensors use the memory of a tensor."""
    return int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)) - 1


def _assignment(assign: Any) -> Callable[..., Any]:
    @wraps(assign)
    def assigned(self: torch.Tensor, value: Any) -> Any:
        if type(value) not in _PLAIN and isinstance(value, SecretTensor):
            admit(self)
        return assign(self, value)

    return assigned


#: The replaced methods, by name; None if ``torch.Tensor`` inherited the method.
_before: dict[str, Any] = {}


def _install() -> None:
    global _read, _write
    _read, _write = torch.Tensor.__getitem__, torch.Tensor.__setitem__
    own: dict[str, Any] = {
        "__getitem__": wraps(_read)(_getitem),
        "__setitem__": wraps(_write)(_setitem),
    }
    own |= {name: _assignment(getattr(torch.Tensor, name)) for name in ASSIGNMENTS}
    # Reading ``data`` takes no longer than before.
    own["data"] = property(_DATA.__get__, _set_data)
    for name, method in own.items():
        _before[name] = vars(torch.Tensor).get(name)
        setattr(torch.Tensor, name, method)


def _remove() -> None:
    for name, method in _before.items():
        if method is None:
            delattr(torch.Tensor, name)
        else:
            setattr(torch.Tensor, name, method)
    _before.clear()


while_open(_install, _remove)
