"""Bitwise logic and shifts of integers.

Integers are decomposed into bits, which are combined again with the weights that they have
afterwards. All results are exact modulo 2^64, or within the dtype.
"""

from typing import Any

import torch

from tacit import checks
from tacit.fixed import WHOLE, WORD
from tacit.operators import logical
from tacit.operators.dispatch.operands import (
    as_words,
    lifted,
    may_be_unreduced,
    result_dtype,
    session_of,
    stays_in_range,
    together,
)
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics.approximation.normal import power_of_two
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _dtype(x: Any, y: Any) -> torch.dtype:
    """Returns the common dtype of both operands, which must be integers or booleans."""
    dtype = result_dtype(x, y)
    if dtype.is_floating_point:
        unsupported("bitwise logic on fractions", "it is for integers and booleans")
    return dtype


def _weights(dtype: torch.dtype, down: int = 0) -> torch.Tensor:
    """Returns the weights of the bits of an integer, lowest first, after a right shift."""
    limits = torch.iinfo(dtype)
    worth = [1 << place >> down for place in range(limits.bits)]
    if limits.min < 0:
        # The sign bit fills the places that become free.
        worth[-1] = -max(1, worth[-1])
    return torch.tensor([value if value < 1 << 63 else -(1 << 63) for value in worth])


# Logic
# ----------------------------------------------------------------------------


def _conjunction(x: Any, y: Any, dtype: torch.dtype) -> tuple[Parts, Parts, Parts]:
    """Returns x, y and x AND y as words."""
    session = session_of(x, y)
    left, right = together(lifted(session, x, WHOLE), lifted(session, y, WHOLE))
    width = torch.iinfo(dtype).bits
    if isinstance(x, SecretTensor) and isinstance(y, SecretTensor):
        binary = shares.binary(session, shares.stacked(left, right), width)
        both = shares.and_bits(session, *(tuple(part[:, i] for part in binary) for i in (0, 1)))
        return left, right, shares.from_binary(session, both, _weights(dtype))
    secret, plain = (left, y) if isinstance(x, SecretTensor) else (right, x)
    mask = torch.as_tensor(plain, dtype=torch.int64)
    lowest, highest = (int(bound) for bound in mask.aminmax()) if mask.numel() else (0, 0)
    # A mask that is never negative needs no more bits of the secret than it has itself.
    needed = width if lowest < 0 else min(width, max(1, highest.bit_length()))
    kept = _bits(mask, needed) * _weights(dtype)[:needed].reshape(-1, *(1,) * mask.dim())
    return left, right, shares.from_binary(session, shares.binary(session, secret, needed), kept)


def _bits(values: torch.Tensor, width: int) -> torch.Tensor:
    return torch.stack([values >> place & 1 for place in range(width)])


def _logic(name: str, combine: Any, of_booleans: Any) -> None:
    overloads = [
        getattr(getattr(aten, name), form) for form in ("Tensor", "Scalar", "Scalar_Tensor")
    ]

    @implements(*overloads)
    def bitwise(x: Any, y: Any) -> SecretTensor:
        """Applies bitwise logic to integers by their bits, in at most 11 rounds.

        A public mask that is never negative needs only as many bits as it has. Booleans use the
        operators of ``logical``.
        """
        dtype = _dtype(x, y)
        if dtype == torch.bool:
            return of_booleans(x, y)
        left, right, both = _conjunction(x, y, dtype)
        parts = tuple(combine(*words) for words in zip(left, right, both, strict=True))
        return SecretTensor(parts, WHOLE, session_of(x, y), dtype)


_logic("bitwise_and", lambda _x, _y, both: both + 0, logical.logical_and)
_logic("bitwise_or", lambda x, y, both: x + y - both, logical.logical_or)
_logic("bitwise_xor", lambda x, y, both: x + y - 2 * both, logical.logical_xor)


@implements(aten.bitwise_not.default)
def bitwise_not(x: SecretTensor) -> SecretTensor:
    """Inverts all bits: −1 − x for signed dtypes, the largest number − x for unsigned ones.

    No interaction.
    """
    if x.dtype == torch.bool:
        return logical.logical_not(x)
    if x.dtype.is_floating_point:
        unsupported("bitwise logic on fractions", "it is for integers and booleans")
    limits = torch.iinfo(x.dtype)
    most = shares.trivial(x._session, torch.tensor(limits.max + limits.min))
    return x.like(
        tuple(whole - part for whole, part in zip(most, x._parts, strict=True)),
        unreduced=x._unreduced,
    )


# Shifts
# ----------------------------------------------------------------------------


@implements(
    aten.bitwise_left_shift.Tensor,
    aten.bitwise_left_shift.Tensor_Scalar,
    aten.bitwise_left_shift.Scalar_Tensor,
    aten.__lshift__.Tensor,
    aten.__lshift__.Scalar,
)
def left_shift(x: Any, distance: Any) -> SecretTensor:
    """Returns x·2^distance modulo 2^64.

    The result is 0 if the distance is negative or at least the bits of the dtype. Public distances
    need no interaction, secret ones 20 rounds.
    """
    session, dtype = session_of(x, distance), _dtype(x, distance)
    words = lifted(session, x, WHOLE)
    if isinstance(distance, SecretTensor):
        places, inside = _distance(distance, torch.iinfo(dtype).bits)
        power = power_of_two(session, shares.unstacked(shares.bit_to_ring(session, places)))
        words, power, inside = together(words, power, inside)
        power = shares.bit_multiply(session, inside, power)
        parts = bilinear.multiply(session, words, power, 0, in_range=stays_in_range(session, dtype))
    else:
        far = torch.as_tensor(distance, dtype=torch.int64)
        is_out = (far < 0) | (far >= torch.iinfo(dtype).bits)
        if dtype == torch.int64 and far.numel():
            checks.hold(session, words, checks.WORD + 1 - int(torch.where(is_out, 0, far).max()))
        parts = tuple(torch.where(is_out, 0, part << far.clamp(0, 63)) for part in words)
    return SecretTensor(parts, WHOLE, session, dtype, unreduced=may_be_unreduced(dtype))


@implements(
    aten.bitwise_right_shift.Tensor,
    aten.bitwise_right_shift.Tensor_Scalar,
    aten.bitwise_right_shift.Scalar_Tensor,
    aten.__rshift__.Tensor,
    aten.__rshift__.Scalar,
)
def right_shift(x: Any, distance: Any) -> SecretTensor:
    """Returns ⌊x / 2^distance⌋.

    If the distance is negative or at least the bits of the dtype, the result is −1 or 0, by the
    sign. Public distances take at most 10 rounds. Secret ones take 30, with a selection for each of
    their six bits.
    """
    session, dtype = session_of(x, distance), _dtype(x, distance)
    width = torch.iinfo(dtype).bits
    words = lifted(session, x, WHOLE)
    if isinstance(distance, SecretTensor):
        places, inside = _distance(distance, width)
        # A distance out of range sets one more place, which shifts out all bits but the sign.
        outside = zip(places, shares.complement(session, inside), strict=True)
        by = tuple(torch.cat([part, out.unsqueeze(0)]) for part, out in outside)
        words, _ = together(words, distance._parts)
        bits = _shifted(
            session, shares.binary(session, words, width), by, torch.iinfo(dtype).min < 0
        )
        return SecretTensor(
            shares.from_binary(session, bits, _weights(dtype)), WHOLE, session, dtype
        )
    far = torch.as_tensor(distance, dtype=torch.int64)
    # PyTorch treats a distance that is too large as a shift by all bits but the sign.
    far = torch.where((far < 0) | (far >= width), width - (torch.iinfo(dtype).min < 0), far)
    table = torch.stack([_weights(dtype, places) for places in range(width + 1)])
    weights = table[far].movedim(-1, 0)
    words, _ = together(words, shares.trivial(session, torch.zeros_like(far)))
    return SecretTensor(
        shares.from_binary(session, shares.binary(session, words, width), weights),
        WHOLE,
        session,
        dtype,
    )


def _distance(distance: SecretTensor, width: int) -> tuple[Parts, Parts]:
    """Returns the bits of distances below ``width``, a power of two, and whether they are in range.

    The bits of a distance out of range have no meaning.
    """
    session, by = distance._session, as_words(distance)._parts
    own = 1 if distance.dtype == torch.bool else torch.iinfo(distance.dtype).bits
    # The difference has one bit more than both operands. If it wraps around, the distance itself is
    # far below zero.
    compared = min(WORD, max(own, width.bit_length()) + 2)
    greatest = shares.trivial(session, torch.tensor(width - 1))
    differences = tuple(most - part for most, part in zip(greatest, by, strict=True))
    signs = shares.complement(
        session, shares.sign(session, shares.stacked(by, differences), compared)
    )
    inside = shares.and_bits(session, *shares.unstacked(signs))
    return shares.binary(session, by, width.bit_length() - 1), inside


def _shifted(session: Session, bits: Parts, distance: Parts, is_signed: bool) -> Parts:
    """Shifts bits, lowest first, down by a secret distance that is given by its bits."""
    width = bits[0].shape[0]
    for place in range(distance[0].shape[0]):
        step = min(1 << place, width)
        fill = [part[-1:] if is_signed else torch.zeros_like(part[-1:]) for part in bits]
        filled = zip(bits, fill, strict=True)
        moved = tuple(
            torch.cat([part[step:], end.expand(step, *end.shape[1:])]) for part, end in filled
        )
        by = tuple(part[place].expand(bits[0].shape) for part in distance)
        bits = shares.xor(bits, shares.and_bits(session, by, shares.xor(bits, moved)))
    return bits
