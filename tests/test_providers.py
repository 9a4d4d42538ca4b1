"""Protocols and sources of correlations are entries of one table each. No other code lists them
or compares with their names."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit import _core
from tacit.bench.settings import SETTINGS
from tacit.providers import CONSUMING, DEFAULT, LIVE, PROTOCOLS, QUICKEST, REFERENCE, SOURCES

ROOT = Path(__file__).resolve().parent.parent

#: The tables' file.
TABLES = ROOT / "crates/mpc/src/providers.rs"

TABLE_OF = {"protocols": set(PROTOCOLS), "sources": set(SOURCES)}


def test_what_there_is() -> None:
    assert list(PROTOCOLS) == ["replicated", "replicated-malicious", "additive", "plain"]
    assert list(SOURCES) == ["ot", "he", "dealer", "file"]
    assert (DEFAULT, CONSUMING, REFERENCE, QUICKEST) == (
        "replicated",
        "additive",
        "plain",
        "dealer",
    )
    assert LIVE == ["ot", "he", "dealer"]
    assert [(each.protocol, each.parties, each.source) for each in SETTINGS] == [
        ("replicated", 3, None),
        ("additive", 2, "ot"),
        ("additive", 2, "he"),
        ("additive", 2, "dealer"),
        ("additive", 3, "dealer"),
    ]


def test_each_has_a_threat_model_with_its_usual_parties() -> None:
    for protocol in PROTOCOLS.values():
        for source in SOURCES if protocol.consumes else [None]:
            assert _core.threat_model(protocol.name, protocol.usual_parties, source)


def modules() -> Iterator[Path]:
    yield from sorted((ROOT / "python/tacit").rglob("*.py"))


def literals(tree: ast.AST) -> Iterator[str]:
    """Returns the strings of a module without its docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def compared(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in [node.left, *node.comparators]:
                yield from literals(side)
        elif isinstance(node, ast.MatchValue):
            yield from literals(node)


@pytest.mark.parametrize("table", TABLE_OF)
def test_no_module_of_python_lists_them_or_compares_with_one(table: str) -> None:
    # The words "file" and "dealer" also name what a source needs.
    needs = {source.needs for source in SOURCES.values()}
    for path in modules():
        known = TABLE_OF[table]
        tree = ast.parse(path.read_text())
        if path.name == "providers.py":
            known = known - needs
        named = known & set(literals(tree))
        assert len(named) <= 1, f"{path} lists {sorted(named)}"
        found = known & set(compared(tree))
        assert not found, f"{path} compares with {sorted(found)}"


@pytest.mark.parametrize("table", TABLE_OF)
def test_no_crate_lists_them_or_compares_with_one(table: str) -> None:
    known = TABLE_OF[table]
    exact = "|".join(sorted(known))
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        if (
            path == TABLES
            or path.stem == "tests"
            or "tests" in path.parts
            or path.parts[-3] == "testkit"
        ):
            continue
        code = re.sub(r"//.*", "", path.read_text()).split("#[cfg(test)]")[0]
        named = set(re.findall(rf'(?<!\\)"({exact})"', code))
        assert len(named) <= 1, f"{path} lists {sorted(named)}"
        matched = re.findall(
            rf'(?:[!=]= *(?:Some\()?|=> *|\| *)"({exact})"|"({exact})" *(?:=>|\|)', code
        )
        # A word for what a source needs is not the name of a source.
        assert not matched or path.name == "providers.rs", f"{path} compares with {matched}"


def test_names_are_what_messages_say() -> None:
    with pytest.raises(_core.MisuseError) as caught:
        _core.threat_model("magic", 3)
    for name in PROTOCOLS:
        assert f'"{name}"' in str(caught.value)
    with pytest.raises(_core.MisuseError) as caught:
        _core.threat_model(CONSUMING, 3, "magic")
    for name in SOURCES:
        assert f'"{name}"' in str(caught.value)
