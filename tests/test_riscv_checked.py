"""Checked mode of the RISC-V machine: secret floats that leave their range have no result.

The party that was to receive the result learns the line of the program. No other party does.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from commands import Command
from commands import tacit as command
from test_command_line import example
from test_riscv import SETTINGS
from test_riscv_ranges import ELF, called

#: The line that sums up squares.
LINE = "squares (figures_of_floats.c:6)"

ALL = {"plain": {"parties": 2, "protocol": "plain"}, **SETTINGS}


def salaries(count: int = 10_000) -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).uniform(30_000, 200_000, count)


def squares(x: Any, ranges: Any = None, to: Any = "all") -> Any:
    return called("squares", {"x": x}, ["x", "len:x"], ranges or {}, (to, "f64")).result


def failing(call: Any, *arguments: Any) -> Any:
    """Returns the result of a call, or the lines that its error names."""
    try:
        return call(*arguments)
    except tacit.RangeError as error:
        return error.operators


@pytest.mark.parametrize("setting", ALL)
def test_the_sum_of_squares_of_salaries(setting: str) -> None:
    """The result is wrong without checks, refused with checks, and right with a range."""
    x = salaries(10_000 if setting != "additive" else 500)
    right = float((x * x).sum())

    def program() -> Any:
        ranges = {"x": (30_000, 200_000)}
        wrong = squares(x)
        with tacit.checked():
            return wrong, failing(squares, x), squares(x, ranges), squares(x / 1000)

    for wrong, refused, found, small in tacit.launch(program, **ALL[setting]):
        assert abs(wrong / right - 1) > 0.5
        assert refused == (LINE,)
        assert abs(found / right - 1) < 2**-28
        assert abs(small * 1e6 / right - 1) < 1e-5


@pytest.mark.parametrize("setting", SETTINGS)
def test_its_receiver_alone_is_told(setting: str) -> None:
    x = salaries(100)

    def program() -> Any:
        # The session continues after the error, in all parties.
        return failing(squares, x, None, 1), squares(x / 1000, None, 0)

    right = ((x / 1000) ** 2).sum()
    first, second, *others = tacit.launch(program, checked=True, **SETTINGS[setting])
    assert first[0] is None
    assert abs(first[1] - right) < 1
    assert second == ((LINE,), None)
    assert others in ([], [(None, None)])


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_is_kept_is_refused_when_it_is_opened(setting: str) -> None:
    """This covers reveals by PyTorch, and calls that take the kept value."""
    x, line = salaries(50), ("summary (figures_of_floats.c:33)",)

    def program() -> Any:
        with tacit.checked():
            arrays = {"x": x, "o": np.zeros(7)}
            kept = called("summary", arrays, ["x", "len:x", "o"], {}, None, {"o": None}).outputs[
                "o"
            ]
        # A checked value stays checked outside the block.
        return failing(lambda: kept.reveal(to=0)), failing(squares, kept, None, 1)

    for party, told in enumerate(tacit.launch(program, **SETTINGS[setting])):
        assert told == (line if party == 0 else None, line if party == 1 else None)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("function", ["opened", "branched"])
def test_what_a_program_opens_on_its_way_is_checked_before(function: str, setting: str) -> None:
    """All parties learn the value, so all get the error, and the session continues."""
    x = salaries(20)

    def call(x: Any) -> Any:
        party, elf = tacit.session().party, tacit.riscv.load(ELF)
        secret = {"x": (0, x if party == 0 else None)}
        branches = ["branched"]
        return elf.call(
            function, ["x", "len:x"], secret=secret, result=(1, "f64"), open_branches=branches
        ).result

    def program() -> Any:
        return failing(call, x), call(x / 1000)

    small = x / 1000
    right = (small**2).sum() if function == "opened" else small[1]
    told = tacit.launch(program, checked=True, **SETTINGS[setting])
    # The line is in the function that adds up, which is inlined.
    assert all(refused == (f"{function} (figures_of_floats.c:6)",) for refused, _ in told), told
    assert abs(told[1][1] - right) < 0.01
    assert told[0][1] is None


def test_a_tensor_is_held_to_its_range() -> None:
    x = torch.tensor([3.0, 200_001.0], dtype=torch.float64)

    def program() -> Any:
        shared = tacit.share(x if tacit.session().party == 0 else None, owner=0)
        ranges = {"x": (0.0, 200_000.0)}
        wide = {"x": (0.0, 200_001.0)}
        return failing(squares, shared, ranges), squares(shared, wide)

    for refused, found in tacit.launch(program, checked=True):
        assert refused == ("the range of x",)
        assert abs(found / (200_001.0**2 + 9) - 1) < 1e-6


# Instructions fused into one step
# ---------------------------------------------------------------


@pytest.mark.parametrize("setting", ALL)
def test_products_within_products_of_integers_are_checked(setting: str) -> None:
    """A chain of products contains both kinds. Only products of floats are checked."""
    large, by = np.array([1 << 40, 3, 3]), np.array([1, 5, 1])

    def call(x: Any, by: Any, kept: bool) -> Any:
        arrays = {"x": x, "y": x, "by": by, "o": np.zeros(len(x), np.int64)}
        arguments = ["x", "y", "by", "len:x", "o"]
        to = None if kept else "all"
        out = called("multiplied", arrays, arguments, {}, None, {"o": to}).outputs["o"]
        return (out.reveal() if kept else out).tolist()

    def program() -> Any:
        return [failing(call, large, by, kept) for kept in (False, True)], call(
            large[1:], by[1:], False
        )

    line = ("multiplied (figures_of_floats.c:98)",)
    for refused, right in tacit.launch(program, checked=True, **ALL[setting]):
        assert refused == [line, line]
        assert right == [45, 9]


@pytest.mark.parametrize("setting", ALL)
def test_the_least_of_what_is_too_far_apart_is_refused(setting: str) -> None:
    def program(values: list[float]) -> Any:
        scaled = tacit.share(torch.tensor(values, dtype=torch.float64), owner=0) * 65536.0
        values_as_said = scaled + scaled
        with tacit.checked():
            return failing(
                lambda: called("least_of", {"x": values_as_said}, ["x", "len:x"], {}).result
            )

    for apart in ([-(2.0**29), 2.0**29, 5, 6, 7], [2.0**29, 5, -(2.0**29), 6, 7]):
        for told in tacit.launch(program, apart, **ALL[setting]):
            assert told == ("least_of (figures_of_floats.c:103)",)
    for told in tacit.launch(program, [-(2.0**20), 2.0**20, 5, 6, 7], **ALL[setting]):
        assert told == -(2.0**37)


@pytest.mark.parametrize(
    ("function", "value", "ends"),
    [
        ("half_of", -1, (0, 2**63 - 1)),
        ("half_of", -1, (0, 2**62)),
        ("half_of", 5, (6, 2**63 - 1)),
        ("square_of_said", 2.0**46.5, (-1e15, 1e15)),
    ],
)
def test_wide_ranges_are_checked_at_both_ends(
    function: str, value: float, ends: tuple[Any, Any]
) -> None:
    is_float = function == "square_of_said"

    def given(value: float) -> Any:
        if not is_float:
            return np.array([value])
        # Computations outside checked mode are not checked.
        scaled = tacit.share(torch.tensor([value / 2**17], dtype=torch.float64), owner=0) * 65536.0
        return scaled + scaled

    def call(x: Any) -> Any:
        return called(
            function, {"x": x}, ["x", *ends], {}, ("all", "f64") if is_float else "all"
        ).result

    def program() -> Any:
        beyond, within = given(value), given(2.0**40 if is_float else 7)
        with tacit.checked():
            return failing(call, beyond), call(within)

    for refused, right in tacit.launch(program):
        assert isinstance(refused, tuple)
        assert right == (2.0**80 if is_float else 3)


@pytest.mark.parametrize("setting", SETTINGS)
def test_who_learns_what_is_public_hears_of_nothing(setting: str) -> None:
    def program() -> Any:
        x = (0, np.array([200_000.0]) if tacit.session().party == 0 else None)
        program, refused = tacit.riscv.load(ELF), None
        given: Any = {"secret": {"x": x}, "public": {"o": np.zeros(1)}}
        try:
            outcome = program.call(
                "square_beside", ["x", "o"], **given, result=(0, "f64"), output={"o": None}
            )
        except tacit.RangeError as error:
            refused, outcome = error.operators, error.outcome
        opened = outcome.outputs["o"].reveal(to=1)
        return refused, None if opened is None else opened.tolist()

    first, second, *others = tacit.launch(program, checked=True, **SETTINGS[setting])
    assert first == (("square_beside (figures_of_floats.c:120)",), None)
    assert second == (None, [7.0])
    assert others in ([], [(None, None)])


def test_by_command(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", salaries(60))
    call = ("--call", "squares", "--arg", "x", "--arg", "len:x", "--result", "1:f64")
    secret = ("--secret", f"x=0:f64:{tmp_path / 'x.npy'}")
    tried = command("riscv", "try", ELF, *call, *secret)
    assert tried.returncode == 0, tried.stderr
    tried = command("riscv", "try", ELF, *call, *secret, "--checked")
    assert tried.returncode == 1
    assert f"out of range: {LINE}" in tried.stderr
    # The remedy in the error.
    assert "State the range of the program's arrays, or a wider one (--range" in tried.stderr
    tried = command("riscv", "try", ELF, *call, *secret, "--checked", "--range", "x=3e4..2e5")
    assert tried.returncode == 0, tried.stderr


@pytest.mark.parametrize("how", ["option", "file"])
def test_between_processes(how: str, tmp_path: Path) -> None:
    config = example(tmp_path)
    if how == "file":
        config.write_text(config.read_text().replace("# checked = true", "checked = true"))
    np.save(tmp_path / "x.npy", salaries(20))
    said = ["--call", "squares", "--arg", "x", "--arg", "len:x", "--result", "1:f64"]
    said += ["--checked"] if how == "option" else []

    def party(number: int) -> Command:
        secret = "x=0:f64" + ("" if number else f":{tmp_path}/x.npy")
        own = [
            "riscv",
            "run",
            "--config",
            config,
            "--party",
            number,
            ELF,
            "--secret",
            secret,
            *said,
        ]
        return Command(*own)

    for number, running in enumerate([party(number) for number in range(3)]):
        code, output, errors = running.ended()
        assert (code, f"out of range: {LINE}" in errors) == (int(number == 1), number == 1), errors
        assert "result: " not in output
