"""What operators do with their arguments before they compute: scales, public values, broadcasting."""

from typing import Any

import torch

from tacit import encoding, shares
from tacit.errors import MisuseError
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

Number = int | float | bool


def session_of(*operands: Any) -> Session:
    """The session that all secret operands belong to.

    Raises:
        MisuseError: they belong to several.
    """
    sessions = [operand._session for operand in operands if isinstance(operand, SecretTensor)]
    if any(session is not sessions[0] for session in sessions):
        raise MisuseError("tensors of two sessions do not meet in one operation")
    return sessions[0]


def result_dtype(x: Any, y: Any) -> torch.dtype:
    """The dtype that PyTorch gives a result of two operands."""
    return torch.result_type(_stand_in(x), _stand_in(y))


def _stand_in(operand: Any) -> Any:
    """A plain tensor of the same dtype and number of dimensions; numbers as they are."""
    if isinstance(operand, torch.Tensor):
        return torch.empty((1,) * operand.dim(), dtype=operand.dtype)
    return operand


def public(value: torch.Tensor | Number) -> torch.Tensor:
    """A public operand as a plain tensor; numbers keep double precision."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def as_words(x: SecretTensor) -> SecretTensor:
    """Booleans as integers 0 and 1 (at most two rounds); the rest as it is."""
    if x.dtype != torch.bool:
        return x
    return x.like(shares.bit_to_ring(x._session, x._parts), 0, torch.int64)


def shifted(x: SecretTensor, scale: int) -> Parts:
    """The components at another scale: a local product upward, a truncation downward."""
    if scale >= x._scale:
        return x._parts if scale == x._scale else tuple(part << (scale - x._scale) for part in x._parts)
    return shares.truncate(x._session, x._parts, x._scale - scale)


def secret_scale(session: Session, dtype: torch.dtype) -> int:
    """The scale of results of a dtype."""
    return session.scale if dtype.is_floating_point else 0


def lifted(session: Session, value: Any, scale: int) -> Parts:
    """Any operand as components at a scale; public ones without interaction."""
    if isinstance(value, SecretTensor):
        return shifted(as_words(value), scale)
    return shares.trivial(session, encoding.encode(public(value), scale))


def lifted_bits(session: Session, value: Any) -> Parts:
    """Any boolean operand as components of bits."""
    if isinstance(value, SecretTensor):
        return value._parts
    return shares.trivial_bits(session, public(value).to(torch.uint8))


def as_kind_of(value: Any, target: SecretTensor) -> SecretTensor:
    """A value with the scale of ``target``, to be written into it.

    Raises:
        MisuseError: a boolean target and a value that is none.
    """
    session = target._session
    if target.dtype == torch.bool:
        if not isinstance(value, SecretTensor):
            return target.like(lifted_bits(session, value))
        if value.dtype != torch.bool:
            raise MisuseError("only booleans are written into a secret boolean tensor; compare first")
        return value
    return target.like(lifted(session, value, target._scale))


def common_scale(*operands: Any) -> int:
    """The scale at which operands are added: the greatest of the secret ones, and that of the session
    where a public one has fractions."""
    session = session_of(*operands)
    scales = [operand._scale for operand in operands if isinstance(operand, SecretTensor)]
    fractions = any(
        isinstance(operand, float)
        or (
            isinstance(operand, torch.Tensor)
            and not isinstance(operand, SecretTensor)
            and operand.is_floating_point()
        )
        for operand in operands
    )
    return max([*scales, session.scale] if fractions else scales)


def aligned(x: Any, y: Any) -> tuple[Parts, Parts, int]:
    """Both operands as components at one scale."""
    session, scale = session_of(x, y), common_scale(x, y)
    return lifted(session, x, scale), lifted(session, y, scale), scale


def together(*parts: Parts) -> list[Parts]:
    """Operands broadcast to their common shape."""
    shape = torch.broadcast_shapes(*(operand[0].shape for operand in parts))  # type: ignore[no-untyped-call]
    return [tuple(part.expand(shape) for part in operand) for operand in parts]
