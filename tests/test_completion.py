"""``tacit completion``: the shells complete commands and options that the parsers accept."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tacit import cli
from tacit.commands import COMMANDS

#: Typed words and their completions. The last word is empty after a space.
CASES = {
    "tacit de": {"demo", "dealer", "device"},
    "tacit federated ": {
        *("demo", "experiment", "certificates", "authority", "request", "admit", "revoke"),
        "serve",
    },
    "tacit federated experiment a": {"accuracy", "attacks"},
    "tacit demo --pro": {"--protocol"},
    "tacit demo --protocol ": {"replicated", "replicated-malicious", "additive"},
    "tacit bench --source d": {"dealer"},
    "tacit federated serve --th": {"--threads"},
    "tacit run --config par": {"parties.toml"},
    "tacit run --config parties.toml --party 0 pro": {"program with space.py"},
    "tacit demo --samples ": set(),
    "tacit completion f": {"fish"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder whose files are completed."""
    for name in ("parties.toml", "program with space.py", "other.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the script that the command prints."""
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(words: list[str], text: str, folder: Path) -> set[str]:
    """Returns the lines that a shell prints after the script."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(
        [*words, "/dev/stdin"], input=text, capture_output=True, text=True, cwd=folder, check=True
    )
    assert done.stderr == ""
    return set(done.stdout.splitlines())


def words_of(typed: str) -> str:
    """Writes words as an array of the shell."""
    return " ".join(f"'{word}'" for word in typed.split(" "))


@pytest.mark.parametrize("typed", CASES)
def test_bash(typed: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = f"COMP_WORDS=({words_of(typed)}); COMP_CWORD={typed.count(' ')}; _tacit\n"
    asked += 'for each in "${COMPREPLY[@]}"; do echo "$each"; done\n'
    found = completed(["bash", "--norc"], script("bash", capsys) + asked, folder)
    assert found == CASES[typed]


def test_bash_completes_behind_an_equals_sign(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, cursor, expected in (
        ("tacit demo --protocol =", 3, {"replicated", "replicated-malicious", "additive"}),
        ("tacit demo --protocol = add", 4, {"additive"}),
    ):
        asked = f"COMP_WORDS=({words}); COMP_CWORD={cursor}; _tacit\n"
        asked += 'for each in "${COMPREPLY[@]}"; do echo "$each"; done\n'
        assert completed(["bash", "--norc"], script("bash", capsys) + asked, folder) == expected


@pytest.mark.parametrize("typed", CASES)
def test_zsh(typed: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """zsh itself drops completions that do not begin with the typed word, so the test does too."""
    asked = f"COMP_WORDS=({words_of(typed)}); COMP_CWORD={typed.count(' ')}; emulate sh; _tacit\n"
    asked += 'for each in "${COMPREPLY[@]}"; do print -r -- "$each"; done\n'
    text = "autoload -U compinit && compinit -u -D\n" + script("zsh", capsys) + asked
    found = completed(["zsh", "-f"], text, folder)
    assert {each for each in found if each.startswith(typed.split(" ")[-1])} == CASES[typed]


@pytest.mark.parametrize("typed", CASES)
def test_fish(typed: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("fish", capsys) + f"complete -C '{typed}'\n"
    found = completed(["fish", "--no-config"], text, folder)
    assert {each.replace("\\ ", " ") for each in found} == CASES[typed]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_there(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = [command.__name__.rpartition(".")[2].rstrip("_") for command in COMMANDS]
    text = script(shell, capsys)
    assert all(f"tacit {name}" in text for name in names)
