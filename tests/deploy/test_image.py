"""The image and the units of systemd: what can be checked without an engine for containers."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tacit import cli

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def instructions() -> list[tuple[str, str]]:
    """Returns the instructions of the Dockerfile, with continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def last_stage() -> dict[str, str]:
    """Returns the instructions of the image itself."""
    found = instructions()
    begin = max(at for at, (name, _) in enumerate(found) if name == "FROM")
    return dict(found[begin:])


def test_the_image_runs_the_command_as_a_user_without_rights() -> None:
    stage = last_stage()
    assert json.loads(stage["ENTRYPOINT"]) == ["tacit"]
    assert json.loads(stage["CMD"]) == ["--help"]
    user, group = map(int, stage["USER"].split(":"))
    assert user >= 1000
    assert group >= 1000
    # Compilers stay in the stages before it.
    assert "RUN" not in stage


def test_the_image_is_built_of_files_that_are_there() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    taken = [line[1:] for line in lines if line.startswith("!")]
    assert len(taken) == 7
    assert all((ROOT / each).exists() for each in taken)
    assert {"Cargo.lock", "Cargo.toml", "pyproject.toml", "crates", "python"} <= set(taken)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_start_commands_that_exist(path: Path) -> None:
    line = re.search(r"^ExecStart=/opt/tacit/bin/tacit (.+)$", path.read_text(), re.MULTILINE)
    assert line
    words = line[1].replace("%i", "0").replace("${PARTY}", "0").split()
    assert callable(cli.command_line().parse_args(words).command)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_started_again_without_end(path: Path) -> None:
    """By default systemd gives a unit up that ends five times in ten seconds."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string(path.read_text())
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["Restart"] == "always"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd checks its own units")
def test_units_are_what_systemd_takes(path: Path, tmp_path: Path) -> None:
    """A program that is there stands for the one that is not."""
    name = path.name.replace("@.", "@0.")
    text = path.read_text().replace("/opt/tacit/bin/tacit", "/bin/true")
    (tmp_path / name).write_text(re.sub(r"^(User|Group)=tacit$", r"\1=root", text, flags=re.M))
    made = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", tmp_path / name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = [line for line in made.stderr.splitlines() if name in line]
    assert (made.returncode, said) == (0, [])
