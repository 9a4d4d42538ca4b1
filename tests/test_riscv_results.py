"""Arguments and results of compiled programs' functions, of each type."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from commands import tacit as command
from tacit.errors import MisuseError
from test_riscv import PROGRAMS, SETTINGS

FLOATS = PROGRAMS / "arrays_of_floats.elf"
VALUES = np.array([1.5, -2.25, 4.0, 0.75])


@pytest.mark.parametrize("setting", SETTINGS)
def test_floats_are_returned(setting: str) -> None:
    """Secret floats of both lengths, and integers with their sign."""

    def program() -> Any:
        here, floats = tacit.session(), tacit.riscv.load(FLOATS)
        x = {"x": (0, VALUES if here.party == 0 else None)}
        short = {"x": (1, VALUES.astype(np.float32) if here.party == 1 else None)}
        array = ["x", "len:x"]
        mean = floats.call("mean", array, secret=x, result=("all", "f64"))
        mine = floats.call("greatest", array, secret=x, result=(1, "f64"))
        whole = floats.call("whole", array, secret=x, result=("all", "i64"))
        straight = floats.call(
            "straight", [*array, np.float32(2.5), 0.125], secret=short, result=("all", "f32")
        )
        nobody = floats.call("mean", array, secret=x, result=(None, "f64"))
        assert nobody.result is None
        assert nobody.opened == []
        return [mean.result, whole.result, straight.result, mine.result]

    told = tacit.launch(program, **SETTINGS[setting])
    for party, (mean, whole, straight, greatest) in enumerate(told):
        assert abs(mean - VALUES.mean()) < 2**-13
        assert whole == 2 * (1 - 2 + 4 + 0)
        assert isinstance(straight, float)
        assert abs(straight - 10.125) < 2**-13
        assert greatest == (4.0 if party == 1 else None)


def test_public_floats_by_value() -> None:
    """All places of the calling convention: float registers first, then integer registers."""

    def program() -> Any:
        floats = tacit.riscv.load(FLOATS)
        many = floats.call("ninth", [*map(float, range(8)), -1.1, 3], result=("all", "f64"))
        values = VALUES.astype(np.float32)
        given = ["x", "len:x", np.float32(0.1), 0.25]
        short = floats.call("straight", given, public={"x": values}, result=("all", "f32"))
        sums = [
            floats.call("inverted", [5], result=("all", kind)).result
            for kind in ("u32", "i32", "u8", "i16", "u64")
        ]
        small = floats.call("negated", [np.int64(5)], result=("all", "i8"))
        return [many.result, short.result, sums, small.result]

    many, short, inverted, small = tacit.launch(program, protocol="plain", parties=2)[0]
    assert many == -1.1 * 3
    expected = np.float32(0.25)
    for value in VALUES.astype(np.float32):
        expected += value * np.float32(0.1)
    assert abs(short - float(expected)) < 1e-6
    assert inverted == [2**32 - 6, -6, 250, -6, 2**64 - 6]
    assert small == -5


def test_what_is_no_result_is_refused() -> None:
    """An address is never taken for a float."""

    def program() -> None:
        floats = tacit.riscv.load(FLOATS)
        x = {"x": (0, VALUES if tacit.session().party == 0 else None)}
        array = ["x", "len:x"]
        for result, message in (
            (
                "all",
                r"mean returned an address of the array x .* give the result's type, as in all:f64",
            ),
            (
                ("all", "f32"),
                "mean did not return an f32: give the type that the result has in the program",
            ),
            (("all", "f16"), "result: no type is called 'f16'; known are u8"),
        ):
            with pytest.raises(MisuseError, match=message):
                floats.call("mean", array, secret=x, result=result)
        with pytest.raises(MisuseError, match="ninth returned a public integer and, in the float"):
            floats.call("ninth", [0.5] * 9 + [2], result="all")
        with pytest.raises(MisuseError, match="inverted did not return an f32"):
            floats.call("inverted", [1], result=("all", "f32"))
        with pytest.raises(MisuseError, match="17 arguments: a function takes 8 in registers"):
            floats.call("ninth", [0.5] * 8 + [1] * 9)
        with pytest.raises(MisuseError, match="is a float16; floats are float32 or float64"):
            floats.call("ninth", [np.float16(1)])

    tacit.launch(program, protocol="plain", parties=2)


def test_the_command_says_types(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("1.5 -2.25 4.0 0.75")
    called = ["riscv", "try", FLOATS, "--secret", f"x=0:f32:{tmp_path}/x.txt", "--parties", 2]
    array = ["--arg", "x", "--arg", "len:x"]
    told = [*called, "--call", "straight", *array, "--arg", "0.5:f32", "--arg=-1e1:f64"]
    ended = command(*told, "--result", "all:f32", "--json", tmp_path / "found.json")
    assert ended.returncode == 0, ended.stderr
    assert "result: -8.0\n" in ended.stdout
    # If only the number of parties is given, the protocol is the one that works for any number.
    assert "Threat model: 2 parties" in ended.stdout
    assert json.loads((tmp_path / "found.json").read_text())["result"] == -8.0
    for wrong, message in (
        (["--result", "all:f65"], "'all:f65' is not of the form --result all|PARTY|none[:TYPE]"),
        (["--arg", "half:f64"], "--arg half:f64: 'half' is no number"),
        (["--result", "all"], "straight returned an address of the array x"),
    ):
        ended = command(*told, *wrong)
        assert ended.returncode == 1
        assert message in ended.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The program continues with a NULL file, and stops because of it."""
    (tmp_path / "a.txt").write_text("1 5 7")
    secret = [each for name in "ab" for each in ("--secret", f"{name}=0:u64:{tmp_path}/a.txt")]
    ended = command(
        "riscv", "try", PROGRAMS / "psi.elf", *secret, "--output", "nothing=all", "--parties", 2
    )
    assert ended.returncode == 1
    assert "is outside the program's memory: check pointers for NULL" in ended.stderr
    assert "; files that it did not find: common" in ended.stderr
