"""The simulation of services: it agrees with what is known of queues, and with its own bounds."""

import importlib.util
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "scale.py"


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("scale", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    sys.modules["scale"] = module
    spec.loader.exec_module(module)
    return module


scale = _loaded()

#: A batch takes 10 ms whatever its size, and sends next to nothing.
PLAIN = scale.Model(seconds=(0.01, 0.01), megabytes=(1e-9, 1e-9), rounds=0)


def service(**settings: Any) -> Any:
    usual = {"cells": 1, "batch": 1, "wait": 0.0, "streams": 1, "queue": 10**6, "model": PLAIN}
    return scale.Service(**{**usual, **settings})


def simulated(settings: Any, rate: float) -> Any:
    return scale.Simulation(settings, rate).run()


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_server_without_batches_waits_as_pollaczek_and_khinchine_say(load: float) -> None:
    """Random arrivals and a fixed time of service: the mean wait is known (M/D/1)."""
    simulation = scale.Simulation(service(), load / 0.01)
    waits: list[float] = []
    begin = simulation._start

    def start(cell: int, now: float) -> None:
        before = list(simulation._queues[cell])
        begin(cell, now)
        waits.extend(now - each for each in before[: len(before) - len(simulation._queues[cell])])

    simulation._start = start
    simulation.run(40_000)
    expected = 0.01 * load / (2 * (1 - load))
    assert sum(waits) / len(waits) == pytest.approx(expected, rel=0.1)


def test_an_idle_service_answers_in_the_time_of_one_request() -> None:
    model = scale.Model()
    found = simulated(service(model=model, delay=0.001, wait=0.002, batch=16, streams=4), 0.1)
    expected = 0.002 + model.busy(1) + model.rounds * 0.001
    assert found.p50 == pytest.approx(expected)
    assert found.batch == pytest.approx(1, abs=0.01)
    assert found.refused == 0


@pytest.mark.parametrize("resource", ["processors", "streams", "link"])
def test_each_bound_is_reached_and_not_passed(resource: str) -> None:
    """Overloaded, a service answers what its scarcest resource allows."""
    settings = {
        "processors": service(batch=8, streams=4, queue=64),
        "streams": service(
            batch=8, streams=2, queue=64, delay=0.01,
            model=scale.Model((0.001, 0.001), (1e-9, 1e-9), rounds=10),
        ),
        "link": service(
            cells=3, batch=8, streams=4, queue=64, bandwidth=8e6,
            model=scale.Model((0.001, 0.001), (0.001, 0.128), rounds=0),
        ),
    }[resource]  # fmt: skip
    bounds = settings.bounds()
    assert min(bounds, key=bounds.__getitem__) == resource
    rate = 3 * bounds[resource]
    found = simulated(settings, rate)
    assert found.refused > 0
    seconds = (scale.SIMULATED + scale.WARM_UP) / rate
    assert found.answered / seconds == pytest.approx(bounds[resource], rel=0.05)
    busy = {"processors": found.processors, "link": found.link}
    if resource in busy:
        assert busy[resource] > 0.95


def test_every_request_is_answered_or_refused() -> None:
    found = scale.Simulation(service(queue=3), 500).run(2_000, 0)
    assert found.answered + found.refused == 2_000


def test_requests_go_to_the_cell_with_the_fewest() -> None:
    """Two cells that share all requests are better than each with its half."""
    together = simulated(service(cells=2), 160)
    apart = simulated(service(), 80)
    assert together.p99 < 0.8 * apart.p99


def test_the_fewest_cells_are_found() -> None:
    found = scale.needed(service(batch=4, streams=2), 1000, 0.1)
    assert found is not None
    chosen, outcome = found
    assert outcome.p99 <= 0.1
    assert outcome.refused == 0
    fewer = simulated(scale.Service(**{**vars(chosen), "cells": chosen.cells - 1}), 1000)
    assert fewer.p99 > 0.1
    assert scale.needed(service(bandwidth=8.0), 1000, 0.1) is None
    assert scale.needed(service(delay=1, model=scale.Model(rounds=74)), 1, 0.1) is None


def test_a_round_of_a_federation() -> None:
    made = scale.Round(
        clients=10_000, parameters=1_000, word=4, clients_of_a_cell=4096, bandwidth=1e9,
        seconds_of_a_parameter=1e-6,
    ).figures()  # fmt: skip
    assert made["cells"] == 3
    assert made["bytes_received"] == 40_000_000
    assert made["seconds_of_link"] == pytest.approx(0.32)
    assert made["processor_seconds"] == pytest.approx(10)
    assert made["seconds_of_processors"] == pytest.approx(10 / 3)
    assert made["bytes_between_replicas"] == 2 * 2 * 1_000 * 8


def test_the_commands_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert scale.main(["service", "--rate", "100"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cells"] >= 1
    assert report["p99"] <= 0.5
    assert math.isfinite(report["terabytes_sent_a_day"])
    # More than a link carries is said to be so.
    assert scale.main(["service", "--rate", "1000", "--gbit", "1"]) == 1
    assert json.loads(capsys.readouterr().out)["cells"] is None
    assert scale.main(["federation"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 245
