"""A service of three parties as processes: answers, refusals, and what becomes of requests when
parties and clients fail."""

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from load import TOLERANCE, expected, given
from relays import Relay
from services import Parties, model, module, shown, wait_for, waiting, write

from commands import Command
from tacit.client import Client, _Until
from tacit.errors import EncodingError, MisuseError, PeerError, RequestRefusedError


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A service with two models, one of them in two versions, that no test ends."""
    clients = ({"name": "app"}, {"name": "other"}, {"name": "little", "per_minute": 2})
    models = [model(), model(version="2", weights="build.pt"), model("chosen", "chosen")]
    config = write(tmp_path_factory.mktemp("service"), models, clients=clients)
    with Parties(config):
        with Client(config) as client:
            wait_for(client)
        yield config


@pytest.fixture
def client(service: Path) -> Iterator[Client]:
    with Client(service, timeout=20) as made:
        yield made


def test_results_are_those_of_the_plain_model(client: Client) -> None:
    x = given(1)
    found = client.infer("net", x)
    assert isinstance(found, torch.Tensor)
    assert found.dtype == torch.float32
    assert (found - expected(x)).abs().max() < TOLERANCE
    array = client.infer("net", x.numpy(), version="1")
    assert isinstance(array, np.ndarray)
    assert np.abs(array - expected(x).numpy()).max() < TOLERANCE
    # One row, and several requests in one call.
    assert (client.infer("net", x[0]) - expected(x)).abs().max() < TOLERANCE
    many = given(2, 40)
    assert (client.infer("net", many) - expected(many)).abs().max() < TOLERANCE
    later = asyncio.run(client.infer_async("net", x))
    assert (later - expected(x)).abs().max() < TOLERANCE


def test_several_outputs_and_integers(client: Client) -> None:
    x = given(3, 5)
    scores, chosen = client.infer("chosen", x)
    with torch.no_grad():
        right, best = module("chosen")(x)
    assert (scores - right).abs().max() < TOLERANCE
    assert chosen.dtype == torch.int64
    assert torch.equal(chosen, best)


def test_models_are_described(client: Client) -> None:
    models = client.models()
    assert list(models) == ["net", "chosen"]
    assert models["net"].versions == ("1", "2")
    (taken,), (returned,) = models["net"].inputs, models["net"].outputs
    assert (taken.name, taken.dtype, taken.shape) == ("input", "float32", (1, 4))
    assert (returned.dtype, returned.shape) == ("float32", (1, 3))


def test_clients_at_the_same_time_get_their_own(service: Path) -> None:
    with Client(service) as one, Client(service, name="other") as other:
        with ThreadPoolExecutor(8) as pool:
            asked = [
                (given(seed), pool.submit((one, other)[seed % 2].infer, "net", given(seed)))
                for seed in range(60)
            ]
        for x, found in asked:
            assert (found.result() - expected(x)).abs().max() < TOLERANCE


@pytest.mark.parametrize(
    ("x", "kind", "said"),
    [
        (torch.full((1, 4), torch.nan), EncodingError, "NaN"),
        (torch.full((1, 4), 1e30), EncodingError, "too large"),
        (torch.zeros(1, 5), MisuseError, r"shape \(1, 5\), the model takes \(1, 4\)"),
        (torch.zeros(0, 4), MisuseError, r"shape \(0, 4\)"),
        (torch.zeros(1, 4, dtype=torch.int64), MisuseError, "takes float32"),
        (np.array([["a"] * 4]), MisuseError, "has the dtype"),
        ([0.0], MisuseError, "not list"),
    ],
)
def test_what_cannot_be_asked_is_refused_here(client: Client, x: Any, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said):
        client.infer("net", x)


def test_models_that_do_not_exist(client: Client) -> None:
    with pytest.raises(MisuseError, match="no model 'nets'; it has net 1, net 2, chosen 1"):
        client.infer("nets", given(1))
    with pytest.raises(MisuseError, match="no model 'net 3'"):
        client.infer("net", given(1), version="3")
    with pytest.raises(MisuseError, match="say which of chosen, net"):
        client.infer(None, given(1))


def test_a_model_of_another_description_is_refused(client: Client) -> None:
    (known, *_) = client._described(_Until.after(20, None))
    changed = known._replace(program="0" * 64)
    with pytest.raises(RequestRefusedError, match="no such version of a model") as refused:
        client._asked(changed, np.zeros(4, np.int64), _Until.after(20, None))
    assert refused.value.cause == "unknown"
    with pytest.raises(RequestRefusedError, match="another length") as refused:
        client._asked(known, np.zeros(5, np.int64), _Until.after(20, None))
    assert refused.value.cause == "invalid"
    assert refused.value.retry_after is None


def test_quotas_say_when_to_come_again(service: Path) -> None:
    with Client(service, name="little") as client:
        client.infer("net", given(1))
        client.infer("net", given(1))
        with pytest.raises(RequestRefusedError, match="2 times a minute; come again in") as refused:
            client.infer("net", given(1))
    assert refused.value.cause == "quota"
    assert refused.value.retry_after is not None
    assert 0 < refused.value.retry_after <= 30


def test_a_request_is_answered_once_and_its_number_is_used_once(client: Client) -> None:
    known = client._described(_Until.after(20, None))[-1]
    number, words = b"n" * 16, np.zeros(4, np.int64)
    request = client._core.request(known.digest, number, words)
    first, refused, _ = client._core.ask(request, 10, 10)
    assert refused is None
    again, _, _ = client._core.ask(request, 10, 10)
    # A result that is computed anew would come in other shares.
    assert first == again
    other = client._core.request(known.digest, number, words)
    _, refused, _ = client._core.ask(other, 10, 10)
    assert refused is not None
    assert refused[1] == "conflict"


def test_clients_that_vanish_or_talk_nonsense_harm_nobody(client: Client) -> None:
    host, port = client.service.parties[1].clients.split(":")
    for sent in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096):
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(sent)
    x = given(9)
    assert (client.infer("net", x) - expected(x)).abs().max() < TOLERANCE


@pytest.mark.parametrize("most", [600, 900, 1100])
def test_uploads_that_are_cut_off_harm_nobody(service: Path, tmp_path: Path, most: int) -> None:
    """The client's connections to one party end after so many bytes, again and again."""
    for file in service.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
        (tmp_path / file.name).chmod(0o600)
    right = Client(service).service.parties[1].clients
    with Relay(right, most) as cutting:
        cut = tmp_path / "service.toml"
        cut.write_text(cut.read_text().replace(right, cutting.address))
        with Client(service, timeout=20) as whole, Client(cut, timeout=5) as client:
            client._known = whole._described(_Until.after(20, None))
            with pytest.raises(PeerError, match="party 1"):
                client.infer("net", given(1))
            x = given(2)
            assert (whole.infer("net", x) - expected(x)).abs().max() < TOLERANCE


def test_the_command_asks_too(service: Path, tmp_path: Path) -> None:
    x = given(4)
    np.save(tmp_path / "x.npy", x.numpy())
    output = tmp_path / "y.npy"
    asked = ["client", "infer", "--service", service, "--input", tmp_path / "x.npy"]
    code, _, errors = Command(*asked, "--output", output, "--model", "net").ended(60)
    assert code == 0, errors
    assert np.abs(np.load(output) - expected(x).numpy()).max() < TOLERANCE
    code, _, errors = Command(*asked, "--output", output).ended(60)
    assert code == 1
    assert "say which of chosen, net" in errors


def test_each_party_may_die_and_service_goes_on(tmp_path: Path) -> None:
    config = write(tmp_path)
    ended, wrong, found = threading.Event(), [], []

    def ask(name: str) -> None:
        seed = 0
        with Client(config, name=name, timeout=30) as client:
            while not ended.is_set():
                x = given(seed := seed + 1)
                try:
                    result = client.infer("net", x)
                except (RequestRefusedError, PeerError) as error:
                    wrong.append(error)
                else:
                    assert (result - expected(x)).abs().max() < TOLERANCE
                    found.append(time.monotonic())

    with Parties(config) as parties, Client(config) as client, ThreadPoolExecutor(2) as pool:
        wait_for(client)
        asking = [pool.submit(ask, name) for name in ("app", "other")]
        try:
            for party in range(3):
                time.sleep(0.2)
                parties.kill(party)
                killed = time.monotonic()
                parties.start(party)
                while not found or found[-1] < killed + 0.5:
                    assert time.monotonic() < killed + 30, "service does not go on"
                    time.sleep(0.02)
        finally:
            ended.set()
        for each in asking:
            each.result(60)
    # What was on its way when a party died may be refused, by name and not without end.
    assert len(wrong) <= 6, wrong


def test_sigterm_finishes_what_waits(tmp_path: Path) -> None:
    config = write(tmp_path, limits={"wait": 2000})
    with Parties(config) as parties, Client(config) as client, ThreadPoolExecutor(4) as pool:
        wait_for(client)
        asked = [(given(seed), pool.submit(client.infer, "net", given(seed))) for seed in range(4)]
        until = time.monotonic() + 20
        while waiting(client, 1) < 4:
            assert time.monotonic() < until, "the requests do not come"
            time.sleep(0.01)
        parties.send(1, signal.SIGTERM)
        for x, found in asked:
            assert (found.result() - expected(x)).abs().max() < TOLERANCE
        code, _, errors = parties.ended(1)
        assert code == 0, errors
        assert "has answered what waited" in errors
        with pytest.raises((PeerError, RequestRefusedError)):
            client.infer("net", given(1), timeout=1)
        # The others wait for it.
        parties.start(1)
        wait_for(client)
        client.infer("net", given(1))


def test_sigterm_refuses_what_waits_if_another_party_is_away(tmp_path: Path) -> None:
    config = write(tmp_path, limits={"deadline": 120}, timeout=3)
    with Parties(config) as parties, Client(config) as client, ThreadPoolExecutor(1) as pool:
        wait_for(client)
        client.infer("net", given(1))
        parties.send(2, signal.SIGSTOP)
        asked = pool.submit(client.infer, "net", given(1))
        until = time.monotonic() + 20
        while waiting(client, 0) < 1 or shown(client, 0, "tacit_is_ready") != 0:
            assert time.monotonic() < until, "the session does not end"
            time.sleep(0.01)
        parties.send(0, signal.SIGTERM)
        with pytest.raises(RequestRefusedError) as refused:
            asked.result()
        assert (refused.value.cause, refused.value.party) == ("draining", 0)
        assert refused.value.retry_after is not None
        code, _, errors = parties.ended(0)
        assert code == 0, errors


def test_a_refusal_is_counted_once(tmp_path: Path) -> None:
    config = write(tmp_path, limits={"deadline": 0.5}, timeout=5)
    with Parties(config) as parties, Client(config) as client:
        wait_for(client)
        client.infer("net", given(1))
        parties.send(2, signal.SIGSTOP)
        with pytest.raises(RequestRefusedError) as refused:
            client.infer("net", given(1))
        assert refused.value.cause == "deadline"
        parties.send(2, signal.SIGCONT)
        wait_for(client)
        client.infer("net", given(1))
        name = 'tacit_requests_total{model="",version="",outcome="refused: deadline"}'
        assert shown(client, refused.value.party, name) == 1


def test_versions_are_switched_between_batches(tmp_path: Path) -> None:
    config = write(tmp_path)
    torch.save(module(seed=6).state_dict(), tmp_path / "new.pt")
    with Parties(config) as parties, Client(config) as client:
        wait_for(client)
        text = config.read_text()
        table = text[text.index("[[model]]") : text.index("[limits]")]
        added = table.replace("owner = 0", 'owner = 0\nversion = "2"').replace("build.pt", "new.pt")
        config.write_text(text.replace("[limits]", f"{added}\n[limits]"))
        for party in (2, 0):
            parties.send(party, signal.SIGHUP)
        assert client.models()["net"].versions == ("1",)
        parties.send(1, signal.SIGHUP)
        until = time.monotonic() + 20
        while client.models()["net"].versions != ("1", "2"):
            assert time.monotonic() < until
        x = given(1)
        with torch.no_grad():
            newer = module(seed=6)(x)
        assert (client.infer("net", x) - newer).abs().max() < TOLERANCE
        assert (client.infer("net", x, version="1") - expected(x)).abs().max() < TOLERANCE


def test_a_version_takes_the_place_of_another_while_clients_ask(tmp_path: Path) -> None:
    config = write(tmp_path)
    torch.save(module(seed=6).state_dict(), tmp_path / "new.pt")
    ended, wrong = threading.Event(), []
    x = given(1)
    with torch.no_grad():
        older, newer = expected(x), module(seed=6)(x)

    def ask(client: Client) -> None:
        while not ended.is_set():
            try:
                found = client.infer("net", x)
            except RequestRefusedError as error:
                wrong.append(error.cause)
                continue
            assert min((found - each).abs().max() for each in (older, newer)) < TOLERANCE

    with Parties(config) as parties, Client(config) as client, ThreadPoolExecutor(4) as pool:
        wait_for(client)
        asking = [pool.submit(ask, client) for _ in range(4)]
        try:
            text = config.read_text().replace("owner = 0", 'owner = 0\nversion = "2"')
            config.write_text(text.replace("build.pt", "new.pt"))
            for party in range(3):
                parties.send(party, signal.SIGHUP)
            with Client(config) as other:
                until = time.monotonic() + 20
                while other.models()["net"].versions != ("2",):
                    assert time.monotonic() < until, "clients keep the version from its place"
        finally:
            ended.set()
        for each in asking:
            each.result(60)
        assert set(wrong) <= {"unknown"}
        assert (client.infer("net", x) - newer).abs().max() < TOLERANCE


def test_the_demo_reports(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    arguments = ["serve", "demo", "--requests", 12, "--clients", 2, "--kill", 2, "--json", report]
    code, _, errors = Command(*arguments).ended(120)
    assert code == 0, errors
    found = json.loads(report.read_text())
    assert list(found) == [
        *("requests", "answered", "refused", "wrong", "seconds_p50", "seconds_p99"),
        *("requests_per_second", "sessions_opened"),
    ]
    assert found["requests"] == found["answered"] + found["refused"] == 12
    assert found["wrong"] == 0
    # At least those that were asked before the party was killed.
    assert found["answered"] >= 6
    # The parties that were not killed have opened one before, and one after.
    assert found["sessions_opened"] >= 2
