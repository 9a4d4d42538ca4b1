"""A service in the clear for tests of the gateway, and gateways in threads of this process."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.client import Model
from tacit.gateway.routes import MOST_WAITING
from tacit.gateway.run import serve
from tacit.serving.description import Tensor
from tacit.serving.http_messages import Limits

Array = NDArray[Any]

#: Twice the input, and the sum of each row.
DOUBLE = Model(
    "double",
    ("1", "2"),
    (Tensor("x", "float32", (1, 3), 16),),
    (Tensor("twice", "float32", (1, 3), 16), Tensor("sum", "float32", (1,), 16)),
)

#: The sum of two inputs of whole numbers.
ADD = Model(
    "add",
    ("1",),
    (Tensor("a", "int64", (1, 2), 0), Tensor("b", "int64", (1, 2), 0)),
    (Tensor("c", "int64", (1, 2), 0),),
)


class InClear:
    """A backend that computes here. ``before`` is called before each request."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.before = before
        self.asked: list[tuple[str, str | None, float | None]] = []
        self.patience: list[float | None] = []

    def models(self) -> Mapping[str, Model]:
        return {"double": DOUBLE, "add": ADD}

    def infer(
        self,
        model: str,
        inputs: Mapping[str, Array],
        *,
        version: str | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> tuple[Array, ...]:
        self.asked.append((model, version, timeout))
        self.patience.append(patience)
        self.before()
        if model == "double":
            return 2 * inputs["x"], inputs["x"].sum(1)
        return (inputs["a"] + inputs["b"],)


@contextmanager
def gateway(
    backend: Any, limits: Limits | None = None, most_waiting: int = MOST_WAITING
) -> Iterator[str]:
    """Runs a gateway; yields its host and port."""
    loop = asyncio.new_event_loop()
    listens, found = threading.Event(), []

    def told(url: str) -> None:
        found.append(url.removeprefix("http://"))
        listens.set()

    async def main() -> None:
        task.append(asyncio.current_task())
        await serve(backend, ("127.0.0.1", 0), told, limits, 5, most_waiting)

    task: list[Any] = []

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner, suppress(asyncio.CancelledError):
            runner.run(main())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert listens.wait(10)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(task[0].cancel)
        thread.join(20)
        assert not thread.is_alive()


def row(*numbers: float) -> Array:
    """Returns numbers as one request of ``double``."""
    return np.array([numbers], np.float32)
