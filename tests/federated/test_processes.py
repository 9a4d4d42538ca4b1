"""Servers as processes, with clients and servers that drop out, are late, die, stall and come
back."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from worlds import LONG, beyond_the_bound, written

from commands import Command
from tacit import _core
from tacit.errors import MisuseError, PeerError, RefusedError
from tacit.federated import Client
from tacit.federated.privacy.account import Mechanism, epsilons
from tacit.federated.rounds.settings import Settings
from tacit.federated.service.config import Federation
from tacit.federated.service.local import Plan, Servers
from tacit.federated.simulation.in_process_clients import Crowd


def unknown(config: Path) -> Client:
    """Returns a client whose certificate the servers do not have."""
    folder = config.parent / "unknown"
    folder.mkdir()
    for file in ("federation.toml", *(f"server-{number}.pem" for number in range(3))):
        shutil.copy(config.parent / file, folder)
    _core.write_certificates(["client-0"], str(folder))
    return Client(folder / "federation.toml", 0)


def without_the_third_server(config: Path, client: Client) -> Client:
    """Returns the same client without access to the third server."""
    path = config.with_name("lost.toml")
    path.write_text(
        config.read_text().replace(Federation.read(config).servers[2].clients, "127.0.0.1:9")
    )
    lost = Client(path, client.number)
    lost._task = client._task
    return lost


def test_eight_clients_drop_out_and_come_late_at_every_step(tmp_path: Path) -> None:
    start = torch.arange(6.0)
    updates = torch.randn(2, 8, 6, generator=torch.Generator().manual_seed(4)) / 4
    plan = Plan(8, Settings(norm=4.0), start, rounds=2, seconds=12.0)
    with Servers(tmp_path, plan) as servers, ThreadPoolExecutor(9) as pool:
        clients = {number: Client(servers.config, number) for number in range(8)}
        # One client stays away, all others join, and one is unknown.
        present = [0, 1, 2, 3, 5, 6, 7]
        tasks = dict(
            zip(present, pool.map(lambda at: clients[at].join(LONG), present), strict=True)
        )
        assert all(torch.equal(task.model, start) for task in tasks.values())
        with pytest.raises(PeerError, match="it refused this client's certificate"):
            unknown(servers.config).join(LONG)
        # Three clients hand in everything, and one of them goes offline then. One exceeds the
        # bound, one reaches two servers, one sends nothing more, and one is late.
        for number in range(3):
            clients[number].submit(start + updates[0, number])
        clients[2] = Client(servers.config, 2)
        beyond_the_bound(clients[7])
        # This client keeps trying during the next round.
        lost = pool.submit(without_the_third_server(servers.config, clients[3]).submit, start)
        time.sleep(max(0.0, tasks[5].deadline))
        with pytest.raises(RefusedError, match="round 1"):
            clients[5].submit(start)
        first = [each.report for each in servers.reports()]
        # All clients join the next round.
        joined = list(pool.map(lambda at: clients[at].join(LONG), range(8)))
        expected = start + updates[0, :3].mean(0)
        assert all(torch.allclose(task.model, expected, atol=1e-5) for task in joined)
        list(pool.map(lambda at: clients[at].submit(joined[at].model + updates[1, at]), range(8)))
        models = list(pool.map(lambda at: clients[at].result(LONG), range(8)))
        second = [each.report for each in servers.reports()]
        with pytest.raises(PeerError, match='failed in step "submit": it cannot be reached at'):
            lost.result()
    for report in first:
        assert report.accepted == [0, 1, 2]
        assert (7, "norm", 1) in report.refused
        assert 6 in report.late
        assert 5 in {*report.late, *(client for client, _, _ in report.refused)}
        assert any(client is None for client, _, _ in report.refused)
        assert not {0, 1, 2, 4, 7} & set(report.late)
    # The vector itself goes to server 1 after both others have confirmed their parts.
    assert [report.dropped for report in first] == [[3], [], []]
    for report in second:
        assert report.accepted == list(range(8))
        assert report.late == report.dropped == []
        # The late client may have found this round open, and connections may have broken.
        assert {client for client, _, _ in report.refused} <= {5, None}
    assert all(torch.allclose(model, expected + updates[1].mean(0), atol=1e-5) for model in models)


class Commands:
    """``tacit federated serve`` for all three servers, in the folder of a configuration."""

    def __init__(self, config: Path, rounds: int, model: Path) -> None:
        words = [
            "federated",
            "serve",
            "--config",
            config,
            "--rounds",
            rounds,
            "--model",
            model,
            "--threads",
            1,
        ]
        self.all = [
            Command(*words, "--server", at, "--out", config.with_name(f"{at}.pt"))
            for at in range(3)
        ]

    def end(self, disturbed: int, how: Callable[[Command], None]) -> None:
        """Disturbs one server, and checks that the others end and name it."""
        how(self.all[disturbed])
        for at in {0, 1, 2} - {disturbed}:
            code, _, errors = self.all[at].ended(LONG)
            assert code == 1
            assert f"tacit: server {disturbed} failed in step" in errors
            assert "Traceback" not in errors
        self.all[disturbed].kill()


def hear_of_it(client: Client) -> None:
    """Waits for a result that will not come, and checks that the wait ends early."""
    started = time.monotonic()
    with pytest.raises((RefusedError, PeerError)):
        client.result(10 * LONG)
    assert time.monotonic() - started < LONG


def test_servers_begin_again_where_one_died_or_stalled(tmp_path: Path) -> None:
    """Servers restart with a new round number, the current model, and the account of what was
    spent."""
    noise = 'noise = "pairs"\nsigma = 0.001\ndivisor = 2.0\nminimum_clients = 2\n'
    config = written(tmp_path, 3, seconds=LONG, rules=noise)
    config.write_text(config.read_text().replace("timeout = 20", "timeout = 10"))
    torch.save(torch.zeros(4), tmp_path / "start.pt")
    clients = [Client(config, number) for number in range(3)]

    def all_of_them(number: int) -> torch.Tensor:
        with ThreadPoolExecutor(3) as pool:
            tasks = list(pool.map(lambda client: client.join(LONG), clients))
            assert [task.round for task in tasks] == [number] * 3
            list(pool.map(lambda at: clients[at].submit(tasks[at].model + 0.1 * number), range(3)))
            return next(pool.map(lambda client: client.result(LONG), clients))

    def two_of_them(number: int) -> None:
        for client in clients[:2]:
            assert client.join(LONG).round == number
            client.submit(torch.zeros(4))

    servers = Commands(config, 3, tmp_path / "start.pt")
    first = all_of_them(1)
    two_of_them(2)
    with ThreadPoolExecutor(2) as pool:
        heard = pool.map(hear_of_it, clients[:2])
        servers.end(2, Command.kill)
        list(heard)
    # The same command line restarts them.
    servers = Commands(config, 3, tmp_path / "start.pt")
    second = all_of_them(3)
    assert torch.allclose(second, first + 0.3 * 3 / 2, atol=0.02)
    two_of_them(4)
    with ThreadPoolExecutor(2) as pool:
        heard = pool.map(hear_of_it, clients[:2])
        servers.end(1, lambda server: os.kill(server.id, signal.SIGSTOP))
        list(heard)
    spent = epsilons(Mechanism.of(0.001), 2)
    code, output, _ = servers.all[0].ended()
    assert code == 1
    assert "round 3: 3 clients in" in output
    assert f"spent: ε {spent.to_server:.4g} against a server, {spent.to_others:.4g}" in output
    assert not list(tmp_path.glob("*.new"))


def test_who_waits_while_all_servers_start_again_hears_of_it_and_misses_no_round(
    tmp_path: Path,
) -> None:
    """No server could report the end of the round, and no one else has its result."""
    config = written(tmp_path, 2, seconds=LONG, rules="norm = 4.0")
    torch.save(torch.zeros(4), tmp_path / "start.pt")
    clients = [Client(config, number) for number in range(2)]
    servers = Commands(config, 1, tmp_path / "start.pt")
    task = clients[0].join(LONG)
    clients[0].submit(task.model + 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(clients[0].result, 10 * LONG)
        for server in servers.all:
            server.kill()
        servers = Commands(config, 1, tmp_path / "start.pt")
        # The error must come before the next round ends, or the client would miss that round.
        with pytest.raises(
            RefusedError, match=r"have started again since this round; .* join that one"
        ):
            waiting.result(LONG)
    for client in clients:
        task = client.join(LONG)
        assert task.round == 2
        client.submit(task.model + 1)
    for client in clients:
        assert torch.allclose(client.result(LONG), torch.ones(4), atol=1e-5)
    for server in servers.all:
        code, output, _ = server.ended()
        assert (code, "round 2: 2 clients in" in output) == (0, True)


def test_who_waits_for_servers_that_cannot_hears_why(tmp_path: Path) -> None:
    """A file that only servers need is missing at the servers only."""
    plan = Plan(2, Settings(aggregator="mine.py:combine"), torch.zeros(3), rounds=1, seconds=LONG)
    wrong = pytest.raises(MisuseError, match=r"^server [012]: .*mine\.py")
    with wrong, Servers(tmp_path, plan) as servers:
        Crowd(servers.config, 2, 10 * LONG, servers.check).join()
