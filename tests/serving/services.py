"""Services for tests: small models, three parties or two, each a process that can be killed."""

import os
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any, Self
from urllib.request import ProxyHandler, build_opener

import torch

from commands import Command
from ports import free_addresses
from tacit import _core
from tacit.client import Client
from tacit.serving.config import text_of

#: A small module, and one that divides by its input.
PROGRAM = """
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))

def chosen():
    class Chosen(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 8)

        def forward(self, x):
            y = self.linear(x)
            return y, y.argmax(1)

    return Chosen()
"""

#: Seconds in which a party must be ready.
STARTING = 150.0

SHAPE = (1, 4)


def module(name: str = "build", seed: int = 5) -> torch.nn.Module:
    """Returns a module of the program, with the weights of the service.

    :func:`write` makes it, before threads: making one uses PyTorch's only random generator."""
    return _made(name, seed)


@cache
def _made(name: str, seed: int) -> torch.nn.Module:
    made: dict[str, Any] = {}
    exec(PROGRAM, made)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        built: torch.nn.Module = made[name]()
    return built.eval()


def model(name: str = "net", of: str = "build", **entries: Any) -> dict[str, Any]:
    """Returns a table [[model]]."""
    return {
        "name": name,
        "program": f"program.py:{of}",
        "owner": 0,
        "weights": f"{of}.pt",
        "shape": list(SHAPE),
        **entries,
    }


def write(
    folder: Path,
    models: list[dict[str, Any]] | None = None,
    *,
    parties: int = 3,
    clients: tuple[dict[str, Any], ...] = ({"name": "app"}, {"name": "other"}),
    limits: dict[str, Any] | None = None,
    **top: Any,
) -> Path:
    """Writes a service; returns the path of its configuration."""
    (folder / "program.py").write_text(PROGRAM)
    for name in ("build", "chosen"):
        torch.save(module(name).state_dict(), folder / f"{name}.pt")
    names = [f"party-{party}" for party in range(parties)]
    dealt = top.get("source") == "dealer"
    _core.write_certificates(
        [*names, *(["dealer"] if dealt else []), *(f"client-{each['name']}" for each in clients)],
        str(folder),
    )
    addresses = free_addresses(3 * parties + 1)
    path = folder / "service.toml"
    path.write_text(
        text_of(
            "trial",
            [
                {
                    "address": addresses[party],
                    "clients": addresses[parties + party],
                    "status": addresses[2 * parties + party],
                    "certificate": f"{name}.pem",
                }
                for party, name in enumerate(names)
            ],
            [{**each, "certificate": f"client-{each['name']}.pem"} for each in clients],
            models or [model()],
            limits={"deadline": 5, **(limits or {})},
            dealer={"address": addresses[-1], "certificate": "dealer.pem"} if dealt else None,
            **{"timeout": 10, **top},
        )
    )
    return path


class Parties:
    """The parties of a service, from when they are entered until they are left."""

    def __init__(self, config: Path, parties: int = 3, *, dealer: bool = False) -> None:
        self.config = config
        self.commands: list[Command | None] = [None] * parties
        self._dealer = Command("serve", "--config", config, "--dealer") if dealer else None

    def __enter__(self) -> Self:
        for party in range(len(self.commands)):
            self.start(party)
        return self

    def __exit__(self, *_: object) -> None:
        for command in (*self.commands, self._dealer):
            if command is not None:
                command.kill()

    def start(self, party: int, config: Path | None = None) -> None:
        """Starts a party, with the configuration of all if it has no other."""
        self.commands[party] = Command(
            "serve", "--config", config or self.config, "--party", party, "--threads", 1
        )

    def errors(self, party: int) -> str:
        """Returns what a party has written so far."""
        command = self.commands[party]
        assert command is not None
        return command.errors()

    def kill(self, party: int) -> None:
        """Kills a party with SIGKILL."""
        self.send(party, signal.SIGKILL)
        command = self.commands[party]
        assert command is not None
        command.kill()

    def send(self, party: int, number: signal.Signals) -> None:
        """Sends a party a signal."""
        command = self.commands[party]
        assert command is not None
        os.kill(command.id, number)

    def ended(self, party: int) -> tuple[int, str, str]:
        """Waits for the end of a party; returns its exit code, output and errors."""
        command = self.commands[party]
        assert command is not None
        return command.ended(STARTING)


def page(client: Client, party: int, name: str = "metrics") -> str:
    """Returns a page of a party's status."""
    status = client.service.parties[party].status
    with build_opener(ProxyHandler({})).open(f"http://{status}/{name}", timeout=20) as found:
        return str(found.read().decode())


def shown(client: Client, party: int, name: str) -> float:
    """Returns a value of a party's status page, by its name and labels as they stand there."""
    lines = page(client, party).splitlines()
    (found,) = (line for line in lines if line.startswith(f"{name} "))
    return float(found.removeprefix(name))


def waiting(client: Client, party: int) -> int:
    """Returns how many requests wait at a party, as its status page says."""
    return int(shown(client, party, "tacit_queue"))


def wait_for(client: Client) -> None:
    """Waits until all parties are ready."""
    until = time.monotonic() + STARTING
    while not client.is_ready():
        assert time.monotonic() < until, "the parties are not ready"
        time.sleep(0.02)
