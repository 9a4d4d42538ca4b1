"""The tables and figures on accuracy of PPPFL (Akhtar 2024, 5.7), on datasets in a folder.

As there, 16 clients have examples of which 90% have few labels. In every round each client takes
one step of gradient descent on a batch of 64 (rate 0.1), on images that are moved and mirrored at
random. All clients have the same weight. 2,500 rounds see all of CIFAR's images about 50 times;
other numbers of clients see as many images. What PPPFL leaves open, such as the numbers of clients
in its figures and how images are moved, is chosen here. Running averages of batch normalisation are
those of the one process in which all clients train."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from rich.console import Console

from tacit.federated.experiments.both import Learned, both
from tacit.federated.experiments.journal import Journal
from tacit.federated.rounds.settings import Settings
from tacit.federated.simulation.datasets import found
from tacit.federated.simulation.federation import Federation, Row
from tacit.federated.simulation.page import Table, write_page
from tacit.federated.simulation.plots import Line, check_plots, lines
from tacit.federated.simulation.training import Training
from tacit.providers import DEFAULT

#: PPPFL's accuracies in secret and in the clear, in percent (tables 5.21 and 5.22).
PAPER = {
    "cifar-10": {
        "densenet-121": (59.95, 59.47),
        "vgg-11": (58.23, 58.34),
        "resnet-18": (59.18, 55.28),
        "simple-dla": (55.16, 51.92),
    },
    "cifar-100": {
        "densenet-121": (51.51, 48.44),
        "vgg-11": (47.76, 48.97),
        "resnet-18": (47.70, 50.70),
        "simple-dla": (43.86, 47.69),
    },
}

#: The usual values, and the network with which the others are tried.
CLIENTS, SKEW, NETWORK = 16, 0.9, "resnet-18"

#: The other values that are tried.
SKEWS, NUMBERS = (0.5, 0.7, 0.9), (8, 16, 32, 64)

ROUNDS = 2500

#: How often a model is evaluated in all its rounds.
EVALUATED = 50


@dataclass(frozen=True)
class Case:
    """One case to measure."""

    data: str
    network: str
    skew: float = SKEW
    clients: int = CLIENTS


def cases(data: str) -> list[Case]:
    """Returns the cases of a dataset: all networks for images, then skews and numbers of
    clients."""
    networks, usual = PAPER.get(data, {"": None}), NETWORK if data in PAPER else ""
    tried = [Case(data, network) for network in networks]
    tried += [Case(data, usual, skew=skew) for skew in SKEWS]
    tried += [Case(data, usual, clients=clients) for clients in NUMBERS]
    return list(dict.fromkeys(tried))


def federation(
    case: Case, path: Path, rounds: int, device: str, seed: int, protocol: str = DEFAULT
) -> Federation:
    """Makes a federation whose clients see as many examples in all as the usual number of clients
    does."""
    rounds = max(1, round(rounds * CLIENTS / case.clients))
    # Each client contributes one batch of the same size to a round, so all have the same weight.
    settings = Settings(
        protocol=protocol,
        bound="none",
        greatest_weight=1.0,
        minimum_clients=1,
        reveals_single=True,
    )
    is_image = bool(case.network)
    training = Training(
        epochs=1,
        batch=64,
        rate=0.1,
        batches=1,
        moves=is_image,
        device=device,
        threads=None if is_image else 1,
    )
    return Federation(
        data=f"{case.data}/{case.network}" if case.network else case.data,
        folder=str(path),
        partition=f"skew:{case.skew}",
        clients=case.clients,
        rounds=rounds,
        settings=settings,
        training=training,
        evaluated=max(1, rounds // EVALUATED),
        seed=seed,
    )


def run(
    console: Console,
    path: Path,
    *,
    data: Path,
    rounds: int = ROUNDS,
    seeds: int = 1,
    device: str = "cpu",
    protocol: str = DEFAULT,
    attestation: str | None = None,
) -> Path:
    """Writes all tables of the datasets in a folder."""
    check_plots()
    names = found(data)
    journal = Journal.begun(path)
    tables, plots, worst = [], [], 0.0
    for name in names:
        learned = {}
        for case in cases(name):
            console.print(f"{name} {case.network}, skew {case.skew}, {case.clients} clients ...")
            tried = [
                federation(case, data, rounds, device, seed, protocol) for seed in range(seeds)
            ]
            learned[case] = both(tried, journal, attestation)
            worst = max(worst, learned[case].difference)
        tables += _tables(name, learned)
        plots += _plots(path, name, learned)
    words = [
        f"As in PPPFL: {CLIENTS} clients, skew {SKEW}, {rounds} rounds of one batch of 64, means "
        f"over seeds ({seeds}), unless a table says otherwise. In secret and in the clear are at "
        f"most {worst:.2f} points apart."
    ]
    return write_page(path / "report.html", "PPPFL's tables", words, tables, plots)


def _tables(name: str, learned: dict[Case, Learned]) -> list[Table]:
    headings = ("in secret", "in the clear", "points between them")
    has_many = any(
        row.among_five is not None for each in learned.values() for row in each.secret[0]
    )
    more = ("among five, in secret", "among five, in the clear") if has_many else ()
    networks = [
        [case.network, *_cells(learned[case], has_many), *_paper(name, case.network)]
        for case in learned
        if (case.skew, case.clients) == (SKEW, CLIENTS) and case.network
    ]
    by_skew = [
        [f"{case.skew}", *_cells(learned[case], has_many)] for case in _along(learned, "skew")
    ]
    by_number = [
        [f"{case.clients}", *_cells(learned[case], has_many)] for case in _along(learned, "clients")
    ]
    title = f"{name}: {{}}" + (f" ({NETWORK})" if networks else "")
    found = [
        Table(title.format("skew"), ("skew", *headings, *more), by_skew),
        Table(title.format("number of clients"), ("clients", *headings, *more), by_number),
    ]
    if networks:
        paper = ("PPPFL in secret", "PPPFL in the clear", "points between them")
        found.insert(0, Table(f"{name}: networks", ("network", *headings, *more, *paper), networks))
    return found


def _along(learned: dict[Case, Learned], what: str) -> list[Case]:
    """Returns the cases that differ from the usual one in one field only, in order."""
    usual = next(iter(learned))
    usual = replace(usual, network=NETWORK if usual.network else "")
    same = [case for case in learned if replace(case, **{what: getattr(usual, what)}) == usual]
    return sorted(same, key=lambda case: float(getattr(case, what)))


def _cells(learned: Learned, has_many: bool) -> list[str]:
    found = [f"{mean(learned.accuracies(rows)):.2%}" for rows in (learned.secret, learned.plain)]
    found.append(f"{learned.difference:.2f}")
    if has_many:
        found += [
            f"{mean(rows[-1].among_five or 0.0 for rows in tried):.2%}"
            for tried in (learned.secret, learned.plain)
        ]
    return found


def _paper(name: str, network: str) -> list[str]:
    secret, plain = PAPER[name][network]
    return [f"{secret:.2f}%", f"{plain:.2f}%", f"{abs(secret - plain):.2f}"]


def _plots(path: Path, name: str, learned: dict[Case, Learned]) -> list[Path]:
    kinds = {
        "skew": {f"skew {case.skew}": learned[case] for case in _along(learned, "skew")},
        "clients": {
            f"{case.clients} clients": learned[case] for case in _along(learned, "clients")
        },
        "network": {
            case.network: learned[case]
            for case in learned
            if (case.skew, case.clients) == (SKEW, CLIENTS) and case.network
        },
    }
    return [
        lines(
            path / f"{name}-{kind}.png",
            f"{name} in secret, by {kind} (seed 0)",
            ("round", "% of held-out examples"),
            {label: _line(each.secret[0]) for label, each in drawn.items()},
        )
        for kind, drawn in kinds.items()
        if drawn
    ]


def _line(rows: Sequence[Row]) -> Line:
    evaluated = [row for row in rows if row.accuracy == row.accuracy]
    return [row.number + 1 for row in evaluated], [100 * row.accuracy for row in evaluated]
