"""``tacit riscv run``: runs a program, or a function of one, as one party of a session."""

import argparse
import sys
from typing import Any

import tacit
from tacit.commands.absence import report_absence
from tacit.commands.options import (
    add_checked,
    add_member,
    add_threads,
    check_report,
    output,
    write_json,
)
from tacit.commands.riscv_job import add_job, job, show
from tacit.errors import MisuseError, RangeError, SetupError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program with parties on other machines",
        description="Takes part in a session that runs a compiled program, or calls a function of it. All "
        "parties give the same options; only the owner of a secret reads its file.",
    )
    add_member(parser)
    add_threads(parser)
    add_job(parser)
    add_checked(parser, has_config=True)
    parser.set_defaults(command=run, tells=True)


def run(parsed: argparse.Namespace) -> None:
    try:
        check_report(parsed)
        wanted = job(parsed, parsed.party)
    except (MisuseError, SetupError) as error:
        report_absence(parsed.config, parsed.party, str(error))
        sys.exit(1)
    with tacit.connect(
        parsed.config,
        parsed.party,
        threads=parsed.threads,
        checked=parsed.checked or None,
        program=wanted.program,
    ) as session:
        print(f"tacit: party {session.party}; {session.threat_model}", file=sys.stderr)
        wanted.check(session.parties)
        failed = None
        try:
            report = wanted.carry_out()
        except RangeError as error:
            # The other parties may have learned their results, so the session ends as usual.
            failed = error
    if failed is not None:
        raise failed

    show(output(), report, is_run=parsed.call is None)
    write_json(parsed.json, report)
