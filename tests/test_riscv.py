"""Functions of compiled programs on secret arrays."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from commands import Command
from commands import tacit as command
from tacit import _core, fixed
from tacit.errors import DesyncError, MisuseError, SetupError
from tacit.riscv import compiler
from tacit.riscv.compiler import COMPILERS
from test_command_line import example

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "crates/riscv/programs"
ELF = PROGRAMS / "arrays.elf"
SUMS = PROGRAMS / "sums.elf"

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_functions_of_c_on_what_one_party_has(setting: str) -> None:
    values = np.array([5, 2**40, 12, 7], np.uint64)

    def program() -> list[Any]:
        party, arrays = tacit.session().party, tacit.riscv.load(ELF)
        own = values if party == 1 else None
        text = np.frombuffer(b"a word", np.uint8) if party == 0 else None
        mean = arrays.call("mean", ["a", "len:a"], secret={"a": (1, own)}, result=0)
        turned = arrays.call(
            "reverse", ["t", 6], secret={"t": (0, text)}, result=None, output={"t": "all"}
        )
        least = arrays.call("greatest", ["p", "len:p"], public={"p": -values.astype(np.int64)})
        return [mean.result, turned.result, turned.outputs["t"].tobytes(), least.result]

    everybody = tacit.launch(program, **SETTINGS[setting])
    assert everybody[0] == [int(values.sum()) // 4, None, b"drow a", 2**64 - 5]
    assert all(others == [None, *everybody[0][1:]] for others in everybody[1:])


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_program_on_files(setting: str) -> None:
    x, y = np.array([1, 2, 3], np.uint32), np.array([10, 20, 2**32 - 1], np.uint32)

    def program() -> Any:
        party = tacit.session().party
        sums = tacit.riscv.load(SUMS)
        return sums.run(
            ["5", "reveal"],
            secret={"x": (1, x if party == 1 else None)},
            public={"data/y": y.tobytes()},
            output={"sums": 0, "total": ("all", "u16")},
        )

    told = tacit.launch(program, **SETTINGS[setting])
    for party, found in enumerate(told):
        assert (found.result, found.printed) == (
            5,
            b"3 sums, 2 arguments: 5   |   5|0x1 reveal|   0|0x2\n",
        )
        # The sum of the low halves of 35 and of 0: 11 + 22 + 2 modulo 2^32.
        assert found.outputs["total"].tolist() == [35, 0]
        assert [tuple(each) for each in found.opened] == [("sums", 0, 3), ("total", "all", 2)]
        if party == 0:
            assert found.outputs["sums"].tolist() == [11, 22, 2]
        else:
            assert found.outputs["sums"] is None


@pytest.mark.parametrize("setting", SETTINGS)
def test_secret_tensors_go_in_and_come_out(setting: str) -> None:
    def program() -> Any:
        here, sums = tacit.session(), tacit.riscv.load(SUMS)
        x = tacit.share(
            torch.tensor([1, -2, 3], dtype=torch.int32) if here.party == 0 else None, owner=0
        )
        y = np.array([10, 20, 30], np.int32)
        found = sums.run(
            secret={"x": 2 * x}, public={"data/y": y}, output={"sums": None, "total": None}
        )
        assert found.opened == []
        # Outputs can be inputs again, of a program's function and of PyTorch.
        doubled = sums.run(
            secret={"x": found.outputs["sums"]}, public={"data/y": y}, output={"sums": None}
        )
        return (doubled.outputs["sums"] * 100 + found.outputs["total"]).reveal().tolist()

    for told in tacit.launch(program, **SETTINGS[setting]):
        assert told == [2264, 3664, 6664]


def test_parties_give_a_program_the_same_secret_tensor() -> None:
    def program() -> Any:
        x = tacit.share(torch.tensor([1, 2, 3], dtype=torch.int32), owner=0)
        given = x if tacit.session().party == 1 else x + x
        y = np.array([10, 20, 30], np.int32)
        return tacit.riscv.load(SUMS).run(
            secret={"x": given}, public={"data/y": y}, output={"sums": "all"}
        )

    with pytest.raises(tacit.DesyncError, match="programs differ"):
        tacit.launch(program)


@pytest.mark.parametrize("bits", [12, 16, 20])
@pytest.mark.parametrize("setting", SETTINGS)
def test_secret_tensors_of_fractions_go_in_and_come_out(setting: str, bits: int) -> None:
    """Tensors keep their scale, which may have fewer or more fraction bits than the arrays of
    one party."""

    def program() -> Any:
        here, floats = tacit.session(), tacit.riscv.load(PROGRAMS / "arrays_of_floats.elf")
        with here.using(scale=fixed.scale_of(bits)):
            x = tacit.share(
                torch.tensor(values, dtype=torch.float64) if here.party == 0 else None, owner=0
            )
        twice, array = 2 * x, ["x", "len:x"]
        mean = floats.call("mean", array, secret={"x": twice}, result=("all", "f64"))
        found = floats.call("scaled", array, secret={"x": twice}, result=None, output={"x": None})
        assert found.opened == []
        kept = found.outputs["x"]
        assert kept.dtype == torch.float64
        # Outputs can be inputs again, of a program and of PyTorch.
        again = floats.call("greatest", array, secret={"x": kept}, result=("all", "f64"))
        return mean.result, (100 * kept).reveal().tolist(), again.result

    values = [1.5, -2.25, 4.0, 0.75]
    for mean, kept, greatest in tacit.launch(program, **SETTINGS[setting]):
        unit = 2.0 ** -min(bits, 16)
        assert abs(mean - 2) < 4 * unit
        np.testing.assert_allclose(kept, [37.5, -56.25, 100, 18.75], atol=1000 * unit)
        assert abs(greatest - 1) < 10 * unit


def test_fractions_that_are_too_fine() -> None:
    def program() -> Any:
        here = tacit.session()
        with here.using(scale=fixed.scale_of(31)):
            x = tacit.share(torch.tensor([1.5]) if here.party == 0 else None, owner=0)
        floats = tacit.riscv.load(PROGRAMS / "arrays_of_floats.elf")
        floats.call("mean", ["x", "len:x"], secret={"x": x}, result=("all", "f64"))

    with pytest.raises(MisuseError, match="x has 31 fraction bits, and programs take at most 30"):
        tacit.launch(program)


@pytest.mark.parametrize("setting", SETTINGS)
def test_fractions_go_in_and_come_out(setting: str) -> None:
    values = np.array([1.5, -2.25, 4.0, 0.75])

    def program() -> Any:
        own = values if tacit.session().party == 1 else None
        mean = tacit.riscv.load(PROGRAMS / "mean.elf")
        return mean.run(secret={"values": (1, own)}, output={"means": "all"}).outputs["means"]

    for means in tacit.launch(program, **SETTINGS[setting]):
        assert means.dtype == np.float64
        np.testing.assert_allclose(means, [1.0, 1.75], atol=2**-13)


@pytest.mark.parametrize("setting", SETTINGS)
def test_all_is_told_shared_and_opened_at_once(setting: str) -> None:
    """Arrays of two parties and a public one take one round for the lengths, one to share them
    if the protocol sends shares, one for products, and one to open the results."""

    def program() -> Any:
        here, figures = tacit.session(), tacit.riscv.load(PROGRAMS / "figures.elf")
        x, y = np.array([3, 2**40, 5], np.uint64), np.array([2**63, 2**40, 7], np.uint64)
        secret = {
            "x": (0, x if here.party == 0 else None),
            "y": (1, y if here.party == 1 else None),
        }
        told = []
        for _ in range(2):
            before = here.meter.total.rounds
            found = figures.call(
                "products",
                ["x", "y", "z", "len:x"],
                secret=secret,
                public={"z": np.zeros(3, np.uint64)},
                result=None,
                output={"z": "all"},
            )
            assert found.outputs["z"].tolist() == [2**63, 0, 35]
            assert set(found.waited) == {"products", "inputs and outputs"}
            told.append(here.meter.total.rounds - before)
        return told

    rounds = tacit.launch(program, **SETTINGS[setting])
    assert [max(each) for each in zip(*rounds, strict=True)] == [3 + (setting == "replicated")] * 2


def test_public_arrays_that_differ_are_told() -> None:
    def program() -> Any:
        values = np.array([1, 2 + (tacit.session().party == 1)], np.uint64)
        return tacit.riscv.load(ELF).call("mean", ["a", "len:a"], public={"a": values})

    with pytest.raises(
        DesyncError, match="run different public files: that of this party has the hash"
    ):
        tacit.launch(program)


def test_a_fraction_that_cannot_be_encoded() -> None:
    def program() -> Any:
        own = np.array([1.0, np.inf]) if tacit.session().party == 0 else None
        tacit.riscv.load(PROGRAMS / "mean.elf").run(
            secret={"values": (0, own)}, output={"means": "all"}
        )

    with pytest.raises(MisuseError, match="values has a float that does not fit fixed point"):
        tacit.launch(program)


def test_branches_are_opened_where_that_is_asked_for() -> None:
    a, b = np.array([9, 3, 4], np.uint64), np.array([4, 9], np.uint64)

    def program() -> Any:
        party, loops = tacit.session().party, tacit.riscv.load(PROGRAMS / "psi_loops.elf")
        secret = {"a": (0, a if party == 0 else None), "b": (1, b if party == 1 else None)}
        opened = loops.run(secret=secret, output={"common": 2}, open_branches=["main"])
        kept = loops.run(secret=secret, output={"common": 2})
        assert [tuple(each) for each in kept.opened] == [("common", 2, 3)]
        assert (opened.outputs["common"] is None) == (party != 2)
        return opened.outputs["common"], opened.opened

    found, opened = tacit.launch(program)[2]
    assert found.tolist() == [9, 0, 4]
    # Two of six pairs are equal. The instruction jumps for the others.
    bits, where = opened[:2], r"branch at 0x\w+ in main \(psi_loops.c:23\): "
    assert [each[1:] for each in bits] == [("all", 2), ("all", 4)]
    assert all(re.fullmatch(f"{where}{bit}", each[0]) for bit, each in enumerate(bits))


def test_lists_are_merged_as_in_the_clear_where_branches_are_opened() -> None:
    a, b = np.array([2, 3, 5, 8, 9], np.uint64), np.array([1, 3, 8, 10], np.uint64)

    def program() -> Any:
        party, merge = tacit.session().party, tacit.riscv.load(PROGRAMS / "psi_merge.elf")
        secret = {"a": (0, a if party == 0 else None), "b": (1, b if party == 1 else None)}
        with pytest.raises(MisuseError, match=r"secret .* in merge \(psi_merge.c:2\d\)"):
            merge.run(secret=secret, output={"common": 1})
        found = merge.run(secret=secret, output={"common": 1}, open_branches=["merge"])
        return found.outputs["common"], sum(each[2] for each in found.opened if each[1] == "all")

    for protocol in ("replicated", "additive"):
        found = tacit.launch(
            program, protocol=protocol, parties=3 if protocol == "replicated" else 2
        )
        # There are six pairs of front elements. All are tested for equality, and the four unequal
        # ones are compared.
        assert (found[1][0].tolist(), found[1][1]) == ([3, 8], 6 + 4)


def test_what_is_refused_is_predicted(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    told = ["--secret", "x=0:u32:4", "--public", f"data/y={SUMS}", "--output", "sums=all"]
    ended = command("riscv", "cost", SUMS, *told, "--arg", "print", "--json", found)
    assert ended.returncode == 1
    (refused,) = json.loads(found.read_text())["refused"]
    assert "what is printed is secret" in refused
    assert refused in ended.stderr
    # All refused lines at once, each with its reason: reads at the fronts of both lists, and the
    # comparison of the fronts.
    merge = [PROGRAMS / "psi_merge.elf", "--secret", "a=0:u64:5", "--secret", "b=1:u64:3"]
    ended = command("riscv", "cost", *merge, "--output", "common=1", "--json", found)
    assert ended.returncode == 1
    refused = json.loads(found.read_text())["refused"]
    assert f"tacit: {len(refused)} lines are refused:\n" + "\n".join(refused) in ended.stderr
    line = r" in merge \(psi_merge.c:(\d+)\), called from main \(.*\): (memory|a loop|branch)"
    own = [re.search(line, each) for each in refused]
    assert [each.groups() for each in own if each] == [
        ("21", "memory"),
        ("22", "memory"),
        ("20", "a loop"),
        ("24", "branch"),
    ]
    # The end of the loop depends on the number of elements written. The runtime's part of it is
    # reported once.
    assert len(refused) == 5
    assert "called from memcpy" in refused[4]
    assert "from main (psi_merge.c:36)" in refused[4]
    # A length is enough instead of a file.
    ended = command("riscv", "cost", SUMS, "--secret", "x=0:u32:-1", "--output", "sums=all")
    assert ended.returncode == 1
    assert "--secret x=0:u32:-1: a length is 0 or more" in ended.stderr
    ended = command("riscv", "cost", SUMS, "--secret", "x=0:u32", "--output", "sums=all")
    assert ended.returncode == 1
    assert (
        "party 0 must say where the values are: x=0:u32:PATH, or how many: x=0:u32:1000"
        in ended.stderr
    )


@pytest.mark.parametrize("found", COMPILERS[:2])
def test_a_program_is_compiled_and_run(
    found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(found) is None:
        pytest.skip(f"{found} is not here")
    monkeypatch.setattr(compiler, "COMPILERS", (found,))
    source = tmp_path / "twice.c"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <tacit.h>\nint main(void) { "
        'long *x = calloc(1, sizeof *x); FILE *in = fopen("x", "rb"); '
        'fread(x, sizeof *x, 1, in); printf("%ld %d\\n", (long)tacit_reveal(2 * *x), N); return 0; '
        "}"
    )
    ended = command("riscv", "cc", source, "-o", tmp_path / "twice.elf", "-D", "N=7")
    assert ended.returncode == 0, ended.stderr
    (tmp_path / "x.txt").write_text("-21")
    ended = command("riscv", "try", tmp_path / "twice.elf", "--secret", f"x=2:i64:{tmp_path}/x.txt")
    assert ended.returncode == 0, ended.stderr
    assert "-42 7\n" in ended.stdout
    # Some compilers store the given path, others only the file name. The console wraps the line.
    assert "twice.c:4)(1value,toall)" in "".join(ended.stdout.split())
    # All branches of a switch on a secret are executed, also if each is only a number.
    source.write_text(
        '#include <stdio.h>\nint main(void) { int x[9], y[9]; FILE *in = fopen("x", "rb"), '
        '*out = fopen("y", "wb"); fread(x, 4, 9, in);\nfor (int i = 0; i < 9; i++) {\n'
        "switch (x[i]) { case 0: y[i] = 17; break; case 1: y[i] = x[0]; break; case 2: y[i] = 99; "
        "break; "
        "case 3: y[i] = x[1] + 4; break; case 4: y[i] = 5; break; case 5: y[i] = 8; break; "
        "default: y[i] = x[8] * 2; }\n"
        "switch (x[i]) { case 0: y[i] += 3; break; case 1: y[i] += 1; break; case 2: y[i] += 4; "
        "break; "
        "case 3: y[i] += 1; break; case 4: y[i] += 5; break; case 5: y[i] += 9; break; "
        "default: y[i] += 2; }\n} fwrite(y, 4, 9, out); return fclose(out); }"
    )
    assert command("riscv", "cc", source).returncode == 0
    (tmp_path / "x.txt").write_text("0 1 2 3 4 5 6 7 -8")
    ended = command(
        *("riscv", "try", source.with_suffix(".elf"), "--parties", 2, "--source", "dealer"),
        *("--secret", f"x=0:i32:{tmp_path}/x.txt", "--output", "y=all"),
    )
    assert ended.returncode == 0, ended.stderr
    assert f"y: {[20, 1, 103, 6, 10, 17, -14, -14, -14]}\n" in ended.stdout
    source.write_text("int main(void) { return none; }")
    ended = command("riscv", "cc", source)
    assert ended.returncode == 1
    assert "did not compile it" in ended.stderr
    assert "none" in ended.stderr


@pytest.mark.parametrize("found", COMPILERS[:2])
def test_functions_that_nobody_calls_are_compiled_too(
    found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(found) is None:
        pytest.skip(f"{found} is not here")
    monkeypatch.setattr(compiler, "COMPILERS", (found,))
    monkeypatch.chdir(tmp_path)
    Path("total.c").write_text(
        "long total(const long *a, long n) { long s = 0; for (long i = 0; i < n; i++) s += a[i]; "
        "return s; }"
    )
    Path("main.c").write_text("long twice(long x) { return 2 * x; } int main(void) { return 5; }")
    Path("a.txt").write_text("1 20 300")
    called = ["--call", "total", "--arg", "a", "--arg", "len:a", "--secret", "a=1:i64:a.txt"]
    for sources in (["total.c"], ["total.c", "main.c"]):
        ended = command("riscv", "cc", *sources)
        assert ended.returncode == 0, ended.stderr
        ended = command("riscv", "try", "total.elf", *called)
        assert ended.returncode == 0, ended.stderr
        assert "result: 321\n" in ended.stdout
        ended = command("riscv", "try", "total.elf")
        assert ended.returncode == 0, ended.stderr
        whole = "no main: --call names one" if len(sources) == 1 else "ended with status 5\n"
        assert whole in ended.stdout
    ended = command("riscv", "try", "total.elf", "--call", "twice", "--arg", "21")
    assert "result: 42\n" in ended.stdout


def test_the_command_runs_programs_between_processes(tmp_path: Path) -> None:
    config = example(tmp_path)
    (tmp_path / "x.txt").write_text("1 2 3")
    np.save(tmp_path / "y.npy", np.array([10, 20, 30], np.uint32))
    (tmp_path / "x").write_bytes(np.array([1, 2, 3], np.uint32).tobytes())
    said = [
        "--public",
        f"data/y={tmp_path}/x",
        "--output",
        "sums=2",
        "--output",
        "total=all",
        "--arg",
        "4",
    ]

    def party(number: int) -> Command:
        path = f":{tmp_path}/x.txt" if number == 1 else ""
        secret = ["--secret", f"x=1:u32{path}"]
        report = ["--json", tmp_path / f"{number}.json"]
        return Command(
            "riscv", "run", "--config", config, "--party", number, SUMS, *secret, *said, *report
        )

    parties = [party(number) for number in range(3)]
    for running in parties:
        code, output, errors = running.ended()
        assert code == 0, errors
        assert "total: [12]" in output
        assert ("sums: [2, 4, 6]" in output) == (running is parties[2])
    reports = [json.loads((tmp_path / f"{number}.json").read_text()) for number in range(3)]
    assert [report["outputs"]["sums"] for report in reports] == [None, None, [2, 4, 6]]
    for report in reports:
        assert report["result"] == 4
        assert report["outputs"]["total"] == [12]
        assert report["bytes_sent_per_party"] == reports[0]["bytes_sent_per_party"]
    # A party that lacks its own file tells the others at once.
    (tmp_path / "x.txt").unlink()
    parties = [party(number) for number in range(3)]
    told = [running.ended()[2] for running in parties]
    assert "cannot read" in told[1]
    assert "its options or files are wrong" in told[0]


#: Mistakes: the call, and the text of the error.
MISTAKES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a branch": (
        lambda p, a: p.call("sort", ["a", "len:a"], secret={"a": (0, a)}),
        r"the program stopped at 0x[0-9a-f]+ in sort: the sides of branches on secrets part again",
    ),
    "beyond the end": (
        lambda p, a: p.call("mean", ["a", 5], secret={"a": (0, a)}),
        r"in mean: 8 bytes at 0x[0-9a-f]+ are outside the program's memory",
    ),
    "too long": (
        lambda p, _: p.call("fibonacci", [40], limit=1000),
        "the limit of 1000 instructions is reached",
    ),
    "no function": (lambda p, _: p.call("variance"), "no function variance in the program"),
    "no array": (lambda p, _: p.call("mean", ["b"]), "no array is called 'b'; there are none"),
    "fractions": (
        lambda p, _: p.call("mean", ["a"], public={"a": [[0.5]]}),
        "a is of float64 in 2 dimensions",
    ),
    "no party": (
        lambda p, a: p.call("mean", ["a"], secret={"a": (7, a)}),
        "owner 7 does not exist",
    ),
    "many arguments": (
        lambda p, _: p.call("mean", [1] * 9),
        "9 arguments: a function takes 8 in registers",
    ),
    "nobody": (lambda p, _: p.call("mean", [1, 1], result="some"), "'some' is not a receiver"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_says_why(mistake: str) -> None:
    call, message = MISTAKES[mistake]

    def program() -> str:
        values = np.array([3, 1, 2], np.uint64)
        if mistake == "a branch":
            values = np.array([3, 1, 2, 9, 0, 2, 7], np.uint32)
        with pytest.raises(MisuseError, match=message) as error:
            call(tacit.riscv.load(ELF), values if tacit.session().party == 0 else None)
        return str(error.value)

    told = tacit.launch(program, protocol="plain", parties=2)
    assert told[0] == told[1]


def test_parties_that_call_differently_are_told() -> None:
    """Even a public result, which no step opens, is compared."""

    def program() -> Any:
        return tacit.riscv.load(ELF).call("fibonacci", [5 + (tacit.session().party == 2)])

    with pytest.raises(DesyncError):
        tacit.launch(program)


@pytest.mark.parametrize("what", ["programs", "options"])
def test_parties_that_run_differently_are_told_both_hashes(what: str) -> None:
    values, other = np.array([1, 2, 3], np.uint64), ELF.read_bytes() + b"\0"

    def program() -> Any:
        party, arrays = tacit.session().party, tacit.riscv.load(ELF)
        if what == "programs" and party == 2:
            arrays = tacit.riscv.Program(other)
        limit = 1000 + (what == "options" and party == 2)
        return arrays.call(
            "mean", ["a", 3], secret={"a": (0, values if party == 0 else None)}, limit=limit
        )

    with pytest.raises(DesyncError, match=f"run different {what}") as error:
        tacit.launch(program)
    # Either the third party reports the difference, or another party reports the third one's.
    said = re.search(
        "this party has the hash ([0-9a-f]{16}), that of party ([02]) ([0-9a-f]{16})",
        str(error.value),
    )
    assert said
    if what == "programs":
        both = [_core.riscv_digest(other), _core.riscv_digest(ELF.read_bytes())]
        assert [said[1], said[3]] == (both if said[2] == "0" else both[::-1])
    assert said[1] != said[3]


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot read"):
        tacit.riscv.load(tmp_path / "none.elf")
    (tmp_path / "script").write_text("#!/bin/sh\n")
    with pytest.raises(MisuseError, match="not a program for this machine"):
        tacit.riscv.load(tmp_path / "script")


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("3 5 10\n")
    called = [
        "--call",
        "mean",
        "--arg",
        "a",
        "--arg",
        "len:a",
        "--secret",
        f"a=1:u64:{tmp_path}/a.txt",
    ]
    ended = command("riscv", "try", ELF, *called, "--json", tmp_path / "mean.json")
    assert ended.returncode == 0, ended.stderr
    assert "result: 6" in ended.stdout
    mean = json.loads((tmp_path / "mean.json").read_text())
    assert mean["result"] == 6
    assert mean["opened"] == [{"what": "result", "to": "all", "values": 1}]
    assert {"outputs", "instructions", "rounds", "bytes_sent_per_party", "seconds"} < mean.keys()
    assert mean["instructions"] > 10
    assert mean["rounds"] > 1
    # Bytes of a file, revealed to one party.
    np.save(tmp_path / "text.npy", np.frombuffer(b"123456789", np.uint8))
    text = ["--secret", f"t=0:u8:{tmp_path}/text.npy", "--result", "none", "--output", "t=1"]
    ended = command("riscv", "try", ELF, "--call", "reverse", "--arg", "t", "--arg", 9, *text)
    assert ended.returncode == 0, ended.stderr
    assert f"t: {list(b'987654321')}" in ended.stdout
    assert "opened: t (9 values, to 1)" in ended.stdout.replace("\n", " ")


WRONG = {
    "type": (["--secret", "a=0:u9:a.txt"], "no type is called 'u9'"),
    "form": (["--secret", "a"], "'a' is not of the form --secret NAME=OWNER:TYPE[:PATH]"),
    "party": (["--secret", "a=3:u16:a.txt"], "party 3 of 3"),
    "file": (["--secret", "a=0:u8:none.txt"], "cannot read none.txt"),
    "value": (["--secret", "a=0:u8:a.txt"], "a value in a.txt is no u8: 0 to 255"),
    "text": (["--public", "a=u8:text.txt"], "text.txt has no integers"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_options_that_cannot_be(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("3 500")
    Path("text.txt").write_text("three")
    options, message = WRONG[mistake]
    ended = command("riscv", "try", ELF, "--call", "mean", *options)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert message in ended.stderr


def _has_target() -> bool:
    """Whether cargo, rustc and the standard library for the machine are installed."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        return False
    asked = subprocess.run(
        ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    return (Path(asked.stdout.strip()) / "lib/rustlib/riscv64gc-unknown-none-elf").is_dir()


@pytest.mark.skipif(not _has_target(), reason="rustup target add riscv64gc-unknown-none-elf")
@pytest.mark.parametrize("setting", SETTINGS)
def test_functions_in_rust(setting: str, tmp_path: Path) -> None:
    command = ["cargo", "build", "--release", "--offline", "--quiet", "--example", "functions"]
    subprocess.run([*command, "--target-dir", tmp_path], cwd=PROGRAMS / "rust", check=True)
    elf = tmp_path / "riscv64gc-unknown-none-elf/release/examples/functions"
    values = np.array([3, 99, 40, 12], np.uint64)

    def program() -> list[Any]:
        party, functions = tacit.session().party, tacit.riscv.load(elf)
        numbers = {"a": (0, values if party == 0 else None)}
        place = np.array([20], np.uint64)
        mean = functions.call("mean", ["a", "len:a"], secret=numbers)
        below = functions.call("below", ["a", "len:a", 41], secret=numbers)
        public = functions.call("prime", [20, 1])
        assert [(each.to, each.values) for each in below.opened] == [("all", 1), ("all", 1)]
        with pytest.raises(MisuseError, match="from 0 to 99, and it is not"):
            functions.call("below", ["p", 1, 5], public={"p": place * np.uint64(5)})
        return [mean.result, below.result, public.result]

    assert all(told == [38, 3, 11] for told in tacit.launch(program, **SETTINGS[setting]))
