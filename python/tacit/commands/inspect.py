"""``tacit inspect``: shows what a compiled program does and what it costs."""

import argparse
from typing import Any

from tacit.commands.options import add_json, add_program, add_setting, chosen_setting, write_json


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "inspect",
        help="show what a compiled program does, why it is safe, and what it costs",
        description="Shows each step of a program with its scale, the width of its comparisons and "
        "why that "
        "is safe; rounds and bytes, as the meter of a run on zeros counts them; and what becomes "
        "public.",
    )
    add_program(parser)
    add_json(parser)
    parser.add_argument(
        "--no-cost", action="store_true", help="leave out rounds and bytes, which take a run"
    )
    add_setting(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    setting = chosen_setting(parsed)
    from tacit.compilation.dry_run import metered
    from tacit.compilation.inspect import Cost, inspect
    from tacit.compilation.program import load_program
    from tacit.parties.launch import rehearse

    program = load_program(parsed.program)
    costs = []
    if not parsed.no_cost:
        told = rehearse(
            metered,
            program,
            parties=setting.parties,
            protocol=setting.protocol,
            source=parsed.source,
        )
        rounds, sent = max(each.rounds for each in told), [each.bytes_sent for each in told]
        costs.append(Cost(setting.protocol, setting.parties, rounds, sent))
    found = inspect(program, costs)
    write_json(parsed.json, found.as_json())
    print(found)
