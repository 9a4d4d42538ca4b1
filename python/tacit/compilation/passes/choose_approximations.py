"""Chooses the series of approximated functions.

Requires: final weights and scales; intervals that are proved without guards. Ensures: each function
has the cheapest of its series (``approximation.fits``) whose error is at most the error budget, or
at most that of the usual series if that is more. A series that holds only on an interval is chosen
only if all its arguments are proved to lie there, and runs only where that proof holds. Without a
budget no function is less exact than usual. Saves: products of shorter series and their rounds, and
for numbers that are known to be within a cutoff the comparisons with it. Choosing by cost within a
budget is CrypTorch's idea."""

import math
from itertools import product
from typing import NamedTuple

from tacit.compilation.approximating import Choice, error_of, fits_in, functions_of
from tacit.compilation.graph import Draft, Interval, Node
from tacit.compilation.intervals import SATURATED, intervals
from tacit.compilation.passes.assign_widths import WORTH
from tacit.operators.numerics.approximation.fits import FITS, USUAL, Fit
from tacit.operators.numerics.approximation.series import work

#: Greatest budget; with a greater one the proved intervals of results would not hold.
MOST_BUDGET = SATURATED

#: Value of a round in bits: what guards save for each of their ten rounds.
_ROUND = WORTH / 10

#: Approximate rounds, and bits for each number, as in docs/accuracy.md: of a product with
#: truncation, and of a comparison with its selection.
_PRODUCT_ROUNDS, _PRODUCT_BITS = 2, 83
_COMPARED_ROUNDS, _COMPARED_BITS = 8, 424


def choose_approximations(
    draft: Draft, budget: float | None = None, *, proved: bool = True
) -> None:
    """Chooses the series of a draft's functions, in place.

    Args:
        budget: greatest error of functions, relative where they are above 1.
        proved: whether choices may depend on proved intervals, and so reveal something about them.
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
    """Returns the keys of a function's series that hold for all numbers in an interval."""
    low, high = around or (-math.inf, math.inf)
    return [key for key, fit in FITS[function].items() if fit.low <= low and high <= fit.high]


class Cost(NamedTuple):
    """Declared cost by which the series of one function differ."""

    rounds: int
    bits: int

    @staticmethod
    def of(fit: Fit) -> "Cost":
        """Returns the cost of a series, and of its comparison if it holds everywhere."""
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
