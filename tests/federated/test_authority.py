"""Clients that an authority admits: they join and leave between rounds, without a new file at the
servers, and join again by themselves after a break."""

import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from worlds import LONG, Servers, written

from commands import Command, tacit
from tacit.errors import CheatingError, MisuseError, PeerError, RefusedError, SetupError
from tacit.federated import Client, Measured, Task, Trained
from tacit.federated.service.config import Federation
from tacit.federated.service.examining import examine
from tacit.federated.service.rejoining import RETRY, rounds_of

#: Room for clients; far fewer are ever there.
MOST = 40

#: Seconds in which servers that are processes begin, also on a busy machine.
BEGUN = 4 * LONG


def admitted(folder: Path, client: int, authority: str = "authority.pem", days: int = 1) -> None:
    """Lets a client make its key, and the authority its certificate, as from a shell."""
    asked = tacit("federated", "request", "--client", client, "--out", folder)
    assert asked.returncode == 0, asked.stderr
    made = tacit(
        *("federated", "admit", "--authority", folder / authority, "--client", client),
        *("--request", folder / f"client-{client}.request", "--days", days, "--out", folder),
    )
    assert made.returncode == 0, made.stderr
    # A second certificate for the same client, as after a lost key, needs no other number.
    (folder / f"client-{client}.request").unlink()


def revoked(folder: Path, *certificates: Path) -> None:
    made = tacit(
        *("federated", "revoke", "--authority", folder / "authority.pem"),
        *("--list", folder / "revoked.pem", "--certificate", *certificates),
    )
    assert made.returncode == 0, made.stderr


def federation(folder: Path, rules: str, *, seconds: float = LONG) -> Path:
    """Writes the files of a federation whose clients an authority admits. It has none yet."""
    config = written(folder, 0, seconds=seconds, rules=rules)
    assert tacit("federated", "authority", "--out", folder).returncode == 0
    revoked(folder)
    entries = f'count = {MOST}\nauthority = "authority.pem"\nrevoked = "revoked.pem"\n'
    config.write_text(config.read_text().replace("count = 0\n", entries))
    return config


def learned(config: Path, numbers: list[int]) -> list[torch.Tensor]:
    """Lets clients take part in one round, each with its number as its update."""

    def one(number: int) -> torch.Tensor:
        client = Client(config, number)
        task = client.join(BEGUN)
        client.submit(task.model + number)
        return client.result(LONG)

    with ThreadPoolExecutor(len(numbers)) as pool:
        return list(pool.map(one, numbers))


def test_clients_join_and_leave_between_rounds_of_running_servers(tmp_path: Path) -> None:
    """Nothing at the servers changes but the list of revoked certificates."""
    config = federation(tmp_path, 'bound = "none"\nenough = 2\n')
    torch.save(torch.zeros(4), tmp_path / "start.pt")
    served = [
        Command(
            *("federated", "serve", "--config", config, "--server", at, "--rounds", 3),
            *("--out", tmp_path / f"model-{at}.pt", "--threads", 1),
        )
        for at in range(3)
    ]
    try:
        for client in (0, 1):
            admitted(tmp_path, client)
        for model in learned(config, [0, 1]):
            assert torch.allclose(model, torch.full((4,), 0.5), atol=1e-5)
        # The next one is admitted while servers run, and another one is revoked.
        admitted(tmp_path, 31)
        waits = Client(config, 1)
        task = waits.join(LONG)
        revoked(tmp_path, tmp_path / "client-1.pem")
        waits.submit(task.model + 1)
        joins = Client(config, 31)
        joins.submit(joins.join(LONG).model + 31)
        expected = torch.full((4,), 0.5 + 16)
        for client in (waits, joins):
            assert torch.allclose(client.result(LONG), expected, atol=1e-4)
        # The round that began after that is without it, though its connections are still open.
        for client in (waits, Client(config, 1)):
            with pytest.raises(RefusedError, match="the certificate of client 1 is revoked; get"):
                client.join(LONG)
        admitted(tmp_path, 2)
        for model in learned(config, [2, 31]):
            assert torch.allclose(model, expected + 16.5, atol=1e-4)
        for command in served:
            code, output, errors = command.ended()
            assert code == 0, errors
            assert output.count("2 clients in ") == 3
            assert "refused client 1: the certificate of client 1 is revoked" in output
    finally:
        for command in served:
            command.kill()


def test_a_lost_key_is_replaced_under_the_same_number(tmp_path: Path) -> None:
    config = federation(tmp_path, "enough = 2\nnorm = 4.0\n")
    for client in (0, 1):
        admitted(tmp_path, client)
    servers = Servers(config, lambda server: [server.round(torch.zeros(4)) for _ in range(2)])
    learned(config, [0, 1])
    (tmp_path / "client-1.pem").rename(tmp_path / "lost.pem")
    (tmp_path / "client-1.key").unlink()
    admitted(tmp_path, 1)
    for model in learned(config, [0, 1]):
        assert torch.allclose(model, torch.full((4,), 0.5), atol=1e-5)
    for reports in servers.ended():
        assert [report.accepted for report in reports] == [[0, 1], [0, 1]]


def test_servers_refuse_by_name_whom_the_authority_did_not_admit(tmp_path: Path) -> None:
    """A client that brings an authority of its own gets no further than the handshake."""
    config = federation(tmp_path, "enough = 2\n", seconds=15.0)
    for client in (0, 1):
        admitted(tmp_path, client)
    other = tmp_path / "other"
    shutil.copytree(tmp_path, other)
    for file in ("authority.pem", "authority.key", "client-0.pem", "client-0.key"):
        (other / file).unlink()
    assert tacit("federated", "authority", "--out", other).returncode == 0
    admitted(other, 0)
    beyond = tmp_path / "beyond"
    shutil.copytree(tmp_path, beyond)
    (beyond / "federation.toml").write_text(config.read_text().replace(f"= {MOST}\n", "= 90\n"))
    admitted(beyond, 77)
    servers = Servers(config, lambda server: server.round(torch.zeros(4)))
    with pytest.raises(PeerError, match="it refused this client's certificate"):
        Client(other / "federation.toml", 0).join(5.0)
    with pytest.raises(PeerError, match="it refused this client's certificate"):
        Client(beyond / "federation.toml", 77).join(5.0)
    learned(config, [0, 1])
    for report in servers.ended():
        assert report.accepted == [0, 1]
        reasons = {(client, reason) for client, reason, _ in report.refused}
        assert reasons == {
            (
                None,
                "the certificate is not signed by the clients' authority, or is not a client's; "
                "get one by `tacit federated admit` from the clients' authority",
            ),
            (
                None,
                f"the certificate names client 77, and there are clients 0 to {MOST - 1}; get one "
                "of a free number, or begin a federation of more clients",
            ),
        }


def test_servers_with_different_authorities_do_not_begin(tmp_path: Path) -> None:
    config = federation(tmp_path, "enough = 2\n")
    other = tmp_path / "other"
    shutil.copytree(tmp_path, other)
    for file in ("authority.pem", "authority.key", "revoked.pem"):
        (other / file).unlink()
    assert tacit("federated", "authority", "--out", other).returncode == 0
    revoked(other)
    servers = Servers(
        config, lambda server: server.round(torch.zeros(4)), last=other / "federation.toml"
    )
    for error in servers.failed():
        assert isinstance(error, PeerError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "authority.pem").unlink(), "the certificate of the clients' aut"),
        (
            lambda folder: shutil.copy(folder / "server-0.pem", folder / "authority.pem"),
            "the certificate of the clients' authority is not one of an authority; make one by",
        ),
        (
            lambda folder: shutil.copy(folder / "client-1.pem", folder / "client-0.pem"),
            "client-0.pem: the certificate of client 0 is one of client 1; give each its own",
        ),
        (
            lambda folder: shutil.copy(folder / "server-0.pem", folder / "client-0.pem"),
            "client-0.pem: the certificate is not signed by the clients' authority",
        ),
        (
            lambda folder: (folder / "client-0.pem").write_bytes(b"\xff\xfe"),
            "client-0.pem, the certificate of client 0: it is no text",
        ),
        (
            lambda folder: (folder / "client-0.pem").write_text(""),
            "the certificate of client 0 is not a certificate in PEM",
        ),
    ],
)
def test_a_client_finds_what_is_wrong_with_its_files(
    change: Any, message: str, tmp_path: Path
) -> None:
    config = federation(tmp_path, "enough = 2\n")
    for client in (0, 1):
        admitted(tmp_path, client)
    assert all(found.ok for found in examine(str(config), None, 0, 0.1))
    assert all(found.ok for found in examine(str(config), 0, None, 0.1))
    change(tmp_path)
    with pytest.raises(SetupError, match=re.escape(message)):
        Client(config, 0)
    wrong = [found for found in examine(str(config), None, 0, 0.1) if not found.ok]
    assert any(message.partition(";")[0] in f"{each.detail}; {each.remedy}" for each in wrong)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "revoked.pem, the list of revoked certificates: there is no such file"),
        ("no list", "revoked.pem: the list of revoked certificates is not one in PEM; get the cur"),
        ("another", "revoked.pem: the list of revoked certificates is of another authority; get"),
    ],
)
def test_a_server_does_not_begin_with_a_wrong_list(
    content: str | None, message: str, tmp_path: Path
) -> None:
    config = federation(tmp_path, "enough = 2\n")
    path = tmp_path / "revoked.pem"
    path.unlink()
    if content == "another":
        other = tmp_path / "other"
        assert tacit("federated", "authority", "--out", other).returncode == 0
        revoked(other)
        shutil.copy(other / "revoked.pem", path)
    elif content is not None:
        path.write_text(content)
    for error in Servers(config, lambda server: server.round(torch.zeros(4))).failed():
        assert isinstance(error, SetupError)
        assert message in str(error).replace("No such file or directory", "there is no such file")
    wrong = [found for found in examine(str(config), 0, None, 0.1) if not found.ok]
    assert [each.check for each in wrong] == ["revoked certificates"]


@pytest.mark.parametrize(
    ("entries", "rules", "message"),
    [
        ('revoked = "revoked.pem"\n', "", "revoked without authority, whose certificates it lists"),
        (
            'authority = "authority.pem"\n',
            "enough = 0.5\n",
            "enough = 0.5, a share, with an authority, whose clients join and leave: it is a count",
        ),
    ],
)
def test_entries_that_do_not_go_together(
    entries: str, rules: str, message: str, tmp_path: Path
) -> None:
    config = written(tmp_path, 4, rules=rules)
    config.write_text(config.read_text().replace("count = 4\n", f"count = 4\n{entries}"))
    with pytest.raises(SetupError, match=re.escape(message)):
        Federation.read(config)


def test_a_client_takes_part_through_restarts_of_the_servers(tmp_path: Path) -> None:
    """The servers are killed in the middle of the second round, and started again."""
    config = federation(tmp_path, 'bound = "none"\nenough = 2\n')
    torch.save(torch.zeros(4), tmp_path / "start.pt")
    for client in (0, 1):
        admitted(tmp_path, client)

    def serving() -> list[Command]:
        return [
            Command(
                *("federated", "serve", "--config", config, "--server", at, "--rounds", 3),
                *("--out", tmp_path / f"model-{at}.pt", "--threads", 1),
            )
            for at in range(3)
        ]

    killed, joined = threading.Event(), threading.Event()
    served = serving()

    def train(task: Task) -> Trained:
        if not killed.is_set() and task.model[0] > 0:
            # The second round: its client is still training when the servers die.
            joined.set()
            assert killed.wait(BEGUN)
        return Trained(task.model + 1.0)

    try:
        with ThreadPoolExecutor(2) as pool:
            found = [
                pool.submit(Client(config, number).take_part, train, 3, BEGUN) for number in (0, 1)
            ]
            assert joined.wait(BEGUN)
            for command in served:
                command.kill()
            killed.set()
            served = serving()
            models = [each.result(BEGUN) for each in found]
        for model in models:
            assert torch.allclose(model, torch.full((4,), 3.0), atol=1e-4)
        assert [command.ended()[0] for command in served] == [0, 0, 0]
    finally:
        for command in served:
            command.kill()


class Broken:
    """A client whose rounds break as it is told: every error is of ``submit``, or else of
    ``join``."""

    def __init__(self, *errors: Exception | None, at: str = "submit") -> None:
        self._errors, self._at = list(errors), at
        self.joined, self.reported = 0, 0

    def _break(self, at: str) -> None:
        if at == self._at and self._errors and (error := self._errors.pop(0)) is not None:
            raise error

    def join(self, timeout: float) -> SimpleNamespace:
        assert timeout >= RETRY
        self.joined += 1
        self._break("join")
        # Every third round is an evaluation.
        return SimpleNamespace(number=self.joined, is_evaluation=self.joined % 3 == 0)

    def submit(self, state: Any, weight: float, metrics: Any) -> object:
        assert (weight, metrics) == (2.0, None)
        self._break("submit")
        return state

    def report(self, metrics: Any, weight: float) -> object:
        self.reported += 1
        return metrics, weight

    def result(self, timeout: float) -> torch.Tensor:
        assert timeout >= RETRY
        return torch.full((1,), float(self.joined))


def test_which_errors_a_client_goes_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)

    def trained(task: SimpleNamespace) -> Trained:
        assert not task.is_evaluation
        return Trained(torch.ones(1), 2.0)

    through = Broken(None, PeerError("gone"), RefusedError("too late"), None)
    found = rounds_of(through, trained, 2, LONG)
    assert found is not None
    # Rounds 1, 2 and 4, which break, 3, which is an evaluation, and 5.
    assert (found.item(), through.joined, through.reported) == (5.0, 5, 0)
    measuring = Broken()
    rounds_of(measuring, trained, 3, LONG, lambda _: Measured({"loss": 1.0}))
    assert (measuring.joined, measuring.reported) == (4, 1)
    assert rounds_of(Broken(), trained, 0, LONG) is None
    # What is this program's own fault, and what says that a server deviates.
    for error in (MisuseError("wrong"), ValueError("own"), CheatingError("server 1 cheated")):
        stopped = Broken(error)
        with pytest.raises(type(error)):
            rounds_of(stopped, trained, 2, LONG)
        assert stopped.joined == 1
    # Who may not join is not let in later; who did not reach the servers may reach them.
    stopped = Broken(RefusedError("revoked"), at="join")
    with pytest.raises(RefusedError, match="revoked"):
        rounds_of(stopped, trained, 2, LONG)
    assert stopped.joined == 1
    waiting = Broken(PeerError("not reached"), at="join")
    rounds_of(waiting, trained, 1, LONG)
    assert waiting.joined == 2
    with pytest.raises(PeerError, match="gone"):
        rounds_of(Broken(PeerError("gone")), trained, 1, RETRY / 2)
