"""``tacit run``: runs a program as one party of a session."""

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import tacit
from tacit.atomic_write import cannot_write, write
from tacit.commands import run_program
from tacit.commands.absence import WHILE_STARTING, report_absence
from tacit.commands.correlations import to_bytes
from tacit.commands.options import add_checked, add_device, add_json, add_member, add_threads
from tacit.commands.run_report import Report, reported
from tacit.errors import MisuseError, cause


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "run", help="take part in a session with parties on other machines"
    )
    add_member(parser)
    add_threads(parser)
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write the correlations that the run took there, as a demand for `tacit correlations "
        "make`",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write a page there that shows what took time, bytes and rounds",
    )
    add_json(parser)
    add_checked(parser, has_config=True)
    add_device(parser, has_config=True)
    parser.add_argument(
        "program", help="the Python program that every party runs, or a compiled one (FILE.tacit)"
    )
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        help="arguments of the program; for a compiled program --weights FILE, --input "
        "[NAME=]FILE.npy and --output FILE.npy, each at the party that owns, has or learns it",
    )
    parser.set_defaults(command=run, tells=True)


def run(parsed: argparse.Namespace) -> None:
    if (unwritable := cannot_write(parsed.json)) is not None:
        _give_up(parsed, unwritable)
    with reported(parsed.json, parsed.program, parsed.party) as report:
        if parsed.program.endswith(run_program.SUFFIX):
            _run_compiled(parsed, report)
        else:
            _run_python(parsed, report)


def _run_python(parsed: argparse.Namespace, report: Report) -> None:
    wrong = (
        _wrong_with(Path(parsed.program))
        or cannot_write(parsed.record)
        or cannot_write(parsed.report)
    )
    if wrong is not None:
        report.wrong = "SetupError", wrong
        _give_up(parsed, wrong)
    is_recorded, content = parsed.record is not None, Path(parsed.program).read_bytes()
    with tacit.connect(
        parsed.config,
        parsed.party,
        threads=parsed.threads,
        record=is_recorded,
        checked=parsed.checked or None,
        program=content,
        device=parsed.device,
    ) as session:
        report.opened(session)
        print(f"tacit: party {session.party}; {session.threat_model}", file=sys.stderr)
        sys.argv = [parsed.program, *parsed.arguments]
        sys.path.insert(0, str(Path(parsed.program).resolve().parent))
        with tacit.report(parsed.report) if parsed.report is not None else nullcontext():
            _execute(content, parsed.program)
        if parsed.record is not None:
            _write_demand(parsed.record, session.demand)


def _execute(content: bytes, path: str) -> None:
    """Runs a program as Python runs a file, from the content that this party attests."""
    module, before = ModuleType("__main__"), sys.modules["__main__"]
    module.__file__ = path
    sys.modules["__main__"] = module
    try:
        exec(compile(content, path, "exec"), module.__dict__)
    finally:
        sys.modules["__main__"] = before


def _run_compiled(parsed: argparse.Namespace, report: Report) -> None:
    if parsed.record is not None or parsed.report is not None:
        raise MisuseError(
            "--record and --report are for Python programs; tacit inspect shows what this one "
            "costs, and tacit correlations make --program makes the correlations that it takes"
        )
    program = Path(parsed.program)
    run_program.take_part(
        parsed.config,
        parsed.party,
        program,
        parsed.arguments,
        WHILE_STARTING,
        report,
        parsed.threads,
        checked=parsed.checked or None,
        device=parsed.device,
    )


def _give_up(parsed: argparse.Namespace, wrong: str) -> NoReturn:
    """Tells the other parties why this party does not take part, and exits."""
    report_absence(parsed.config, parsed.party, wrong, wrong)
    sys.exit(1)


def _wrong_with(program: Path) -> str | None:
    """Returns what keeps a program from running, as found before the parties connect, or
    ``None``."""
    try:
        compile(program.read_bytes(), str(program), "exec")
    except FileNotFoundError:
        return f"there is no program {program}"
    except OSError as error:
        return f"cannot read the program {program}: {cause(error)}"
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return f"the program {program}{line} is not Python: {getattr(error, 'msg', error)}"
    return None


def _write_demand(path: Path, demand: str | None) -> None:
    if demand is None:
        raise MisuseError("--record: this session's protocol consumes no correlations")
    write(path, to_bytes(demand), "the demand")
    print(f"tacit: wrote {path}: {len(demand.splitlines()) - 1} jobs", file=sys.stderr)
