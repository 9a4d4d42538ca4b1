"""Accounts that are lost or restored from an earlier state: no server restarts at an ε of 0."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from worlds import LONG, Servers, known_of, write_known, written

from tacit.errors import MisuseError, PeerError, SetupError
from tacit.federated import Client
from tacit.federated.privacy.account import Account, Mechanism, epsilons
from tacit.federated.service.report import Report
from tacit.federated.service.round_store import Known, Latest, to_bytes
from tacit.federated.service.server import Server

START = torch.zeros(3)
RULES = 'noise = "pairs"\nsigma = 2.0\ndivisor = 2.0\n'


def spent(config: Path, rounds: int) -> list[list[Report]]:
    """Runs the given number of rounds with two clients."""
    servers = Servers(config, lambda server: [server.round(START) for _ in range(rounds)])
    clients = [Client(config, number) for number in range(2)]
    for _ in range(rounds):
        for client in clients:
            client.submit(client.join(LONG).model)
        for client in clients:
            client.result(LONG)
    return servers.ended()


def rounds_of(folder: Path) -> list[int]:
    """Returns the number of rounds in each account."""
    files = [folder / f"server-{number}.account" for number in range(3)]
    return [json.loads(file.read_text())["rounds"] if file.exists() else 0 for file in files]


def test_servers_whose_accounts_are_gone_do_not_begin_at_nothing(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules=RULES)
    spent(config, 1)
    assert known_of(tmp_path, 1) == "1 0 1 1 1"
    (tmp_path / "server-1.account").unlink()
    said = r"server-1\.account has 0 rounds, and .*server-1\.round says that 1 are spent, which stays so: put"
    with pytest.raises(SetupError, match=said), Server.open(config, 1):
        pass
    # The remedy of the error works.
    shutil.copy(tmp_path / "server-0.account", tmp_path / "server-1.account")
    for (report,) in spent(config, 1):
        assert report.epsilons == epsilons(Mechanism.of(2.0), 2)
    assert rounds_of(tmp_path) == [2, 2, 2]
    assert known_of(tmp_path, 1) == "2 0 2 2 2"


def test_an_account_that_was_put_back_is_noticed(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules=RULES)
    spent(config, 1)
    shutil.copy(tmp_path / "server-2.account", tmp_path / "earlier")
    spent(config, 1)
    shutil.copy(tmp_path / "earlier", tmp_path / "server-2.account")
    said = r"server-2\.account has 1 rounds, and .* says that 2 are spent"
    with pytest.raises(SetupError, match=said), Server.open(config, 2):
        pass


def test_servers_of_unlike_accounts_refuse_the_round(tmp_path: Path) -> None:
    """The servers refuse before any client is asked, also if one has lost both of its files."""
    config = written(tmp_path, 2, rules=RULES)
    spent(config, 2)
    for file in ("server-1.account", "server-1.round"):
        (tmp_path / file).unlink()
    failed = Servers(config, lambda server: server.round(START)).failed()
    assert all(isinstance(error, PeerError) for error in failed)
    said = "has an account of 0 rounds, and 2 are spent: put its file server-1.account back, or copy another"
    assert all("server 1" in str(error) and said in str(error) for error in failed)
    assert rounds_of(tmp_path) == [2, 0, 2]
    assert known_of(tmp_path, 0) == "2 0 2 2 2"


def test_a_server_that_announces_what_neither_other_has_is_named_itself(tmp_path: Path) -> None:
    latest = Latest(tmp_path / "server-0.round")
    for who in range(3):
        for usual, other, said in (
            (
                b"5 0 2",
                b"5 0 9",
                "announced an account of 9 rounds, which neither of the others has",
            ),
            (
                b"5 0 2",
                b"5 0 4",
                "announced an account of 4 rounds, which neither of the others has",
            ),
            (
                b"5 3 0",
                b"9 7 0",
                "announced that clients have the result of round 7, which neither of the others",
            ),
        ):
            told = [other if server == who else usual for server in range(3)]
            with pytest.raises(PeerError, match=f"server {who} .*{said}"):
                latest.agreed(told)
    # After a stop within a round, that server is one behind, or all others are.
    for told in ([b"5 0 2", b"5 0 2", b"5 0 3"], [b"5 0 3", b"5 0 3", b"5 0 2"]):
        assert latest.agreed(told) == Known(6, 0, 3)


def test_a_server_that_ended_within_a_round_spends_what_the_others_have(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules=RULES)
    spent(config, 1)
    # The state of a server that ended before it wrote.
    (tmp_path / "server-1.account").unlink()
    write_known(tmp_path, 1, 1)
    for (report,) in spent(config, 1):
        assert report.epsilons == epsilons(Mechanism.of(2.0), 2)
    assert rounds_of(tmp_path) == [2, 2, 2]


def test_what_is_caught_up_is_held_against_the_budget(tmp_path: Path) -> None:
    mechanism = Mechanism.of(2.0)
    account = Account(tmp_path / "account", mechanism, 1.2 * epsilons(mechanism, 1).to_server)
    account.catch_up(0)
    assert not (tmp_path / "account").exists()
    with pytest.raises(MisuseError, match="round 2 would spend"):
        account.catch_up(1)
    assert Account(tmp_path / "account", mechanism).rounds == 1


def test_what_a_server_knows_outlasts_it(tmp_path: Path) -> None:
    kept = (
        (Known(3), "3\n"),
        (Known(3, 2), "3 2\n"),
        (Known(3, 0, 4), "3 0 4\n"),
        (Known(3, 0, 0, 2), "3 0 0 2\n"),
        (Known(3, 0, 0, 2, 1), "3 0 0 2 1\n"),
    )
    for known, text in kept:
        assert known.text() == text
        (tmp_path / "file").write_bytes(to_bytes(known))
        latest = Latest(tmp_path / "file")
        assert latest.known == known
        # A round without noise keeps the record of what was spent.
        latest.keep(4, known.base)
        assert Latest(tmp_path / "file").known == known._replace(number=4)
