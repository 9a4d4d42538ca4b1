"""The demonstration: digits that lie with clients very unevenly, learned without anybody seeing an update."""

import tempfile
from dataclasses import asdict, dataclass
from statistics import median

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import tacit
from tacit.federated.plots import check_plots
from tacit.federated.simulation import HOST, Federation, Row, in_secret, in_the_clear
from tacit.starting import warm_up

#: Longest wait for one message, in seconds: the host trains all clients one after the other.
TIMEOUT = 600.0

SERVERS = 3


@dataclass(frozen=True)
class Outcome:
    """What the demonstration found; the fields up to epsilon are the JSON's promise."""

    clients: int
    rounds: int
    accuracy_plain: float
    accuracy_secret: float
    seconds_per_round: float
    #: Not measured while clients live in a server's process.
    bytes_up_per_client: int | None
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

    def as_json(self) -> dict[str, object]:
        """All fields by name."""
        return asdict(self)


def program(federation: Federation, folder: str) -> tuple[list[Row], str]:
    """What every server runs; the host shows how far it is."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = tacit.session().party == HOST
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("learning in secret", total=federation.rounds)

        def told(row: Row) -> None:
            progress.update(task, advance=1, description=f"learning in secret: accuracy {row.accuracy:.1%}")

        rows, _ = in_secret(federation, folder, told)
    return rows, tacit.session().threat_model


def demonstrate(console: Console, federation: Federation) -> Outcome:
    """Three servers as processes that learn in secret; then the same in the clear."""
    check_plots()
    warm_up()
    console.print(
        f"{SERVERS} servers start on this machine; {federation.clients} clients train, "
        f"{federation.rounds} rounds ..."
    )
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        results = tacit.launch(program, federation, folder, parties=SERVERS, transport="tcp", timeout=TIMEOUT)
    rows, threat_model = results[HOST]
    console.print("The same in the clear ...")
    plain, _ = in_the_clear(federation)
    last = rows[-1]
    return Outcome(
        clients=federation.clients,
        rounds=federation.rounds,
        accuracy_plain=plain[-1].accuracy,
        accuracy_secret=last.accuracy,
        seconds_per_round=median(row.seconds for row in rows),
        bytes_up_per_client=None,
        bytes_sent_per_server=max(row.bytes_sent for found, _ in results for row in found),
        epsilon=None if last.epsilons is None else asdict(last.epsilons),
        aggregator=federation.settings.aggregator,
        attack=None if federation.attack is None else federation.attack.text,
        backdoor_plain=plain[-1].backdoor,
        backdoor_secret=last.backdoor,
        table=rows,
        table_plain=plain,
        threat_model=threat_model,
    )
