"""Measurement of one row on one device, in this process."""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import tacit
from tacit import _core
from tacit.bench import compiled
from tacit.bench.cards.rows import ROWS, Row
from tacit.bench.cases import Work
from tacit.bench.settings import Setting

#: Longest wait for one message, in seconds: the parties take turns on one card.
TIMEOUT = 600.0


def measure(name: str, device: str, *, tiny: bool = False) -> dict[str, Any]:
    """Returns seconds and what else was counted."""
    row = ROWS[name]
    if row.maps is not None:
        return _rates(row, device, tiny)
    setting = replace(row.setting, device=device)
    threads = setting.threads(None)
    told = (_inferences if row.make is not None else _works)(row, setting, threads, tiny)
    # The parties run in step. The clock of the slowest one counts.
    seconds = [max(times) for times in zip(*(party["seconds"] for party in told), strict=True)]
    return {
        "seconds_median": statistics.median(seconds),
        "seconds_min": min(seconds),
        "repetitions": len(seconds),
        "threads": threads,
        "parties": setting.parties,
        "protocol": setting.protocol,
        "source": setting.source,
        "bytes_sent_per_party": [party["bytes_sent"] for party in told],
        "rounds": max(party["rounds"] for party in told),
        "device": [party["device"] for party in told],
    }


def _rates(row: Row, device: str, tiny: bool) -> dict[str, Any]:
    """Measures products alone, without a protocol."""
    assert row.maps is not None
    seconds = work = copied = 0.0
    for shape in row.maps(tiny):
        map_ = _core.Convolution(**shape) if isinstance(shape, dict) else shape  # type: ignore[arg-type]
        took, rate, bytes_a_second = _core.rate_of_product(device, map_)
        seconds, work, copied = seconds + took, work + rate * took, copied + bytes_a_second * took
    return {
        "seconds_median": seconds,
        "multiply_adds_a_second": work / seconds,
        "bytes_copied_a_second": copied / seconds,
    }


def _inferences(row: Row, setting: Setting, threads: int, tiny: bool) -> list[dict[str, Any]]:
    make = row.make
    assert make is not None
    case = compiled.Compiled(lambda: make(tiny), warm_up=1, repetitions=row.repetitions)
    made = compiled.compile_case(case)
    with TemporaryDirectory() as folder:
        made.weights.save(path := Path(folder) / "model.weights")
        return compiled.session(case, made.program, path, made.x, setting, threads)


def _works(row: Row, setting: Setting, threads: int, tiny: bool) -> list[dict[str, Any]]:
    given = row.prepare, tiny, row.repetitions
    return setting.launch(_party, *given, threads=threads, timeout=TIMEOUT)


def _party(prepare: Callable[[bool], Work], tiny: bool, repetitions: int) -> dict[str, Any]:
    torch.manual_seed(0)
    current, work = tacit.session(), prepare(tiny)
    # Weights are masked, opened and copied to a card once.
    work()
    before, seconds = current.meter.total, []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    spent = current.meter.total - before
    return {
        "seconds": seconds,
        "bytes_sent": spent.bytes_sent // repetitions,
        "rounds": spent.rounds // repetitions,
        "device": current.device,
    }
