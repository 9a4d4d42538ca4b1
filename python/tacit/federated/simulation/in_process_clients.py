"""All clients of a federation in one process, each in a thread with its own certificate and
connections."""

import queue
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from tacit.errors import RefusedError, SubmissionWarning
from tacit.federated.service.client import Client, Task

Item = TypeVar("Item")
Found = TypeVar("Found")

#: The interval at which a waiting thread checks whether it should go on, in seconds.
LOOK = 0.2


class Crowd:
    """The clients, which run concurrently."""

    def __init__(
        self,
        config: str | Path,
        count: int,
        patience: float,
        check: Callable[[], None] | None = None,
    ) -> None:
        """Makes the clients, with the certificates that the configuration names.

        Args:
            config: path of the file.
            count: how many; they have the first numbers.
            patience: longest wait for a round or its result, in seconds.
            check: called now and then while they wait; an exception of it ends the wait.
        """
        self._clients = [Client(config, number) for number in range(count)]
        self._patience = patience
        self._check = check

    @property
    def verified(self) -> list[int]:
        """By client, how often it has accepted a server's evidence."""
        return [client.verified for client in self._clients]

    def join(self) -> Task:
        """Waits for the next round; returns its task, which is the same for all."""
        return side_by_side(lambda client: client.join(self._patience), self._clients, self._check)[
            0
        ]

    def submit(
        self, start: torch.Tensor, updates: Mapping[int, torch.Tensor], weights: Sequence[float]
    ) -> dict[int, str]:
        """Submits each client's update to ``start``. Returns the refused clients, with the
        reasons."""

        def one(number: int) -> tuple[int, str | None]:
            try:
                self._clients[number].submit(start.double() + updates[number], weights[number])
            except RefusedError as error:
                return number, str(error)
            return number, None

        # These clients' updates are shortened on purpose.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SubmissionWarning)
            found = side_by_side(one, updates, self._check)
        return {number: reason for number, reason in found if reason is not None}

    def result(self) -> torch.Tensor | None:
        """Returns the model after the round; ``None`` if the round has no result."""

        def one(client: Client) -> torch.Tensor | None:
            try:
                return client.result(self._patience)
            except RefusedError:
                return None

        return side_by_side(one, self._clients, self._check)[0]

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes that all clients sent so far, and received."""
        each = [client.traffic for client in self._clients]
        return sum(up for up, _ in each), sum(down for _, down in each)


def side_by_side(
    work: Callable[[Item], Found], items: Iterable[Item], check: Callable[[], None] | None = None
) -> list[Found]:
    """Runs work on each item in threads; these end with this process, whatever they wait for.

    Raises:
        Exception: the first that any thread raised, without waiting for the others; or an exception
            of ``check``.
    """
    items = list(items)
    done: queue.SimpleQueue[tuple[int, Found | None, BaseException | None]] = queue.SimpleQueue()

    def run(place: int, item: Item) -> None:
        try:
            done.put((place, work(item), None))
        except BaseException as error:
            done.put((place, None, error))

    for place, item in enumerate(items):
        threading.Thread(target=run, args=(place, item), daemon=True).start()
    found: dict[int, Found] = {}
    while len(found) < len(items):
        try:
            place, value, error = done.get(timeout=LOOK)
        except queue.Empty:
            if check is not None:
                check()
            continue
        if error is not None:
            raise error
        found[place] = value  # type: ignore[assignment]
    return [found[place] for place in range(len(items))]
