"""``tacit serve``: one party of a service, or all of them for a trial."""

import argparse
import contextlib
import os
import signal
import sys
import time
from typing import Any, NoReturn

from tacit import logs
from tacit.commands.options import (
    add_json,
    add_threads,
    output,
    party,
    positive,
    whole,
    write_json,
)
from tacit.errors import MisuseError, Terminated

#: Seconds between two sessions of a dealer.
PAUSE = 0.2


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "serve",
        help="serve models to clients as one party of a service, or try that here (demo)",
        description="Serves the models of service.toml as one of its parties, until it is told to "
        "leave: SIGTERM finishes the requests that wait, SIGHUP reads the models again.",
    )
    parser.add_argument("--config", metavar="service.toml", help="the service: who, and what")
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--party", type=party, metavar="I", help="which party this is, from 0")
    whose.add_argument(
        "--dealer", action="store_true", help="this is the dealer, which makes correlations"
    )
    add_threads(parser)
    parser.set_defaults(command=run)
    trials = parser.add_subparsers(metavar="demo")
    trial = trials.add_parser(
        "demo",
        help="parties and clients here: ask for results, and check them",
        description="Starts a service of three parties and some clients on this machine, asks for "
        "results, and compares them with those of the plain model. One party may be killed half-way "
        "and started again.",
    )
    trial.add_argument(
        "--requests", type=positive, default=200, metavar="N", help="how many (200 if not given)"
    )
    trial.add_argument(
        "--clients", type=positive, default=4, metavar="N", help="how many (4 if not given)"
    )
    trial.add_argument(
        "--kill", type=whole, metavar="I", help="the party that is killed half-way; none if absent"
    )
    add_json(trial)
    trial.set_defaults(command=run_demo)


def run(parsed: argparse.Namespace) -> None:
    if parsed.config is None or (parsed.party is None and not parsed.dealer):
        raise MisuseError(
            "say which service and which of its parties this is: --config service.toml and "
            "--party I, or --dealer; for a trial on this machine: tacit serve demo"
        )
    if parsed.dealer:
        _deal(parsed)
    from tacit.serving.server import Server

    # A service runs for weeks: its operator reads when sessions open and end.
    os.environ.setdefault(logs.VARIABLE, "info")
    logs.show()
    server = Server(parsed.config, parsed.party, threads=parsed.threads)

    def leave(*_: Any) -> None:
        is_again = server.is_leaving
        server.leave()
        if is_again or server.is_opening:
            raise Terminated

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, lambda *_: server.reload())
    print(f"tacit: party {parsed.party}: clients reach it at {server.address}", file=sys.stderr)
    status = server.service.party(parsed.party).status
    with contextlib.ExitStack() as stack:
        if status is not None:
            from tacit.serving.addresses import parse
            from tacit.serving.status import StatusPages

            pages = stack.enter_context(StatusPages(server.observed, *parse(status)))
            host, port = pages.address
            print(f"tacit: party {parsed.party}: its status is at {host}:{port}", file=sys.stderr)
        server.run()
    print(f"tacit: party {parsed.party} has answered what waited, and leaves", file=sys.stderr)


def _deal(parsed: argparse.Namespace) -> NoReturn:
    """Deals to session after session of the parties."""
    from tacit import _core
    from tacit.errors import NetworkError, PeerError, setup_error
    from tacit.serving.attesting import of_dealer
    from tacit.serving.config import Service

    service = Service.read(parsed.config)
    if service.dealer is None:
        raise setup_error(f"{parsed.config} has no table [dealer]: nobody would ask it")
    certificates = service.certificates_of_members()
    key = _core.read_private_key(str(service.dealer.key))
    while True:
        try:
            _core.deal_local(
                _core.Listener(service.dealer.listen),
                [member.address for member in service.members],
                certificates,
                key,
                service.timeout,
                parsed.threads,
                attestation=of_dealer(service),
            )
        except (PeerError, NetworkError) as error:
            print(f"tacit: the dealer: {error}", file=sys.stderr)
        time.sleep(PAUSE)


def run_demo(parsed: argparse.Namespace) -> None:
    from tacit.demo.service import demonstrate

    report = demonstrate(parsed.requests, parsed.clients, parsed.kill)
    console = output()
    console.print(
        f"{report['answered']} of {report['requests']} requests answered, {report['refused']} "
        f"refused, {report['wrong']} wrong; {report['seconds_p50'] * 1000:.1f} ms in the median, "
        f"{report['seconds_p99'] * 1000:.1f} ms at the 99th percentile, "
        f"{report['requests_per_second']:.1f} requests a second; "
        f"{report['sessions_opened']} sessions opened"
    )
    write_json(parsed.json, report)
