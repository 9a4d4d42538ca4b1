"""``tacit cost``: predicts rounds, bytes and seconds of a program on a network that it is not run
on."""

import argparse
from typing import Any

from tacit.commands.options import add_setting, add_subject, chosen_setting, write_json


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "cost",
        help="predict rounds, bytes and seconds of a program on a network",
        description="Runs a program once on this machine and says what it costs on a network: "
        "rounds and "
        "bytes exactly, seconds by the network's delay and bandwidth. The correlations of additive "
        "sharing "
        "are counted if --source names where they come from.",
    )
    add_subject(parser)
    parser.add_argument(
        "--network",
        default="lan",
        metavar="lan|wan|RTT,MBIT",
        help="lan (1 ms, 1000 Mbit/s, the default), wan (40 ms, 100 Mbit/s), or milliseconds of "
        "a round "
        "trip and megabits a second",
    )
    add_setting(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    setting = chosen_setting(parsed)
    from tacit.rehearsal.cost import cost
    from tacit.rehearsal.subject import load

    found = cost(
        *load(parsed.subject),
        network=parsed.network,
        protocol=setting.protocol,
        parties=setting.parties,
        source=parsed.source,
    )
    write_json(parsed.json, found.as_json())
    print(found)
