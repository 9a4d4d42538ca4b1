"""``tacit correlations make``: makes a file of correlations ahead of a session."""

import argparse
from pathlib import Path
from typing import Any

from tacit import _core, checksums
from tacit.commands.options import add_member, add_streams, add_threads, positive
from tacit.errors import MisuseError, cause, setup_error
from tacit.libraries import find_libraries
from tacit.providers import LIVE

#: Kind of a demand's checksum, and remedy for a demand that is not as it was written.
KIND = "demand"
REMEDY = "record it anew by `tacit run --record`, or copy it again"


def add(commands: Any) -> None:
    correlations = commands.add_parser("correlations", help="make correlations ahead of a session")
    actions = correlations.add_subparsers(title="commands", required=True, metavar="COMMAND")
    parser = actions.add_parser(
        "make",
        help="make this party's file of correlations, together with the other parties",
        description="Every party runs this at the same time; with a dealer, `tacit dealer` runs "
        "too. "
        'Sessions whose parties.toml says source = "file" then need no other source.',
    )
    add_member(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--demand", type=Path, metavar="FILE", help="what `tacit run --record FILE` wrote"
    )
    what.add_argument(
        "--program",
        type=Path,
        metavar="FILE.tacit",
        help="a compiled program: what a run takes follows from its shapes, so no run has to be "
        "recorded",
    )
    parser.add_argument(
        "--receivers",
        type=positive,
        default=1,
        metavar="N",
        help="with --program: how many parties learn its result; each of them tests the guards "
        "once (1 if not given)",
    )
    parser.add_argument(
        "--examples",
        type=positive,
        default=1,
        metavar="N",
        help="with --program: how many examples a run takes, each of the shape that the program "
        "was compiled for (1 if not given)",
    )
    add_streams(parser)
    parser.add_argument(
        "--runs", required=True, type=positive, metavar="N", help="for how many sessions"
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="FILE",
        help="a new file, sealed with this party's key",
    )
    parser.add_argument("--source", choices=LIVE, help="instead of the configuration's")
    add_threads(parser)
    parser.set_defaults(command=make)


def make(parsed: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    demand = _of_program(parsed) if parsed.demand is None else _recorded(parsed)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("making correlations", total=None)
        find_libraries()
        _core.make_correlations(
            parsed.config,
            parsed.party,
            demand,
            parsed.runs,
            str(parsed.out),
            lambda done, total: progress.update(task, completed=done, total=total),
            parsed.source,
            parsed.threads,
        )
    print(f"Wrote {parsed.out}: correlations for {parsed.runs} sessions, each to be used once.")
    print("It can be read with this party's key alone: keep the two apart from all others.")


def _recorded(parsed: argparse.Namespace) -> str:
    for option in ("receivers", "examples", "streams"):
        if getattr(parsed, option) != 1:
            raise MisuseError(f"--{option} goes with --program: a recorded run has had its own")
    return recorded(parsed.demand)


def to_bytes(demand: str) -> bytes:
    """Returns the content of a demand's file, whose last line is its checksum."""
    text = demand.removesuffix("\n") + f"\n{checksums.field(KIND)}\n"
    return checksums.filled(text.encode(), KIND)


def recorded(path: Path) -> str:
    """Reads the demand in a file.

    Raises:
        SetupError: the file cannot be read, or was damaged.
    """
    try:
        text = checksums.text_of(path, KIND, "a demand", REMEDY)
    except FileNotFoundError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None
    return text[: text.rindex("\n", 0, -1) + 1]


def _of_program(parsed: argparse.Namespace) -> str:
    """Returns the demand of a program.

    All parties find the same demand. A party that has another program is reported before anything
    is made."""
    from tacit.compilation.dry_run import demand
    from tacit.compilation.program import load_program
    from tacit.compilation.streams import check

    check(parsed.streams)
    program = load_program(parsed.program)
    cores = _core.Session.rehearsed(parsed.config, parsed.threads, parsed.source)
    if parsed.receivers > len(cores):
        raise MisuseError(
            f"--receivers {parsed.receivers}: {parsed.config} has {len(cores)} parties"
        )
    return demand(program, cores, parsed.receivers, parsed.examples, parsed.streams)
