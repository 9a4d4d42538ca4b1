"""Cost of checked mode: the same work with and without it, by turns in one session."""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import tacit
from tacit.bench import models
from tacit.bench.cases import Work, inference, module, training
from tacit.bench.settings import Setting
from tacit.demo.digits import BATCH, DigitNet
from tacit.meter import verification_of
from tacit.providers import has_dealer

#: Longest wait for one message, in seconds.
TIMEOUT = 600.0


@dataclass(frozen=True)
class Checked:
    """One measurement, which is made only if it is named."""

    prepare: Callable[[], Work]
    repetitions: int = 3
    only_by_name: bool = True


CHECKED: dict[str, Checked] = {
    "checked_resnet18_1": Checked(lambda: inference(lambda: models.of_image("resnet18"))),
    "checked_transformer_block": Checked(lambda: module(models.transformer_block(), 1, 128, 768)),
    "checked_digits_training_32": Checked(lambda: training(DigitNet, BATCH, 1, 8, 8), 5),
}


def serves(setting: Setting) -> bool:
    """Returns whether there is a checked mode under a setting."""
    return setting.source is None or setting.parties == 2 or has_dealer(setting.source)


def measure(name: str, setting: Setting, threads: int | None) -> tuple[dict[str, Any], int]:
    """Returns the entry of a case in the report, and 0: memory is not measured."""
    threads = setting.threads(threads)
    told = setting.launch(_party, name, threads=threads, timeout=TIMEOUT)
    usual, checked = (_of_all([each[at] for each in told]) for at in (0, 1))
    return {
        "name": name,
        **setting.entry,
        "threads": threads,
        "repetitions": CHECKED[name].repetitions,
        "seconds_median": checked["seconds_median"],
        "usual": usual,
        "checked": checked,
        **{name: checked[name] for name in checked.keys() & {"verification"}},
        "times_the_bytes": sum(checked["bytes_sent_per_party"])
        / sum(usual["bytes_sent_per_party"]),
        "times_the_seconds": checked["seconds_median"] / usual["seconds_median"],
    }, 0


def _of_all(told: Sequence[dict[str, Any]]) -> dict[str, Any]:
    slowest = [max(times) for times in zip(*(each["times"] for each in told), strict=True)]
    return {
        "seconds_median": statistics.median(slowest),
        "seconds_min": min(slowest),
        "bytes_sent_per_party": [each["bytes_sent"] for each in told],
        "rounds": max(each["rounds"] for each in told),
        **verification_of([each["verification"] for each in told]),
    }


def _party(name: str) -> list[dict[str, Any]]:
    """Runs two copies of the work by turns: one without checks, and one that is checked from the
    start. The checks are settled at the end of each turn, and all is verified, as an opening would
    do."""
    session = tacit.session()
    modes: list[Callable[[], AbstractContextManager[Any]]] = [nullcontext, tacit.checked]
    copies: list[Work] = []
    for mode in modes:
        with mode():
            copies.append(CHECKED[name].prepare())
            copies[-1]()
        session.claims.settle()
        tacit.verify()
    found: list[dict[str, Any]] = [{"times": []} for _ in modes]
    for _ in range(CHECKED[name].repetitions):
        for mode, work, entry in zip(modes, copies, found, strict=True):
            before, verified = session.meter.total, session.meter.verification
            started = time.perf_counter()
            with mode():
                work()
            session.claims.settle()
            tacit.verify()
            entry["times"].append(time.perf_counter() - started)
            spent = session.meter.total - before
            entry |= {
                "bytes_sent": spent.bytes_sent,
                "rounds": spent.rounds,
                "verification": session.meter.verification_since(verified),
            }
    return found
