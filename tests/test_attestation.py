"""Attested parties: processes that show each other evidence, and whatever must be refused."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torchvision

import tacit
from commands import Command
from commands import tacit as run
from ports import free_ports
from tacit import _core
from tacit.commands import run_program
from tacit.commands.attest import CHALLENGE, EVIDENCE
from tacit.commands.run_report import Report
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights

PROGRAM = """
import tacit, torch
session = tacit.session()
x = tacit.share(torch.tensor([1.5, -2.0]) if session.party == 0 else None, owner=0)
print((x * x).relu().reveal().tolist())
print(session.attestation["verified"])
print(session.threat_model)
"""

ELF = Path(__file__).parent.parent / "crates" / "riscv" / "programs" / "arrays.elf"

#: The sentence of every threat model of attested parties.
PHYSICAL = "who owns the machine can forge its evidence"


def computed() -> tuple[list[float], dict[str, Any] | None, str]:
    """Runs an operator of each sort, and returns the result and what was attested."""
    session = tacit.session()
    x = tacit.share(torch.tensor([1.5, -2.0]) if session.party == 0 else None, owner=0)
    y = (x * x).relu() @ x
    return y.reveal().tolist(), session.attestation, session.threat_model


@pytest.mark.parametrize(
    ("protocol", "source", "parties", "members"),
    [
        ("replicated", None, 3, 3),
        ("replicated-malicious", None, 3, 3),
        ("additive", "ot", 2, 2),
        ("additive", "he", 2, 2),
        ("additive", "dealer", 3, 4),
    ],
)
def test_every_family_and_the_dealer_attest(
    protocol: str, source: str | None, parties: int, members: int
) -> None:
    told = tacit.launch(
        computed,
        parties=parties,
        protocol=protocol,
        source=source,
        transport="tcp",
        attestation="simulated",
    )
    plain = tacit.launch(computed, protocol="plain")[0]
    for value, attested, model in told:
        assert value == pytest.approx(plain[0], abs=1e-3)
        assert attested is not None
        assert attested["kind"] == "simulated"
        assert attested["verified"] == members - 1
        assert attested["signatures"] > 0
        assert attested["seconds"] > 0
        assert PHYSICAL in model
        assert "not what replicated-malicious protects against" in model


def inferred(
    program: Program, weights: Weights, image: torch.Tensor
) -> tuple[torch.Tensor | None, dict[str, Any] | None]:
    """Runs a compiled model: party 0 has its weights, party 1 its input and its result."""
    session = tacit.session()
    bound = program.share(weights if session.party == 0 else None, owner=0)
    given = bound.given(image if session.party == 1 else None, owner=1)
    return bound(given).reveal(to=1), session.attestation


def test_a_compiled_resnet_runs_attested() -> None:
    torch.manual_seed(0)
    model, images = torchvision.models.resnet18(weights=None).eval(), torch.rand(4, 3, 64, 64)
    with torch.no_grad():
        plain = model(images[:1])
    program, weights = tacit.compile(model, images[:1], calibrate=images)
    told = tacit.launch(
        inferred, program, weights, images[:1], transport="tcp", attestation="simulated"
    )
    found = told[1][0]
    assert found is not None
    assert (found - plain).square().sum() < 1e-3 * plain.square().sum()
    assert found.argmax(1).equal(plain.argmax(1))
    for value, attested in (told[0], told[2]):
        assert value is None
        assert attested is not None
        assert attested["verified"] == 2
    # A signature of each message at least, of which there is one for each of some fifty layers.
    assert all(attested is not None and attested["signatures"] > 50 for _, attested in told)


def test_parties_that_do_not_attest_have_none() -> None:
    (_, attested, model), *_ = tacit.launch(computed)
    assert attested is None
    assert "attested" not in model


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"attestation": "simulated"}, 'give transport="tcp"'),
        ({"attestation": "tdx", "transport": "tcp"}, "set [attestation] in the parties.toml"),
        ({"attestation": "sgx", "transport": "tcp"}, 'choose "simulated"'),
    ],
)
def test_what_cannot_attest_is_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(tacit.MisuseError, match=re.escape(says)):
        tacit.launch(computed, **options)


def policy(programs: list[str], rest: str = "allow_simulated = true") -> str:
    """Returns a policy for simulated evidence of this release."""
    _, evidence = _core.make_evidence("x", simulated=True)
    # The measurement lies at this place; crates/attest/src/simulated.rs has the format.
    measurement = evidence[9 + 129 : 9 + 177].hex()
    listed = ", ".join(f'"{each}"' for each in programs)
    return f'kind = "simulated"\nmeasurements = ["{measurement}"]\nprograms = [{listed}]\n{rest}\n'


def digest(text: str) -> str:
    """Returns the digest of a program."""
    return _core.program_digest(text.encode()).hex()


def configured(folder: Path, attestation: str, top: str = "", dealer: bool = False) -> Path:
    """Configures three parties with fresh certificates and free ports."""
    options = ["--dealer"] if dealer else []
    made = run("certificates", "--parties", 3, *options, "--out", folder)
    assert made.returncode == 0, made.stderr
    names = [f"party-{party}" for party in range(3)]
    tables = [("[[party]]", name) for name in names] + [("[dealer]", "dealer")] * dealer
    parts = [f"timeout = 20\n{top}\n"]
    for (title, name), port in zip(tables, free_ports(len(tables)), strict=True):
        parts.append(f'{title}\naddress = "127.0.0.1:{port}"\ncertificate = "{name}.pem"\n')
    parts.append(attestation and f"[attestation]\n{attestation}")
    (folder / "parties.toml").write_text("\n".join(parts))
    return folder / "parties.toml"


class Result(NamedTuple):
    """The end of a command."""

    returncode: int
    stdout: str
    stderr: str


def outputs(configs: list[Path], programs: list[str], *extra: Command) -> list[Result]:
    """Runs three parties, each with its own configuration and program."""
    commands = []
    for party, (config, text) in enumerate(zip(configs, programs, strict=True)):
        path = config.parent / f"program-{party}.py"
        path.write_text(text)
        commands.append(Command("run", "--config", config, "--party", party, path))
    return [Result(*command.ended()) for command in [*commands, *extra]]


def test_parties_on_their_own_machines_attest(tmp_path: Path) -> None:
    config = configured(tmp_path, policy([digest(PROGRAM)]))
    for result in outputs([config] * 3, [PROGRAM] * 3):
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[1] == "2"
        assert PHYSICAL in " ".join(result.stdout.split())
    examined = run("doctor", "--config", config)
    assert re.search(r"attestation.*simulated, firmware UpToDate", examined.stdout)


def test_a_dealer_of_a_configuration_attests(tmp_path: Path) -> None:
    top = 'protocol = "additive"\nsource = "dealer"'
    config = configured(tmp_path, policy([digest(PROGRAM)]), top, dealer=True)
    dealer = Command("dealer", "--config", config, "--threads", 1)
    *parties, dealt = outputs([config] * 3, [PROGRAM] * 3, dealer)
    assert dealt.returncode == 0, dealt.stderr
    for result in parties:
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[1] == "3"


def test_a_program_outside_the_policy_is_refused(tmp_path: Path) -> None:
    config = configured(tmp_path, policy([digest(PROGRAM)]))
    results = outputs([config] * 3, [PROGRAM, PROGRAM + "\n", PROGRAM])
    assert all(result.returncode == 1 for result in results)
    assert "is not among those that the policy accepts" in results[1].stderr
    assert "party 1" in results[0].stderr


def test_two_programs_of_the_policy_do_not_meet(tmp_path: Path) -> None:
    other = PROGRAM + "\n"
    config = configured(tmp_path, policy([digest(PROGRAM), digest(other)]))
    results = outputs([config] * 3, [PROGRAM, other, PROGRAM])
    assert all(result.returncode == 1 for result in results)
    assert any("another program than this party" in result.stderr for result in results)


def test_a_party_without_attestation_is_refused_by_name(tmp_path: Path) -> None:
    config = configured(tmp_path, policy([digest(PROGRAM)]))
    bare = tmp_path / "bare.toml"
    bare.write_text(config.read_text().partition("[attestation]")[0])
    results = outputs([config, bare, config], [PROGRAM] * 3)
    assert all(result.returncode == 1 for result in results)
    for result in results:
        assert re.search(r'party 1 with "protocol replicated, tacit', result.stderr), result.stderr
        assert "attested by simulated under policy" in result.stderr


def test_another_policy_is_refused_by_name(tmp_path: Path) -> None:
    config = configured(tmp_path, policy([digest(PROGRAM)]))
    other = tmp_path / "other.toml"
    other.write_text(config.read_text() + 'statuses = ["UpToDate", "OutOfDate"]\n')
    results = outputs([config, config, other], [PROGRAM] * 3)
    assert all(result.returncode == 1 for result in results)
    assert re.search(r'party 2 with "', results[0].stderr)


@pytest.mark.parametrize(
    ("table", "top", "says"),
    [
        (policy([], rest=""), "", "allow_simulated = true"),
        (policy([]).replace("simulated", "sev-snp", 1), "", "allow_simulated is for"),
        ('kind = "sev-snp"\nmeasurements = ["' + 96 * "0" + '"]', "", "needs least_tcb"),
        (policy([]).replace("simulated", "tdx", 1), "", "allow_simulated is for"),
        ('kind = "tdx"\nmeasurements = ["' + 64 * "0" + '"]', "", "needs collateral"),
        (policy(["00"]), "", "64 hexadecimal digits"),
        (policy([]) + "surprise = 1\n", "", "surprise"),
        (policy([digest(PROGRAM)]), 'protocol = "additive"\nsource = "file"', "from files"),
    ],
)
def test_a_table_that_is_wrong_is_named(tmp_path: Path, table: str, top: str, says: str) -> None:
    config = configured(tmp_path, table, top)
    examined = run("doctor", "--config", config)
    assert examined.returncode == 1
    assert says in examined.stdout


def test_the_demo_attests(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    shown = run("demo", "--samples", 8, "--attestation", "simulated", "--json", report)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(report.read_text())
    attested = found["attestation"]
    assert attested["kind"] == "simulated"
    assert attested["verified"] == [2, 2, 2]
    assert attested["signatures"] > 100
    assert 0 < attested["seconds"] < 60
    assert found["argmax_agreement"] == 1.0
    assert PHYSICAL in " ".join(shown.stdout.split())


def test_evidence_is_judged_offline(tmp_path: Path) -> None:
    out, rules = tmp_path / "evidence", tmp_path / "policy.toml"
    rules.write_text(policy([]))
    made = run("attest", "--out", out, "--simulated")
    assert made.returncode == 0, made.stderr
    challenge = (out / CHALLENGE).read_text().strip()
    judged = run("attest", "verify", out / EVIDENCE, "--policy", rules, "--challenge", challenge)
    assert judged.returncode == 0, judged.stderr
    assert "Accepted: simulated, firmware UpToDate" in judged.stdout
    stale = run("attest", "verify", out / EVIDENCE, "--policy", rules, "--challenge", "another")
    assert stale.returncode == 1
    assert "made for something else" in stale.stderr
    altered = bytearray((out / EVIDENCE).read_bytes())
    altered[-1] ^= 1
    (out / EVIDENCE).write_bytes(altered)
    report = tmp_path / "report.json"
    refused = run("attest", "verify", out / EVIDENCE, "--policy", rules, "--json", report)
    assert refused.returncode == 1
    assert json.loads(report.read_text())["accepted"] is False


def test_a_machine_without_hardware_says_so(tmp_path: Path) -> None:
    if Path("/sys/kernel/config/tsm/report").is_dir():
        pytest.skip("this machine has such hardware")
    made = run("attest", "--out", tmp_path / "evidence")
    assert made.returncode == 1
    assert "this machine cannot attest" in made.stderr
    assert "run this in a guest of TDX or SEV-SNP" in made.stderr
    assert not (tmp_path / "evidence").exists()


def test_the_compiled_program_that_runs_is_attested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "linear.tacit"
    program, _ = tacit.compile(torch.nn.Linear(3, 2).eval(), torch.rand(1, 3))
    program.save(path)
    content, attested = path.read_bytes(), []
    read = run_program.parsed_part

    def replaced_afterwards(program: Path, arguments: list[str]) -> run_program.Part:
        part = read(program, arguments)
        path.write_bytes(b"another program")
        return part

    def connect(*_: object, program: bytes, **__: object) -> None:
        attested.append(program)
        raise SystemExit

    monkeypatch.setattr(run_program, "parsed_part", replaced_afterwards)
    monkeypatch.setattr(tacit, "connect", connect)
    with pytest.raises(SystemExit):
        run_program.take_part("parties.toml", 0, path, [], 1.0, Report(str(path), 0))
    assert attested == [content]


def test_compiled_programs_run_attested(tmp_path: Path) -> None:
    numbers, report = tmp_path / "a.txt", tmp_path / "report.json"
    numbers.write_text("3 5 10\n")
    call = ["--call", "mean", "--arg", "a", "--arg", "len:a", "--secret", f"a=1:u64:{numbers}"]
    shown = run("riscv", "try", ELF, *call, "--attestation", "simulated", "--json", report)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(report.read_text())
    assert found["result"] == 6
    assert found["attestation"]["verified"] == [2, 2, 2]
    assert found["attestation"]["signatures"] > 0
    assert PHYSICAL in " ".join(shown.stdout.split())


def test_a_trial_of_a_model_says_what_was_attested(tmp_path: Path) -> None:
    program, weights = tacit.compile(torch.nn.Linear(3, 2).eval(), torch.rand(1, 3))
    program.save(tmp_path / "linear.tacit")
    weights.save(tmp_path / "linear.weights")
    np.save(tmp_path / "x.npy", np.zeros((1, 3), np.float32))
    given = ["--weights", tmp_path / "linear.weights", "--input", tmp_path / "x.npy"]
    report = tmp_path / "report.json"
    options = ["--attestation", "simulated", "--json", report]
    shown = run("try", tmp_path / "linear.tacit", *given, *options)
    assert shown.returncode == 0, shown.stderr
    for each in json.loads(report.read_text()).values():
        assert each["attestation"]["kind"] == "simulated"
        assert each["attestation"]["verified"] == [2, 2, 2]


def test_the_digest_of_a_program_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    shown = run("attest", "--program", path)
    assert shown.stdout.strip() == digest(PROGRAM)
