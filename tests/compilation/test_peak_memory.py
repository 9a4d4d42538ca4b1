"""Programs hold no more memory at once than their models, neither with parallel steps nor with
merged layers."""

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from test_stages import drawn
from torch import fx, nn

import tacit
from models import normalised
from tacit.bench.models import of_image
from tacit.compilation import stages as staging
from tacit.compilation.graph import Value, calls
from tacit.compilation.importers.exported import of_module
from tacit.compilation.passes import improve
from tacit.compilation.peak_memory import FEW, WORK, held, most
from tacit.compilation.program import Program
from tacit.compilation.stages import Stage, stages
from tacit.compilation.verify import verify_draft
from tacit.compilation.weights import Weights

aten = torch.ops.aten


class Branches(nn.Module):
    """Branches on one image, each of which leaves a very small result."""

    def __init__(self, count: int = 8) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(8, 32, 3, padding=1), nn.ReLU(),
                nn.Conv2d(32, 32, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            )
            for _ in range(count)
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1).flatten(1)


def test_what_is_held_while_each_step_is_carried_out() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(aten.relu.default, (x,))
    second = graph.call_function(aten.neg.default, (first,))
    third = graph.call_function(aten.add.Tensor, (second, second))
    unused = graph.call_function(aten.neg.default, (third,))
    last = graph.call_function(aten.neg.default, (third,))
    graph.output((last,))
    for node in graph.nodes:
        node.meta["value"] = Value((5,), torch.float32)
    found = held(graph)
    # The input belongs to its owner. A comparison takes more memory while it runs.
    assert [found[node] for node in (first, second, third)] == [5 + WORK * 5, 10, 10]
    assert [found[node] for node in (unused, last)] == [10, 10]
    assert most(graph) == FEW


def _together(graph: fx.Graph, found: list[Stage]) -> list[int]:
    """Returns what each stage holds at once: earlier values that are still needed, and its
    lanes."""
    sizes = {
        node: node.meta["value"].shape[0] for node in graph.nodes if node.op == "call_function"
    }
    order = {node: at for at, stage in enumerate(found) for lane in stage for node in lane}
    last = {
        node: max((order.get(user, len(found)) for user in node.users), default=-1)
        for node in sizes
    }
    totals = []
    for at, stage in enumerate(found):
        before = sum(sizes[node] for node in sizes if order[node] < at <= last[node])
        for lane in stage:
            alive: set[fx.Node] = set()
            greatest = 0
            for place, node in enumerate(lane):
                alive.add(node)
                takes = WORK * sizes[node] if node.target is aten.relu.default else 0
                greatest = max(greatest, takes + sum(sizes[each] for each in alive))
                later = set(lane[place + 1 :])
                alive = {
                    each for each in alive if last[each] > at or not later.isdisjoint(each.users)
                }
            before += greatest
        totals.append(before)
    return totals


@pytest.mark.parametrize("seed", range(40))
def test_what_goes_side_by_side_holds_no_more_than_one_after_another(seed: int) -> None:
    graph = drawn(seed)
    for node in graph.nodes:
        node.meta["value"] = Value((FEW,), torch.float32)
    found = stages(graph)
    for stage, total in zip(found, _together(graph, found), strict=True):
        assert total <= most(graph) or len(stage) == 1
    assert sorted(node.name for stage in found for lane in stage for node in lane) == sorted(
        node.name for node in graph.nodes if node.op == "call_function"
    )


def test_without_a_bound_they_would() -> None:
    graphs = [drawn(seed) for seed in range(40)]
    for graph in graphs:
        for node in graph.nodes:
            node.meta["value"] = Value((FEW,), torch.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "_bounded", lambda found, _: found)
        assert any(max(_together(graph, stages(graph))) > most(graph) for graph in graphs)


@pytest.mark.parametrize(("side", "convolutions"), [(16, 9), (128, 16)])
def test_layers_become_one_where_that_is_held_at_once_anyway(side: int, convolutions: int) -> None:
    draft = of_module(normalised(Branches()), (torch.zeros(1, 8, side, side),), {})
    verify_draft(draft)
    before = most(draft.graph)
    improve(draft)
    affine = torch.ops.tacit.rectified_affine.default
    assert len(list(calls(draft.graph, affine))) == convolutions
    assert most(draft.graph) <= before


def _memory(what: str) -> int:
    """Returns this process's memory in KiB: VmRSS is the current amount, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1])


def _grown(program: Program, weights: Weights, x: torch.Tensor, is_eager: bool) -> int:
    """Returns by how much a first run raises the party's peak memory."""
    run = _ready(program, weights, x, is_eager)
    before = _memory("VmHWM")
    run()
    return _memory("VmHWM") - before


def _living(program: Program, weights: Weights, x: torch.Tensor, is_eager: bool) -> int:
    """Returns the median peak of five runs. How much of a source's stock is present at once depends
    on timing."""
    run = _ready(program, weights, x, is_eager)
    before, highest = _memory("VmRSS"), []
    for _ in range(5):
        # Resets the peak.
        Path("/proc/self/clear_refs").write_text("5")
        run()
        highest.append(_memory("VmHWM"))
    return int(median(highest)) - before


def _ready(
    program: Program, weights: Weights, x: torch.Tensor, is_eager: bool
) -> Callable[[], Any]:
    current = tacit.session()
    bound = program.share(weights if current.party == 0 else None, owner=0)
    if is_eager:
        bound.one_by_one()
    given = bound.given(x if current.party == 1 else None, owner=1)
    return lambda: bound(given).reveal(to=1)


def _compared(
    memory: Callable[..., int],
    module: nn.Module,
    x: torch.Tensor,
    images: torch.Tensor,
    setting: dict[str, Any],
) -> tuple[int, int]:
    """Returns the peak of the party that uses most, for the program and for the uncompiled
    model."""
    program, weights = tacit.compile(module, x, calibrate=images)
    before = weights.as_it_was()
    compiled, eager = (
        max(tacit.launch(memory, *each, x, is_eager, transport="tcp", threads=1, **setting))
        for each, is_eager in (((program, weights), False), ((weights.model, before), True))
    )
    return compiled, eager


SETTINGS: list[dict[str, Any]] = [
    {"protocol": "replicated", "parties": 3},
    {"protocol": "additive", "parties": 2, "source": "dealer"},
]
LINUX_ALONE = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="tells its memory on Linux alone"
)

#: Difference between two medians of the same program, in KiB.
NOISE = 4 << 10


@pytest.mark.long
@LINUX_ALONE
@pytest.mark.parametrize("setting", SETTINGS)
def test_parties_take_no_more_memory(setting: dict[str, Any]) -> None:
    x = torch.rand(1, 8, 128, 128)
    compiled, eager = _compared(_grown, normalised(Branches()), x, x, setting)
    assert compiled <= eager


@pytest.mark.long
@LINUX_ALONE
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["squeezenet1_1", "resnet50", "densenet121"])
def test_no_more_lives_of_real_networks(
    name: str, setting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Blocks above a certain size are returned to the system at once. So the measurement shows live
    # memory, not what the C library caches. The cache varies between runs by more than the effect
    # that is measured.
    for limit in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
        monkeypatch.setenv(limit, "65536")
    module, x = of_image(name)
    images = torch.rand(5, *x.shape[1:])
    compiled, eager = _compared(_living, module.eval(), images[:1], images[1:], setting)
    assert compiled <= eager + NOISE
