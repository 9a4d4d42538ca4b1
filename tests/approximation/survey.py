"""A program: measures every approximation and writes docs/accuracy.md. Nothing is written if one is off by
more than is declared of it."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import declared
import torch

import tacit

TARGET = Path(__file__).resolve().parents[2] / "docs/accuracy.md"

HEAD = """# How exact functions are

Measured on dense grids against double precision, at the default scale of 16 fraction bits, on replicated
shares; written by `tests/approximation/survey.py`, and every declared error is a test. An error is absolute,
or relative where it says so: what is then off by less than 2^−13, eight units of the scale, is not counted.
Rounds are those of about 2,000 numbers and more; a few hundred take somewhat fewer.

| function | domain | declared | measured | rounds | bytes a number and party |
| --- | --- | --- | --- | --- | --- |
"""

QUOTIENTS = """
Whole quotients are exact. Those by a public number take a truncation or two for each 14 bits that the
quotient may have, and a comparison.

| ⌊x / y⌋ | rounds | bytes a number and party |
| --- | --- | --- |
"""

FOOT = """
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

Norms of orders other than 0, 1, 2 and infinity, from 1/16 to 16 and negative ones alike, go by logarithms:
order p is off by (2 + 1/|p|)·2^−13 relative and two units of 2^−16, and has no gradient.

None of these functions wraps around. Sums and products do: what leaves the range of fractions is wrong, and
so is `1000.0**4`, since whole powers are products; a run under `protocol="plain"` warns of both.
"""


@dataclass(frozen=True)
class Cost:
    """Rounds of something, and bytes of one party for each number."""

    rounds: int
    payload: float


def measured(x: list[torch.Tensor]) -> list[tuple[torch.Tensor, Any, Any]]:
    """In a party: what each function gives, and what its meter says before and after."""
    found = []
    totals = tacit.session().core.totals
    for function, grid in zip(declared.FUNCTIONS, x, strict=True):
        argument = tacit.share(grid, owner=0)
        before = totals()
        result = function.approximate(argument)
        found.append((before, totals(), result))
    return [(result.reveal(), before, after) for before, after, result in found]


def divided() -> list[tuple[None, Any, Any]]:
    """In a party: what its meter says before and after ⌊x / y⌋ of each kind."""
    found = []
    totals = tacit.session().core.totals
    numbers = torch.arange(declared.DIVIDED) % 100 + 1
    for dtype, divisor in declared.QUOTIENTS.values():
        x = tacit.share(numbers.to(dtype), owner=0)
        y: Any = tacit.share(numbers.flip(0).to(dtype), owner=0) if divisor is None else divisor
        before = totals()
        x // y
        found.append((None, before, totals()))
    return found


def costs(parties: list[list[tuple[Any, Any, Any]]], sizes: list[int]) -> list[Cost]:
    """Of all that was measured in all parties: rounds are by how much the longest chain of messages grew,
    whoever it ends at; bytes are those of party 0."""
    found = []
    for readings, size in zip(zip(*parties, strict=True), sizes, strict=True):
        before, after = (max(each[at]["rounds"] for each in readings) for at in (1, 2))
        payload = readings[0][2]["payload_bytes"] - readings[0][1]["payload_bytes"]
        found.append(Cost(int(after - before), payload / size))
    return found


def of_functions() -> tuple[list[torch.Tensor], list[Cost]]:
    """What each function gives on its grid, and its cost."""
    grids = [function.grid for function in declared.FUNCTIONS]
    parties = tacit.launch(measured, grids)
    return [found for found, _, _ in parties[0]], costs(parties, [grid.numel() for grid in grids])


def of_quotients() -> list[Cost]:
    """The costs of all quotients."""
    return costs(tacit.launch(divided), [declared.DIVIDED] * len(declared.QUOTIENTS))


def power(error: float) -> str:
    """An error as a power of two."""
    return f"2^{math.log2(error):.1f}".replace("-", "−") if error else "0"


def main() -> None:
    """Measures and writes."""
    rows = []
    for function, found, cost in zip(declared.FUNCTIONS, *of_functions(), strict=True):
        off = function.off(found)
        if off > function.error:
            sys.exit(f"{function.name} is off by {off:g}, declared {function.error:g}: nothing is written")
        kind = " relative" if function.relative else ""
        rows.append(
            f"| {function.name} | {function.domain} | {power(function.error)}{kind} | {power(off)} "
            f"| {cost.rounds} | {cost.payload:.0f} |\n"
        )
    whole = [
        f"| {name} | {cost.rounds} | {cost.payload:.0f} |\n"
        for name, cost in zip(declared.QUOTIENTS, of_quotients(), strict=True)
    ]
    TARGET.write_text(HEAD + "".join(rows) + QUOTIENTS + "".join(whole) + FOOT)


if __name__ == "__main__":
    main()
