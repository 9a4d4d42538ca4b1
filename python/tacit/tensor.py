"""The secret tensor: a ``torch.Tensor`` whose values no party holds."""

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import torch

from tacit import encoding, shares
from tacit.errors import MisuseError, UnsupportedOperatorError
from tacit.session import Session
from tacit.shares import Parts


class SecretTensor(torch.Tensor):
    """A secret-shared tensor. PyTorch's modules and functions work on it as on any other; ``reveal``
    alone shows its values.

    Outwardly it has the dtype of what was shared. Inside, floating-point values are fixed point with
    ``_scale`` fraction bits in Z_2^64, integers have scale 0, and booleans are shared bit by bit.
    """

    _parts: Parts
    _scale: int
    _session: Session

    #: Carries an ATen operator out; the operators enter themselves here.
    dispatcher: ClassVar[Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]]

    # Below autograd and torch.nn nothing else needs to be intercepted.
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, parts: Parts, scale: int, session: Session, dtype: torch.dtype) -> "SecretTensor":
        assert scale == 0 or dtype.is_floating_point, "integers and booleans have no fraction bits"
        shape = parts[0].shape if parts else torch.Size([0])
        # A view made in inference mode of what was made outside shares its count of versions, which tensors
        # of inference mode do not have.
        with torch.inference_mode(False):
            made: SecretTensor = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype)
        made._parts, made._scale, made._session = parts, scale, session
        return made

    def __init__(self, parts: Parts, scale: int, session: Session, dtype: torch.dtype) -> None:
        """Components of one shape, of a sharing of that scale in that session, with the dtype that it
        shows. Use ``tacit.share``."""

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return cls.dispatcher(func, args, kwargs or {})

    def like(
        self, parts: Parts, scale: int | None = None, dtype: torch.dtype | None = None
    ) -> "SecretTensor":
        """Another tensor of the same session, by default of the same scale and dtype."""
        return SecretTensor(
            parts, self._scale if scale is None else scale, self._session, dtype or self.dtype
        )

    def reveal(self, to: int | None = None) -> torch.Tensor | None:
        """The plain tensor, in every party or in party ``to`` alone; ``None`` in the others.

        One round. This is the only operation that shows values.

        Raises:
            MisuseError: ``to`` is no party's number.
        """
        if not self._parts:
            raise UnsupportedOperatorError("indices of a max pooling are not computed on secret tensors")
        words = shares.reveal(self._session, self._parts, check_party(self._session, to, "receiver"))
        if words is None:
            return None
        if self.dtype == torch.bool:
            return words.to(torch.bool)
        return encoding.decode(words, self._scale, self.dtype)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        shape, session = tuple(self.shape), self._session
        return (
            f"SecretTensor(shape={shape}, dtype={self.dtype}, {session.protocol}, {session.parties} parties)"
        )

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "SecretTensor":
        copy = self.like(tuple(part.clone() for part in self._parts))
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise MisuseError(
            "a secret tensor lives in its session and is not pickled; reveal() it, or keep the plain one"
        )

    def numpy(self, *, force: bool = False) -> Any:  # noqa: ARG002
        """Refused: see ``reveal``."""
        refuse("numpy()")

    def tolist(self) -> Any:
        """Refused: see ``reveal``."""
        refuse("tolist()")

    def item(self) -> Any:
        """Refused: see ``reveal``."""
        refuse("item()")

    def __bool__(self) -> bool:
        refuse("a condition, such as `if tensor:`")

    def __float__(self) -> float:
        refuse("float()")

    def __int__(self) -> int:
        refuse("int()")

    def __index__(self) -> int:
        refuse("an index")

    def __contains__(self, element: object) -> bool:
        refuse("`in`")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        refuse("a NumPy array")


def refuse(what: str) -> NoReturn:
    """What would show a value does not, and says how to."""
    raise MisuseError(
        f"{what} would show the values of a secret tensor; call reveal() where they may be known, "
        "or stay with tensors: torch.where chooses by a secret condition"
    )


def check_party(session: Session, party: int | None, what: str) -> int | None:
    """A party's number.

    Raises:
        MisuseError: there is no such party.
    """
    if party is not None and not (isinstance(party, int) and 0 <= party < session.parties):
        raise MisuseError(f"{what} {party!r} does not exist: the parties are 0 to {session.parties - 1}")
    return party
