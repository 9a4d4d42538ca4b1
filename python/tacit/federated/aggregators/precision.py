"""Scale and comparison width of an aggregator's numbers, where these are secret.

Aggregators are plain PyTorch code, and vectors come in units of the bound on their norm, so what
they compute
is known to be small: with fewer bits before the point there are more behind it, and comparisons are
shorter."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tacit.sessions import comparison_width, current_session, fraction_bits

#: Fraction bits of what is computed for each client and is below 2^2, as are products of it.
FINE = 30

#: Fraction bits where products may be as large as 2^8.
WIDE = 27

#: Fraction bits where one of two factors, of which it has 23 itself, may be as large as 2^11.
COARSE = 26

#: Bits that a comparison has beside those before the point: 16 behind it by its definition, a sign,
#: and one more for differences.
_BESIDE = 18


@contextmanager
def numbers(bits: int, before_the_point: int) -> Iterator[None]:
    """Within it, products of secret numbers have that many fraction bits, and those below
    2^``before_the_point`` are compared rightly. Outside of a session it does nothing."""
    with ExitStack() as within:
        if current_session() is not None:
            within.enter_context(fraction_bits(bits))
            within.enter_context(comparison_width(_BESIDE + before_the_point))
        yield


@contextmanager
def integers(below: int) -> Iterator[None]:
    """Within it, secret integers from 0 to 2^``below`` are compared rightly. Outside of a session
    it does nothing."""
    with ExitStack() as within:
        if current_session() is not None:
            within.enter_context(comparison_width(below + 2))
        yield
