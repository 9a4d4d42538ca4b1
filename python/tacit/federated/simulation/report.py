"""The demonstration's tables, page and plots."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as Printed

from tacit.federated.messages import counted
from tacit.federated.simulation.demo import Outcome
from tacit.federated.simulation.federation import Row
from tacit.federated.simulation.page import Table, folder, write_page
from tacit.federated.simulation.plots import lines
from tacit.meter import verification_lines

#: Headings of the table of rounds, and the cells below each.
COLUMNS: Sequence[tuple[str, Callable[[Row], str]]] = (
    ("round", lambda row: str(row.number + 1)),
    ("accepted", lambda row: str(row.accepted)),
    ("late", lambda row: str(row.late)),
    (
        "refused",
        lambda row: ", ".join(f"{count} ({why})" for why, count in row.refused.items()) or "0",
    ),
    ("accuracy", lambda row: f"{row.accuracy:.2%}"),
    ("ε", lambda row: _epsilon(row)),
    ("seconds", lambda row: f"{row.seconds:.3f}"),
    ("MB up", lambda row: _megabytes(row.bytes_up)),
    ("MB down", lambda row: _megabytes(row.bytes_down)),
)


def _epsilon(row: Row) -> str:
    return (
        "∞"
        if row.epsilons is None
        else f"{row.epsilons.to_server:.3g} / {row.epsilons.to_others:.3g}"
    )


def _megabytes(count: int | None) -> str:
    return "–" if count is None else f"{count / 1e6:.3f}"


def sentences(outcome: Outcome) -> list[str]:
    """Returns the sentences that accompany the table."""
    found = [
        f"Accuracy after the last round: {outcome.accuracy_secret:.2%} in secret, "
        f"{outcome.accuracy_plain:.2%} in the clear"
        + (" without noise." if outcome.epsilon else ".")
    ]
    if outcome.backdoor_secret is not None:
        found.append(
            f"The attackers' mark leads to their class for {outcome.backdoor_secret:.2%} of the "
            f"images."
        )
    if outcome.epsilon is not None:
        found.append("ε is against a server first, then against those who see models only.")
    found.append(
        "Seconds from the clients' vectors to the new model at the clients. MB up and down: of all "
        "clients, "
        f"TLS included. A server sends the other two {_megabytes(outcome.bytes_sent_per_server)} "
        f"MB a round."
    )
    found += [f"{line}." for line in verification_lines(outcome.verified)]
    if (attested := outcome.attestation) is not None:
        found.append(
            f"Attestation ({attested['kind']}): each server accepted the evidence of "
            f"{min(attested['verified'])} others, and each client that of all servers, at least "
            f"{min(attested['verified_by_clients'])} times; {attested['signatures']} messages "
            f"between servers were signed; {attested['seconds']:.2f} s."
        )
    return [*found, f"Threat model: {outcome.threat_model}."]


def title(outcome: Outcome) -> str:
    """Returns the title of the table and the page."""
    return f"{counted(outcome.clients, 'client')}, {outcome.aggregator}" + (
        f", {outcome.attack}" if outcome.attack else ""
    )


def print_report(console: Console, outcome: Outcome) -> None:
    """Prints the results."""
    table = Printed(
        title=title(outcome), box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for heading, _ in COLUMNS:
        # Reasons may be long, and must not crowd out the other columns.
        table.add_column(heading, justify="right", no_wrap=heading != "refused")
    for row in outcome.table:
        table.add_row(*[show(row) for _, show in COLUMNS])
    console.print(table)
    for text in sentences(outcome):
        console.print(text)


def write_report(path: Path, outcome: Outcome) -> Path:
    """Writes plots and ``report.html`` into a folder and returns the page's path."""
    folder(path)
    numbers = [row.number + 1 for row in outcome.table]
    accuracies = {
        "in secret": (numbers, [100 * row.accuracy for row in outcome.table]),
        "in the clear": (numbers, [100 * row.accuracy for row in outcome.table_plain]),
    }
    plots = [
        lines(path / "accuracy.png", "Accuracy", ("round", "% of held-out images"), accuracies)
    ]
    if outcome.epsilon is not None:
        spent = [row.epsilons for row in outcome.table if row.epsilons is not None]
        privacy = {
            "against a server": (numbers, [each.to_server for each in spent]),
            "against those who see models": (numbers, [each.to_others for each in spent]),
        }
        plots.append(lines(path / "epsilon.png", "Privacy spent", ("round", "ε"), privacy))
    table = Table(
        "Rounds",
        [name for name, _ in COLUMNS],
        [[show(row) for _, show in COLUMNS] for row in outcome.table],
    )
    return write_page(path / "report.html", title(outcome), sentences(outcome), [table], plots)
