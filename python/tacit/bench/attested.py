"""Cost of attested parties: the same work without attestation and with it, by turns.

The cases are those by which CrypTFlow measures its attested parties (Kumar and others 2020, table
IX and figure 10): inner products and single operations on integers of 32 bits, each from sharing
the inputs to the result at all parties, and compiled models. One more, products of one after
another, has nothing but short messages. Making and judging evidence at the start of a session is
not part of the seconds, but of the report."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import tacit
from tacit.bench import compiled, models
from tacit.bench.cases import CASES, Work
from tacit.bench.compiled import COMPILED, Compiled
from tacit.bench.settings import Setting
from tacit.meter import attestation_of, verification_of

#: The only kind of evidence of parties on one machine.
KIND = "simulated"

#: Longest wait for one message, in seconds.
TIMEOUT = 600.0


@dataclass(frozen=True)
class Attested:
    """One measurement, which is made only if it is named."""

    #: Work on operators, or a compiled model.
    of: Callable[[], Work] | Compiled
    #: Number of pairs of sessions, one without attestation and one with it.
    turns: int = 5
    #: Number of measurements in a session of operators, and of runs in each.
    repetitions: int = 5
    runs_in_each: int = 1
    only_by_name: bool = True


def _integers(operation: Callable[..., Any], count: int, bits: int = 31) -> Callable[[], Work]:
    """Work on two parties' integers, from sharing them to the result at all parties."""

    def prepare() -> Work:
        party = tacit.session().party
        x, y = (
            torch.randint(1 << bits, (count,)) if party == owner else None for owner in range(2)
        )
        return lambda: operation(tacit.share(x, owner=0), tacit.share(y, owner=1)).reveal()

    return prepare


def _is_greater(x: torch.Tensor, y: torch.Tensor) -> Any:
    with tacit.comparison_width(32):
        return x > y


def _model(case: Compiled) -> Attested:
    return Attested(case, turns=2)


def _of_image(name: str) -> Attested:
    return _model(compiled.of_image(name))


ATTESTED: dict[str, Attested] = {
    "attested_inner_1e4": Attested(_integers(torch.dot, 10_000, 20), runs_in_each=20),
    "attested_inner_1e5": Attested(_integers(torch.dot, 100_000, 20), runs_in_each=10),
    "attested_add_32": Attested(_integers(torch.add, 1), runs_in_each=100),
    "attested_multiply_32": Attested(_integers(torch.mul, 1), runs_in_each=100),
    "attested_compare_32": Attested(_integers(_is_greater, 1), runs_in_each=100),
    "attested_latency_mul_1000": Attested(CASES["latency_mul_1000"].prepare),
    "attested_resnet18": _of_image("resnet18"),
    "attested_resnet34": _of_image("resnet34"),
    "attested_resnet50": _model(COMPILED["compiled_resnet50"]),
    "attested_resnet101": _of_image("resnet101"),
    "attested_resnet152": _of_image("resnet152"),
    "attested_resnet200": _model(compiled.large(models.resnet200)),
    "attested_densenet121": _model(COMPILED["compiled_densenet121"]),
}


def measure(
    name: str, setting: Setting, threads: int | None, network: str | None = None
) -> tuple[dict[str, Any], int]:
    """Returns the entry of a case in the report, and the peak memory of the largest party in bytes,
    or 0 if it is not measured. Links imitate ``network``, as ``tacit.launch`` takes it."""
    case, threads = ATTESTED[name], setting.threads(threads)
    settings = [replace(setting, attestation=kind) for kind in (None, KIND)]
    told: list[list[list[dict[str, Any]]]] = [[], []]
    with TemporaryDirectory() as folder:
        if isinstance(case.of, Compiled):
            session = _sessions_of_model(case.of, Path(folder) / "model.weights", threads, network)
        else:
            session = _sessions_of_operators(name, threads, network)
        for _ in range(case.turns):
            for each, found in zip(settings, told, strict=True):
                found.append(session(each))
    usual, attested = (_of_all(each) for each in told)
    return {
        "name": name,
        **setting.entry,
        "threads": threads,
        "turns": case.turns,
        **({} if network is None else {"network": network}),
        "seconds_median": attested["seconds_median"],
        "usual": usual,
        "attested": attested,
        **{name: attested[name] for name in attested.keys() & {"verification"}},
        "times_the_seconds": attested["seconds_median"] / usual["seconds_median"],
    }, max(party["memory"] for found in told for session in found for party in session)


def _sessions_of_operators(
    name: str, threads: int, network: str | None
) -> Callable[[Setting], list[dict[str, Any]]]:
    """Returns what runs one session of a case, and what its parties tell."""

    def session(setting: Setting) -> list[dict[str, Any]]:
        return setting.launch(_party, name, threads=threads, timeout=TIMEOUT, network=network)

    return session


def _sessions_of_model(
    case: Compiled, path: Path, threads: int, network: str | None
) -> Callable[[Setting], list[dict[str, Any]]]:
    """Returns what runs one session of a model, and what its parties tell. The model is compiled
    once."""
    made = compiled.compile_case(case)
    made.weights.save(path)
    return lambda setting: compiled.session(
        case, made.program, path, made.x, setting, threads, network=network
    )


def _of_all(told: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """Combines what the parties of several sessions tell. The slowest party's clock counts."""
    slowest = [
        max(times)
        for parties in told
        for times in zip(*(party["seconds"] for party in parties), strict=True)
    ]
    last = told[-1]
    return {
        "seconds_median": statistics.median(slowest),
        "seconds_min": min(slowest),
        "bytes_sent_per_party": [party["bytes_sent"] for party in last],
        "rounds": max(party["rounds"] for party in last),
        **verification_of([party["verification"] for party in last]),
        **attestation_of([party["attestation"] for party in last]),
    }


def _party(name: str) -> dict[str, Any]:
    """Runs one party's part of a session of operators."""
    case, current = ATTESTED[name], tacit.session()
    assert not isinstance(case.of, Compiled)
    work = case.of()
    for _ in range(case.runs_in_each):
        work()
    tacit.verify()
    before, verified, seconds = current.meter.total, current.meter.verification, []
    for _ in range(case.repetitions):
        started = time.perf_counter()
        for _ in range(case.runs_in_each):
            work()
        tacit.verify()
        seconds.append((time.perf_counter() - started) / case.runs_in_each)
    runs, spent = case.repetitions * case.runs_in_each, current.meter.total - before
    return {
        "seconds": seconds,
        "rounds": spent.rounds // runs,
        "bytes_sent": spent.bytes_sent // runs,
        "verification": current.meter.verification_since(verified),
        "attestation": current.attestation,
        "memory": 0,
    }
