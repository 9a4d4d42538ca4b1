"""How a case is measured: a session of its own, once to warm up, then again and again."""

import os
import resource
import statistics
import sys
import time
from typing import Any

from rich import box
from rich.table import Table

import tacit
from tacit.bench.cases import CASES
from tacit.errors import MisuseError

PARTIES = 3
PROTOCOL = "replicated"
TIMEOUT = 120.0


def check(names: list[str]) -> list[str]:
    """The names, or all if there are none.

    Raises:
        MisuseError: a name is unknown.
    """
    for name in names:
        if name not in CASES:
            raise MisuseError(f"no benchmark is called {name!r}; there are {', '.join(CASES)}")
    return names or list(CASES)


def measure(name: str, threads: int | None = None) -> tuple[dict[str, Any], int]:
    """The entry of a case in the report, and the memory in bytes that the largest party had at most."""
    threads = threads or max(1, (os.cpu_count() or 1) // PARTIES)
    results = tacit.launch(
        _party, name, parties=PARTIES, protocol=PROTOCOL, transport="tcp", timeout=TIMEOUT, threads=threads
    )
    # The parties go in step; the slowest one's clock counts.
    seconds = [max(times) for times in zip(*(result["seconds"] for result in results), strict=True)]
    entry = {
        "name": name,
        "protocol": PROTOCOL,
        "parties": PARTIES,
        "transport": "tcp",
        "threads": threads,
        "seconds_median": statistics.median(seconds),
        "seconds_min": min(seconds),
        "bytes_sent_per_party": [result["bytes_sent"] for result in results],
        "rounds": max(result["rounds"] for result in results),
    }
    return entry, max(result["memory"] for result in results)


def _party(name: str) -> dict[str, Any]:
    case, session = CASES[name], tacit.session()
    work = case.prepare()
    work()
    seconds = []
    before = session.meter.total
    for _ in range(case.repetitions):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    cost = session.meter.total - before
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "seconds": seconds,
        "bytes_sent": cost.bytes_sent // case.repetitions,
        "rounds": cost.rounds // case.repetitions,
        "memory": unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def table(entries: list[dict[str, Any]], memory: list[int]) -> Table:
    """The report as people read it."""
    result = Table(
        title=f"{PARTIES} processes, {PROTOCOL} sharing, TCP with TLS 1.3 on loopback",
        caption="MB sent, threads and peak memory of each party",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    result.add_column("case", no_wrap=True)
    for heading in ("median s", "least s", "MB sent", "rounds", "threads", "peak GB"):
        result.add_column(heading, justify="right", no_wrap=True)
    for entry, peak in zip(entries, memory, strict=True):
        result.add_row(
            entry["name"],
            f"{entry['seconds_median']:.4f}",
            f"{entry['seconds_min']:.4f}",
            f"{max(entry['bytes_sent_per_party']) / 1e6:.2f}",
            str(entry["rounds"]),
            str(entry["threads"]),
            f"{peak / 1e9:.2f}",
        )
    return result
