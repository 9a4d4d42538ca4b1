"""PPPFL's experiments on networks and on privacy (Akhtar 2024, 5.6.3 and 5.8), beside ours.

A round is measured over links of several delays and packet sizes, as in its figure 5.4 and tables
5.18 to 5.20; accuracy with noise and ε are as in its figures 5.14 and 5.15, of which the text
gives no numbers."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console

from tacit.atomic_write import write
from tacit.federated.experiments import privacy
from tacit.federated.experiments.journal import Journal
from tacit.federated.messages import counted
from tacit.federated.privacy.account import epsilon
from tacit.federated.simulation import measuring
from tacit.federated.simulation.page import Table, write_page
from tacit.federated.simulation.plots import check_plots, lines
from tacit.providers import DEFAULT

#: Milliseconds of PPPFL's end-to-end aggregation, by packet size in bytes and delay of a packet in
#: milliseconds: its tables 5.18, 5.19 and 5.20.
PPPFL: Mapping[int, Mapping[int, float]] = {
    128: {0: 23.212, 20: 175.094, 40: 362.451, 60: 547.102, 80: 700.824, 100: 890.674},
    65536: {0: 22.759, 20: 169.496, 40: 318.511, 60: 461.813, 80: 627.979, 100: 757.899},
    33554432: {0: 23.268, 20: 173.168, 40: 311.806, 60: 459.438, 80: 618.875, 100: 753.827},
}

#: The numbers of its tables, and the packet size of its figure 5.4.
TABLES, OF_FIGURE = {128: "5.18", 65536: "5.19", 33554432: "5.20"}, 65536

#: Delays of a packet, in milliseconds.
DELAYS = (0, 20, 40, 60, 80, 100)

#: Clients of a round, as PPPFL's, and values of a model, which it does not state.
CLIENTS, PARAMETERS = 16, 10_000

#: Rounds that are measured in each case, after a first one.
TIMES = 3

#: PPPFL's examples of a batch and of CIFAR-10, its deviations of the noise, and its epochs. It does
#: not state δ.
BATCH, EXAMPLES, SIGMAS, EPOCHS, DELTA = 64, 50_000, (2.0, 4.0), 10, 1e-5

#: The data whose last layer is trained in place of a vision transformer's.
DATA = "digits-last-layer"


@dataclass(frozen=True)
class Spent:
    """ε after some epochs: by PPPFL's equation 5.1, and by the account."""

    epoch: int
    sigma: float
    pppfl: float
    #: Of the Gaussian mechanism, if each epoch is one round with a batch of each client.
    by_epochs: float
    #: The same, if an epoch lasts until batches have taken as many examples as there are.
    by_batches: float


def spent(sigma: float, epoch: int) -> Spent:
    """Computes the ε of a record after some epochs, in each way."""
    sampling = BATCH * CLIENTS / EXAMPLES
    formula = sampling * math.sqrt(2 * math.log(1.25 / DELTA)) / sigma * math.sqrt(epoch)
    rounds = math.ceil(epoch / sampling)
    return Spent(
        epoch,
        sigma,
        formula,
        epsilon(sigma, sampling, epoch, DELTA),
        epsilon(sigma, sampling, rounds, DELTA),
    )


def milliseconds(
    delay: int, packet: int, clients: int, parameters: int, protocol: str
) -> list[float]:
    """Measures rounds of a mean without validation, as PPPFL's are: from the numbers at the clients
    to the new model at them."""
    rules = {"protocol": protocol, "bound": "none", "minimum_clients": 2}
    case = measuring.Federation(
        parameters, rules, clients, TIMES, delay=delay / 1000, packet=packet
    )
    return [1000 * each for each in measuring.measured(case).seconds]


def run(
    console: Console,
    path: Path,
    *,
    rounds: int = EPOCHS,
    seeds: int = 3,
    protocol: str = DEFAULT,
    delays: Sequence[int] = DELAYS,
    packets: Sequence[int] = tuple(PPPFL),
    clients: int = CLIENTS,
    parameters: int = PARAMETERS,
    epochs: int = EPOCHS,
) -> Path:
    """Writes tables, plots, and network.json, which has all numbers."""
    check_plots()
    journal = Journal.begun(path)
    found: dict[int, dict[int, float]] = {}
    for packet in packets:
        console.print(f"packets of at most {packet} bytes ...")
        found[packet] = {}
        for delay in delays:
            tried = milliseconds(delay, packet, clients, parameters, protocol)
            found[packet][delay] = median(tried)
            journal.add(packet=packet, delay=delay, milliseconds=tried)
    accounts = [spent(sigma, epoch) for sigma in SIGMAS for epoch in range(1, epochs + 1)]
    learned = privacy.measured(console, [DATA], SIGMAS, rounds, seeds, journal)[DATA]
    content = {
        "milliseconds": [
            {
                "packet": packet,
                "delay": delay,
                "ours": ours,
                "pppfl": PPPFL.get(packet, {}).get(delay),
            }
            for packet, row in found.items()
            for delay, ours in row.items()
        ],
        "clients": clients,
        "parameters": parameters,
        "epsilon": [vars(each) for each in accounts],
        "accuracy": [{"sigma": each.sigma, "accuracy": each.accuracy} for each in learned],
    }
    write(path / "network.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    tables = [_table(packet, row) for packet, row in found.items()]
    tables += [_of_accounts(accounts), _of_accuracy(learned)]
    plots = [_plot(path / "network.png", found), _plot_of_accounts(path / "epsilon.png", accounts)]
    words = [
        f"A round of {clients} clients and {parameters} values, from numbers at clients to the new "
        f"model at them; medians of {TIMES}. Each packet between any two machines has the delay, "
        "in each direction. No packet waits for the one before it, so a size changes a round only "
        "by what this machine spends on packets, and without a delay nothing divides messages into "
        "packets. PPPFL does not state its number of values, nor whether a delay is that of one "
        "direction.",
        f"ε is of a record, of batches of {BATCH} at {CLIENTS} clients out of {EXAMPLES}, with δ = "
        f"{DELTA:g}. Equation 5.1 takes an epoch for one round; an epoch has "
        f"{EXAMPLES / (BATCH * CLIENTS):.0f} of them, which the last column counts.",
        f"Accuracy is of a new last layer for digits after {counted(rounds, 'round')}. PPPFL "
        "fine-tunes a vision transformer, whose weights would have to be downloaded.",
    ]
    return write_page(
        path / "report.html", "Networks and privacy, beside PPPFL", words, tables, plots
    )


def _table(packet: int, row: Mapping[int, float]) -> Table:
    theirs = PPPFL.get(packet, {})
    title = f"Packets of at most {packet} bytes"
    if packet in TABLES:
        title += f" (table {TABLES[packet]})"
    rows = [
        [str(delay), f"{ours:.1f}", f"{theirs[delay]:.1f}" if delay in theirs else "–"]
        for delay, ours in row.items()
    ]
    return Table(title, ("ms of delay", "ms of ours", "ms of PPPFL"), rows)


def _of_accounts(accounts: Sequence[Spent]) -> Table:
    rows = [
        [
            f"{each.sigma:g}",
            str(each.epoch),
            f"{each.pppfl:.3f}",
            f"{each.by_epochs:.3f}",
            f"{each.by_batches:.3f}",
        ]
        for each in accounts
    ]
    headings = (
        "σ",
        "epochs",
        "ε by equation 5.1",
        "ε of as many rounds",
        "ε of as many rounds as epochs have",
    )
    return Table("ε (figure 5.15)", headings, rows)


def _of_accuracy(learned: Sequence[privacy.Found]) -> Table:
    rows = [
        [f"{each.sigma:g}" if each.sigma else "none", f"{each.accuracy:.1%}"] for each in learned
    ]
    return Table("Accuracy with noise (figure 5.14)", ("σ", "accuracy"), rows)


def _plot(path: Path, found: Mapping[int, Mapping[int, float]]) -> Path:
    drawn = {
        f"ours, {packet} bytes": (list(row), list(row.values())) for packet, row in found.items()
    }
    theirs = PPPFL[OF_FIGURE]
    drawn[f"PPPFL, {OF_FIGURE} bytes"] = (list(theirs), list(theirs.values()))
    return lines(path, "A round over slow links (figure 5.4)", ("ms of delay", "ms"), drawn)


def _plot_of_accounts(path: Path, accounts: Sequence[Spent]) -> Path:
    drawn = {}
    for sigma in dict.fromkeys(each.sigma for each in accounts):
        own = [each for each in accounts if each.sigma == sigma]
        epochs = [each.epoch for each in own]
        drawn[f"equation 5.1, σ = {sigma:g}"] = (epochs, [each.pppfl for each in own])
        drawn[f"account, σ = {sigma:g}"] = (epochs, [each.by_batches for each in own])
    return lines(path, "ε by epochs (figure 5.15)", ("epochs", "ε"), drawn)
