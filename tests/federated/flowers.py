"""Flower for the tests: its simulation in threads of this process, and a record of every
message."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from types import ModuleType
from typing import Any
from unittest.mock import patch

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["FLWR_DISABLE_UPDATE_CHECK"] = "1"

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.server.superlink.fleet.vce.backend import Backend
from flwr.server.superlink.linkstate import InMemoryLinkState
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from flwr.supercore.task_identity import TaskIdentity

#: The module in which Flower looks for its only backend, which needs ray.
BACKEND = "flwr.server.superlink.fleet.vce.backend.raybackend"

#: Sender of messages that are created outside of an app.
TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, SUPERLINK_NODE_ID, 1

#: The model: two arrays, and a count of steps that is in no client's update.
START = {
    "layer.weight": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4),
    "layer.bias": np.array([0.5, -0.25, 4.0], np.float64),
    "steps": np.array(7),
}
COUNTS = (10, 20, 70)


def model() -> ArrayRecord:
    return ArrayRecord({name: Array(values) for name, values in START.items()})


def trained(client: int, number: int, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the array after a client's step towards its own target. The step depends on the
    current position."""
    place = np.sin(np.arange(values.size, dtype=np.float64) + 5 * client + number).reshape(
        values.shape
    )
    return (values + 0.2 * (place - 0.1 * values)).astype(values.dtype)


def train(msg: Message, ctxt: Context) -> Message:
    """Trains a client as any Flower user would write it."""
    client, number = (
        int(ctxt.node_config["partition-id"]),
        int(msg.content["config"]["server-round"]),
    )
    before = {name: each.numpy() for name, each in msg.content["arrays"].items()}
    after = {
        name: values if name == "steps" else trained(client, number, values)
        for name, values in before.items()
    }
    metrics = {"loss": 1.0 / (1 + client), "secret": 123.0, "num-examples": COUNTS[client]}
    return Message(
        RecordDict(
            {
                "arrays": ArrayRecord({name: Array(values) for name, values in after.items()}),
                "metrics": MetricRecord(metrics),
            }
        ),
        reply_to=msg,
    )


def evaluate(msg: Message, ctxt: Context) -> Message:
    client = int(ctxt.node_config["partition-id"])
    metrics = MetricRecord(
        {"accuracy": client / 10, "secret": 321.0, "num-examples": COUNTS[client]}
    )
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


def client_app(mods: list[Any]) -> ClientApp:
    app = ClientApp(mods=mods)
    app.train()(train)
    app.evaluate()(evaluate)
    return app


class Threads(Backend):
    """A backend that runs a client's app in the calling thread."""

    def build(self, app_fn: Callable[[], ClientApp]) -> None:
        self._app = app_fn()

    @property
    def num_workers(self) -> int:
        return len(COUNTS)

    def is_worker_idle(self) -> bool:
        return True

    def terminate(self) -> None:
        pass

    def process_message(self, message: Message, context: Context) -> tuple[Message, Context]:
        return self._app(message, context), context


@contextmanager
def recorded() -> Iterator[list[Message]]:
    """Records all messages that pass through Flower's server in this process."""
    messages: list[Message] = []

    def recording(store: Any) -> Any:
        def stored(state: InMemoryLinkState, message: Message) -> Any:
            messages.append(deepcopy(message))
            return store(state, message)

        return stored

    kinds = ("store_message_ins", "store_message_res")
    with (
        patch.object(InMemoryLinkState, kinds[0], recording(getattr(InMemoryLinkState, kinds[0]))),
        patch.object(InMemoryLinkState, kinds[1], recording(getattr(InMemoryLinkState, kinds[1]))),
    ):
        yield messages


def simulated(
    app: ClientApp, main: Callable[[Grid], Any], backend: str = "threads"
) -> list[Message]:
    """Runs Flower's simulation with one node per entry of COUNTS, and returns its messages."""
    server = ServerApp()

    @server.main()
    def run(grid: Grid, context: Context) -> None:  # noqa: ARG001 (Flower's)
        main(grid)

    with recorded() as messages, nullcontext() if backend == "ray" else threads():
        run_simulation(server, app, len(COUNTS), backend_name=backend)
    return messages


@contextmanager
def threads() -> Iterator[None]:
    """Replaces Flower's own backend by ``Threads``. Modules imported meanwhile stay imported."""
    own, engine = sys.modules.pop(BACKEND, None), ModuleType(BACKEND)
    engine.RayBackend = Threads  # type: ignore[attr-defined]
    sys.modules[BACKEND] = engine
    try:
        yield
    finally:
        del sys.modules[BACKEND]
        if own is not None:
            sys.modules[BACKEND] = own


#: Bytes, characters or numbers in the longest entry of a message other than models: a receipt.
LONGEST = 64


def foreign(messages: list[Message], models: list[ArrayRecord]) -> list[str]:
    """Lists everything in the messages that could hold an update.

    These are arrays other than models that Flower's server had, and lists, texts and bytes longer
    than a receipt.
    """
    known = {each.data for arrays in models for each in arrays.values()}
    found = []
    for message in messages:
        if message.has_error():
            found += [message.error.reason] if len(message.error.reason) > 2 * LONGEST else []
            continue
        for record, content in message.content.items():
            for name, value in content.items():
                is_model = isinstance(value, Array) and value.data in known
                is_short = not isinstance(value, Array | bytes | str | list) or (
                    not isinstance(value, Array) and len(value) <= LONGEST
                )
                if not (is_model or is_short):
                    found.append(f"{record}.{name}")
    return found
