"""``tacit federated``: federated learning in which no one sees an update."""

from typing import Any

from tacit.commands import (
    federated_admission,
    federated_certificates,
    federated_demo,
    federated_experiment,
    federated_serve,
)

#: Commands of ``tacit federated``, one per file.
COMMANDS = (
    federated_demo,
    federated_experiment,
    federated_certificates,
    federated_admission,
    federated_serve,
)


def add(commands: Any) -> None:
    parser = commands.add_parser("federated", help="federated learning whose updates nobody sees")
    inner = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(inner)
