"""A SuperLink with SuperNodes that run the example, and Flower's simulation on ray.

No byte that a node sends to Flower holds an update.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import flowers
import pytest
import torch
from flwr.app import ArrayRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from worlds import Servers, written

from ports import free_ports
from tacit.federated.flower import SecureAggregation, secure_mod

APP = Path(__file__).resolve().parent.parent.parent / "examples" / "flower_app"
ROUNDS, NODES, SIZE = 2, 2, 650
RULES = f"norm = 30.0\ngreatest_weight = 2000\ncoordinator = {NODES}\n"

#: Most seconds that Flower's programs may take. They start a process for each message.
PATIENCE = 240.0


class Wire:
    """A relay to a server that records what is sent to it."""

    def __init__(self, port: int) -> None:
        self.up = bytearray()
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near, far, self.up), daemon=True).start()
            threading.Thread(target=self._carry, args=(far, near, bytearray()), daemon=True).start()

    @staticmethod
    def _carry(one: socket.socket, other: socket.socket, kept: bytearray) -> None:
        try:
            while read := one.recv(1 << 16):
                kept += read
                other.sendall(read)
        except OSError:
            pass
        finally:
            one.close()
            other.close()

    def close(self) -> None:
        self._listener.close()


@contextmanager
def program(folder: Path, name: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Runs one of Flower's programs, and ends it afterwards."""
    environment = {
        **os.environ,
        "FLWR_HOME": str(folder / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "NO_PROXY": "*",
    }
    command = [str(Path(sys.executable).with_name(name)), *map(str, arguments)]
    with (folder / f"{name}.log").open("ab") as log:
        running = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, 9)
            running.wait(20)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def said(folder: Path) -> str:
    return "\n".join(log.read_text() for log in sorted(folder.glob("*.log")))


def ran(app: Path, folder: Path, config: Path) -> tuple[dict[str, torch.Tensor], bytes]:
    """Returns the model from a SuperLink with two SuperNodes, and all bytes that the nodes sent to
    it."""
    (port,) = free_ports(1)
    (folder / "flwr").mkdir(parents=True)
    connection = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    (folder / "flwr" / "config.toml").write_text(connection)
    wire, out = Wire(port), folder / "learned.pt"
    with ExitStack() as running:
        running.callback(wire.close)
        started = partial(program, folder)
        offline = "--disable-runtime-dependency-installation"
        running.enter_context(started("flower-superlink", "--insecure", "--port", port, offline))
        until = time.monotonic() + PATIENCE
        while not answers(port):
            assert time.monotonic() < until, said(folder)
            time.sleep(0.2)
        for node in range(NODES):
            own = f'tacit-federation="{config}" tacit-client={node} partition-id={node} num-partitions={NODES}'
            to = (
                "--superlink",
                f"127.0.0.1:{wire.port}",
                "--port",
                *free_ports(1),
                "--node-config",
                own,
            )
            running.enter_context(started("flower-supernode", "--insecure", *to))
        settings = f'federation="{config}" rounds={ROUNDS} out="{out}"'
        running.enter_context(
            started("flwr", "run", app, "here", "--stream", "--run-config", settings)
        )
        while not out.exists():
            assert time.monotonic() < until, said(folder)
            time.sleep(0.2)
        # The writer has begun; wait until the file is complete.
        time.sleep(1.0)
    return torch.load(out), bytes(wire.up)


#: The first bytes of an array in anything that Flower sends.
ARRAY = b"\x93NUMPY"


@pytest.mark.long  # Flower starts a process for each message: a minute for each of two runs.
def test_a_superlink_and_its_supernodes_see_no_update(tmp_path: Path) -> None:
    config = written(tmp_path, NODES + 1, seconds=PATIENCE, rules=RULES)
    servers = Servers(
        config, lambda server: [server.round(torch.zeros(SIZE)) for _ in range(ROUNDS)]
    )
    secret, up = ran(APP, tmp_path / "secret", config)
    for reports in servers.ended():
        assert all(report.accepted == list(range(NODES)) for report in reports)
    plain, seen = ran(without_tacit(tmp_path / "app"), tmp_path / "plain", config)
    assert secret.keys() == plain.keys()
    for name, start in network().state_dict().items():
        assert torch.allclose(secret[name], plain[name], rtol=0, atol=1e-4)
        assert float((plain[name] - start).abs().max()) > 0.01
    assert up.count(ARRAY) == 0
    # Without the mod the same search finds weights and biases of each node and round.
    assert seen.count(ARRAY) == 2 * NODES * ROUNDS
    assert len(seen) - len(up) > NODES * ROUNDS * SIZE * 2


def without_tacit(folder: Path) -> Path:
    """Copies the example without the lines for tacit."""
    shutil.copytree(APP, folder)
    for path in (folder / "digits").glob("*.py"):
        lines = path.read_text().splitlines(keepends=True)
        kept = [
            line for line in lines if not line.endswith("# tacit\n") or line.startswith("app =")
        ]
        text = re.sub(r"ClientApp\(.*\)  # tacit", "ClientApp()", "".join(kept))
        assert "tacit" not in text
        path.write_text(text)
    return folder


def network() -> torch.nn.Module:
    """Returns the network of the example."""
    namespace: dict[str, Any] = {}
    exec((APP / "digits" / "task.py").read_text(), namespace)
    return namespace["network"]()


@pytest.mark.long  # ray starts seven processes, and has 70 MB of its own.
def test_flowers_simulation_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs nodes in separate processes, and checks their replies as ``test_flower`` does in
    threads."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(each for each in sys.path if each))
    nodes = len(flowers.COUNTS)
    size = sum(values.size for values in flowers.START.values() if values.dtype.kind == "f")
    rules = f"norm = 8.0\ngreatest_weight = 100\ncoordinator = {nodes}\n"
    config = written(tmp_path, nodes + 1, rules=rules)
    found: list[ArrayRecord] = []

    def learn(grid: Grid, strategy: Any) -> None:
        found.append(strategy.start(grid, flowers.model(), ROUNDS).arrays)

    def usual() -> FedAvg:
        return FedAvg(min_train_nodes=nodes, fraction_evaluate=0.0, min_available_nodes=nodes)

    servers = Servers(
        config, lambda server: [server.round(torch.zeros(size)) for _ in range(ROUNDS)]
    )
    app = flowers.client_app([partial(secure_mod, federation=config)])
    messages = flowers.simulated(
        app, lambda grid: learn(grid, SecureAggregation(usual(), config)), "ray"
    )
    servers.ended()
    flowers.simulated(flowers.client_app([]), lambda grid: learn(grid, usual()))
    for name in flowers.START:
        one, other = (arrays[name].numpy() for arrays in found)
        assert abs(one - other).max() < 1e-4
    replies = [message for message in messages if message.metadata.reply_to_message_id]
    assert len(replies) == nodes * ROUNDS
    assert flowers.foreign(replies, []) == []
