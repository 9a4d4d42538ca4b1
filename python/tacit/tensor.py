"""The secret tensor: a ``torch.Tensor`` whose values are secret-shared."""

import sys
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, overload

import torch

from tacit import fixed
from tacit.errors import MisuseError, UnsupportedOperatorError, UntracedError, hints, source_lines
from tacit.fixed import Scale
from tacit.flags import Known, union
from tacit.sessions import Session, current_session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.trace import module_paths

if TYPE_CHECKING:
    # Tells type checkers that operators on secret tensors return secret tensors.
    from tacit._typed import Typed as _Tensor
else:
    _Tensor = torch.Tensor


#: Remedy in errors about operations that would show values.
INSTEAD = (
    "call reveal() where they may be known, or stay with tensors: "
    "torch.where chooses by a secret condition"
)

#: Error for accesses to memory, which a secret tensor does not have.
NO_MEMORY = (
    "a secret tensor has no memory of its own; clone() gives another one, and reveal() a plain one"
)

#: PyTorch's function that makes reads and writes of a storage raise an error. Earlier builds of
#: PyTorch without CUDA lack it; with these, only writes are refused.
_CLOSE = getattr(torch._C, "_set_storage_data_ptr_access_error_msg", None)

#: Attributes of a secret tensor that are its components. Sharings of a session have one or both.
COMPONENTS = ("_first", "_second")


class Later(Protocol):
    """Lazy values, which are computed when they are first used."""

    def parts(self) -> Parts:
        """Computes the components. Their elements are in order, and their shape may be any."""


class _LeftForLater:
    """A descriptor for the components of lazy values, which it computes at the first access.

    The computed components are instance attributes and hide it. So attribute access stays fast,
    which it would not be with a ``__getattr__``."""

    def __get__(self, tensor: "SecretTensor", owner: type) -> Parts:
        if tensor._later is None:
            raise AttributeError("a secret tensor without components")
        dependencies = tensor._session.dependencies
        with dependencies.running(tensor._flags) as running:
            computed = tensor._later.parts()
            parts = tuple(part.reshape(tensor.shape) for part in computed)
            # Another tensor may share the lazy values.
            dependencies.use(dependencies.of(computed))
            known = dependencies.finish(running)
        for made in (computed, parts):
            dependencies.carry(made, known)
        # The flags also count for the operator that uses the values now.
        dependencies.use_within(known)
        tensor._parts = parts
        return tensor._parts


class _Flatten:
    """A method that tracers find, but that ``Module.to()`` and ``Module.double()`` do not find.

    If tensors have this method, ``torch.nn.Module`` swaps their contents. That fails, or breaks the
    next ``backward()``, if anything was computed from them. For all other tensors it assigns the
    data."""

    def __init__(self, method: Callable[["SecretTensor"], Any]) -> None:
        self._method = method

    def __get__(self, tensor: "SecretTensor | None", owner: type) -> Any:
        # PyTorch looks for the method by functions of one module. Their frames are skipped.
        asking = sys._getframe(1)
        while asking.f_globals.get("__name__") == "torch.utils._python_dispatch" and asking.f_back:
            asking = asking.f_back
        if asking.f_code is torch.nn.Module._apply.__code__:
            raise AttributeError("a module assigns data")
        return self._method if tensor is None else MethodType(self._method, tensor)


class SecretTensor(_Tensor):
    """A secret-shared tensor, on which PyTorch's modules and functions work as on any other.

    Only ``reveal`` shows its values.

    It has the dtype, shape and strides of the tensor that was shared. Internally, floating-point
    values are fixed point with scale ``_scale`` in Z_2^64, integers have scale 0, and booleans are
    shared as bits. Integers of less than 64 bits count modulo 2^bits of their dtype. Their words
    are ``_unreduced`` if they may be outside the range of the dtype."""

    if TYPE_CHECKING:
        _parts: Parts
    else:
        _parts = _LeftForLater()
    _scale: Scale
    _session: Session
    _unreduced: bool
    _later: Later | None

    #: Flags that lazy values depend on, until they are computed.
    _flags: Known = None

    #: Number of the tensor in its session. It is the same in all parties, which compare it with the
    #: programs. Tensors that are made inside operators have none.
    _number: int = 0

    #: Runs an ATen operator on tensors of these classes. The operators package sets it.
    dispatcher: ClassVar[Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]]

    # Below autograd and torch.nn nothing else needs to be intercepted.
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(
        cls,
        parts: Parts,
        scale: Scale,
        session: Session,
        dtype: torch.dtype,
        *,
        unreduced: bool = False,
        shape: Sequence[int] = (),
        later: Later | None = None,
    ) -> "SecretTensor":
        """Wraps components as a secret tensor. Programs use ``tacit.share`` instead.

        Args:
            parts: components of equal shape and strides; empty for lazy values.
            scale: the scale of the values.
            session: the session of the sharing.
            dtype: the dtype that the tensor shows.
            unreduced: whether integers may be outside the range of the dtype.
            shape: the shape of lazy values.
            later: the lazy values.
        """
        assert dtype.is_floating_point or scale == fixed.WHOLE, (
            "integers and booleans have no fraction bits"
        )
        # Booleans alone are shared as bits, and few operators of numbers have a meaning for them.
        if parts and (parts[0].dtype == torch.uint8) != (dtype == torch.bool):
            raise UnsupportedOperatorError.of(
                f"{session.operator} of booleans",
                module_paths.current(),
                "make integers of them, x.long(), or stay with &, |, ^ and ~",
            )
        # A view in inference mode shares the version counter of its base outside, but tensors of
        # inference mode have no version counter. So the wrapper is always made outside.
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                made = wrapped(cls, parts, dtype, shape)
        else:
            made = wrapped(cls, parts, dtype, shape)
        made._scale, made._session, made._unreduced, made._later = scale, session, unreduced, later
        if later is None:
            made._parts = parts
        return made

    @property
    def flags(self) -> Known:
        """Flags that the values depend on."""
        return self._session.dependencies.of(self._parts) if self.is_computed else self._flags

    def depends(self, known: Known) -> "SecretTensor":
        """Adds flags to the values, and returns this tensor."""
        if known is not None:
            if self.is_computed:
                self._session.dependencies.carry(self._parts, known)
            else:
                self._flags = union((self._flags, known))
        return self

    def numbered(self) -> "SecretTensor":
        """Gives this tensor the session's next number, and returns it."""
        self._number = next(self._session.numbers)
        return self

    @property
    def is_computed(self) -> bool:
        """Whether the components are computed. Lazy values have none yet."""
        return "_parts" in self.__dict__

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        try:
            return cls.dispatcher(func, types, args, kwargs or {})
        except MisuseError as error:
            if (current := current_session()) is not None:
                current.refused = str(error)
            raise

    # For tracers: PyTorch flattens the tensor into components and other facts, and puts it
    # together again.

    @property
    def _first(self) -> torch.Tensor:
        """The first component."""
        return self._parts[0]

    @property
    def _second(self) -> torch.Tensor:
        """The second component, if there are two."""
        return self._parts[1]

    @_Flatten
    def __tensor_flatten__(self) -> tuple[list[str], tuple[Any, ...]]:
        """Returns the names of the components, and all other facts about the tensor.

        Raises:
            UntracedError: PyTorch's compiler or exporter is tracing.
        """
        if (remedy := hints.here(hints.FLATTENED)) is not None:
            raise UntracedError.of(
                "tracing by torch.compile or torch.export", module_paths.current(), remedy
            )
        # Flags are not tracked through a graph of components.
        self._session.dependencies.carry_to_all(self.flags)
        return list(COMPONENTS[: len(self._parts)]), (
            self._session,
            self._scale,
            self.dtype,
            self._unreduced,
        )

    @staticmethod
    def __tensor_unflatten__(
        components: dict[str, torch.Tensor], rest: tuple[Any, ...], size: Any, stride: Any
    ) -> "SecretTensor":
        """Builds a tensor from components.

        Raises:
            MisuseError: the number of components is not that of the session's sharings, or their
                shapes or dtypes are wrong.
        """
        session, scale, dtype, unreduced = rest
        parts = tuple(components.get(name) for name in COMPONENTS[: session.core.parts])
        kind = torch.uint8 if dtype == torch.bool else torch.int64
        if len(components) != len(parts) or not all(
            isinstance(part, torch.Tensor) and part.dtype == kind and part.shape == size
            for part in parts
        ):
            shown = ", ".join(
                f"{name} {tuple(part.shape)} {part.dtype}" for name, part in components.items()
            )
            raise MisuseError(
                f"{shown} are no components of a secret tensor of shape {tuple(size)}: it has "
                f"{session.core.parts} of that shape and of dtype {kind}"
            )
        return SecretTensor(parts, scale, session, dtype, unreduced=unreduced)  # type: ignore[arg-type]

    def like(
        self,
        parts: Parts,
        scale: Scale | None = None,
        dtype: torch.dtype | None = None,
        *,
        unreduced: bool = False,
    ) -> "SecretTensor":
        """Makes a tensor of other components in the same session.

        Scale and dtype are those of this tensor by default. Outside operators, the new tensor also
        depends on this tensor's flags."""
        made = SecretTensor(
            parts,
            self._scale if scale is None else scale,
            self._session,
            dtype or self.dtype,
            unreduced=unreduced,
        )
        return made if self._session.operator else made.depends(self.flags)

    def beside(self, session: Session) -> "SecretTensor":
        """Returns a tensor of the same components in a session for concurrent work, or back again.

        See ``Session.beside``."""
        if session is self._session:
            return self
        beside = SecretTensor(
            self._parts, self._scale, session, self.dtype, unreduced=self._unreduced
        )
        beside._number = self._number
        return beside

    @overload
    def reveal(self, to: None = None) -> torch.Tensor: ...

    @overload
    def reveal(self, to: int | None) -> torch.Tensor | None: ...

    @module_paths.step("reveal")
    def reveal(self, to: int | None = None) -> torch.Tensor | None:
        """Reveals the values to every party, or to party ``to`` alone.

        This is the only operation that shows values. One round.

        Args:
            to: the number of the party that learns the values; every party if not given.

        Returns:
            The plain tensor in each party that learns it, and ``None`` in the others.

        Raises:
            MisuseError: ``to`` is not a party's number.
            RangeError: a guarded comparison, or a check of checked mode, that the values depend on
                was out of range. Only the parties that would learn the values raise this.
        """
        to = check_party(self._session, to, "receiver")
        self._session.core.note(f"reveal {self._number}".encode())
        before = self._session.enter()
        try:
            words = shares.reveal(self._session, self._parts, to, self.flags)
        finally:
            self._session.leave(before)
        if words is None:
            return None
        if self.dtype == torch.bool:
            return words.to(torch.bool)
        return fixed.decode(words, self._scale, self.dtype)

    @property
    def data(self) -> "SecretTensor":
        """The secret outside the autograd graph. Assignment replaces the data."""
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        if (
            not isinstance(value, SecretTensor)
            and value.shape == self.shape
            and value.dtype == self.dtype
        ):
            # Public values, such as zeros like it, are copied into a secret tensor.
            value = self.detach().clone().copy_(value)
        if not isinstance(value, SecretTensor):
            raise MisuseError(
                "a secret tensor's data are secret: assign a secret tensor, such as share() makes, "
                "or a "
                "public one of the same shape and dtype"
            )
        if value._session is not self._session:
            raise MisuseError("tensors of two sessions cannot be combined in one operation")
        self._session.core.note(f"data of {self._number} is {value._number}".encode())
        torch._C.TensorBase.data.__set__(self, value)  # type: ignore[attr-defined]
        self._parts, self._scale, self._unreduced = value._parts, value._scale, value._unreduced
        self._later = value._later
        self._number = value._number

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        shape, session = tuple(self.shape), self._session
        sharing = f"{session.protocol}, {session.parties} parties"
        return f"SecretTensor(shape={shape}, dtype={self.dtype}, {sharing})"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "SecretTensor":
        if id(self) in memo:
            copied: SecretTensor = memo[id(self)]
            return copied
        memo[id(self)] = copy = self._copied(tuple(part.clone() for part in self._parts))
        return copy

    def __copy__(self) -> "SecretTensor":
        """Copies the tensor, but not its components: a write to one is seen in both."""
        return self._copied(self._parts)

    def _copied(self, parts: Parts) -> "SecretTensor":
        """Returns the secret with the given components, outside the autograd graph."""
        copied = self.like(parts, unreduced=self._unreduced)
        copied._number = self._number
        if isinstance(self, torch.nn.Parameter):
            return torch.nn.Parameter(copied, self.requires_grad)  # type: ignore[return-value]
        return copied.requires_grad_(self.requires_grad)  # type: ignore[return-value]

    def __rtruediv__(self, other: Any) -> Any:
        """Divides a number by this tensor, by a quotient if the number is beyond ±1.

        PyTorch would multiply the reciprocal by the number, and so its error too."""
        if isinstance(other, int | float) and abs(other) > 1:
            other = torch.scalar_tensor(other, dtype=torch.result_type(self, other))
        if isinstance(other, torch.Tensor):
            return torch.div(other, self)
        return torch.Tensor.__rtruediv__(self, other)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        instead = hints.here(hints.PICKLED) or (
            "tacit.save_checkpoint keeps each party's shares of a module, and reveal() gives a "
            "plain tensor"
        )
        raise MisuseError(f"a secret tensor lives in its session and is not pickled; {instead}")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Computes gradients, as ``torch.Tensor.backward`` does.

        Raises:
            MisuseError: nothing that the tensor was computed from requires gradients.
        """
        if not self.requires_grad:
            raise MisuseError(
                "backward() of a result that has no gradients: nothing that it was computed of "
                "requires "
                "them. Share the module with trainable=True, tacit.share_module(module, owner=..., "
                "trainable=True), or call requires_grad_() on the tensor whose gradient is wanted; "
                "and "
                "compute outside of torch.no_grad()"
            )
        torch.Tensor.backward(self, *args, **kwargs)  # type: ignore[no-untyped-call]

    def _withheld(self, what: str, show: Callable[[torch.Tensor], Any], besides: str = "") -> Any:
        """Refuses an operation that would show values. A rehearsal records it and continues."""
        if self._session.rehearsal is None:
            refuse(what, besides)
        return self._session.rehearsal.withheld(what, show, self)

    def numpy(self, *, force: bool = False) -> Any:  # noqa: ARG002
        """Raises a MisuseError, since it would show values; see ``reveal``."""
        return self._withheld("numpy()", torch.Tensor.numpy)

    def tolist(self) -> Any:
        """Raises a MisuseError, since it would show values; see ``reveal``."""
        return self._withheld("tolist()", torch.Tensor.tolist)

    def item(self) -> Any:
        """Raises a MisuseError, since it would show a value; see ``reveal``."""
        return self._withheld("item()", torch.Tensor.item)

    def __bool__(self) -> bool:
        return self._withheld("a condition, such as `if tensor:`", torch.Tensor.__bool__)

    def __float__(self) -> float:
        return self._withheld("float()", torch.Tensor.__float__)

    def __int__(self) -> int:
        return self._withheld("int()", torch.Tensor.__int__)

    def __index__(self) -> int:
        besides = "x[i] chooses of a tensor in secret, and of a list torch.stack(values)[i]"
        return self._withheld("an index", torch.Tensor.__index__, besides)

    def __contains__(self, element: object) -> bool:
        refuse("`in`")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        refuse("a NumPy array", "what meets a secret tensor is a tensor: torch.as_tensor(array)")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        refuse("DLPack")

    def __dlpack_device__(self) -> Any:
        refuse("DLPack")

    def apply_(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Raises a MisuseError, since Python code would see each element."""
        refuse("apply_()")

    def map_(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Raises a MisuseError, since Python code would see each element."""
        refuse("map_()")

    def map2_(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Raises a MisuseError, since Python code would see each element."""
        refuse("map2_()")

    def storage(self) -> Any:
        """Raises a MisuseError, since a secret tensor has no memory of its own."""
        raise MisuseError(
            f"storage(): {NO_MEMORY}; tacit.save_checkpoint keeps each party's shares in a file"
        )

    _typed_storage = storage

    def is_shared(self) -> bool:
        """Returns false, since a session belongs to one process."""
        return False

    def share_memory_(self) -> Any:
        """Raises a MisuseError, since a session belongs to one process."""
        raise MisuseError(
            "share_memory_(): a secret tensor belongs to the session of this process, and so does "
            "a module "
            "of them; share it in every process that takes part"
        )


def wrapped(cls: Any, parts: Parts, dtype: torch.dtype, shape: Sequence[int]) -> Any:
    """Makes the wrapper tensor of components, or of lazy values.

    Its strides and offset are those of the components, so that PyTorch knows which views are
    possible. It has no memory, and every read or write of its memory raises an error."""
    part = parts[0] if parts else None
    if part is None or (part.is_contiguous() and not part.storage_offset()):
        made = torch.Tensor._make_wrapper_subclass(
            cls, shape if part is None else part.shape, dtype=dtype
        )
    else:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            part.shape,
            strides=part.stride(),
            storage_offset=part.storage_offset(),
            dtype=dtype,
        )
    if _CLOSE is None:
        torch._C._set_throw_on_mutable_data_ptr(made)
    else:
        _CLOSE(torch.Tensor.untyped_storage(made)._cdata, NO_MEMORY)
    return made


def refuse(what: str, besides: str = "") -> NoReturn:
    """Raises an error for an operation that would show values, with its line and a remedy.

    Raises:
        MisuseError: always.
    """
    line = source_lines.line()
    where = f" (in {line})" if line else ""
    is_compared = any(module == hints.COMPARISON for module, _ in source_lines.calls())
    remedy = hints.here(what) or (hints.COMPARED if is_compared else INSTEAD)
    remedy = f"{remedy}; {besides}" if besides else remedy
    said = f"{what} would show the values of a secret tensor{where}; {remedy}"
    if is_compared:
        # PyTorch wraps any other error in one that asks the user to report it to PyTorch.
        raise torch.testing._comparison.ErrorMeta(MisuseError, said)
    raise MisuseError(said)


def instead(what: str) -> str:
    """Returns a remedy for an operation that would show values, at the program's current line."""
    return hints.here(what) or INSTEAD


def check_party(session: Session, party: int | None, what: str) -> int | None:
    """Checks a party's number, and returns it.

    Raises:
        MisuseError: there is no such party.
    """
    if party is not None and not (isinstance(party, int) and 0 <= party < session.parties):
        raise MisuseError(
            f"{what} {party!r} does not exist: the parties are 0 to {session.parties - 1}"
        )
    return party
