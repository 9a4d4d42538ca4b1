"""Rounds from clients' vectors to the new model at clients, over real links."""

import json
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from worlds import LONG, Servers, beyond_the_bound, known_of, write_known, written

import tacit
from commands import Command
from commands import tacit as command
from ports import free_addresses
from tacit import _core, buffers, checksums, fixed
from tacit.commands.federated_serve import _line
from tacit.errors import (
    DesyncError,
    EncodingError,
    MisuseError,
    PeerError,
    RefusedError,
    SetupError,
)
from tacit.federated import Client
from tacit.federated.privacy.account import Epsilons, Mechanism, epsilons
from tacit.federated.privacy.joint import MOST_VALUES
from tacit.federated.service.config import Federation
from tacit.federated.service.part_store import Part, Parts
from tacit.federated.service.report import Report
from tacit.federated.service.round_store import Latest
from tacit.federated.service.server import Server
from tacit.providers import PROTOCOLS

#: Rules for each protocol that serves federations.
SERVING = [f'protocol = "{name}"\n' for name, each in PROTOCOLS.items() if each.serves_federations]


@pytest.mark.parametrize("protocol", SERVING)
def test_the_mean_of_three_clients_comes_back_to_them(protocol: str, tmp_path: Path) -> None:
    rules = protocol + "norm = 4.0\ngreatest_weight = 4.0\nminimum_clients = 3"
    config = written(tmp_path, 3, rules=rules)
    start = torch.arange(5.0)
    updates = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(1)) / 4
    weights = torch.tensor([1.0, 2.0, 4.0])

    def learn(number: int) -> list[torch.Tensor]:
        client = Client(config, number)
        models = []
        for at in range(2):
            task = client.join(LONG)
            assert task.norm == 4.0
            assert task.bound == "refuse"
            assert task.round == at + 1
            receipt = client.submit(task.model + updates[at, number], weight=float(weights[number]))
            assert receipt.round == task.round
            models += [task.model, client.result(LONG)]
        return models

    def two(
        server: tacit.federated.service.server.Server,
    ) -> list[Report]:
        first = server.round(start)
        return [first, server.round(first.model)]

    servers = Servers(config, two)
    with ThreadPoolExecutor(3) as pool:
        learned = list(pool.map(learn, range(3)))
    reports = servers.ended()
    means = [(weights @ update) / weights.sum() for update in updates]
    for first, after, same, last in learned:
        assert torch.equal(first, start)
        assert torch.equal(after, same)
        assert torch.allclose(after, start + means[0], atol=1e-5)
        assert torch.allclose(last, after + means[1], atol=1e-5)
        assert all(torch.equal(each[1].model, last) for each in reports)
    for each in reports:
        assert all(report.accepted == [0, 1, 2] and report.failure is None for report in each)
        assert all(report.refused == [] and report.dropped == [] for report in each)
    # A restarted server continues with these numbers.
    assert known_of(tmp_path, 0) == "2 0 0 2 2"


def test_who_breaks_the_rules_is_refused_by_reason_and_the_round_goes_on(tmp_path: Path) -> None:
    config = written(tmp_path, 4, seconds=6.0, rules="norm = 1.0")
    start = torch.zeros(3)
    servers = Servers(config, lambda server: server.round(start))
    clients = [Client(config, number) for number in range(3)]
    with pytest.raises(MisuseError, match="no round was joined"):
        clients[0].submit(start)
    tasks = [client.join(LONG) for client in clients]
    wrong: Any
    for wrong in (
        torch.tensor([0.0, torch.nan, 0.0]),
        {"a": torch.zeros(2), "b": torch.tensor([torch.inf])},
    ):
        with pytest.raises(EncodingError, match="which is no finite number"):
            clients[0].submit(wrong)
    with pytest.raises(MisuseError, match="a state of 4 values; the model of this round has 3"):
        clients[0].submit(torch.zeros(4))
    for wrong in (
        torch.zeros(3, dtype=torch.int64),
        [0.0] * 3,
        {"a": 1},
        torch.zeros(3).to_sparse(),
    ):
        with pytest.raises(MisuseError, match=r"floating-point numbers are|of type|to_dense"):
            clients[0].submit(wrong)
    for wrong in ("4", 1j, None, [1.0]):
        with pytest.raises(MisuseError, match="weight is of type"):
            clients[0].submit(torch.zeros(3), weight=wrong)
    clients[0].submit(tasks[0].model + 0.5)
    with pytest.raises(RefusedError, match="client 0 has submitted something else in round 1"):
        clients[0].submit(tasks[0].model + 0.5)
    clients[1].submit(tasks[1].model - 0.25)
    time.sleep(max(0.0, tasks[2].deadline + 0.2))
    with pytest.raises(
        RefusedError, match=r"the deadline of round 1 has passed|round 1 is not open"
    ):
        clients[2].submit(tasks[2].model)
    for client in clients[:2]:
        assert torch.allclose(client.result(LONG), torch.full((3,), 0.125), atol=1e-5)
    # The second server is not asked for what another server refused.
    for report, refused in zip(servers.ended(), (1, 0, 1), strict=True):
        assert report.accepted == [0, 1]
        assert len([reason for client, reason, _ in report.refused if client == 0]) == refused


@pytest.mark.parametrize("protocol", SERVING)
def test_servers_that_are_not_to_know_the_model_do_not(protocol: str, tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=protocol + 'norm = 4.0\nresult_to = "clients"')
    start = torch.arange(5.0)
    updates = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(2)) / 4

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number)
        for at in range(2):
            task = client.join(LONG)
            client.submit(task.model + updates[at, number])
            model = client.result(LONG)
        return model

    servers = Servers(config, lambda server: [server.round(start), server.round(start)])
    with ThreadPoolExecutor(3) as pool:
        learned = list(pool.map(learn, range(3)))
    expected = start + updates.mean(1).sum(0)
    for model in learned:
        assert torch.allclose(model, expected, atol=1e-4)
    for first, second in servers.ended():
        assert torch.equal(first.model, start)
        assert torch.equal(second.model, start)
        assert second.accepted == [0, 1, 2]


@pytest.mark.parametrize("protocol", SERVING)
def test_what_only_clients_know_outlasts_a_restart_of_the_servers(
    protocol: str, tmp_path: Path
) -> None:
    """Restarted servers with the initial model continue the training.

    Clients continue with their model. A client may also take it over from another client.
    """
    config = written(tmp_path, 2, rules=protocol + 'norm = 4.0\nresult_to = "clients"')
    start, updates = torch.arange(5.0), torch.tensor([0.25, 0.5])
    clients = [Client(config, number) for number in range(2)]

    def one_round() -> tuple[list[Report], list[torch.Tensor]]:
        servers = Servers(config, lambda server: server.round(start))

        def learn(number: int) -> torch.Tensor:
            task = clients[number].join(LONG)
            clients[number].submit(task.model + updates[number])
            return clients[number].result(LONG)

        with ThreadPoolExecutor(2) as pool:
            learned = list(pool.map(learn, range(2)))
        return servers.ended(), learned

    _, learned = one_round()
    assert torch.allclose(learned[0], start + 0.375, atol=1e-4)
    assert known_of(tmp_path, 0) == "1 1 0 1 1"
    # A client's program ends, and the next one knows only what it is given.
    clients[1] = Client(config, 1)
    clients[1].take_up(learned[0], 1)
    reports, learned = one_round()
    assert all(torch.allclose(model, start + 0.75, atol=1e-4) for model in learned)
    assert all(report.round == 2 and torch.equal(report.model, start) for report in reports)
    # The third server ended before it stored the result, so no client has it.
    write_known(tmp_path, 2, 2, 1)
    for client in clients:
        client.take_up(start + 0.375, 1)
    _, learned = one_round()
    assert all(torch.allclose(model, start + 0.75, atol=1e-4) for model in learned)
    # A server that lost its file would make all start anew.
    (tmp_path / "server-1.round").unlink()
    failed = Servers(config, lambda server: server.round(start)).failed()
    for error in failed:
        assert re.match(
            "server 1 (has|failed .* it has) not seen round 3, whose result clients have",
            str(error),
        )


class KilledError(RuntimeError):
    """What a killed server raises in these tests."""


#: When a server is killed: before it has written its part, before the servers confirm the round,
#: after that, and before it tells clients.
MOMENTS = ["writing", "confirming", "counting", "telling"]


def kill(server: Server, moment: str) -> None:
    """Has a server killed at this moment of its next round."""

    def killed(*_: Any, **__: Any) -> None:
        raise KilledError

    def killed_after(*given: Any) -> None:
        pend(*given)
        raise KilledError

    def counting(*given: Any, **named: Any) -> None:
        # The fourth is the number of rounds that have ended.
        if len(given) > 3:
            raise KilledError
        keep(*given, **named)

    assert server._parts is not None
    pend, keep = server._parts.pend, server._latest.keep
    found: dict[str, tuple[object, str, Any]] = {
        "writing": (server._parts, "pend", killed),
        "confirming": (server._parts, "pend", killed_after),
        "counting": (server._latest, "keep", counting),
        "telling": (server, "_intake", Mute(server._intake)),
    }
    where, name, by = found[moment]
    setattr(where, name, by)


class Mute:
    """The intake of a server that is killed when it has a result to tell."""

    def __init__(self, intake: Any) -> None:
        self._intake = intake

    def __getattr__(self, name: str) -> Any:
        return getattr(self._intake, name)

    def tell(self, *_: Any, **__: Any) -> None:
        raise KilledError


class Sealed:
    """Three clients in rounds whose result only clients may see."""

    start, updates = torch.arange(5.0), torch.tensor([0.25, 0.5, 0.75])

    def __init__(self, folder: Path, rest: str = "") -> None:
        rules = f'norm = 4.0\nresult_to = "clients"\n{rest}'
        self.config = written(folder, 3, rules=rules)
        # Servers wait that long for clients that have their parts already.
        self.config.write_text(self.config.read_text().replace("timeout = 20", "timeout = 5"))
        self.clients = [Client(self.config, number) for number in range(3)]
        self.pool = ThreadPoolExecutor(3)

    def submit(self, number: int) -> None:
        task = self.clients[number].join(LONG)
        self.clients[number].submit(task.model + self.updates[number])

    def submit_all(self) -> None:
        list(self.pool.map(self.submit, range(3)))

    def learn(self, number: int) -> torch.Tensor:
        self.submit(number)
        return self.clients[number].result(2 * LONG)

    def killed(self, server: int, moment: str) -> None:
        """Starts the servers, and waits until one of them was killed in a round."""

        def until_killed(own: Server) -> Report:
            own.agree_to_begin(9, [])
            if own.number == server:
                kill(own, moment)
            return own.round(self.start)

        Servers(self.config, until_killed).failed()

    def started(self, rounds: int = 1) -> Servers:
        """Starts the servers. ``rounds`` may be 0."""

        def work(server: Server) -> list[Report]:
            server.agree_to_begin(9, [])
            return [server.round(self.start) for _ in range(rounds)]

        return Servers(self.config, work)


@pytest.mark.parametrize("protocol", SERVING)
@pytest.mark.parametrize(("killed", "is_last"), [(0, True), (2, False)])
def test_a_result_that_no_server_knows_outlasts_servers_that_are_killed_before_they_tell(
    tmp_path: Path, killed: int, is_last: bool, protocol: str
) -> None:
    """Clients that still wait get the result when all servers are restarted, even twice."""
    world = Sealed(tmp_path, protocol)
    waiting = [world.pool.submit(world.learn, number) for number in range(3)]
    world.killed(killed, "telling")
    assert not any(each.done() for each in waiting)

    def again(server: Server) -> None:
        kill(server, "telling")
        server.agree_to_begin(9, [])

    Servers(world.config, again).failed()
    assert not any(each.done() for each in waiting)
    servers = world.started(0 if is_last else 1)
    for each in waiting:
        assert torch.allclose(each.result(LONG), world.start + 0.5, atol=1e-4)
    if not is_last:
        for model in world.pool.map(world.learn, range(3)):
            assert torch.allclose(model, world.start + 1.0, atol=1e-4)
    servers.ended()
    assert not list(tmp_path.glob("*.part*"))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_result_outlasts_a_server_that_is_killed_in_the_next_round(
    tmp_path: Path, moment: str
) -> None:
    """Who waits for the first round gets its result, even after the second was interrupted.

    Clients of the second round hear that it was interrupted, or get its result if it ended.
    """
    world = Sealed(tmp_path)

    def until_killed(server: Server) -> None:
        server.agree_to_begin(9, [])
        server.round(world.start)
        if server.number == 1:
            kill(server, moment)
        server.round(world.start)

    servers = Servers(world.config, until_killed)
    world.submit_all()
    for client in world.clients[:2]:
        assert torch.allclose(client.result(LONG), world.start + 0.5, atol=1e-4)
    # Another program of the third client is in the second round, with the model of another client.
    waiting, world.clients[2] = world.clients[2], Client(world.config, 2)
    world.clients[2].take_up(world.start + 0.5, 1)
    second = [world.pool.submit(world.learn, number) for number in range(3)]
    servers.failed()
    servers = world.started()
    if moment == "telling":
        learned = [each.result(LONG) for each in second]
        with pytest.raises(RefusedError, match="no longer kept"):
            waiting.result(LONG)
        expected = world.start + 1.0
    else:
        for each in second:
            with pytest.raises(
                RefusedError, match=r"servers have started again|raised KilledError"
            ):
                each.result(LONG)
        learned = [waiting.result(LONG)]
        expected = world.start + 0.5
    for model in learned:
        assert torch.allclose(model, expected, atol=1e-4)
    for model in world.pool.map(world.learn, range(3)):
        assert torch.allclose(model, expected + 0.5, atol=1e-4)
    servers.ended()


@pytest.mark.parametrize("lost", ["one", "another run's"])
def test_a_part_that_is_lost_is_named_and_no_other_is_told(
    tmp_path: Path, lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = Sealed(tmp_path)
    waiting = [world.pool.submit(world.learn, number) for number in range(3)]
    world.killed(0, "telling")
    path = tmp_path / "server-1.part.next"
    if lost == "one":
        path.unlink()
        told = "the result of round 1 do not get it: server 1 does not have its part any more"
    else:
        parts = Parts(tmp_path / "server-1.part", 1)
        assert parts.pending is not None
        parts.pend(parts.pending._replace(tag="0" * 64))
        told = "the servers' parts are of different rounds of that number"
    servers = world.started()
    for each in waiting:
        with pytest.raises(RefusedError, match=r"has lost its part .*take_up\(model, 1\)"):
            each.result(LONG)
    assert told in caplog.text
    # No client has the result, so they do as the error says.
    for client in world.clients:
        client.take_up(world.start, 1)
    for model in world.pool.map(world.learn, range(3)):
        assert torch.allclose(model, world.start + 0.5, atol=1e-4)
    servers.ended()


def test_a_result_with_noise_is_told_again_and_the_budget_spent_once(tmp_path: Path) -> None:
    noise = 'noise = "pairs"\nsigma = 2.0\ndivisor = 3.0\n[privacy]\nbudget = 1e9'
    world = Sealed(tmp_path, noise)
    waiting = [world.pool.submit(world.learn, number) for number in range(3)]
    world.killed(1, "telling")
    servers = world.started(0)
    learned = [each.result(LONG) for each in waiting]
    assert torch.equal(learned[0], learned[1])
    assert torch.equal(learned[0], learned[2])
    assert not torch.allclose(learned[0], world.start, atol=1e-4)
    servers.ended()
    assert known_of(tmp_path, 0) == "1 1 1 1 1"


def test_a_disk_without_room_for_a_part_is_found_before_clients_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that ask a little later still get the result of the round before."""
    world = Sealed(tmp_path)
    submitting = [world.pool.submit(world.submit, number) for number in range(3)]
    world.killed(0, "telling")
    assert all(each.result() is None for each in submitting)

    def later(client: Client) -> torch.Tensor:
        time.sleep(3.0)
        return client.result(10.0)

    usage = shutil.disk_usage
    monkeypatch.setattr(
        "tacit.atomic_write.shutil.disk_usage", lambda path: usage(path)._replace(free=47)
    )
    asking = [world.pool.submit(later, client) for client in world.clients]
    failed = world.started().failed()
    for each in asking:
        assert torch.allclose(each.result(), world.start + 0.5, atol=1e-4)
    assert all(
        re.search(r"cannot write the result of the next round to .*server-.\.part", str(error))
        for error in failed
    )


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty"])
def test_a_damaged_part_is_refused_and_can_be_removed(tmp_path: Path, damage: str) -> None:
    config = written(tmp_path, 2, rules='result_to = "clients"')
    path = tmp_path / "server-0.part"
    part = Part(3, "a tag", [0, 1], {1: "late"}, np.arange(64, dtype=np.uint8))
    parts = Parts(path, 0)
    parts.pend(part)
    parts.begin(3)
    assert path.stat().st_mode & 0o077 == 0
    kept = Parts(path, 0).of(3)
    assert kept is not None
    assert kept[:4] == part[:4]
    assert np.array_equal(kept.content, part.content)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes({"flipped": content, "cut": content[:-9], "empty": b""}[damage])
    with (
        pytest.raises(SetupError, match=r"server-0\.part is not taken .* or remove it: then"),
        Server.open(config, 0),
    ):
        pass
    path.unlink()
    assert Parts(path, 0).of(3) is None


def test_another_server_s_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server-0.part"
    parts = Parts(path, 2)
    parts.pend(Part(3, "a tag", [0], {}, np.arange(8, dtype=np.uint8)))
    parts.begin(3)
    assert Parts(path, 2).of(3) is not None
    with pytest.raises(SetupError, match=r"server-0\.part is not taken .*: it is that of server 2"):
        Parts(path, 0)


def test_only_the_part_of_the_clients_model_stays(tmp_path: Path) -> None:
    path = tmp_path / "server-0.part"
    parts = Parts(path, 0)

    def pend(number: int) -> None:
        parts.pend(Part(number, "a tag", [0], {}, np.arange(8, dtype=np.uint8)))

    def kept() -> list[int]:
        again = Parts(path, 0)
        return [number for number in range(9) if again.of(number) is not None]

    pend(1)
    assert kept() == [1]
    parts.begin(1)
    pend(2)
    assert kept() == [1, 2]
    # Not all servers had counted round 2.
    parts.begin(1)
    assert kept() == [1]
    pend(3)
    parts.begin(3)
    assert kept() == [3]
    # A process was killed while it wrote.
    unfinished = tmp_path / "server-0.part.next.new"
    unfinished.write_bytes(b"half")
    # A model without a part, as after a restored file.
    parts.begin(0)
    assert kept() == []
    assert not list(tmp_path.iterdir())
    pend(4)
    parts.remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "3 4", "1 1 1 1 1 1", "1 0 0 0 1", "1 0 1000001", "1.0", "²", "9" * 19]
)
def test_what_is_no_latest_round(tmp_path: Path, text: str) -> None:
    whole = checksums.filled(f"{text}\n{checksums.field('round')}\n".encode(), "round")
    (tmp_path / "file").write_bytes(whole)
    with pytest.raises(SetupError, match="holds no number of a round; put it back"):
        Latest(tmp_path / "file")
    with pytest.raises(PeerError, match="server 1 announced what is no number of a round"):
        Latest(tmp_path / "none").agreed([b"0", text.encode(), b"0"])


def test_a_client_holds_servers_to_its_own_configuration(tmp_path: Path) -> None:
    config = written(tmp_path, 2, seconds=3.0, rules="norm = 1.0")
    servers = Servers(config, lambda server: server.round(torch.zeros(3)))
    other = tmp_path / "other.toml"
    other.write_text(config.read_text().replace("norm = 1.0", "norm = 2.0"))
    with pytest.raises(
        PeerError, match=r"rounds have norm = 1\.0, this client's configuration 2\.0"
    ):
        Client(other, 0).join(LONG)
    other.write_text(config.read_text().replace('name = "test"', 'name = "another"'))
    with pytest.raises(RefusedError, match="this server is of another federation"):
        Client(other, 0).join(LONG)
    assert all(report.failure is not None for report in servers.ended())


def test_where_only_the_sum_counts_it_is_the_same(tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules='norm = 4.0\nbound = "none"')
    updates = torch.randn(3, 50, generator=torch.Generator().manual_seed(3))

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number)
        client.submit(client.join(LONG).model + updates[number])
        return client.result(LONG)

    servers = Servers(config, lambda server: server.round(torch.zeros(50)))
    with ThreadPoolExecutor(3) as pool:
        learned = list(pool.map(learn, range(3)))
    assert all(torch.allclose(model, updates.mean(0), atol=1e-5) for model in learned)
    assert all(report.accepted == [0, 1, 2] for report in servers.ended())


def test_who_reaches_two_servers_only_does_not_count(tmp_path: Path) -> None:
    alone = "minimum_clients = 1\nreveals_single = true"
    config = written(tmp_path, 2, seconds=4.0, rules=alone)
    servers = Servers(config, lambda server: server.round(torch.zeros(3)))
    whole, half = Client(config, 0), Client(config, 1)
    whole.submit(whole.join(LONG).model + 0.5)
    half.join(LONG)
    # From here on the client cannot reach the third server.
    elsewhere = tmp_path / "elsewhere.toml"
    closed = free_addresses(1)[0]
    elsewhere.write_text(
        config.read_text().replace(Federation.read(config).servers[2].clients, closed)
    )
    lost = Client(elsewhere, 1)
    lost._task = half._task
    with pytest.raises(
        PeerError,
        match=r'server 2 failed in step "submit": it cannot be reached at 127\.0\.0\.1',
    ):
        lost.submit(torch.ones(3))
    assert torch.allclose(whole.result(LONG), torch.full((3,), 0.5), atol=1e-5)
    reports = servers.ended()
    assert [report.accepted for report in reports] == [[0], [0], [0]]
    # The second server stores vectors, and accepts none before the others have their parts.
    assert [report.dropped for report in reports] == [[1], [], []]


def test_noise_of_pairs_is_the_same_at_all_and_known_to_none() -> None:
    count, deviation = 20_000, 3.0

    def program() -> tuple[torch.Tensor, torch.Tensor]:
        session = tacit.session()
        x = tacit.share(torch.zeros(count), owner=0)
        before = session.core.totals()["payload_bytes"]
        parts = tuple(part.clone() for part in x._parts)
        variance = round((deviation * 2.0**x._scale.bits) ** 2)
        session.core.add_noise([buffers.array(part) for part in parts], variance)
        assert session.core.totals()["payload_bytes"] == before
        noisy = x.like(parts)
        known = sum(part for part in (noisy - x)._parts)
        return noisy.reveal(), fixed.decode(known, x._scale, torch.float32)

    found = tacit.launch(program)
    revealed = found[0][0]
    assert all(torch.equal(each[0], revealed) for each in found)
    assert abs(float(revealed.std()) / (deviation * 3**0.5) - 1) < 0.03
    # Each party lacks one of three parts.
    for _, known in found:
        assert abs(float((revealed - known).std()) / deviation - 1) < 0.03


def test_too_few_clients_come_to_nothing(tmp_path: Path) -> None:
    config = written(tmp_path, 2, seconds=3.0, rules="minimum_clients = 2")
    servers = Servers(config, lambda server: server.round(torch.zeros(3)))
    client = Client(config, 1)
    task = client.join(LONG)
    client.submit(task.model + 0.1)
    with pytest.raises(
        RefusedError, match="the vectors of 1 client are whole at all servers, and 2 are needed"
    ):
        client.result(LONG)
    for report in servers.ended():
        assert report.accepted == []
        assert torch.equal(report.model, torch.zeros(3))


def nothing_and_then_something(
    config: Path, spoil: Callable[[Client], None], match: str, atol: float = 2e-3
) -> list[list[Report]]:
    """Runs two rounds of three clients, of which client 1 spoils the first. Returns the servers'
    reports."""
    start = torch.zeros(4)

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number)
        task = client.join(LONG)
        if number == 1:
            spoil(client)
        else:
            client.submit(task.model + 0.5)
        with pytest.raises(RefusedError, match=match):
            client.result(LONG)
        client.submit(client.join(LONG).model + 0.25)
        return client.result(LONG)

    servers = Servers(config, lambda server: [server.round(start), server.round(start)])
    with ThreadPoolExecutor(3) as pool:
        learned = list(pool.map(learn, range(3)))
    assert all(torch.allclose(model, torch.full((4,), 0.25), atol=atol) for model in learned)
    return servers.ended()


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("minimum_clients = 3", "the vectors of 2 clients count, and a round needs 3"),
        (
            'aggregator = "fltrust"\nroot = 1\nminimum_clients = 2',
            "the vector of 1, who is trusted, does not count in this round",
        ),
    ],
)
def test_who_is_refused_spoils_one_round_and_not_the_next(
    tmp_path: Path, rules: str, reason: str
) -> None:
    config = written(tmp_path, 3, rules=f"norm = 1.0\n{rules}")
    for first, second in nothing_and_then_something(config, beyond_the_bound, reason):
        assert first.failure == reason
        assert first.accepted == []
        assert (1, "norm", 1) in first.refused
        assert torch.equal(first.model, torch.zeros(4))
        assert second.failure is None
        assert second.accepted == ([0, 1, 2] if "root" not in rules else [0, 2])


@pytest.mark.parametrize("how", ["pairs", "joint"])
def test_rounds_with_noise_tell_clients_no_counts_and_servers_what_is_spent(
    how: str, tmp_path: Path
) -> None:
    # With less joint noise, the error of its samples would use up δ, and ε would be infinite.
    sigma = 0.5 if how == "joint" else 0.0005
    noise = f'noise = "{how}"\nsigma = {sigma}\ndivisor = 3.0\n[privacy]\nbudget = 1e9'
    config = written(tmp_path, 3, rules=f"norm = 1.0\nminimum_clients = 3\n{noise}")
    # The text that only the refused client receives follows.
    match = "too few clients count in this round($|[;:.,]? *what this client handed in was refused)"
    found = nothing_and_then_something(config, beyond_the_bound, match, atol=max(2e-3, 4 * sigma))
    for first, second in found:
        assert first.failure == "the vectors of 2 clients count, and a round needs 3"
        assert first.epsilons == Epsilons(0.0, 0.0)
        assert second.epsilons is not None
        assert 0 < second.epsilons.to_others <= second.epsilons.to_server
        # No server knows any part of joint noise.
        assert (second.epsilons.to_others == second.epsilons.to_server) is (how == "joint")
        spent = f"spent: ε {second.epsilons.to_server:.4g} against a server, {second.epsilons.to_others:.4g}"
        assert spent in _line(second)


def test_joint_noise_is_for_no_larger_model(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules='noise = "joint"\nsigma = 1.0\ndivisor = 2.0')
    failed = Servers(config, lambda server: server.round(torch.zeros(MOST_VALUES + 1))).failed()
    assert any(
        "at most 1,000,000 values, and the model has 1,000,001" in str(error) for error in failed
    )
    assert not (tmp_path / "server-0.round").exists()


def test_servers_refuse_the_round_that_would_overspend(tmp_path: Path) -> None:
    """All three servers refuse before any client is asked, also after a restart."""
    budget = 1.2 * epsilons(Mechanism.of(2.0), 1).to_server
    noise = f'noise = "pairs"\nsigma = 2.0\ndivisor = 2.0\n[privacy]\nbudget = {budget}'
    config = written(tmp_path, 2, rules=noise)
    start = torch.zeros(3)
    servers = Servers(config, lambda server: [server.round(start), server.round(start)])
    for number in range(2):
        client = Client(config, number)
        client.submit(client.join(LONG).model)
    # The servers restart with their accounts at other ports.
    (again := tmp_path / "again").mkdir()
    restarted = written(again, 2, rules=noise)
    first = servers.failed()
    for number in range(3):
        shutil.copy(tmp_path / f"server-{number}.account", again)
    for failed in (first, Servers(restarted, lambda server: server.round(start)).failed()):
        assert any("round 2 would spend ε = " in str(error) for error in failed)
        for error in failed:
            # A server may learn of another's refusal before it refuses itself.
            assert isinstance(error, MisuseError) or "its program raised MisuseError" in str(error)
    assert known_of(tmp_path, 0) == "1 0 1 1"
    assert not (again / "server-0.round").exists()
    for number in range(3):
        assert json.loads((again / f"server-{number}.account").read_text())["rounds"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [("seconds = 60.0", "seconds = 50.0"), ("client-{number}", "{number}/client")],
)
def test_servers_of_unlike_configurations_do_not_begin(
    tmp_path: Path, before: str, after: str
) -> None:
    config = written(tmp_path, 2)
    config.write_text(
        config.read_text().replace("count = 2", 'count = 2\ncertificate = "client-{number}.pem"')
    )
    other = tmp_path / "other.toml"
    other.write_text(config.read_text().replace(before, after))
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        swapped = (tmp_path / f"client-{1 - number}.pem").read_text()
        (tmp_path / str(number) / "client.pem").write_text(swapped)
    failed = Servers(config, lambda server: server.round(torch.zeros(3)), last=other).failed()
    assert all(isinstance(error, PeerError) for error in failed)
    assert not (tmp_path / "server-0.round").exists()


class AnotherList:
    """An intake, or its contents, of a server that takes another client for one whose vector is
    incomplete."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def end(self) -> "AnotherList":
        return AnotherList(self._inner.end())

    def agree(self, core: _core.Session) -> list[int]:
        return self._inner.agree(core)[:-1]


def test_servers_of_unlike_lists_of_clients_stop(tmp_path: Path) -> None:
    """The servers compute only a sum, whose size does not depend on the number of clients. No
    client receives it."""
    config = written(tmp_path, 3, rules='bound = "none"')
    config.write_text(config.read_text().replace("timeout = 20", "timeout = 4"))

    def work(server: tacit.federated.service.server.Server) -> Report:
        if server.number == 2:
            server._intake = cast(_core.Intake, AnotherList(server._intake))
        return server.round(torch.zeros(3))

    nobody_is_told(Servers(config, work), [Client(config, number) for number in range(3)])


def nobody_is_told(servers: Servers, clients: list[Client]) -> None:
    """Checks that each of three servers, one of which differs, fails, and that each client receives
    an error."""

    def refused(client: Client) -> str:
        client.submit(client.join(LONG).model)
        with pytest.raises((RefusedError, PeerError)) as caught:
            client.result(LONG)
        return str(caught.value)

    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(refused, clients))
    failed = servers.failed()
    assert all(isinstance(error, PeerError | DesyncError) for error in failed), failed
    assert any(isinstance(error, DesyncError) for error in failed)
    for text in told + [str(error) for error in failed]:
        assert "server" in text
        assert not re.search(r"part(y|ies)\b", text)


def test_servers_that_differ_in_the_last_step_tell_clients_nothing(tmp_path: Path) -> None:
    """One server takes an additional step after all messages from others, so these cannot notice it
    in this round."""
    config = written(tmp_path, 3, rules='bound = "none"')
    config.write_text(config.read_text().replace("timeout = 20", "timeout = 4"))

    def work(server: tacit.federated.service.server.Server) -> Report:
        combined = server._combined

        def further(*given: Any) -> tuple[Any, str | None]:
            outcome = combined(*given)
            server._session.core.note(b"something that the others do not do")
            return outcome

        if server.number == 1:
            server._combined = further  # type: ignore[method-assign]
        return server.round(torch.zeros(3))

    nobody_is_told(Servers(config, work), [Client(config, number) for number in range(3)])


def test_a_server_may_not_be_far_ahead(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    write_known(tmp_path, 1, 2**21)
    failed = Servers(config, lambda server: server.round(torch.zeros(3))).failed()
    assert any("server 1 announced what is no number of a round" in str(error) for error in failed)


def test_servers_and_clients_as_processes(tmp_path: Path) -> None:
    config = written(tmp_path, 3, seconds=20.0)
    model = torch.nn.Linear(4, 2)
    torch.save(model.state_dict(), tmp_path / "start.pt")
    # The model is in the configuration's folder.
    serve = ["federated", "serve", "--config", config, "--threads", 1]
    servers = [
        Command(*serve, "--server", at, "--out", tmp_path / f"{at}.pt", "--rounds", 1)
        for at in range(3)
    ]

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number)
        task = client.join(LONG)
        trained = torch.nn.Linear(4, 2)
        torch.nn.utils.vector_to_parameters(task.model + 0.1 * number, trained.parameters())
        client.submit(trained)
        return client.result(LONG)

    with ThreadPoolExecutor(3) as pool:
        learned = list(pool.map(learn, range(3)))
    for at, server in enumerate(servers):
        code, output, errors = server.ended()
        assert code == 0, errors
        assert output.startswith("round 1: 3 clients in ")
        # The model has its original form, so that servers that start from it report the same names.
        after = torch.nn.Linear(4, 2)
        after.load_state_dict(torch.load(tmp_path / f"{at}.pt"))
        assert torch.equal(torch.nn.utils.parameters_to_vector(after.parameters()), learned[at])
    expected = torch.nn.utils.parameters_to_vector(model.parameters()) + 0.1
    assert torch.allclose(learned[0], expected, atol=1e-5)


def test_where_servers_find_the_model_to_begin_from(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rest='model = "parameters.pt"', rules='result_to = "clients"')
    serve = ["federated", "serve", "--config", config, "--server", 0]
    assert Federation.read(config).model == tmp_path / "parameters.pt"
    for words, message in (
        ((), f"cannot read {tmp_path / 'parameters.pt'}: there is no such file or folder"),
        (
            ("--model", tmp_path / "other.pt"),
            f"cannot read {tmp_path / 'other.pt'}: there is no such file",
        ),
        (("--out", tmp_path / "out.pt"), "no server learns the model that --out would write"),
    ):
        refused = command(*serve, *words)
        assert refused.returncode == 1
        assert message in " ".join(refused.stderr.split())
    config.write_text(config.read_text().replace('model = "parameters.pt"', ""))
    refused = command(*serve)
    assert refused.returncode == 1
    assert "no model to begin from: give --model FILE, or model =" in " ".join(
        refused.stderr.split()
    )
    assert not (tmp_path / "out.pt").exists()
    torch.save(torch.zeros(2), tmp_path / "start.pt")
    assert Federation.read(config).model == tmp_path / "start.pt"


def test_certificates_are_made_by_a_command(tmp_path: Path) -> None:
    made = command("federated", "certificates", "--servers", 3, "--clients", 2, "--out", tmp_path)
    assert made.returncode == 0
    assert len(list(tmp_path.iterdir())) == 10
    assert (tmp_path / "client-1.key").stat().st_mode & 0o777 == 0o600
    for wrong, message in (
        (["--servers", 2], "a federation has 3 servers, not 2"),
        (["--server", 3], "the servers are 0 to 2, not 3"),
        (
            ["--server", 1, "--servers", 3],
            "--server is for this one alone, --servers for all: give one",
        ),
        (
            ["--client", 1, "--clients", 3],
            "--client is for this one alone, --clients for all: give one",
        ),
        ([], "say for whom"),
    ):
        refused = command("federated", "certificates", *wrong, "--out", tmp_path)
        assert refused.returncode == 1
        assert message in refused.stderr


def test_servers_that_are_not_there_are_named(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    with pytest.raises(PeerError, match=r"it cannot be reached at 127\.0\.0\.1"):
        Client(config, 0).join(0.5)
