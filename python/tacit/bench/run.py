"""Measurement of a case: in a session of its own, first to warm up, then repeatedly, but only once
if it takes minutes."""

import resource
import statistics
import sys
import time
from typing import Any

import tacit
from tacit.bench import attested, checked, compiled, federations, services
from tacit.bench.attested import ATTESTED, Attested
from tacit.bench.cases import CASES, Case
from tacit.bench.checked import CHECKED, Checked
from tacit.bench.compiled import COMPILED, Compiled
from tacit.bench.federations import FEDERATIONS, Federation
from tacit.bench.programs import PROGRAMS
from tacit.bench.services import SERVICES, Service
from tacit.bench.settings import Setting
from tacit.errors import MisuseError
from tacit.meter import verification_of
from tacit.providers import DEFAULT_DEVICE, PROTOCOLS, transfers_matrices
from tacit.riscv import Outcome

#: Longest wait for one message, in seconds; oblivious transfer takes long.
TIMEOUT = 120.0
TIMEOUT_OF_TRANSFER = 1800.0


#: Cases that are measured only if they are named, in groups with one name each.
GROUPS = {
    "models": [name for name, case in CASES.items() if case.only_by_name],
    "compiled": list(COMPILED),
    "checked": list(CHECKED),
    "attested": list(ATTESTED),
    "services": list(SERVICES),
    "federations": [name for name, case in FEDERATIONS.items() if case.only_by_name],
}


def chosen(names: list[str], programs: bool = False) -> list[str]:
    """Returns the named cases, with groups expanded. By default these are all cases except those
    that are measured only if named.

    Compiled programs are measured by default only if ``programs`` asks for them.

    Raises:
        MisuseError: a name is unknown.
    """
    usual: dict[str, Case | Compiled | Checked | Attested | Service | Federation] = {
        **CASES,
        **COMPILED,
        **CHECKED,
        **ATTESTED,
        **SERVICES,
        **FEDERATIONS,
    }
    known = {**usual, **PROGRAMS}
    names = [each for name in names for each in GROUPS.get(name, [name])]
    for name in names:
        if name not in known:
            listed = ", ".join([*known, *GROUPS])
            raise MisuseError(f"no benchmark is called {name!r}; there are {listed}")
    asked = PROGRAMS if programs else usual
    return names or [name for name, case in asked.items() if not case.only_by_name]


def serves(name: str, setting: Setting) -> bool:
    """Returns whether a case can be measured under a setting."""
    if name in CHECKED:
        return checked.serves(setting)
    if name in SERVICES:
        return setting.attestation is None and setting.device == DEFAULT_DEVICE
    return name not in FEDERATIONS or PROTOCOLS[setting.protocol].serves_federations


def slows(name: str) -> bool:
    """Returns whether a case can be measured with slow links."""
    return name not in {**FEDERATIONS, **COMPILED, **CHECKED, **SERVICES}


def takes_hours(name: str, setting: Setting) -> bool:
    """Returns whether a case sends so much that a slow network takes hours for it."""
    return transfers_matrices(setting.source) and _case(name).costly_by_transfer


def measure(
    name: str, setting: Setting, threads: int | None = None, network: str | None = None
) -> tuple[dict[str, Any], int]:
    """Returns the entry of a case in the report, and the peak memory of the largest party in bytes.

    Args:
        name: the case.
        setting: the setting.
        threads: the number of threads of each party; cores / parties if not given.
        network: a network that links imitate, as ``tacit.launch`` takes it.

    Raises:
        MisuseError: the case cannot be measured under this setting, or on such a network.
    """
    if network is not None and not slows(name):
        raise MisuseError(f"{name}: this case is measured on loopback only; leave out --network")
    if name in FEDERATIONS:
        if not serves(name, setting):
            raise MisuseError(f"{name}: {setting.protocol} sharing serves no federation")
        return federations.measure(name, setting, threads)
    if name in COMPILED:
        return compiled.measure(name, setting, threads)
    if name in ATTESTED:
        return attested.measure(name, setting, threads, network)
    if name in CHECKED:
        if not serves(name, setting):
            raise MisuseError(
                f"{name}: checked mode is for replicated sharing, two parties of additive sharing, "
                f"or more "
                "of them with a dealer"
            )
        return checked.measure(name, setting, threads)
    if name in SERVICES:
        if not serves(name, setting):
            raise MisuseError(f"{name}: services are measured on processors, without attestation")
        return services.measure(name, setting, threads)
    threads = setting.threads(threads)
    warm_up, repetitions, runs_in_each = _case(name).runs(setting.source)
    if network is not None:
        # Waiting for a network takes most of the time, and no other process disturbs it.
        warm_up, runs_in_each = min(warm_up, 1), 1
    results = setting.launch(
        _party,
        name,
        warm_up,
        repetitions,
        runs_in_each,
        threads=threads,
        timeout=TIMEOUT_OF_TRANSFER if transfers_matrices(setting.source) else TIMEOUT,
        network=network or _case(name).network,
    )
    # The parties run in step. The clock of the slowest one counts, and how long that one waited.
    slowest = [max(times) for times in zip(*(result["times"] for result in results), strict=True)]
    seconds = [seconds for seconds, _ in slowest]
    entry = {
        "name": name,
        **setting.entry,
        "threads": threads,
        "warm_up": warm_up,
        "repetitions": repetitions,
        "runs_in_each": runs_in_each,
        "seconds_median": statistics.median(seconds),
        "seconds_min": min(seconds),
        "seconds_waiting_for_correlations_median": statistics.median(
            waited for _, waited in slowest
        ),
        "bytes_sent_per_party": [result["bytes_sent"] for result in results],
        "correlation_bytes_sent_per_party": [
            result["correlation_bytes_sent"] for result in results
        ],
        "correlation_bytes_received_per_party": [
            result["correlation_bytes_received"] for result in results
        ],
        "rounds": max(result["rounds"] for result in results),
        **verification_of(
            [result["verification"] for result in results], repetitions * runs_in_each
        ),
    }
    if network or _case(name).network:
        entry["network"] = network or _case(name).network
    if setting.attestation is not None:
        entry["attestation"] = setting.attestation
    if name in PROGRAMS:
        entry["instructions"] = results[0]["instructions"]
    return entry, max(result["memory"] for result in results)


def _case(name: str) -> Case:
    return PROGRAMS[name] if name in PROGRAMS else CASES[name]


def _party(name: str, warm_up: int, repetitions: int, runs_in_each: int) -> dict[str, Any]:
    meter = tacit.session().meter
    work, left = _case(name).prepare(), None
    for _ in range(warm_up):
        work()
    tacit.verify()
    times = []
    before, made_before, verified = meter.total, meter.correlations, meter.verification
    for _ in range(repetitions):
        started, waited = time.perf_counter(), meter.waited_for_correlations
        for _ in range(runs_in_each):
            left = work()
        # As an opening would do.
        tacit.verify()
        spent = time.perf_counter() - started, meter.waited_for_correlations - waited
        times.append(tuple(seconds / runs_in_each for seconds in spent))
    runs = repetitions * runs_in_each
    cost, made = meter.total - before, meter.correlations - made_before
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "times": times,
        "bytes_sent": cost.bytes_sent // runs,
        "correlation_bytes_sent": made.bytes_sent // runs,
        "correlation_bytes_received": made.bytes_received // runs,
        "rounds": cost.rounds // runs,
        "verification": meter.verification_since(verified),
        "instructions": left.instructions if isinstance(left, Outcome) else None,
        "memory": unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
