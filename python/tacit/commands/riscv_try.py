"""``tacit riscv try``: a function of a program, with all parties on this machine."""

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.commands.options import add_setting, chosen_setting, positive, print_threat_model, write_json
from tacit.errors import MisuseError, SetupError

if TYPE_CHECKING:
    import numpy as np

    from tacit.riscv import Receiver

#: The largest file of an array, in bytes.
LARGEST = 1 << 28


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "try",
        help="call a function of a program, with all parties on this machine",
        description="Compile for riscv64 with -static -nostdlib, rv64imac with Zba, Zbb, Zbs and Zicond: "
        "riscv64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -march=rv64imac_zba_zbb_zbs -mabi=lp64. "
        "Floats are not there yet.",
    )
    parser.add_argument("program", type=Path, metavar="FILE", help="an ELF file")
    parser.add_argument("--call", required=True, metavar="FUNCTION", help="by its name")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help="for each parameter in turn: a number, NAME (an array's address) or len:NAME",
    )
    parser.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME=OWNER:TYPE:PATH",
        help="an array that one party has; types: u8 to u64, i8 to i64; the file is text, .npy or .bin",
    )
    parser.add_argument(
        "--public", action="append", default=[], metavar="NAME=TYPE:PATH", help="an array that everybody has"
    )
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="NAME=all|PARTY",
        help="an array, opened after the call",
    )
    parser.add_argument(
        "--result", default="all", metavar="all|PARTY|none", help="who learns what is returned (all)"
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="instructions at most (a thousand million)"
    )
    add_setting(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome there as JSON")
    parser.set_defaults(command=run)


@dataclass(frozen=True)
class Trial:
    """What is called, with everybody's arrays."""

    program: bytes
    function: str
    arguments: list[str | int]
    secret: "dict[str, tuple[int, np.ndarray[Any, Any]]]" = field(repr=False)
    public: "dict[str, np.ndarray[Any, Any]]" = field(repr=False)
    result: "Receiver"
    output: "dict[str, Receiver]"
    limit: int


def run(parsed: argparse.Namespace) -> None:
    setting = chosen_setting(parsed)
    trial = _trial(parsed)
    for name, (owner, _) in trial.secret.items():
        if owner >= setting.parties:
            raise MisuseError(f"--secret {name}: party {owner} of {setting.parties}, which count from 0")
    from rich.console import Console

    import tacit

    console = Console()
    print_threat_model(console, setting)
    told = tacit.launch(
        _party,
        trial,
        parties=setting.parties,
        protocol=setting.protocol,
        source=setting.source,
        transport="tcp",
    )
    outcome = _outcome(trial, told)
    _show(console, outcome)
    write_json(parsed.json, outcome)


def _party(trial: Trial) -> dict[str, Any]:
    """What every party does; what it learns, and what that has cost."""
    import tacit
    from tacit.riscv import Program

    here = tacit.session()
    program = Program(trial.program)
    secret = {
        name: (owner, values if here.party == owner else None)
        for name, (owner, values) in trial.secret.items()
    }
    before, started = here.meter.total, time.perf_counter()
    found = program.call(
        trial.function,
        trial.arguments,
        secret=secret,
        public=trial.public,
        result=trial.result,
        output=trial.output,
        limit=trial.limit,
    )
    seconds, spent = time.perf_counter() - started, here.meter.total - before
    outputs = {name: None if each is None else each.tolist() for name, each in found.outputs.items()}
    return {
        "outputs": outputs,
        "result": found.result,
        "instructions": found.instructions,
        "rounds": spent.rounds,
        "bytes_sent": spent.bytes_sent,
        "seconds": seconds,
    }


def _outcome(trial: Trial, told: list[dict[str, Any]]) -> dict[str, Any]:
    """As JSON has it."""

    def learned(values: list[Any]) -> Any:
        return next((value for value in values if value is not None), None)

    outputs = {name: learned([each["outputs"][name] for each in told]) for name in trial.output}
    opened = [{"what": name, "to": to, "values": len(outputs[name])} for name, to in trial.output.items()]
    if trial.result is not None:
        opened.append({"what": "result", "to": trial.result, "values": 1})
    return {
        "outputs": outputs,
        "result": learned([each["result"] for each in told]),
        "instructions": told[0]["instructions"],
        "rounds": max(each["rounds"] for each in told),
        "bytes_sent_per_party": [each["bytes_sent"] for each in told],
        "seconds": max(each["seconds"] for each in told),
        "opened": opened,
    }


def _show(console: Any, outcome: dict[str, Any]) -> None:
    if outcome["result"] is not None:
        console.print(f"result: {outcome['result']}")
    for name, values in outcome["outputs"].items():
        console.print(f"{name}: {values}")
    console.print(
        f"{outcome['instructions']} instructions, {outcome['rounds']} rounds, "
        f"{max(outcome['bytes_sent_per_party']) / 1e6:.3f} MB a party at most, {outcome['seconds']:.3f} s"
    )
    opened = ", ".join(
        f"{each['what']} ({each['values']} values, to {each['to']})" for each in outcome["opened"]
    )
    console.print(f"opened: {opened or 'nothing'}")


def _trial(parsed: argparse.Namespace) -> Trial:
    from tacit.riscv import LIMIT, load

    program = load(parsed.program)
    secret, public = {}, {}
    for text in parsed.secret:
        name, kind = _split(text, "=", "--secret NAME=OWNER:TYPE:PATH")
        owner, kind = _split(kind, ":", "--secret NAME=OWNER:TYPE:PATH")
        if not owner.isascii() or not owner.isdigit():
            raise MisuseError(f"--secret {text}: {owner!r} is no party's number")
        secret[name] = int(owner), _read(kind, text)
    for text in parsed.public:
        name, kind = _split(text, "=", "--public NAME=TYPE:PATH")
        public[name] = _read(kind, text)
    output = {
        name: _receiver(to) for name, to in (_split(text, "=", "--output NAME=all") for text in parsed.output)
    }
    return Trial(
        program=program.file,
        function=parsed.call,
        arguments=[_number(each) for each in parsed.arg],
        secret=secret,
        public=public,
        result=None if parsed.result == "none" else _receiver(parsed.result),
        output=output,
        limit=parsed.limit or LIMIT,
    )


def _split(text: str, by: str, form: str) -> tuple[str, str]:
    before, found, after = text.partition(by)
    if not (before and found and after):
        raise MisuseError(f"{text!r} is not of the form {form}")
    return before, after


def _number(text: str) -> str | int:
    try:
        return int(text, 0)
    except ValueError:
        return text


def _receiver(text: str) -> "Receiver":
    return int(text) if text.isascii() and text.isdigit() else text


def _read(kind: str, option: str) -> "np.ndarray[Any, Any]":
    """The integers of a file, of the type that the option says."""
    import numpy as np

    from tacit.riscv import TYPES

    short, name = _split(kind, ":", "TYPE:PATH")
    if short not in TYPES:
        raise MisuseError(f"{option}: no type is called {short!r}; known are {', '.join(TYPES)}")
    path, dtype = Path(name), np.dtype(TYPES[short])
    try:
        if path.stat().st_size > LARGEST:
            raise MisuseError(f"{option}: {path} has more than {LARGEST >> 20} MiB")
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        elif path.suffix == ".bin":
            values = np.frombuffer(path.read_bytes(), dtype)
        else:
            values = np.array([int(word) for word in path.read_text().split()], object)
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise MisuseError(f"{option}: {path} has no integers: {error}") from None
    limits = np.iinfo(dtype)
    if len(values) and not (limits.min <= min(values) and max(values) <= limits.max):
        raise MisuseError(f"{option}: a value in {path} is no {short}: {limits.min} to {limits.max}")
    return values.astype(dtype)
