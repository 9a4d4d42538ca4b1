"""A client and a gateway end soon, whatever the parties do."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving_in_clear import DOUBLE

from over_http import ask
from tacit.client import Client, Model
from tacit.demo.service import write_service
from tacit.errors import MisuseError, Terminated
from tacit.gateway.backend import ServiceBackend
from tacit.gateway.cells import Cells
from tacit.gateway.run import serve
from tacit.serving.config import Service
from tacit.serving.description import Described, Tensor

#: Seconds that a call may take: longer than any test.
LONG = 600.0

#: Seconds in which everything ends.
SOON = 30.0


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """A service whose parties take connections and say nothing."""
    config = write_service(tmp_path, ["app"])
    with contextlib.ExitStack() as stack:
        for party in Service.read(config).parties:
            host, port = party.clients.split(":")
            stack.enter_context(socket.create_server((host, int(port))))
        yield config


def known(client: Client) -> None:
    """Tells a client of a model that the parties would describe."""
    given, returned = (Tensor(name, "float32", (1, 3), 16) for name in ("input", "output"))
    client._known = (Described("net", "1", "ab", (given,), (returned,)),)


CALLS: dict[str, Callable[[Client], object]] = {
    "models": lambda client: client.models(),
    "a model that is not known": lambda client: client.infer("other", np.zeros((1, 3), "f4")),
    "one request": lambda client: client.infer("net", np.zeros((1, 3), "f4")),
    "several requests": lambda client: client.infer("net", np.zeros((40, 3), "f4")),
}


@pytest.mark.parametrize("case", CALLS)
def test_closing_a_client_ends_its_calls(silent: Path, case: str) -> None:
    raised: list[BaseException] = []
    begun = threading.Event()
    client = Client(silent, timeout=LONG)
    known(client)

    def call() -> None:
        begun.set()
        try:
            CALLS[case](client)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    assert begun.wait(SOON)
    # It waits for the parties, which say nothing.
    thread.join(0.3)
    assert thread.is_alive()
    client.close()
    thread.join(SOON)
    assert not thread.is_alive()
    (error,) = raised
    assert isinstance(error, MisuseError), error
    assert "this client was closed" in str(error)
    with pytest.raises(MisuseError, match="this client was closed"):
        client.models()


def test_a_gateway_ends_while_parties_say_nothing(silent: Path) -> None:
    """SIGTERM ends the process, and a request that does not end in time with it."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_until_signalled, args=(silent, theirs))
    process.start()
    try:
        address = ours.recv()
        body = (
            b'{"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}'
        )

        def infer() -> None:
            with contextlib.suppress(OSError):
                ask(address, "POST", "/v2/models/double/infer", body)

        thread = threading.Thread(target=infer)
        thread.start()
        assert ours.recv() == "begun"
        assert process.pid is not None
        os.kill(process.pid, signal.SIGTERM)
        process.join(SOON)
        assert process.exitcode == 7
        thread.join(SOON)
    finally:
        process.kill()


class _Silent(ServiceBackend):
    """A client of parties that say nothing but what their models are."""

    def __init__(self, client: Client, pipe: Any) -> None:
        super().__init__(client)
        self._pipe = pipe

    def models(self) -> Mapping[str, Model]:
        return {"double": DOUBLE}

    def infer(self, *arguments: Any, **named: Any) -> Any:
        self._pipe.send("begun")
        return super().infer(*arguments, **named)


def _until_signalled(config: Path, pipe: Any) -> None:
    """Runs a gateway as the command does."""

    def told(url: str) -> None:
        pipe.send(url.removeprefix("http://"))

    try:
        with contextlib.ExitStack() as stack:
            client = stack.enter_context(Client(config, timeout=LONG))
            cells = Cells([_Silent(client, pipe)])
            stack.callback(cells.close)
            asyncio.run(serve(cells, ("127.0.0.1", 0), told, drain=0.2))
    except Terminated:
        # Python ends only after the threads that still run.
        sys.exit(7)
