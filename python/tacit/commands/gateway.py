"""``tacit gateway``: the Open Inference Protocol at a client of a service."""

import argparse
import asyncio
import contextlib
import sys
from typing import Any

from tacit.errors import MisuseError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "gateway",
        help="serve the Open Inference Protocol at a client of a service",
        description="Runs at a client of a service, and answers applications of this machine by the "
        "Open Inference Protocol v2, over HTTP. Tensors are plain between the application and the "
        "gateway, and shared between the gateway and the parties.",
    )
    parser.add_argument(
        "--service",
        required=True,
        action="append",
        metavar="FILE",
        help="service.toml; once for each cell, if the service has several",
    )
    parser.add_argument(
        "--client", metavar="NAME", help="which client of the file this is; the first if not given"
    )
    parser.add_argument(
        "--listen",
        default="127.0.0.1:8080",
        metavar="HOST:PORT",
        help="where applications reach it, 127.0.0.1:8080 if not given; with port 0 the system "
        "chooses one, which is printed",
    )
    parser.add_argument(
        "--allow-remote-clients",
        action="store_true",
        help="let --listen be an address that other machines reach, over a network on which plain "
        "numbers may travel, such as a pod's",
    )
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    from tacit.gateway.run import check, serve

    address = check(parsed.listen, parsed.allow_remote_clients)
    if len(set(parsed.service)) < len(parsed.service):
        raise MisuseError("--service names one file twice: give the file of each cell once")
    from tacit.client import Client
    from tacit.gateway.backend import ServiceBackend
    from tacit.gateway.cells import Cells

    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(path, name=parsed.client)) for path in parsed.service]
        cells = Cells([ServiceBackend(client) for client in clients])
        stack.callback(cells.close)
        asyncio.run(serve(cells, address, _tell))


def _tell(url: str) -> None:
    print(f"tacit: the gateway serves {url}/v2", file=sys.stderr, flush=True)
