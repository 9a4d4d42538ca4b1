"""Servers that end at any moment and restart by the same command line with a model that all three
have."""

import itertools
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import LONG, Servers, known_of, write_known, written

from commands import Command
from commands import tacit as command
from ports import free_addresses
from tacit.errors import PeerError, SetupError, TacitError
from tacit.federated import Client
from tacit.federated.service.model_store import (
    Kept,
    Models,
    agreed,
    announcement,
    is_first,
    to_bytes,
)
from tacit.federated.service.server import Server
from tacit.sessions import Session

START = {"w": torch.zeros(3), "steps": torch.tensor(7)}

#: When a server may end in the second round: before the model is stored next to the file, after
#: that, and after it has replaced the file.
MOMENTS = ("before", "pending", "settled")


def ended_in_the_second_round(path: Path, moment: str) -> Models:
    """Returns the files of such a server as it reads them on restart."""
    models = Models(path)
    models.begin(Kept.of(START))
    for number, until in ((1, "settled"), (2, moment)):
        if until != "before":
            models.pend(number, number, torch.full((3,), float(number)))
        if until == "settled":
            models.settle()
    return Models(path)


def begun(every: list[Models]) -> list[Kept]:
    """Returns what each server continues with after they agree."""
    ended, digest = agreed([announcement(3, 0, models.kept) for models in every])
    chosen = []
    for models in every:
        found = next(each for each in models.kept if (each.ended, each.digest) == (ended, digest))
        models.begin(found)
        chosen.append(found)
    return chosen


@pytest.mark.parametrize("moments", list(itertools.product(MOMENTS, repeat=3)))
def test_there_is_always_a_model_that_all_have(tmp_path: Path, moments: tuple[str, ...]) -> None:
    """No server replaces its file before all have stored the new model next to theirs."""
    every = [
        ended_in_the_second_round(tmp_path / f"{at}.pt", moment)
        for at, moment in enumerate(moments)
    ]
    if "before" in moments and "settled" in moments:
        with pytest.raises(SetupError, match="the servers hold different models"):
            begun(every)
        return
    expected = 1 if "before" in moments else 2
    chosen = begun(every)
    assert [each.ended for each in chosen] == [expected] * 3
    for at, each in enumerate(chosen):
        assert isinstance(each.model, dict)
        assert each.model["w"].tolist() == [expected] * 3
        assert each.model["steps"] == 7
        # Only this model is left, and the next round is stored next to it.
        again = Models(tmp_path / f"{at}.pt")
        assert again.settled is not None
        assert (again.settled.ended, again.pending) == (expected, None)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("moments", list(itertools.product(MOMENTS[:2], repeat=3)))
def test_a_first_round_that_not_all_have_is_begun_again(
    tmp_path: Path, moments: tuple[str, ...]
) -> None:
    kept, every = [], []
    for at, moment in enumerate(moments):
        models = Models(tmp_path / f"{at}.pt")
        models.begin(Kept.of(START))
        if moment == "pending":
            models.pend(1, 1, torch.ones(3))
        every.append(models := Models(tmp_path / f"{at}.pt"))
        assert is_first(models, 0)
        kept.append([*models.kept, Kept.of(START)])
    ended, digest = agreed([announcement(3, 0, each) for each in kept])
    assert ended == (0 if "before" in moments else 1)
    for models, each in zip(every, kept, strict=True):
        models.begin(next(one for one in each if (one.ended, one.digest) == (ended, digest)))
        assert models.path.exists() == (ended == 1)
        assert not models.pending_path.exists()


def test_servers_of_one_machine_may_have_one_file(tmp_path: Path) -> None:
    every = [Models(tmp_path / "model.pt", server) for server in range(3)]
    for models in every:
        models.begin(Kept.of(START))
    for models in every:
        models.pend(1, 1, torch.ones(3))
    for models in every:
        models.settle()
    again = [Models(tmp_path / "model.pt", server) for server in range(3)]
    assert [each.ended for each in begun(again)] == [1, 1, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_servers_of_different_models_are_told_so_and_what_to_do(tmp_path: Path) -> None:
    every = [ended_in_the_second_round(tmp_path / f"{at}.pt", "settled") for at in range(3)]
    # One server is restored from a backup of the first round.
    (tmp_path / "1.pt").unlink()
    every[1] = Models(tmp_path / "1.pt")
    every[1].begin(Kept.of(START))
    every[1].pend(1, 1, torch.ones(3))
    every[1].settle()
    every[1] = Models(tmp_path / "1.pt")
    said = (
        r"the servers hold different models: server 0 that of round 2, after 2 rounds \(BLAKE3 "
        r"\w{12}\); "
        r"server 1 that of round 1, after 1 round \(BLAKE3 \w{12}\); server 2 that of round 2, .*: "
        "copy the file that --out names at server 0, or one backup of it, over those of all three, "
        "and start"
    )
    with pytest.raises(SetupError, match=said):
        begun(every)
    # The remedy of the error works.
    shutil.copy(tmp_path / "0.pt", tmp_path / "1.pt")
    assert [each.ended for each in begun([Models(tmp_path / f"{at}.pt") for at in range(3)])] == [
        2,
        2,
        2,
    ]


def test_servers_that_begin_from_different_models_are_told_so() -> None:
    kept = [[Kept.of(torch.full((3,), value))] for value in (0.0, 0.0, 1.0)]
    with pytest.raises(
        SetupError, match=r"different models: server 0 one to begin from .*: give all three the s"
    ):
        agreed([announcement(1, 0, each) for each in kept])
    with pytest.raises(
        SetupError, match="server 0 with --rounds 1, server 1 with --rounds 2, server 2 with --ro"
    ):
        agreed([announcement(rounds, 0, kept[0]) for rounds in (1, 2, 1)])
    kept[2] = [Kept.of(torch.ones(1234))]
    sizes = r"\(BLAKE3 \w{12}, 3 values\); server 2 one to begin from \(BLAKE3 \w{12}, 1,234 values"
    with pytest.raises(SetupError, match=sizes):
        agreed([announcement(1, 0, each) for each in kept])
    for told in (b"", b"[]", b"{}", announcement(1, 0, kept[0] * 3), b"[" * 100_000):
        with pytest.raises(PeerError, match="server 1 announced what is no model to begin from"):
            agreed([announcement(1, 0, kept[0]), told, announcement(1, 0, kept[0])])


def test_where_one_tells_the_others_unlike_things_none_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Server 1 tells only server 0 that it lacks the latest model.

    Without the check, the servers would continue from different models.
    """
    kept = [Kept.of(torch.ones(3), 2, 2), Kept.of(torch.zeros(3), 1, 1)]
    told_by_all = Session.told_by_all

    def told(session: Session, own: bytes) -> list[bytes]:
        every = told_by_all(session, own)
        return every if session.party else [every[0], announcement(3, 2, kept[1:]), every[2]]

    monkeypatch.setattr(Session, "told_by_all", told)
    servers = Servers(written(tmp_path, 2), lambda server: server.agree_to_begin(3, kept))
    for error in servers.failed():
        assert isinstance(error, PeerError)
        assert "need not be one of these two, told the others different things" in str(error)


def test_another_federations_model_is_not_gone_on_with(tmp_path: Path) -> None:
    """Refuses a model of another federation.

    A federation would otherwise continue from a model that none of its rounds made, or end at once.
    """
    (tmp_path / "out.pt").write_bytes(to_bytes(Kept.of(START, 5, 7), "first"))
    found = Models(tmp_path / "out.pt", federation="first").settled
    assert found is not None
    assert (found.ended, found.round) == (5, 7)
    said = r"out\.pt has a model of the federation 'first', and this one is 'second': give --out another path"
    with pytest.raises(SetupError, match=said):
        Models(tmp_path / "out.pt", federation="second")
    # The command reports this before it connects to any server.
    config = written(tmp_path, 2)
    torch.save(torch.zeros(3), tmp_path / "start.pt")
    ended = command(
        *("federated", "serve", "--config", config, "--server", 0, "--rounds", 5),
        *("--out", tmp_path / "out.pt"),
    )
    assert ended.returncode == 1
    assert "has a model of the federation 'first', and this one is 'test'" in ended.stderr


def test_a_round_has_a_new_number_also_where_only_the_model_is_left(tmp_path: Path) -> None:
    """The number must be new, since clients wait for later rounds than those they took part in."""
    run = Run(tmp_path, "norm = 4.0")
    servers = run.servers(1)
    assert run.learn(1.0) == [1, 1, 1]
    servers.ended()
    for server in range(3):
        (tmp_path / f"server-{server}.round").unlink()
    servers = run.servers(2)
    assert run.learn(1.0) == [2, 2, 2]
    assert [[report.round for report in reports] for reports in servers.ended()] == [[2]] * 3
    assert [known_of(tmp_path, server) for server in range(3)] == ["2 0 0 2 2"] * 3


def rounded(values: torch.Tensor) -> list[int]:
    assert torch.allclose(values, values.round(), atol=1e-3)
    return [round(value) for value in values.tolist()]


class Run:
    """A federation of two clients whose servers have files and restart repeatedly."""

    def __init__(self, folder: Path, rules: str = "") -> None:
        self.folder, self.config = folder, written(folder, 2, rules=rules)
        self.clients = [Client(self.config, number) for number in range(2)]

    def move(self) -> None:
        """Moves to other ports. Stored errors keep the old ones in use."""
        text = self.config.read_text()
        found = re.findall(r"127\.0\.0\.1:\d+", text)
        for old, new in zip(found, free_addresses(len(found)), strict=True):
            text = text.replace(old, new)
        self.config.write_text(text)
        self.clients = [Client(self.config, number) for number in range(2)]

    def servers(
        self, rounds: int, disturb: Callable[[Server, Models], None] = lambda *_: None
    ) -> Servers:
        def work(server: Server) -> Any:
            models = Models(self.folder / f"{server.number}.pt", federation=server.federation.name)
            kept = [*models.kept, *([Kept.of(START)] if is_first(models, server.ended) else [])]
            chosen = server.agree_to_begin(rounds, kept)
            assert chosen is not None
            models.begin(chosen)
            disturb(server, models)
            reports, model = [], chosen.model
            while server.ended < rounds:
                reports.append(server.round(model, models=models))
                model = reports[-1].model
            return reports

        return Servers(self.config, work)

    def learn(self, value: float) -> list[int]:
        """Runs a round in which each client adds the given value."""
        clients = self.clients
        with ThreadPoolExecutor(2) as pool:
            tasks = list(pool.map(lambda client: client.join(LONG), clients))
            list(pool.map(lambda at: clients[at].submit(tasks[at].model + value), range(2)))
            return next(pool.map(lambda client: rounded(client.result(LONG)), clients))

    def models(self) -> list[list[int]]:
        found = [torch.load(self.folder / f"{at}.pt", weights_only=True)["w"] for at in range(3)]
        return [rounded(each) for each in found]


def refused_by_its_disk(server: Server, models: Models) -> None:
    """Makes the second server's disk full in the second round."""

    def pend(ended: int, *given: Any) -> None:
        models.pending_path = Path("/dev/full") if ended == 2 else models.pending_path
        kept(ended, *given)

    if server.number == 1:
        kept, models.pend = models.pend, pend  # type: ignore[method-assign]


def test_a_server_that_cannot_write_ends_the_round_and_nothing_is_lost(tmp_path: Path) -> None:
    """Clients do not have a model that no server has. With free space, the same command
    continues."""
    run = Run(tmp_path, "norm = 4.0")
    servers = run.servers(2, refused_by_its_disk)
    assert run.learn(1.0) == [1, 1, 1]
    with pytest.raises(TacitError, match=r"the disk is full|server 1 failed"):
        run.learn(1.0)
    for error in servers.failed():
        assert "cannot write the model of round 2 to /dev/full: the disk is full" in str(error)
        assert "nothing else was lost, the model before it is as it was" in str(error)
    assert run.models() == [[1, 1, 1]] * 3
    assert [known_of(tmp_path, server) for server in range(3)] == ["2 0 0 1"] * 3
    run.move()
    servers = run.servers(2)
    assert run.learn(1.0) == [2, 2, 2]
    assert [len(reports) for reports in servers.ended()] == [1, 1, 1]
    assert run.models() == [[2, 2, 2]] * 3
    assert not [*tmp_path.glob("*.next"), *tmp_path.glob("*.new")]
    # The command does nothing then, and does not need the other servers for it.
    before = (tmp_path / "0.pt").read_bytes()
    serve = (
        "federated",
        "serve",
        "--config",
        run.config,
        "--server",
        0,
        "--out",
        tmp_path / "0.pt",
    )
    ended = command(*serve, "--rounds", 2)
    assert ended.returncode == 0, ended
    assert "nothing is left to do: 2 rounds of this federation ended" in ended.stdout
    assert (tmp_path / "0.pt").read_bytes() == before


def test_models_that_are_gone_are_not_begun_anew_in_silence(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    torch.save(torch.zeros(3), tmp_path / "start.pt")
    write_known(tmp_path, 0, 4, 0, 0, 2)
    serve = ("federated", "serve", "--config", config, "--server", 0, "--rounds", 3)
    ended = command(*serve, "--out", tmp_path / "0.pt")
    assert ended.returncode == 1
    assert "says that 2 rounds of this federation ended, and" in ended.stderr
    assert (
        "0.pt, which has their model, is not there: put it back, or copy another server's"
        in ended.stderr
    )
    assert "without --out no server has kept their model; to begin anew" in command(*serve).stderr
    # A warning is given before as well. A single round can be repeated, so it needs none.
    for server, rounds, warns in ((1, 2, True), (2, 1, False)):
        words = ("federated", "serve", "--config", config, "--server", server, "--rounds", rounds)
        started = Command(*words, "--threads", 1)
        started.warned()
        started.kill()
        assert ("without --out nothing keeps the model" in started.ended()[2]) == warns
    # An existing file that is not a server's is not overwritten.
    torch.save(torch.ones(3), tmp_path / "0.pt")
    before = (tmp_path / "0.pt").read_bytes()
    ended = command(*serve, "--out", tmp_path / "0.pt")
    assert ended.returncode == 1
    assert "0.pt is not taken for the model to go on from: it has no checksum" in ended.stderr
    assert (tmp_path / "0.pt").read_bytes() == before


@pytest.mark.parametrize("rules", ["norm = 4.0", 'norm = 4.0\nresult_to = "clients"'])
def test_where_no_server_keeps_the_model_the_last_round_of_a_killed_one_is_done_again(
    tmp_path: Path, rules: str
) -> None:
    """Two servers have seen the round's end. The third was killed before it wrote that. None waits
    in vain."""
    config = written(tmp_path, 2, rules=rules)
    torch.save(torch.zeros(3), tmp_path / "start.pt")
    for server, ended in enumerate((1, 1, 0)):
        write_known(tmp_path, server, 1, 0, 0, ended)

    def serve() -> list[Command]:
        words = (
            "federated",
            "serve",
            "--config",
            config,
            "--rounds",
            1,
            "--threads",
            1,
            "--server",
        )
        return [Command(*words, server) for server in range(3)]

    def learn(number: int) -> list[int]:
        client = Client(config, number)
        task = client.join(LONG)
        client.submit(task.model + 1)
        return rounded(client.result(LONG))

    servers = serve()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(learn, range(2))) == [[1, 1, 1]] * 2
    for code, output, errors in (each.ended() for each in servers):
        assert (code, "round 2: 2 clients in" in output) == (0, True), errors
    assert [known_of(tmp_path, server).split()[-2:] for server in range(3)] == [["1", "1"]] * 3
    # All three know now that the round is done.
    for code, output, errors in (each.ended() for each in serve()):
        assert (code, "nothing is left to do: 1 round of" in output) == (0, True), errors
    # Each server also knows it alone.
    ended = command("federated", "serve", "--config", config, "--rounds", 1, "--server", 1)
    assert (ended.returncode, "nothing is left to do: 1 round of" in ended.stdout) == (0, True), (
        ended
    )


def test_a_disk_that_is_full_before_a_round_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is checked before a round.

    Servers that restart repeatedly would otherwise spend a budget on rounds that cannot be stored.
    """
    run, usage = Run(tmp_path, "norm = 4.0"), shutil.disk_usage
    monkeypatch.setattr(
        "tacit.atomic_write.shutil.disk_usage", lambda path: usage(path)._replace(free=19)
    )
    for error in run.servers(1).failed():
        assert "cannot write the model of the next round to " in str(error)
        assert "19 bytes are free); no part of it is left: make room on that disk" in str(error)
    # No client was asked, and no round has a number.
    assert not list(tmp_path.glob("*.round"))
    # The free bytes suffice for three numbers and a count.
    monkeypatch.setattr(
        "tacit.atomic_write.shutil.disk_usage", lambda path: usage(path)._replace(free=20)
    )
    run.move()
    servers = run.servers(1)
    assert run.learn(1.0) == [1, 1, 1]
    servers.ended()
