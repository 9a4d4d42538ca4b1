"""``tacit init``: the commands that it writes work, in order, in a fresh folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from commands import Command
from ports import free_ports
from tacit import cli
from tacit.commands import init

#: The output of a party; in a trial, that of all three parties.
LEARNED = "mean stay: 5.14 days with the new treatment, 9.12 without\n"


def follow(line: str, folder: Path) -> str:
    """Runs the commands of a line as a shell does; returns their output."""
    printed = ""
    for command in line.split(" && "):
        name, *words = command.split()
        if name == "python":
            run = [sys.executable, *words]
            done = subprocess.run(
                run, capture_output=True, text=True, cwd=folder, timeout=300, check=False
            )
            code, output, errors = done.returncode, done.stdout, done.stderr
        else:
            assert name == "tacit"
            code, output, errors = Command(*words, folder=folder).ended()
        assert code == 0, (command, output, errors)
        printed += output
    return printed


def written(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Runs ``tacit init``; returns its output."""
    assert cli.main(["init", str(folder)]) == 0
    return capsys.readouterr().out


def test_each_command_that_it_names_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a folder"
    said = written(folder, capsys)
    assert {path.name for path in folder.iterdir()} == set(init.FILES)
    assert all(str(folder / name) in said for name in init.FILES)
    assert f"cd '{folder}'" in said
    lines = [line.strip() for line in said.splitlines() if line.startswith("    ")]
    assert len(lines) == 3
    trial, session, federation = (follow(line, folder) for line in lines)
    assert trial == LEARNED
    assert "3 parties" in session
    assert "first: 4 clients" in federation


def test_the_program_runs_as_three_parties(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, capsys)
    config = tmp_path / "parties.toml"
    text = config.read_text()
    for before, port in zip((7400, 7401, 7402), free_ports(3), strict=True):
        assert f"127.0.0.1:{before}" in text
        text = text.replace(f"127.0.0.1:{before}", f"127.0.0.1:{port}")
    config.write_text(text)
    follow("tacit certificates --parties 3 --out certificates", tmp_path)
    running = [
        Command("run", "--config", "parties.toml", "--party", party, "program.py", folder=tmp_path)
        for party in range(3)
    ]
    for party, (code, printed, errors) in enumerate(command.ended() for command in running):
        assert code == 0, errors
        assert printed == (LEARNED if party == 0 else "")


def test_nothing_is_written_over_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "parties.toml"
    own.write_text("mine")
    assert cli.main(["init", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"tacit: {own}: it is there already; give another folder, or --force\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["parties.toml"]
    assert own.read_text() == "mine"
    assert cli.main(["init", str(tmp_path), "--force"]) == 0
    assert "[[party]]" in own.read_text()


def test_nothing_is_written_beside_what_is_there_nor_through_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft, link = tmp_path / "parties.toml.new", tmp_path / "program.py"
    draft.write_text("mine")
    link.symlink_to(tmp_path / "elsewhere")
    assert cli.main(["init", str(tmp_path)]) == 1
    assert f"{link}, {draft}: they are there already" in capsys.readouterr().err
    assert draft.read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["init", str(tmp_path / "file" / "in it")]) == 1
    assert "cannot make the folder" in capsys.readouterr().err
