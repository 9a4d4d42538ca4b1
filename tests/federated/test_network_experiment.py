"""The experiment on networks: a small sweep of delays and packets, beside PPPFL's numbers."""

import json
import math
import queue
import socket
import threading
from pathlib import Path

import pytest
from rich.console import Console

from tacit.federated.experiments import network, privacy
from tacit.federated.experiments.journal import NAME
from tacit.parties.delay import Delay


def test_a_small_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "TIMES", 1)
    monkeypatch.setattr(privacy, "CLIENTS", 8)
    page = network.run(
        Console(quiet=True),
        tmp_path,
        rounds=1,
        seeds=1,
        delays=(0, 20),
        packets=(128, 1 << 20),
        clients=2,
        parameters=50,
        epochs=2,
    )
    found = json.loads((tmp_path / "network.json").read_text())
    cases = {(each["packet"], each["delay"]): each for each in found["milliseconds"]}
    assert list(cases) == [(128, 0), (128, 20), (1 << 20, 0), (1 << 20, 20)]
    # Numbers of PPPFL's are there where it has them.
    assert [each["pppfl"] for each in cases.values()] == [23.212, 175.094, None, None]
    for (_, delay), each in cases.items():
        # A client's vector takes a way, and its result takes one back, at least.
        assert each["ours"] > 2 * delay
    assert [each["epoch"] for each in found["epsilon"]] == [1, 2, 1, 2]
    assert [each["sigma"] for each in found["accuracy"]] == [0.0, 2.0, 4.0]
    text = page.read_text()
    assert text.count("<tr>") == 2 * (1 + 2) + (1 + 4) + (1 + 3)
    assert text.count("data:image/png") == 2
    rows = [json.loads(line) for line in (tmp_path / NAME).read_text().splitlines()]
    assert [len(row["milliseconds"]) for row in rows[:4]] == [1] * 4


def test_the_equation_is_pppfls() -> None:
    """Equation 5.1 by hand; the account counts all rounds of an epoch, so it says more."""
    found = network.spent(4.0, 9)
    assert found.pppfl == pytest.approx(
        64 * 16 / 50_000 * math.sqrt(2 * math.log(1.25e5)) / 4 * 3, rel=1e-12
    )
    assert 0 < found.by_epochs < found.by_batches


def test_a_packet_is_no_longer_than_it_may_be() -> None:
    """What comes at once goes on in packets, in order, each after its delay."""
    with socket.create_server(("127.0.0.1", 0)) as far:
        target = "{}:{}".format(*far.getsockname()[:2])
        delay = Delay("127.0.0.1:0", target, 0.01, packet=64)
        sizes: list[int] = []
        taken = Delay._take

        class Watched:
            """A socket that records how much is asked of it."""

            def __init__(self, inner: socket.socket) -> None:
                self._inner = inner

            def recv(self, size: int) -> bytes:
                sizes.append(size)
                return self._inner.recv(size)

        near, end = socket.socketpair()
        sent = bytes(range(256)) * 4
        threading.Thread(target=lambda: (end.sendall(sent), end.close())).start()
        coming: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        taken(delay, Watched(near), coming)  # type: ignore[arg-type]
        chunks = [coming.get()[1] for _ in range(coming.qsize())]
        near.close()
    assert set(sizes) == {64}
    assert b"".join(chunks) == sent
    assert max(map(len, chunks)) <= 64
