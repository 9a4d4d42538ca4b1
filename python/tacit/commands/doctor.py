"""``tacit doctor``: examines whether a session is possible, and what to fix."""

import argparse
import sys
from typing import Any

from tacit.commands.options import add_config, add_json, party, whole, write_json
from tacit.errors import MisuseError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say whether a session is possible, and what to fix",
        description="Examines versions, the configuration, certificates and keys. With the option "
        "that "
        "names a member, it also examines whether that member can listen, which of the others "
        "can be reached, and whether clocks and settings agree.",
    )
    add_config(parser, besides="; or federation.toml, or service.toml")
    member = parser.add_mutually_exclusive_group()
    member.add_argument("--party", type=party, metavar="I", help="which of them this is, from 0")
    member.add_argument("--dealer", action="store_true", help="this is the dealer")
    member.add_argument(
        "--server", type=party, metavar="I", help="with federation.toml: which server this is"
    )
    member.add_argument(
        "--client", type=whole, metavar="I", help="with federation.toml: which client this is"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=3.0,
        metavar="S",
        help="look for the other members for S seconds (3)",
    )
    add_json(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from tacit.doctor import (
        examine,
        examine_federation,
        examine_service,
        is_federation,
        is_service,
    )

    is_federated = is_federation(parsed.config)
    is_served = is_service(parsed.config)
    if is_served and parsed.dealer:
        raise MisuseError(f"{parsed.config} is of a service: give --party I, or neither")
    if is_federated and (parsed.party is not None or parsed.dealer):
        raise MisuseError(
            f"{parsed.config} is of a federation: give --server I or --client I, or neither"
        )
    if not is_federated and (parsed.server is not None or parsed.client is not None):
        raise MisuseError(
            f"{parsed.config} has no [[server]]: give --party I or --dealer, or neither"
        )
    if is_federated:
        checks = examine_federation(parsed.config, parsed.server, parsed.client, parsed.wait)
    elif is_served:
        checks = examine_service(parsed.config, parsed.party, parsed.wait)
    else:
        checks = examine(parsed.config, parsed.party, parsed.dealer, parsed.wait)
    print("\n".join(map(str, checks)))
    write_json(parsed.json, [check.as_json() for check in checks])
    if is_federated and parsed.server is None and parsed.client is None:
        print(
            "With --server I or --client I, tacit doctor also examines whether that member "
            "reaches the others."
        )
    elif is_served and parsed.party is None:
        print("With --party I, tacit doctor examines the key and the status page of party I alone.")
    elif not is_federated and parsed.party is None and not parsed.dealer:
        print(
            "With --party I, tacit doctor also examines whether party I can listen, and which of "
            "the others can be reached."
        )
    if not all(check.ok for check in checks):
        sys.exit(1)
