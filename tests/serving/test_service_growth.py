"""What ten thousand requests leave behind at the parties."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from services import Parties, wait_for

from tacit.client import Client
from tacit.demo.service import MODEL, TOLERANCE, write_service
from tacit.serving import example
from tacit.serving.server import IDLE

CLIENTS = 8

#: Requests after which memory is compared with that after all of them.
FEW, MANY = 100, 10_000

#: How much of a party's memory may be added.
GROWTH = 0.05


class Held(NamedTuple):
    """What a process holds."""

    memory: int
    threads: int
    descriptors: int


def held(process: int) -> Held:
    """Returns what a process holds: its memory in bytes, its threads, its descriptors."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    descriptors = len(os.listdir(f"/proc/{process}/fd"))
    return Held(1024 * int(found["VmRSS"].split()[0]), int(found["Threads"]), descriptors)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_ten_thousand_requests_leave_nothing_behind(tmp_path: Path) -> None:
    names = [f"client-{number}" for number in range(CLIENTS)]
    config = write_service(tmp_path, names)
    module = example.module()
    with ExitStack() as stack:
        parties = stack.enter_context(Parties(config))
        clients = [stack.enter_context(Client(config, name=name)) for name in names]
        wait_for(clients[0])
        pool = stack.enter_context(ThreadPoolExecutor(CLIENTS))

        def ask(client: Client, numbers: range) -> None:
            for number in numbers:
                x = torch.rand(example.SHAPE, generator=torch.Generator().manual_seed(number))
                with torch.no_grad():
                    right = module(x)
                assert (client.infer(MODEL, x) - right).abs().max() < TOLERANCE

        def asked(begin: int, end: int) -> list[Held]:
            """Asks for the results of these inputs; returns what the parties hold when they have
            been idle for a while."""
            list(pool.map(ask, clients, [range(begin + at, end, CLIENTS) for at in range(CLIENTS)]))
            time.sleep(IDLE + 5)
            return [held(command.id) for command in parties.commands if command is not None]

        before, after = asked(0, FEW), asked(FEW, MANY)
    print(f"after {FEW} requests {before}, after {MANY} {after}")
    for first, last in zip(before, after, strict=True):
        assert last.memory <= (1 + GROWTH) * first.memory
        assert last.threads <= first.threads
        assert last.descriptors <= first.descriptors
