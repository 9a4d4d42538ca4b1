"""Which series a function takes: the usual one, or one that a compiled program chose, as fewer
products are enough for it, or no comparison is needed where all numbers are known to be where the
series holds."""

import math
from typing import NamedTuple

from tacit.operators.numerics.approximation import coefficients
from tacit.operators.numerics.approximation.shorter import SHORTER
from tacit.sessions import Session


class Fit(NamedTuple):
    """A series of a function, and where and how well it holds."""

    series: tuple[float, ...]
    error: float
    """Of results at the default scale, at most: relative where these are above 1."""
    cutoff: float = 0.0
    """Of a function with two lines: from where on it is these, or, where numbers are known, by what
    they are divided."""
    low: float = -math.inf
    high: float = math.inf
    """Between which numbers all must be known to be."""

    @property
    def degree(self) -> int:
        """Of the series."""
        return len(self.series) - 1

    @property
    def is_everywhere(self) -> bool:
        """Whether nothing must be known."""
        return self.low == -math.inf and self.high == math.inf


#: The key of what is taken if nothing is chosen.
USUAL = "usual"

_USUAL = {
    "sigmoid": Fit(coefficients.SIGMOID, 2**-10.7, 7.5),
    "tanh": Fit(coefficients.TANH, 2**-10.4, 4.0),
    "erf": Fit(coefficients.ERF, 2**-12, 2.75),
    "gelu": Fit(coefficients.GELU, 2**-10.7, 3.75),
    "gelu_tanh": Fit(coefficients.GELU_TANH, 2**-10.7, 3.75),
    "silu": Fit(coefficients.SILU, 2**-10, 9.25),
    "softplus": Fit(coefficients.SOFTPLUS, 2**-13, 10.0),
    "exp": Fit(coefficients.POWER_OF_TWO, 2**-12),
    "exp_below_zero": Fit(coefficients.ROOT_BELOW_ZERO, 2**-13),
    "reciprocal": Fit(coefficients.RECIPROCAL, 2**-13),
    "rsqrt": Fit(coefficients.INVERSE_ROOT, 2**-13),
    "sqrt": Fit(coefficients.INVERSE_ROOT, 2**-13),
    "log": Fit(coefficients.LOGARITHM, 2**-14),
}

#: Functions that spare a comparison where no number is negative.
_OF_POSITIVE = frozenset({"reciprocal", "rsqrt", "sqrt", "log"})


def _all_of(function: str) -> dict[str, Fit]:
    usual = _USUAL[function]
    found = {USUAL: usual}
    if usual.cutoff:
        found[f"degree {usual.degree} within {usual.cutoff:g}"] = usual._replace(
            low=-usual.cutoff, high=usual.cutoff
        )
    if function in _OF_POSITIVE:
        found[f"degree {usual.degree} from 0"] = usual._replace(low=0.0)
    # A root is a product with an inverse root.
    for degree, cutoff, is_known, error, series in SHORTER[
        "rsqrt" if function == "sqrt" else function
    ]:
        fit = Fit(series, error, cutoff)
        if is_known:
            found[f"degree {degree} within {cutoff:g}"] = fit._replace(low=-cutoff, high=cutoff)
            continue
        found[f"degree {degree}"] = fit
        if function in _OF_POSITIVE:
            found[f"degree {degree} from 0"] = fit._replace(low=0.0)
    return found


#: By function and key.
FITS: dict[str, dict[str, Fit]] = {function: _all_of(function) for function in _USUAL}


def fit_of(session: Session, function: str) -> Fit:
    """What a function takes in a session as it stands."""
    return FITS[function][session.numerics.fits.get(function, USUAL)]
