"""Log messages of a round at its servers and its clients."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from worlds import LONG, Servers, written

from logged import SECRET, logged
from tacit.federated import Client
from tacit.federated.service.server import Server


def test_a_round_logs_no_vector(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tacit")
    config = written(tmp_path, clients=2, rules='bound = "none"\ngreatest_weight = 9999.0')

    def work(server: Server) -> object:
        return server.round(torch.zeros(2))

    servers = Servers(config, work)

    def take_part(number: int) -> None:
        client = Client(config, number)
        task = client.join(LONG)
        client.submit(task.model + SECRET, weight=SECRET)
        client.result(LONG)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(take_part, range(2)))
    assert [report.accepted for report in servers.ended()] == [[0, 1]] * 3
    found = logged(caplog)
    assert sorted(found["tacit.federated.service.client", "INFO"]) == [
        f"client {client} {what}"
        for client in range(2)
        for what in (
            "handed in a vector for round 1",
            "has what round 1 came to",
            "joined round 1 of 2 values",
        )
    ]
    said = " ".join(found["tacit.federated.service.server", "INFO"])
    for server in range(3):
        assert f"server {server}: round 1 of 2 values began" in said
    # A client that arrives before the round opens is refused, and comes again.
    assert said.count("2 clients count, 0 dropped, 0 late, ") == 3
