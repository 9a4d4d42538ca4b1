"""Secret floats of compiled programs with public ranges: results are right at the scale of real
data."""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from commands import tacit as command
from tacit.errors import DesyncError, MisuseError, PrecisionWarning, StoppedError
from test_riscv import PROGRAMS, SETTINGS

ELF = PROGRAMS / "figures_of_floats.elf"

#: Typical data, and their public ranges.
DATA = {
    "salaries": (1e4, 2e5),
    "cents": (1e6, 2e7),
    "timestamps": (1.6e9, 1.8e9),
    "small": (1e-7, 1e-6),
    "both signs": (-1e9, 1e9),
    "shares": (0.0, 1.0),
}


def drawn(name: str, count: int) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(len(name)).uniform(*DATA[name], count)
    return np.round(values) if name == "cents" else values


def called(
    function: str,
    arrays: Mapping[str, Any],
    arguments: list[Any],
    ranges: Mapping[str, tuple[float, float]],
    result: Any = ("all", "f64"),
    output: Mapping[str, Any] | None = None,
) -> Any:
    """Calls a function in the current session. Party 0 has the first array, and party 1 all
    others."""
    party = tacit.session().party
    owners = {name: min(at, 1) for at, name in enumerate(arrays)}
    secret = {
        name: each
        if isinstance(each, tacit.SecretTensor)
        else (owners[name], each if party == owners[name] else None)
        for name, each in arrays.items()
    }
    return tacit.riscv.load(ELF).call(
        function, arguments, secret=secret, ranges=ranges, result=result, output=output or {}
    )


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", DATA)
def test_statistics_of_real_data(name: str, setting: str) -> None:
    x, ends = drawn(name, 60), DATA[name]
    size = max(map(abs, ends))

    def program() -> Any:
        squares = called("squares", {"x": x}, ["x", "len:x"], {"x": ends})
        arrays = {"x": x, "o": np.zeros(7)}
        told = called("summary", arrays, ["x", "len:x", "o"], {"x": ends}, None, {"o": "all"})
        whole = called(
            "whole_squares", {"x": x / size}, ["x", "len:x"], {"x": (-1, 1)}, ("all", "i64")
        )
        return squares.result, told.outputs["o"], whole.result

    squares, (mean, variance, deviation, least, most, above, whole), small = tacit.launch(
        program, **SETTINGS[setting]
    )[0]
    assert abs(squares - (x * x).sum()) < 60 * size**2 * 2**-28
    assert abs(mean - x.mean()) < size * 2**-40
    assert abs(variance - x.var()) < size**2 * 2**-28
    assert abs(deviation - x.std()) < size * 2**-24
    assert (abs(least - x.min()), abs(most - x.max())) < (size * 2**-44, size * 2**-44)
    assert (above, whole) == ((x > x.mean()).sum(), np.trunc(mean))
    assert abs(small - ((x / size) ** 2).sum()) <= 1


def test_sums_of_many_products() -> None:
    """Sums that exceed an accumulator unless products are truncated, of both float types and of
    integers."""
    x = drawn("salaries", 10_000)
    whole, short = np.round(x).astype(np.int64), x.astype(np.float32)

    def program() -> Any:
        here = ["x", "len:x"]
        ends = {"x": DATA["salaries"]}
        return (
            called("squares", {"x": x}, here, ends).result,
            called("squares_short", {"x": short}, here, ends, ("all", "f32")).result,
            called("squares_of_integers", {"x": whole}, here, ends).result,
            called("whole_squares", {"x": x}, here, ends, ("all", "i64")).result,
        )

    squares, of_short, of_whole, integer = tacit.launch(program, protocol="plain", parties=2)[0]
    assert abs(squares / (x * x).sum() - 1) < 2**-28
    assert abs(of_short / (short.astype(np.float64) ** 2).sum() - 1) < 2**-23
    assert of_whole == (whole * whole).sum()
    assert abs(integer / (x * x).sum() - 1) < 2**-28


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_range_so_wide_that_nothing_is_right_is_told(setting: str) -> None:
    x = drawn("shares", 60)

    def squares_of(values: np.ndarray[Any, Any], most: float) -> float:
        found: float = called("squares", {"x": values}, ["x", "len:x"], {"x": (0.0, most)}).result
        return found

    def right() -> tuple[float, float]:
        # Large numbers have no fraction bits, but digits.
        squares_of(1e20 * x, 1e20)
        return squares_of(x, 1e3), squares_of(x, 1.0)

    def wrong() -> float:
        arrays, ends = {"x": x, "o": np.zeros(7)}, {"x": (0.0, 1e17)}
        called("summary", arrays, ["x", "len:x", "o"], ends, None, {"o": 1})
        return squares_of(x, 1e20)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        narrow, narrowest = tacit.launch(right, **SETTINGS[setting])[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = tacit.launch(wrong, **SETTINGS[setting])
    told = sorted(str(each.message) for each in caught if each.category is PrecisionWarning)
    squares = (x * x).sum()
    assert abs(found[0] - squares) > 1
    assert abs(narrow - squares) < 60e6 * 2**-27
    assert abs(narrowest - squares) < 60 * 2**-27
    # One party learns `o`, and all learn the result.
    assert [each.partition(": ")[0] for each in told] == ["o", *["result"] * len(found)]
    assert "its numbers reach 6e+41, and errors are up to 2^-24 of that" in told[-1]


def test_unlike_sizes_meet() -> None:
    salaries, rates = drawn("salaries", 50), drawn("small", 50)

    def program() -> float:
        ends = {"x": DATA["salaries"], "y": DATA["small"]}
        return called("products", {"x": salaries, "y": rates}, ["x", "y", "len:x"], ends).result

    for setting in SETTINGS.values():
        found = tacit.launch(program, **setting)[0]
        assert abs(found - (salaries * rates).sum()) < 50 * 2e5 * 1e-6 * 2**-28


def test_what_has_no_room_names_its_line_and_the_remedy_works() -> None:
    x, size = drawn("salaries", 20) * 1e4, 2e9
    squares = (x * x).sum()

    def program() -> Any:
        arrays, arguments = {"x": x, "y": np.array([-3.25])}, ["x", "y", "len:x"]
        ends = {"x": (0.0, size)}
        line = r"in beside \(figures_of_floats.c:62\): a secret float of a known range, of up to 2\^\d+ in mag"
        with pytest.raises(StoppedError, match=line):
            called("beside", arrays, arguments, ends)
        said = called("beside", arrays, arguments, {**ends, "y": (-10.0, 10.0)}).result
        there = called("beside_said", arrays, arguments, ends).result
        line = r"in share_of \(figures_of_floats.c:56\): .* is divided by a number that may be 0 .*tacit_real_range"
        with pytest.raises(StoppedError, match=line):
            called("share_of", {"x": x}, ["x", "len:x", 0.0], {"x": (-size, size)})
        share = called("share_of", {"x": x}, ["x", "len:x", 1e18], {"x": (-size, size)}).result
        line = r"in whole_squares \(figures_of_floats.c:48\): .* 2\^\d+ in magnitude is converted to an int"
        with pytest.raises(StoppedError, match=line):
            called("whole_squares", {"x": x}, ["x", "len:x"], ends, ("all", "i64"))
        with pytest.raises(
            StoppedError, match=r"tacit_real_range says that a number is from 1\.0 to 0\.5, and"
        ):
            called("between", {"x": x}, ["x", 1.0, 0.5], ends)
        return said, there, share

    said, there, share = tacit.launch(program, protocol="plain", parties=2)[0]
    assert abs(said / squares - 1) < 2**-28
    assert abs(there / squares - 1) < 2**-28
    assert abs(share - x[0] ** 2 / squares) < 4 * 2**-24


def test_a_range_is_held_and_all_say_the_same() -> None:
    x = np.array([1.0, 2.0, 3.5])

    def outside() -> Any:
        mine = tacit.session().party == 0
        with pytest.raises(
            MisuseError,
            match="x has a value that is not from 0 to 3"
            if mine
            else "party 0 refused.*outside the range",
        ):
            called("squares", {"x": x}, ["x", "len:x"], {"x": (0, 3)})
        with pytest.raises(
            StoppedError, match="the range of x is from 3 to 0: give the lower number first"
        ):
            called("squares", {"x": x}, ["x", "len:x"], {"x": (3, 0)})
        with pytest.raises(
            StoppedError, match="the range of y: no secret array is called that; there are x"
        ):
            called("squares", {"x": x}, ["x", "len:x"], {"y": (0, 3)})
        # The session continues.
        return called("squares", {"x": x}, ["x", "len:x"], {"x": (0, 4)}).result

    for found in tacit.launch(outside):
        assert abs(found - 17.25) < 16 * 2**-28

    def differs() -> None:
        ends = (0, 4) if tacit.session().party == 0 else (0, 8)
        called("squares", {"x": x}, ["x", "len:x"], {"x": ends})

    with pytest.raises(DesyncError, match="the parties run different options"):
        tacit.launch(differs)


def test_secret_tensors_of_a_range() -> None:
    """A tensor is an input, and the output has as many fraction bits as its range permits."""
    x = np.array([1000.5, 2000.25, 1500.0])

    def program() -> Any:
        tensor = tacit.share(torch.tensor(x) if tacit.session().party == 0 else None, owner=0)
        squares = called("squares", {"x": tensor}, ["x", "len:x"], {"x": (0, 4096)})
        large = {"x": (0, 2.0**60)}
        with pytest.raises(StoppedError, match="x has too many fraction bits for its range"):
            called("squares", {"x": tensor}, ["x", "len:x"], large)
        arrays = {"x": x, "o": np.zeros(7)}
        told = called("summary", arrays, ["x", "len:x", "o"], {"x": (0, 4096)}, None, {"o": None})
        with pytest.raises(
            StoppedError, match="its range is larger than secret tensors can hold: open it, or"
        ):
            called(
                "summary",
                {**arrays, "x": x * 1e12},
                ["x", "len:x", "o"],
                {"x": (0, 1e16)},
                None,
                {"o": None},
            )
        return squares.result, told.outputs["o"].reveal().numpy()

    squares, summary = tacit.launch(program)[0]
    assert abs(squares - (x * x).sum()) < 3 * 4096**2 * 2**-28
    assert abs(summary[:3] - [x.mean(), x.var(), x.std()]).max() < 0.1


def test_the_command_says_ranges(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("60000 150000.25 90000")
    base = ["riscv", "try", ELF, "--secret", f"x=0:f64:{tmp_path}/x.txt", "--parties", 2]
    told = [*base, "--call", "squares", "--arg", "x", "--arg", "len:x", "--result", "all:f64"]
    ended = command(*told, "--range", "x=0..2e5", "--json", tmp_path / "found.json")
    assert ended.returncode == 0, ended.stderr
    expected = 6e4**2 + 150000.25**2 + 9e4**2
    assert (
        abs(json.loads((tmp_path / "found.json").read_text())["result"] - expected) < 4e10 * 2**-26
    )
    for text, message in (
        ("x=0-5", "'0-5' is not of the form --range NAME=LEAST..MOST"),
        ("x=0..many", "'x=0..many' is not of the form --range NAME=LEAST..MOST, with two numbers"),
        ("x=0..5", "x has a value that is not from 0 to 5"),
    ):
        ended = command(*told, "--range", text)
        assert ended.returncode == 1
        assert message in ended.stderr.replace("\n", " ")


def test_what_a_range_costs_is_told_without_values() -> None:
    of = [
        "--secret",
        "x=0:f64:50",
        "--call",
        "squares",
        "--arg",
        "x",
        "--arg",
        "len:x",
        "--result",
        "all:f64",
    ]
    ended = command("riscv", "cost", ELF, *of, "--range", "x=1e4..2e5")
    assert ended.returncode == 0, ended.stderr
    # Sharing, a truncation of each array, products, their truncation, and the opening.
    assert "6 rounds" in ended.stdout
