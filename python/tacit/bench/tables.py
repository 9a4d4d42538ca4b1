"""Tables of the reports."""

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from tacit.bench.rounds import ELEMENTS, OPERATIONS
from tacit.bench.settings import Setting
from tacit.parties.network import NETWORKS, Network

CAPTION_OF_CORRELATIONS = (
    "{shared}. Wait: part of the median, for correlations. Offline: MB that one party sent or "
    "received to make them, whichever is more. A module's weights are masked and opened once in a "
    "session, before it is measured; activations each time."
)
CAPTION_OF_PROGRAMS = (
    " The figures of compiled programs include sharing their inputs and opening their outputs; "
    "instructions in millions."
)
CAPTION_OF_ONCE = " *: run once without a warm-up, so it masks and opens the weights too."


def rounds_of_federations(entries: list[dict[str, Any]]) -> Table:
    """Table of federations: rounds from numbers at clients to the new model at clients."""
    table = Table(
        title="Federated learning, 3 servers, TCP with TLS 1.3 on loopback",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.caption = (
        "Seconds from numbers at the clients to the new model at them, MB up of each client, CPU "
        "seconds of "
        "all clients and of each server (from when it begins a round), and GB of memory that the "
        "largest "
        "server had at most."
    )
    table.add_column("case", no_wrap=True)
    for heading in (
        "clients",
        "median",
        "least",
        "MB up",
        "CPU of clients",
        "CPU of servers",
        "GB",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in entries:
        table.add_row(
            entry["name"],
            str(entry["clients"]),
            f"{entry['seconds_median']:.4f}",
            f"{entry['seconds_min']:.4f}",
            f"{entry['bytes_up_per_client'] / 1e6:.2f}",
            f"{entry['cpu_seconds_of_clients']:.2f}",
            ", ".join(f"{seconds:.2f}" for seconds in entry["cpu_seconds_per_party"]),
            f"{max(entry['memory_per_party']) / 1e9:.2f}",
        )
    return table


def checked_mode(setting: Setting, entries: list[dict[str, Any]]) -> Table:
    """Table of work without checked mode and in it, a row each."""
    table = Table(
        title=f"{setting.title}, checked mode, TCP with TLS 1.3 on loopback",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.caption = (
        "By turns in one session, each until all that is checked is settled: seconds, MB that all "
        "parties "
        "send, rounds; and how many times as much it takes in checked mode."
    )
    table.add_column("case", overflow="fold")
    for heading in ("", "median", "least", "MB", "rounds", "times", "times MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in entries:
        for kind in ("usual", "checked"):
            found = entry[kind]
            table.add_row(
                entry["name"].removeprefix("checked_") if kind == "usual" else "",
                kind,
                f"{found['seconds_median']:.4f}",
                f"{found['seconds_min']:.4f}",
                f"{sum(found['bytes_sent_per_party']) / 1e6:.2f}",
                str(found["rounds"]),
                f"{entry['times_the_seconds']:.2f}" if kind == "checked" else "",
                f"{entry['times_the_bytes']:.2f}" if kind == "checked" else "",
            )
    return table


def services(setting: Setting, entries: list[dict[str, Any]]) -> Table:
    """Table of services, a row each."""
    table = Table(
        title=f"{setting.title}, services, TCP with TLS 1.3 on loopback",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.caption = (
        "Clients and parties on one machine, by turns with the same parties alone, which compute as "
        "many images together: milliseconds that a client waits, results a second with clients and "
        "without, and how many times as many they are."
    )
    table.add_column("case", overflow="fold")
    for heading in ("clients", "p50", "p99", "a second", "alone", "times"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in entries:
        table.add_row(
            entry["name"].removeprefix("service_"),
            str(entry["clients"]),
            f"{1000 * entry['seconds_p50']:.1f}",
            f"{1000 * entry['seconds_p99']:.1f}",
            f"{entry['requests_per_second']:.1f}",
            f"{entry['images_per_second_without_clients']:.1f}",
            f"{entry['times_the_rate']:.2f}",
        )
    return table


def attested_parties(setting: Setting, entries: list[dict[str, Any]]) -> Table:
    """Table of work without attestation and with it, a row each."""
    table = Table(
        title=f"{setting.title}, attested parties, TCP with TLS 1.3 {_links(entries)}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.caption = (
        "By turns in sessions of their own: seconds, MB that all parties send, rounds; and how many "
        "times as long it takes attested. Of one session: signatures of all parties, and seconds "
        "that evidence and signatures took the slowest."
    )
    table.add_column("case", overflow="fold")
    for heading in ("", "median", "least", "MB", "rounds", "times", "signatures", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in entries:
        for kind in ("usual", "attested"):
            found, is_attested = entry[kind], kind == "attested"
            table.add_row(
                "" if is_attested else entry["name"].removeprefix("attested_"),
                kind,
                f"{found['seconds_median']:.5f}",
                f"{found['seconds_min']:.5f}",
                f"{sum(found['bytes_sent_per_party']) / 1e6:.2f}",
                str(found["rounds"]),
                f"{entry['times_the_seconds']:.2f}" if is_attested else "",
                str(found["attestation"]["signatures"]) if is_attested else "",
                f"{found['attestation']['seconds']:.3f}" if is_attested else "",
            )
    return table


def compiled_models(setting: Setting, entries: list[dict[str, Any]]) -> Table:
    """Table of models before compilation and after it, a row each."""
    table = Table(
        title=f"{setting.title}, compiled models, TCP with TLS 1.3 on loopback",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.caption = (
        "From sharing the input to its owner's result, weights having been shared before: seconds, "
        "MB sent "
        "and GB of memory at most, of each party; seconds that compiling took."
    )
    # If there is little room, names are broken, but no numbers.
    table.add_column("model", overflow="fold")
    for heading in ("", "median", "least", "MB", "rounds", "GB", "compiling"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in entries:
        for kind in ("eager", "compiled"):
            found = entry[kind]
            table.add_row(
                entry["name"].removeprefix("compiled_") if kind == "eager" else "",
                kind,
                f"{found['seconds_median']:.4f}",
                f"{found['seconds_min']:.4f}",
                f"{max(found['bytes_sent_per_party']) / 1e6:.2f}",
                str(found["rounds"]),
                f"{max(found['memory_per_party']) / 1e9:.2f}",
                f"{entry['seconds_to_compile']:.1f}" if kind == "compiled" else "",
            )
    return table


def _links(entries: list[dict[str, Any]]) -> str:
    """Returns on what links the entries were measured."""
    only = {entry.get("network") for entry in entries}
    if len(only) == 1 and (network := only.pop()) is not None:
        return f"with links of {Network.of(network)}"
    return "on loopback"


def costs(setting: Setting, entries: list[dict[str, Any]], memory: list[int]) -> Table:
    """Table of all cases under one setting.

    Cases that were also measured on slower networks have a column for each of these."""
    of = {name: f"seconds_median_{name}" for name in NETWORKS}
    networks = [name for name in NETWORKS if any(of[name] in entry for entry in entries)]
    table = Table(
        title=f"{setting.title}, TCP with TLS 1.3 {_links(entries)}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    threads = " or ".join(str(number) for number in sorted({entry["threads"] for entry in entries}))
    shared = f"Seconds, MB sent and GB of memory at most, of each party, {threads} thread(s) each"
    table.caption = (
        shared if setting.source is None else CAPTION_OF_CORRELATIONS.format(shared=shared)
    )
    if any(entry["warm_up"] == 0 for entry in entries):
        table.caption += CAPTION_OF_ONCE
    programs = any("instructions" in entry for entry in entries)
    if programs:
        table.caption += CAPTION_OF_PROGRAMS
    table.add_column("case", no_wrap=True)
    correlated = ("wait", "offline") if setting.source else ()
    of_programs = ("instructions",) if programs else ()
    slow = [network.upper() for network in networks]
    for heading in ("median", "least", *slow, "MB", "rounds", "GB", *correlated, *of_programs):
        table.add_column(heading, justify="right", no_wrap=True)
    for network in networks:
        table.caption += f" {network.upper()}: median with links of {Network.of(network)}."
    for entry, peak in zip(entries, memory, strict=True):
        cells = [
            f"{entry['seconds_median']:.4f}",
            f"{entry['seconds_min']:.4f}",
            *(f"{entry[of[name]]:.3f}" if of[name] in entry else "" for name in networks),
            f"{max(entry['bytes_sent_per_party']) / 1e6:.2f}",
            str(entry["rounds"]),
            f"{peak / 1e9:.2f}",
        ]
        if setting.source:
            cells.append(f"{entry['seconds_waiting_for_correlations_median']:.4f}")
            made = (
                entry["correlation_bytes_sent_per_party"]
                + entry["correlation_bytes_received_per_party"]
            )
            cells.append(f"{max(made) / 1e6:.2f}")
        if programs:
            cells.append(f"{entry['instructions'] / 1e6:.3f}" if "instructions" in entry else "")
        table.add_row(entry["name"] + ("" if entry["warm_up"] else "*"), *cells)
    return table


def rounds(counted: Mapping[int, Mapping[str, int]]) -> Table:
    """Table of the rounds of operations by number of parties."""
    table = Table(
        title=f"Rounds of {ELEMENTS} elements, additive sharing, by number of parties",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("operation")
    for number in counted:
        table.add_column(str(number), justify="right")
    for name in OPERATIONS:
        table.add_row(name, *(str(by_operation[name]) for by_operation in counted.values()))
    return table
