"""The predicted costs of programs are their real costs."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from commands import tacit as command
from tacit.riscv import TYPES
from test_correlations import both, configured
from test_riscv import PROGRAMS, SUMS


class Case(NamedTuple):
    """A program and the sizes of its secret inputs."""

    #: Owner, type and number of elements of each input, by name.
    secret: dict[str, tuple[int, str, int]]
    #: All other options of the command.
    options: tuple[object, ...]
    #: Whether the case takes long.
    long: bool = False


def whole(
    output: str, kind: str, *told: object, long: bool = False, **secret: tuple[int, str, int]
) -> Case:
    """Makes the case of a program that writes a file, which party 1 receives."""
    arguments = [each for argument in told for each in ("--arg", argument)]
    return Case(secret, (*arguments, "--output", f"{output}=1:{kind}"), long)


def function(name: str, result: str, *told: object, **secret: tuple[int, str, int]) -> Case:
    """Makes the case of a function whose result party 0 receives."""
    arguments = [each for argument in told for each in ("--arg", argument)]
    return Case(secret, ("--call", name, *arguments, "--result", result))


#: All programs with inputs, and functions of the programs that have only functions.
CASES = {
    "psi": whole("common", "u64", a=(0, "u64", 5), b=(1, "u64", 3)),
    "psi_loops": whole("common", "u64", a=(0, "u64", 4), b=(1, "u64", 3)),
    "distance": whole("distance", "u64", x=(0, "u8", 5), y=(1, "u8", 3)),
    "sort": whole("sorted", "i32", values=(1, "i32", 9)),
    "search": whole("places", "u32", table=(0, "u32", 9), wanted=(1, "u32", 4)),
    "mean": whole("means", "f64", values=(1, "f64", 6)),
    "net": whole(
        "output", "i32", 6, 4, 3, input=(0, "i32", 6), first=(1, "i32", 28), second=(1, "i32", 15)
    ),
    "aes": whole("sealed", "u8", key=(0, "u8", 16), blocks=(1, "u8", 16), long=True),
    "ascon": whole("out", "u8", message=(0, "u8", 5), key=(1, "u8", 16), nonce=(1, "u8", 16)),
    "sha256": whole("digest", "u8", message=(0, "u8", 3), long=True),
    "sums": Case(
        {"x": (0, "u32", 4)},
        ("--public", f"data/y={SUMS}", "--output", "sums=all", "--output", "total=0"),
    ),
    "arrays": function("mean", "0", "a", "len:a", a=(1, "u64", 7)),
    "arrays_of_floats": function("deviation", "0:f64", "x", "len:x", x=(1, "f64", 5)),
    "figures_of_floats": function("squares", "0:f64", "x", "len:x", x=(1, "f64", 5)),
    "figures": function(
        "products", "none", "x", "y", "x", "len:x", x=(1, "u64", 5), y=(0, "u64", 5)
    ),
}


def additive(source: str, parties: int = 2) -> list[str]:
    return ["--protocol", "additive", "--source", source, "--parties", str(parties)]


SETTINGS = {
    "replicated": ["--protocol", "replicated"],
    "dealer": additive("dealer"),
    "ot": additive("ot"),
    "he": additive("he"),
    "dealer of three": additive("dealer", 3),
    "dealer of five": additive("dealer", 5),
    "ot of three": additive("ot", 3),
    "he of three": additive("he", 3),
}

#: Cases that are not marked as long, by setting: all that are short in two settings, and a few in
#: two more.
QUICK = {
    "replicated": set(CASES),
    "dealer": set(CASES),
    "he": {"arrays"},
    "dealer of three": {"arrays", "sort"},
}


def measured() -> list[Any]:
    """Returns all pairs of case and setting, with marks for those that take long."""
    return [
        pytest.param(
            name,
            setting,
            marks=[pytest.mark.long] * (case.long or name not in QUICK.get(setting, ())),
        )
        for name, case in CASES.items()
        for setting in SETTINGS
    ]


@pytest.mark.parametrize(("name", "setting"), measured())
def test_what_is_predicted_is_what_is_metered(name: str, setting: str, tmp_path: Path) -> None:
    """Compares the prediction for zeros, from lengths alone, with a run on values over TLS."""
    said = SETTINGS[setting]

    def found(what: str, words: list[object]) -> Any:
        report = tmp_path / "found.json"
        ended = command("riscv", what, *words, *said, "--json", report)
        assert ended.returncode == 0, ended.stderr
        return json.loads(report.read_text())

    save(CASES[name], tmp_path)
    predicted = found("cost", told(name))
    metered = found("try", told(name, tmp_path))
    is_metered(predicted, metered)
    assert (setting != "replicated") == (predicted["correlation_bytes"] is not None)


def save(case: Case, folder: Path) -> None:
    """Writes the parties' input files."""
    rng = np.random.default_rng(7)
    for file, (_, kind, count) in case.secret.items():
        # Lists to intersect are sorted.
        values = np.sort(rng.choice(np.arange(1, 100), count, replace=False)).astype(TYPES[kind])
        np.save(folder / f"{file}.npy", values)


def told(name: str, folder: Path | None = None) -> list[object]:
    """Returns a run's options, with files in a folder or, without a folder, with lengths alone."""
    secret = [
        each
        for file, (owner, kind, count) in CASES[name].secret.items()
        for each in (
            "--secret",
            f"{file}={owner}:{kind}:{folder / f'{file}.npy' if folder else count}",
        )
    ]
    return [PROGRAMS / f"{name}.elf", *CASES[name].options, *secret]


def is_metered(predicted: Any, metered: Any) -> None:
    for what in ("instructions", "rounds", "bytes_sent_per_party", "opened"):
        assert predicted[what] == metered[what], what
    assert predicted["rounds"] >= 2
    assert predicted["refused"] == []


#: Runs each line of a file as the options of a run, and prints its report.
ALL_LINES = """
import argparse, json, sys, tacit
from tacit.commands.riscv_job import add_job, job

parser = argparse.ArgumentParser()
add_job(parser)
for words in json.load(open("lines.json")):
    print(json.dumps(job(parser.parse_args(words), tacit.session().party).carry_out()))
"""


@pytest.mark.long
def test_what_is_predicted_is_what_is_metered_with_files_of_correlations(tmp_path: Path) -> None:
    """Runs all programs in one session, with correlations made ahead."""
    folder = configured(tmp_path)
    lines = []
    for name, case in CASES.items():
        (folder / name).mkdir()
        save(case, folder / name)
        lines.append([str(each) for each in told(name, folder / name)])
    (folder / "lines.json").write_text(json.dumps(lines))
    (folder / "program.py").write_text(ALL_LINES)
    record = (
        "run",
        "--config",
        "parties.toml",
        "--party",
        "{}",
        "--record",
        "demand-{}.txt",
        "program.py",
    )
    for code, _, errors in both(folder, *record):
        assert code == 0, errors
    make = (
        "correlations",
        "make",
        "--config",
        "parties.toml",
        "--party",
        "{}",
        "--demand",
        "demand-{}.txt",
    )
    for code, _, errors in both(folder, *make, "--runs", "1", "--out", "party-{}.correlations"):
        assert code == 0, errors
    found = both(folder, "run", "--config", "from-file.toml", "--party", "{}", "program.py")
    for code, output, errors in found:
        assert code == 0, errors
        assert "correlations from files" in errors
        for name, line in zip(CASES, output.splitlines(), strict=True):
            report = tmp_path / "predicted.json"
            ended = command("riscv", "cost", *told(name), *additive("dealer"), "--json", report)
            assert ended.returncode == 0, ended.stderr
            is_metered(json.loads(report.read_text()), json.loads(line))


def test_every_program_is_measured() -> None:
    """Exceptions are programs without secrets, a program whose branches depend on opened values,
    which zeros do not predict, and programs whose functions other tests of the machine call."""
    others = {
        "choices",
        "elementary",
        "floats",
        "ordinary",
        "psi_merge",
        "tables",
        "texts",
        "vectors",
    }
    assert set(CASES) | others == {path.stem for path in PROGRAMS.glob("*.elf")}
