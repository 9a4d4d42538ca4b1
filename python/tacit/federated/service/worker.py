"""The process of a server, which ``tacit.federated.service.local`` starts."""

import threading
import time
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import torch

from tacit import _core, logs
from tacit.federated.service.local import ServerReport
from tacit.federated.service.server import Server
from tacit.parties.worker import die_with_parent, portable, report

#: The address of any free port of this machine.
HERE = "127.0.0.1:0"


def main(receiving: Connection, sending: Connection) -> None:
    """Serves rounds, reports each of them, and in the end reports whether all succeeded.

    The other ends of the pipes are the parent's.
    """
    try:
        listeners = _core.Listener(HERE), _core.Listener(HERE)
        sending.send((listeners[0].address, listeners[1].address))
        task = receiving.recv()
    except (EOFError, BrokenPipeError):
        return  # The parent has given this federation up.
    threading.Thread(target=die_with_parent, args=(receiving,), daemon=True).start()
    report(sending, _outcome(sending, listeners, *task))


def _outcome(
    sending: Connection,
    listeners: tuple[_core.Listener, _core.Listener],
    config: str,
    number: int,
    threads: int,
    start: bytes,
    rounds: int,
) -> tuple[bool, float, Any]:
    """Serves the rounds; returns whether they succeeded, when they ended, and the error if not."""
    try:
        logs.show()
        with Server.open(config, number, threads, listeners) as server:
            model = torch.frombuffer(bytearray(start), dtype=torch.float32)
            for _ in range(rounds):
                before = server.meter.total
                report = server.round(model)
                cost = server.meter.total - before
                model = report.model
                verification, attested = server.meter.verification, server.attestation
                told = ServerReport(report, cost, server.threat_model, verification, attested)
                sending.send(cloudpickle.dumps(told))
        return True, time.monotonic(), None
    except BaseException as error:
        return False, time.monotonic(), portable(error)
