"""What attacks do to each aggregator: accuracy, and how often a backdoor opens, by the part of clients that
attack.

By the references: what is learned in secret is the same (see ``accuracy``).
"""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.attacks import KINDS, Attack
from tacit.federated.page import Table, folder, write_page
from tacit.federated.plots import check_plots, lines
from tacit.federated.presets import federation
from tacit.federated.simulation import Row, in_the_clear

FRACTIONS = (0.0, 0.1, 0.2, 0.3, 0.4)

#: How data lie with clients here: so unevenly that robust aggregators notice, not so that they fail without
#: attack.
PARTITION = "skew:0.5"

#: Found by kind of attack, aggregator and fraction: the last round.
Found = dict[tuple[str, str, float], Row]


def measured(
    console: Console, kinds: Sequence[str], names: Sequence[str], fractions: Sequence[float], rounds: int
) -> Found:
    """All combinations."""
    found: Found = {}
    for name in names:
        for kind in kinds:
            console.print(f"{name} against {kind} ...")
            for fraction in fractions:
                tried = federation(
                    rounds=rounds, aggregator=name, attack=Attack(kind, fraction), partition=PARTITION
                )
                found[kind, name, fraction] = in_the_clear(tried)[0][-1]
    return found


def run(
    console: Console,
    path: Path,
    *,
    rounds: int = 20,
    fractions: Sequence[float] = FRACTIONS,
    names: Sequence[str] = (),
) -> Path:
    """A table and a plot for each kind of attack."""
    check_plots()
    folder(path)
    names = names or list(AGGREGATORS)
    found = measured(console, list(KINDS), names, fractions, rounds)
    tables, plots = [], []
    for kind in KINDS:
        rows = [[name, *(_cell(found[kind, name, fraction]) for fraction in fractions)] for name in names]
        what = "accuracy / how often the backdoor opens" if kind == "backdoor" else "accuracy"
        tables.append(Table(f"{kind}: {what}", ["aggregator", *(f"{part:.0%}" for part in fractions)], rows))
        drawn = {
            name: (
                [100 * part for part in fractions],
                [100 * found[kind, name, part].accuracy for part in fractions],
            )
            for name in names
        }
        plots.append(lines(path / f"{kind}.png", kind, ("% of clients that attack", "% accuracy"), drawn))
    words = [f"Digits at 16 clients, {PARTITION}, {rounds} rounds; attackers keep to the bound on norms."]
    return write_page(path / "report.html", "Attacks and defences", words, tables, plots)


def _cell(row: Row) -> str:
    return f"{row.accuracy:.1%}" + ("" if row.backdoor is None else f" / {row.backdoor:.1%}")
