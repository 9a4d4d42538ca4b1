"""A program: measures every approximation and writes docs/accuracy.md. Nothing is written if one is off by
more than is declared of it."""

import math
import sys
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

| function | domain | declared | measured | rounds | bytes a number and party |
| --- | --- | --- | --- | --- | --- |
"""

FOOT = """
The sum of a softmax over 10 to 1,000 classes is within 2^−7 of 1, each of its numbers within 2^−9.

Outside of their domain: `exp` is exactly 0 far below and saturates at about 2^29.98 above; `log`, `sqrt` and
`rsqrt` take negative numbers as 0, and 0 where there is nothing for it as the smallest number of its scale,
so that `log(0)` is −11.09, `log10(0)` −4.82, `log1p` of −1 and less −11.09, `1/0` 65536 and `rsqrt(0)` 256;
quotients of fractions that cannot be encoded become ±2^30. `acos` and `asin` take what is beyond ±1 as ±1;
`atanh(±1)` is ±5.89, `logit` of 0 and 1 ∓11.09, and beyond these both are finite too. A secret divisor of 0
counts in `//` as the smallest of its scale, so that `7.5 // 0` is 491520 and of integers `7 // 0` is 7; the
remainder by it is the dividend. `sin` and `cos` may be off by |x|·2^−22 more beyond ±64, which is 0.03
at 2^17; from 2^20 on they tell nothing.

None of these functions wraps around. Sums and products do: what leaves the range of fractions is wrong, and
so is `1000.0**4`, since whole powers are products; a run under `protocol="plain"` warns of both.
"""


def measured(x: list[torch.Tensor]) -> list[tuple[torch.Tensor, int, float]]:
    """In a party: what each function gives, with its rounds and its bytes for each number."""
    found = []
    session: Any = tacit.session()
    for function, grid in zip(declared.FUNCTIONS, x, strict=True):
        argument = tacit.share(grid, owner=0)
        before = session.core.totals()
        result = function.approximate(argument)
        after = session.core.totals()
        rounds, payload = (after[what] - before[what] for what in ("rounds", "payload_bytes"))
        found.append((result.reveal(), int(rounds), payload / grid.numel()))
    return found


def power(error: float) -> str:
    """An error as a power of two."""
    return f"2^{math.log2(error):.1f}".replace("-", "−") if error else "0"


def main() -> None:
    """Measures and writes."""
    grids = [function.grid for function in declared.FUNCTIONS]
    outcomes = tacit.launch(measured, grids, parties=3, protocol="replicated")[0]
    rows = []
    for function, (found, rounds, payload) in zip(declared.FUNCTIONS, outcomes, strict=True):
        off = function.off(found)
        if off > function.error:
            sys.exit(f"{function.name} is off by {off:g}, declared {function.error:g}: nothing is written")
        kind = " relative" if function.relative else ""
        rows.append(
            f"| {function.name} | {function.domain} | {power(function.error)}{kind} | {power(off)} "
            f"| {rounds} | {payload:.0f} |\n"
        )
    TARGET.write_text(HEAD + "".join(rows) + FOOT)


if __name__ == "__main__":
    main()
