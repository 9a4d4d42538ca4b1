"""Powers of integers: of the squares x, x², x⁴, ... those are multiplied that the bits of the
exponent choose. They are exact modulo 2^64. In checked mode a power that leaves the range of int64
is refused."""

from typing import Any

import torch

from tacit.fixed import WHOLE, WORD
from tacit.operators.comparison import eq
from tacit.operators.dispatch.operands import (
    as_words,
    may_be_unreduced,
    moved,
    public,
    result_dtype,
    session_of,
    stays_in_range,
)
from tacit.operators.dispatch.table import unsupported
from tacit.operators.logical import logical_and, logical_not, logical_or
from tacit.operators.where import where
from tacit.sharings import shares
from tacit.tensor import SecretTensor

#: So many bits of an exponent tell powers in range apart: 2^62 is above what is in range.
_ENOUGH = 6


def integer_power(x: Any, exponent: Any) -> SecretTensor:
    """x^n of integers, of which one may be public, modulo the dtype's 2^bits for every n: 0 for
    negative ones unless x is ±1, as in PyTorch.

    A secret n is taken apart into the b bits of its dtype; one round chooses, log2(b) multiply, and
    b − 1 square a secret x before, one after another. Where n may be negative, a comparison asks
    for ±1. A public n has the bits of its greatest, or 64 where one is negative. By replicated
    sharing, for each result: of int64 that are both secret 93 rounds and 42,655 bits, of int8 27
    and 5,149; of a public x by a secret int64 17 and 29,919. In checked mode six bits of int64 are
    enough: see ``_few_bits``."""
    session, dtype = session_of(x, exponent), result_dtype(x, exponent)
    if dtype == torch.bool:
        unsupported("a power of booleans", "make them integers")
    base, exponent = _as(dtype, x), _as(dtype, exponent)
    base = as_words(base) if isinstance(base, SecretTensor) else base
    bits, negative = _taken_apart(exponent)
    is_checked = stays_in_range(session, dtype)
    if is_checked:
        bits = _few_bits(bits, negative)
    dims = max(base.dim(), bits.dim() - 1)
    squares = _squares_in_range(base, bits) if is_checked else _squares(base, len(bits))
    chosen = where(_of_dims(bits, dims), _of_dims(_stacked(squares), dims), 1)
    power: Any = chosen.like(shares.product(session, chosen._parts, in_range=is_checked))
    if negative is not None:
        power = where(logical_and(negative, _has_no_inverse(base)), 0, power)
    return SecretTensor(power._parts, WHOLE, session, dtype, unreduced=may_be_unreduced(dtype))


def _as(dtype: torch.dtype, x: Any) -> Any:
    """An operand within the dtype of the result: that of a number without
    dimensions may be wider."""
    if not isinstance(x, SecretTensor):
        return public(x).to(dtype).to(torch.int64)
    if x.dtype == torch.bool or torch.iinfo(x.dtype).bits <= torch.iinfo(dtype).bits:
        return x
    return as_words(x.like(x._parts, dtype=dtype, unreduced=may_be_unreduced(dtype)))


def _taken_apart(exponent: Any) -> tuple[Any, Any]:
    """The bits of an exponent along a new first dimension, lowest first; and whether it is
    negative, ``None`` where it never is."""
    if isinstance(exponent, SecretTensor):
        if exponent.dtype == torch.bool:
            return moved(exponent, lambda part: part.unsqueeze(0)), None
        exponent, limits = as_words(exponent), torch.iinfo(exponent.dtype)
        parts = shares.binary(exponent._session, exponent._parts, limits.bits)
        bits = SecretTensor(parts, WHOLE, exponent._session, torch.bool)
        return bits, moved(bits, lambda part: part[-1]) if limits.min < 0 else None
    exponent = public(exponent).to(torch.int64)
    lowest, highest = (int(bound) for bound in exponent.aminmax()) if exponent.numel() else (0, 0)
    width = WORD if lowest < 0 else max(1, highest.bit_length())
    places = torch.stack([exponent >> place & 1 for place in range(width)])
    return places.to(torch.bool), exponent < 0 if lowest < 0 else None


def _few_bits(bits: Any, negative: Any) -> Any:
    """The bits of exponents that have powers of the same words, where these are in range: six at
    most. Beyond 63 the parity alone counts for 0 and ±1, and all other bases leave the range by 62
    as well. By a negative exponent the power is 0 or that of ±1, to which the parity leads too."""
    lowest, others = bits[:1], bits[1:_ENOUGH]
    if len(bits) > _ENOUGH:
        others = torch.logical_or(others, bits[_ENOUGH:].any(0))
    if negative is not None:
        others = torch.logical_and(others, torch.logical_not(negative))
    return torch.cat([lowest, others])


def _squares(base: Any, count: int) -> list[Any]:
    """x, x², x⁴, ..., so many, modulo 2^64."""
    squares = [base]
    while len(squares) < count:
        squares.append(_square(squares[-1]))
    return squares


def _squares_in_range(base: Any, bits: Any) -> list[Any]:
    """The same where bits choose them, or greater ones: what is squared is less than the power
    then, and 1 elsewhere. What is public is squared up to 2^62, which no product takes."""
    squares = [base]
    for place in range(1, len(bits)):
        last = squares[-1]
        if isinstance(last, SecretTensor):
            last = where(bits[place:].any(0), last, 1)
            squares.append(
                last.like(
                    shares.multiply(last._session, last._parts, last._parts, 0, in_range=True)
                )
            )
        else:
            squares.append(torch.where(last.abs() < 1 << 31, last * last, 1 << 62))
    if isinstance(base, SecretTensor):
        squares[0] = moved(base, lambda part: part.expand(squares[-1].shape))
    return squares


def _square(x: Any) -> Any:
    if not isinstance(x, SecretTensor):
        return x * x
    return x.like(shares.multiply(x._session, x._parts, x._parts, 0), dtype=torch.int64)


def _stacked(squares: list[Any]) -> Any:
    if not isinstance(squares[0], SecretTensor):
        return torch.stack(squares)
    return squares[-1].like(
        shares.stacked(*(square._parts for square in squares)), dtype=torch.int64
    )


def _of_dims(x: Any, dims: int) -> Any:
    """With so many dimensions behind the first, as PyTorch makes operands alike."""
    return moved(
        x, lambda part: part.reshape(len(part), *(1,) * (dims - part.dim() + 1), *part.shape[1:])
    )


def _has_no_inverse(x: Any) -> Any:
    """Whether a number is not ±1."""
    if not isinstance(x, SecretTensor):
        return x.abs() != 1
    return logical_not(logical_or(eq(x, 1), eq(x, -1)))
