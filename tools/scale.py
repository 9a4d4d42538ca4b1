"""What breaks first when a service or a federation grows, from measured constants.

    .venv/bin/python tools/scale.py service --rate 1000 --p99 0.25
    .venv/bin/python tools/scale.py federation --clients 1000000 --parameters 1000000

A service is simulated request by request: clients, cells, batches, streams, and the link that all
cells of one organisation share. A federation's round is a sum of bytes and seconds. docs/scale.md
discusses the results, and says how each constant was measured. Prices are the reader's own."""

import argparse
import heapq
import json
import math
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from random import Random

#: Requests that are simulated, after those that fill the queues.
SIMULATED, WARM_UP = 20_000, 2_000

#: More cells than this are not looked for.
MOST_CELLS = 10_000

SECONDS_OF_A_DAY = 86_400


@dataclass(frozen=True)
class Model:
    """What one batch of a model takes: LeNet-5 under replicated sharing, if not said otherwise.

    Seconds and bytes are lines through the figures of 1 and of 128 images in docs/benchmarks.md
    (semi-honest, two cores of an AMD EPYC Zen 4 that all three parties share, loopback):
    ``tacit bench --only lenet_1,lenet_128``."""

    seconds: tuple[float, float] = (0.024, 0.188)
    megabytes: tuple[float, float] = (0.42, 46.04)
    images: tuple[int, int] = (1, 128)
    rounds: int = 74

    def busy(self, batch: int) -> float:
        """Returns the seconds in which a batch occupies its cell's processors."""
        return self._line(self.seconds, batch)

    def sent(self, batch: int) -> float:
        """Returns the bytes that the busiest party sends for a batch."""
        return 1e6 * self._line(self.megabytes, batch)

    def _line(self, ends: tuple[float, float], batch: int) -> float:
        (low, high), (first, last) = ends, self.images
        return low + (high - low) * (batch - first) / (last - first)


@dataclass(frozen=True)
class Service:
    """A service's settings and network."""

    cells: int
    batch: int = 16
    #: Seconds that a batch waits for more requests.
    wait: float = 0.002
    #: Batches of a cell that are under way at a time. A party computes one; with more, one computes
    #: while others wait for messages.
    streams: int = 1
    #: Requests that wait at a cell; one more is refused.
    queue: int = 256
    #: Seconds of a message from one organisation to another: half a round trip.
    delay: float = 0.0005
    #: Bits a second that one organisation can send, with all its cells.
    bandwidth: float = 10e9
    model: Model = field(default_factory=Model)

    def alone(self) -> float:
        """Returns the seconds that a request takes where there is no other."""
        return self.wait + self.model.busy(1) + self.model.rounds * self.delay

    def bounds(self) -> dict[str, float]:
        """Returns the requests a second that each resource allows, if all batches are full."""
        model, batch = self.model, self.batch
        latency = model.busy(batch) + model.rounds * self.delay
        return {
            "processors": self.cells * batch / model.busy(batch),
            "streams": self.cells * self.streams * batch / latency,
            "link": self.bandwidth / 8 / model.sent(batch) * batch,
        }


@dataclass(frozen=True)
class Outcome:
    """What clients saw, and how busy the resources were."""

    answered: int
    refused: int
    p50: float
    p99: float
    #: Mean size of a batch.
    batch: float
    #: The part of the time in which processors, and the link, were busy.
    processors: float
    link: float


class Simulation:
    """A service with requests that arrive at random, one by one, at a rate."""

    def __init__(self, service: Service, rate: float, seed: int = 1) -> None:
        self._service = service
        self._rate = rate
        self._chance = Random(seed)
        self._queues: list[deque[float]] = [deque() for _ in range(service.cells)]
        self._running = [0] * service.cells
        self._in_work = [0] * service.cells
        self._free_at = [0.0] * service.cells
        self._link_free_at = 0.0
        self._events: list[tuple[float, int, str, int, tuple[float, ...]]] = []
        self._order = 0
        self._batches = 0
        self._busy = self._link_busy = 0.0

    def run(self, requests: int = SIMULATED, warm_up: int = WARM_UP) -> Outcome:
        """Simulates until so many requests have arrived, and all that were taken are answered."""
        arrived = refused = 0
        seconds: list[float] = []
        now = 0.0
        self._at(self._chance.expovariate(self._rate), "arrival")
        while self._events:
            now, _, kind, cell, begun = heapq.heappop(self._events)
            if kind == "arrival":
                arrived += 1
                cell = min(range(self._service.cells), key=self._load)
                if len(self._queues[cell]) < self._service.queue:
                    self._queues[cell].append(now)
                    self._at(now + self._service.wait, "timer", cell)
                else:
                    refused += arrived > warm_up
                if arrived < warm_up + requests:
                    self._at(now + self._chance.expovariate(self._rate), "arrival")
            elif kind == "done":
                self._running[cell] -= 1
                self._in_work[cell] -= len(begun)
                seconds += [now - each for each in begun]
            self._start(cell, now)
        taken = sorted(seconds[warm_up:]) or [math.nan]
        return Outcome(
            answered=len(seconds),
            refused=refused,
            p50=taken[len(taken) // 2],
            p99=taken[min(len(taken) - 1, math.ceil(0.99 * len(taken)) - 1)],
            batch=len(seconds) / max(self._batches, 1),
            processors=self._busy / now / self._service.cells,
            link=self._link_busy / now,
        )

    def _load(self, cell: int) -> int:
        return len(self._queues[cell]) + self._in_work[cell]

    def _at(self, time: float, kind: str, cell: int = 0, begun: tuple[float, ...] = ()) -> None:
        self._order += 1
        heapq.heappush(self._events, (time, self._order, kind, cell, begun))

    def _start(self, cell: int, now: float) -> None:
        """Starts the batches of a cell that are full or have waited, as far as streams are free."""
        service, queue = self._service, self._queues[cell]
        while queue and self._running[cell] < service.streams:
            is_due = now >= queue[0] + service.wait
            if len(queue) < service.batch and not is_due:
                return
            begun = tuple(queue.popleft() for _ in range(min(service.batch, len(queue))))
            busy = service.model.busy(len(begun))
            sending = 8 * service.model.sent(len(begun)) / service.bandwidth
            # Processors work on one batch at a time, and the link sends one. Both go on meanwhile.
            self._free_at[cell] = max(now, self._free_at[cell]) + busy
            self._link_free_at = max(now, self._link_free_at) + sending
            end = max(self._free_at[cell], self._link_free_at)
            self._at(end + service.model.rounds * service.delay, "done", cell, begun)
            self._running[cell] += 1
            self._in_work[cell] += len(begun)
            self._batches += 1
            self._busy += busy
            self._link_busy += sending


def needed(service: Service, rate: float, p99: float) -> tuple[Service, Outcome] | None:
    """Returns the service with the fewest cells that answers all requests within a p99.

    Returns None if no number of cells does: they share the organisation's link, and none is faster
    than one that idles."""
    if service.alone() > p99 or rate > service.bounds()["link"]:
        return None
    of_one = {name: bound / service.cells for name, bound in service.bounds().items()}
    cells = max(1, math.ceil(rate / min(of_one["processors"], of_one["streams"])))
    while cells <= MOST_CELLS:
        tried = Service(**{**vars(service), "cells": cells})
        outcome = Simulation(tried, rate).run()
        if not outcome.refused and outcome.p99 <= p99:
            return tried, outcome
        # Idle cells that are still too slow are no fewer with more of them.
        if outcome.processors < 0.05:
            return None
        cells += max(1, cells // 10)
    return None


@dataclass(frozen=True)
class Round:
    """A round of a federation whose clients are divided among cells.

    The seconds are those of ``tacit bench --only federated_mean_vgg11``: 1.62 seconds of one
    processor at the busiest server for 16 clients of 9,231,114 parameters (docs/scale.md)."""

    clients: int = 1_000_000
    parameters: int = 1_000_000
    #: Bytes of a parameter in an upload.
    word: int = 4
    #: The most clients of one cell: ``MOST_CLIENTS`` of federated/service/config.py.
    clients_of_a_cell: int = 4096
    #: Bits a second that one organisation can receive, with all its cells.
    bandwidth: float = 10e9
    #: Seconds of one processor at the busiest server for a client's parameter.
    seconds_of_a_parameter: float = 1.1e-8

    def figures(self) -> dict[str, float]:
        """Returns what a round takes at the organisation that receives most."""
        received = self.clients * self.parameters * self.word
        cells = math.ceil(self.clients / self.clients_of_a_cell)
        work = self.clients * self.parameters * self.seconds_of_a_parameter
        return {
            "cells": cells,
            "bytes_received": received,
            "seconds_of_link": 8 * received / self.bandwidth,
            "processor_seconds": work,
            "seconds_of_processors": work / cells,
            # Replicas of one party add their shares of sums: no message leaves the organisation.
            "bytes_between_replicas": (cells - 1) * 2 * self.parameters * 8,
        }


def daily(service: Service, outcome: Outcome, rate: float) -> dict[str, float]:
    """Returns what one organisation needs for a service: sessions, and bytes that it sends."""
    per_request = service.model.sent(max(1, round(outcome.batch))) / max(1, round(outcome.batch))
    return {
        "machines": service.cells,
        "terabytes_sent_a_day": per_request * rate * SECONDS_OF_A_DAY / 1e12,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the report of a service or of a federation as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    kinds = parser.add_subparsers(dest="kind", required=True)
    of_service = kinds.add_parser("service")
    of_service.add_argument("--rate", type=float, default=1000, help="requests a second")
    of_service.add_argument("--p99", type=float, default=0.5, help="seconds")
    of_service.add_argument("--batch", type=int, default=16)
    of_service.add_argument("--streams", type=int, default=1)
    of_service.add_argument("--rtt", type=float, default=1.0, help="milliseconds")
    of_service.add_argument("--gbit", type=float, default=10.0, help="of one organisation's link")
    of_round = kinds.add_parser("federation")
    of_round.add_argument("--clients", type=int, default=1_000_000)
    of_round.add_argument("--parameters", type=int, default=1_000_000)
    of_round.add_argument("--word", type=int, choices=(1, 2, 4, 8), default=4, help="bytes")
    of_round.add_argument("--gbit", type=float, default=10.0)
    parsed = parser.parse_args(arguments)
    if parsed.kind == "federation":
        made = Round(parsed.clients, parsed.parameters, parsed.word, bandwidth=parsed.gbit * 1e9)
        print(json.dumps({**asdict(made), **made.figures()}, indent=2))
        return 0
    service = Service(
        1, parsed.batch, streams=parsed.streams, delay=parsed.rtt / 2e3, bandwidth=parsed.gbit * 1e9
    )
    found = needed(service, parsed.rate, parsed.p99)
    if found is None:
        report = {
            "cells": None,
            "seconds_of_a_request_alone": service.alone(),
            "bounds_of_one_cell": service.bounds(),
        }
        print(json.dumps(report, indent=2))
        return 1
    service, outcome = found
    report = {
        "cells": service.cells,
        "seconds_of_a_request_alone": service.alone(),
        "bounds": service.bounds(),
        **asdict(outcome),
        **daily(service, outcome, parsed.rate),
    }
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
