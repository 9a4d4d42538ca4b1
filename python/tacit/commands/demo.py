"""``tacit demo``: classifies images of handwritten digits privately."""

import argparse
from typing import Any

from tacit.commands.options import (
    add_attestation,
    add_device,
    add_json,
    add_network,
    add_setting,
    chosen_setting,
    output,
    positive,
    print_threat_model,
    write_json,
)


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="classify handwritten digits privately, on this machine"
    )
    add_setting(parser)
    add_network(parser)
    add_attestation(parser)
    add_device(parser)
    add_json(parser)
    parser.add_argument(
        "--samples", type=positive, metavar="N", help="classify only the first N held-out images"
    )
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    setting = chosen_setting(parsed)

    from tacit.demo import demonstrate, report

    console = output()
    print_threat_model(console, setting)
    outcome, threat_model = demonstrate(
        console,
        parsed.samples,
        protocol=setting.protocol,
        parties=setting.parties,
        source=setting.source,
        network=parsed.network,
        attestation=setting.attestation,
        device=setting.device,
    )
    report(console, outcome, threat_model)
    write_json(parsed.json, outcome.as_json())
