"""FLTrust with a root that a server trains."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from worlds import LONG, Servers, written

from commands import tacit as command
from tacit.errors import EncodingError, MisuseError, PeerError, RefusedError, SetupError
from tacit.federated import Client
from tacit.federated.rounds.client_update import Update
from tacit.federated.rounds.round_state import SERVERS_ROOT
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round
from tacit.federated.rounds.submission import Submitted
from tacit.federated.service.config import Federation
from tacit.federated.service.exchange import taken
from tacit.federated.service.report import Report
from tacit.federated.service.server import Server
from tacit.federated.validation import COIN
from tacit.sessions import Session
from tacit.sessions import session as current

START = torch.linspace(-1, 1, 6)
ROOT = torch.tensor([0.5, 0.25, 0.0, -0.25, 0.5, 0.1])
#: Updates along the root, somewhat away from it, and against it.
UPDATES = torch.stack([ROOT * 1.2, ROOT + torch.tensor([0.0, 0.0, 0.9, 0.0, -0.4, 0.0]), ROOT * -3])
RULES = 'norm = 2.0\nbound = "clip"\naggregator = "fltrust"\nroot = "server-1"\n'


def learned(config: Path) -> list[torch.Tensor]:
    """Returns the models of three clients after a round."""

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number)
        client.submit(client.join(LONG).model + UPDATES[number])
        return client.result(LONG)

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(learn, range(3)))


def test_a_servers_update_is_the_root(tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=RULES)
    servers = Servers(
        config, lambda server: server.round(START, START + ROOT if server.number == 1 else None)
    )
    found = learned(config)
    settings = Settings(norm=2.0, bound="clip", aggregator="fltrust", root="server-1")
    round_ = Round.of(settings)
    sent = [round_.client(update) for update in (*UPDATES, ROOT)]
    vectors = torch.stack([each.vector for each in sent])
    plain = round_.plain((0, 1, 2, SERVERS_ROOT), vectors, torch.ones(4, dtype=torch.float64))
    assert plain.vector is not None
    for model in found:
        torch.testing.assert_close(model, START + plain.vector.float(), rtol=0, atol=2e-3)
    # The root decides: the update against it does not count, and the plain mean is elsewhere.
    assert float((plain.vector - UPDATES.mean(0)).norm()) > 0.3
    for report in servers.ended():
        assert report.accepted == [0, 1, 2]
        assert report.refused == []
        assert torch.equal(report.model, found[0])


def test_each_server_draws_a_coin_when_all_vectors_are_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then no server has anything of the coin that judges vectors, and so cannot reveal it to
    a client."""
    fixed: set[int] = set()
    drawn: list[tuple[int, bool]] = []

    def take(session: Session, *rest: Any) -> Submitted:
        found = taken(session, *rest)
        fixed.add(session.party)
        return found

    def draw(count: int) -> bytes:
        assert count == COIN
        party = current().party
        drawn.append((party, party in fixed))
        return os.urandom(count)

    monkeypatch.setattr("tacit.federated.service.server.taken", take)
    monkeypatch.setattr("tacit.randomness.generators.os", SimpleNamespace(urandom=draw))
    servers = Servers(
        written(tmp_path, 3, rules=RULES),
        lambda server: server.round(START, START + ROOT if server.number == 1 else None),
    )
    learned(tmp_path / "federation.toml")
    servers.ended()
    assert sorted(drawn) == [(server, True) for server in range(3)]


def test_a_servers_root_is_validated_as_clients_vectors_are(tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=RULES.replace("clip", "refuse"))

    def work(server: Server) -> Report:
        if server.number == 1:
            long = Update(torch.full((6,), 1.0, dtype=torch.float64), 1.0)
            server._root = lambda *_: long  # type: ignore[method-assign]
        return server.round(START)

    servers = Servers(config, work)
    said = "the vector of server-1, who is trusted, does not count in this round"

    def learn(number: int) -> None:
        client = Client(config, number)
        client.submit(client.join(LONG).model + ROOT)
        with pytest.raises(RefusedError, match=said):
            client.result(LONG)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(learn, range(3)))
    for report in servers.ended():
        assert report.failure == said
        # No client is to blame. They only hear that the round has no result, if they ask in time.
        assert {reason for _, reason, _ in report.refused} <= {said}
        assert torch.equal(report.model, START)


@pytest.mark.parametrize(
    ("roots", "kind", "said"),
    [
        (
            {},
            MisuseError,
            r"server 1 is the root of this federation: give round\(model, root=\.\.\.\) what it",
        ),
        (
            {1: ROOT, 2: ROOT},
            MisuseError,
            "server 2 is not the root of this federation, which is 'server-1'",
        ),
        ({1: ROOT[:2]}, MisuseError, "a state of 2 values; the model of this round has 6"),
        ({1: ROOT / 0}, EncodingError, "which is no finite number"),
    ],
)
def test_a_root_that_cannot_be_is_refused_before_clients_are_asked(
    roots: dict[int, torch.Tensor], kind: type[Exception], said: str, tmp_path: Path
) -> None:
    config = written(tmp_path, 3, rules=RULES)
    failed = Servers(config, lambda server: server.round(START, roots.get(server.number))).failed()
    own = [error for error in failed if isinstance(error, kind)]
    with pytest.raises(kind, match=said):
        raise own[0]
    assert all(isinstance(error, kind | PeerError) for error in failed)
    assert not (tmp_path / "server-0.round").exists()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "server-1",
            "server-3",
            "root = 'server-3': the number of a client, or one of server-0, server-1",
        ),
        ('"server-1"', "1.5", "root = 1.5 is not a whole number or a text"),
        ("fltrust", "fedavg", "root = 'server-1': fedavg takes no root"),
        (
            "norm",
            'result_to = "clients"\nnorm',
            "root = 'server-1': that server learns from the model of each",
        ),
        (
            "norm",
            "coordinator = 0\nnorm",
            "root = 'server-1': that server learns from the model of each round",
        ),
        (
            "norm",
            "minimum_clients = 4\nnorm",
            "3 of 3 clients hand in vectors that count, so every round",
        ),
    ],
)
def test_what_a_servers_root_cannot_be(before: str, after: str, said: str, tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=RULES)
    assert Federation.read(config).settings.root == "server-1"
    config.write_text(config.read_text().replace(RULES, RULES.replace(before, after)))
    with pytest.raises(SetupError, match=said):
        Federation.read(config)


def test_serving_alone_trains_no_root(tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=RULES)
    refused = command("federated", "serve", "--config", config, "--server", 1)
    assert refused.returncode == 1
    assert "server 1 is the root, which trains: it needs a program" in " ".join(
        refused.stderr.split()
    )
