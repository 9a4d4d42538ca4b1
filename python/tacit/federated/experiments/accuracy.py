"""Compares the accuracy of learning in secret with that of learning in the clear.

Both have the same clients, whose data are distributed unevenly in several ways, and the same
initial model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from rich.console import Console

from tacit.federated.experiments import pppfl
from tacit.federated.experiments.both import Learned, both
from tacit.federated.experiments.journal import Journal
from tacit.federated.simulation.page import Table, write_page
from tacit.federated.simulation.plots import check_plots, lines
from tacit.federated.simulation.presets import federation
from tacit.providers import DEFAULT

#: A dataset, a partition, a number of clients, and an aggregator.
Case = tuple[str, str, int, str]

CASES: Sequence[Case] = (
    *(("digits", f"skew:{skew}", 16, "fedavg") for skew in (0.5, 0.7, 0.9)),
    ("digits", "shards:2", 16, "fedavg"),
    *(("digits", f"dirichlet:{alpha}", 16, "fedavg") for alpha in (0.1, 0.3, 1)),
    *(("digits", "skew:0.9", clients, "fedavg") for clients in (8, 32, 64)),
    ("digits-last-layer", "skew:0.9", 16, "fedavg"),
    *(
        ("digits", "skew:0.9", 16, name)
        for name in ("fltrust", "multi-krum", "geometric-median", "median")
    ),
    ("cancer", "skew:0.9", 8, "fedavg"),
    ("mnist1d", "skew:0.9", 16, "fedavg"),
)

#: Plots: a file's name, a title, and which cases are drawn.
PLOTS: Sequence[tuple[str, str, Callable[[Case], bool]]] = (
    (
        "partitions",
        "Digits in secret, fedavg (seed 0)",
        lambda case: case[0] == "digits" and case[3] == "fedavg",
    ),
    (
        "aggregators",
        "Digits in secret, skew 0.9 (seed 0)",
        lambda case: case[0] == "digits" and case[1:3] == ("skew:0.9", 16),
    ),
    (
        "last-layer",
        "All layers and the last one, skew 0.9 (seed 0)",
        lambda case: case[0].startswith("digits") and case[1:] == ("skew:0.9", 16, "fedavg"),
    ),
    ("data", "Other data in secret (seed 0)", lambda case: not case[0].startswith("digits")),
)

ROUNDS = 20


def measured(
    console: Console,
    tried: Sequence[Case],
    seeds: int,
    rounds: int,
    journal: Journal,
    protocol: str = DEFAULT,
    attestation: str | None = None,
) -> dict[Case, Learned]:
    """Runs each case in secret and in the clear."""
    found = {}
    for case in tried:
        data, partition, clients, aggregator = case
        console.print(f"{data}, {partition}, {clients} clients, {aggregator} ...")
        found[case] = both(
            [
                federation(
                    clients=clients,
                    rounds=rounds,
                    aggregator=aggregator,
                    data=data,
                    partition=partition,
                    seed=seed,
                    protocol=protocol,
                )
                for seed in range(seeds)
            ],
            journal,
            attestation,
        )
    return found


def run(
    console: Console,
    path: Path,
    *,
    data: Path | None = None,
    rounds: int | None = None,
    seeds: int = 3,
    device: str = "cpu",
    protocol: str = DEFAULT,
    attestation: str | None = None,
) -> Path:
    """Runs all cases on data that come with packages, or PPPFL's measurements on a folder of
    data."""
    if data is not None:
        return pppfl.run(
            console,
            path,
            data=data,
            rounds=rounds or pppfl.ROUNDS,
            seeds=seeds,
            device=device,
            protocol=protocol,
            attestation=attestation,
        )
    check_plots()
    journal = Journal.begun(path)
    rounds = rounds or ROUNDS
    found = measured(console, CASES, seeds, rounds, journal, protocol, attestation)
    rows = [
        [
            *map(str, case),
            f"{mean(each.accuracies(each.plain)):.2%}",
            f"{mean(each.accuracies(each.secret)):.2%}",
            f"{each.difference:.2f}",
        ]
        for case, each in found.items()
    ]
    headings = (
        "data",
        "partition",
        "clients",
        "aggregator",
        "in the clear",
        "in secret",
        "points between them",
    )
    table = Table(f"After {rounds} rounds, means over seeds ({seeds})", headings, rows)
    worst = max(each.difference for each in found.values())
    words = [f"In secret and in the clear are at most {worst:.2f} points apart."]
    plots = [_plot(path, *each, found) for each in PLOTS if any(map(each[2], found))]
    return write_page(
        path / "report.html", "Accuracy in secret and in the clear", words, [table], plots
    )


def _plot(
    path: Path, name: str, title: str, belongs: Callable[[Case], bool], found: dict[Case, Learned]
) -> Path:
    drawn = {}
    for case, each in found.items():
        if belongs(case):
            rows = each.secret[0]
            is_by_data = name in ("last-layer", "data")
            label = case[0] if is_by_data else ", ".join([case[1], f"{case[2]} clients", case[3]])
            drawn[label] = [row.number + 1 for row in rows], [100 * row.accuracy for row in rows]
    return lines(path / f"{name}.png", title, ("round", "% of held-out examples"), drawn)
