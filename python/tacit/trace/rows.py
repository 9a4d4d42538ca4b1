"""Summarises a recording as a table whose rows add up to the total.

Each module, each step such as sharing, and each operator outside of both has a row with its own
part, without the part of the modules inside it.
"""

from collections.abc import Iterator
from typing import Any

#: Quantities that a row and a span have, in addition to seconds.
MEASURES = ("bytes_sent", "rounds", "waiting_seconds")

#: Suffix for operators outside modules, and the row of everything outside modules and operators.
OUTSIDE = "outside modules"
REST = f"({OUTSIDE})"


def rows(root: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of a program's spans, in the order in which they first began."""
    found: dict[str, dict[str, Any]] = {}
    for name, span, is_begun in _named(root, None):
        nothing = {"name": name, "calls": 0, "seconds": 0.0, **dict.fromkeys(MEASURES, 0)}
        row = found.setdefault(name, nothing)
        row["calls"] += is_begun
        row["seconds"] += _seconds(span) - sum(map(_seconds, span["inside"]))
        for measure in MEASURES:
            row[measure] += span[measure] - sum(inner[measure] for inner in span["inside"])
    # Time outside modules and operators, such as Python's own, comes last.
    found[REST] = found.pop(REST)
    return list(found.values())


def _named(span: dict[str, Any], around: str | None) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yields each span, the name of its row, and whether it begins a call of that row."""
    kind = span["kind"]
    if kind == "program":
        name, inner = REST, None
    elif kind == "operator":
        name = inner = around or f"{span['name']}, {OUTSIDE}"
    else:
        name = inner = span["name"] or "(the model)"
    yield name, span, kind != "operator" or around is None
    for each in span["inside"]:
        yield from _named(each, inner)


def _seconds(span: dict[str, Any]) -> float:
    return float(span["end"] - span["start"])
