"""``tacit federated experiment``: accuracy, attacks, privacy and cost, each with a report."""

import argparse
from pathlib import Path
from typing import Any

#: What can be measured.
KINDS = ("accuracy", "attacks", "privacy", "cost")


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "experiment",
        help="measure accuracy, attacks, privacy or cost of federations on this machine",
        description="accuracy: in secret against in the clear; attacks: each defence against each attack; "
        "privacy: accuracy by both ε; cost: seconds and bytes of the servers.",
    )
    parser.add_argument("kind", choices=KINDS, help="what to measure")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the report")
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from rich.console import Console

    from tacit.federated.experiments import EXPERIMENTS

    console = Console()
    console.print(f"Report: {EXPERIMENTS[parsed.kind](console, parsed.out)}")
