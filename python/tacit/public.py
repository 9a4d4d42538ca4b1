"""Public tensors that become secret when a secret is written into them.

``torch.zeros_like(x)`` of a secret x returns such a tensor. It is public and behaves as a plain
tensor until a secret is written into it. Then it and all of its views become secret, and stay the
same objects."""

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from tacit.errors import MisuseError
from tacit.sessions import session
from tacit.tensor import SecretTensor, check_party, wrapped


class Memory:
    """Memory that public tensors share if they are views of one another."""

    def __init__(self) -> None:
        #: The secret tensor over this memory, once a secret was written into it.
        self.secret: SecretTensor | None = None
        self._views: list[weakref.ref[PublicTensor]] = []
        #: Plain tensors that use this memory and cannot become secret with it.
        self.lent: list[weakref.ref[torch.Tensor]] = []

    def add(self, view: "PublicTensor") -> None:
        """Adds a view of this memory."""
        self._views = [each for each in self._views if each() is not None]
        self._views.append(weakref.ref(view))

    def forget(self) -> None:
        """Forgets all views, before their object is swapped with another tensor."""
        self._views = []

    def become(self, secret: SecretTensor) -> None:
        """Makes the memory, with all of its views, secret.

        Args:
            secret: the elements in the order of the memory.

        Raises:
            MisuseError: a plain tensor uses the same memory.
        """
        if any(each() is not None for each in self.lent):
            raise MisuseError(
                "a secret is written into y, but a plain tensor x uses its memory since `x.data = "
                "y` or `x.set_(y)` and would stay plain: give x a copy, x.data = y.clone()"
            )
        self.secret = secret
        for each in self._views:
            # A view whose data was set to its own memory is in the list twice. It is secret
            # already the second time.
            if isinstance(view := each(), PublicTensor):
                view.settled()
        self._views = []


class PublicTensor(torch.Tensor):
    """A public tensor that secrets may be written into.

    The tensor itself is a wrapper without memory. Operators compute on its plain tensor, until it
    becomes a ``SecretTensor``."""

    #: The plain tensor, with the same elements, shape and strides.
    _plain: torch.Tensor
    _memory: Memory

    #: Runs an ATen operator on tensors of these classes. The operators package sets it.
    dispatcher: ClassVar[Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]]

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, plain: torch.Tensor, memory: Memory | None = None) -> "PublicTensor":
        """Wraps a plain tensor that nothing else writes to, or a view of the given memory."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                made = wrapped(cls, (plain,), plain.dtype, ())
        else:
            made = wrapped(cls, (plain,), plain.dtype, ())
        made._plain, made._memory = plain, memory or Memory()
        made._memory.add(made)
        return made

    def settled(self) -> torch.Tensor:
        """Turns this tensor into a ``SecretTensor`` if its memory has become secret.

        A view without a Python object at that time becomes secret when it is first used."""
        secret = self._memory.secret
        if secret is None:
            return self
        plain = self._plain
        geometry = plain.shape, plain.stride(), plain.storage_offset()
        parts = tuple(part.as_strided(*geometry) for part in secret._parts)
        del self._plain, self._memory
        self.__class__ = SecretTensor  # type: ignore[assignment]
        _fill(self, secret, parts)
        return self

    def lent_to(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the plain tensor for a tensor that will use its memory, and records that."""
        self._memory.lent = [each for each in self._memory.lent if each() is not None]
        self._memory.lent.append(weakref.ref(tensor))
        return self._plain

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return cls.dispatcher(func, types, args, kwargs or {})

    def reveal(self, to: int | None = None) -> torch.Tensor | None:
        """Returns the plain tensor, as ``SecretTensor.reveal`` does. No interaction: it is public.

        Raises:
            MisuseError: ``to`` is not a party's number.
        """
        if isinstance(tensor := self.settled(), SecretTensor):
            return tensor.reveal(to)
        to = check_party(session(), to, "receiver")
        return self._plain.clone() if to is None or to == session().party else None

    @property
    def data(self) -> torch.Tensor:
        """The tensor outside the autograd graph. Assignment replaces the data."""
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        if not isinstance(value, SecretTensor | PublicTensor):
            value = PublicTensor(value.detach())
        torch._C.TensorBase.data.__set__(self, value)  # type: ignore[attr-defined]
        if isinstance(value, PublicTensor):
            self._plain, self._memory = value._plain, value._memory
            self._memory.add(self)
        else:
            del self._plain, self._memory
            self.__class__ = SecretTensor  # type: ignore[assignment]
            _fill(self, value, value._parts)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        if id(self) not in memo:
            memo[id(self)] = self._again(self.detach().clone())
        copied: torch.Tensor = memo[id(self)]
        return copied

    def __copy__(self) -> torch.Tensor:
        return self._again(self.detach())

    def _again(self, copied: torch.Tensor) -> torch.Tensor:
        if isinstance(self, torch.nn.Parameter):
            return torch.nn.Parameter(copied, self.requires_grad)
        return copied.requires_grad_(self.requires_grad)


def _fill(tensor: Any, secret: SecretTensor, parts: Any) -> None:
    """Fills the attributes of an object whose class was changed to ``SecretTensor``."""
    tensor._scale, tensor._session, tensor._unreduced = (
        secret._scale,
        secret._session,
        secret._unreduced,
    )
    tensor._parts, tensor._later, tensor._number = parts, None, secret._number


def _of_plain(name: str) -> None:
    """Forwards a method that reads memory, or describes it, to the plain tensor."""

    def method(self: PublicTensor, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensor := self.settled(), SecretTensor):
            return getattr(tensor, name)(*args, **kwargs)
        plain = self._plain.detach().requires_grad_() if self.requires_grad else self._plain
        return getattr(plain, name)(*args, **kwargs)

    method.__name__ = name
    setattr(PublicTensor, name, method)


for _name in (
    "__array__",
    "__dlpack__",
    "__dlpack_device__",
    "__format__",
    "__reduce_ex__",
    "__repr__",
    "apply_",
    "data_ptr",
    "is_shared",
    "map2_",
    "map_",
    "numpy",
    "share_memory_",
    "storage",
    "tolist",
    "untyped_storage",
):
    _of_plain(_name)
