"""A ServerApp in a process of its own, which is killed in a round and started again."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import flowers
import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAdam, FedAvgM, Strategy

from tacit.federated import Client
from tacit.federated.flower import SecureAggregation, secure_mod

#: All nodes take part.
ALL = {f"min_{what}_nodes": len(flowers.COUNTS) for what in ("train", "evaluate", "available")}

#: Strategies that keep arrays: by name, and in a list.
STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "FedAdam": partial(FedAdam, eta=0.1, tau=0.01),
    "FedAvgM": partial(FedAvgM, server_momentum=0.9, server_learning_rate=0.5),
}

#: When the process is killed: after round 1, in round 2 when all clients but one have submitted, or
#: there when the result is known and no file has it yet.
AFTER, AMID, WITHIN = "after", "amid", "within"


def inner(name: str) -> Strategy:
    return STRATEGIES[name](**ALL)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def client_app(config: str, when: str) -> ClientApp:
    """The usual app. The last client of round 2 waits for the others, if the process is then to be
    killed."""
    submitted = threading.Semaphore(0)
    honest = Client.submit

    def submit(*everything: Any) -> Any:
        receipt = honest(*everything)
        submitted.release()
        return receipt

    def train(msg: Message, ctxt: Context) -> Message:
        last = len(flowers.COUNTS) - 1
        is_second = msg.content["config"]["server-round"] == 2
        if when == AMID and is_second and ctxt.node_config["partition-id"] == last:
            for _ in range(2 * last + 1):
                submitted.acquire()
            killed()
        return flowers.train(msg, ctxt)

    Client.submit = submit  # type: ignore[method-assign]
    app = ClientApp(mods=[partial(secure_mod, federation=config)])
    app.train()(train)
    app.evaluate()(flowers.evaluate)
    return app


def main(name: str, config: str, kept: str, rounds: int, when: str, out: str) -> None:
    def run(grid: Grid) -> None:
        strategy = inner(name)
        aggregate = strategy.aggregate_train

        def aggregated(number: int, replies: Any) -> Any:
            if when == WITHIN and number == 2:
                killed()
            return aggregate(number, replies)

        strategy.aggregate_train = aggregated  # type: ignore[method-assign]
        chosen = SecureAggregation(strategy, config, kept=kept)
        result = chosen.start(grid, flowers.model(), rounds, evaluate_fn=seen)
        arrays = {key: each.numpy() for key, each in result.arrays.items()}
        Path(out).write_text(" ".join(map(str, result.train_metrics_clientapp)))
        np.savez(Path(out).with_suffix(".npz"), **arrays)

    def seen(number: int, _: ArrayRecord) -> MetricRecord | None:
        if when == AFTER and number == 1:
            killed()
        return None

    flowers.simulated(client_app(config, when), run)


if __name__ == "__main__":
    name, config, kept, rounds, when, out = sys.argv[1:]
    main(name, config, kept, int(rounds), when, out)
