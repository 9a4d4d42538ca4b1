"""LeNet-5 as a service: what clients wait for, and how many requests a second the parties answer
beside how many inferences the same parties compute if nobody has to ask for them.

Parties and clients are processes of this machine, and share its processors."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import tacit
from tacit.bench.compiled import CALIBRATION, WEIGHTS_OWNER
from tacit.bench.settings import Setting
from tacit.client import Client
from tacit.compilation.execute import revealed
from tacit.compilation.program import Program
from tacit.compilation.weights import load_weights
from tacit.demo.service import MODEL, OF_MODULE, Parties, percentiles, wait_for, write_service
from tacit.providers import has_dealer
from tacit.serving import example
from tacit.serving.config import Limits

#: Longest wait for one message, and for one request, in seconds.
TIMEOUT = 120.0

#: Files of the compiled model.
PROGRAM, WEIGHTS = "lenet.tacit", "lenet.weights"

#: Batches of a session before those that are timed.
WARM_UP = 3

#: The party that has the images, if no client asks.
INPUT_OWNER = 1


@dataclass(frozen=True)
class Service:
    """One measurement, which is made only if it is named."""

    #: Clients, each of which asks for one result after another.
    clients: int
    #: Requests of each client in a turn.
    requests: int
    #: Whether the model is a compiled program, or a module in Python.
    is_compiled: bool
    turns: int = 4
    only_by_name: bool = True


SERVICES = {
    "service_lenet": Service(1, 100, is_compiled=False),
    "service_lenet_16_clients": Service(16, 25, is_compiled=False),
    "service_compiled_lenet": Service(1, 100, is_compiled=True),
    "service_compiled_lenet_16_clients": Service(16, 25, is_compiled=True),
}


def measure(name: str, setting: Setting, threads: int | None) -> tuple[dict[str, Any], int]:
    """Returns the entry of a case in the report, and 0: memory is not measured.

    A service, and a session in which the parties compute as many images together as a batch of that
    service may have, do their work by turns."""
    case, threads = SERVICES[name], setting.threads(threads)
    together = min(case.clients, Limits().batch)
    asked: list[float] = []
    rates: list[float] = []
    direct: list[float] = []
    with TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder)
        program = _compiled(path) if case.is_compiled else None
        asking = stack.enter_context(_asking(case, setting, path, threads))
        for _ in range(case.turns):
            seconds, took = asking()
            asked += seconds
            rates.append(len(seconds) / took)
            told = setting.launch(
                _party, program, path, together, case.requests, threads=threads, timeout=TIMEOUT
            )
            direct += [max(each) for each in zip(*told, strict=True)]
    rate, rate_of_parties = statistics.median(rates), together / statistics.median(direct)
    return {
        "name": name,
        **setting.entry,
        "threads": threads,
        "clients": case.clients,
        "requests": len(asked),
        "seconds_median": statistics.median(asked),
        **percentiles(asked),
        "requests_per_second": rate,
        "batch": together,
        "seconds_of_a_batch_without_clients": statistics.median(direct),
        "images_per_second_without_clients": rate_of_parties,
        "times_the_rate": rate / rate_of_parties,
    }, 0


def _compiled(folder: Path) -> Program:
    """Compiles the model, and writes its program and its weights."""
    images = torch.rand(CALIBRATION, *example.SHAPE[1:])
    program, weights = tacit.compile(example.module(), images[:1], calibrate=images)
    program.save(folder / PROGRAM)
    weights.save(folder / WEIGHTS)
    return program


@contextmanager
def _asking(
    case: Service, setting: Setting, folder: Path, threads: int
) -> Iterator[Callable[[], tuple[list[float], float]]]:
    """Starts a service and its clients, and ends them. Yields a function that lets all clients ask,
    and returns the seconds of each request, and those of all together."""
    names = [f"client-{number}" for number in range(case.clients)]
    top: dict[str, Any] = {"protocol": setting.protocol}
    if setting.source is not None:
        top["source"] = setting.source
    compiled = {"name": MODEL, "program": PROGRAM, "owner": WEIGHTS_OWNER, "weights": WEIGHTS}
    config = write_service(
        folder,
        names,
        parties=setting.parties,
        model=compiled if case.is_compiled else OF_MODULE,
        has_dealer=has_dealer(setting.source),
        **top,
    )
    with ExitStack() as stack:
        if has_dealer(setting.source):
            stack.enter_context(_dealer(config))
        stack.enter_context(Parties(config, setting.parties, threads=threads))
        clients = [
            stack.enter_context(Client(config, name=name, timeout=TIMEOUT)) for name in names
        ]
        wait_for(clients[0])
        pool = stack.enter_context(ThreadPoolExecutor(case.clients))
        images = torch.rand(case.requests, *example.SHAPE)

        def ask(client: Client) -> list[float]:
            seconds = []
            for image in images:
                started = time.perf_counter()
                client.infer(MODEL, image)
                seconds.append(time.perf_counter() - started)
            return seconds

        def asking() -> tuple[list[float], float]:
            started = time.perf_counter()
            seconds = [each for of_one in pool.map(ask, clients) for each in of_one]
            return seconds, time.perf_counter() - started

        # Connections are made, and a dealer learns what a request takes.
        asking()
        yield asking


@contextmanager
def _dealer(config: Path) -> Iterator[None]:
    words = [sys.executable, "-m", "tacit", "serve", "--config", str(config), "--dealer"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _party(program: Program | None, folder: Path, images: int, runs: int) -> list[float]:
    """Runs one party's part without clients: the seconds of each batch, from sharing the images to
    their owner's result."""
    party = tacit.session().party
    x = torch.rand(images, *example.SHAPE[1:]) if party == INPUT_OWNER else None
    compute = _computing_module() if program is None else _computing(program, folder, images)
    seconds = []
    for _ in range(WARM_UP + max(1, runs // images)):
        started = time.perf_counter()
        compute(x)
        seconds.append(time.perf_counter() - started)
    return seconds[WARM_UP:]


def _computing_module() -> Callable[[torch.Tensor | None], object]:
    module = example.module()
    tacit.share_module(module, owner=WEIGHTS_OWNER)

    def compute(x: torch.Tensor | None) -> object:
        with torch.inference_mode():
            return module(tacit.share(x, owner=INPUT_OWNER)).reveal(INPUT_OWNER)

    return compute


def _computing(
    program: Program, folder: Path, images: int
) -> Callable[[torch.Tensor | None], object]:
    is_owner = tacit.session().party == WEIGHTS_OWNER
    weights = load_weights(folder / WEIGHTS, with_model=False) if is_owner else None
    bound = program.share(weights, owner=WEIGHTS_OWNER, streams=images)

    def compute(x: torch.Tensor | None) -> object:
        return revealed(bound(bound.given(x, owner=INPUT_OWNER, count=images)), INPUT_OWNER)

    return compute
