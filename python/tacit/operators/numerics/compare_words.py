"""Comparisons, maxima and minima of two words, by the sign of their difference.

The difference of two whole words (int64) needs 65 bits, but a word has 64. So its sign counts only
if both words have the same sign. Otherwise the sign of the first word decides."""

from typing import Any

import torch

from tacit.fixed import WHOLE, WORD, Scale
from tacit.operators.dispatch.operands import compared, public, rectified, together
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Comparison, Parts
from tacit.tensor import SecretTensor


def difference_width(session: Session, scale: Scale, *operands: Any) -> int:
    """Returns the number of bits that differences of operands need at a scale.

    For integers these are the bits of their dtypes, or of their values if they are public, and one
    more. A width of 65 means that whole words are compared."""
    own = compared(session, scale)
    if scale != WHOLE or any(_is_fraction(operand) for operand in operands):
        return own
    needed = max(map(reach, operands)) + 1
    # A promise that a program makes by its comparison width includes differences.
    return needed if own == WORD else min(own, needed)


def of_difference(session: Session, scale: Scale, *operands: Any) -> Comparison:
    """Returns the comparison for a maximum of operands, guarded if the session is."""
    if scale != WHOLE and session.numerics.guard is not None:
        return rectified(session, scale)
    return Comparison(difference_width(session, scale, *operands))


def _is_fraction(operand: Any) -> bool:
    return isinstance(operand, float) or (
        isinstance(operand, torch.Tensor) and operand.is_floating_point()
    )


def reach(operand: Any) -> int:
    """Returns how many bits integers have, with their sign."""
    if not isinstance(operand, SecretTensor):
        words = public(operand).to(torch.int64)
        ends = [int(end) for end in words.aminmax()] if words.numel() else [0]
        return 1 + max((end if end >= 0 else ~end).bit_length() for end in ends)
    if operand.dtype == torch.bool:
        return 1
    limits = torch.iinfo(operand.dtype)
    return limits.bits + (limits.min == 0)


def less(session: Session, x: Parts, y: Parts | torch.Tensor, width: int) -> Parts:
    """Returns bits that say whether x < y, for secret or public words y.

    The difference of x and y has ``width`` bits. Up to 64, the comparison costs the rounds and bits
    of one sign. A width of 65 costs one round more and three signs. Signs of public words cost
    nothing, and for y = 0 the sign of x is enough.
    """
    known = y if isinstance(y, torch.Tensor) else None
    words = shares.trivial(session, y) if isinstance(y, torch.Tensor) else y
    difference = shares.subtract(x, words)
    if width <= WORD:
        shares.check_difference(session, x, words, width)
        return shares.sign(session, difference, width)
    if known is None:
        of_difference, of_first, of_second = _signs(session, difference, x, words)
        return settled(session, of_difference, of_first, of_second)
    if not bool(known.any()):
        return shares.sign(session, difference, WORD)
    negative = shares.trivial_bits(session, (known < 0).to(torch.uint8))
    of_difference, of_first = _signs(session, difference, x)
    return settled(session, of_difference, of_first, negative)


def settled(session: Session, difference: Parts, x: Parts, y: Parts) -> Parts:
    """Returns whether x < y, as bits, from the signs of x − y mod 2^64, x and y. One round."""
    unlike, astray = together(shares.xor(x, y), shares.xor(*together(x, difference)))
    return shares.xor(difference, shares.and_bits(session, unlike, astray))


def _signs(session: Session, *words: Parts) -> list[Parts]:
    """Computes the signs of words of several shapes in one batch."""
    flat = tuple(
        torch.cat([part.reshape(-1) for part in parts]) for parts in zip(*words, strict=True)
    )
    signs = shares.sign(session, flat, WORD)
    shapes = [parts[0].shape for parts in words]
    pieces = (torch.split(part, [shape.numel() for shape in shapes]) for part in signs)
    return [
        tuple(bit.reshape(shape) for bit in bits)
        for bits, shape in zip(zip(*pieces, strict=True), shapes, strict=True)
    ]


def greater(session: Session, x: Parts, y: Parts, comparison: Comparison) -> Parts:
    """Returns the elementwise maximum of x and y, of equal shapes.

    ``comparison`` says how their difference is compared. Takes the rounds of ``less`` and two."""
    if comparison.width <= WORD:
        return shares.maximum(session, x, y, comparison)
    lost = less(session, x, y, comparison.width)
    return shares.select(session, lost, y, x)


def lesser(session: Session, x: Parts, y: Parts, comparison: Comparison) -> Parts:
    """Returns the elementwise minimum of x and y, as the sum of both less their maximum."""
    return shares.subtract(shares.add(x, y), greater(session, x, y, comparison))


def opposite(session: Session, x: Parts) -> Parts:
    """Returns −1 − x, which reverses the order of words.

    The negative −x would not do, since the least word has no negative."""
    return tuple(
        unit - part for unit, part in zip(shares.trivial(session, torch.tensor(-1)), x, strict=True)
    )
