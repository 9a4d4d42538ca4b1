"""Rounds of federated learning, from numbers at clients to the new model at clients: three servers, a process
each, and one process in which all clients live, a thread each. All is real: connections of their own, TLS,
signatures.
"""

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import tacit
from tacit import _core
from tacit.federated import Client
from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.server import Server

SERVERS = 3

#: Longest wait for one message, and time that a round gives its clients, in seconds.
TIMEOUT = 300.0

#: Clients that are at work at the same time; others wait for their turn.
AT_ONCE = 64

#: Sums alone, of which two lie in a word where they fit; of too many clients they do not.
_MEAN = {"bound": "none", "word_bits": 32}
_WIDE_MEAN = {"bound": "none"}


@dataclass(frozen=True)
class Federation:
    """One measurement."""

    parameters: int
    #: Of ``[round]``, besides what all have.
    rules: Mapping[str, object] = field(default_factory=lambda: _MEAN)
    #: Without the one whose vector is a root, where there is one.
    clients: int = 16
    repetitions: int = 3
    only_by_name: bool = True

    @property
    def aggregator(self) -> str:
        """Its name."""
        return str(self.rules.get("aggregator", "fedavg"))

    @property
    def everybody(self) -> int:
        """All clients, a root among them."""
        return self.clients + AGGREGATORS[self.aggregator].needs_root


#: Values of the models of PPPFL (Akhtar 2024), for CIFAR-10.
DENSENET121, VGG11, RESNET18, SIMPLEDLA = 6_956_298, 9_231_114, 11_173_962, 15_142_970

#: By name: means of 16 clients unless it says otherwise.
FEDERATIONS = {
    "federated_mean_7690": Federation(7_690, only_by_name=False),
    "federated_mean_30730": Federation(30_730, only_by_name=False),
    "federated_mean_densenet121": Federation(DENSENET121),
    "federated_mean_vgg11": Federation(VGG11),
    "federated_mean_resnet18": Federation(RESNET18),
    "federated_mean_simpledla": Federation(SIMPLEDLA),
    "federated_mean_vgg11_bound": Federation(VGG11, {"bound": "refuse"}),
    "federated_fltrust_vgg11": Federation(VGG11, {"aggregator": "fltrust", "root": 16}, repetitions=1),
    "federated_krum_vgg11": Federation(VGG11, {"aggregator": "krum"}, repetitions=1),
    "federated_median_1e6": Federation(1_000_000, {"aggregator": "median"}, repetitions=1),
    "federated_mean_1e6_of_1000": Federation(1_000_000, _WIDE_MEAN, clients=1000, repetitions=1),
}


def measure(name: str, threads: int | None = None) -> tuple[dict[str, Any], int]:
    """The entry of a case in the report, and the memory in bytes that the largest server had at most."""
    case = FEDERATIONS[name]
    threads = threads or max(1, (os.cpu_count() or 1) // SERVERS)
    with tempfile.TemporaryDirectory() as folder:
        config = written(Path(folder), case)
        # This session is theirs only to be started together, and to end together.
        *servers, clients = tacit.launch(
            _party,
            case,
            config,
            threads,
            parties=SERVERS + 1,
            protocol="additive",
            transport="tcp",
            timeout=TIMEOUT,
            threads=threads,
        )
    entry = {
        "name": name,
        "protocol": "replicated",
        "parties": SERVERS,
        "clients": case.clients,
        "parameters": case.parameters,
        "transport": "tcp",
        "threads": threads,
        "warm_up": 1,
        "repetitions": case.repetitions,
        "seconds_median": statistics.median(clients["seconds"]),
        "seconds_min": min(clients["seconds"]),
        "bytes_up_per_client": clients["bytes_up"],
        "bytes_sent_per_party": [server["bytes_sent"] for server in servers],
        "cpu_seconds_per_party": [server["cpu"] for server in servers],
        "cpu_seconds_of_clients": clients["cpu"],
        "memory_per_party": [server["memory"] for server in servers],
    }
    return entry, max(server["memory"] for server in servers)


def written(folder: Path, case: Federation) -> Path:
    """The files of a federation on this machine, at ports that are free."""
    count = case.everybody
    _core.write_certificates([f"server-{number}" for number in range(SERVERS)], str(folder))
    _core.write_certificates([f"client-{number}" for number in range(count)], str(folder))
    ports = [_core.Listener("127.0.0.1:0") for _ in range(2 * SERVERS)]
    tables = [
        f'[[server]]\naddress = "{ports[at].address}"\nclients = "{ports[at + SERVERS].address}"\n'
        f'certificate = "server-{at}.pem"\n'
        for at in range(SERVERS)
    ]
    rules = {"seconds": TIMEOUT, **case.rules}
    quoted = {name: f'"{value}"' if isinstance(value, str) else value for name, value in rules.items()}
    lines = [f"{name} = {value}" for name, value in quoted.items()]
    head = f'name = "bench"\ntimeout = {TIMEOUT}\n'
    path = folder / "federation.toml"
    path.write_text("\n".join([head, *tables, f"[clients]\ncount = {count}\n", "[round]", *lines]))
    return path


def _party(case: Federation, config: Path, threads: int) -> dict[str, Any]:
    number = tacit.session().party
    if number < SERVERS:
        return _server(case, config, number, threads)
    torch.set_num_threads(os.cpu_count() or 1)
    return _clients(case, config)


def _server(case: Federation, config: Path, number: int, threads: int) -> dict[str, Any]:
    """All rounds; CPU seconds and bytes to other servers are of a round, from its beginning."""
    model = torch.zeros(case.parameters)
    with Server.open(config, number, threads) as server:
        server.round(model)
        meter = tacit.session().meter
        before, started = meter.total, time.process_time()
        for _ in range(case.repetitions):
            report = server.round(model)
        cpu = (time.process_time() - started) / case.repetitions
        sent = (meter.total - before).bytes_sent // case.repetitions
    if report.failure is not None:
        raise RuntimeError(report.failure)
    unit = 1 if sys.platform == "darwin" else 1024
    memory = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu": cpu, "bytes_sent": sent, "memory": memory}


def _clients(case: Federation, config: Path) -> dict[str, Any]:
    """Seconds of each round from when all have joined and trained to when all have the new model."""
    clients = [Client(config, number) for number in range(case.everybody)]
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
