"""Whether what is learned in secret is as good as what is learned in the clear: the same clients, with data
that lie unevenly in several ways, from the same start."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console

import tacit
from tacit.federated.page import Table, folder, write_page
from tacit.federated.plots import check_plots, lines
from tacit.federated.presets import federation
from tacit.federated.simulation import HOST, Federation, Row, in_secret, in_the_clear

#: Data, how they lie with clients, how many of these, and how they are combined.
CASES = (
    *(("digits", f"skew:{skew}", 16, "fedavg") for skew in (0.5, 0.7, 0.9)),
    ("digits", "shards:2", 16, "fedavg"),
    ("digits", "dirichlet:0.1", 16, "fedavg"),
    ("digits", "dirichlet:1", 16, "fedavg"),
    ("digits", "skew:0.9", 8, "fedavg"),
    ("digits", "skew:0.9", 64, "fedavg"),
    *(("digits", "skew:0.9", 16, name) for name in ("fltrust", "multi-krum", "geometric-median", "median")),
    ("cancer", "skew:0.9", 8, "fedavg"),
    ("mnist1d", "skew:0.9", 16, "fedavg"),
)

SEEDS = (0, 1, 2)

#: Longest wait for one message, in seconds: the host trains all clients.
TIMEOUT = 600.0


@dataclass(frozen=True)
class Found:
    """Accuracies after the last round of one case, by seed; and round by round of the first seed."""

    case: tuple[str, str, int, str]
    plain: Sequence[float]
    secret: Sequence[float]
    rounds: tuple[list[Row], list[Row]]

    @property
    def difference(self) -> float:
        """By how many points the mean over the seeds is off."""
        return 100 * abs(mean(self.secret) - mean(self.plain))


def learned(federations: list[Federation]) -> list[list[Row]]:
    """What every server runs: one federation after the other."""
    found = []
    for each in federations:
        with tempfile.TemporaryDirectory(prefix="tacit-") as folder_of_one:
            found.append(in_secret(each, folder_of_one)[0])
    return found


def measured(
    console: Console, cases: Sequence[tuple[str, str, int, str]], seeds: Sequence[int], rounds: int
) -> list[Found]:
    """Each case in secret, between three processes, and in the clear."""
    found = []
    for case in cases:
        data, partition, clients, aggregator = case
        console.print(f"{data}, {partition}, {clients} clients, {aggregator} ...")
        tried = [
            federation(
                clients=clients,
                rounds=rounds,
                aggregator=aggregator,
                data=data,
                partition=partition,
                seed=seed,
            )
            for seed in seeds
        ]
        secret = tacit.launch(learned, tried, transport="tcp", timeout=TIMEOUT)[HOST]
        plain = [in_the_clear(each)[0] for each in tried]
        found.append(Found(case, last(plain), last(secret), (plain[0], secret[0])))
    return found


def last(tried: Sequence[Sequence[Row]]) -> list[float]:
    """Accuracies after the last round."""
    return [rows[-1].accuracy for rows in tried]


def run(console: Console, path: Path, *, rounds: int = 20) -> Path:
    """All cases, with three seeds."""
    check_plots()
    folder(path)
    found = measured(console, CASES, SEEDS, rounds)
    rows = [
        [
            each.case[0],
            each.case[1],
            str(each.case[2]),
            each.case[3],
            f"{mean(each.plain):.2%}",
            f"{mean(each.secret):.2%}",
            f"{each.difference:.2f}",
        ]
        for each in found
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
    table = Table(f"After {rounds} rounds, mean of {len(SEEDS)} seeds", headings, rows)
    digits = [each for each in found if each.case[0] == "digits"]
    plot = lines(
        path / "accuracy.png",
        "In secret (seed 0)",
        ("round", "% of held-out images"),
        {
            f"{each.case[1]}, {each.case[2]} clients, {each.case[3]}": (
                list(range(1, rounds + 1)),
                [100 * row.accuracy for row in each.rounds[1]],
            )
            for each in digits
        },
    )
    worst = max(each.difference for each in found)
    words = [f"In secret and in the clear are at most {worst:.2f} points apart."]
    return write_page(path / "report.html", "Accuracy in secret and in the clear", words, [table], [plot])
