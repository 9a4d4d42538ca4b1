"""Products of numbers by powers of two with secret exponents.

Small linear systems are normalised by these, and their solutions are scaled back. An exponent is a
ring element. All steps are the protocol's own operations on shares, in an order that follows from
shapes alone: nothing is opened, and no message depends on an exponent.
"""

from collections.abc import Sequence

import torch

from tacit import fixed
from tacit.operators.numerics.approximation.fits import FITS, USUAL
from tacit.operators.numerics.approximation.normal import argument, number, power_of_two
from tacit.operators.numerics.approximation.series import RESULT, constant, evaluate
from tacit.sessions import Session
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts

#: Binary places of an exponent, which is below 2^PLACES.
PLACES = 7

#: Number of low places, which give a factor of at most 2^15. The others select a public shift.
_LOW = 4

#: Fraction bits of the first estimate of a reciprocal.
_ROUGH = 22

#: Words that are moved are below 2^MOST_MOVED, so that they have room for the factor.
MOST_MOVED = fixed.ENCODED


def leading(session: Session, x: Parts, width: int, *, even: bool = False) -> tuple[Parts, Parts]:
    """Returns the exponent by which words 0 ≤ x < 2^width fill the width, and its power of two.

    Zero counts as one. About 20 rounds.

    Args:
        even: return half of the exponent, rounded down. The square of its power fills the width
            except for, at most, the highest bit.
    """
    binary, _ = shares.leading_zeros(session, x, width)
    digits = shares.unstacked(binary)[even:]
    places = shares.unstacked(shares.bit_to_ring(session, shares.stacked(*digits)))
    return number(places), power_of_two(session, places)


def moved(session: Session, x: Parts, exponent: Parts, down: int) -> Parts:
    """Computes x·2^(exponent − down) with an error of at most two units, for broadcastable shapes.

    Domain: |x| < 2^46; 0 ≤ exponent < 2^7; results below 2^62. About 20 rounds.
    """
    if session.is_plain:
        ranges.check_moved(session, x[0], exponent[0] - down)
    low, high = _digits(session, exponent)
    places = shares.unstacked(shares.bit_to_ring(session, shares.stacked(*low)))
    power = power_of_two(session, places)
    shape = torch.broadcast_shapes(x[0].shape, exponent[0].shape)  # type: ignore[no-untyped-call]
    x = bilinear.multiply(session, _spread(x, shape), _spread(power, shape), 0)
    chosen, candidates = [], []
    for at, bits in enumerate(_one_of(session, high)):
        shift = (at << _LOW) - down
        if -fixed.RANGE < shift < fixed.WORD:
            # A shift that is not chosen may overflow, since it is multiplied by 0.
            there = (
                tuple(part << shift for part in x)
                if shift >= 0
                else shares.truncate(session, x, -shift)
            )
            chosen.append(_spread(bits, shape))
            candidates.append(there)
    found = shares.bit_multiply(session, shares.stacked(*chosen), shares.stacked(*candidates))
    return tuple(part.sum(0) for part in found)


def limited(session: Session, exponent: Parts, width: int) -> Parts:
    """Clamps exponents, words of ``width`` bits, to the range that ``moved`` takes."""
    most = shares.trivial(session, torch.tensor((1 << PLACES) - 1))
    positive = shares.relu(session, exponent, width)
    beyond = shares.relu(
        session, tuple(part - top for part, top in zip(positive, most, strict=True)), width
    )
    return shares.subtract(positive, beyond)


def reciprocal(session: Session, x: Parts, bits: int) -> Parts:
    """Computes 1 / x for x from 1/2 to 1, with an error of a few units of 2^−28. About 15 rounds.

    Args:
        bits: fraction bits of x and of the result, at most 28.
    """
    total = evaluate(session, argument(session, x, bits, 0.5), FITS["reciprocal"][USUAL].series)
    rough = shares.truncate(session, total, RESULT - _ROUGH)
    # A Newton step: y + y·(1 − x·y).
    product = bilinear.multiply(session, x, rough, _ROUGH)
    error = tuple(
        one - part for one, part in zip(constant(session, 1.0, bits), product, strict=True)
    )
    change = bilinear.multiply(session, rough, error, _ROUGH)
    return tuple((y << (bits - _ROUGH)) + more for y, more in zip(rough, change, strict=True))


def _digits(session: Session, exponent: Parts) -> tuple[list[Parts], list[Parts]]:
    digits = shares.unstacked(shares.binary(session, exponent, PLACES))
    return digits[:_LOW], digits[_LOW:]


def _one_of(session: Session, digits: Sequence[Parts]) -> list[Parts]:
    """Returns bits that say whether a nonnegative binary number is 0, 1, 2 and so on.

    Takes a round for each digit except the first."""
    lowest, *others = digits
    found = [shares.complement(session, lowest), lowest]
    for digit in others:
        with_it = shares.and_bits(
            session,
            shares.stacked(*found),
            _spread(
                tuple(part.unsqueeze(0) for part in digit),
                torch.Size([len(found), *digit[0].shape]),
            ),
        )
        both = shares.unstacked(with_it)
        found = [shares.xor(one, less) for one, less in zip(found, both, strict=True)] + both
    return found


def _spread(parts: Parts, shape: torch.Size) -> Parts:
    return tuple(part.expand(shape) for part in parts)
