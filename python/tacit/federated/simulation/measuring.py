"""Measurements of whole rounds, from numbers at clients to the new model at clients.

Three servers have a process each. All clients live in one process, in a thread each. Everything is
real: each client has its own connections, with TLS and signatures.
"""

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

import tacit
from tacit import _core
from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.rounds.settings import Settings
from tacit.federated.service.attesting import add_trial
from tacit.federated.service.client import Client
from tacit.federated.service.config import SERVERS, text_of
from tacit.federated.service.server import Server
from tacit.meter import verification_of
from tacit.parties.delay import CHUNK, Delay
from tacit.providers import CONSUMING

#: Longest wait for one message, and time that a round gives its clients, in seconds.
TIMEOUT = 300.0

#: Clients that work at the same time; the others wait for their turn.
AT_ONCE = 64

#: Numbers of the other processes: the clients, and the links with a delay.
CLIENTS, LINKS = SERVERS, SERVERS + 1

#: Entries of a table ``[round]``, by name.
Rules = Mapping[str, Any]


@dataclass(frozen=True)
class Federation:
    """The parameters of a measurement: a validated mean, unless they say otherwise."""

    parameters: int
    #: Entries of ``[round]``, in addition to the usual ones.
    rules: Rules = field(default_factory=dict)
    #: Without the client whose vector is the root, if there is one.
    clients: int = 16
    repetitions: int = 3
    #: The delay of every link, in seconds.
    delay: float = 0.0
    #: The most bytes of a packet, on links with a delay.
    packet: int = CHUNK
    #: The kind of evidence that servers show each other and their clients; ``None`` for none.
    attestation: str | None = None

    @property
    def aggregator(self) -> str:
        """The aggregator's name."""
        return str(self.rules.get("aggregator", "fedavg"))

    @property
    def all_clients(self) -> int:
        """The number of all clients, including the root."""
        return self.clients + AGGREGATORS[self.aggregator].needs_root


@dataclass(frozen=True)
class Measured:
    """The cost of several rounds, after a first one; seconds and bytes are of one round."""

    seconds: list[float]
    bytes_up_per_client: int
    cpu_seconds_of_clients: float
    #: By server.
    bytes_sent: list[int]
    cpu_seconds: list[float]
    #: The peak, in bytes.
    memory: list[int]
    #: The entry on verification, if the protocol verifies.
    verified: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Returns all fields by name."""
        fields = asdict(self)
        verified = fields.pop("verified")
        return {**fields, **verified}


def measured(case: Federation, threads: int | None = None) -> Measured:
    """Measures a case with three servers, a process of clients, and one of links if they have a
    delay."""
    threads = threads or max(1, (os.cpu_count() or 1) // SERVERS)
    with tempfile.TemporaryDirectory() as folder:
        # This session only starts the processes together, exchanges their addresses, and ends them
        # together.
        *servers, clients, _ = tacit.launch(
            _party,
            case,
            Path(folder),
            threads,
            parties=SERVERS + 2,
            protocol=CONSUMING,
            transport="tcp",
            timeout=TIMEOUT,
            threads=threads,
        )
    return Measured(
        clients["seconds"],
        clients["bytes_up"],
        clients["cpu"],
        bytes_sent=[server["bytes_sent"] for server in servers],
        cpu_seconds=[server["cpu"] for server in servers],
        memory=[server["memory"] for server in servers],
        verified=verification_of([server["verification"] for server in servers], case.repetitions),
    )


def _party(case: Federation, folder: Path, threads: int) -> dict[str, Any]:
    number, core = tacit.session().party, tacit.session().core
    config = folder / "federation.toml"
    # Each listener gets a port from the system and keeps it. A port that was only found free might
    # be given to a connection before its program listens on it.
    own = [_core.Listener("127.0.0.1:0") for _ in range(2)] if number < SERVERS else []
    pairs = [
        _broadcast_addresses(server, [listener.address for listener in own])
        for server in range(SERVERS)
    ]
    listening = [address for pair in pairs for address in pair]
    # Links have the delay as long as these objects live.
    delays: list[Delay] = []
    if case.delay and number == LINKS:
        delays = [Delay("127.0.0.1:0", target, case.delay, case.packet) for target in listening]
    reached = (
        _broadcast_addresses(LINKS, [delay.address for delay in delays])
        if case.delay
        else listening
    )
    if number == LINKS:
        _write(config, case, list(zip(reached[::2], reached[1::2], strict=True)))
    core.broadcast(LINKS, b"written" if number == LINKS else None)
    found: dict[str, Any] = {}
    if number < SERVERS:
        found = _server(case, config, number, threads, (own[0], own[1]))
    elif number == CLIENTS:
        torch.set_num_threads(os.cpu_count() or 1)
        found = _clients(case, config)
    # Links stay until everything is over.
    core.broadcast(CLIENTS, b"over" if number == CLIENTS else None)
    return found


def _broadcast_addresses(by: int, addresses: list[str]) -> list[str]:
    """Broadcasts the addresses at which a process listens."""
    session = tacit.session()
    own = " ".join(addresses).encode() if session.party == by else None
    return session.core.broadcast(by, own).decode().split()


def _write(config: Path, case: Federation, addresses: list[tuple[str, str]]) -> None:
    """Writes the files of a federation on this machine."""
    names = [f"server-{number}" for number in range(SERVERS)]
    names += [f"client-{number}" for number in range(case.all_clients)]
    _core.write_certificates(names, str(config.parent))
    settings = Settings(**case.rules)
    text = text_of(
        "measured", addresses, case.all_clients, settings, seconds=TIMEOUT, timeout=TIMEOUT
    )
    config.write_text(text)
    if case.attestation is not None:
        add_trial(config, case.attestation)


def _server(
    case: Federation,
    config: Path,
    number: int,
    threads: int,
    listeners: tuple[_core.Listener, _core.Listener],
) -> dict[str, Any]:
    """Runs all rounds; CPU seconds and bytes to other servers are of one round, from its
    beginning."""
    model = torch.zeros(case.parameters)
    with Server.open(config, number, threads, listeners) as server:
        server.round(model)
        meter = tacit.session().meter
        before, verified, started = meter.total, meter.verification, time.process_time()
        for _ in range(case.repetitions):
            report = server.round(model)
        cpu = (time.process_time() - started) / case.repetitions
        sent = (meter.total - before).bytes_sent // case.repetitions
        verification = meter.verification_since(verified)
    if report.failure is not None:
        raise RuntimeError(report.failure)
    unit = 1 if sys.platform == "darwin" else 1024
    memory = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu": cpu, "bytes_sent": sent, "memory": memory, "verification": verification}


def _clients(case: Federation, config: Path) -> dict[str, Any]:
    """Measures each round, from when all clients have joined and trained to when all have the new
    model."""
    clients = [Client(config, number) for number in range(case.all_clients)]
    trained = 0.01 * torch.randn(case.parameters, generator=torch.Generator().manual_seed(1))
    seconds, cpu = [], []
    with ThreadPoolExecutor(min(len(clients), AT_ONCE)) as pool:

        def together(work: Any) -> None:
            list(pool.map(work, clients))

        for _ in range(1 + case.repetitions):
            together(Client.join)
            up = sum(client.traffic[0] for client in clients)
            started, busy = time.perf_counter(), time.process_time()
            together(lambda client: client.submit(trained))
            up = sum(client.traffic[0] for client in clients) - up
            together(Client.result)
            seconds.append(time.perf_counter() - started)
            cpu.append(time.process_time() - busy)
    return {
        "seconds": seconds[1:],
        "cpu": statistics.median(cpu[1:]),
        "bytes_up": up // len(clients),
    }
