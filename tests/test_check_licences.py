"""The check of licences finds violations."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_licences  # noqa: E402

ALLOWED = {"MIT", "ISC", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"}


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("Apache-2.0 AND ISC", True),
        ("GPL-3.0-only/MIT", True),
        ("(MIT OR GPL-3.0-only) AND Unicode-3.0", False),
        ("(MIT OR GPL-3.0-only) AND ISC", True),
        ("GPL-3.0-only AND MIT OR ISC", True),
        ("GPL-3.0-only AND (MIT OR ISC)", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("MIT WITH Classpath-exception-2.0", False),
    ],
)
def test_expressions(expression: str, allowed: bool) -> None:
    assert check_licences.is_allowed(expression, ALLOWED) is allowed


@pytest.mark.parametrize("expression", ["", "MIT OR", "MIT ISC", "(MIT", "MIT)", "OR MIT"])
def test_what_is_no_expression(expression: str) -> None:
    with pytest.raises(ValueError, match="no SPDX expression"):
        check_licences.is_allowed(expression, ALLOWED)


def test_what_is_told() -> None:
    packages: list[dict[str, Any]] = [
        {"name": "good", "license": "MIT OR GPL-3.0-only"},
        {"name": "bad", "license": "GPL-3.0-only"},
        {"name": "silent", "license": None},
        {"name": "special", "license": "MIT AND Unicode-3.0"},
        {"name": "other", "license": "MIT AND Unicode-3.0"},
    ]
    exceptions = [{"crate": name, "allow": ["Unicode-3.0"]} for name in ("special", "gone")]
    rules = {"licenses": {"allow": sorted(ALLOWED), "exceptions": exceptions}}
    assert list(check_licences.wrong(packages, rules)) == [
        "bad is licensed GPL-3.0-only, which deny.toml does not allow",
        "silent names no licence",
        "other is licensed MIT AND Unicode-3.0, which deny.toml does not allow",
        "deny.toml has an exception for gone, which tacit does not use",
    ]
