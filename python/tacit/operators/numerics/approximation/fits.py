"""Choice of the series that approximates a function.

A function takes the usual series, unless a compiled program chose another one. Another series may
need fewer products. Or it needs no comparison, if all numbers are known to be in the interval of
the series."""

import math
from typing import NamedTuple

from tacit.operators.numerics.approximation import coefficients
from tacit.operators.numerics.approximation.shorter import SHORTER
from tacit.sessions import Session


class Fit(NamedTuple):
    """A series that approximates a function, with its interval and its error."""

    series: tuple[float, ...]
    #: Largest error of results at the default scale, relative for results above 1.
    error: float
    #: For a function that is a line on each side, where the lines begin. If all numbers are known
    #: to be inside, the divisor of the argument.
    cutoff: float = 0.0
    low: float = -math.inf
    #: Interval in which all arguments must be known to be.
    high: float = math.inf

    @property
    def degree(self) -> int:
        """Degree of the series."""
        return len(self.series) - 1

    @property
    def is_everywhere(self) -> bool:
        """Whether the series may be used for all arguments."""
        return self.low == -math.inf and self.high == math.inf


#: Key of the series that is used if none is chosen.
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

#: Functions that need one comparison less if no number is negative.
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
    # A root is computed as a product with an inverse root.
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


#: All series, by function and key.
FITS: dict[str, dict[str, Fit]] = {function: _all_of(function) for function in _USUAL}


def fit_of(session: Session, function: str) -> Fit:
    """Returns the series that a function takes under the session's present settings."""
    return FITS[function][session.numerics.fits.get(function, USUAL)]
