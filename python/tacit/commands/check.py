"""``tacit check``: lists the operators of a program that secret tensors do not have."""

import argparse
import sys
from typing import Any

from tacit.commands.options import add_subject, positive, write_json


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="find every operator that is not supported, before any run",
        description="Runs a program once, with nothing secret, and lists every operator that "
        "secret "
        "tensors do not have, with its module, its line, and what can be done instead. Exit "
        "status 1 if there is any.",
    )
    add_subject(parser)
    parser.add_argument(
        "--parties",
        type=positive,
        default=3,
        metavar="N",
        help="number of parties of a program; 3 by default",
    )
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from tacit.rehearsal.check import check
    from tacit.rehearsal.subject import load

    found = check(*load(parsed.subject), parties=parsed.parties)
    write_json(parsed.json, found.as_json())
    print(found)
    if not found.passed:
        sys.exit(1)
