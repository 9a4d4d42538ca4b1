"""``tacit operators``: shows which of PyTorch's operators work on secret tensors."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.atomic_write import write
from tacit.commands.coverage import Coverage, gradient_coverage, operator_coverage
from tacit.commands.options import output

INTRODUCTION = """\
# Operators

This page lists the operators of PyTorch's own operator database, and whether they work on secret
tensors. It has each operator that takes a `float32` tensor. For each of up to twelve of the
database's samples, a test makes first one tensor secret, and then all of them. *Yes* means that
every sample gives the same result as on plain tensors. *Partly* means that some samples do, and
that the others are refused with the given message. *No* means that all samples are refused. The
gradients of up to six samples are tested in the same way. Nothing falls back to plain tensors. The
tests compare this page with a run.

"""


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "operators",
        help="say which of PyTorch's operators work on secret tensors",
        description="Prints the operators of PyTorch's database whose name has WORD in it, or all, "
        "and "
        "whether they work on secret tensors.",
    )
    parser.add_argument(
        "word", nargs="?", default="", metavar="WORD", help="part of an operator's name"
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="write the page of all operators there, as Markdown",
    )
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    if parsed.write is not None:
        write(parsed.write, page())
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=counted())
    for heading in ("operator", "forward", "gradient", "refused with"):
        table.add_column(heading)
    for cells in rows(parsed.word):
        table.add_row(*cells)
    output().print(table)


def rows(word: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yields the rows of all operators with ``word`` in their name.

    A row has the name, whether the operator works, whether its gradient does, and the text of a
    refusal: that of the gradient if the operator itself works."""
    forward, gradient = operator_coverage(), gradient_coverage()
    reasons = forward.partly, forward.refused, gradient.partly, gradient.refused
    for key in forward.names:
        if word in key:
            reason = next((each[key] for each in reasons if key in each), "")
            yield key, _works(forward, key), _works(gradient, key), reason


def _works(found: Coverage, key: str) -> str:
    """Returns how far an operator works; empty if it has no gradient."""
    kinds = {"yes": found.whole, "partly": found.partly, "no": found.refused}
    return next((answer for answer, names in kinds.items() if key in names), "")


def counted() -> str:
    """Returns the numbers of operators and of gradients by outcome, in two sentences."""
    return f"Of {_numbers(operator_coverage())} Of {_numbers(gradient_coverage(), 'gradients')}"


def _numbers(found: Coverage, what: str = "operators") -> str:
    whole, partly, refused = len(found.whole), len(found.partly), len(found.refused)
    total = whole + partly + refused
    return (
        f"{total} {what}, {whole} work in every form, {partly} work in part, "
        f"and {refused} are refused by name."
    )


def page() -> str:
    """Returns the page of the documentation."""
    lines = ["| operator | forward | gradient | refused with |", "| --- | --- | --- | --- |"]
    for name, forward, gradient, reason in rows():
        lines.append(f"| `{name}` | {forward} | {gradient} | {f'`{reason}`' if reason else ''} |")
    return f"{INTRODUCTION}{counted()}\n\n" + "\n".join(lines) + "\n"
