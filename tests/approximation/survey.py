"""A program that measures every approximation and writes docs/accuracy.md.

The program writes nothing if an error exceeds the declared one.
"""

import inspect
import math
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import declared
import torch

import tacit
from tacit.operators.numerics import approximation

TARGET = Path(__file__).resolve().parents[2] / "docs/accuracy.md"

HEAD = """# How exact functions are

This page lists the errors and costs of approximated functions, and how they treat numbers outside
of their domains. `tests/approximation/survey.py` writes it, and a test checks every declared error.
The measurements use dense grids on replicated shares, at the default scale of 16 fraction bits, and
compare with double precision. An error is absolute, unless the table says that it is relative. A
relative error does not count if the result is off by less than 2^−13, which is eight units of the
scale. The largest absolute error is over the whole domain, where results may be as large as 2^30.
Rounds and bits are measured for {count} numbers. Bits are over all links together, for each number.
A few hundred numbers take somewhat fewer rounds.

| function | domain | declared | measured | largest absolute | rounds | bits |
| --- | --- | --- | --- | --- | --- | --- |
""".replace("{count}", f"{declared.DIVIDED:,}")

METHODS = """
The next list says how the functions are computed; the docstrings in
`python/tacit/operators/numerics/approximation` say the same. Series are Chebyshev series, evaluated
as in Paterson and Stockmeyer 1973, and fitted as in Lawson 1961.

"""

QUOTIENTS = """
Whole quotients are exact. A quotient by a public number takes a truncation or two for each 14 bits
that the quotient may have, and a comparison.

| ⌊x / y⌋ | rounds | bits |
| --- | --- | --- |
"""

FOOT = """
**Powers and products.** Whole powers and products of many numbers (`x**n`, `prod`, `cumprod`) are
off by one unit of the scale for each factor, relative if the result is above 1. For x^n at the
default scale that is n·2^−16, so (1 + r)^360 is off by half a per cent at most. Negative powers
from −2 on are off by two units for each factor. `with tacit.fraction_bits(24):` makes a unit 2^−24,
for results below 2^14. If such a scale has more than 20 bits, quotients by secrets have all of them
too: they are then off by 2^−24 relative and two units. Exponentials, logarithms and roots have the
errors of the table at every scale, and so do roots of products. Powers by whole numbers from 65 on,
and by negative ones, become about the limit of the range if they exceed it.

**Integers** are exact until they become fractions. Means of integers, quotients of integers of 64
bits by public numbers, and their products with public fractions are off by four units, for results
below 2^44. Quotients of integers by secrets are off by 2^−24 relative and four units; larger
quotients than 2^44 become about that.

**Softmax.** The sum of a softmax over 10 to 1,000 classes is within 2^−7 of 1, and each of its
numbers within 2^−9.

**Outside of their domain** functions behave as follows. `exp` is exactly 0 far below, and saturates
at about 2^29.98 above. `log`, `sqrt` and `rsqrt` treat negative numbers as 0. If a function has no
value at 0, it treats 0 as the smallest number of its scale: `log(0)` is −11.09, `log10(0)` −4.82,
`log1p` of −1 and less −11.09, `1/0` 65536 and `rsqrt(0)` 256. Quotients of fractions that cannot be
encoded become ±2^30. Negative whole powers become about as much, so `0.0**-2` is 2^29.99. `acos`
and `asin` treat numbers beyond ±1 as ±1. `atanh(±1)` is ±5.89, `logit` of 0 and 1 ∓11.09, and
beyond these both are finite too. In `//` a secret divisor of 0 counts as the smallest number of its
scale, so `7.5 // 0` is 491520, and `7 // 0` of integers is 7; the remainder by it is the dividend.
Beyond ±64, `sin` and `cos` may be off by |x|·2^−22 more, which is 0.03 at 2^17; from 2^20 on they
have no meaning.

`lgamma` saturates at about 2^29.99. It is 11.09 at 0, and 19.41 + ln π − ln n! at a negative whole
number −n; `digamma` is about ±2^16 at both. `polygamma` of orders up to 3 saturates at about 2^29
near its poles. `erfinv` of ±1 and numbers beyond is ±3.964, and `special.ndtri` of 0, 1 and numbers
beyond ±5.606. A run under `protocol="plain"` warns of these, except for `lgamma` and `digamma` at
poles.

**Normalisation.** Layer, group and RMS norm are as exact for small rows as for large ones. They are
off by 2^−12 relative and two units of 2^−16. Except for RMS norm, they are also off by a unit of
the mean, 2^−24, divided by the standard deviation. Batch and instance norm in training have the
same error, and 2^−24 of the standard deviation more. √Σ x² of a row of RMS norm must be below 2^30,
and √Σ (x − mean)² of the others below 2^22. For rows of n numbers, an ε from 0 on counts as at
least 2^−30/n, or 2^−46/n if there is a mean. Gradients are off by 2^−12 of the incoming gradient,
in units of the deviation, and two units of 2^−20.

**Roots of sums of squares** are computed from the numbers that were squared. This includes norms of
order 2, standard deviations, and root mean squares that a model writes itself:
`x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)` and similar expressions (`x*x`, `square`,
`sum`, `var`; `+ eps`; `sqrt`, `rsqrt`, `reciprocal` and powers of ±1/2; public factors).

- A root is off by 2^−13 relative and two units of 2^−16. Numbers that are divided by it, or
  multiplied by the inverse, are off by 2^−12 for rows of any magnitude. So are `normalize`, and RMS
  norms that are written by hand.
- Inverse roots have units of 2^−24 if the root has a factor, if an ε was added to the root, or if
  the divided numbers are not those that were squared (a copy in another dtype counts as other
  numbers).
- Gradients have the errors of RMS norm, except for eight units of 2^−20 instead of two. The
  gradient of a mean of squares itself is an ordinary number.
- Deviations that a model computes, and those of `var` and `std`, have units of 2^−16.
- A mean of squares is an ordinary number, in which small squares have no bits, if it was clamped or
  written to, or if its numbers were written to. Only the latest 32 results of a kind are
  remembered, and the latest 512 roots that receive gradients. Older ones are ordinary numbers too.
- Squares of numbers from 2^15 on leave the range; their root does not. A run under
  `protocol="plain"` warns of such squares.

**Norms** of orders other than 0, 1, 2 and infinity, from 1/16 to 16 and also negative ones, are
computed by logarithms. Order p is off by (2 + 1/|p|)·2^−13 relative and two units of 2^−16, and has
no gradient.

**Powers by logarithms.** Powers by secret exponents, by more than eight public ones at once, and by
whole numbers beyond ±2^13 are computed by the logarithm of the base's magnitude, with the sign that
a whole exponent gives it. A negative base has no power with a fractional exponent. A secret
exponent then gives 0, and a public one gives the power of the smallest number, where PyTorch gives
NaN. A run under `protocol="plain"` warns of it.

**Secret indices** are not checked, where PyTorch raises an error. A read at an index out of range
returns 0 (`one_hot` returns no class), and a write does nothing. `x[i]`, `take` and `index_put`
count −1 and less from the end; for `gather`, `index_select`, `embedding` and `scatter` these are
out of range. In `nll_loss` and `cross_entropy` a secret class number that is no class counts as
ignored. `bernoulli` treats probabilities beyond 0 and 1 as 0 and 1. `multinomial` draws the last
index if all weights are 0. Without replacement, it draws the last index again if no others are
left.

**Small systems.** Solutions, inverses and factors (`linalg.solve`, `inv`, `solve_triangular`, `qr`,
`cholesky`, `cholesky_solve`, `det`, `slogdet`) are right for condition numbers up to 2^10 if
elements and results are in range. Rows and columns may have any magnitudes, as they are normalised
in secret. The condition number is therefore the least over all scalings of rows and columns; for
`qr`, of columns alone. Results are off by two units of 2^−16, and by 2^−17 of the greatest number
of an inverse, a factor, or a column of a solution (in each row times the norm of the matrix's
column). A determinant is off by 2^−16 of itself, its logarithm by 2^−14. These errors are for the
matrix as it is encoded: if it has small elements or is nearly singular, its own rounding to 2^−16
matters more. An inverse has units of 2^−16 too, so the inverse of a matrix of millions has no
digits; use `solve`, which has. A matrix that is singular, or has a condition number beyond 2^10,
gives numbers without meaning; a run under `protocol="plain"` warns of it. Gradients are computed
from such solutions.

**Spectra.** Symmetric eigenvalues and singular values (`linalg.eigh`, `svd`) are off by 2^−18 of
the norm of the matrix and two units. Their vectors are off by that divided by the distance of their
value from the others, and have the signs and, of equal values, the basis that the rotations give
them. `pinv` and `matrix_rank` count singular values up to 2^−11 of the greatest as zero, where
PyTorch counts those up to a unit of float32; `matrix_rank` also those up to four units of 2^−16.
`lstsq` takes full rank and condition numbers up to 2^10 after columns are scaled. `matrix_exp`
takes column sums up to 64, and is off by 2^−18 of its greatest number for normal matrices.

**CTC.** `ctc_loss` is off by 2^−12 for each step of its input, for losses below 2^13. A target that
fits no input has an infinite loss. It counts 0 with `zero_infinity=True`, and is refused without.
Without it, a secret target of n labels is also refused if the input has less than 2n − 1 steps,
since whether it fits is secret.

**Masked rows.** `softmax` of a row that is −∞ everywhere, such as a row that is masked completely,
gives equal parts, where PyTorch gives NaN.

**Overflow.** None of these functions wraps around. Sums and products do: a result outside the range
of fractions is wrong. So is `1000.0**4`, since whole powers are products. A run under
`protocol="plain"` warns of both. Gradients that are computed from squares are wrong as well: those
of `1/x` if |x| is below 2^−15, and those of `arctan`, `asinh`, `acosh`, `erf` and `erfc` beyond
±2^13. The gradient of `rsqrt` is right from 2^−16 on. That of `sinc`, which is divided by x², is
off by up to 2^−15/x².
"""


@dataclass(frozen=True)
class Cost:
    """The rounds of a computation, and its bits over all links for each number."""

    rounds: int
    bits: float


def results(x: list[torch.Tensor]) -> list[torch.Tensor]:
    """Runs in a party. Returns the revealed result of each function on its grid."""
    return [
        function.approximate(tacit.share(grid, owner=0)).reveal()
        for function, grid in zip(declared.FUNCTIONS, x, strict=True)
    ]


Readings = list[tuple[dict[str, Any], dict[str, Any]]]


def counted(*computations: Callable[[tacit.SecretTensor], Any]) -> Readings:
    """Runs in a party. Returns the meter's totals before and after each computation.

    Each computation gets DIVIDED numbers around 1.
    """
    found = []
    totals = tacit.session().core.totals
    x = tacit.share(torch.rand(declared.DIVIDED) + 0.5, owner=0)
    for compute in computations:
        before = totals()
        compute(x)
        found.append((before, totals()))
    return found


def divided() -> Readings:
    """Runs in a party. Returns the meter's totals before and after each kind of ⌊x / y⌋."""
    found = []
    totals = tacit.session().core.totals
    numbers = torch.arange(declared.DIVIDED) % 100 + 1
    for dtype, divisor in declared.QUOTIENTS.values():
        x = tacit.share(numbers.to(dtype), owner=0)
        y: Any = tacit.share(numbers.flip(0).to(dtype), owner=0) if divisor is None else divisor
        before = totals()
        x // y
        found.append((before, totals()))
    return found


def costs(parties: list[Readings]) -> list[Cost]:
    """Returns the costs of computations from the totals of all parties.

    The rounds are the growth of the longest chain of messages, at whichever party it ends.
    """
    found = []
    for readings in zip(*parties, strict=True):
        before, after = (max(each[at]["rounds"] for each in readings) for at in (0, 1))
        payload = sum(each[1]["payload_bytes"] - each[0]["payload_bytes"] for each in readings)
        found.append(Cost(int(after - before), 8 * payload / declared.DIVIDED))
    return found


def of_functions() -> list[Cost]:
    """Measures the costs of all functions."""
    return costs(tacit.launch(counted, *(function.approximate for function in declared.FUNCTIONS)))


def of_quotients() -> list[Cost]:
    """Measures the costs of all quotients."""
    return costs(tacit.launch(divided))


def power(error: float) -> str:
    """Formats an error as a power of two."""
    return f"2^{math.log2(error):.1f}".replace("-", "−").removesuffix(".0") if error else "0"


def sections(function: Callable[..., Any]) -> dict[str, str]:
    """Returns the sections of a docstring by name: Method, Domain, Error, Cost."""
    text = inspect.cleandoc(function.__doc__ or "")
    found = re.findall(r"^(\w+): (.*?)(?=^\w+:|^$|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: " ".join(said.split()) for name, said in found}


def methods() -> str:
    """Returns a Markdown list with the Method section of each function's docstring."""
    said = (
        f"`{name}`: {sections(getattr(approximation, name))['Method']}"
        for name in approximation.__all__
    )
    said = (each.replace("``", "`") for each in said)
    return "".join(
        textwrap.fill(each, 100, initial_indent="- ", subsequent_indent="  ") + "\n"
        for each in said
    )


def main() -> None:
    """Measures all functions and writes the page."""
    rows = []
    grids = [function.grid for function in declared.FUNCTIONS]
    for function, found, cost in zip(
        declared.FUNCTIONS, tacit.launch(results, grids)[0], of_functions(), strict=True
    ):
        off = function.off(found)
        if off > function.error:
            sys.exit(
                f"{function.name} is off by {off:g}, declared {function.error:g}: nothing is "
                f"written"
            )
        kind = " relative" if function.relative else ""
        rows.append(
            f"| {function.name} | {function.domain} | {power(function.error)}{kind} | {power(off)} "
            f"| {power(function.off_absolutely(found))} | {cost.rounds} | {cost.bits:.0f} |\n"
        )
    whole = [
        f"| {name} | {cost.rounds} | {cost.bits:.0f} |\n"
        for name, cost in zip(declared.QUOTIENTS, of_quotients(), strict=True)
    ]
    parts = HEAD, "".join(rows), METHODS, methods(), QUOTIENTS, "".join(whole), FOOT
    TARGET.write_text("".join(parts))


if __name__ == "__main__":
    main()
