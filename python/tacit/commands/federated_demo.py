"""``tacit federated demo``: trains one model with three servers and clients that have their own
digits."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tacit.commands.federated_certificates import MOST_CLIENTS
from tacit.commands.options import (
    add_attestation,
    add_json,
    add_servers_protocol,
    output,
    positive,
    write_json,
)
from tacit.errors import MisuseError
from tacit.providers import DEFAULT


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="learn handwritten digits from clients' updates, on this machine"
    )
    add_federation(parser)
    parser.add_argument("--rounds", type=positive, default=20, metavar="N", help="how many (20)")
    parser.add_argument(
        "--aggregator",
        default="fedavg",
        metavar="NAME|FILE:FUNCTION",
        help="how vectors become one: fedavg, fltrust, krum, multi-krum, geometric-median, "
        "norm-clipping, "
        "median, trimmed-mean, or a function of your own",
    )
    add_arguments(parser)
    parser.add_argument(
        "--attack",
        metavar="KIND:FRACTION",
        help="attack by a fraction of the clients, such as label-flip:0.25",
    )
    parser.add_argument(
        "--noise", type=float, metavar="SIGMA", help="noise, as a multiple of the bound"
    )
    parser.add_argument(
        "--delta", type=float, metavar="D", help="δ of the privacy account (1e-5), with --noise"
    )
    add_servers_protocol(parser)
    add_attestation(parser)
    add_json(parser)
    parser.set_defaults(command=run)


def add_federation(parser: argparse.ArgumentParser) -> None:
    """Adds the options that the demonstration and the experiments have in common."""
    parser.add_argument("--clients", type=positive, default=16, metavar="N", help="how many (16)")


#: Options of aggregators: type, name of the value, and help text.
ARGUMENTS: dict[str, tuple[type, str, str]] = {
    "attackers": (
        float,
        "PART",
        "krum, multi-krum: greatest fraction of the clients that attacks (0.25)",
    ),
    "chosen": (
        int,
        "M",
        "multi-krum: number of vectors in the mean (by default all except the attackers')",
    ),
    "trimmed": (float, "PART", "trimmed-mean: fraction that is dropped at each end (0.25)"),
    "steps": (
        int,
        "N",
        "geometric-median: steps of its iteration (16, and more from 17 clients on)",
    ),
}


def add_arguments(parser: argparse.ArgumentParser, names: Iterable[str] = ARGUMENTS) -> None:
    """Adds the options of aggregators, which they take in addition to vectors and weights."""
    for name in names:
        kind, value, words = ARGUMENTS[name]
        parser.add_argument(f"--{name}", type=kind, metavar=value, help=words)


def arguments(parsed: argparse.Namespace) -> dict[str, float]:
    """Returns the options of aggregators that are given."""
    found = {name: getattr(parsed, name, None) for name in ARGUMENTS}
    return {name: value for name, value in found.items() if value is not None}


def run(parsed: argparse.Namespace) -> None:
    if parsed.delta is not None and parsed.noise is None:
        raise MisuseError("--delta goes with --noise: without noise nothing is accounted")
    if parsed.clients > MOST_CLIENTS:
        raise MisuseError(f"a federation has at most {MOST_CLIENTS} clients, not {parsed.clients}")
    if parsed.protocol is not None:
        from tacit.federated.rounds.settings import check_protocol

        check_protocol(parsed.protocol)
    from tacit.parties.spawn import warm_up

    # Other processes start while this one imports the rest.
    warm_up()

    from tacit.federated.service.config import DELTA
    from tacit.federated.simulation.attacks import Attack
    from tacit.federated.simulation.demo import demonstrate
    from tacit.federated.simulation.page import folder
    from tacit.federated.simulation.presets import federation
    from tacit.federated.simulation.report import print_report, write_report

    chosen = federation(
        clients=parsed.clients,
        rounds=parsed.rounds,
        aggregator=parsed.aggregator,
        attack=None if parsed.attack is None else Attack.of(parsed.attack),
        sigma=parsed.noise,
        delta=DELTA if parsed.delta is None else parsed.delta,
        arguments=arguments(parsed),
        protocol=parsed.protocol or DEFAULT,
    )
    console = output()
    # A report that cannot be written is found before anything takes long.
    report = folder(Path("federated-demo"))
    outcome = demonstrate(console, chosen, parsed.attestation)
    print_report(console, outcome)
    write_json(parsed.json, outcome.as_json())
    console.print(f"Report: {write_report(report, outcome)}")
