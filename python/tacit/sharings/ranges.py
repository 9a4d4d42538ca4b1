"""Range checks under the plain reference protocol.

Only there can values be looked at. So a trial run under ``protocol="plain"`` shows every overflow
that shares would hide."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from tacit import _core, fixed
from tacit.buffers import array
from tacit.errors import PrecisionWarning, RangeWarning, source_lines
from tacit.fixed import Scale
from tacit.modes import is_tracing
from tacit.sessions import Session
from tacit.trace import module_paths


def check_product(
    session: Session,
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    summands: int,
    product: Callable[..., torch.Tensor],
    *,
    truncated: bool = True,
    limit: int = fixed.RANGE,
) -> None:
    """Reports products of words that overflow, or that are too large for their truncation.

    A result adds up to ``summands`` products. Results must be below 2^limit."""
    bound = float(_core.greatest_magnitude(x)) * _core.greatest_magnitude(y) * summands
    if bound < 2.0**limit and (session.headroom is None or not truncated):
        return
    exact = product(*(torch.from_numpy(words).to(torch.float64) for words in (x, y)))
    greatest = float(exact.abs().max())
    if truncated:
        _note_headroom(session, "product", fixed.RANGE, greatest)
    _check_word(session, "product", greatest, limit)


def check_narrow(session: Session, exact: torch.Tensor) -> None:
    """Reports a sum of products that was promised to be narrow and is not."""
    _check_word(session, "product", float(exact.abs().max()), fixed.NARROW)


def check_sum(
    session: Session, words: torch.Tensor, added: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Reports sums of words that overflow. A sum adds at most all of the words."""
    if words.numel() and float(_greatest(words)) * words.numel() >= 2.0**fixed.RANGE:
        _check_word(session, "sum", float(added(words.to(torch.float64)).abs().max()))


def check_shift(session: Session, words: torch.Tensor, bits: int) -> None:
    """Reports numbers that overflow if they are shifted up by ``bits``."""
    if words.numel():
        _check_word(session, "number", float(_greatest(words)) * 2.0**bits)


def check_moved(session: Session, words: torch.Tensor, exponents: torch.Tensor) -> None:
    """Reports numbers that overflow if they are multiplied by these powers of two."""
    if words.numel() and exponents.numel() and not is_tracing():
        exact = words.to(torch.float64) * torch.exp2(exponents.to(torch.float64))
        _check_word(session, "number", float(exact.abs().max()))


def check_compared(session: Session, words: torch.Tensor, bits: int) -> None:
    """Reports compared words whose magnitude needs more than ``bits`` bits."""
    if bits < fixed.WORD - 1 and words.numel():
        _check_comparison(session, float(_greatest(words)), bits)


def check_rectified(session: Session, exact: torch.Tensor, bits: int) -> None:
    """Reports exact values that are too large for a comparison that is done with their truncation.

    Their words may have wrapped around, and so would not show this."""
    if exact.numel():
        _check_comparison(session, float(exact.abs().max()), bits)


def check_difference(session: Session, x: torch.Tensor, y: torch.Tensor, width: int) -> None:
    """Reports differences that are too large for a comparison.

    A difference of two words needs 65 bits, so its word may not show this."""
    if x.numel() and y.numel() and float(_greatest(x)) + _greatest(y) >= 2.0 ** (width - 1):
        difference = x.to(torch.float64) - y.to(torch.float64)
        _check_comparison(session, float(difference.abs().max()), width - 1)


def check_infinite(session: Session, words: torch.Tensor, public: torch.Tensor, bits: int) -> None:
    """Reports secrets that are not below 2^bits, the word of an infinite public number.

    They are only checked if such a number is among the public ones."""
    if is_tracing() or not words.numel() or not bool((public.abs() == 1 << bits).any()):
        return
    if (greatest := float(_greatest(words))) >= 2.0**bits:
        _report(
            session,
            f"numbers of 2^{math.log2(greatest):.1f} as a word beside an infinite one, "
            f"which counts as 2^{bits}",
        )


def _check_comparison(session: Session, greatest: float, bits: int) -> None:
    if greatest >= 2.0**bits:
        _report(
            session,
            f"a comparison of 2^{math.log2(greatest):.1f} as a word, where less than 2^{bits} is "
            f"right",
            "choose a greater comparison_width, or scale the data down",
        )


def check_quotient(session: Session, x: torch.Tensor, y: torch.Tensor, limit: int) -> None:
    """Reports words of fractions that are not below 2^limit and so cannot be divided."""
    if x.numel():
        for what, words in (("dividend", x), ("divisor", y)):
            _check_word(session, what, float(_greatest(words)), limit)


def _check_word(session: Session, what: str, greatest: float, limit: int = fixed.RANGE) -> None:
    if greatest >= 2.0**limit:
        _report(
            session,
            f"a {what} of 2^{math.log2(greatest):.1f} as a word, where less than 2^{limit} is "
            f"right: "
            "it is wrong from here on",
        )


def check_limit(
    session: Session, words: torch.Tensor, scale: Scale, limit: float, operator: str, what: str
) -> None:
    """Reports numbers beyond a limit to which they are clamped."""
    greatest = _greatest(words) * 2.0**-scale.bits if words.numel() else 0.0
    if greatest > limit:
        found = f"{what} of magnitude {greatest:g}, which counts as {limit:g}"
        _report(session, found, "scale the loss down, or clip", operator)


def check_argument(
    session: Session, words: torch.Tensor, scale: Scale, limit: float, what: str, consequence: str
) -> None:
    """Reports arguments of a function above a limit, and the consequence."""
    if session.is_plain and words.numel() and not is_tracing():
        greatest = float(words.max()) * 2.0**-scale.bits
        if greatest >= limit:
            _report(session, f"{what} of {greatest:g}, where {consequence} from {limit:.6g} on")


def check_domain(session: Session, outside: torch.Tensor, what: str, remedy: str) -> None:
    """Reports arguments outside a function's domain, with a remedy."""
    if not is_tracing() and bool(outside.any()):
        _report(session, what, remedy)


def check_value(session: Session, words: torch.Tensor, scale: Scale) -> None:
    """Reports numbers that are larger than their scale allows."""
    greatest = _greatest(words)
    _note_headroom(session, "value", fixed.ENCODED, greatest)
    if greatest >= 2.0**fixed.ENCODED:
        _report(
            session,
            f"a value of magnitude {greatest * 2.0**-scale.bits:g}; with {scale.bits} fraction "
            f"bits "
            f"products are right below {scale.limit:g}",
        )


def greatest(words: torch.Tensor) -> int:
    """Returns the greatest magnitude of words, or 0 if there are none."""
    return _greatest(words) if words.numel() else 0


def _greatest(words: torch.Tensor) -> int:
    if is_tracing():
        # Traced tensors have no values. They are checked when the graph runs.
        return 0
    if words.is_contiguous():
        return _core.greatest_magnitude(array(words))
    # A view is not copied for this, since it may repeat few words very often.
    lowest, highest = words.aminmax()
    return max(-int(lowest), int(highest))


def _note_headroom(session: Session, kind: str, bits: int, greatest: float) -> None:
    if session.headroom is not None and greatest:
        key = session.modules.labels[-1] if session.modules.labels else "", kind
        left = bits - math.log2(greatest)
        session.headroom[key] = min(left, session.headroom.get(key, left))


def report_precision(session: Session, what: str) -> None:
    """Reports a constant that rounding changes, once for each line of a program and each module."""
    place = ", ".join(filter(None, (module_paths.current(), source_lines.line())))
    said = f"lost in rounding: {session.operator or 'tacit'} in {place}, has {what}"
    if said not in session.lost_constants:
        session.lost_constants.add(said)
        warnings.warn(said, PrecisionWarning, stacklevel=2)


def _report(
    session: Session, what: str, remedy: str = "scale the data down", operator: str = ""
) -> None:
    """Reports an overflow once for each operator in each module.

    Outside modules, it is reported once for each line of the program. Only party 0 reports, since
    all parties hold the same values."""
    if session.party:
        return
    where = f"{operator or session.operator or 'tacit'} in {module_paths.current()}"
    if not session.modules.labels and (line := source_lines.line()):
        where += f", {line},"
    if where not in session.reported:
        session.reported[where] = what
        warnings.warn(f"out of range: {where} has {what}; {remedy}", RangeWarning, stacklevel=2)
