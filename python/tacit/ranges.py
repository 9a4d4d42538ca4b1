"""What leaves its range, under the reference, where values can be looked at: a trial run under
``protocol="plain"`` shows every overflow that shares would hide."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from tacit import _core, fixed, paths
from tacit.components import array
from tacit.errors import RangeWarning
from tacit.fixed import Scale
from tacit.session import Session


def check_product(
    session: Session,
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    summands: int,
    product: Callable[..., torch.Tensor],
    *,
    truncated: bool = True,
) -> None:
    """Reports a product of words, of which a result takes that many, that truncation cannot take, or no
    word."""
    bound = float(_core.greatest_magnitude(x)) * _core.greatest_magnitude(y) * summands
    if bound < 2.0**fixed.RANGE and (session.headroom is None or not truncated):
        return
    exact = product(*(torch.from_numpy(words).to(torch.float64) for words in (x, y)))
    greatest = float(exact.abs().max())
    if truncated:
        _note_headroom(session, "product", fixed.RANGE, greatest)
    _check_word(session, "product", greatest)


def check_sum(session: Session, words: torch.Tensor, added: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Reports a sum of words, of all of them at most, that no word holds."""
    if words.numel() and float(_greatest(words)) * words.numel() >= 2.0**fixed.RANGE:
        _check_word(session, "sum", float(added(words.to(torch.float64)).abs().max()))


def check_shift(session: Session, words: torch.Tensor, bits: int) -> None:
    """Reports numbers that have no word with so many more fraction bits."""
    if words.numel():
        _check_word(session, "number", float(_greatest(words)) * 2.0**bits)


def check_difference(session: Session, x: torch.Tensor, y: torch.Tensor, width: int) -> None:
    """Reports differences that need more bits than they are compared with: of two words at most 65."""
    if width > 64 or not (x.numel() and y.numel()) or float(_greatest(x)) + _greatest(y) < 2.0 ** (width - 1):
        return
    greatest = float((x.to(torch.float64) - y.to(torch.float64)).abs().max())
    if greatest >= 2.0 ** (width - 1):
        _report(
            session,
            f"a difference of 2^{math.log2(greatest):.1f} as a word, where less than 2^{width - 1} is "
            "compared rightly",
        )


def check_quotient(session: Session, x: torch.Tensor, y: torch.Tensor, limit: int) -> None:
    """Reports words of fractions that cannot be divided: those of more bits than that."""
    if x.numel():
        for what, words in (("dividend", x), ("divisor", y)):
            _check_word(session, what, float(_greatest(words)), limit)


def _check_word(session: Session, what: str, greatest: float, limit: int = fixed.RANGE) -> None:
    if greatest >= 2.0**limit:
        _report(
            session,
            f"a {what} of 2^{math.log2(greatest):.1f} as a word, where less than 2^{limit} is right: "
            "it is wrong from here on",
        )


def check_value(session: Session, words: torch.Tensor, scale: Scale) -> None:
    """Reports numbers that are larger than their scale allows."""
    greatest = _greatest(words)
    _note_headroom(session, "value", fixed.ENCODED, greatest)
    if greatest >= 2.0**fixed.ENCODED:
        _report(
            session,
            f"a value of magnitude {greatest * 2.0**-scale.bits:g}; with {scale.bits} fraction bits "
            f"products are right below {scale.limit:g}",
        )


def _greatest(words: torch.Tensor) -> int:
    if words.is_contiguous():
        return _core.greatest_magnitude(array(words))
    # A view, which may repeat few words without end, is not copied for that.
    lowest, highest = words.aminmax()
    return max(-int(lowest), int(highest))


def _note_headroom(session: Session, kind: str, bits: int, greatest: float) -> None:
    if session.headroom is not None and greatest:
        key = session.modules.labels[-1] if session.modules.labels else "", kind
        left = bits - math.log2(greatest)
        session.headroom[key] = min(left, session.headroom.get(key, left))


def _report(session: Session, what: str) -> None:
    """Each operator of each module once, by party 0 alone: all hold the same values."""
    where = f"{session.operator or 'tacit'} in {paths.current()}"
    if session.party == 0 and where not in session.reported:
        session.reported[where] = what
        warnings.warn(f"out of range: {where} has {what}; scale the data down", RangeWarning, stacklevel=2)
