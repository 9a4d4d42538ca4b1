"""Accuracy against both ε: noise of several deviations, on a whole model and on the last layer of one that
was trained on public data."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import tacit
from tacit.federated.experiments.accuracy import TIMEOUT, learned
from tacit.federated.page import Table, folder, write_page
from tacit.federated.plots import check_plots, lines
from tacit.federated.presets import federation
from tacit.federated.simulation import HOST, Row

SIGMAS = (0.5, 1.0, 2.0, 4.0)

#: Data that are trained on: all layers, or the last one.
DATA = ("digits", "digits-last-layer")

CLIENTS, SAMPLING = 64, 0.5

DELTA = 1e-5


def measured(
    console: Console, data: Sequence[str], sigmas: Sequence[float], rounds: int
) -> dict[str, list[Row]]:
    """The last round of each, by data and in the order of the deviations. The servers' own code draws the
    noise, under the reference, where nothing is secret."""
    found = {}
    for name in data:
        console.print(f"{name} ...")
        tried = [
            federation(
                clients=CLIENTS,
                rounds=rounds,
                noise=sigma,
                delta=DELTA,
                data=name,
                partition="skew:0.5",
                sampling=SAMPLING,
            )
            for sigma in sigmas
        ]
        results = tacit.launch(learned, tried, protocol="plain", timeout=TIMEOUT)[HOST]
        found[name] = [rows[-1] for rows in results]
    return found


def run(console: Console, path: Path, *, rounds: int = 10) -> Path:
    """A table, and accuracy by ε."""
    check_plots()
    folder(path)
    found = measured(console, DATA, SIGMAS, rounds)
    rows = []
    for name, tried in found.items():
        for sigma, row in zip(SIGMAS, tried, strict=True):
            assert row.epsilons is not None
            spent = (row.epsilons.to_server, row.epsilons.to_others)
            rows.append([name, f"{sigma:g}", *(f"{each:.2f}" for each in spent), f"{row.accuracy:.1%}"])
    headings = ("data", "σ", "ε against a server", "ε against those who see models", "accuracy")
    drawn = {
        f"{name}, {whom}": (
            [getattr(row.epsilons, field) for row in tried],
            [100 * row.accuracy for row in tried],
        )
        for name, tried in found.items()
        for whom, field in (("against a server", "to_server"), ("against others", "to_others"))
    }
    plot = lines(path / "privacy.png", "Accuracy by privacy", ("ε", "% accuracy"), drawn)
    words = [
        f"{CLIENTS} clients, each in a round with probability {SAMPLING:g}, {rounds} rounds, δ = {DELTA:g}; "
        "the unit is a client. σ is the part of the noise that every server lacks, in bounds."
    ]
    return write_page(
        path / "report.html", "Accuracy and privacy", words, [Table("", headings, rows)], [plot]
    )
