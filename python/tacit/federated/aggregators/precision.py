"""Scale and comparison width of an aggregator's secret numbers.

Aggregators are plain PyTorch code, and vectors come in units of the bound on their norm. So their
intermediate values are known to be small. With fewer integer bits there is room for more fraction
bits, and comparisons are shorter."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tacit.sessions import comparison_width, current_session, fraction_bits

#: Fraction bits of values of one client that are below 2^2, as are their products.
FINE = 30

#: Fraction bits if products may be as large as 2^8.
WIDE = 27

#: Fraction bits if one of two factors, which has 23 itself, may be as large as 2^11.
COARSE = 26

#: Bits of a comparison in addition to the integer bits: 16 fraction bits, by its definition, a
#: sign, and one more for differences.
_EXTRA_BITS = 18


@contextmanager
def numbers(bits: int, before_the_point: int) -> Iterator[None]:
    """Sets the fraction bits of products and the comparison width of secret numbers within a block.

    Outside of a session it does nothing.

    Args:
        bits: fraction bits of products.
        before_the_point: numbers below 2^``before_the_point`` are compared correctly.
    """
    with ExitStack() as within:
        if current_session() is not None:
            within.enter_context(fraction_bits(bits))
            within.enter_context(comparison_width(_EXTRA_BITS + before_the_point))
        yield


@contextmanager
def integers(below: int) -> Iterator[None]:
    """Sets the comparison width so that secret integers from 0 to 2^``below`` are compared
    correctly.

    Outside of a session it does nothing.
    """
    with ExitStack() as within:
        if current_session() is not None:
            within.enter_context(comparison_width(below + 2))
        yield
