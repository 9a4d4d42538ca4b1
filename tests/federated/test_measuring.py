"""Measured rounds: data over delayed links arrive unchanged."""

import os
import socket
import threading

from ports import free_ports
from tacit.bench.federations import FEDERATIONS
from tacit.federated.simulation.measuring import Federation, measured
from tacit.parties.delay import Delay


def test_what_is_delayed_comes_as_it_was_sent() -> None:
    """Data arrive unchanged in both directions, up to the end, even if the far end listens
    later."""
    host, (near, far) = "127.0.0.1", free_ports(2)
    Delay(f"{host}:{near}", f"{host}:{far}", 0.01)
    sent = os.urandom(3_000_000)
    with (
        socket.create_connection((host, near)) as calling,
        socket.create_server((host, far)) as listening,
    ):
        answering, _ = listening.accept()
        with answering:
            for source, sink in ((calling, answering), (answering, calling)):
                writing = threading.Thread(
                    target=lambda end=source: (end.sendall(sent), end.shutdown(1))
                )
                writing.start()
                found = b"".join(iter(lambda end=sink: end.recv(1 << 20), b""))
                writing.join()
                assert found == sent


def test_rounds_over_links_that_take_longer() -> None:
    case = FEDERATIONS["federated_mean_vgg11_100ms"]
    assert (case.delay, case.clients, case.only_by_name) == (0.1, 16, True)
    found = measured(Federation(10, case.rules, clients=2, repetitions=1, delay=0.001), threads=1)
    assert len(found.seconds) == 1
    assert len(found.bytes_sent) == len(found.cpu_seconds) == len(found.memory) == 3
    assert 4 * 11 < found.bytes_up_per_client < 4 * 11 + 4096
