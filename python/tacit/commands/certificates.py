"""``tacit certificates``: makes keys and certificates."""

import argparse
from typing import Any

from tacit import _core
from tacit.commands.options import MOST_PARTIES, add_out, party, positive
from tacit.errors import MisuseError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "certificates",
        help="make a key and a certificate",
        description="Makes a key and a certificate: with --party for one party, with --dealer for "
        "the "
        "dealer, which each of them runs on its own machine; with --parties for all parties, "
        "for trials.",
    )
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--party", type=party, metavar="I", help="for this party, counted from 0")
    whose.add_argument(
        "--parties", type=positive, metavar="N", help="for N parties, a key and a certificate each"
    )
    parser.add_argument(
        "--dealer", action="store_true", help="for the dealer, alone or with --parties"
    )
    add_out(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    one = parsed.party is not None
    if one == (parsed.parties is not None or parsed.dealer):
        raise MisuseError(
            "say for whom: --party I for one party, --dealer for the dealer, or --parties N for "
            "all; "
            "--dealer may come with --parties"
        )
    if parsed.parties is not None and not 2 <= parsed.parties <= MOST_PARTIES:
        raise MisuseError(f"a session has 2 to {MOST_PARTIES} parties, not {parsed.parties}")
    numbers = [parsed.party] if one else range(parsed.parties or 0)
    names = [f"party-{party}" for party in numbers] + ["dealer"] * parsed.dealer
    _core.write_certificates(names, parsed.out)
    files = [f"{name}.{ending}" for name in names for ending in ("pem", "key")]
    shown = files if len(files) <= 4 else [*files[:2], "...", *files[-2:]]
    print(f"Wrote {', '.join(shown)} in {parsed.out}.")
    if len(names) == 1:
        print(f"Give {files[0]} to all others by a way that they trust, and {files[1]} to nobody.")
    else:
        print("Give every party all .pem files, and its own .key to it alone.")
