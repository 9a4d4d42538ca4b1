"""Requires: weights and scales as they will be; proved intervals, in which no guard plays a part.
Ensures: each function has the cheapest of its series (``approximation.fits``) that is off by no
more than the error budget, or than the usual one where that is more; one that holds between some
numbers alone is chosen only where all of them are proved to be there, and runs only where that
proof holds. Without a budget no function is less exact than usually. Saves: products of shorter
series and their rounds, and of numbers that are known to be within a cutoff the comparisons with
it. To choose by cost within a budget is CrypTorch's idea."""

import math
from itertools import product
from typing import NamedTuple

from tacit.compilation.approximating import Choice, error_of, fits_in, functions_of
from tacit.compilation.graph import Draft, Interval, Node
from tacit.compilation.intervals import SATURATED, intervals
from tacit.compilation.passes.assign_widths import WORTH
from tacit.operators.numerics.approximation.fits import FITS, USUAL, Fit
from tacit.operators.numerics.approximation.series import work

#: With a greater budget what is proved of results would not hold.
MOST_BUDGET = SATURATED

#: Bits of a round: those that guards save for each of their ten.
_ROUND = WORTH / 10

#: Rounds and bits a number, about, as docs/accuracy.md has them: of a product with truncation, and
#: of a comparison with its choice.
_PRODUCT_ROUNDS, _PRODUCT_BITS = 2, 83
_COMPARED_ROUNDS, _COMPARED_BITS = 8, 424


def choose_approximations(
    draft: Draft, budget: float | None = None, *, proved: bool = True
) -> None:
    """Carries the pass out.

    Args:
        budget: what functions may be off by, relative where they are above 1.
        proved: whether choices may tell between which numbers values lie.
    """
    known = intervals(draft) if proved else {}
    for node in draft.graph.nodes:
        node.meta["fits"] = _cheapest(node, known, budget) if functions_of(node) else {}


def _cheapest(node: Node, known: dict[Node, Interval], budget: float | None) -> Choice:
    functions = functions_of(node)
    usual: Choice = {}
    allowed = max(error_of(node, usual), budget or 0.0)
    around = known.get(node.args[0]) if len(functions) == 1 else None
    best, least = usual, _cost(node, usual)
    for keys in product(*(_holding(function, around) for function in functions)):
        choice = {name: key for name, key in zip(functions, keys, strict=True) if key != USUAL}
        cost = _cost(node, choice)
        if error_of(node, choice) <= allowed and cost < least:
            best, least = choice, cost
    return best


def _holding(function: str, around: Interval | None) -> list[str]:
    """The keys of a function's series that hold of all numbers in an interval."""
    low, high = around or (-math.inf, math.inf)
    return [key for key, fit in FITS[function].items() if fit.low <= low and high <= fit.high]


class Cost(NamedTuple):
    """Declared, of what series of one function differ by."""

    rounds: int
    bits: int

    @staticmethod
    def of(fit: Fit) -> "Cost":
        """Of a series, and of a comparison where nothing is known."""
        products, deep = work(fit.degree)
        compared = fit.is_everywhere
        return Cost(
            _PRODUCT_ROUNDS * deep + _COMPARED_ROUNDS * compared,
            _PRODUCT_BITS * products + _COMPARED_BITS * compared,
        )


def _cost(node: Node, choice: Choice) -> float:
    places = node.meta["value"].numbers
    costs = [Cost.of(fit) for fit in fits_in(node, choice)]
    return sum(_ROUND * each.rounds + places * each.bits for each in costs)
