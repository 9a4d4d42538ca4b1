"""``tacit compare``: compares a module on plain and on secret tensors, layer by layer."""

import argparse
import sys
import warnings
from typing import Any

from tacit.commands.options import add_subject, positive, write_json


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare a module's numbers on secret tensors with those on plain ones",
        description="Runs a module on plain tensors and on secret ones, without keeping anything "
        "secret, and shows for each layer the range, the error and the room that is left. "
        "Exit status 1 if something left its range, or the results do not match.",
    )
    add_subject(parser)
    parser.add_argument(
        "--scale", type=positive, default=16, metavar="BITS", help="fraction bits; 16 by default"
    )
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from tacit.errors import RangeWarning
    from tacit.rehearsal.compare import compare
    from tacit.rehearsal.subject import load

    with warnings.catch_warnings():
        # The findings report this too.
        warnings.simplefilter("ignore", RangeWarning)
        found = compare(*load(parsed.subject), scale=parsed.scale)
    write_json(parsed.json, found.as_json())
    print(found)
    if not found.passed:
        sys.exit(1)
