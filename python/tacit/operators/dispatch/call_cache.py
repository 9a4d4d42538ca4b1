"""A cache of operator calls, by the kinds of their arguments.

The structure that parties compare (``agreement``) depends on these kinds alone. The expected
outcome (``meta_propagation``) also depends on the session's scale. Both are computed once for each
combination."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tacit.errors import MisuseError, UnsupportedOperatorError, WorkerError
from tacit.modes import untraced
from tacit.operators.dispatch.agreement import collected, note_values
from tacit.operators.dispatch.hints import TWO_TENSORS
from tacit.operators.dispatch.meta_propagation import propagate
from tacit.operators.dispatch.scales import Rule
from tacit.sessions import Session
from tacit.tensor import SecretTensor
from tacit.trace import module_paths

#: Largest number of combinations in the cache.
MOST = 1 << 12

_known: dict[Any, "Call"] = {}

#: Marks an outcome that was not computed yet.
_OPEN = object()


class Call:
    """Facts that are the same for all calls with arguments of the same kinds."""

    __slots__ = ("_expected", "_has_values", "_parameters")

    def __init__(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if _has_complex((args, kwargs)):
            raise UnsupportedOperatorError.of(
                "a complex number", module_paths.current(), TWO_TENSORS
            )
        structure, values = collected(func, args, kwargs)
        self._parameters = repr([name, *structure]).encode()
        self._has_values = bool(values)
        self._expected: Any = _OPEN

    def note(
        self,
        session: Session,
        secrets: Sequence[SecretTensor],
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Notes the current operator and its arguments, with secret tensors by their numbers.

        No interaction."""
        numbers = [secret._number for secret in secrets]
        try:
            session.core.note(self._parameters + repr(numbers).encode())
        except MisuseError:
            if torch.utils.data.get_worker_info() is not None:
                raise WorkerError from None
            raise
        if self._has_values:
            note_values(session, collected(func, args, kwargs)[1])

    def expected(
        self, rule: Rule, session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Returns the outcome by ``propagate``. An operator always has the same rule."""
        if self._expected is _OPEN:
            with untraced():
                self._expected = propagate(rule, session.scale, func, args, kwargs)
        return self._expected


def _has_complex(arguments: Any) -> bool:
    """Whether any argument is complex: fixed point would keep the real part alone."""
    return any(
        leaf.is_complex() if isinstance(leaf, torch.Tensor) else isinstance(leaf, complex)
        for leaf in pytree.tree_leaves(arguments)
    )


def call_of(
    name: str, session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """Returns the cached call of an operator by the kinds of its arguments."""
    try:
        kinds = tuple(map(_kind, args)), tuple(map(_kind, kwargs.items())) if kwargs else ()
        # The default dtype is part of the key, since a division converts integers to it.
        key = name, session.scale.bits, kinds, torch.get_default_dtype()
        known = _known.get(key)
    except TypeError:
        # Arguments without a hash are not cached.
        return Call(name, func, args, kwargs)
    if known is None:
        if len(_known) >= MOST:
            _known.clear()
        known = _known[key] = Call(name, func, args, kwargs)
    return known


def _kind(value: Any) -> Any:
    """Returns the facts about an argument that are compared, or that decide shapes and dtypes."""
    if isinstance(value, SecretTensor):
        # Shape and strides are read from a component, which is faster.
        laid_out = value._parts[0] if value.is_computed else value
        return value.dtype, laid_out.shape, laid_out.stride(), value._scale.bits
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise UnsupportedOperatorError.of(
                "a sparse tensor", module_paths.current(), "make it dense: to_dense()"
            )
        return value.dtype, value.shape, value.stride()
    if isinstance(value, tuple | list):
        return tuple(map(_kind, value))
    if isinstance(value, float | complex):
        # 0.0 and −0.0 are equal but different, and NaN does not equal itself.
        return type(value), repr(value)
    return type(value), value
