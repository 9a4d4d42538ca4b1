"""Clients that ask without end, and what became of each request."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from services import module, page

from tacit.client import Client
from tacit.errors import PeerError, RequestRefusedError

#: The greatest difference from the plain model.
TOLERANCE = 1e-3

#: Seconds in which every call must have ended, beyond its own time.
MARGIN = 60.0


def given(seed: int, rows: int = 1) -> torch.Tensor:
    """Returns inputs of the service's small module."""
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))


def expected(x: torch.Tensor) -> torch.Tensor:
    """Returns the results of the plain module."""
    with torch.no_grad():
        result: torch.Tensor = module()(x)
    return result


def answered(client: Client, party: int) -> int:
    """Returns how many requests a party has answered, as its status page says."""
    lines = page(client, party).splitlines()
    found = [line for line in lines if line.startswith("tacit_requests_total{")]
    return sum(int(float(line.split()[-1])) for line in found if 'outcome="answered"' in line)


class Load:
    """Threads that ask, from when it is entered until it is left.

    Args:
        infer: each thread asks by one of them, with inputs of its own.
    """

    def __init__(self, infer: Sequence[Callable[[torch.Tensor], Any]]) -> None:
        #: "right", "wrong", and the types of errors, with their causes if they have one.
        self.outcomes: Counter[str] = Counter()
        self.errors: list[Exception] = []
        #: Of each wrong result the input, the result and what is right.
        self.wrong: list[tuple[Any, Any, Any]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(each, 1000 * at), daemon=True)
            for at, each in enumerate(infer)
        ]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Waits for all calls. Each must end, with a result or an error."""
        self._ended.set()
        until = time.monotonic() + MARGIN
        for each in self._threads:
            each.join(max(0.0, until - time.monotonic()))
            assert not each.is_alive(), f"a call does not end; so far {self.outcomes}"

    @property
    def refused(self) -> int:
        """Calls that ended in an error."""
        return len(self.errors)

    @property
    def right(self) -> int:
        """Calls that had the right result."""
        return self.outcomes["right"]

    def goes_on(self, more: int = 5, seconds: float = 60.0) -> None:
        """Waits until ``more`` further requests have results."""
        before, until = self.right, time.monotonic() + seconds
        while self.right < before + more:
            assert time.monotonic() < until, f"service does not go on: {self.errors[-3:]}"
            time.sleep(0.02)

    def _ask(self, infer: Callable[[torch.Tensor], Any], seed: int) -> None:
        while not self._ended.is_set():
            x = given(seed := seed + 1)
            try:
                found = torch.as_tensor(infer(x))
            except (PeerError, RequestRefusedError) as error:
                with self._lock:
                    self.errors.append(error)
                    self.outcomes[getattr(error, "cause", type(error).__name__)] += 1
                continue
            differs = (found - expected(x)).abs().max().item()
            with self._lock:
                self.outcomes["right" if differs < TOLERANCE else "wrong"] += 1
                if not differs < TOLERANCE:
                    self.wrong.append((x.tolist(), found.tolist(), expected(x).tolist()))
