"""Replicated sharing that verifies, in the commands, in reports and in programs. That it finds what
parties send wrongly is tested in crates/mpc."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tacit
from commands import Command
from commands import tacit as command
from ports import free_ports
from tacit import _core
from tacit.meter import Verification, verification_lines, verification_of
from tacit.providers import CONSUMING, REFERENCE

ROOT = Path(__file__).resolve().parent.parent
ELF = ROOT / "crates/riscv/programs/arrays.elf"

NAME = "replicated-malicious"
MODEL = "malicious: a party that deviates is caught before any output"

#: Parties that are assumed to follow the protocol.
TRUSTING: list[dict[str, Any]] = [
    {},
    {"protocol": CONSUMING, "parties": 2, "source": "dealer"},
    {"protocol": REFERENCE, "parties": 2},
]


def is_entry(found: Any, parties: int = 3) -> bool:
    """Returns whether a report's entry on verification is complete."""
    return (
        set(found) == {"seconds", "bytes_sent_per_party", "rounds"}
        and found["seconds"] > 0
        and len(found["bytes_sent_per_party"]) == parties
        and min(found["bytes_sent_per_party"]) > 0
        and found["rounds"] > 0
    )


# Programs.


def test_the_error_blames_another_party() -> None:
    assert issubclass(tacit.CheatingError, tacit.PeerError)
    assert not issubclass(tacit.CheatingError, tacit.DesyncError)


def test_results_are_those_of_the_other_protocols() -> None:
    def program() -> torch.Tensor | None:
        x = tacit.share(torch.tensor([1.5, -2.0]), owner=0)
        tacit.verify()
        return (x * x).relu().reveal(to=1)

    found = tacit.launch(program, protocol=NAME)
    assert [each is None for each in found] == [True, False, True]
    torch.testing.assert_close(found[1], torch.tensor([2.25, 4.0]), atol=1e-4, rtol=0)


def test_a_program_s_verification_is_counted() -> None:
    def program() -> list[Verification | None]:
        meter, found = tacit.session().meter, []
        x = tacit.share(torch.ones(100), owner=0)
        x = x * x
        for step in (tacit.verify, tacit.verify, x.reveal, lambda: (x * x).reveal()):
            step()
            found.append(meter.verification)
        return found

    for found in tacit.launch(program, protocol=NAME):
        first, again, revealed, more = found
        assert 0 < first.rounds == again.rounds == revealed.rounds < more.rounds
        assert 0 < first.bytes_sent == again.bytes_sent < more.bytes_sent
        assert 0 < first.seconds < more.seconds


def test_the_end_of_a_program_that_reveals_nothing_verifies_it() -> None:
    def program() -> Any:
        x = tacit.share(torch.ones(100), owner=0)
        assert tacit.session().meter.verification == Verification(0.0, 0, 0)
        _ = x * x
        return tacit.session().meter

    for meter in tacit.launch(program, protocol=NAME):
        assert meter.verification.rounds > 0


@pytest.mark.parametrize("setting", TRUSTING, ids=lambda each: each.get("protocol", "replicated"))
def test_under_other_protocols_nothing_is_verified(setting: dict[str, Any]) -> None:
    def program() -> tuple[int, Verification | None]:
        x = tacit.share(torch.ones(100), owner=0)
        _ = x * x
        meter = tacit.session().meter
        before = meter.total.bytes_sent
        tacit.verify()
        return meter.total.bytes_sent - before, meter.verification

    assert set(tacit.launch(program, **setting)) == {(0, None)}


def test_verification_is_a_step_of_the_program() -> None:
    def program() -> None:
        x = tacit.share(torch.ones(3), owner=0)
        if tacit.session().party == 1:
            tacit.verify()
        (x * x).reveal()

    with pytest.raises(tacit.DesyncError):
        tacit.launch(program)
    with pytest.raises(tacit.NoSessionError):
        tacit.verify()


# Checked mode.


def payroll(raised: int) -> tuple[int, tuple[str, ...]]:
    """Sums over salaries in cents and times in microseconds: one that fits, and one that may not.

    Returns the first one, and the operators that the second one names.
    """
    salaries = tacit.share(torch.tensor([5_230_017, 7_105_599, 12_400_000_00]), owner=0)
    times = tacit.share(torch.tensor([1_714_521_600_000_000, 1_714_521_600_000_001, 7]), owner=1)
    paid = (salaries * tacit.share(torch.tensor([12, 12, 1]), owner=2)).sum()
    late = salaries * (times * raised)
    try:
        late.reveal()
        refused: tuple[str, ...] = ()
    except tacit.RangeError as error:
        refused = error.operators
    return int(paid.reveal()), refused


@pytest.mark.parametrize(("raised", "refused"), [(1, True), (0, False)])
def test_what_overflows_is_refused_by_name_between_processes(raised: int, refused: bool) -> None:
    told = tacit.launch(payroll, raised, protocol=NAME, transport="tcp", checked=True)
    paid, operators = told[0]
    assert all(each == told[0] for each in told)
    assert paid == 12 * (5_230_017 + 7_105_599) + 12_400_000_00
    assert [name.split(" ")[0] for name in operators] == ["aten.mul.Tensor"] * refused


def test_checks_are_verified() -> None:
    def program() -> Any:
        x = tacit.share(torch.tensor([1.5, -2.0, 1e6]), owner=0)
        tacit.verify()
        before = tacit.session().meter.verification
        assert before is not None
        try:
            (x * x).reveal()
        except tacit.RangeError:
            after = tacit.session().meter.verification
            assert after is not None
            return after.since(before).bytes_sent > 0
        return None

    assert tacit.launch(program, protocol=NAME, checked=True) == [True] * 3


# Reports.


def test_entries_of_reports() -> None:
    first, other = Verification(1.0, 300, 4), Verification(3.0, 500, 6)
    entry = {"seconds": 1.5, "bytes_sent_per_party": [150, 250], "rounds": 3}
    assert verification_of([first, other], runs=2) == {"verification": entry}
    assert verification_of([None, None]) == {}
    assert other.since(first) == Verification(2.0, 200, 2)
    assert verification_lines({}) == []
    line = "of which verification: 1.500 s, 0.000 MB a party at most, 3 rounds"
    assert verification_lines({"verification": entry}) == [line]


#: Calls of a command, without the option for the report, by name.
Commands = dict[str, list[object]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("malicious")
    (folder / "model.py").write_text(
        "import torch\n\n\ndef build():\n"
        "    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()), torch.ones(1, 4)\n"
    )
    model, x = nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.ones(1, 4)
    program, weights = tacit.compile(model.eval(), x)
    program.save(folder / "model.tacit")
    weights.save(folder / "model.weights")
    np.save(folder / "x.npy", x.numpy())
    (folder / "a.txt").write_text("3 5 10\n")
    (folder / "program.py").write_text(
        "import tacit, torch\n"
        "x = tacit.share(torch.ones(100), owner=0)\n"
        "x * x\n"  # nothing is revealed
    )
    return folder


def calls(folder: Path) -> Commands:
    """Returns calls that the option for the protocol can follow."""
    secret = ["--call", "mean", "--arg", "a", "--arg", "len:a", "--secret"]
    mean = [ELF, *secret, f"a=1:u64:{folder}/a.txt"]
    compiled = [folder / "model.tacit", "--weights", folder / "model.weights"]
    return {
        "demo": ["demo", "--samples", 4],
        "bench": ["bench", "--only", "argmax_1000x10"],
        "compiled": ["bench", "--only", "compiled_logistic_regression"],
        "try": ["try", *compiled, "--input", folder / "x.npy"],
        "cost": ["cost", f"{folder}/model.py:build"],
        "riscv try": ["riscv", "try", *mean],
        "riscv cost": ["riscv", "cost", *mean],
    }


#: By the call: its report, and what it printed.
Done = Callable[[str], tuple[Any, str]]


@pytest.fixture(scope="module")
def done(folder: Path) -> Done:
    """Runs each call once."""
    found: dict[str, tuple[Any, str]] = {}

    def run(call: str) -> tuple[Any, str]:
        if call not in found:
            path = folder / "report.json"
            ended = command(*calls(folder)[call], "--protocol", NAME, "--json", path)
            assert ended.returncode == 0, ended.stderr
            found[call] = json.loads(path.read_text()), " ".join(ended.stdout.split())
        return found[call]

    return run


@pytest.mark.parametrize("call", calls(Path()))
def test_commands_run(call: str, done: Done) -> None:
    report, printed = done(call)
    # It is the name of a field, whose content reports have.
    assert '"verified"' not in json.dumps(report)
    if "cost" not in call:
        model = "no single party learns anything, any two together learn everything"
        assert f"Threat model: 3 parties, {model}; {MODEL}" in printed


@pytest.mark.parametrize("call", calls(Path()))
def test_reports_of_commands_have_what_verification_took(call: str, done: Done) -> None:
    report, printed = done(call)
    assert "of which verification: " in printed
    reports = report if isinstance(report, list) else [report]
    kinds = ("compiled", "eager")
    for each in reports:
        parts = [each[kind] for kind in kinds if kind in each]
        assert all(is_entry(part["verification"]) for part in parts)
        assert is_entry(each["verification"]) if call != "try" else len(parts) == 2


def configured(folder: Path, protocol: str = NAME) -> Path:
    """Returns the example's configuration with a protocol, and new certificates and ports."""
    made = command("certificates", "--parties", 3, "--out", folder / "certificates")
    assert made.returncode == 0, made.stderr
    text = (ROOT / "examples" / "parties.toml").read_text()
    for party, port in enumerate(free_ports(3)):
        text = text.replace(f"127.0.0.1:740{party}", f"127.0.0.1:{port}")
    path = folder / "parties.toml"
    path.write_text(text.replace('\nprotocol = "replicated" ', f'\nprotocol = "{protocol}" '))
    return path


def reports(folder: Path, words: Callable[[list[object]], list[object]]) -> list[dict[str, Any]]:
    """Runs a command in three parties, each with what names it; returns their reports."""
    config, files = configured(folder), [folder / f"{party}.json" for party in range(3)]
    started = [
        Command(*words(["--config", config, "--party", party, "--json", file]))
        for party, file in enumerate(files)
    ]
    for each in started:
        code, _, errors = each.ended()
        assert code == 0, errors
        assert MODEL in errors
    return [json.loads(file.read_text()) for file in files]


def test_parties_of_a_configuration_run_a_program(folder: Path, tmp_path: Path) -> None:
    found = reports(tmp_path, lambda party: ["run", *party, folder / "program.py"])
    for report in found:
        assert report["protocol"] == NAME
        assert report["verification"].keys() == {"seconds", "bytes_sent", "rounds"}
        # The end of the program verifies, since nothing is revealed before.
        assert report["verification"]["rounds"] > 0


def test_parties_of_a_configuration_call_a_function(folder: Path, tmp_path: Path) -> None:
    called = calls(folder)["riscv try"][2:]
    found = reports(tmp_path, lambda party: ["riscv", "run", *called, *party])
    assert [report["result"] for report in found] == [6] * 3
    assert found[0]["verification"] == found[1]["verification"] == found[2]["verification"]
    assert is_entry(found[0]["verification"])


def test_the_page_of_a_launch_has_it(tmp_path: Path) -> None:
    def program() -> None:
        x = tacit.share(torch.ones(3), owner=0)
        (x * x).reveal()

    tacit.launch(program, protocol=NAME, report=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count('"verification": {"seconds": ') == 3


@pytest.mark.parametrize("odd", range(3))
def test_parties_that_mix_protocols_are_refused(odd: int, tmp_path: Path) -> None:
    config = str(configured(tmp_path))

    def connect(party: int) -> str:
        protocol = "replicated" if party == odd else None
        # A party that has not compared yet may hear it from a peer that has.
        with pytest.raises((tacit.SetupError, tacit.PeerError)) as error:
            _core.Session.connect(config, party, protocol, 60.0)
        return str(error.value)

    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(connect, range(3)))
    for each in said:
        assert f"the parties were started differently: party {odd} with" in each
        assert "protocol replicated-malicious" in each


# Federations.


def test_the_demonstration_of_federations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--clients", 3, "--rounds", 1, "--json", "demo.json"]
    ended = command("federated", "demo", "--protocol", NAME, *options)
    assert ended.returncode == 0, ended.stderr
    assert MODEL in " ".join(ended.stdout.split())
    assert is_entry(json.loads(Path("demo.json").read_text())["verification"])
    assert command("federated", "demo", "--protocol", "replicated", *options).returncode == 0
    assert not {"verification", "verified"} & json.loads(Path("demo.json").read_text()).keys()


@pytest.mark.parametrize(
    ("kind", "protocol", "said"),
    [
        ("cost", CONSUMING, "protocol = 'additive' serves no federation; known are replicated, "),
        ("accuracy", CONSUMING, "protocol = 'additive' serves no federation"),
        ("attacks", "replicated", "--protocol is not for attacks"),
        ("privacy", "replicated", "--protocol is not for privacy"),
    ],
)
def test_experiments_have_the_servers_protocol(
    kind: str, protocol: str, said: str, tmp_path: Path
) -> None:
    ended = command(
        "federated", "experiment", kind, "--protocol", protocol, "--out", tmp_path / "report"
    )
    assert ended.returncode == 1
    assert said in ended.stderr
    assert not (tmp_path / "report").exists()


# Cheats.


@pytest.mark.parametrize("liar", range(3))
def test_a_party_that_computes_with_other_shares_is_found_by_all(liar: int) -> None:
    """It changes a share of a secret, and otherwise follows the program."""

    def program() -> str:
        x = tacit.share(torch.linspace(-3, 3, 40), owner=0)
        layer = torch.relu(x * x - 1)
        if tacit.session().party == liar:
            layer._parts[0].view(-1)[7] += 1 << 20
        try:
            (layer * x).reveal()
        except tacit.CheatingError as error:
            return str(error)
        return "nothing was found"

    for party, told in enumerate(tacit.launch(program, protocol=NAME)):
        others = " or ".join(f"party {other}" for other in range(3) if other != party)
        assert told.startswith(f'{others} cheated between "')
        assert told.endswith('"; nothing of this was revealed')
