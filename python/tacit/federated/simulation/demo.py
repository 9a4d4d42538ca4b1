"""The demonstration: clients with very unevenly distributed digits learn with secret updates.

Servers are processes. Clients connect to them as they would from anywhere: each with its own
certificate and connections, in threads of this process.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tacit.errors import MisuseError
from tacit.federated.aggregators import aggregator
from tacit.federated.messages import counted
from tacit.federated.rounds.settings import check_chosen
from tacit.federated.rounds.steps import Round
from tacit.federated.service.config import SERVERS
from tacit.federated.service.local import Plan, ServerReport, Servers
from tacit.federated.simulation.federation import Clients, Federation, Row, account_of, in_the_clear
from tacit.federated.simulation.in_process_clients import Crowd
from tacit.federated.simulation.plots import check_plots
from tacit.federated.simulation.training import one_thread
from tacit.meter import verification_of

#: The time in which a client may submit, in seconds: clients train in turn, on any machine.
SECONDS = 600.0

#: The longest wait of a client for a round or its result, in seconds.
PATIENCE = SECONDS + 60.0

#: Shows progress: takes a description, and the number of rounds completed since the last call.
Show = Callable[[str, int], None]


@dataclass(frozen=True)
class Outcome:
    """The results of the demonstration; the JSON output guarantees the fields up to epsilon."""

    clients: int
    rounds: int
    accuracy_plain: float
    accuracy_secret: float
    #: From the clients' vectors to the new model at the clients.
    seconds_per_round: float
    #: To all servers in a round, with TLS.
    bytes_up_per_client: int
    #: To the other servers in a round, by the server that sends most.
    bytes_sent_per_server: int
    #: After the last round: against a server, and against those who see models only.
    epsilon: dict[str, float] | None
    aggregator: str
    attack: str | None
    backdoor_plain: float | None
    backdoor_secret: float | None
    table: list[Row]
    table_plain: list[Row]
    threat_model: str
    #: The entry on verification in a round, if the protocol verifies.
    verified: dict[str, Any]
    #: What attestation did, if the servers attested: ``kind``; ``verified`` and
    #: ``verified_by_clients`` (by server and by client, how often it accepted a server's evidence);
    #: ``signatures`` of messages between the servers, and the most ``seconds`` of a server.
    attestation: dict[str, Any] | None = None

    def as_json(self) -> dict[str, object]:
        """Returns all fields by name."""
        fields = asdict(self)
        verified = fields.pop("verified")
        if self.attestation is None:
            del fields["attestation"]
        return {**fields, **verified}


def demonstrate(
    console: Console, federation: Federation, attestation: str | None = None
) -> Outcome:
    """Runs a federation of processes that learns in secret, then the same in the clear.

    Servers attest by ``attestation``, if that is given: to each other, and to the clients."""
    check_plots()
    _check(federation)
    # Refuses more clients than examples.
    clients = Clients(federation)
    console.print(
        f"{SERVERS} servers start on this machine, for calls of "
        f"{counted(federation.clients, 'client')} over "
        f"TLS, {counted(federation.rounds, 'round')} ..."
    )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress, one_thread():
        task = progress.add_task("learning in secret", total=federation.rounds)

        def show(description: str, done: int) -> None:
            progress.update(task, advance=done, description=description)

        rows, reports, by_clients = learned(federation, clients, show, attestation)
        task = progress.add_task("the same in the clear", total=federation.rounds)
        plain, _ = in_the_clear(
            federation, lambda row: show(f"the same in the clear: accuracy {row.accuracy:.1%}", 1)
        )
    last = rows[-1]
    return Outcome(
        clients=federation.clients,
        rounds=federation.rounds,
        accuracy_plain=plain[-1].accuracy,
        accuracy_secret=last.accuracy,
        seconds_per_round=median(row.seconds for row in rows),
        bytes_up_per_client=round(
            median(row.bytes_up or 0 for row in rows) / _handing_in(federation)
        ),
        bytes_sent_per_server=max(row.bytes_sent for row in rows),
        epsilon=None if last.epsilons is None else asdict(last.epsilons),
        aggregator=federation.settings.aggregator,
        attack=None if federation.attack is None else federation.attack.text,
        backdoor_plain=plain[-1].backdoor,
        backdoor_secret=last.backdoor,
        table=rows,
        table_plain=plain,
        threat_model=reports[0].threat_model,
        verified=verification_of([each.verification for each in reports], federation.rounds),
        attestation=_attested([each.attestation for each in reports], by_clients),
    )


def _attested(
    by_server: list[dict[str, Any] | None], by_clients: list[int]
) -> dict[str, Any] | None:
    found = [each for each in by_server if each is not None]
    if len(found) < len(by_server):
        return None
    return {
        "kind": found[0]["kind"],
        "verified": [each["verified"] for each in found],
        "verified_by_clients": by_clients,
        "signatures": sum(each["signatures"] for each in found),
        "seconds": max(each["seconds"] for each in found),
    }


def _check(federation: Federation) -> None:
    """Checks that such rounds are possible, before anything takes long."""
    attack, clients = federation.attack, federation.clients
    if attack is not None and attack.fraction and not attack.attackers(clients):
        raise MisuseError(
            f"--attack {attack.text}: that part of {counted(clients, 'client')} is nobody; from "
            f"1/{clients} on somebody attacks"
        )
    account = account_of(federation, Path("account-of-nobody"), SERVERS)
    Round.of(federation.rules, account, clients)
    aggregator(federation.settings.aggregator).check_count(federation.clients)
    check_chosen(federation.settings, federation.clients)


def learned(
    federation: Federation, clients: Clients, show: Show, attestation: str | None = None
) -> tuple[list[Row], list[ServerReport], list[int]]:
    """Runs all rounds in secret; returns their rows, each server's last report, and by client how
    often it accepted a server's evidence."""
    count = _handing_in(federation)
    plan = Plan(
        count,
        federation.settings,
        clients.start,
        federation.rounds,
        SECONDS,
        federation.delta,
        attestation,
    )
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="tacit-") as folder,
        Servers(Path(folder), plan) as servers,
    ):
        crowd = Crowd(servers.config, count, PATIENCE, servers.check)
        for number in range(federation.rounds):
            row, reports = _round(number, clients, crowd, servers)
            rows.append(row)
            show(f"learning in secret: accuracy {row.accuracy:.1%}", 1)
    return rows, reports, crowd.verified


def _handing_in(federation: Federation) -> int:
    """Returns the number of clients that submit, with the root if there is one."""
    return federation.clients + (federation.settings.root is not None)


def _round(
    number: int, clients: Clients, crowd: Crowd, servers: Servers
) -> tuple[Row, list[ServerReport]]:
    """Runs a round, from the model at the clients to the next one."""
    before = crowd.traffic
    task = crowd.join()
    updates = clients.updates(number, task.model)
    greatest = clients.federation.settings.greatest_weight or 1.0
    weights = [min(float(len(part)), greatest) for part in clients.parts]
    started = time.perf_counter()
    crowd.submit(task.model, updates, weights)
    model = crowd.result()
    seconds = time.perf_counter() - started
    reports = servers.reports()
    if model is None:
        model = task.model
    up, down = (now - then for now, then in zip(crowd.traffic, before, strict=True))
    report = reports[0].report
    row = Row(
        number=number,
        accepted=len(report.accepted),
        late=len(report.late),
        refused=_reasons(reports),
        accuracy=clients.accuracy(model),
        backdoor=clients.backdoor(model),
        seconds=seconds,
        bytes_sent=max(each.cost.bytes_sent for each in reports),
        rounds=max(each.cost.rounds for each in reports),
        bytes_up=up,
        bytes_down=down,
        epsilons=report.epsilons,
    )
    return row, reports


def _reasons(reports: list[ServerReport]) -> dict[str, int]:
    """Counts refused clients by reason.

    A client counts if any server refused it, or if not all servers hold its submission completely.
    Connections that broke before their client was known do not count: those clients connect again.
    """
    refused = [(client, reason) for each in reports for client, reason, _ in each.report.refused]
    found = {(client, reason) for client, reason in refused if client is not None}
    found |= {
        (client, "not whole at all servers") for each in reports for client in each.report.dropped
    }
    return dict(sorted(Counter(reason for _, reason in found).items()))
