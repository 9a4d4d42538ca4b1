"""Mistakes of users of the RISC-V machine: each party gets one message, without internals."""

import os
import re
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from commands import Command
from commands import tacit as command
from tacit.errors import MisuseError, StoppedError, told
from test_command_line import example
from test_riscv import ELF, PROGRAMS, SUMS

#: The options of each party, by its number.
Said = Callable[[int], list[object]]


def sums(*more: object, at: int | None = None, kind: str = "u32", path: str = "x.txt") -> Said:
    """Returns options for a program on files, with additions and another type of the secret
    file, at one party or at all."""

    def said(party: int) -> list[object]:
        is_other = at in (None, party)
        secret = f"x=1:{kind if is_other else 'u32'}" + (f":{path}" if party == 1 else "")
        told = [SUMS, "--secret", secret, "--public", "data/y=y.bin", "--output", "sums=all"]
        return [*told, *(more if is_other else [])]

    return said


def hashes(what: str) -> str:
    return rf"run different {what}: that of .* has the hash [0-9a-f]{{16}}, that of .*\. Give all parties"


ELSEWHERE = "it cannot take part: its options or files are wrong; see its own output"

#: The options, and the message of each party: one pattern for all, or the owner's and the others'.
REFUSED: dict[str, tuple[Said, str | tuple[str, str]]] = {
    # The party that finds it first tells the others, which may be waiting for another party.
    "a secret is printed": (
        sums("--arg", "print"),
        r"stopped at 0x[0-9a-f]+ in \w+ \(\w+\.h:\d+\), called from .*, from main \(sums\.c:44\): "
        "what is printed is secret: write it to a file that is an --output",
    ),
    "a secret is printed in digits": (
        sums("--arg", "digits"),
        r" in \w+ \(.*\), called from .*printf .*, from main \(sums\.c:47\): what is printed is "
        r"secret: ",
    ),
    "no output": (
        sums("--output", "more=all"),
        "did not write the output more: write a file of this name",
    ),
    "too few instructions": (
        sums("--limit", 100),
        r" in .*: the limit of 100 instructions is reached: raise it with --limit, ",
    ),
    "receiver": (sums("--output", "total=9"), "receiver 9 does not exist: the parties are 0 to 2"),
    "function": (
        sums("--open-branch", "none"),
        "there is no function none in the program: keep it",
    ),
    "type at one": (sums(at=0, kind="u64"), hashes("options")),
    "public length at one": (sums("--public", "z=x.txt", at=2), hashes("options")),
    "public length at all but one": (sums("--public", "y2=y.bin", at=0), hashes("options")),
    "public bytes at one": (
        lambda party: sums("--public", f"z={'x' if party == 2 else 'other'}.txt")(party),
        hashes("public files"),
    ),
    "archive": (
        sums(path="archive.npy"),
        (
            "archive.npy has no integers: it is no array as numpy.save writes them; telling",
            ELSEWHERE,
        ),
    ),
    "beyond": (
        sums(kind="f64", path="beyond.txt"),
        (
            "a value in beyond.txt is no number of fixed point: these are less than 2^30 in "
            "magnitude",
            ELSEWHERE,
        ),
    ),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("x.txt").write_text("1 2 3")
    Path("other.txt").write_text("1 2 4")
    Path("beyond.txt").write_text("1 1e10")
    Path("nan.txt").write_text("nan")
    Path("y.bin").write_bytes(np.array([1, 2, 3], np.uint32).tobytes())
    Path("odd.bin").write_bytes(b"1234567")
    np.savez("archive", a=np.arange(3))
    Path("archive.npz").rename("archive.npy")
    Path("zip.npy").write_bytes(b"PK\x03\x04 and no more")
    np.save("square.npy", np.ones((2, 2), np.uint32))
    np.save("objects.npy", np.array([1, "a"], object), allow_pickle=True)
    header = b"{'descr': '<u4', 'fortran_order': False, 'shape': "
    for name, shape in (
        ("huge.npy", b"(10000000000000000,), }"),
        ("brackets.npy", b"((((((((((1,"),
    ):
        text = (header + shape).ljust(117) + b"\n"
        Path(name).write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text)
    return tmp_path


@pytest.mark.parametrize("mistake", REFUSED)
def test_every_party_is_told_once(mistake: str, files: Path) -> None:
    said, expected = REFUSED[mistake]
    config = example(files)
    parties = [
        Command("riscv", "run", "--config", config, "--party", number, *said(number), folder=files)
        for number in range(3)
    ]
    for number, party in enumerate(parties):
        code, output, errors = party.ended()
        lines = [
            line for line in errors.splitlines() if not line.startswith(f"tacit: party {number}; ")
        ]
        assert (code, output, len(lines)) == (1, "", 1), errors
        assert lines[0].startswith("tacit: ")
        wanted = expected if isinstance(expected, str) else re.escape(expected[number != 1])
        assert re.search(wanted, lines[0]), lines[0]


#: The options of one party, its exit code, and its last line.
ALONE = {
    "usage": (
        ["--secrt", "x=1:u32"],
        2,
        "tacit: the options are not those of this command; telling the other parties ...",
    ),
    "report": (
        ["--json", "none/report.json"],
        1,
        "tacit: cannot write none/report.json: there is no such folder; telling the other parties "
        "...",
    ),
}


@pytest.mark.parametrize("mistake", ALONE)
def test_what_is_wrong_with_options_of_one_party_all_hear(mistake: str, files: Path) -> None:
    wrong, code, said = ALONE[mistake]
    config = example(files)
    parties = [
        Command(
            *("riscv", "run", "--config", config, "--party", number, *sums()(number)),
            *(wrong if number == 2 else ()),
            folder=files,
        )
        for number in range(3)
    ]
    for number, party in enumerate(parties):
        found, output, errors = party.ended()
        last = errors.splitlines()[-1]
        assert output == ""
        if number == 2:
            assert (found, last) == (code, said)
        else:
            # The party that hears of it first may tell the other one.
            heard = rf'tacit: party 2 failed in step "connect": (as party \d reports, )?{ELSEWHERE}'
            assert found == 1
            assert re.fullmatch(heard, last), errors


def test_usage_that_says_no_party_is_told_here_alone() -> None:
    for words in (
        ["riscv", "run", "--party", "two"],
        ["riscv", "run"],
        ["run", "--config", "c", "--party"],
    ):
        code, _, errors = Command(*words).ended()
        assert code == 2
        assert "telling" not in errors


def test_functions_without_main_are_named() -> None:
    ended = command("riscv", "try", PROGRAMS / "choices.elf", "--parties", 2, "--source", "dealer")
    assert ended.returncode == 1
    (said,) = ended.stderr.splitlines()
    assert "the program has no main: name a function by --call; it has tax, digits, beyond" in said


#: How a party ends during long work: the signal, its exit code, its last line, and the others'
#: message.
ENDS = {
    "interrupted": (signal.SIGINT, 130, ["tacit: interrupted"], "it was interrupted"),
    "killed": (signal.SIGKILL, -signal.SIGKILL, [], "its connection ended without a goodbye"),
}


@pytest.mark.parametrize("end", ENDS)
def test_long_work_ends_where_a_user_ends_it(end: str, tmp_path: Path) -> None:
    """The program would compute for hours, and waits for no other party."""
    number, status, last, reason = ENDS[end]
    config = example(tmp_path)
    endless = [ELF, "--call", "fibonacci", "--arg", 90, "--limit", 1 << 62]
    parties = [
        Command("riscv", "run", "--config", config, "--party", party, *endless)
        for party in range(3)
    ]
    for party in parties:
        party.warned()
    time.sleep(0.5)
    os.kill(parties[1].id, number)
    code, _, errors = parties[1].ended()
    assert (code, errors.splitlines()[1:]) == (status, last)
    for party in (parties[0], parties[2]):
        code, _, errors = party.ended()
        (said,) = errors.splitlines()[1:]
        assert code == 1
        assert re.match(
            rf'tacit: party 1 failed in step ".*": (as party \d reports, )?{reason}', said
        ), said


def test_why_a_program_stops_is_told_as_it_is() -> None:
    """The message contains facts that all parties know, and nothing that only one party has."""

    def program() -> None:
        party, arrays = tacit.session().party, tacit.riscv.load(ELF)
        given = {"a": (0, np.array([3, 1, 2], np.uint64) if party == 0 else None)}
        for call in (
            lambda: arrays.call("mean", ["a", 5], secret=given),
            lambda: arrays.call("mean", ["b"], secret=given),
            lambda: arrays.call("variance"),
            lambda: arrays.call("mean", [1, 1], result=7),
        ):
            with pytest.raises(StoppedError) as stopped:
                call()
            assert told(stopped.value) == (str(stopped.value), None)

    tacit.launch(program, protocol="plain", parties=2)

    def beyond() -> None:
        given = {"a": (0, np.array([1e10]) if tacit.session().party == 0 else None)}
        tacit.riscv.load(ELF).call("mean", ["a", 1], secret=given)

    with pytest.raises(MisuseError, match="does not fit fixed point") as misuse:
        tacit.launch(beyond, protocol="plain", parties=2)
    assert told(misuse.value)[0] == "its program raised MisuseError; see its own output"


#: Options of `try`, and the error message.
WRONG: dict[str, tuple[list[str], str]] = {
    "archive": (
        ["--secret", "x=0:u32:archive.npy"],
        "archive.npy has no integers: it is no array as numpy.save",
    ),
    "zip": (
        ["--secret", "x=0:u32:zip.npy"],
        "zip.npy has no integers: it is no array as numpy.save writes",
    ),
    "huge": (
        ["--secret", "x=0:u32:huge.npy"],
        "huge.npy has no integers: it is no array of numbers, or was cut",
    ),
    "brackets": (
        ["--secret", "x=0:u32:brackets.npy"],
        "brackets.npy has no integers: it is no array of numbers",
    ),
    "objects": (
        ["--public", "x=u32:objects.npy"],
        "objects.npy has no integers: it is no array of numbers",
    ),
    "square": (
        ["--secret", "x=0:u32:square.npy"],
        "uint32 in 2 dimensions; save them as uint32, in one",
    ),
    "bytes": (["--secret", "x=0:u32:odd.bin"], "its 7 bytes are no multiple of 4, as u32 has"),
    "not a number": (
        ["--secret", "x=0:f32:nan.txt"],
        "a value in nan.txt is no number of fixed point",
    ),
    "twice": (["--output", "o=all", "--output", "o=0"], "--output o is there twice"),
    "result": (
        ["--result", "0"],
        "--result is of a function, which --call names; a program ends with a status",
    ),
    "float": (
        ["--call", "mean", "--arg=-.5e3"],
        "--arg -.5e3: a float has its type behind it, as in 1.5:f64",
    ),
    "half": (
        ["--call", "mean", "--arg", "1.5:f16"],
        "--arg 1.5:f16: a float has its type behind it",
    ),
    "both": (
        ["--secret", "x=0:u8:x.txt", "--public", "x=x.txt"],
        "x: an array is public or secret, but this is",
    ),
    "folder": (
        ["--json", "none/report.json"],
        "cannot write none/report.json: there is no such folder",
    ),
    "no file": (["--json", "."], "cannot write .: it is a folder; give a file in it"),
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("mistake", WRONG)
def test_options_and_files_that_cannot_be(mistake: str) -> None:
    options, message = WRONG[mistake]
    ended = command(
        "riscv", "try", PROGRAMS / "sums.elf", "--parties", 2, "--source", "dealer", *options
    )
    said: list[Any] = [line for line in ended.stderr.splitlines() if line]
    assert (ended.returncode, len(said)) == (1, 1), ended.stderr
    assert message in said[0]
