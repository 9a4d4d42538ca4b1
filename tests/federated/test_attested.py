"""Federations whose servers attest: to each other, and to clients before these hand in anything."""

import datetime
import json
import re
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from worlds import LONG, written

from commands import tacit as run
from tacit import _core
from tacit.errors import MisuseError, PeerError, RefusedError, SetupError
from tacit.federated import Client
from tacit.federated.aggregators import aggregator
from tacit.federated.privacy.account import Account
from tacit.federated.rounds.round_state import Step
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Combine, Noise, Round, Select, Spend, Validate
from tacit.federated.service.attesting import (
    add_trial,
    attestation_of,
    check_adapted,
    digest_of,
    rules_of,
)
from tacit.federated.service.config import Federation
from tacit.federated.service.local import Plan, ServerReport, Servers
from tacit.federated.service.server import Server
from tacit.federated.service.startup import account_of

#: The sentence of every threat model of attested servers.
PHYSICAL = "who owns the machine can forge its evidence"


def learned(
    folder: Path, settings: Settings, attestation: str | None
) -> tuple[torch.Tensor, list[ServerReport], list[Client]]:
    """Runs two rounds between processes; returns the model, the last reports, and the clients."""
    folder.mkdir()
    start = torch.linspace(-1, 1, 9)
    plan = Plan(4, settings, start, rounds=2, seconds=LONG, attestation=attestation)
    with Servers(folder, plan) as servers, ThreadPoolExecutor(4) as pool:
        clients = [Client(servers.config, number) for number in range(4)]
        for _ in range(2):
            tasks = list(pool.map(lambda client: client.join(LONG), clients))
            trained = [
                task.model + 0.01 * torch.sin((number + 1.0) * start)
                for number, task in enumerate(tasks)
            ]
            list(pool.map(Client.submit, clients, trained))
            models = list(pool.map(lambda client: client.result(LONG), clients))
            reports = servers.reports()
        assert all(torch.equal(model, models[0]) for model in models)
        return models[0], reports, clients


@pytest.mark.parametrize(
    "settings",
    [
        Settings(norm=1.0),
        Settings(norm=1.0, bound="none", protocol="replicated-malicious"),
        Settings(norm=1.0, aggregator="fltrust", root=3),
    ],
    ids=["fedavg", "malicious", "fltrust"],
)
def test_an_attested_federation_learns_what_any_other_does(
    tmp_path: Path, settings: Settings
) -> None:
    plain, bare, _ = learned(tmp_path / "plain", settings, None)
    model, reports, clients = learned(tmp_path / "attested", settings, "simulated")
    # Fixed point rounds at random, by a unit of 2^-22 of the bound.
    assert torch.allclose(model, plain, atol=1e-5)
    for report in reports:
        assert report.report.accepted == bare[0].report.accepted
        assert set(report.report.accepted) >= {0, 1, 2}
        assert report.attestation is not None
        assert (report.attestation["kind"], report.attestation["verified"]) == ("simulated", 2)
        assert report.attestation["signatures"] > 0
        assert PHYSICAL in report.threat_model
    for client in clients:
        assert client.verified == 3
        assert PHYSICAL in client.threat_model
    assert all(report.attestation is None for report in bare)
    assert "attested" not in bare[0].threat_model


def trial(folder: Path, clients: int = 2) -> Path:
    """Writes the files of a federation whose servers attest."""
    config = written(folder, clients)
    add_trial(config, "simulated")
    return config


def of_client(config: Path, change: Callable[[str], str]) -> Path:
    """Writes another file next to a configuration."""
    path = config.with_name("other.toml")
    path.write_text(change(config.read_text()))
    return path


def test_a_client_says_what_is_promised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = trial(tmp_path)
    with caplog.at_level("INFO", "tacit"):
        client = Client(config, 0)
    assert PHYSICAL in client.threat_model
    assert "no single party learns anything" in client.threat_model
    assert caplog.messages == [f"client 0: {client.threat_model}"]
    assert client.verified == 0
    bare = Client(of_client(config, without), 0)
    assert "attested" not in bare.threat_model


def without(text: str) -> str:
    """Removes the table."""
    return text.partition("[attestation]")[0]


def refused_by(servers: Path, client: Path, error: type[Exception], says: str) -> None:
    """Opens the intakes of three servers, and checks that a client is refused, or refuses."""
    federation = Federation.read(servers)
    certificates = federation.certificates_of_servers()
    intakes = []
    for number, server in enumerate(federation.servers):
        judged = federation.attestation and _core.Attestation.of_server(
            federation.attestation, rules_of(federation)
        )
        intakes.append(
            _core.Intake(
                _core.Listener(server.listen_for_clients),
                federation.name,
                certificates,
                number,
                _core.read_private_key(str(server.key)),
                federation.certificates_of_clients(),
                judged or None,
            )
        )
    with pytest.raises(error, match=re.escape(says)) as raised:
        Client(client, 0).join(LONG)
    assert "server" in str(raised.value)
    del intakes


def test_a_client_without_the_table_is_refused(tmp_path: Path) -> None:
    config = trial(tmp_path)
    says = "this client does not ask for its evidence"
    refused_by(config, of_client(config, without), RefusedError, says)


def test_servers_without_the_table_are_refused(tmp_path: Path) -> None:
    config = trial(tmp_path)
    says = "it has not attested: this server does not attest: its federation.toml has no table"
    refused_by(of_client(config, without), config, PeerError, says)


def test_another_policy_is_refused(tmp_path: Path) -> None:
    config = trial(tmp_path)
    other = of_client(config, lambda text: text + 'statuses = ["UpToDate", "OutOfDate"]\n')
    refused_by(config, other, PeerError, "its policy is another one than this client's")


def test_another_measurement_is_refused(tmp_path: Path) -> None:
    config = trial(tmp_path)
    right = _core.simulated_measurement()
    config.write_text(config.read_text().replace(right, 96 * "0"))
    says = f"it has not attested: the measurement {right} is not among those that the policy"
    refused_by(config, config, PeerError, says)


def test_another_federation_is_refused(tmp_path: Path) -> None:
    config = trial(tmp_path)
    other = of_client(config, lambda text: text.replace('name = "test"', 'name = "tests"'))
    refused_by(config, other, RefusedError, "refused: this server is of another federation")


def test_a_table_that_is_wrong_is_named(tmp_path: Path) -> None:
    config = trial(tmp_path)
    right = config.read_text()
    for before, after, says in (
        ("allow_simulated = true\n", "", "set allow_simulated = true"),
        ('"simulated"', '"tdx"', "allow_simulated is for"),
        ("measurements = [", 'measurements = ["00", ', "96 hexadecimal digits"),
        ("allow_simulated", "surprise = 1979-05-27\nallow_simulated", "[attestation] has dates"),
        ("allow_simulated", "surprise = 1\nallow_simulated", "surprise"),
    ):
        assert before in right
        config.write_text(right.replace(before, after))
        with pytest.raises(SetupError, match=re.escape(says)) as raised:
            Federation.read(config)
        assert str(config) in str(raised.value)


def collateral_of_amds_form(path: Path) -> None:
    """Writes a certificate and a revocation list of the test's own, signed as AMD signs."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ARK-Own")])
    begin = datetime.datetime.now(datetime.UTC)
    end = begin + datetime.timedelta(days=1)
    how = padding.PSS(padding.MGF1(hashes.SHA384()), 48)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(begin)
        .not_valid_after(end)
        .sign(key, hashes.SHA384(), rsa_padding=how)
    )
    revoked = x509.CertificateRevocationListBuilder(name, begin, end).sign(
        key, hashes.SHA384(), rsa_padding=how
    )
    pem = Encoding.PEM
    path.write_bytes(certificate.public_bytes(pem) + revoked.public_bytes(pem))


def test_nested_tables_reach_the_policy(tmp_path: Path) -> None:
    config = written(tmp_path, 2)
    collateral_of_amds_form(tmp_path / "amd.pem")
    table = """
[attestation]
kind = "sev-snp"
measurements = ["{digits}"]
collateral = "amd.pem"
allow_smt = true
[attestation.least_tcb]
milan = {{ bootloader = 4, tee = 0, snp = 24, microcode = 219 }}
genoa = {{ bootloader = 4, tee = 0, snp = 24, microcode = 219 }}
"""
    right = config.read_text() + table.format(digits=96 * "a")
    config.write_text(right)
    federation = Federation.read(config)
    assert federation.attestation is not None
    assert _core.Attestation.of_client(federation.attestation).kind == "sev-snp"
    given = tomllib.loads(right)["attestation"]
    given["collateral"] = str(tmp_path / "amd.pem")
    assert tomllib.loads(federation.attestation) == given
    config.write_text(right.replace("snp = 24", 'snp = 24, "a b" = [[1], { c = inf }]'))
    with pytest.raises(SetupError, match="a b"):
        Federation.read(config)
    config.write_text(right.replace("snp = 24", "snp = 300"))
    with pytest.raises(SetupError, match="300"):
        Federation.read(config)


def test_rules_outside_the_policy_are_refused_with_a_remedy(tmp_path: Path) -> None:
    """The remedy is followed once."""
    config = trial(tmp_path)
    config.write_text(config.read_text().replace("seconds = 60.0", "seconds = 61.0"))
    says = "is not among those that the policy accepts"
    with pytest.raises(SetupError, match=says) as raised, Server.open(config, 0, threads=1):
        raise AssertionError
    assert f"`tacit attest --program {config}`" in str(raised.value)
    examined = run("doctor", "--config", config)
    assert examined.returncode == 1
    assert "WRONG program" in examined.stdout
    digest = run("attest", "--program", config).stdout.strip()
    assert digest == digest_of(Federation.read(config))
    assert digest in str(raised.value)
    config.write_text(re.sub(r"programs = .*", f'programs = ["{digest}"]', config.read_text()))
    assert "ok    program" in run("doctor", "--config", config).stdout


def test_doctor_examines_attestation(tmp_path: Path) -> None:
    config = trial(tmp_path)
    examined = run("doctor", "--config", config, "--server", 0, "--wait", 0.1)
    assert re.search(r"ok +attestation: simulated, firmware UpToDate", examined.stdout)
    assert PHYSICAL in " ".join(examined.stdout.split())
    config.write_text(config.read_text().replace(_core.simulated_measurement(), 96 * "0"))
    examined = run("doctor", "--config", config, "--server", 0, "--wait", 0.1)
    assert re.search(r"WRONG attestation: .*is not among", examined.stdout)


def test_the_digest_is_of_the_rules_alone(tmp_path: Path) -> None:
    config = written(tmp_path, 3)
    right = config.read_text()

    def of(before: str = "", after: str = "") -> str:
        assert before in right
        config.write_text(right.replace(before, after))
        return digest_of(Federation.read(config))

    own = tmp_path / "mine.py"
    own.write_text("def combine(vectors, weights):\n    return vectors.mean(0)\n")
    noise = 'noise = "pairs"\nsigma = 1.0\ndivisor = 2.0\n'
    differing = [
        of(),
        of("seconds = 60.0", "seconds = 61.0"),
        of("count = 3", "count = 2"),
        of("seconds = 60.0", "seconds = 60.0\nminimum_clients = 3"),
        of("seconds = 60.0", f"seconds = 60.0\n{noise}"),
        of("seconds = 60.0", f"seconds = 60.0\n{noise}[privacy]\ndelta = 1e-6"),
        of("seconds = 60.0", f"seconds = 60.0\n{noise}[privacy]\nbudget = 3.0"),
        of("seconds = 60.0", f'seconds = 60.0\naggregator = "{own}:combine"'),
    ]
    own.write_text("def combine(vectors, weights):\n    return vectors.sum(0)\n")
    differing.append(of("seconds = 60.0", f'seconds = 60.0\naggregator = "{own}:combine"'))
    assert len(set(differing)) == len(differing)
    assert of("timeout = 20", "timeout = 30") == differing[0]
    assert of('name = "test"', 'name = "other"') == differing[0]
    config.write_text(right)
    add_trial(config, "simulated")
    assert digest_of(Federation.read(config)) == differing[0]


@dataclass(frozen=True)
class Other(Step):
    """A user's own step."""

    factor: float = 1.0


def test_steps_other_than_the_settings_count(tmp_path: Path) -> None:
    """Whatever a server's program does to a round's steps, it has another digest."""
    rules = 'noise = "pairs"\nsigma = 1.0\ndivisor = 2.0\nminimum_clients = 2\n'
    rules += 'aggregator = "fedavg"\n'
    federation = Federation.read(written(tmp_path, 2, rules=rules))
    account = account_of(federation, 0)

    def of(change: Callable[[list[Step]], list[Step]], **others: Any) -> str:
        usual = Round.of(federation.settings, account, federation.clients)
        changed = replace(usual, steps=change(list(usual.steps)), **others)
        return digest_of(federation, changed, account)

    def but(kind: type[Step], **changes: Any) -> Callable[[list[Step]], list[Step]]:
        return lambda steps: [
            replace(step, **changes) if isinstance(step, kind) else step for step in steps
        ]

    def lacking(kind: type[Step]) -> Callable[[list[Step]], list[Step]]:
        return lambda steps: [step for step in steps if not isinstance(step, kind)]

    assert of(lambda steps: steps) == digest_of(federation)
    krum = aggregator("krum")
    differing = [
        digest_of(federation),
        *(of(lacking(kind)) for kind in (Select, Validate, Noise, Spend)),
        of(but(Noise, deviation=1e-9)),
        of(but(Validate, bound="none")),
        of(but(Validate, minimum=1)),
        of(but(Combine, aggregator=krum)),
        of(but(Combine, aggregator=krum.having(attackers=1))),
        of(but(Combine, aggregator=replace(aggregator("fedavg"), combine=krum.combine))),
        of(lambda steps: [*steps[1:], steps[0]]),
        of(lambda steps: [*steps, Other()]),
        of(lambda steps: [*steps, Other(2.0)]),
        of(lambda steps: steps, unit=2.0),
    ]
    assert len(set(differing)) == len(differing)
    account.spend()
    assert of(lambda steps: steps) == differing[0]
    assert of(lacking(Noise)) == differing[3]


def test_a_server_without_noise_does_not_open(tmp_path: Path) -> None:
    """Its policy names the rules of the file alone. The remedy is followed once."""
    config = written(tmp_path, 2, rules='noise = "pairs"\nsigma = 1.0\ndivisor = 2.0\n')
    add_trial(config, "simulated")

    def silent(settings: Settings, account: Account | None, clients: int) -> Round:
        usual = Round.of(settings, account, clients)
        return replace(usual, steps=[step for step in usual.steps if type(step) is not Noise])

    says = "has other steps than its settings describe"
    with (
        pytest.raises(SetupError, match=says) as raised,
        Server.open(config, 0, threads=1, rounds=silent),
    ):
        raise AssertionError
    federation = Federation.read(config)
    account = account_of(federation, 0)
    rules = silent(federation.settings, account, federation.clients)
    digest = digest_of(federation, rules, account)
    assert digest in str(raised.value)
    config.write_text(re.sub(r"programs = .*", f'programs = ["{digest}"]', config.read_text()))
    assert attestation_of(Federation.read(config), rules, account) is not None


def test_an_adapted_round_is_the_attested_one(tmp_path: Path) -> None:
    """A server whose bound follows a quantile makes each round anew."""
    own = tmp_path / "mine.py"
    own.write_text("def combine(vectors, weights):\n    return vectors.mean(0)\n")
    rules = f'aggregator = "{own}:combine"\nquantile = 0.5\n'
    config = written(tmp_path, 3, rules=rules)
    add_trial(config, "simulated")
    federation = Federation.read(config)
    settings = replace(federation.settings, norm=2.0)
    attested, usual = (Round.of(each, None, 3) for each in (federation.settings, settings))
    check_adapted(federation, settings, None, attested, usual)
    without_check = [
        replace(step, bound="none") if isinstance(step, Validate) else step for step in usual.steps
    ]
    says = "others than this server attests"
    for steps in (without_check, usual.steps[1:]):
        with pytest.raises(MisuseError, match=says):
            check_adapted(federation, settings, None, attested, replace(usual, steps=steps))
    own.write_text("def combine(vectors, weights):\n    return vectors.sum(0)\n")
    with pytest.raises(MisuseError, match=says):
        check_adapted(federation, settings, None, attested, Round.of(settings, None, 3))


def test_the_aggregator_that_runs_is_attested(tmp_path: Path) -> None:
    """A file that changes after it was loaded, or lies elsewhere, changes nothing."""
    own = tmp_path / "mine.py"
    own.write_text("def combine(vectors, weights):\n    return vectors.mean(0)\n")
    rules = f'aggregator = "{own}:combine"\n'
    config = written(tmp_path, 3, rules=rules)
    federation = Federation.read(config)
    loaded = Round.of(federation.settings, None, federation.clients)
    right = digest_of(federation)
    assert digest_of(federation, loaded) == right
    elsewhere = tmp_path / "other" / "mine.py"
    elsewhere.parent.mkdir()
    own.rename(elsewhere)
    moved = Federation.read(of_client(config, lambda text: text.replace(str(own), str(elsewhere))))
    assert digest_of(moved) == right
    assert digest_of(moved, Round.of(moved.settings, None, 3)) == right
    elsewhere.write_text("def combine(vectors, weights):\n    return vectors.sum(0)\n")
    assert digest_of(moved) != right
    assert digest_of(moved, replace(loaded, steps=loaded.steps)) != digest_of(moved)


def test_servers_with_other_rules_do_not_meet(tmp_path: Path) -> None:
    """Both rules are in the policy, so that only the other servers can find the difference."""
    config = trial(tmp_path)
    other = of_client(config, lambda text: text.replace("seconds = 60.0", "seconds = 61.0"))
    programs = [digest_of(Federation.read(path)) for path in (config, other)]
    for path in (config, other):
        named = f'programs = ["{programs[0]}", "{programs[1]}"]'
        path.write_text(re.sub(r"programs = .*", named, path.read_text()))

    def opened(number: int) -> Exception | None:
        try:
            with Server.open(other if number == 2 else config, number, threads=1):
                return None
        except Exception as error:
            return error

    with ThreadPoolExecutor(3) as pool:
        errors = [str(error) for error in pool.map(opened, range(3))]
    assert all("server 2" in error for error in errors[:2]), errors
    assert any("it runs another program than this server" in error for error in errors), errors


def test_the_demo_attests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "report.json"
    shown = run(
        "federated",
        "demo",
        *("--clients", 3, "--rounds", 1, "--attestation", "simulated", "--json", report),
        folder=tmp_path,
    )
    assert shown.returncode == 0, shown.stderr
    found: dict[str, Any] = json.loads(report.read_text())["attestation"]
    assert found["kind"] == "simulated"
    assert found["verified"] == [2, 2, 2]
    assert found["verified_by_clients"] == [3, 3, 3]
    assert found["signatures"] > 0
    assert 0 < found["seconds"] < 60
    assert PHYSICAL in " ".join(shown.stdout.split())
