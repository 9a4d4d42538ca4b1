"""``tacit federated experiment``: measures accuracy, attacks, privacy, cost or networks, each with
a report."""

import argparse
from pathlib import Path
from typing import Any

from tacit.commands.federated_demo import ARGUMENTS, add_arguments
from tacit.commands.options import add_attestation, add_servers_protocol, output, positive
from tacit.errors import MisuseError

#: Kinds of experiments.
KINDS = ("accuracy", "attacks", "privacy", "cost", "network")


#: Options of each kind.
OPTIONS = {
    "accuracy": ("data", "rounds", "seeds", "device", "protocol", "attestation"),
    "attacks": ("rounds", "seeds", *ARGUMENTS),
    "privacy": ("rounds", "seeds"),
    "cost": ("protocol", "attestation"),
    "network": ("rounds", "seeds", "protocol"),
}


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "experiment",
        help="measure accuracy, attacks, privacy, cost or networks of federations on this machine",
        description="accuracy: in secret against in the clear; attacks: each defence against each "
        "attack; "
        "privacy: accuracy by both ε; cost: seconds and bytes of the servers; network: rounds over "
        "slow links, and ε, beside those of PPPFL.",
    )
    parser.add_argument("kind", choices=KINDS, help="what to measure")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the report"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="accuracy: repeats PPPFL's tables on the data sets in this folder, as torchvision and "
        "UCI unpack them: at least one of the folders cifar-10-batches-py, cifar-100-python, "
        "'UCI HAR Dataset'. Nothing is downloaded",
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        metavar="N",
        help="how many (20; privacy and network 10; with --data 2500)",
    )
    parser.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help="number of repetitions, each with another seed (3)",
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), help="device on which clients train, with --data (cpu)"
    )
    add_servers_protocol(parser, ", for accuracy, cost and network")
    add_attestation(parser)
    add_arguments(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:

    from tacit.federated.experiments import EXPERIMENTS

    names = ("data", "rounds", "seeds", "device", "protocol", "attestation", *ARGUMENTS)
    given = {name: getattr(parsed, name) for name in names if getattr(parsed, name) is not None}
    for name in given:
        if name not in OPTIONS[parsed.kind]:
            raise MisuseError(f"--{name} is not for {parsed.kind}")
    if "device" in given and "data" not in given:
        raise MisuseError("--device goes with --data")
    if "protocol" in given:
        from tacit.federated.rounds.settings import check_protocol

        check_protocol(given["protocol"])
    console = output()
    console.print(f"Report: {EXPERIMENTS[parsed.kind](console, parsed.out, **given)}")
