"""Checks that `deny.toml` allows the licence of every crate that tacit is built from.

It needs only cargo. The rest of `deny.toml`, about advisories, bans and sources, needs cargo-deny:
`make deny`.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

#: Parts of an SPDX expression. Old crates write a slash for OR.
TOKEN = re.compile(r"\(|\)|/|[^\s()/]+")


def is_allowed(expression: str, allowed: Set[str]) -> bool:
    """Returns whether allowed licences can fulfil an SPDX expression.

    Raises:
        ValueError: the text is not an SPDX expression.
    """
    tokens = ["OR" if token == "/" else token for token in TOKEN.findall(expression)]

    def alternatives() -> bool:
        fulfilled = conjunction()
        while tokens and tokens[0] == "OR":
            del tokens[0]
            fulfilled = conjunction() or fulfilled
        return fulfilled

    def conjunction() -> bool:
        fulfilled = licence()
        while tokens and tokens[0] == "AND":
            del tokens[0]
            fulfilled = licence() and fulfilled
        return fulfilled

    def licence() -> bool:
        if not tokens or tokens[0] in ("AND", "OR", "WITH", ")"):
            raise ValueError(f"no SPDX expression: {expression}")
        name = tokens.pop(0)
        if name == "(":
            fulfilled = alternatives()
            if not tokens or tokens.pop(0) != ")":
                raise ValueError(f"no SPDX expression: {expression}")
            return fulfilled
        if tokens[:1] == ["WITH"]:
            name = " ".join([name, *tokens[:2]])
            del tokens[:2]
        return name in allowed

    fulfilled = alternatives()
    if tokens:
        raise ValueError(f"no SPDX expression: {expression}")
    return fulfilled


def wrong(packages: list[dict[str, Any]], rules: Mapping[str, Any]) -> Iterator[str]:
    """Yields each crate whose licence is not allowed, and each rule that no crate needs."""
    licences = rules["licenses"]
    exceptions = {each["crate"]: set(each["allow"]) for each in licences.get("exceptions", [])}
    allowed = set(licences["allow"])
    for package in packages:
        name, expression = package["name"], package["license"]
        if not expression:
            yield f"{name} names no licence"
        elif not is_allowed(expression, allowed | exceptions.get(name, set())):
            yield f"{name} is licensed {expression}, which deny.toml does not allow"
    for name in exceptions.keys() - {package["name"] for package in packages}:
        yield f"deny.toml has an exception for {name}, which tacit does not use"


def main() -> int:
    """Prints what is wrong, and returns 1 if anything is."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    made = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    found = list(wrong(json.loads(made.stdout)["packages"], rules))
    print("\n".join(found) or "licences: all are allowed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
