"""Rounds of servers of which one may cheat: results are those of honest servers, and what a server
falsifies is found by the other servers, or by the clients. crates/mpc/tests/malicious tests each
message."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from worlds import LONG, Servers, beyond_the_bound, written

import tacit
from tacit import fixed
from tacit.errors import CheatingError, PeerError, RefusedError
from tacit.federated import Client, SubmissionWarning, validation
from tacit.federated.aggregators import Quotient
from tacit.federated.rounds.round_state import Held, Step
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Reveal, Round
from tacit.federated.service import server as service
from tacit.federated.service.config import Federation
from tacit.federated.service.report import Report
from tacit.federated.service.round_store import Latest
from tacit.federated.service.server import Server
from tacit.providers import PROTOCOLS, consumes
from tacit.sharings import shares

NAME = "replicated-malicious"
PROTOCOL = f'protocol = "{NAME}"\n'
MEAN = 'norm = 4.0\nbound = "none"\nword_bits = 32\n'
FLTRUST = 'norm = 4.0\naggregator = "fltrust"\nroot = 0\n'

START, CLIENTS = torch.arange(4.0), 3

#: What clients learn: their mean, and their vectors' norms, are below the bound of 4.
UPDATES = torch.tensor([[1.0, 0.0, 0.5, -1.0], [0.5, 0.25, 0.0, -1.0], [1.5, 0.0, 1.0, -0.25]])


def learn(config: Path, number: int, rounds: int = 1, *, is_long: bool = False) -> Any:
    """Takes part in rounds; returns the models, or the error that ended them."""
    client, found = Client(config, number), []
    try:
        for _ in range(rounds):
            task = client.join(LONG)
            if is_long:
                beyond_the_bound(client)
            else:
                client.submit(task.model + UPDATES[number])
            found.append(client.result(LONG))
    except (PeerError, RefusedError) as error:
        return error
    return found


def together(work: Callable[[int], Any]) -> list[Any]:
    """Runs what clients do, in threads."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(work, range(CLIENTS)))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (MEAN, UPDATES.mean(0)),
        ('norm = 4.0\nbound = "none"\n', UPDATES.mean(0)),
        ("norm = 4.0\n", UPDATES.mean(0)),
        ('norm = 4.0\nbound = "clip"\n', UPDATES.mean(0)),
        ('norm = 4.0\nbound = "clip"\nchecked = true\n', UPDATES.mean(0)),
        (MEAN + 'result_to = "clients"\n', UPDATES.mean(0)),
        ('norm = 4.0\naggregator = "norm-clipping"\nresult_to = "clients"\n', None),
        (FLTRUST, None),
        ('norm = 4.0\naggregator = "krum"\n', None),
        ('norm = 4.0\naggregator = "median"\n', UPDATES.median(0).values),
        ('norm = 4.0\nnoise = "pairs"\nsigma = 0.001\ndivisor = 3.0\n', UPDATES.mean(0)),
        ('norm = 4.0\nnoise = "joint"\nsigma = 0.001\ndivisor = 3.0\n', UPDATES.mean(0)),
    ],
    ids=[
        "mean of packed numbers",
        "mean",
        "norms validated",
        "clipped",
        "clipped, in checked mode",
        "mean for clients",
        "norm-clipping for clients",
        "fltrust",
        "krum",
        "median",
        "noise by pairs",
        "joint noise",
    ],
)
def test_two_rounds(rules: str, expected: torch.Tensor | None, tmp_path: Path) -> None:
    config = written(tmp_path, CLIENTS, rules=PROTOCOL + rules)

    def rounds(server: Server) -> list[Report]:
        assert "a party that deviates is caught before any output" in server.threat_model
        first = server.round(START)
        return [first, server.round(first.model)]

    servers = Servers(config, rounds)
    found = together(lambda number: learn(config, number, 2))
    reports = servers.ended()
    assert all(not isinstance(each, Exception) for each in found), found
    settings = Federation.read(config).settings
    if expected is None:
        plain = Round.of(settings, None, CLIENTS)
        weights = torch.ones(CLIENTS, dtype=torch.float64)
        sent = torch.stack([plain.client(each.double()).vector for each in UPDATES])
        expected = plain.plain(range(CLIENTS), sent, weights).vector
    assert expected is not None
    tolerance = 2e-3 if settings.noise is None else 0.1
    for first, second in found:
        torch.testing.assert_close(first, START + expected.float(), rtol=0, atol=tolerance)
        torch.testing.assert_close(second, first + expected.float(), rtol=0, atol=tolerance)
        # All have the same one.
        assert torch.equal(second, found[0][1])
    for one, other in reports:
        assert one.failure is None
        assert other.failure is None
    if settings.result_to == "all":
        assert torch.equal(reports[0][1].model, found[0][1])


def test_a_vector_above_the_bound_is_refused_by_all_alike(tmp_path: Path) -> None:
    config = written(tmp_path, CLIENTS, rules=PROTOCOL + "norm = 4.0\n")
    servers = Servers(config, lambda server: server.round(START))
    with pytest.warns(SubmissionWarning, match="refused"):
        found = together(lambda number: learn(config, number, is_long=number == 1))
    for report in servers.ended():
        assert report.accepted == [0, 2]
        assert [client for client, *_ in report.refused] == [1]
    for (model,) in found:
        expected = START + (UPDATES[0] + UPDATES[2]) / 2
        torch.testing.assert_close(model, expected, rtol=0, atol=1e-4)


class Adds(Step):
    """A step in which one server adds to one of its components."""

    def __init__(self, liar: int, component: int) -> None:
        self._place = liar, component

    def secret(self, held: Held) -> Held:
        liar, component = self._place
        if tacit.session().party == liar:
            combined: Any = held.combined
            secret = combined.numerator if isinstance(combined, Quotient) else combined
            secret._parts[component].add_(1 << 30)
        return held


@dataclass(frozen=True)
class Falsified:
    """The rounds of servers of which one falsifies a component before the result is revealed."""

    liar: int
    component: int

    def __call__(self, settings: Settings, account: Any = None, clients: int = 1) -> Round:
        usual = Round.of(settings, account, clients)
        at = next(at for at, step in enumerate(usual.steps) if isinstance(step, Reveal))
        falsifies = Adds(self.liar, self.component)
        steps = (*usual.steps[:at], falsifies, *usual.steps[at:])
        return Round(steps, usual.unit, usual.word_bits)


def blamed(server: int) -> str:
    """Returns how a server's error about another one begins."""
    others = " or ".join(f"server {other}" for other in range(3) if other != server)
    return f"{others} cheated in "


@pytest.mark.parametrize("component", range(2))
@pytest.mark.parametrize("liar", range(3))
def test_a_server_that_computes_with_another_share_is_found_by_all(
    liar: int, component: int, tmp_path: Path
) -> None:
    config = written(tmp_path, CLIENTS, rules=PROTOCOL + MEAN)
    rounds = Falsified(liar, component)
    servers = Servers(config, lambda server: server.round(START), rounds=rounds)
    found = together(lambda number: learn(config, number))
    for server, error in enumerate(servers.failed()):
        if server != liar:
            assert isinstance(error, CheatingError), error
            assert str(error).startswith(blamed(server))
    # No client takes a result.
    assert all(isinstance(each, RefusedError) for each in found), found


def serve(config: Path, number: int, liar: int | None) -> torch.Tensor | str:
    """Is a server's process. Returns the new model, or the words of the error about cheating."""
    rounds = Round.of if liar is None else Falsified(liar, 0)
    try:
        with Server.open(config, number, threads=1, rounds=rounds) as server:
            return server.round(START).model
    except CheatingError as error:
        return str(error)


@pytest.mark.parametrize(
    ("rules", "liar"),
    [
        (MEAN, 2),
        (FLTRUST, None),
        pytest.param(MEAN, None, marks=pytest.mark.long),
        pytest.param(FLTRUST, 1, marks=pytest.mark.long),
    ],
)
def test_servers_in_processes(rules: str, liar: int | None, tmp_path: Path) -> None:
    config = written(tmp_path, CLIENTS, rules=PROTOCOL + rules)
    # Processes that begin without this one's threads, and with what it takes long to import.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tacit.federated.service.server"])
    with ProcessPoolExecutor(3, context) as processes:
        # Clients wait for servers as long as for anything else, and not for imports.
        processes.submit(os.getpid).result()
        servers = [processes.submit(serve, config, number, liar) for number in range(3)]
        found = together(lambda number: learn(config, number))
        told = [server.result(LONG) for server in servers]
    if liar is None:
        assert all(torch.equal(model, told[0]) for model in told)
        assert all(torch.equal(model, told[0]) for (model,) in found)
        return
    for server in {0, 1, 2} - {liar}:
        assert isinstance(told[server], str), "a result was accepted"
        assert told[server].startswith(blamed(server))
    assert all(isinstance(each, RefusedError) for each in found), found


@pytest.mark.parametrize("of", ["component", "hash", "length", "bytes"])
@pytest.mark.parametrize("liar", range(3))
def test_clients_find_what_a_server_sends_them_wrongly(
    liar: int, of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = PROTOCOL + MEAN + 'result_to = "clients"\n'
    config, usual = written(tmp_path, CLIENTS, rules=rules), service.part_of

    def part(session: Any, sealed: torch.Tensor) -> Any:
        words = usual(session, sealed).view(np.int64)
        if session.party == liar:
            if of == "bytes":
                return np.append(words.view(np.uint8), np.zeros(3, np.uint8))
            if of == "length":
                words = np.append(words, 0)
            words[-1 if of == "hash" else 0] ^= 1 << 20
        return words.view(np.uint8)

    monkeypatch.setattr(service, "part_of", part)
    servers = Servers(config, lambda server: server.round(START))
    found = together(lambda number: learn(config, number))
    servers.ended()
    for error in found:
        assert isinstance(error, CheatingError), error
        said = str(error)
        assert f"server {liar}" in said
        assert said.endswith('cheated in "the result of a round"')
        assert said.count("server ") == 2


@pytest.mark.parametrize(("liar", "told"), [(0, "1"), (1, "2 1"), (2, "1 1 1")])
def test_a_server_cannot_put_the_clients_model_back(
    liar: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second round it announces another base, number or account than all had."""
    rules = PROTOCOL + MEAN + 'result_to = "clients"\n'
    config, usual = written(tmp_path, CLIENTS, rules=rules), Latest.to_bytes

    def to_bytes(latest: Latest, account: Any = None) -> bytes:
        is_lie = latest.path.name == f"server-{liar}.round" and latest.known.number == 1
        return f"{told}\n".encode() if is_lie else usual(latest, account)

    monkeypatch.setattr(Latest, "to_bytes", to_bytes)
    kept: list[Any] = [None] * 3

    def rounds(server: Server) -> Any:
        server.round(START)
        path = tmp_path / f"server-{server.number}.part.next"
        try:
            return server.round(START)
        finally:
            kept[server.number] = path.exists()

    servers = Servers(config, rounds)
    models = together(lambda number: learn(config, number))
    assert all(torch.is_tensor(each[0]) for each in models), models
    said = "announced another round, base, account or bound than all three servers had"
    for server, error in enumerate(servers.failed()):
        if server != liar:
            assert isinstance(error, PeerError)
            # It may accuse an honest server first, since that one announced something else.
            assert said in str(error), error
    # The part of the clients' model is still there.
    assert all(kept[server] for server in range(3) if server != liar)


def test_a_client_does_not_go_back(tmp_path: Path) -> None:
    """All three servers were begun anew, and this client's program was not."""
    config = written(tmp_path, CLIENTS, rules=PROTOCOL + MEAN + 'result_to = "clients"\n')
    servers = Servers(config, lambda server: server.round(START))

    def join(number: int) -> Any:
        client = Client(config, number)
        client.take_up(START, 5)
        try:
            client.join(LONG)
        except PeerError as error:
            # The others go on, so that the round ends.
            other = Client(config, number)
            task = other.join(LONG)
            other.submit(task.model + UPDATES[number])
            other.result(LONG)
            return str(error)

    for said in together(join):
        assert "go on from the model of round 0, and this client has that of round 5" in said
        assert said.endswith("start this client's program again; else one of them deviates")
    servers.ended()


@pytest.mark.parametrize("liar", range(3))
def test_a_server_that_denies_a_verified_result_is_found(
    liar: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, usual = written(tmp_path, CLIENTS, rules=PROTOCOL + MEAN), service.compared

    def compared(session: Any, number: int, learned: Any, outcome: Any, failure: Any) -> Any:
        if number == liar:
            learned = learned + 1
        return usual(session, number, learned, outcome, failure)

    monkeypatch.setattr(service, "compared", compared)
    servers = Servers(config, lambda server: server.round(START))
    found = together(lambda number: learn(config, number))
    honest = [error for server, error in enumerate(servers.failed()) if server != liar]
    assert all(isinstance(error, PeerError) for error in honest), honest
    # The first one to compare says so; the other one may hear of it first.
    assert any(
        isinstance(error, CheatingError) and f"server {liar}" in str(error) for error in honest
    ), honest
    assert all(isinstance(each, RefusedError) for each in found), found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_all_protocols_have_a_checked_mode(protocol: str) -> None:
    source = "dealer" if consumes(protocol) else None
    found = tacit.launch(lambda: tacit.session().core.checks, protocol=protocol, source=source)
    assert set(found) == {True}


@pytest.mark.parametrize("protocol", ["replicated", NAME])
@pytest.mark.parametrize("length", [5, 2048, 5003])
def test_squares_of_norms_are_exact(
    length: int, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many vectors are taken at a time, and whatever is left of their pieces."""
    words = torch.randint(
        -(1 << 40), 1 << 40, (3, length), generator=torch.Generator().manual_seed(1)
    )

    def program() -> torch.Tensor:
        with tacit.session().using(scale=fixed.Scale(validation.VECTOR_BITS)):
            shared = tacit.share(torch.zeros(3, length), owner=0)
        parts = shares.add(shared._parts, shares.trivial(tacit.session(), words))
        square = validation.squares(shared.like(parts, fixed.WHOLE, torch.int64))
        found: torch.Tensor = square.reveal()
        return found

    for at_once in (1, 2 * length, 1 << 20):
        monkeypatch.setattr(validation, "AT_ONCE", at_once)
        for found in tacit.launch(program, protocol=protocol):
            assert torch.equal(found, (words * words).sum(1))
