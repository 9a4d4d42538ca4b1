"""The cost of the servers' half of a round, by the number of clients and of parameters.

The servers are three processes on this machine, over TLS, each with an equal part of its cores.
Also measures whole rounds, by the number of clients that connect to the servers."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import torch
from rich.console import Console

import tacit
from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.experiments.journal import Journal
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round
from tacit.federated.simulation import measuring
from tacit.federated.simulation.federation import HOST, hand_in
from tacit.federated.simulation.measuring import Measured
from tacit.federated.simulation.page import Table, write_page
from tacit.federated.simulation.plots import check_plots, lines
from tacit.meter import Verification
from tacit.parties.spawn import warm_up
from tacit.providers import DEFAULT

#: Numbers of parameters, with the usual number of clients, and of clients, with the usual number of
#: parameters.
PARAMETERS = (1_000, 10_000, 100_000, 1_000_000)
CLIENTS = (1, 4, 16, 64)
USUAL_CLIENTS, USUAL_PARAMETERS = 16, 10_000

TIMES = 3

#: Numbers of clients of whole rounds.
AT_THE_INTAKE = (1, 4, 16, 64, 256, 1000)

#: Longest wait for one message, in seconds.
TIMEOUT = 600.0

#: The transport between the servers, which are processes.
TRANSPORT = "tcp"


@dataclass(frozen=True)
class Setting:
    """One case to measure."""

    aggregator: str
    bound: str
    clients: int
    parameters: int
    protocol: str = DEFAULT


@dataclass(frozen=True)
class Cost:
    """The median of several rounds: seconds of the slowest server, bytes of the server that sends
    most."""

    seconds: float
    bytes_sent: int
    rounds: int
    #: What verification took of that, at the slowest server; None if the protocol verifies nothing.
    verification: Verification | None = None


def program(settings: list[Setting], times: int, journal: Journal) -> list[list[Cost]]:
    """Runs each setting several times, after a first run, at every server. The host records its own
    costs."""
    found = []
    for setting in settings:
        _once(setting)
        found.append([_once(setting) for _ in range(times)])
        if tacit.session().party == HOST:
            for cost in found[-1]:
                journal.add(**asdict(setting), server=HOST, **asdict(cost))
    return found


def _once(setting: Setting) -> Cost:
    root = setting.clients if AGGREGATORS[setting.aggregator].needs_root else None
    settings = Settings(
        protocol=setting.protocol, aggregator=setting.aggregator, bound=setting.bound, root=root
    )
    round_ = Round.of(replace(settings, minimum_clients=1, reveals_single=True))
    session = tacit.session()
    updates = None
    if session.party == HOST:
        count = setting.clients + (root is not None)
        vectors = torch.rand(count, setting.parameters, dtype=torch.float64) - 0.5
        updates = {client: round_.client(vector) for client, vector in enumerate(vectors)}
    submitted = hand_in(updates, setting.parameters)
    before, verified = session.meter.total, session.meter.verification
    started = time.perf_counter()
    round_.secret(submitted)
    cost = session.meter.total - before
    seconds = time.perf_counter() - started
    verification = session.meter.verification_since(verified)
    return Cost(seconds, cost.bytes_sent, cost.rounds, verification)


def measured(
    settings: Sequence[Setting],
    journal: Journal,
    times: int | None = None,
    attestation: str | None = None,
) -> list[Cost]:
    """Measures settings of one protocol, whose servers may attest; returns their costs in the same
    order."""
    by_party = tacit.launch(
        program,
        list(settings),
        times or TIMES,
        journal,
        protocol=settings[0].protocol,
        transport=TRANSPORT,
        timeout=TIMEOUT,
        attestation=attestation,
    )
    found = []
    for place in range(len(settings)):
        tries = [
            max(tried, key=lambda cost: cost.seconds)
            for tried in zip(*(each[place] for each in by_party), strict=True)
        ]
        middle = sorted(tries, key=lambda cost: cost.seconds)[len(tries) // 2]
        most = max(each[place][0].bytes_sent for each in by_party)
        rounds = max(each[place][0].rounds for each in by_party)
        found.append(Cost(middle.seconds, most, rounds, middle.verification))
    return found


def run(
    console: Console,
    path: Path,
    *,
    parameters: Sequence[int] = PARAMETERS,
    clients: Sequence[int] = CLIENTS,
    names: Sequence[str] = (),
    at_the_intake: Sequence[int] = AT_THE_INTAKE,
    protocol: str = DEFAULT,
    attestation: str | None = None,
) -> Path:
    """Writes tables and plots of seconds and bytes."""
    check_plots()
    journal = Journal.begun(path)
    if TRANSPORT == "tcp":
        warm_up()
    names = names or list(AGGREGATORS)
    kinds = [("fedavg", "none"), *((name, "refuse") for name in names)]
    by_size = [
        Setting(*kind, USUAL_CLIENTS, size, protocol) for kind in kinds for size in parameters
    ]
    by_count = [
        Setting(*kind, count, USUAL_PARAMETERS, protocol) for kind in kinds for count in clients
    ]
    settings = list(dict.fromkeys([*by_size, *by_count]))
    console.print(f"{len(settings)} settings, each several times ...")
    costs = dict(zip(settings, measured(settings, journal, attestation=attestation), strict=True))
    tables = [
        _table(f"{USUAL_CLIENTS} clients", by_size, costs),
        _table(f"{USUAL_PARAMETERS} parameters", by_count, costs),
    ]
    plots = [
        _plot(path / "parameters.png", "parameters", by_size, costs),
        _plot(path / "clients.png", "clients", by_count, costs),
    ]
    console.print(f"{len(at_the_intake)} federations over TLS ...")
    by_clients = {}
    for count in at_the_intake:
        by_clients[count] = of_clients(count, protocol, attestation)
        journal.add(federation_of=count, **by_clients[count].as_json())
    tables.append(_table_of_clients(by_clients))
    plots.append(_plot_of_clients(path / "federations.png", by_clients))
    words = [
        "The servers' half, from the clients' vectors at the servers to the new model there; "
        "medians.",
        f"Last, whole rounds of fedavg without bound, {USUAL_PARAMETERS} parameters: from numbers "
        f"at clients, who call the servers over TLS, to the new model at them; all clients are in "
        "one process.",
    ]
    return write_page(path / "report.html", "What a round costs the servers", words, tables, plots)


def of_clients(count: int, protocol: str = DEFAULT, attestation: str | None = None) -> Measured:
    """Measures rounds of the given number of clients over the intake."""
    rules = {
        "protocol": protocol,
        "bound": "none",
        "minimum_clients": 1,
        "reveals_single": True,
    }
    case = measuring.Federation(USUAL_PARAMETERS, rules, count, TIMES, attestation=attestation)
    return measuring.measured(case)


def _table_of_clients(found: Mapping[int, Measured]) -> Table:
    rows = [
        [
            str(count),
            f"{median(each.seconds):.3f}",
            f"{each.bytes_up_per_client / 1e6:.3f}",
            f"{max(each.bytes_sent) / 1e6:.3f}",
            f"{max(each.memory) / 1e6:.0f}",
        ]
        for count, each in found.items()
    ]
    headings = (
        "clients",
        "seconds",
        "MB up of a client",
        "MB sent by a server",
        "MB of memory of a server",
    )
    return Table("Whole rounds", headings, rows)


def _plot_of_clients(path: Path, found: Mapping[int, Measured]) -> Path:
    drawn = {"fedavg, no bound": (list(found), [median(each.seconds) for each in found.values()])}
    return lines(path, "Seconds a round, at the clients", ("clients", "seconds"), drawn, log="xy")


def _name(setting: Setting) -> str:
    return setting.aggregator + ("" if setting.bound == "refuse" else ", no bound")


def _table(title: str, settings: Sequence[Setting], costs: dict[Setting, Cost]) -> Table:
    rows, verifies = [], any(costs[each].verification for each in settings)
    for setting in settings:
        cost = costs[setting]
        sizes = (str(setting.clients), str(setting.parameters))
        rows.append(
            [
                _name(setting),
                *sizes,
                f"{cost.seconds:.3f}",
                f"{cost.bytes_sent / 1e6:.3f}",
                str(cost.rounds),
                *([] if cost.verification is None else [f"{cost.verification.seconds:.3f}"]),
            ]
        )
    headings = ["aggregator", "clients", "parameters", "seconds", "MB sent by a server", "rounds"]
    return Table(title, [*headings, *(["seconds of verification"] if verifies else [])], rows)


def _plot(path: Path, what: str, settings: Sequence[Setting], costs: dict[Setting, Cost]) -> Path:
    drawn = {}
    for name in dict.fromkeys(map(_name, settings)):
        own = [setting for setting in settings if _name(setting) == name]
        drawn[name] = ([getattr(each, what) for each in own], [costs[each].seconds for each in own])
    return lines(path, "Seconds a round", (what, "seconds"), drawn, log="xy")
