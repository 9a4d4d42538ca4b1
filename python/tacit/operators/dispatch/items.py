"""What Python's brackets and assignments do where secrets meet them, before PyTorch looks at them:
a single secret number as an index chooses in secret, where PyTorch would read it; a plain tensor
that a secret is written into becomes secret, as the object that it is; and ``plain.data = y`` takes
the plain numbers of a tensor that secrets may be written into.

These methods are ``torch.Tensor``'s own, since the tensor whose they are may be plain. Where no
secret takes part they are PyTorch's, which take less time alone: they are in place as long as a
session is open in this process.
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

#: PyTorch's own, or whatever a library has put in their place.
_read = torch.Tensor.__getitem__
_write = torch.Tensor.__setitem__

_DATA: Any = torch._C.TensorBase.data

#: All of a dimension.
_ALL = slice(None)

#: What no secret is in, as an index or a value. All that is indexed comes this way, plain or not.
_PLAIN = frozenset({int, slice, type(None), type(...), bool, float, torch.Tensor, np.ndarray})


def _is_secret(index: Any) -> bool:
    """Whether any index is secret."""
    if type(index) is not tuple:
        return isinstance(index, SecretTensor)
    # A generator takes twice as long.
    for each in index:  # noqa: SIM110
        if type(each) not in _PLAIN and isinstance(each, SecretTensor):
            return True
    return False


def _is_number(index: Any) -> bool:
    """Whether PyTorch would read it: a single integer that is secret."""
    return (
        isinstance(index, SecretTensor)
        and not index.dim()
        and not index.dtype.is_floating_point
        and index.dtype not in (torch.bool, torch.uint8)
    )


def _as_row(index: Any) -> Any:
    """A single secret number as a tensor of one; another index as it is."""
    return index.reshape(1) if _is_number(index) else index


def _each(index: Any) -> list[Any]:
    """Indices of one dimension after another, lists of numbers as tensors."""
    several = list(index) if type(index) is tuple else [index]
    return [torch.as_tensor(each) if isinstance(each, list) else each for each in several]


def _reach(index: Any) -> int:
    """Of how many dimensions it is the index."""
    if index is None or isinstance(index, bool):
        return 0
    is_mask = isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)
    return index.dim() if is_mask else 1


def _explicit(tensor: torch.Tensor, indices: list[Any]) -> list[Any]:
    """The same with all dimensions in the place of ``...``."""
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
        # Of a single number PyTorch looks at the memory.
        value = value.reshape(1)
    indices = _explicit(self, _each(index))
    if any(map(_is_place, indices)):
        value = (
            value if isinstance(value, torch.Tensor) else torch.as_tensor(value, dtype=self.dtype)
        )
        # Of a single number PyTorch looks at the memory.
        value = value if value.dim() else value.reshape(1)
    if not is_secret or not any(map(_is_number, indices)):
        return _write(self, index, value)
    if any(isinstance(each, torch.Tensor) and not _is_number(each) for each in indices):
        if any(each is None or isinstance(each, bool | int) for each in indices) or not _adjoin(
            indices
        ):
            raise MisuseError(
                "a secret number beside other tensors as indices that are written at: make tensors "
                "of one "
                "shape of all of them, as in x[i.expand(n), places] = values"
            )
        return _write(self, tuple(map(_as_row, indices)), value)
    view = _read(self, tuple(_ALL if _is_number(each) else each for each in indices))
    # Of the dimensions that are left, those that are written at a secret number.
    left: list[Any] = [
        each for each in indices if not isinstance(each, int) or isinstance(each, bool)
    ]
    places = tuple(_as_row(each) if _is_number(each) else _ALL for each in left)
    if _adjoin(left):
        # All of them together are one dimension of the values, which stands where the first of them
        # does.
        first = next(at for at, each in enumerate(left) if _is_number(each))
        behind = view.dim() - first - sum(map(_is_number, left))
        value = value.unsqueeze(value.dim() - behind) if value.dim() > behind else value
    return _write(view, places, value)


def _is_place(index: Any) -> bool:
    """Whether it is a tensor of integers."""
    return isinstance(index, torch.Tensor) and index.dtype not in (torch.bool, torch.uint8)


def _adjoin(indices: list[Any]) -> bool:
    """Whether all tensors stand next to each other."""
    places = [at for at, each in enumerate(indices) if isinstance(each, torch.Tensor)]
    return places == list(range(places[0], places[-1] + 1))


def admit(tensor: torch.Tensor) -> None:
    """Makes a plain tensor one that secrets may be written into, as the object that it is; unless
    somebody else uses its memory too, or gradients go through it: PyTorch's operator is refused
    then."""
    if type(tensor) is not torch.Tensor or tensor.requires_grad or is_tracing():
        return
    is_alone = tensor._use_count() == 1 and _users(tensor) == 1 and tensor.is_contiguous()
    # What cannot be resized may be an array's memory, whose owner would not see what is written.
    # The tensors that an operator on secrets has looked at are among them.
    is_alone = is_alone and tensor.untyped_storage().resizable()
    # Whoever refers to it weakly would have another one than it became.
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
                "a secret tensor as the data of a plain one: take the secret one in its place, and "
                "in a "
                "module torch.nn.Parameter(secret); tacit.share_module makes all of a module's "
                "tensors secret"
            )
        if isinstance(value, PublicTensor):
            value = value.lent_to(self)
    _DATA.__set__(self, value)


def _users(tensor: torch.Tensor) -> int:
    """How many tensors of PyTorch's have that memory."""
    return int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)) - 1


def _assignment(assign: Any) -> Callable[..., Any]:
    @wraps(assign)
    def assigned(self: torch.Tensor, value: Any) -> Any:
        if type(value) not in _PLAIN and isinstance(value, SecretTensor):
            admit(self)
        return assign(self, value)

    return assigned


#: What stood in the place of each method that is, if ``torch.Tensor`` itself had it.
_before: dict[str, Any] = {}


def _install() -> None:
    global _read, _write
    _read, _write = torch.Tensor.__getitem__, torch.Tensor.__setitem__
    own: dict[str, Any] = {
        "__getitem__": wraps(_read)(_getitem),
        "__setitem__": wraps(_write)(_setitem),
    }
    own |= {name: _assignment(getattr(torch.Tensor, name)) for name in ASSIGNMENTS}
    # Reading it takes as long as ever.
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
