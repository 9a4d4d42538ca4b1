"""Services whose parties attest: to each other, and to clients before these hand in anything."""

import json
import logging
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from services import SHAPE, Parties, module, wait_for, write

from commands import tacit as run
from tacit import _core
from tacit.client import Client
from tacit.config_files import entries
from tacit.errors import PeerError, RequestRefusedError, SetupError
from tacit.serving.attesting import attestation_of, digest_of
from tacit.serving.config import Service
from tacit.serving.server import Server

TOLERANCE = 1e-3


def given(seed: int) -> torch.Tensor:
    return torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed))


def expected(x: torch.Tensor, seed: int = 5) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = module(seed=seed)(x)
    return result


def table(*programs: str) -> str:
    """Returns a table [attestation] that names programs."""
    policy = {
        "kind": "simulated",
        "allow_simulated": True,
        "measurements": [_core.simulated_measurement()],
        "programs": list(programs),
    }
    return "\n".join(["", "[attestation]", *entries(policy), ""])


def attested(folder: Path, **settings: Any) -> Path:
    """Writes a service whose parties attest."""
    config = write(folder, **settings)
    config.write_text(config.read_text() + table(digest_of(Service.read(config))))
    return config


def copied(config: Path, name: str, old: str, new: str) -> Path:
    """Writes another configuration beside one."""
    text = config.read_text()
    assert old in text
    other = config.with_name(name)
    other.write_text(text.replace(old, new))
    return other


def test_clients_verify_each_party_before_they_ask(tmp_path: Path) -> None:
    config = attested(tmp_path)
    bare = config.with_name("bare.toml")
    bare.write_text(config.read_text().partition("[attestation]")[0])
    right = _core.simulated_measurement()
    others = copied(config, "others.toml", right, "ab" * len(bytes.fromhex(right)))
    with Parties(config) as parties, Client(config) as client:
        wait_for(client)
        assert client._core.verified >= 3
        x = given(1)
        assert (client.infer("net", x) - expected(x)).abs().max() < TOLERANCE
        assert "attested parties (simulated): the evidence is simulated" in client.threat_model
        with Client(bare) as without, pytest.raises(RequestRefusedError) as refused:
            without.infer("net", x, timeout=10)
        assert refused.value.cause == "invalid"
        assert "this client does not ask for its evidence" in str(refused.value)
        assert "attested" not in without.threat_model
        with Client(others) as other, pytest.raises(PeerError) as unlike:
            other.infer("net", x, timeout=10)
        assert "it has not attested: its policy is another one than this client's" in str(
            unlike.value
        )
        # A party that the others would not accept ends, and says why.
        parties.kill(2)
        parties.start(2, bare)
        code, _, errors = parties.ended(2)
        assert code == 1
        assert "attest" in errors


def test_new_versions_are_attested_before_clients_bring_anything(tmp_path: Path) -> None:
    """The policy names the present models and the ones to come."""
    config = write(tmp_path)
    torch.save(module(seed=6).state_dict(), tmp_path / "new.pt")
    program = (tmp_path / "program.py").read_text()
    (tmp_path / "newer.py").write_text(program + "\n# Another file.\n")
    newer = copied(config, "newer.toml", "program.py:build", "newer.py:build")
    newer.write_text(newer.read_text().replace("build.pt", "new.pt"))
    programs = [digest_of(Service.read(each)) for each in (config, newer)]
    assert programs[0] != programs[1]
    for each in (config, newer):
        each.write_text(each.read_text() + table(*programs))
    x, ended = given(1), threading.Event()
    older, later = expected(x), expected(x, 6)
    refused: set[str] = set()

    def is_later(client: Client) -> bool | None:
        """Asks once; returns which version has answered, if one has."""
        try:
            found = client.infer("net", x)
        except RequestRefusedError as error:
            refused.add(error.cause)
            return None
        assert min((found - each).abs().max() for each in (older, later)) < TOLERANCE
        return bool((found - later).abs().max() < TOLERANCE)

    def ask(client: Client) -> int:
        answered = 0
        while not ended.is_set():
            answered += is_later(client) is not None
        return answered

    with Parties(config) as parties, Client(config) as client, ThreadPoolExecutor(2) as pool:
        wait_for(client)
        asking = [pool.submit(ask, client) for _ in range(2)]
        try:
            config.write_text(newer.read_text())
            before = client._core.verified
            for party in range(3):
                parties.send(party, signal.SIGHUP)
            with Client(config) as other:
                until = time.monotonic() + 60
                while not is_later(other):
                    assert time.monotonic() < until, "the new version does not come"
        finally:
            ended.set()
        assert all(each.result(60) for each in asking)
        assert refused <= {"unknown"}
        assert (client.infer("net", x) - later).abs().max() < TOLERANCE
        assert client._core.verified >= before + 3, "each party has shown new evidence"


def test_a_dealer_attests_to_the_parties(tmp_path: Path) -> None:
    config = attested(tmp_path, parties=2, protocol="additive", source="dealer")
    with Parties(config, 2, dealer=True), Client(config) as client:
        wait_for(client)
        x = given(2)
        assert (client.infer("net", x) - expected(x)).abs().max() < TOLERANCE
        assert client._core.verified >= 2


def test_a_party_runs_what_the_policy_names_or_does_not_start(tmp_path: Path) -> None:
    config = write(tmp_path)
    config.write_text(config.read_text() + table("00" * 32))
    with pytest.raises(SetupError) as raised:
        Server(config, 1)
    assert "is not among those that the policy accepts" in str(raised.value)
    assert f"`tacit attest --program {config}` prints the digest" in str(raised.value)
    examined = run("doctor", "--config", config, "--json", tmp_path / "found.json")
    assert examined.returncode == 1
    assert "WRONG program: " in examined.stdout
    # The remedy.
    digest = run("attest", "--program", config).stdout.strip()
    text = config.read_text()
    config.write_text(text.replace("00" * 32, digest))
    assert attestation_of(Service.read(config)) is not None
    examined = run("doctor", "--config", config, "--party", 1)
    assert "ok    program: the policy names these models" in examined.stdout
    assert "ok    attestation: simulated, firmware UpToDate" in examined.stdout
    assert "the evidence is simulated and proves nothing" in " ".join(examined.stdout.split())


def test_each_rule_of_a_service_is_part_of_its_program(tmp_path: Path) -> None:
    config = write(tmp_path, protocol="replicated")
    right = digest_of(Service.read(config))
    text = config.read_text()
    changes = {
        'name = "trial"': 'name = "trail"',
        'protocol = "replicated"': 'protocol = "replicated-malicious"',
        'name = "net"': 'name = "nets"',
        "owner = 0": "owner = 1",
        "program.py:build": "program.py:chosen",
        "shape = [1, 4]": "shape = [2, 4]",
        "owner = 0\n": 'owner = 0\nversion = "2"\n',
        "shape = [1, 4]\n": 'shape = [1, 4]\ndtype = "float64"\n',
    }
    for old, new in changes.items():
        assert old in text
        config.write_text(text.replace(old, new))
        assert digest_of(Service.read(config)) != right, new
    # These are not.
    for old, new in {"timeout = 10": "timeout = 11", "deadline = 5": "deadline = 6"}.items():
        assert old in text
        config.write_text(text.replace(old, new))
        assert digest_of(Service.read(config)) == right, new
    config.write_text(text)
    (tmp_path / "program.py").write_text((tmp_path / "program.py").read_text() + "\n")
    assert digest_of(Service.read(config)) != right


def test_a_policy_is_not_changed_while_parties_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = attested(tmp_path)
    server = Server(config, 0)
    before = server._wanted
    text = config.read_text()
    for changed in (
        text.partition("[attestation]")[0],
        text.replace("programs = [", f"programs = [{json.dumps('00' * 32)}, "),
    ):
        config.write_text(changed)
        with caplog.at_level(logging.ERROR, "tacit.serving.server"):
            server._read_again()
        assert "the table [attestation] has changed" in caplog.text
        assert server._wanted is before
        caplog.clear()
    # Nor does a party serve models that it may not.
    config.write_text(text.replace('name = "net"', 'name = "nets"'))
    with caplog.at_level(logging.ERROR, "tacit.serving.server"):
        server._read_again()
    assert "is not among those that the policy accepts" in caplog.text
    assert server._wanted is before
