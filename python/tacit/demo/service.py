"""A service of three parties, its clients and a gateway on this machine. One party may be killed
half-way and started again."""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import torch

from tacit.client import Client
from tacit.demo.over_http import OverHttp
from tacit.demo.ports import free_addresses
from tacit.errors import MisuseError, RequestRefusedError, TacitError, setup_error
from tacit.gateway.backend import ServiceBackend
from tacit.gateway.cells import Cells
from tacit.gateway.routes import Routes
from tacit.parties import spawn
from tacit.serving import example
from tacit.serving.addresses import LOOPBACK_NAMES
from tacit.serving.config import text_of
from tacit.serving.http_server import HttpThread

#: Parties of the service.
PARTIES = 3

#: Seconds in which all parties must be ready.
STARTING = 150.0

#: Seconds that a request takes at most.
TIMEOUT = 30.0

#: The greatest difference from the plain model's results that is not wrong.
TOLERANCE = 0.01

#: The model of the service.
MODEL = "lenet"


class Parties:
    """The parties of a service as processes of this machine, from when they are entered until they
    are left. They are forked from a process that has imported PyTorch."""

    def __init__(self, config: Path, parties: int = PARTIES, *, threads: int = 1) -> None:
        self.config = config
        self._threads = threads
        self._running: list[spawn.Process | None] = [None] * parties

    def __enter__(self) -> Self:
        for party in range(len(self._running)):
            self.start(party)
        return self

    def __exit__(self, *_: object) -> None:
        for party in range(len(self._running)):
            self.kill(party)

    def start(self, party: int) -> None:
        """Starts a party that does not run."""
        assert self._running[party] is None
        process = spawn.start("tacit.serving.worker", os.environ, 1, 2)
        process.sending.send((str(self.config), party, self._threads))
        self._running[party] = process

    def kill(self, party: int) -> None:
        """Kills a party at once, with SIGKILL."""
        process = self._running[party]
        if process is not None:
            process.end()
        self._running[party] = None

    def leave(self) -> list[int]:
        """Lets all parties leave in order; returns how many sessions each has opened."""
        for process in self._running:
            assert process is not None
            process.sending.send("leave")
        return [int(process.receiving.recv()) for process in self._running if process is not None]


#: The table [[model]] of the model as a module.
OF_MODULE: Mapping[str, Any] = {
    "name": MODEL,
    "program": f"{example.PROGRAM}:{example.CALLABLE}",
    "owner": 0,
    "weights": example.WEIGHTS,
    "shape": list(example.SHAPE),
}


def write_service(
    folder: Path,
    clients: Sequence[str],
    *,
    parties: int = PARTIES,
    model: Mapping[str, Any] = OF_MODULE,
    has_dealer: bool = False,
    **top: Any,
) -> Path:
    """Writes the files of a service on this machine; returns the path of its configuration.

    Args:
        folder: where they are written.
        clients: names of the clients.
        parties: how many.
        model: its table [[model]].
        has_dealer: whether a dealer makes the parties' correlations.
        top: the entries before all tables.
    """
    example.make(folder, parties, clients, has_dealer=has_dealer)
    addresses = free_addresses(2 * parties + has_dealer)
    dealer = {"address": addresses[-1], "certificate": f"{example.CERTIFICATES}/dealer.pem"}
    path = folder / "service.toml"
    text = text_of(
        "demo",
        [
            {
                "address": addresses[party],
                "clients": addresses[parties + party],
                "certificate": f"{example.CERTIFICATES}/party-{party}.pem",
            }
            for party in range(parties)
        ],
        [
            {"name": name, "certificate": f"{example.CERTIFICATES}/client-{name}.pem"}
            for name in clients
        ],
        [model],
        dealer=dealer if has_dealer else None,
        **top,
    )
    path.write_text(text)
    return path


class _Asking:
    """The requests of all clients, and what became of them."""

    def __init__(self, requests: int) -> None:
        self._lock = threading.Lock()
        self._begun, self.requests = 0, requests
        self.seconds: list[float] = []
        self.refused = self.wrong = 0
        self.is_half = Event()
        self._module = example.module()

    def next(self) -> int | None:
        """Returns the number of the next request, or ``None`` if there is none."""
        with self._lock:
            if self._begun == self.requests:
                return None
            self._begun += 1
            if 2 * self._begun >= self.requests:
                self.is_half.set()
            return self._begun

    def ask(self, infer: Callable[[str, torch.Tensor], torch.Tensor]) -> None:
        """Asks for one result after another, and checks each."""
        while (number := self.next()) is not None:
            x = torch.rand(example.SHAPE, generator=torch.Generator().manual_seed(number))
            started = time.perf_counter()
            try:
                found = infer(MODEL, x)
            except TacitError as error:
                with self._lock:
                    self.refused += 1
                if not isinstance(error, RequestRefusedError):
                    time.sleep(0.1)
                continue
            taken = time.perf_counter() - started
            with torch.no_grad():
                is_wrong = bool((found - self._module(x)).abs().max() > TOLERANCE)
            with self._lock:
                self.seconds.append(taken)
                self.wrong += is_wrong


def demonstrate(requests: int, clients: int, kill: int | None) -> dict[str, Any]:
    """Runs the demo.

    Args:
        requests: how many.
        clients: how many ask at the same time.
        kill: the party that is killed half-way and started again, if any.

    Returns:
        The report: requests, answered, refused, wrong, seconds_p50, seconds_p99,
        requests_per_second, sessions_opened (by a party that was not killed).

    Raises:
        MisuseError: there is no such party.
        SetupError: the service does not start.
    """
    if kill is not None and not 0 <= kill < PARTIES:
        raise MisuseError(f"party {kill} does not exist: the parties are 0 to {PARTIES - 1}")
    names = [f"client-{number}" for number in range(clients)]
    asking = _Asking(requests)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        config = write_service(Path(folder), names)
        parties = stack.enter_context(Parties(config))
        asked = [stack.enter_context(Client(config, name=name, timeout=TIMEOUT)) for name in names]
        wait_for(asked[0])
        # The last client is an application that knows HTTP alone.
        asks = [*(client.infer for client in asked[:-1]), _through_gateway(stack, asked[-1]).infer]
        started = time.perf_counter()
        threads = [Thread(target=asking.ask, args=(infer,), daemon=True) for infer in asks]
        for thread in threads:
            thread.start()
        if kill is not None:
            asking.is_half.wait()
            parties.kill(kill)
            parties.start(kill)
        for thread in threads:
            thread.join()
        took = time.perf_counter() - started
        if kill is not None:
            wait_for(asked[0])
        opened = parties.leave()
    return {
        "requests": requests,
        "answered": len(asking.seconds),
        "refused": asking.refused,
        "wrong": asking.wrong,
        **percentiles(asking.seconds),
        "requests_per_second": len(asking.seconds) / took,
        "sessions_opened": max(opened),
    }


def _through_gateway(stack: ExitStack, client: Client) -> OverHttp:
    """Starts a gateway of a client, which ends with the stack, and returns a client of it.

    Raises:
        SetupError: the package that serves HTTP is not installed.
    """
    cells = Cells([ServiceBackend(client)])
    stack.callback(cells.close)
    routes = stack.enter_context(Routes(cells, LOOPBACK_NAMES))
    served = stack.enter_context(HttpThread(routes, "127.0.0.1", 0))
    return stack.enter_context(closing(OverHttp(*served.address)))


def wait_for(client: Client) -> None:
    """Waits until all parties are ready.

    Raises:
        SetupError: they are not in time.
    """
    until = time.monotonic() + STARTING
    while not client.is_ready():
        if time.monotonic() > until:
            raise setup_error(
                f"the parties of the demo were not ready within {STARTING:.0f} s; TACIT_LOG=info "
                "shows what they do"
            )
        time.sleep(0.05)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Returns the median of the seconds that requests took, and what 99 of 100 took at most."""
    if len(seconds) < 2:
        only = seconds[0] if seconds else 0.0
        return {"seconds_p50": only, "seconds_p99": only}
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"seconds_p50": statistics.median(seconds), "seconds_p99": cuts[98]}
