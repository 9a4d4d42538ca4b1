"""Common part of ``tacit riscv try``, ``run`` and ``cost``: the options, and the report."""

import argparse
import json
import math
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.commands.options import add_json, positive
from tacit.commands.riscv_files import bytes_of, fixed_point, numbers, type_of, zeros
from tacit.errors import DeviationError, MisuseError, RangeError, stopped_error

if TYPE_CHECKING:
    import numpy as np

    from tacit.riscv import Range, Receiver
    from tacit.sessions import Session

#: Forms of the options, for error messages.
SECRET = "--secret NAME=OWNER:TYPE[:PATH]"
OUTPUT = "--output NAME=all|PARTY[:TYPE]"
RESULT = "--result all|PARTY|none[:TYPE]"
RANGE = "--range NAME=LEAST..MOST"

#: Text that is not an array's name, but a float without its type.
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?(:\w*)?", re.IGNORECASE)


def add_job(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say what is run."""
    parser.add_argument(
        "program", type=Path, metavar="FILE", help="an ELF file, as tacit riscv cc makes it"
    )
    parser.add_argument(
        "--call",
        metavar="FUNCTION",
        help="call this function alone, instead of running the whole program",
    )
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help="each argument in turn: for a program any text; for a function a number, NAME (an "
        "array's address), len:NAME, or a float as in 1.5:f64, 1.5:f32 or --arg=-1.5:f64",
    )
    parser.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME=OWNER:TYPE[:PATH]",
        help="a file of the program, or an array of the function, that one party has; types: u8 to "
        "u64, i8 to i64, f32, f64; PATH, which only its owner needs, is text, .npy or .bin",
    )
    parser.add_argument(
        "--public",
        action="append",
        default=[],
        metavar="NAME=[TYPE:]PATH",
        help="a file or an array that all parties have; without TYPE, the bytes as they are",
    )
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="NAME=all|PARTY[:TYPE]",
        help="a file that the program writes, or an array after the call, and who learns it; "
        "without TYPE it has the type of the secret files",
    )
    parser.add_argument(
        "--result",
        metavar="all|PARTY|none[:TYPE]",
        help="who learns what a function returns (all), and its type, which a float needs; without "
        "TYPE it is an unsigned integer of 64 bits",
    )
    parser.add_argument(
        "--open-branch",
        action="append",
        default=[],
        metavar="FUNCTION",
        help="open the branches on secrets in this function to all parties, instead of carrying "
        "out both sides",
    )
    parser.add_argument(
        "--oblivious",
        action="append",
        default=[],
        metavar="SYMBOL",
        help="an object of the program, or an array, that may be read and written at secret places",
    )
    parser.add_argument(
        "--range",
        action="append",
        default=[],
        metavar="NAME=LEAST..MOST",
        help="the least and the greatest that a value of a secret file or array can be, as in "
        "salaries=0..200000: floats then have as many fraction bits as that leaves room for, "
        "and so have the results computed from them",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="greatest number of instructions (a thousand million)",
    )
    add_json(parser)


@dataclass(frozen=True)
class Job:
    """What is run, with the arrays that are known here."""

    name: str
    program: bytes
    function: str | None
    arguments: "list[str | float | np.floating[Any]]"
    #: By name: the owner, the type, which all parties state, and the values if they are known.
    secret: "dict[str, tuple[int, str, np.ndarray[Any, Any] | None]]" = field(repr=False)
    public: "dict[str, np.ndarray[Any, Any]]" = field(repr=False)
    result: "Receiver | tuple[Receiver, str]"
    output: "dict[str, Any]"
    open_branches: list[str]
    oblivious: list[str]
    ranges: "dict[str, Range]"
    limit: int

    def check(self, parties: int) -> None:
        """Raises if an owner is not among this number of parties."""
        for name, (owner, _, _) in self.secret.items():
            if owner >= parties:
                raise stopped_error(
                    f"--secret {name}: party {owner} of {parties}, which count from 0"
                )

    def carry_out(self, *, passes_over: bool = False) -> dict[str, Any]:
        """Runs this party's part in the current session, and returns the report as JSON has it.

        What another party learns is ``None``. With ``passes_over``, a program continues where a
        secret would stop it, and raises all of these errors at its end, a line each.

        Raises:
            RangeError: what this party was to learn left its range; the other parties do not learn
                that.
        """
        import tacit
        from tacit.meter import Verification, verification_of
        from tacit.riscv import Program, Typed

        here, program = tacit.session(), Program(self.program, self.name)
        program.passes_over = passes_over
        same: dict[str, Any] = {
            "secret": {
                name: (owner, Typed(kind, values if here.party == owner else None))
                for name, (owner, kind, values) in self.secret.items()
            },
            "public": self.public,
            "output": self.output,
            "open_branches": self.open_branches,
            "oblivious": self.oblivious,
            "ranges": self.ranges,
            "limit": self.limit,
        }
        before, started = here.meter.total, time.perf_counter()
        verified = here.meter.verification
        failed: RangeError | None = None
        try:
            if self.function is None:
                found = program.run([str(argument) for argument in self.arguments], **same)
            else:
                found = program.call(self.function, self.arguments, result=self.result, **same)
        except RangeError as error:
            failed = error
        seconds, spent = time.perf_counter() - started, here.meter.total - before
        taken = here.meter.verification_since(verified)
        told = _meter_readings(
            here, {"rounds": spent.rounds, "bytes": spent.bytes_sent, "seconds": seconds}
        )
        verifications = [] if taken is None else _meter_readings(here, asdict(taken))
        if failed is not None:
            raise failed
        return {
            "outputs": {
                name: None if each is None else each.tolist()
                for name, each in found.outputs.items()
            },
            "result": found.result,
            "printed": found.printed.decode(errors="replace"),
            "instructions": found.instructions,
            "rounds": max(each["rounds"] for each in told),
            "bytes_sent_per_party": [each["bytes"] for each in told],
            "seconds": max(each["seconds"] for each in told),
            **verification_of([Verification(**each) for each in verifications]),
            "opened": [each._asdict() for each in found.opened],
            "scanned": [each._asdict() for each in found.scanned],
            "waiting": found.waited,
        }


def _meter_readings(here: "Session", own: dict[str, float]) -> list[dict[str, Any]]:
    """Returns what each party's meter reports, in every party."""
    told = []
    for party, content in enumerate(here.told_by_all(json.dumps(own).encode())):
        try:
            read = json.loads(content)
            told.append(
                {name: float(read[name]) if name == "seconds" else int(read[name]) for name in own}
            )
        except (ValueError, TypeError, KeyError):
            raise DeviationError.of(party, "did not report what it has sent") from None
    return told


def values(count: int) -> str:
    """Returns a number of values in words."""
    return f"{count} value{'s' * (count != 1)}"


def scanned_lines(report: dict[str, Any]) -> list[str]:
    """Returns a line for each place that accesses secret addresses of few values."""
    return [
        f"accesses {each['addresses']} addresses for {each['accesses']} secret ones at "
        f"{each['what']}"
        for each in report["scanned"]
    ]


def show(console: Any, report: dict[str, Any], *, is_run: bool) -> None:
    """Prints a report of a whole program, or of a call."""
    if report["printed"]:
        console.print(report["printed"].rstrip("\n"), markup=False, highlight=False)
    if report["result"] is not None:
        console.print(f"{'ended with status' if is_run else 'result:'} {report['result']}")
    for name, found in report["outputs"].items():
        if found is not None:
            console.print(f"{name}: {found}")
    console.print(
        f"{report['instructions']} instructions, {report['rounds']} rounds, "
        f"{max(report['bytes_sent_per_party']) / 1e6:.3f} MB a party at most, "
        f"{report['seconds']:.3f} s"
    )
    from tacit.meter import verification_lines

    for line in verification_lines(report):
        console.print(line)
    opened = ", ".join(
        f"{each['what']} ({values(each['values'])}, to {each['to']})" for each in report["opened"]
    )
    console.print(f"opened: {opened or 'nothing'}", markup=False, highlight=False)
    for line in scanned_lines(report):
        console.print(line, markup=False, highlight=False)
    waiting = ", ".join(f"{what} {seconds:.3f} s" for what, seconds in report["waiting"].items())
    console.print(f"this party waited for: {waiting or 'nothing'}", markup=False, highlight=False)


def job(parsed: argparse.Namespace, party: int | None, *, lengths: bool = False) -> Job:
    """Returns what the options describe.

    Public arrays have their values, and so do the secret ones of one party, or of all parties. If a
    secret may be given by its length, it has zeros.

    Raises:
        SetupError: a file cannot be read.
        MisuseError: an option is not valid.
    """
    from tacit.riscv import LIMIT, load

    program, is_run = load(parsed.program), parsed.call is None
    if is_run and parsed.result is not None:
        raise MisuseError(
            "--result is of a function, which --call names; a program ends with a status"
        )
    ranges = _named("--range", [_range(text) for text in parsed.range])
    secret = _named("--secret", [_secret(text, party, lengths, ranges) for text in parsed.secret])
    public = _named("--public", [_public(text) for text in parsed.public])
    output = _named("--output", [_output(text, is_run) for text in parsed.output])
    return Job(
        name=program.name,
        program=program.file,
        function=parsed.call,
        arguments=parsed.arg if is_run else [_number(each) for each in parsed.arg],
        secret=secret,
        public=public,
        result=_result(parsed.result or "all"),
        output=output,
        open_branches=parsed.open_branch,
        oblivious=parsed.oblivious,
        ranges=ranges,
        limit=parsed.limit or LIMIT,
    )


def _named(option: str, given: "list[tuple[str, Any]]") -> dict[str, Any]:
    """Returns entries by their names, which must all be different."""
    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise MisuseError(
                f"{option} {name} is there twice: once is enough, and two files have two names"
            )
    return dict(given)


def _split(text: str, by: str, form: str) -> tuple[str, str]:
    before, found, after = text.partition(by)
    if not (before and found and after):
        raise MisuseError(f"{text!r} is not of the form {form}")
    return before, after


def _number(text: str) -> "str | float | np.floating[Any]":
    """Parses an argument of a function: an integer, a float followed by its type, or the name of an
    array."""
    import numpy as np

    number, _, kind = text.rpartition(":")
    try:
        if kind in ("f32", "f64") and number != "len":
            value = float(number)
            return np.float32(value) if kind == "f32" else value
        return int(text, 0)
    except ValueError:
        if kind in ("f32", "f64") and number != "len":
            raise MisuseError(f"--arg {text}: {number!r} is no number") from None
        if _FLOAT.fullmatch(text):
            raise MisuseError(
                f"--arg {text}: a float has its type behind it, as in 1.5:f64 or 1.5:f32"
            ) from None
        return text


def _result(text: str) -> "Receiver | tuple[Receiver, str]":
    from tacit.riscv import TYPES

    to, found, kind = text.partition(":")
    if not to or (found and kind not in TYPES):
        raise MisuseError(
            f"{text!r} is not of the form {RESULT}, with a type of {', '.join(TYPES)}"
        )
    learns = None if to == "none" else _receiver(to)
    return (learns, kind) if found else learns


def _receiver(text: str) -> "Receiver":
    return int(text) if text.isascii() and text.isdigit() else text


def _range(text: str) -> "tuple[str, Range]":
    """Parses two numbers, which are checked where arrays are given."""
    name, ends = _split(text, "=", RANGE)
    least, most = _split(ends, "..", RANGE)
    try:
        return name, (float(least), float(most))
    except ValueError:
        raise MisuseError(f"{text!r} is not of the form {RANGE}, with two numbers") from None


def _secret(
    text: str, party: int | None, lengths: bool, ranges: "dict[str, Range]"
) -> "tuple[str, tuple[int, str, np.ndarray[Any, Any] | None]]":
    name, kind = _split(text, "=", SECRET)
    owner, kind = _split(kind, ":", SECRET)
    if not owner.isascii() or not owner.isdigit():
        raise MisuseError(f"--secret {text}: {owner!r} is not the number of a party")
    short, _, path = kind.partition(":")
    type_of(short, f"--secret {text}")
    if party is not None and int(owner) != party:
        return name, (int(owner), short, None)
    if not path:
        raise MisuseError(
            f"--secret {text}: party {owner} must say where the values are: "
            f"{name}={owner}:{short}:PATH"
            + (f", or how many: {name}={owner}:{short}:1000" if lengths else "")
        )
    if lengths and re.fullmatch(r"-\d+", path):
        raise MisuseError(f"--secret {text}: a length is 0 or more")
    if lengths and path.isascii() and path.isdigit():
        made = zeros(short, int(path), f"--secret {text}")
        if name in ranges:
            # The range may exclude 0.
            made += type_of(short, text).type(
                math.ceil(ranges[name][0]) if short[0] != "f" else ranges[name][0]
            )
        return name, (int(owner), short, made)
    option = f"--secret {text}"
    values = numbers(short, Path(path), option)
    # Values that have a range are checked against that instead.
    return name, (
        int(owner),
        short,
        values if name in ranges else fixed_point(values, Path(path), option),
    )


def _public(text: str) -> "tuple[str, np.ndarray[Any, Any]]":
    import numpy as np

    from tacit.riscv import TYPES

    name, kind = _split(text, "=", "--public NAME=[TYPE:]PATH")
    short, found, path = kind.partition(":")
    if found and short in TYPES:
        return name, numbers(short, Path(path), f"--public {text}")
    return name, np.frombuffer(bytes_of(Path(kind), f"--public {text}"), np.uint8)


def _output(text: str, is_run: bool) -> tuple[str, Any]:
    name, to = _split(text, "=", OUTPUT)
    to, found, kind = to.partition(":")
    if found and not is_run:
        raise MisuseError(f"--output {text}: an array has its type already")
    return name, (_receiver(to), kind) if found else _receiver(to)
