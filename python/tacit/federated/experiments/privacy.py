"""Accuracy against both ε: with noise of several deviations, on a whole model, and on the last
layer of a model that was trained on public data."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console

import tacit
from tacit.federated.experiments.both import TIMEOUT, learned, round_fields
from tacit.federated.experiments.journal import Journal
from tacit.federated.privacy.account import Epsilons
from tacit.federated.simulation.data import dataset
from tacit.federated.simulation.federation import HOST, Federation, in_the_clear
from tacit.federated.simulation.page import Table, write_page
from tacit.federated.simulation.plots import check_plots, lines
from tacit.federated.simulation.presets import federation
from tacit.providers import REFERENCE

SIGMAS = (0.5, 1.0, 2.0, 4.0)

#: The datasets: with them all layers are trained, or the last one.
DATA = ("digits", "digits-last-layer")

CLIENTS, SAMPLING = 64, 0.5

DELTA = 1e-5


@dataclass(frozen=True)
class Found:
    """The results after the last round: the mean accuracy over the seeds, and what is spent.

    Without noise nothing is hidden, and ``spent`` is ``None``.
    """

    sigma: float
    accuracy: float
    spent: Epsilons | None


def measured(
    console: Console,
    data: Sequence[str],
    sigmas: Sequence[float],
    rounds: int,
    seeds: int,
    journal: Journal,
) -> dict[str, list[Found]]:
    """Measures the results by dataset, in the order of the deviations, 0 first.

    The servers' own code draws the noise, under the reference protocol, in which nothing is secret.
    Without noise it is the reference of the same round.
    """
    found = {}
    for name in data:
        console.print(f"{name} ...")
        tried = [
            _federation(name, sigma, rounds, seed) for sigma in sigmas for seed in range(seeds)
        ]
        noisy = tacit.launch(learned, tried, journal, protocol=REFERENCE, timeout=TIMEOUT)[HOST]
        clear = [
            # Without noise, although the federation has a σ.
            in_the_clear(
                each, journal.rounds(**{**round_fields(each, in_secret=False), "sigma": None})
            )[0]
            for each in (_federation(name, sigmas[0], rounds, seed) for seed in range(seeds))
        ]
        by_sigma = [clear, *(noisy[at : at + seeds] for at in range(0, len(noisy), seeds))]
        found[name] = [
            Found(sigma, mean(rows[-1].accuracy for rows in own), own[0][-1].epsilons)
            for sigma, own in zip((0.0, *sigmas), by_sigma, strict=True)
        ]
    return found


def _federation(name: str, sigma: float, rounds: int, seed: int) -> Federation:
    return federation(
        clients=CLIENTS,
        rounds=rounds,
        sigma=sigma,
        delta=DELTA,
        data=name,
        partition="skew:0.5",
        sampling=SAMPLING,
        seed=seed,
    )


def run(console: Console, path: Path, *, rounds: int = 10, seeds: int = 3) -> Path:
    """Writes a table, and a plot of accuracy by ε."""
    check_plots()
    found = measured(console, DATA, SIGMAS, rounds, seeds, Journal.begun(path))
    rows = [
        [
            name,
            str(sum(values.numel() for values in dataset(name).model().parameters())),
            f"{each.sigma:g}",
            *(["∞"] * 2 if each.spent is None else [f"{part:.2f}" for part in astuple(each.spent)]),
            f"{each.accuracy:.1%}",
        ]
        for name, tried in found.items()
        for each in tried
    ]
    headings = (
        "data",
        "values",
        "σ",
        "ε against a server",
        "ε against those who see models",
        "accuracy",
    )
    drawn = {
        f"{name}, against {whom}": (
            [getattr(each.spent, field) for each in tried if each.spent is not None],
            [100 * each.accuracy for each in tried if each.spent is not None],
        )
        for name, tried in found.items()
        for whom, field in (("a server", "to_server"), ("others", "to_others"))
    }
    plot = lines(path / "privacy.png", "Accuracy by privacy", ("ε", "% accuracy"), drawn, log="x")
    words = [
        f"{CLIENTS} clients, each in a round with probability {SAMPLING:g}, {rounds} rounds, δ = "
        f"{DELTA:g}, means over seeds ({seeds}); the unit is a client. σ is the part of the noise "
        "that every server lacks, in bounds."
    ]
    words += [
        f"{name}: a new last layer of a model that was trained on public examples, whose labels "
        f"tell 0 and 1, 2 and 3, and so on as one, and which by itself is right of "
        f"{dataset(name).before:.1%}."
        for name in DATA
        if dataset(name).before is not None
    ]
    return write_page(
        path / "report.html", "Accuracy and privacy", words, [Table("", headings, rows)], [plot]
    )
