"""A program: measures every approximation and writes docs/accuracy.md. Nothing is written if one is
off by more than is declared of it."""

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

Measured on dense grids against double precision, at the default scale of 16 fraction bits, on replicated
shares; written by `tests/approximation/survey.py`, and every declared error is a test. An error is absolute,
or relative where it says so: what is then off by less than 2^−13, eight units of the scale, is not counted.
The largest absolute error is that over the whole domain, where results may be as large as 2^30.
Rounds and bits are the meter's for {count} numbers; bits are summed up over all links, for each number. Of
a few hundred numbers rounds are somewhat fewer.

| function | domain | declared | measured | largest absolute | rounds | bits |
| --- | --- | --- | --- | --- | --- | --- |
""".replace("{count}", f"{declared.DIVIDED:,}")

METHODS = """
How they are computed; the docstrings in `python/tacit/operators/numerics/approximation` say the same. Series
are Chebyshev's, evaluated as in Paterson and Stockmeyer 1973, and fitted as in Lawson 1961.

"""

QUOTIENTS = """
Whole quotients are exact. Those by a public number take a truncation or two for each 14 bits that the
quotient may have, and a comparison.

| ⌊x / y⌋ | rounds | bits |
| --- | --- | --- |
"""

FOOT = """
Whole powers and products of many numbers (`x**n`, `prod`, `cumprod`) are off by one unit of the scale for
each factor, relative where the result is above 1, so by n·2^−16 for x^n at the default scale: (1 + r)^360
by half a per cent at the most. Negative powers from −2 on are off by two units for each.
`with tacit.fraction_bits(24):` makes a unit 2^−24, for results below 2^14.
Quotients by secrets have all bits of such a scale too, if it has
more than 20: they are then off by 2^−24 relative and two units. Exponentials, logarithms and roots are
what the table says at every scale, and so are roots of products. Powers by whole numbers from 65 on, and
by negative ones, that are beyond the range count as about its limit.

Integers are exact until they become fractions. Means of integers, and quotients of integers of 64 bits by
public numbers, or products with public fractions, are off by four units, where results are below 2^44.
Quotients of integers by secrets are off by 2^−24 relative and four units; those beyond 2^44 become about
that.

The sum of a softmax over 10 to 1,000 classes is within 2^−7 of 1, each of its numbers within 2^−9.

Outside of their domain: `exp` is exactly 0 far below and saturates at about 2^29.98 above; `log`, `sqrt` and
`rsqrt` take negative numbers as 0, and 0 where there is nothing for it as the smallest number of its scale,
so that `log(0)` is −11.09, `log10(0)` −4.82, `log1p` of −1 and less −11.09, `1/0` 65536 and `rsqrt(0)` 256;
quotients of fractions that cannot be encoded become ±2^30, and negative whole powers about as much, so that
`0.0**-2` is 2^29.99. `acos` and `asin` take what is beyond ±1 as ±1;
`atanh(±1)` is ±5.89, `logit` of 0 and 1 ∓11.09, and beyond these both are finite too. A secret divisor of 0
counts in `//` as the smallest of its scale, so that `7.5 // 0` is 491520 and of integers `7 // 0` is 7; the
remainder by it is the dividend. `sin` and `cos` may be off by |x|·2^−22 more beyond ±64, which is 0.03
at 2^17; from 2^20 on they tell nothing.

Layer, group and RMS norm are as exact for small rows as for large ones: off by 2^−12 relative and two units
of 2^−16, and, but for RMS norm, by what 2^−24, a unit of the mean, is in standard deviations. So are batch
and instance norm in training, and by 2^−24 of the standard deviation more. √Σ x² of a row of RMS norm is
below 2^30, √Σ (x − mean)² of the others below 2^22; of n numbers an ε from 0 counts as 2^−30/n at least,
2^−46/n where there is a mean. Gradients are off by 2^−12 of the gradient that comes in, in units of the
deviation, and two units of 2^−20.

Roots of sums of squares are computed from the numbers that were squared: norms of order 2, standard
deviations, and root mean squares that a model writes itself, `x * torch.rsqrt(x.pow(2).mean(-1,
keepdim=True) + eps)` and its like (`x*x`, `square`, `sum`, `var`; `+ eps`; `sqrt`, `rsqrt`, `reciprocal`
and powers of ±1/2; public factors). A root is off by 2^−13 relative and two units of 2^−16. What is divided
by it, or multiplied by the inverse, is off by 2^−12 for rows of any magnitude: so are `normalize`, and RMS
norms that are written by hand. Where the root has a factor, or an ε was added to it, and where it is of
other numbers, of copies in another dtype too, inverse roots have units of 2^−24. Gradients are as those of
RMS norm, but for eight units of 2^−20; that of a mean of squares itself is a number as others are.
Deviations that a model computes, and those of `var` and `std`, have units of 2^−16. A mean of squares that
is clamped, or was written to, or whose numbers were, is the number that it is: small squares have no bits
there. So is all but the latest 32 of a kind, and the latest 512 roots to which gradients come. Squares of
numbers from 2^15 on leave the range, of which a run under `protocol="plain"` warns; their root does not.

Norms of orders other than 0, 1, 2 and infinity, from 1/16 to 16 and negative ones alike, go by logarithms:
order p is off by (2 + 1/|p|)·2^−13 relative and two units of 2^−16, and has no gradient.

Powers by secret exponents, by more than eight public ones at once, and by whole numbers beyond ±2^13, go by
the logarithm of the base's magnitude, with the sign that a whole exponent gives it. A negative base has no
power of a fractional exponent: by a secret one it is 0, by a public one that of the smallest number, where
PyTorch has NaN; a run under `protocol="plain"` warns of it.

Indices that are secret are not looked at, where PyTorch raises an error. What is read at one that is out of
range is 0 (of `one_hot`, no class), and nothing is written there. `x[i]`, `take` and `index_put` count −1
and less from the end; for `gather`, `index_select`, `embedding` and `scatter` these are out of range. In
`nll_loss` and `cross_entropy` a secret class number that is no class counts as ignored. `bernoulli` takes
probabilities beyond 0 and 1 as these. `multinomial` draws the last index where all weights are 0, and
without replacement, where no others are left, again.

Solutions, inverses and factors of small systems (`linalg.solve`, `inv`, `solve_triangular`, `qr`,
`cholesky`, `cholesky_solve`, `det`, `slogdet`) are right for condition numbers up to 2^10 wherever
elements and results are in range, whatever the magnitudes of rows and columns, which are normalised in
secret: the condition number is that of the matrix with rows and columns multiplied by what makes it
least, for `qr` columns alone. They are off by two units of 2^−16, and by 2^−17 of the greatest number of
an inverse, a factor, or a column of a solution (in each row times the norm of the matrix's column); a
determinant by 2^−16 of itself, its logarithm by 2^−14. All this for the matrix as it is held: where it
has small elements or is nearly singular, its own rounding to 2^−16 counts for more. An inverse has units
of 2^−16 too, so of a matrix of millions it has no digits: `solve` has. What is singular, or beyond 2^10,
gives numbers without meaning, of which a run under `protocol="plain"` warns. Gradients are made of such
solutions.

`ctc_loss` is off by 2^−12 for each step of its input, and below 2^13. A target that fits no input, whose loss
is infinite, counts 0 with `zero_infinity=True`, and is refused without; so is then a secret one of n labels
and less than 2n − 1 steps, of which nobody knows.

`softmax` of nothing but −∞, as of a row that is masked wholly, gives equal parts, where PyTorch has NaN.

None of these functions wraps around. Sums and products do: what leaves the range of fractions is wrong, and
so is `1000.0**4`, since whole powers are products; a run under `protocol="plain"` warns of both. So are
gradients that are made of squares: those of `1/x` where |x| is below 2^−15, of `arctan`, `asinh`, `acosh`,
`erf` and `erfc` beyond ±2^13. That of `rsqrt` is right from 2^−16 on, and that of `sinc`, which is divided by
x², off by up to 2^−15/x².
"""


@dataclass(frozen=True)
class Cost:
    """Rounds of something, and bits over all links for each number."""

    rounds: int
    bits: float


def results(x: list[torch.Tensor]) -> list[torch.Tensor]:
    """In a party: what each function gives."""
    return [
        function.approximate(tacit.share(grid, owner=0)).reveal()
        for function, grid in zip(declared.FUNCTIONS, x, strict=True)
    ]


Readings = list[tuple[dict[str, Any], dict[str, Any]]]


def counted(*computations: Callable[[tacit.SecretTensor], Any]) -> Readings:
    """In a party: what its meter says before and after each, of so many numbers around 1."""
    found = []
    totals = tacit.session().core.totals
    x = tacit.share(torch.rand(declared.DIVIDED) + 0.5, owner=0)
    for compute in computations:
        before = totals()
        compute(x)
        found.append((before, totals()))
    return found


def divided() -> Readings:
    """In a party: what its meter says before and after ⌊x / y⌋ of each kind."""
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
    """Of all that was counted in all parties: rounds are by how much the longest chain of messages
    grew, whoever it ends at."""
    found = []
    for readings in zip(*parties, strict=True):
        before, after = (max(each[at]["rounds"] for each in readings) for at in (0, 1))
        payload = sum(each[1]["payload_bytes"] - each[0]["payload_bytes"] for each in readings)
        found.append(Cost(int(after - before), 8 * payload / declared.DIVIDED))
    return found


def of_functions() -> list[Cost]:
    """The costs of all functions."""
    return costs(tacit.launch(counted, *(function.approximate for function in declared.FUNCTIONS)))


def of_quotients() -> list[Cost]:
    """The costs of all quotients."""
    return costs(tacit.launch(divided))


def power(error: float) -> str:
    """An error as a power of two."""
    return f"2^{math.log2(error):.1f}".replace("-", "−").removesuffix(".0") if error else "0"


def sections(function: Callable[..., Any]) -> dict[str, str]:
    """What a docstring says, by the words that its lines begin with: Method,
    Domain, Error, Cost."""
    text = inspect.cleandoc(function.__doc__ or "")
    found = re.findall(r"^(\w+): (.*?)(?=^\w+:|^$|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: " ".join(said.split()) for name, said in found}


def methods() -> str:
    """Of each function, as its docstring says it."""
    said = (
        f"`{name}`: {sections(getattr(approximation, name))['Method']}"
        for name in approximation.__all__
    )
    said = (each.replace("``", "`") for each in said)
    return "".join(
        textwrap.fill(each, 110, initial_indent="- ", subsequent_indent="  ") + "\n"
        for each in said
    )


def main() -> None:
    """Measures and writes."""
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
