"""Random C programs in checked mode, on numbers of all magnitudes: a shown result must be right.

``python tests/overflows_of_programs.py CASES [SEED] [PROTOCOL]`` tries the given number of cases
and prints how many were refused; the tests try a few. A program is one function of four doubles x
and four integers k. Its result is also computed exactly, with a bound on the machine's error. A
case is *missed* if it shows a result with a larger error than that. It is *refused in vain* if it
is refused although no intermediate number was large.
"""

import math
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tacit
from tacit import riscv
from tacit.riscv.compiler import compile_program

#: The smallest positive number of fixed point.
UNIT = Fraction(1, 2**16)

#: Programs are not refused if no number, intermediate ones included, is larger.
SMALL = 2**27

#: Quotients are not refused if they are no larger.
SMALL_QUOTIENT = 2**14

#: Number of cases that run in one session.
TOGETHER = 64


class UndecidedError(Exception):
    """The machine's error decides the result, so the exact result does not predict it."""


class Number(NamedTuple):
    """A double or an integer, as an intermediate result."""

    #: The value in exact arithmetic.
    value: Fraction
    #: Bound on the machine's error.
    off: Fraction = Fraction(0)
    #: The greatest magnitude of a double so far. Operations that are refused for another reason
    #: count as ``SMALL``.
    most: Fraction = Fraction(0)


def made(value: Fraction, off: Fraction, *of: Number) -> Number:
    """Makes a double that is computed from others. C rounds large ones, and the machine does
    not."""
    rounded = abs(value) / 2**52 if abs(value) >= 2**36 else 0
    return Number(value, off + rounded, max(abs(value), *(each.most for each in of)))


def add(x: Number, y: Number) -> Number:
    return made(x.value + y.value, x.off + y.off, x, y)


def negated(x: Number) -> Number:
    return x._replace(value=-x.value)


def subtract(x: Number, y: Number) -> Number:
    return add(x, negated(y))


def multiply(x: Number, y: Number) -> Number:
    off = abs(x.value) * y.off + abs(y.value) * x.off + x.off * y.off
    return made(x.value * y.value, off + 2 * UNIT, x, y)


def times(x: Number, factor: Fraction) -> Number:
    """Multiplies by a public number, of which the first 32 bits and those above the point count."""
    off = abs(factor) * x.off + (abs(factor * x.value) + abs(x.value) + 1) / 2**31
    return made(x.value * factor, off + 4 * UNIT, x)


def divide(x: Number, y: Number) -> Number:
    if abs(y.value) <= 2 * y.off:
        raise UndecidedError
    value = x.value / y.value
    off = (x.off + abs(value) * y.off) / (abs(y.value) - y.off)
    off += abs(value) / 2**26 + (abs(x.value) + x.off) / 2**29 + 3 * UNIT
    found = made(value, off, x, y)
    large = abs(value) > SMALL_QUOTIENT
    return found._replace(most=Fraction(SMALL)) if large else found


def root(x: Number) -> Number:
    """Computes the square root, which is 0 for negative numbers."""
    value = Fraction(math.isqrt(int(max(x.value, Fraction(0)) * 2**80)), 2**40)
    off = Fraction(math.sqrt(x.off)) * 2
    if x.value > 2 * x.off:
        off = min(off, x.off / Fraction(math.sqrt(x.value - x.off)))
    return made(value, off + value / 2**26 + 3 * UNIT, x)


def chosen(x: Number, y: Number, if_less: Number, if_not: Number) -> Number:
    """Selects by x < y. The machine computes both alternatives."""
    near = x.off + y.off
    if near and abs(x.value - y.value) <= near:
        raise UndecidedError
    most = max(each.most for each in (x, y, if_less, if_not))
    return (if_less if x.value < y.value else if_not)._replace(most=most)


def lesser(x: Number, y: Number) -> Number:
    return Number(min(x.value, y.value), max(x.off, y.off), max(x.most, y.most))


def truncated(x: Number) -> Number:
    """Converts a double to an integer."""
    return Number(Fraction(int(x.value)), x.off + (1 if x.off else 0), x.most)


def wrapped(value: Fraction, off: Fraction, *of: Number) -> Number:
    """Makes an integer of 64 bits, which wraps around."""
    word = (int(value) + 2**63) % 2**64 - 2**63
    if off and abs(value) + off >= 2**63:
        raise UndecidedError
    return Number(Fraction(word), off, max(each.most for each in of))


def whole_add(x: Number, y: Number) -> Number:
    return wrapped(x.value + y.value, x.off + y.off, x, y)


def whole_multiply(x: Number, y: Number) -> Number:
    off = abs(x.value) * y.off + abs(y.value) * x.off + x.off * y.off
    return wrapped(x.value * y.value, off, x, y)


def whole(x: Number) -> Number:
    """Converts an integer to a double."""
    return made(x.value, x.off, x)


class Given(NamedTuple):
    """The inputs of a program."""

    x: list[Number]
    k: list[Number]


Meaning = Callable[[Given], Number]


class Written(NamedTuple):
    """An expression in C, and its meaning."""

    text: str
    means: Meaning


class Program(NamedTuple):
    """The body of a function in C, and its result."""

    body: str
    means: Meaning
    is_integer: bool = False


def summed(terms: Sequence[Number], added: Callable[[Number, Number], Number] = add) -> Number:
    total = Number(Fraction(0))
    for term in terms:
        total = added(total, term)
    return total


def squares(numbers: Sequence[Number]) -> Number:
    return summed([multiply(each, each) for each in numbers])


def mean(numbers: Sequence[Number]) -> Number:
    return times(summed(numbers), Fraction(1, len(numbers)))


def variance(numbers: Sequence[Number]) -> Number:
    return mean([multiply(each, each) for each in (subtract(x, mean(numbers)) for x in numbers)])


def least_square(numbers: Sequence[Number]) -> Number:
    least, *rest = [multiply(each, each) for each in numbers]
    for each in rest:
        least = lesser(each, least)
    return least


def whole_squares(numbers: Sequence[Number]) -> Number:
    return summed([whole_multiply(each, each) for each in numbers], whole_add)


_SUM = "double s = 0; for (int i = 0; i < 4; i++) s += {}; "
_SQUARES = _SUM.format("x[i] * x[i]")
_APART = "for (int i = 0; i < 4; i++) v += (x[i] - m) * (x[i] - m); "
_WHOLE = "uint64_t s = 0; for (int i = 0; i < 4; i++) s += {}; "

#: Programs with loops.
LOOPS = [
    Program(_SUM.format("x[i]") + "return s;", lambda given: summed(given.x)),
    Program(_SUM.format("x[i]") + "return s / 4;", lambda given: mean(given.x)),
    Program(_SQUARES + "return s;", lambda given: squares(given.x)),
    Program(_SQUARES + "return __builtin_sqrt(s);", lambda given: root(squares(given.x))),
    Program(
        _SUM.format("x[i]") + "double m = s / 4, v = 0; " + _APART + "return v / 4;",
        lambda given: variance(given.x),
    ),
    Program(
        "double s = x[0] * x[0]; for (int i = 1; i < 4; i++) "
        "{ double y = x[i] * x[i]; s = y < s ? y : s; } return s;",
        lambda given: least_square(given.x),
    ),
    Program(
        _SUM.format("x[i] * (double)k[i]") + "return s;",
        lambda given: summed([multiply(x, whole(k)) for x, k in zip(*given, strict=True)]),
    ),
    Program(
        _WHOLE.format("k[i]") + "return (double)(int64_t)s / 4;",
        lambda given: times(whole(summed(given.k, whole_add)), Fraction(1, 4)),
    ),
    Program(
        _WHOLE.format("k[i] * k[i]") + "return (int64_t)s;",
        lambda given: whole_squares(given.k),
        is_integer=True,
    ),
    Program(
        _WHOLE.format("k[i] * k[i]") + "return (double)(int64_t)s;",
        lambda given: whole(whole_squares(given.k)),
    ),
    Program(
        _WHOLE.format("(int64_t)(x[i] * 100)") + "return (int64_t)s;",
        lambda given: summed([truncated(times(x, Fraction(100))) for x in given.x], whole_add),
        True,
    ),
]


#: Public numbers of the programs.
PUBLIC = ["0.5", "3.0", "0.1", "1e-6", "1000.0", "65536.0", "3.7", "-2.5", "1e9", "12345.678"]

_BY_TWO: dict[str, Callable[[Number, Number], Number]] = {
    "({} + {})": add,
    "({} - {})": subtract,
    "({} * {})": multiply,
    "({} / {})": divide,
    "__builtin_fmin({}, {})": lesser,
}

_BY_ONE: dict[str, Callable[[Number], Number]] = {
    "(-{})": negated,
    "__builtin_fabs({})": lambda x: x._replace(value=abs(x.value)),
    "__builtin_sqrt({})": root,
    "(double)(int64_t)({})": lambda x: whole(truncated(x)),
}


def double(numbers: random.Random, depth: int) -> Written:
    """Draws an expression that is a double."""
    if depth == 0:
        at = numbers.randrange(4)
        if numbers.random() < 0.7:
            return Written(f"x[{at}]", lambda given: given.x[at])
        return Written(f"(double)k[{at}]", lambda given: whole(given.k[at]))
    first, second = double(numbers, depth - 1), double(numbers, numbers.randrange(depth))
    kind = numbers.choice(["two", "two", "two", "one", "public", "choice", "integers", "fused"])
    if kind == "two":
        form, of_two = numbers.choice(list(_BY_TWO.items()))
        text = form.format(first.text, second.text)
        return Written(text, lambda given: of_two(first.means(given), second.means(given)))
    if kind == "one":
        form, of_one = numbers.choice(list(_BY_ONE.items()))
        return Written(form.format(first.text), lambda given: of_one(first.means(given)))
    if kind == "public":
        public = numbers.choice(PUBLIC)
        factor = Fraction(float(public))
        text = f"({first.text} * {public})"
        return Written(text, lambda given: times(first.means(given), factor))
    if kind == "integers":
        integer = whole_number(numbers, depth - 1)
        return Written(f"(double)({integer.text})", lambda given: whole(integer.means(given)))
    third = double(numbers, 0)
    if kind == "fused":
        text = f"__builtin_fma({first.text}, {third.text}, {second.text})"

        def fused(given: Given) -> Number:
            product = multiply(first.means(given), third.means(given))
            return add(product, second.means(given))

        return Written(text, fused)
    return Written(
        f"({first.text} < {third.text} ? {second.text} : {third.text})",
        lambda given: chosen(*(each.means(given) for each in (first, third, second, third))),
    )


def whole_number(numbers: random.Random, depth: int) -> Written:
    """Draws an expression that is an integer of 64 bits."""
    if depth == 0:
        at = numbers.randrange(4)
        return Written(f"k[{at}]", lambda given: given.k[at])
    kind = numbers.choice(["sum", "product", "double", "scaled"])
    if kind in ("sum", "product"):
        first = whole_number(numbers, depth - 1)
        second = whole_number(numbers, numbers.randrange(depth))
        sign, of_two = ("+", whole_add) if kind == "sum" else ("*", whole_multiply)
        text = f"({first.text} {sign} {second.text})"
        return Written(text, lambda given: of_two(first.means(given), second.means(given)))
    inner = double(numbers, depth - 1)
    if kind == "double":
        return Written(f"(int64_t)({inner.text})", lambda given: truncated(inner.means(given)))
    return Written(
        f"(int64_t)({inner.text} * 100.0)",
        lambda given: truncated(times(inner.means(given), Fraction(100))),
    )


def programs(count: int, seed: int) -> list[Program]:
    """Draws the given number of programs, and adds those with loops."""
    made = list(LOOPS)
    for at in range(count):
        numbers = random.Random(f"{seed} {at}")
        is_integer, depth = numbers.random() < 0.25, numbers.choice([1, 1, 2, 2, 3])
        written = (whole_number if is_integer else double)(numbers, depth)
        made.append(Program(f"return {written.text};", written.means, is_integer))
    return made


def compiled(all_of_them: Sequence[Program], folder: Path) -> Path:
    """The ELF file with functions f0, f1, ... in a folder.

    Raises:
        SetupError: there is no compiler.
    """
    source, result = folder / "programs.c", folder / "programs.elf"
    functions = [
        f"{'int64_t' if each.is_integer else 'double'} f{at}(const double *x, const int64_t *k) "
        f"{{ {each.body} }}\n"
        for at, each in enumerate(all_of_them)
    ]
    source.write_text("#include <stdint.h>\n" + "".join(functions))
    compile_program([source], result, ["-fwrapv"])
    return result


class Case(NamedTuple):
    """A program and its inputs."""

    at: int
    x: list[float]
    k: list[int]
    #: The exact result.
    exact: Number


def drawn(all_of_them: Sequence[Program], numbers: random.Random, large: float = 0.8) -> Case:
    """Numbers of magnitudes up to the greatest that can be shared, a few of them of another one.

    Args:
        large: how often a number on the way is to be large.
    """
    while True:
        at = numbers.randrange(len(all_of_them))
        highest = numbers.choice([8, 14, 20, 24, 29.9])
        whole_highest = numbers.choice([10, 30, 44, 62.9])
        least = numbers.choice([-16, highest / 2, highest - 2])
        usual, other = numbers.uniform(least, highest), numbers.uniform(-16, 29.9)

        def number(usual: float, other: float) -> float:
            magnitude = usual if numbers.random() < 0.8 else other
            return numbers.choice([-1, 1]) * numbers.uniform(0.5, 1) * 2.0**magnitude

        x = [round(number(usual, other) * 2**16) / 2**16 for _ in range(4)]
        magnitude = numbers.uniform(0, whole_highest)
        k = [int(number(magnitude, numbers.uniform(0, 62.9))) for _ in range(4)]
        doubles = [Number(Fraction(each), most=abs(Fraction(each))) for each in x]
        integers = [Number(Fraction(each)) for each in k]
        try:
            exact = all_of_them[at].means(Given(doubles, integers))
        except UndecidedError:
            continue
        if (exact.most >= SMALL) == (numbers.random() < large):
            return Case(at, x, k, exact)


def shown(file: Path, cases: list[tuple[int, str, list[float], list[int]]]) -> list[float | None]:
    """Runs cases in one session; returns their results, and None for refused ones."""
    party, elf, found = tacit.session().party, riscv.load(file), []
    for at, kind, x, k in cases:
        own = {"x": np.array(x), "k": np.array(k, np.int64)}
        secret: dict[str, Any] = {}
        for owner, (name, values) in enumerate(own.items()):
            secret[name] = owner, values if party == owner else None
        try:
            found.append(elf.call(f"f{at}", ["x", "k"], secret=secret, result=("all", kind)).result)
        except tacit.RangeError:
            found.append(None)
    return found


def judged(case: Case, found: float | None) -> str:
    """ "right", "refused", "refused in vain", or "missed"."""
    if found is None:
        return "refused" if case.exact.most >= SMALL else "refused in vain"
    value, off, _ = case.exact
    return "right" if abs(Fraction(found) - value) <= 2 * off else "missed"


def tried(
    file: Path,
    all_of_them: Sequence[Program],
    count: int,
    seed: int,
    setting: dict[str, Any],
    checked: bool = True,
) -> tuple[Counter[str], list[Case]]:
    """How many of so many cases were right, refused, refused in vain and missed; and the cases of
    both wrongs."""
    numbers, told, wrong = random.Random(seed), Counter[str](), []
    for start in range(0, count, TOGETHER):
        cases = [drawn(all_of_them, numbers) for _ in range(min(TOGETHER, count - start))]
        kinds = ["i64" if each.is_integer else "f64" for each in all_of_them]
        plain = [(at, kinds[at], x, k) for at, x, k, _ in cases]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = tacit.launch(shown, file, plain, checked=checked, **setting)[0]
        for case, one in zip(cases, found, strict=True):
            judgement = judged(case, one)
            told[judgement] += 1
            if judgement in ("missed", "refused in vain"):
                wrong.append(case)
    return told, wrong


if __name__ == "__main__":
    total, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    protocol = sys.argv[3] if len(sys.argv) > 3 else "replicated"
    setting = {"protocol": protocol, "parties": 3 if protocol == "replicated" else 2}
    those = programs(200, seed)
    with tempfile.TemporaryDirectory() as name:
        told, wrong = tried(compiled(those, Path(name)), those, total, seed, setting)
    for case in wrong[:20]:
        print(those[case.at].body, case)
    print(dict(told))
