"""Independent steps run in parallel.

The tests check which steps these are, that results and bytes are unchanged, and that the number of
rounds is that of the longest step.
"""

import random
from typing import Any

import pytest
import torch
from torch import fx, nn

import tacit
from models import normalised
from tacit.compilation import streams
from tacit.compilation.graph import Value
from tacit.compilation.program import Program
from tacit.compilation.stages import MOST_LEVELS, Stage, rounds_of, stages
from tacit.compilation.weights import Weights
from tacit.providers import REFERENCE
from tacit.trace.spans import recording

aten = torch.ops.aten

#: Largest ratio of parallel rounds to sequential rounds, by the number of examples.
FEWER = {1: 0.75, 3: 0.3}

SETTINGS = [("replicated", 3, None), ("additive", 2, "dealer"), ("additive", 3, "dealer")]


class Inception(nn.Module):
    """Branches with different kernels, one of them a pooling, and a projection parallel to the main
    path."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU())
        self.three = nn.Sequential(
            nn.Conv2d(3, 2, 1), nn.ReLU(), nn.Conv2d(2, 4, 3, padding=1), nn.ReLU()
        )
        self.five = nn.Sequential(
            nn.Conv2d(3, 2, 1), nn.ReLU(), nn.Conv2d(2, 4, 5, padding=2), nn.ReLU()
        )
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(3, 4, 1), nn.ReLU())
        self.narrow = nn.Sequential(
            nn.Conv2d(16, 4, 3, padding=1, stride=2), nn.BatchNorm2d(4), nn.ReLU()
        )
        self.skip = nn.Sequential(nn.Conv2d(16, 4, 1, stride=2), nn.Sigmoid())
        self.classify = nn.Linear(4 * 16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], 1)
        return self.classify((self.narrow(x) * self.skip(x)).flatten(1))


IMAGES = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))
MODULE = normalised(Inception())
COMPILED = tacit.compile(MODULE, IMAGES[:1], calibrate=IMAGES, margin=4.0)


def classified(program: Program, weights: Weights, x: torch.Tensor, count: int) -> tuple[Any, ...]:
    """Returns the program's result, the cost of a second run without sharing and revealing, and the
    correlations made."""
    bound = program.share(weights if tacit.session().party == 0 else None, owner=0, streams=count)
    meter = tacit.session().meter
    for _ in range(2):
        given = bound.given(x, owner=1, count=count)
        before = meter.total
        result = bound(given)
        spent = meter.total - before
    # Read before the reveal. Correlations for a reveal are ordered on demand and may still be in
    # transit.
    made = meter.correlations
    return result.reveal(), spent, made


@pytest.mark.parametrize(("protocol", "parties", "source"), SETTINGS)
@pytest.mark.parametrize("count", [1, 3])
def test_the_same_for_the_same_bytes_in_fewer_rounds(
    protocol: str, parties: int, source: str | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting: dict[str, Any] = {
        "parties": parties,
        "protocol": protocol,
        "source": source,
        "timeout": 60,
    }
    given = (*COMPILED, IMAGES[:count], count)
    beside = tacit.launch(classified, *given, **setting)
    monkeypatch.setattr(streams, "side_by_side", streams.by_turns)
    apart = tacit.launch(classified, *given, **setting)
    with torch.no_grad():
        plain = MODULE(IMAGES[:count])
    for one, other in zip(apart, beside, strict=True):
        assert float((other[0] - plain).square().sum() / plain.square().sum()) < 1e-3
        assert other[1].rounds < FEWER[count] * one[1].rounds
        assert one[1].payload_bytes == other[1].payload_bytes
        assert one[1].frames == other[1].frames
        # No more correlations are made ahead, in whatever order they are consumed.
        assert one[2].payload_bytes == other[2].payload_bytes


def test_branches_take_the_rounds_of_the_longest() -> None:
    found = stages(COMPILED[0].graph)
    assert max(map(len, found)) > 1
    assert _rounds(found) < 0.75 * sum(map(rounds_of, COMPILED[0].graph.nodes))


# Which steps run in parallel
# ------------------------------------------------------------------------------


def _rounds(found: list[Stage]) -> int:
    return sum(max(sum(map(rounds_of, lane)) for lane in stage) for stage in found)


def drawn(seed: int) -> fx.Graph:
    """Draws a graph of steps, some of which take rounds. Each uses one or two earlier steps."""
    choose = random.Random(seed)
    graph = fx.Graph()
    nodes = [graph.placeholder("x"), graph.placeholder("y")]
    for _ in range(choose.randrange(1, 60)):
        target = choose.choice(
            [aten.relu.default, aten.mul.Tensor, aten.add.Tensor, aten.neg.default]
        )
        count = 2 if target in (aten.mul.Tensor, aten.add.Tensor) else 1
        sources = [nodes[-1 - min(choose.randrange(6), len(nodes) - 1)] for _ in range(count)]
        nodes.append(graph.call_function(target, tuple(sources)))
    graph.output(tuple(nodes[-3:]))
    for node in graph.nodes:
        node.meta["value"] = Value((4,), torch.float32)
    return graph


@pytest.mark.parametrize("seed", range(40))
def test_each_step_is_once_and_behind_all_that_it_uses(seed: int) -> None:
    graph = drawn(seed)
    found = stages(graph)
    done = {node for node in graph.nodes if node.op == "placeholder"}
    for stage in found:
        ended = set(done)
        for lane in stage:
            known = set(done)
            for node in lane:
                assert node not in ended
                assert set(node.all_input_nodes) <= known
                known.add(node)
            ended |= known
        done = ended
    assert done == {node for node in graph.nodes if node.op != "output"}
    assert _rounds(found) <= sum(map(rounds_of, graph.nodes))
    names = [[[node.name for node in lane] for lane in stage] for stage in found]
    assert names == [
        [[node.name for node in lane] for lane in stage] for stage in stages(drawn(seed))
    ]


def test_short_steps_go_beside_a_long_one() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    pooled = graph.call_function(aten.max_pool2d.default, (x, [3, 3], [1, 1], [1, 1]))
    path = x
    for _ in range(3):
        path = graph.call_function(aten.relu.default, (path,))
    graph.output((graph.call_function(aten.add.Tensor, (pooled, path)),))
    lanes, (joined,) = stages(graph)
    assert [len(lane) for lane in lanes] == [1, 3]
    assert [node.target for node in joined] == [aten.add.Tensor]


def test_a_chain_is_one_lane_in_its_own_order() -> None:
    graph = fx.Graph()
    node = graph.placeholder("x")
    for _ in range(3 * MOST_LEVELS):
        node = graph.call_function(
            aten.neg.default, (graph.call_function(aten.relu.default, (node,)),)
        )
    graph.output((node,))
    assert stages(graph) == [[[node for node in graph.nodes if node.op == "call_function"]]]


# Steps that do not run in parallel
# -----------------------------------------------------------------------------------------


def test_under_the_reference_one_goes_after_another() -> None:
    program, weights = COMPILED

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        return bound(bound.given(IMAGES[:1], owner=1)).reveal()

    found = tacit.launch(run, parties=2, protocol=REFERENCE)[0]
    with torch.no_grad():
        plain = MODULE(IMAGES[:1])
    assert float((found - plain).square().sum() / plain.square().sum()) < 1e-3


def test_a_trace_shows_that_lanes_were_side_by_side() -> None:
    program, weights = COMPILED

    def run() -> list[str]:
        bound = program.share(weights, owner=0)
        x = bound.given(IMAGES[:1], owner=1)
        with recording() as trace:
            bound(x)
        return [span["name"] for span in trace.finished()["spans"]["inside"]]

    names = tacit.launch(run)[0]
    assert "side by side" in names
    assert "classify" in names
