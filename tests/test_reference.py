"""The reference pages of docs/: every public name has one entry, and the entry describes its
parameters."""

import importlib.util
import inspect
import re
from collections import Counter
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit import cli

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted((DOCS / "reference").glob("*.md"))

#: Packages whose names are public.
PUBLIC = (
    "tacit",
    "tacit.riscv",
    "tacit.federated",
    "tacit.federated.aggregators",
    "tacit.federated.flower",
    "tacit.client",
)


def entries() -> list[str]:
    """Returns the names that have an entry of their own."""
    text = "\n".join(page.read_text() for page in PAGES)
    return re.findall(r"^\.\. (?:auto\w+|py:data):: ([\w.]+)", text, re.MULTILINE)


def public() -> set[str]:
    """Returns the public names: those that the packages list, and those of ``tacit.random``."""
    listed = {f"{package}.{name}" for package in PUBLIC for name in import_module(package).__all__}
    drawn = {
        f"tacit.random.{name}"
        for name, value in vars(tacit.random).items()
        if inspect.isfunction(value)
        and value.__module__ == "tacit.random"
        and not name.startswith("_")
    }
    return listed | drawn


def found(name: str) -> Any:
    """Returns the object of a name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            package = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[length:], package)
    raise AssertionError(name)


FUNCTIONS = sorted(name for name in public() if inspect.isfunction(found(name)))


def test_everything_public_has_one_entry() -> None:
    counted = Counter(entries())
    assert sorted(public() - counted.keys()) == []
    assert [name for name, times in counted.items() if times > 1] == []
    assert len(public()) >= 70


def test_entries_and_their_members_exist() -> None:
    members = 0
    for page in PAGES:
        for kind, name, options in re.findall(
            r"^\.\. auto(\w+):: ([\w.]+)\n((?:   :.*\n)*)", page.read_text(), re.MULTILINE
        ):
            subject = found(name)
            listed = re.search(r":members: (.+)", options)
            if kind == "class" and listed:
                known = {*dir(subject), *getattr(subject, "__annotations__", {})}
                source = inspect.getsource(subject)
                for member in listed[1].split(", "):
                    assert member in known or f"self.{member}" in source, (name, member)
                    members += 1
    assert members > 50


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_they_take(name: str) -> None:
    function: Callable[..., Any] = found(name)
    text = inspect.getdoc(function) or ""
    listed = text.partition("Args:\n")[2]
    described = re.findall(r"^ +(\w+):", listed, re.MULTILINE)
    assert [each for each in inspect.signature(function).parameters if each not in described] == []


def command_line() -> Any:
    """Loads the extension that makes the page of commands."""
    path = DOCS / "_extensions" / "command_line.py"
    spec = importlib.util.spec_from_file_location("command_line", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_option_is_on_its_page() -> None:
    extension, parser = command_line(), cli.command_line()
    text = extension.reference(parser)
    assert extension.MARK in (DOCS / "reference" / "command_line.md").read_text()
    commands = list(extension.leaves(parser))
    assert len(commands) >= 20
    for command in commands:
        section = text.partition(f"## `{command.prog}`\n")[2].partition("\n## ")[0]
        assert section, command.prog
        for action in command._actions:
            for option in action.option_strings:
                assert f"`{option}" in section or option in ("-h", "--help"), (command.prog, option)
