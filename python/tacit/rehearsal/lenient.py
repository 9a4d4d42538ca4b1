"""A mode in which a missing operator is recorded, and computed by PyTorch on the plain values.

So a run continues, and finds everything that is missing. It works under the reference protocol
only, in which values can be inspected.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tacit import fixed
from tacit.errors import (
    EncodingError,
    MisuseError,
    NetworkError,
    PeerError,
    UnsupportedOperatorError,
    source_lines,
)
from tacit.fixed import WHOLE
from tacit.operators.dispatch.hints import OTHERWISE, rewrite
from tacit.operators.dispatch.table import REVEALING, assign
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.tensor import SecretTensor, instead


@dataclass(frozen=True)
class Gap:
    """Something that a program uses and secret tensors do not have."""

    #: The operator, or what was attempted.
    what: str
    #: Path of the module that used it; empty outside all modules.
    module: str
    #: File and line of the program, as close to the operator as possible.
    line: str
    #: What can be done instead.
    remedy: str


class Lenient(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Mode in which secret tensors of a session of the reference lack no operator.

    ``gaps`` counts how often each missing operation was used.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        assert session.is_plain, "values are looked at under the reference alone"
        self._session = session
        self.gaps: dict[Gap, int] = {}
        self.operators: set[str] = set()

    def __enter__(self) -> "Lenient":
        self._session.rehearsal = self
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if not any(issubclass(kind, SecretTensor) for kind in types):
            return func(*args, **kwargs)
        self.operators.add(str(func))
        if func in REVEALING:
            remedy = rewrite(func)
            self._note(REVEALING[func], instead(REVEALING[func]) if remedy == OTHERWISE else remedy)
            return func(*pytree.tree_map(shown, args), **pytree.tree_map(shown, kwargs))
        try:
            # The mode stays active, so that gaps inside a composed operator are found.
            with self:
                return SecretTensor.dispatcher(func, types, args, kwargs)
        except (PeerError, NetworkError):
            raise
        except Exception as error:
            try:
                result = self._substituted(func, args, kwargs)
            except Exception:
                # The operator fails on plain tensors too.
                raise error from None
            self._note_error(func, error)
            return result

    def withheld(self, what: str, show: Callable[[torch.Tensor], Any], secret: torch.Tensor) -> Any:
        """Records a gap, and returns what ``show`` gives for the plain tensor."""
        self._note(what, instead(what))
        return show(shown(secret))

    def _note_error(self, func: Any, error: Exception) -> None:
        if isinstance(error, UnsupportedOperatorError) and error.what:
            self._note(error.what.removeprefix("the operator "), error.remedy)
        elif isinstance(error, EncodingError | MisuseError):
            self._note(str(func), str(error))
        else:
            self._note(str(func), f"tacit fails: {type(error).__name__}: {error}"[:200])

    def _note(self, what: str, remedy: str) -> None:
        labels = self._session.modules.labels
        gap = Gap(what, labels[-1] if labels else "", source_lines.line(), remedy)
        self.gaps[gap] = self.gaps.get(gap, 0) + 1

    def _substituted(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an operator on plain tensors.

        Secret tensors that it writes into get the new values, and its results become secret.
        """
        plain = pytree.tree_map(shown, args), pytree.tree_map(shown, kwargs)
        result = func(*plain[0], **plain[1])
        written = {}
        for at, argument in enumerate(func._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            given, computed = (
                values[0][at] if at < len(values[0]) else values[1].get(argument.name)
                for values in ((args, kwargs), plain)
            )
            if isinstance(given, SecretTensor):
                assign(given, computed)
                written[id(computed)] = given

        def secret(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return written[id(value)] if id(value) in written else hidden(self._session, value)

        return pytree.tree_map(secret, result)


def shown(value: Any) -> Any:
    """Returns a secret tensor of the reference as a plain one, and anything else as it is."""
    if not isinstance(value, SecretTensor):
        return value
    words = value._parts[0]
    return (
        words.to(torch.bool)
        if value.dtype == torch.bool
        else fixed.decode(words, value._scale, value.dtype)
    )


def hidden(session: Session, value: torch.Tensor) -> SecretTensor:
    """Returns a plain tensor as a secret one of the reference.

    A number that cannot be encoded is clamped into range.
    """
    if value.dtype == torch.bool:
        return SecretTensor(
            shares.trivial_bits(session, value.to(torch.uint8)), WHOLE, session, torch.bool
        )
    scale = fixed.of_dtype(session.scale, value.dtype)
    most = scale.limit / 2
    if value.is_floating_point():
        value = torch.nan_to_num(value).clamp(-most, most)
    # Secret tensors are never complex. The real part stands for a complex number.
    whole = value.real if value.is_complex() else value
    words = fixed.encode(value, scale) if value.is_floating_point() else whole.to(torch.int64)
    return SecretTensor(shares.trivial(session, words), scale, session, value.dtype)
