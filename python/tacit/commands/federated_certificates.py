"""``tacit federated certificates``: makes keys and certificates of servers and clients."""

import argparse
from typing import Any

from tacit import _core
from tacit.commands.options import add_out, positive
from tacit.errors import MisuseError

#: Number of servers of a federation, and greatest number of its clients.
SERVERS, MOST_CLIENTS = 3, 4096


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "certificates",
        help="make keys and certificates of servers and clients",
        description="Makes keys and certificates: with --server or --client for one of them, which "
        "it "
        "runs on its own machine; with --servers and --clients for all, for trials.",
    )
    parser.add_argument("--server", type=int, metavar="I", help="for this server, 0 to 2")
    parser.add_argument("--client", type=int, metavar="I", help="for this client, counted from 0")
    parser.add_argument("--servers", type=positive, metavar="3", help="for all servers")
    parser.add_argument("--clients", type=positive, metavar="N", help="for N clients")
    add_out(parser)
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    if parsed.servers not in (None, SERVERS):
        raise MisuseError(f"a federation has {SERVERS} servers, not {parsed.servers}")
    if parsed.server is not None and not 0 <= parsed.server < SERVERS:
        raise MisuseError(f"the servers are 0 to {SERVERS - 1}, not {parsed.server}")
    if parsed.client is not None and not 0 <= parsed.client < MOST_CLIENTS:
        raise MisuseError(f"clients are 0 to {MOST_CLIENTS - 1}, not {parsed.client}")
    if parsed.clients is not None and parsed.clients > MOST_CLIENTS:
        raise MisuseError(f"a federation has at most {MOST_CLIENTS} clients, not {parsed.clients}")
    for one, all_ in (("server", "servers"), ("client", "clients")):
        if getattr(parsed, one) is not None and getattr(parsed, all_) is not None:
            raise MisuseError(f"--{one} is for this one alone, --{all_} for all: give one of them")
    servers = [parsed.server] if parsed.server is not None else range(parsed.servers or 0)
    clients = [parsed.client] if parsed.client is not None else range(parsed.clients or 0)
    names = [f"server-{number}" for number in servers] + [f"client-{number}" for number in clients]
    if not names:
        raise MisuseError(
            "say for whom: --server I, --client I, or --servers 3 --clients N for all"
        )
    _core.write_certificates(names, parsed.out)
    files = [f"{name}.{ending}" for name in names for ending in ("pem", "key")]
    shown = files if len(files) <= 4 else [*files[:2], "...", *files[-2:]]
    print(f"Wrote {', '.join(shown)} in {parsed.out}.")
    print(
        "Servers need all .pem files, clients those of the servers; every .key goes to its owner "
        "alone."
    )
