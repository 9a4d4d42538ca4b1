"""The secret tensor: a ``torch.Tensor`` whose values no party holds."""

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
    # What type checkers know of operators on secret tensors: they give secret tensors.
    from tacit._typed import Typed as _Tensor
else:
    _Tensor = torch.Tensor


#: What can be done instead of showing values.
INSTEAD = "call reveal() where they may be known, or stay with tensors: torch.where chooses by a secret condition"

#: What is said where somebody wants the memory that a secret tensor lacks.
NO_MEMORY = (
    "a secret tensor has no memory of its own; clone() gives another one, and reveal() a plain one"
)

#: Has whoever reads or writes a storage be told so. Earlier builds of PyTorch without CUDA have it
#: not: there writing alone is refused.
_CLOSE = getattr(torch._C, "_set_storage_data_ptr_access_error_msg", None)

#: The attributes of a secret tensor that are its components, as many as its session's sharings
#: have.
COMPONENTS = ("_first", "_second")


class Later(Protocol):
    """Values that are computed when somebody first uses them."""

    def parts(self) -> Parts:
        """The components, in order, of any shape."""


class _LeftForLater:
    """In the place of components until they are computed, when somebody first asks. They then hide
    it, and all attributes are found as fast as without it, which a ``__getattr__`` would
    prevent."""

    def __get__(self, tensor: "SecretTensor", owner: type) -> Parts:
        if tensor._later is None:
            raise AttributeError("a secret tensor without components")
        dependencies = tensor._session.dependencies
        with dependencies.running(tensor._flags) as running:
            computed = tensor._later.parts()
            parts = tuple(part.reshape(tensor.shape) for part in computed)
            # Another tensor may have the same left for later.
            dependencies.use(dependencies.of(computed))
            known = dependencies.finish(running)
        for made in (computed, parts):
            dependencies.carry(made, known)
        # It counts for whatever uses it now.
        dependencies.use_within(known)
        tensor._parts = parts
        return tensor._parts


class _Flatten:
    """A method that tracers find, and ``torch.nn.Module`` does not where its ``to()`` or
    ``double()`` puts
    tensors in the place of others: of tensors that have the method it swaps the contents, which
    fails, or breaks the next ``backward()``, where anything was computed of them. Of all others it
    assigns the data."""

    def __init__(self, method: Callable[["SecretTensor"], Any]) -> None:
        self._method = method

    def __get__(self, tensor: "SecretTensor | None", owner: type) -> Any:
        # PyTorch asks whether there is the method by functions of one module.
        asking = sys._getframe(1)
        while asking.f_globals.get("__name__") == "torch.utils._python_dispatch" and asking.f_back:
            asking = asking.f_back
        if asking.f_code is torch.nn.Module._apply.__code__:
            raise AttributeError("a module assigns data")
        return self._method if tensor is None else MethodType(self._method, tensor)


class SecretTensor(_Tensor):
    """A secret-shared tensor. PyTorch's modules and functions work on it as on any other;
    ``reveal`` alone shows its values.

    Outwardly it has dtype, shape and strides of what was shared. Inside, floating-point values are
    fixed point of ``_scale`` in Z_2^64, integers have scale 0, and booleans are shared bit by bit.
    Integers of less than 64 bits count modulo their dtype's 2^bits; words that may stand outside it
    are ``_unreduced``."""

    if TYPE_CHECKING:
        _parts: Parts
    else:
        _parts = _LeftForLater()
    _scale: Scale
    _session: Session
    _unreduced: bool
    _later: Later | None

    #: What its values depend on, until they are computed.
    _flags: Known = None

    #: Which of the session's secret tensors it is, for the comparison of programs: equal numbers
    #: are the same tensors in all parties. What is made inside of operators has none.
    _number: int = 0

    #: Carries an ATen operator out, on tensors of these classes; the operators enter themselves
    #: here.
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
        """Components of one shape and stride, of a sharing of that scale in that session, with the
        dtype that it shows; without components a tensor of that shape whose values are computed
        later. Use ``tacit.share``."""
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
        # A view made in inference mode of what was made outside shares its count of versions, which
        # tensors of inference mode do not have.
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
        """What its values depend on."""
        return self._session.dependencies.of(self._parts) if self.is_computed else self._flags

    def depends(self, known: Known) -> "SecretTensor":
        """This tensor, whose values depend on these flags too."""
        if known is not None:
            if self.is_computed:
                self._session.dependencies.carry(self._parts, known)
            else:
                self._flags = union((self._flags, known))
        return self

    def numbered(self) -> "SecretTensor":
        """This tensor, as the next that a program makes or writes to."""
        self._number = next(self._session.numbers)
        return self

    @property
    def is_computed(self) -> bool:
        """Whether there are components, or they were left for later."""
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

    # For who traces: PyTorch takes it apart into components and the rest, and puts it together
    # again.

    @property
    def _first(self) -> torch.Tensor:
        """The first component."""
        return self._parts[0]

    @property
    def _second(self) -> torch.Tensor:
        """The second component, where there are two."""
        return self._parts[1]

    @_Flatten
    def __tensor_flatten__(self) -> tuple[list[str], tuple[Any, ...]]:
        """The names of its components, and all else that it is.

        Raises:
            UntracedError: it is PyTorch's compiler, or its exporter, that asks.
        """
        if (remedy := hints.here(hints.FLATTENED)) is not None:
            raise UntracedError.of(
                "tracing by torch.compile or torch.export", module_paths.current(), remedy
            )
        # What a graph makes of components is not followed.
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
        """The tensor of these components.

        Raises:
            MisuseError: they are not as many as its session's sharings have, or not of one shape
                and of words or bits.
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
                f"{session.core.parts} of it, {kind}"
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
        """Another tensor of the same session, by default of the same scale and dtype; outside of
        operators it depends on what this one does."""
        made = SecretTensor(
            parts,
            self._scale if scale is None else scale,
            self._session,
            dtype or self.dtype,
            unreduced=unreduced,
        )
        return made if self._session.operator else made.depends(self.flags)

    def beside(self, session: Session) -> "SecretTensor":
        """The same components in a session beside this tensor's, or in the one that this one's is
        beside."""
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
        """The plain tensor, in every party or in party ``to`` alone; ``None`` in the others.

        One round. This is the only operation that shows values.

        Args:
            to: the number of the party that learns them; every party if not given.

        Raises:
            MisuseError: ``to`` is no party's number.
            RangeError: where it would be learnt alone, if a guarded comparison that it depends on
                left its range.
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
        """The same secret outside the graph; what is assigned takes its place."""
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        if (
            not isinstance(value, SecretTensor)
            and value.shape == self.shape
            and value.dtype == self.dtype
        ):
            # Public numbers, as zeros like it are.
            value = self.detach().clone().copy_(value)
        if not isinstance(value, SecretTensor):
            raise MisuseError(
                "a secret tensor's data are secret: assign a secret tensor, such as share() makes, "
                "or a "
                "public one of the same shape and dtype"
            )
        if value._session is not self._session:
            raise MisuseError("tensors of two sessions do not meet in one operation")
        self._session.core.note(f"data of {self._number} is {value._number}".encode())
        torch._C.TensorBase.data.__set__(self, value)  # type: ignore[attr-defined]
        self._parts, self._scale, self._unreduced = value._parts, value._scale, value._unreduced
        self._later = value._later
        self._number = value._number

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        shape, session = tuple(self.shape), self._session
        return f"SecretTensor(shape={shape}, dtype={self.dtype}, {session.protocol}, {session.parties} parties)"

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
        """Another one of the same components, as of plain tensors: what is written to one is in
        both."""
        return self._copied(self._parts)

    def _copied(self, parts: Parts) -> "SecretTensor":
        """The same secret in these components, outside the graph."""
        copied = self.like(parts, unreduced=self._unreduced)
        copied._number = self._number
        if isinstance(self, torch.nn.Parameter):
            return torch.nn.Parameter(copied, self.requires_grad)  # type: ignore[return-value]
        return copied.requires_grad_(self.requires_grad)  # type: ignore[return-value]

    def __rtruediv__(self, other: Any) -> Any:
        """A number divided by this: a quotient, where it is beyond ±1. PyTorch multiplies its
        reciprocal instead, and so also what that is off."""
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
        """As of any tensor.

        Raises:
            MisuseError: no gradients go through what it was computed of.
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
        """Refused; a rehearsal takes note of it and goes on."""
        if self._session.rehearsal is None:
            refuse(what, besides)
        return self._session.rehearsal.withheld(what, show, self)

    def numpy(self, *, force: bool = False) -> Any:  # noqa: ARG002
        """Refused: see ``reveal``."""
        return self._withheld("numpy()", torch.Tensor.numpy)

    def tolist(self) -> Any:
        """Refused: see ``reveal``."""
        return self._withheld("tolist()", torch.Tensor.tolist)

    def item(self) -> Any:
        """Refused: see ``reveal``."""
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
        """Refused: Python code on each element would see it."""
        refuse("apply_()")

    def map_(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Refused: Python code on each element would see it."""
        refuse("map_()")

    def map2_(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Refused: Python code on each element would see it."""
        refuse("map2_()")

    def storage(self) -> Any:
        """Refused: it has no memory of its own."""
        raise MisuseError(
            f"storage(): {NO_MEMORY}; tacit.save_checkpoint keeps each party's shares in a file"
        )

    _typed_storage = storage

    def is_shared(self) -> bool:
        """It is not: a session belongs to one process."""
        return False

    def share_memory_(self) -> Any:
        """Refused: a session belongs to one process."""
        raise MisuseError(
            "share_memory_(): a secret tensor belongs to the session of this process, and so does "
            "a module "
            "of them; share it in every process that takes part"
        )


def wrapped(cls: Any, parts: Parts, dtype: torch.dtype, shape: Sequence[int]) -> Any:
    """The outer tensor: strides and offset are those of the components, so that PyTorch itself
    knows what can be viewed. It has no memory, and whoever would read or write there is told so, by
    whatever way."""
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
    """What would show a value does not, and says where that is and how to."""
    line = source_lines.line()
    where = f" (in {line})" if line else ""
    is_compared = any(module == hints.COMPARISON for module, _ in source_lines.calls())
    remedy = hints.here(what) or (hints.COMPARED if is_compared else INSTEAD)
    remedy = f"{remedy}; {besides}" if besides else remedy
    said = f"{what} would show the values of a secret tensor{where}; {remedy}"
    if is_compared:
        # Of any other error it makes one of its own, which asks for a report to PyTorch.
        raise torch.testing._comparison.ErrorMeta(MisuseError, said)
    raise MisuseError(said)


def instead(what: str) -> str:
    """What can be done instead of showing values, where the program is."""
    return hints.here(what) or INSTEAD


def check_party(session: Session, party: int | None, what: str) -> int | None:
    """A party's number.

    Raises:
        MisuseError: there is no such party.
    """
    if party is not None and not (isinstance(party, int) and 0 <= party < session.parties):
        raise MisuseError(
            f"{what} {party!r} does not exist: the parties are 0 to {session.parties - 1}"
        )
    return party
