"""The command line, as a new user meets it."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import Command, tacit
from ports import free_ports
from tacit import cli
from tacit.bench.attested import ATTESTED
from tacit.bench.cases import CASES
from tacit.bench.compiled import COMPILED
from tacit.bench.federations import FEDERATIONS
from tacit.bench.programs import PROGRAMS
from tacit.bench.rounds import OPERATIONS, rounds_by_parties
from tacit.bench.run import chosen
from tacit.bench.services import SERVICES
from tacit.bench.tables import rounds
from tacit.commands import operators, options
from tacit.commands.correlations import to_bytes

ROOT = Path(__file__).resolve().parent.parent
TACIT = [sys.executable, "-m", "tacit"]

DEMO_KEYS = {
    "parties",
    "protocol",
    "source",
    "samples",
    "accuracy_plain",
    "accuracy_secret",
    "argmax_agreement",
    "max_abs_logit_error",
    "seconds",
    "seconds_waiting_for_correlations",
    "bytes_sent_per_party",
    "correlation_bytes_sent_per_party",
    "correlation_bytes_received_per_party",
    "rounds",
    "layers",
    "device",
}
BENCH_KEYS = {
    "name",
    "protocol",
    "parties",
    "source",
    "transport",
    "device",
    "threads",
    "warm_up",
    "repetitions",
    "runs_in_each",
    "seconds_median",
    "seconds_min",
    "seconds_waiting_for_correlations_median",
    "bytes_sent_per_party",
    "correlation_bytes_sent_per_party",
    "correlation_bytes_received_per_party",
    "rounds",
}


def from_a_shell(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own, as a shell does."""
    words = [*TACIT, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


def test_demo(tmp_path: Path) -> None:
    done = from_a_shell("demo", "--json", tmp_path / "demo.json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads((tmp_path / "demo.json").read_text())
    assert set(outcome) == DEMO_KEYS
    assert (outcome["parties"], outcome["protocol"], outcome["samples"]) == (3, "replicated", 540)
    assert outcome["accuracy_plain"] >= 0.97
    assert outcome["accuracy_secret"] >= 0.97
    assert outcome["argmax_agreement"] >= 0.99
    assert outcome["max_abs_logit_error"] < 0.01
    assert len(outcome["bytes_sent_per_party"]) == 3
    names = [layer["name"] for layer in outcome["layers"]]
    assert names[:4] == ["conv1", "norm1", "relu1", "pool1"]
    assert "classifying in secret" in done.stderr
    for said in (
        "in the clear",
        "in secret",
        "conv1",
        "largest logit error",
        "Threat model: 3 parties",
    ):
        assert said in done.stdout
    assert "orrelations" not in done.stdout
    assert outcome["source"] is None
    assert outcome["correlation_bytes_sent_per_party"] == [0, 0, 0]


@pytest.mark.parametrize(
    ("parties", "source"),
    [
        (2, None),
        (5, "dealer"),
        *(
            pytest.param(*setting, marks=pytest.mark.long)
            for setting in [(2, "he"), (3, "dealer"), (8, "dealer")]
        ),
    ],
)
def test_demo_by_additive_sharing(parties: int, source: str | None, tmp_path: Path) -> None:
    arguments = ["--protocol", "additive", "--parties", parties, "--samples", 16]
    arguments += ["--source", source] if source else []
    done = tacit("demo", *arguments, "--json", tmp_path / "demo.json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads((tmp_path / "demo.json").read_text())
    assert set(outcome) == DEMO_KEYS
    assert (outcome["protocol"], outcome["parties"], outcome["source"]) == (
        "additive",
        parties,
        source or "ot",
    )
    assert outcome["argmax_agreement"] == 1
    assert outcome["max_abs_logit_error"] < 0.01
    assert min(outcome["bytes_sent_per_party"]) > 0
    assert 0 < outcome["seconds_waiting_for_correlations"] < outcome["seconds"]
    made = outcome["correlation_bytes_sent_per_party"]
    assert len(made) == len(outcome["bytes_sent_per_party"]) == parties
    received = outcome["correlation_bytes_received_per_party"]
    # Parties that make correlations together send each other far more than online. A dealer sends
    # every party about the same amount.
    if source != "dealer":
        assert min(made) > 10 * max(outcome["bytes_sent_per_party"])
    else:
        assert max(made) < 1e6 < sum(received)
        assert max(received) < 1.1 * min(received)
    said = " ".join(done.stdout.split())
    for model in (
        "Threat model: 2 parties, no single party" if parties == 2 else f"{parties} parties, no",
    ):
        assert said.count(model) == 2
    for words in ("online", "offline", "waiting for correlations"):
        assert words in said
    assert ("made ahead by the dealer" in said) == (source == "dealer")
    assert ("oblivious transfer between the parties." in said) == (source != "dealer")
    assert ("homomorphic encryption and oblivious transfer between" in said) == (source == "he")


def test_bench(tmp_path: Path) -> None:
    done = tacit("bench", "--only", "argmax_1000x10,lenet_1", "--json", tmp_path / "bench.json")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "bench.json").read_text())
    assert [entry["name"] for entry in report] == ["argmax_1000x10", "lenet_1"]
    for entry in report:
        assert set(entry) == BENCH_KEYS
        assert (entry["protocol"], entry["parties"], entry["transport"]) == ("replicated", 3, "tcp")
        assert 0 < entry["seconds_min"] <= entry["seconds_median"]
        assert len(entry["bytes_sent_per_party"]) == 3
        assert min(entry["bytes_sent_per_party"]) > 0
        assert entry["rounds"] > 0
        assert entry["source"] is None
        assert entry["seconds_waiting_for_correlations_median"] == 0
        assert entry["correlation_bytes_sent_per_party"] == [0, 0, 0]


@pytest.mark.parametrize(
    ("parties", "source"),
    [
        (2, "ot"),
        (3, "dealer"),
        *(pytest.param(2, source, marks=pytest.mark.long) for source in ("he", "dealer")),
    ],
)
def test_bench_of_additive_sharing(parties: int, source: str, tmp_path: Path) -> None:
    done = tacit(
        *("bench", "--protocol", "additive", "--parties", parties, "--source", source),
        *("--only", "argmax_1000x10,lenet_1", "--json", tmp_path / "bench.json"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "bench.json").read_text())
    assert [entry["name"] for entry in report] == ["argmax_1000x10", "lenet_1"]
    for entry in report:
        assert set(entry) == BENCH_KEYS
        assert (entry["protocol"], entry["parties"], entry["source"]) == (
            "additive",
            parties,
            source,
        )
        assert 0 <= entry["seconds_waiting_for_correlations_median"] <= entry["seconds_median"]
        assert len(entry["correlation_bytes_sent_per_party"]) == parties
        assert max(entry["correlation_bytes_sent_per_party"]) > 0
    said = " ".join(done.stdout.split())
    assert "masked and opened once" in said
    assert ("homomorphic encryption and oblivious transfer, TCP" in said) == (source == "he")
    assert ("sharing, oblivious transfer, TCP" in said) == (source == "ot")


def test_bench_runs_once_what_is_costly_by_transfer(capsys: pytest.CaptureFixture[str]) -> None:
    once = [name for name, case in CASES.items() if case.runs("ot") == (0, 1, 1)]
    layers = ["matmul_512", "conv_64x56x56", "transformer_block"]
    large = [name for name, case in CASES.items() if case.only_by_name]
    assert once == [*layers, "lenet_128", "lenet_training_128", "resnet18_1", *large]
    for case in CASES.values():
        assert (
            case.runs("dealer")
            == case.runs(None)
            == (case.runs_in_each, case.repetitions, case.runs_in_each)
        )
    assert {name: case.runs_in_each for name, case in CASES.items() if case.runs_in_each > 1} == {
        "mul_1e6": 10,
        "mul_integers_1e6": 10,
    }
    small = [name for name, case in FEDERATIONS.items() if not case.only_by_name]
    large_federations = [name for name in FEDERATIONS if name not in small]
    assert chosen([]) == [name for name in CASES if name not in large] + small
    assert small == ["federated_mean_7690", "federated_mean_30730"]
    assert chosen(large_federations) == chosen(["federations"]) == large_federations
    assert chosen(["models", "lenet_1"]) == [*large, "lenet_1"]
    assert chosen(large[:1]) == large[:1]
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in large)
    assert all(name.removeprefix("federated_mean") in said for name in large_federations)
    assert chosen(["compiled"]) == list(COMPILED)
    assert all(name.removeprefix("compiled") in said for name in COMPILED)
    assert chosen(["services"]) == list(SERVICES)
    assert all(name.removeprefix("service") in said for name in SERVICES)
    assert chosen(["attested"]) == list(ATTESTED)
    assert all(name.removeprefix("attested") in said for name in ATTESTED)
    # The opening of weights happens in the warm-up, before the measurement.
    assert all(case.warm_up > 0 for case in COMPILED.values())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("service_compiled_lenet_16_clients", ()),
        ("service_lenet", ("--protocol", "additive", "--source", "dealer")),
    ],
)
def test_bench_of_services(
    name: str, options: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(SERVICES[name], requests=2, turns=1)
    monkeypatch.setitem(SERVICES, name, replace(few, clients=min(few.clients, 2)))
    done = tacit("bench", "--only", name, *options, "--json", tmp_path / "bench.json")
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads((tmp_path / "bench.json").read_text())
    assert entry["clients"] == entry["batch"] == SERVICES[name].clients
    assert entry["requests"] == 2 * entry["clients"]
    assert 0 < entry["seconds_p50"] <= entry["seconds_p99"]
    ratio = entry["requests_per_second"] / entry["images_per_second_without_clients"]
    assert entry["times_the_rate"] == pytest.approx(ratio)
    assert name.removeprefix("service_") in done.stdout
    for option in ("--attestation", "--device"):
        refused = tacit("bench", "--only", name, option, "simulated")
        assert refused.returncode == 1
        assert "services are measured on processors, without attestation" in refused.stderr


def test_bench_of_attested_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "attested_multiply_32"
    monkeypatch.setitem(ATTESTED, names, replace(ATTESTED[names], turns=1))
    done = tacit("bench", "--only", names, "--network", "1,1000", "--json", tmp_path / "b.json")
    assert done.returncode == 0, done.stderr
    entries = json.loads((tmp_path / "b.json").read_text())
    assert [entry["name"] for entry in entries] == names.split(",")
    for entry in entries:
        usual, attested = entry["usual"], entry["attested"]
        assert entry["network"] == "1,1000"
        # Half a round trip at least for the product, and for the opening.
        assert usual["seconds_min"] > 2 * 0.0005
        assert attested["rounds"] == usual["rounds"]
        assert sum(attested["bytes_sent_per_party"]) > sum(usual["bytes_sent_per_party"])
        ratio = attested["seconds_median"] / usual["seconds_median"]
        assert entry["times_the_seconds"] == pytest.approx(ratio)
        assert attested["attestation"]["verified"] == [2, 2, 2]
        assert attested["attestation"]["signatures"] > 3 * 500
        assert attested["attestation"]["seconds"] > 0
        assert "attestation" not in usual
    said = " ".join(done.stdout.split())
    assert "attested parties, TCP with TLS 1.3 with links of" in said


def test_bench_of_compiled_models(tmp_path: Path) -> None:
    done = tacit("bench", "--only", "compiled_secureml", "--json", tmp_path / "bench.json")
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads((tmp_path / "bench.json").read_text())
    eager, compiled = entry["eager"], entry["compiled"]
    assert set(eager) == set(compiled)
    assert max(compiled["bytes_sent_per_party"]) < max(eager["bytes_sent_per_party"])
    assert len(compiled["memory_per_party"]) == 3
    assert entry["seconds_to_compile"] > 0 < compiled["seconds_min"] <= entry["seconds_median"]
    said = " ".join(done.stdout.split())
    assert "secureml eager" in said


def test_bench_of_federations(tmp_path: Path) -> None:
    done = tacit("bench", "--only", "federated_mean_7690", "--json", tmp_path / "bench.json")
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads((tmp_path / "bench.json").read_text())
    assert (entry["clients"], entry["parameters"], entry["parties"]) == (16, 7690, 3)
    assert 0 < entry["seconds_min"] <= entry["seconds_median"]
    # A word holds two numbers; the rest does not grow with the vector.
    assert 4 * 7691 < entry["bytes_up_per_client"] < 4 * 7691 + 4000
    assert min(entry["bytes_sent_per_party"]) > 0
    assert len(entry["memory_per_party"]) == 3
    refused = tacit(
        "bench", "--only", "federated_mean_7690", "--protocol", "additive", "--source", "dealer"
    )
    assert refused.returncode == 1
    assert "additive sharing serves no federation" in refused.stderr


def test_bench_of_programs(tmp_path: Path) -> None:
    only = "psi_10,psi_loops_10,aes_block,products_100,products_100_10ms,vector_products_1e4"
    only += ",to_bits_100,to_numbers_100"
    report = []
    for setting in (["--protocol", "additive", "--source", "dealer"], ["--protocol", "replicated"]):
        done = tacit(
            "bench", "--riscv", *setting, "--only", only, "--json", tmp_path / "bench.json"
        )
        assert done.returncode == 0, done.stderr
        found = json.loads((tmp_path / "bench.json").read_text())
        assert [entry["name"] for entry in found] == only.split(",")
        report += found
    for entry in report:
        slow = {"network"} if entry["name"].endswith("10ms") else set()
        assert set(entry) == {*BENCH_KEYS, *slow, "instructions"}
        assert entry["instructions"] > 100
        assert min(entry["bytes_sent_per_party"]) > 0
    by_name = {entry["name"]: entry for entry in report[:8]}
    # The extra rounds compare the lengths and the public values.
    assert by_name["aes_block"]["rounds"] <= 31 + 4
    assert by_name["products_100"]["rounds"] <= 2 + 4
    # Products that do not depend on each other share their rounds, so the delay of one message
    # counts.
    late = by_name["products_100_10ms"]
    assert late["rounds"] == by_name["products_100"]["rounds"]
    assert 0.02 <= late["seconds_min"] <= late["seconds_median"]


def test_bench_knows_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ("psi", "psi_loops", "psi_merge")
    lists = [f"{program}_{count}" for program in kinds for count in (10, 100, 1000)]
    others = [
        "ascon_hash_100",
        "ascon_hash_100_of_64",
        "ascon_sealed_100",
        "aes_block",
        "products_1e4",
    ]
    others += [
        "vector_products_1e4",
        "products_100",
        "products_100_10ms",
        "to_bits_100",
        "to_numbers_100",
        "net_784_128_10",
        "quotients_1000",
    ]
    assert list(PROGRAMS) == [*lists, *others, "short_quotients_1000", "public_code"]
    assert chosen([], programs=True) == [name for name in PROGRAMS if name != "psi_loops_1000"]
    assert not set(chosen([])) & set(PROGRAMS)
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    assert "psi_loops_1000" in capsys.readouterr().out


def test_rounds_do_not_grow_with_the_number_of_parties() -> None:
    counted = rounds_by_parties([2, 5])
    assert counted[2] == counted[5] == {"mul": 2, "less": 5, "relu": 6}
    assert "relu" in str(list(rounds(counted).columns[0].cells))


def test_bench_sends_no_more_than_it_may(tmp_path: Path) -> None:
    most = {"relu_1e6": 40e6, "relu_1e6_w32": 24e6, "mul_1e6": 15e6}
    done = tacit("bench", "--only", ",".join(most), "--json", tmp_path / "bench.json")
    assert done.returncode == 0, done.stderr
    for entry in json.loads((tmp_path / "bench.json").read_text()):
        assert max(entry["bytes_sent_per_party"]) <= most[entry["name"]]


def example(folder: Path) -> Path:
    """Sets up the repository's example with its own certificates and free ports."""
    made = tacit("certificates", "--parties", 3, "--out", folder / "certificates")
    assert made.returncode == 0, made.stderr
    assert "party-2.key" in made.stdout
    text = (ROOT / "examples" / "parties.toml").read_text()
    for party, port in enumerate(free_ports(3)):
        assert f"127.0.0.1:740{party}" in text
        text = text.replace(f"127.0.0.1:740{party}", f"127.0.0.1:{port}")
    (folder / "parties.toml").write_text(text)
    return folder / "parties.toml"


def run_parties(config: Path, program: Path, parties: list[int]) -> list[tuple[int, str, str]]:
    """Starts parties as on separate machines; returns exit code, output and errors of each."""
    started = [
        Command("run", "--config", config, "--party", party, program, "an argument")
        for party in parties
    ]
    return [command.ended() for command in started]


def test_three_real_processes_from_the_example(tmp_path: Path) -> None:
    config = example(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, tacit, torch\n"
        "if __name__ == '__main__':\n"
        "    x = tacit.share(torch.tensor([1.5, -2.0]) if tacit.session().party == 1 else None, "
        "owner=1)\n"
        "    print((x * x).relu().reveal(to=1), sys.argv[1:])\n"
    )
    started = []
    for party in ("2", "0", "1"):
        words = [
            *TACIT,
            "run",
            "--config",
            str(config),
            "--party",
            party,
            str(program),
            "an argument",
        ]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(words, **pipes))
    said = [process.communicate(timeout=120) for process in started]
    for process, (_, err) in zip(started, said, strict=True):
        assert process.returncode == 0, err
        assert "no single party learns anything" in err
        assert "TLS 1.3" in err
    assert [out.startswith("None") for out, _ in said] == [True, True, False]
    assert re.search(r"tensor\(\[2\.2[45]\d\d, [34]\.[09]", said[2][0])
    assert "['an argument']" in said[0][0]


def test_a_party_has_the_device_that_its_file_names(tmp_path: Path) -> None:
    config, program = example(tmp_path), tmp_path / "program.py"
    program.write_text(
        "import tacit, torch\n"
        "x = tacit.share(torch.ones(8, 9), owner=0)\n"
        "print((x @ x.T).reveal()[0, 0].item(), tacit.session().device['kind'])\n"
    )
    line = 'certificate = "certificates/party-1.pem"\n'
    text = config.read_text()
    assert line in text
    config.write_text(text.replace(line, line + 'device = "simulated"\n'))
    ended = run_parties(config, program, [0, 1, 2])
    assert [(code, out) for code, out, _ in ended] == [
        (0, "9.0 cpu\n"),
        (0, "9.0 simulated\n"),
        (0, "9.0 cpu\n"),
    ]
    config.write_text(text.replace(line, line + 'device = "gpu"\n'))
    for party, (code, _, err) in enumerate(run_parties(config, program, [0, 1, 2])):
        assert code == 1
        assert 'unknown device "gpu"; known are "cpu", "cuda", "simulated"' in err
        assert ("party 1 failed" in err) == (party != 1)


def test_a_configuration_has_everything_checked(tmp_path: Path) -> None:
    config = example(tmp_path)
    text = config.read_text()
    assert "# checked = true" in text
    config.write_text(text.replace("# checked = true", "checked = true"))
    program = tmp_path / "program.py"
    program.write_text(
        "import tacit, torch\n"
        "x = tacit.share(torch.tensor([1e6, 2.0]) if tacit.session().party == 1 else None, "
        "owner=1)\n"
        "print((x + x).reveal())\n"
        "(x * x).reveal()\n"
    )
    for code, out, err in run_parties(config, program, [0, 1, 2]):
        assert code == 1
        assert out == "tensor([2.0000e+06, 4.0000e+00])\n"
        assert f"out of range: aten.mul.Tensor in no module, {program}:4" in err


def test_a_program_may_leave_by_exit(tmp_path: Path) -> None:
    config = example(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time, tacit, torch\n"
        "x = tacit.share(torch.ones(1000) if tacit.session().party == 0 else None, owner=0)\n"
        "if tacit.session().party == 1:\n"
        "    time.sleep(1)\n"
        "x.reveal(to=1)\n"
        "sys.exit(0)\n"
    )
    assert [code for code, _, _ in run_parties(config, program, [0, 1, 2])] == [0, 0, 0]


def test_the_examples_program_runs(tmp_path: Path) -> None:
    config, program = example(tmp_path), ROOT / "examples" / "classify.py"
    pages = [tmp_path / f"report-{party}.html" for party in range(3)]
    started = [
        Command("run", "--config", config, "--party", party, "--report", page, program)
        for party, page in enumerate(pages)
    ]
    ended = [command.ended() for command in started]
    assert [code for code, _, _ in ended] == [0, 0, 0], [err for _, _, err in ended]
    for party, page in enumerate(pages):
        assert f'"party": {party}' in page.read_text()


def test_a_party_that_never_comes(tmp_path: Path) -> None:
    config = example(tmp_path)
    config.write_text(config.read_text().replace("timeout = 60", "timeout = 3"))
    for code, _, err in run_parties(config, ROOT / "examples" / "classify.py", [0, 1]):
        assert code == 1
        # The party that times out first tells the other.
        waited = r'party 2 failed in step "connect": (as party [01] reports, )?it did not come within the timeout'
        assert re.search(waited, err)
        assert "Traceback" not in err


def shout(config: Path, key: Path, program: Path) -> tuple[Path, str]:
    """Makes the key of party 2 readable by other users."""
    key.chmod(0o644)
    return program, (
        f"the private key {config.parent}/certificates/party-2.key can be read by other users of "
        f"this "
        f"machine (mode 644); run: chmod 600 {config.parent}/certificates/party-2.key"
    )


def lack(_config: Path, _key: Path, program: Path) -> tuple[Path, str]:
    """Removes the program of party 2."""
    return program.with_name("missing.py"), f"there is no program {program.with_name('missing.py')}"


@pytest.mark.parametrize("mistake", [shout, lack])
def test_who_cannot_take_part_tells_the_others(
    tmp_path: Path, mistake: Callable[[Path, Path, Path], tuple[Path, str]]
) -> None:
    config, program = example(tmp_path), tmp_path / "program.py"
    config.write_text(config.read_text().replace("timeout = 60", "timeout = 600"))
    program.write_text("print('never')\n")
    mistaken, reason = mistake(config, tmp_path / "certificates" / "party-2.key", program)
    starting = ThreadPoolExecutor(2)
    others = starting.submit(run_parties, config, program, [0, 1])
    # Without the message, the others would wait for ten minutes.
    while not (waited := others.done()) and not all(map(listens, ports_of(config)[:2])):
        time.sleep(0.1)
    assert not waited
    ((code, _, err),) = run_parties(config, mistaken, [2])
    assert code == 1
    assert err.startswith(f"tacit: {'setup: ' if mistake is shout else ''}{reason}")
    for party, (code, out, err) in enumerate(others.result()):
        assert (code, out) == (1, "")
        # The other party may be told first, and report it before party 2 does.
        err = err.replace(f"as party {1 - party} reports, ", "")
        assert err == f'tacit: party 2 failed in step "connect": it cannot take part: {reason}\n'


def ports_of(config: Path) -> list[int]:
    """Returns the ports of all parties."""
    return [
        int(port)
        for port in re.findall(r'^address = "127.0.0.1:(\d+)"', config.read_text(), re.MULTILINE)
    ]


def listens(port: int) -> bool:
    """Returns whether a process listens on a port."""
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Enables interrupts: tests in the background of a shell, and the processes they start,
    would ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupting_ends_the_wait_for_the_others(tmp_path: Path) -> None:
    config = example(tmp_path)
    config.write_text(config.read_text().replace("timeout = 60", "timeout = 600"))
    command = [
        *TACIT,
        "run",
        "--config",
        str(config),
        "--party",
        "0",
        str(ROOT / "examples" / "classify.py"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not listens(ports_of(config)[0]):
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    # Without the interrupt it would wait for ten minutes.
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "tacit: interrupted\n")


@pytest.mark.usefixtures("interruptible")
def test_interrupting_ends_the_wait_for_a_message_and_tells_the_others(tmp_path: Path) -> None:
    config = example(tmp_path)
    config.write_text(config.read_text().replace("timeout = 60", "timeout = 600"))
    start = "import tacit, time, torch\nsecret = tacit.share(torch.ones(3), owner=0)\n"
    product = "(secret * secret).reveal()\n"
    waiting, stalling = tmp_path / "waiting.py", tmp_path / "stalling.py"
    waiting.write_text(f"{start}{product}print('waits', flush=True)\n{product}")
    stalling.write_text(f"{start}{product}print('stalls', flush=True)\ntime.sleep(600)\n")
    processes = [
        subprocess.Popen(
            [*TACIT, "run", "--config", str(config), "--party", str(party), str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for party, program in enumerate([waiting, waiting, stalling])
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() in {"waits\n", "stalls\n"}
    # The work between the printed line and the wait takes microseconds.
    time.sleep(1)
    processes[0].send_signal(signal.SIGINT)
    # Without the message they would wait for ten minutes.
    ends = [process.communicate(timeout=120)[1].splitlines()[-1] for process in processes[:2]]
    processes[2].kill()
    processes[2].communicate()
    assert [process.returncode for process in processes[:2]] == [130, 1]
    assert ends[0] == "tacit: interrupted"
    assert re.fullmatch(r'tacit: .*party 0 failed in step "end": it was interrupted', ends[1])


def test_a_request_to_end_is_told_like_an_interrupt(tmp_path: Path) -> None:
    """A service manager ends processes this way. Each party's kernels also have the requested
    number of threads."""
    config = example(tmp_path)
    config.write_text(config.read_text().replace("timeout = 60", "timeout = 600"))
    start = "import tacit, time, torch\nsecret = tacit.share(torch.ones(3), owner=0)\n"
    threads = "print(torch.get_num_threads(), flush=True)\n"
    waiting, stalling = tmp_path / "waiting.py", tmp_path / "stalling.py"
    waiting.write_text(f"{start}secret.reveal()\n{threads}(secret * secret).reveal()\n")
    stalling.write_text(f"{start}secret.reveal()\n{threads}time.sleep(600)\n")
    parties = [
        Command("run", "--config", config, "--party", party, "--threads", 3, program)
        for party, program in enumerate([waiting, waiting, stalling])
    ]
    try:
        for party in parties:
            party.begun()
        os.kill(parties[2].id, signal.SIGTERM)
        # Without the message they would wait for ten minutes.
        ends = [party.ended(120) for party in parties]
    finally:
        for party in parties:
            party.kill()
    assert [code for code, _, _ in ends] == [1, 1, 143]
    assert [out for _, out, _ in ends] == ["3\n"] * 3
    assert ends[2][2].splitlines()[-1] == "tacit: terminated"
    for _, _, err in ends:
        assert "Traceback" not in err
    for _, _, err in ends[:2]:
        assert re.search(
            r'tacit: .*party 2 failed in step "end": (as .* reports, )?it was terminated', err
        ), err


INTERRUPTED = {
    "threads that wait": "if tacit.session().party == 2: time.sleep(600)\n    (x * x).reveal()",
    "a wait for correlations": "y = x.expand(2000, 3) @ x.expand(2000, 3).T\n    y = y @ y",
    # The stack of this thread shows no code of PyTorch, and nothing ends the thread. Python
    # nevertheless considers it ended, because the interrupt comes while another thread joins it.
    "one of the threads": """big = torch.ones(1500, 1500)
    while tacit.session().party == 1:
        try:
            while True: big @ big
        except BaseException: pass""",
}


@pytest.mark.parametrize("what", INTERRUPTED)
@pytest.mark.usefixtures("interruptible")
def test_interrupting_ends_parties_in_threads(what: str, tmp_path: Path) -> None:
    setting = "" if "threads" in what else "parties=2, protocol='additive', source='ot', "
    program = tmp_path / "program.py"
    lines = [
        "x = tacit.share(torch.ones(3), owner=0)",
        # The imports of the first operation take longer than the wait below.
        "(x * x).reveal()",
        "if tacit.session().party == 0: print('in', flush=True)",
        INTERRUPTED[what],
    ]
    body = "\n    ".join(lines)
    program.write_text(
        # PyTorch imports tabulate when it ends, if it is installed, and tabulate compiles regular
        # expressions. CPython then forgets that an interrupt ended the program, and the process
        # exits with 1.
        "import sys\nsys.modules['tabulate'] = None\n"
        # The interpreter takes a second to end. During it no thread in C++ may request the
        # interpreter.
        "import tacit, time, torch\n\nclass Slow:\n    def __del__(self, wait=time.sleep): "
        "wait(1)\n\n"
        f"slow = Slow()\n\ndef program():\n    {body}\n\n"
        f"tacit.launch(program, {setting}timeout=600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        # Without the interrupt they would wait for ten minutes.
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    # The process ends by the uncaught signal, and not by a crash of the interpreter.
    assert process.returncode == -signal.SIGINT, err
    assert "terminate called" not in err


def test_a_party_makes_its_own_pair(tmp_path: Path) -> None:
    for who, name in ((["--party", 1], "party-1"), (["--dealer"], "dealer")):
        done = tacit("certificates", *who, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert done.stdout == (
            f"Wrote {name}.pem, {name}.key in {tmp_path / name}.\n"
            f"Give {name}.pem to all others by a way that they trust, and {name}.key to nobody.\n"
        )
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == [
            f"{name}.key",
            f"{name}.pem",
        ]
        assert (tmp_path / name / f"{name}.key").stat().st_mode & 0o777 == 0o600
        again = tacit("certificates", *who, "--out", tmp_path / name)
        assert again.returncode == 1
        path = tmp_path / name / f"{name}.pem"
        assert again.stderr == (
            f"tacit: setup: cannot write {path}: it exists, and is not overwritten; "
            "choose another directory\n"
        )


def doctor(config: Path, *arguments: object) -> tuple[int, dict[str, dict[str, Any]]]:
    """Runs the doctor; returns its exit code and its checks by name."""
    report = config.parent / f"report-{'-'.join(map(str, arguments))}.json"
    done = tacit("doctor", "--config", config, "--json", report, "--wait", 0.5, *arguments)
    assert done.stderr == ""
    checks = json.loads(report.read_text())
    for check in checks:
        assert set(check) == {"check", "ok", "detail", "remedy"}
        assert check["ok"] == (check["remedy"] is None)
        assert (
            f"{'ok   ' if check['ok'] else 'WRONG'} {check['check']}: {check['detail']}"
            in done.stdout
        )
    assert done.returncode == (0 if all(check["ok"] for check in checks) else 1)
    return done.returncode, {check["check"]: check for check in checks}


def test_the_doctor_alone_is_content(tmp_path: Path) -> None:
    code, checks = doctor(example(tmp_path), "--party", 1)
    assert code == 0
    assert list(checks)[:5] == ["tacit", "Python", "torch", "numpy", "configuration"]
    assert checks["key of party 1"]["detail"] == "fits its certificate; nobody else may read it"
    assert re.fullmatch(
        r"valid until \d{4}-\d\d-\d\d \d\d:\d\d UTC", checks["certificate of party 0"]["detail"]
    )
    assert checks["listening"]["detail"].startswith("can, on 127.0.0.1:")
    for peer in (0, 2):
        assert checks[f"party {peer}"]["detail"].startswith(
            "its machine answers; nobody listens at 127.0.0.1:"
        )


def test_doctors_find_each_other(tmp_path: Path) -> None:
    config = example(tmp_path)
    with ThreadPoolExecutor(3) as starting:
        examining = [
            starting.submit(doctor, config, "--party", party, "--wait", 30) for party in range(3)
        ]
    for party, (code, checks) in enumerate(each.result() for each in examining):
        assert code == 0
        for peer in {0, 1, 2} - {party}:
            assert checks[f"party {peer}"]["detail"].startswith(
                "is there, with the same protocol replicated"
            )
            assert checks[f"clock of party {peer}"]["detail"] == "agrees with this machine's"


def test_the_doctor_names_each_mistake_and_its_remedy(tmp_path: Path) -> None:
    config = example(tmp_path)
    (tmp_path / "certificates" / "party-0.pem").write_text("nothing")
    (tmp_path / "certificates" / "party-1.key").chmod(0o640)
    text = config.read_text()
    first, _, third = ports_of(config)
    config.write_text(text.replace(f"127.0.0.1:{third}", "nowhere.invalid:7400"))
    with socket.create_server(("127.0.0.1", first)):
        code, checks = doctor(config, "--party", 0)
    assert code == 1
    wrong = {
        name: (check["detail"], check["remedy"])
        for name, check in checks.items()
        if not check["ok"]
    }
    certificate = tmp_path / "certificates" / "party-0.pem"
    assert wrong["certificate of party 0"] == (
        f"the certificate of party 0, {certificate}, is not a certificate in PEM",
        "give its .pem file",
    )
    key = tmp_path / "certificates" / "party-1.key"
    assert wrong["key of party 1"] == (
        f"the private key {key} can be read by other users of this machine (mode 640)",
        f"run: chmod 600 {key}",
    )
    assert wrong["address of party 2"][0] == "the host of nowhere.invalid:7400 cannot be resolved"
    assert wrong["listening"] == (
        f"cannot listen on 127.0.0.1:{first}: Address already in use; another program uses this "
        f"port",
        "end it or choose another port",
    )
    config.write_text(text.replace("[[party]]", "[[partie]]"))
    code, checks = doctor(config)
    assert code == 1
    assert list(checks)[-1] == "configuration"
    assert 'unknown field "partie"' in checks["configuration"]["detail"]


def test_a_port_in_use(tmp_path: Path) -> None:
    config = example(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        lines = config.read_text().splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("address"))
        lines[at] = f'address = "127.0.0.1:{port}"'
        config.write_text("\n".join(lines))
        ((code, _, err),) = run_parties(config, ROOT / "examples" / "classify.py", [0])
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in err
    assert "choose another port" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["bench", "--only", "nonsense"], "no benchmark is called 'nonsense'"),
        (
            ["demo", "--protocol", "replicated", "--parties", "2"],
            'protocol "replicated" is for exactly 3 parties, not 2',
        ),
        (["demo", "--source", "dealer"], 'protocol "replicated" consumes no correlations'),
        (["demo", "--protocol", "additive", "--parties", "1"], "two or more parties"),
        (
            ["bench", "--protocol", "replicated", "--parties", "4"],
            'protocol "replicated" is for exactly 3 parties, not 4',
        ),
        (["dealer", "--config", "missing.toml"], "cannot read missing.toml: there is no such file"),
        (
            ["certificates", "--parties", "1", "--out", "unused"],
            "a session has 2 to 64 parties, not 1",
        ),
        (["certificates", "--out", "unused"], "say for whom: --party I for one party, --dealer"),
        (
            ["certificates", "--party", "0", "--dealer", "--out", "unused"],
            "say for whom: --party I for one",
        ),
        (["run", "--config", "missing.toml", "--party", "0", __file__], "cannot read missing.toml"),
        (["run", "--config", "missing.toml", "--party", "0", "x.py"], "there is no program x.py"),
    ],
)
def test_mistakes_are_one_message(arguments: list[str], expected: str) -> None:
    done = tacit(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("tacit: ")
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["dmeo"], "invalid choice: 'dmeo'"),
        (["federated", "serv"], "did you mean serve?"),
        (
            ["demo", "--prtocol", "additive"],
            "unrecognized arguments: --prtocol additive; did you mean --protocol?",
        ),
        (["demo", "--sampels=3"], "did you mean --samples?"),
        (["demo", "--protocol", "aditive"], "did you mean additive?"),
        (["dealer", "--confg", "x"], "required: --config; did you mean --config?"),
        (["riscv", "try", "x.elf", "--secrets", "x"], "did you mean --secret?"),
        (["--verson", "dealer", "--config", "x"], "did you mean --version?"),
    ],
)
def test_what_is_mistyped_names_the_nearest(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("did you mean") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        # Abbreviations are accepted, and options of the program are not checked.
        ["demo", "--proto", "additive", "--samples", "none"],
        ["run", "--party", "0", "program.py", "--", "--confg"],
        ["demo", "--xyzzy"],
        ["xyzzy"],
    ],
)
def test_what_is_like_nothing_names_nothing(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(arguments)
    assert "did you mean" not in capsys.readouterr().err


def test_shared_options_are_written_in_one_place() -> None:
    shared = "--json", "--threads", "--protocol", "--checked", "--streams"
    for path in Path(options.__file__).parent.glob("*.py"):
        if path.name != "options.py":
            assert not [name for name in shared if f'"{name}"' in path.read_text()], path.name


@pytest.mark.parametrize(
    "command", [["federated", "demo"], ["demo"], ["bench", "--only", "relu_1e6"]]
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(
    command: list[str], tmp_path: Path
) -> None:
    for place, why in (
        (tmp_path / "none" / "x.json", "there is no such folder"),
        (tmp_path, "it is a folder; give a file in it"),
    ):
        done = tacit(*command, "--json", place)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"tacit: cannot write {place}: {why}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["x.py"], ["there is no program x.py", "cannot read missing.toml: there is no such file"]),
        (
            ["--report", "none/report.html", __file__],
            ["cannot write none/report.html: there is no such folder", "cannot read missing.toml"],
        ),
        (
            ["--record", "none/demand.txt", __file__],
            ["cannot write none/demand.txt", "cannot read missing.toml"],
        ),
    ],
)
def test_all_that_is_wrong_before_others_are_met_is_said(
    arguments: list[str], expected: list[str]
) -> None:
    done = tacit("run", "--config", "missing.toml", "--party", "0", *arguments)
    assert done.returncode == 1
    assert all(text in done.stderr for text in expected), done.stderr
    assert "Traceback" not in done.stderr


def test_a_party_that_is_not_in_the_file(tmp_path: Path) -> None:
    config = example(tmp_path)
    done = tacit("run", "--config", config, "--party", 5, __file__)
    assert done.returncode == 1
    assert "there is no party 5" in done.stderr
    assert "its parties are 0 to 2" in done.stderr


def test_help_and_version() -> None:
    assert "demo" in from_a_shell("--help").stdout
    assert from_a_shell("--version").stdout.startswith("tacit 0.")
    assert from_a_shell("run", "--help").returncode == 0


def importing(*arguments: object) -> tuple[set[str], str]:
    """Returns the packages that a command imports, and its errors."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tacit", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    line = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)\n", re.MULTILINE)
    return {module.split(".")[0] for module in line.findall(done.stderr)}, line.sub("", done.stderr)


def test_what_does_not_compute_does_not_load_pytorch(tmp_path: Path) -> None:
    config = example(tmp_path)
    config.write_text(config.read_text().replace("timeout = 60", "timeout = 0.2"))
    with_dealer = tmp_path / "with-dealer.toml"
    (port,) = free_ports(1)
    assert tacit("certificates", "--dealer", "--out", tmp_path / "certificates").returncode == 0
    table = f'[dealer]\naddress = "127.0.0.1:{port}"\ncertificate = "certificates/dealer.pem"\n'
    with_dealer.write_text(config.read_text() + table)
    demand = tmp_path / "demand.txt"
    demand.write_bytes(to_bytes("tacit demand, version 1, ahead 9\n"))
    making = ("--demand", demand, "--runs", 1, "--source", "ot", "--out", tmp_path / "made")
    for arguments, expected in (
        (["--help"], ""),
        (["--version"], ""),
        (["certificates", "--party", 2, "--out", tmp_path / "others"], ""),
        (["doctor", "--config", config, "--party", 0, "--wait", 0.1], ""),
        (["dealer", "--config", with_dealer], 'failed in step "connect"'),
        (
            ["correlations", "make", "--config", config, "--party", 0, *making],
            'failed in step "connect"',
        ),
    ):
        packages, said = importing(*arguments)
        assert expected in said
        assert "tacit" in packages
        assert "torch" not in packages, arguments
    assert "torch" in importing("bench", "--only", "nonsense")[0]


def test_the_package_shows_what_it_exports() -> None:
    script = (
        "import tacit, tacit.compilation.passes as passes, tacit.parties.launch, inspect, "
        "cloudpickle, sys\n"
        "assert set(tacit.__all__) <= set(dir(tacit))\n"
        "assert inspect.ismodule(tacit.random) and tacit.random is sys.modules['tacit.random']\n"
        "others = [getattr(tacit, name) for name in tacit.__all__ if name != 'random']\n"
        "assert all(each.__module__.startswith('tacit') for each in others)\n"
        "functions = tacit.session, tacit.launch, tacit.compile\n"
        "assert inspect.ismodule(passes) and all(map(inspect.isfunction, functions))\n"
        "assert cloudpickle.loads(cloudpickle.dumps(tacit)) is tacit\n"
        "assert not hasattr(tacit, 'nonsense')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_console_script_is_installed() -> None:
    assert shutil.which("tacit", path=str(Path(sys.executable).parent))


@pytest.mark.parametrize("columns", [None, "60"])
def test_what_is_printed_into_a_file_is_not_cut(
    columns: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines are as long as they need to be, unless COLUMNS gives a width."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(["operators"]) == 0
    lines = capsys.readouterr().out.splitlines()
    whole = [cells for cells in operators.rows() if len("".join(cells)) > 90]
    assert whole
    found = [all(any(cell in line for line in lines) for cell in cells) for cells in whole]
    assert all(found) if columns is None else not any(found)


def test_tables_of_a_bench_are_not_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    counted = {parties: dict.fromkeys(OPERATIONS, 123_456_789) for parties in range(2, 40)}
    options.output().print(rounds(counted))
    printed = capsys.readouterr().out
    assert printed.count("123456789") == len(OPERATIONS) * len(counted)
    assert "…" not in printed
