"""Tolerance: ReLUs that ignore their low bits, how far they err, and that nothing else errs."""

import json
import math
from typing import Any

import pytest
import torch
from test_random_graphs import CHANNELS, Drawn
from torch import nn

import tacit
from models import normalised
from tacit import fixed
from tacit.compilation.comparing import DROPPING
from tacit.compilation.dry_run import metered
from tacit.compilation.execute import _around, _Widths
from tacit.compilation.graph import walk
from tacit.compilation.inspect import inspect
from tacit.compilation.program import Program
from tacit.compilation.try_model import tried
from tacit.demo import digits
from tacit.errors import MisuseError
from tacit.fixed import Scale

aten = torch.ops.aten

THREE: dict[str, Any] = {"parties": 3, "protocol": "replicated"}
TWO: dict[str, Any] = {"parties": 2, "protocol": "additive", "source": "dealer"}
THREE_ADDITIVE: dict[str, Any] = {"parties": 3, "protocol": "additive", "source": "dealer"}

#: The last digit of a number.
UNIT = 2.0**-16


def dropped(program: Program) -> dict[str, int]:
    """Returns the dropped bits by operator."""
    steps = inspect(program, []).steps
    return {step.operator: step.dropped for step in steps if step.width or step.dropped}


def drops(node: Any) -> int:
    """Returns the bits that a node drops."""
    return int(node.meta.get("dropped") or 0)


class Rectified(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


class Scaled(nn.Module):
    """A layer whose sums have more fraction bits than numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.linear.weight, 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


# The bound
# ----------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "greatest"), [(THREE, 6), (TWO, 6), (THREE_ADDITIVE, 5)])
def test_the_bound_is_reached_and_not_passed(setting: dict[str, Any], greatest: int) -> None:
    # Numbers around the three dropped bits, each a thousand times.
    x = (torch.arange(-8, 24) * UNIT).repeat(1000, 1)
    program, weights = tacit.compile(Rectified().eval(), x, tolerance=8 * UNIT)
    assert dropped(program) == {"relu": 3}

    def run() -> torch.Tensor:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        return bound(bound.given(x, owner=1)).reveal()

    found = tacit.launch(run, **setting)[0]
    lost = (x > 0) & (found == 0)
    assert torch.equal(torch.where(lost, 0.0, x.clamp_min(0)), found)
    # The largest loss from n summands, as in the protocols' tests. No loss from the bound on.
    assert float(x[lost].max()) == greatest * UNIT


@pytest.mark.parametrize("setting", [THREE, TWO, THREE_ADDITIVE])
def test_beside_a_truncation_too(setting: dict[str, Any]) -> None:
    x = (torch.arange(-40, 200) * UNIT).repeat(50, 1).reshape(-1, 1)
    program, weights = tacit.compile(Scaled().eval(), x, tolerance=32 * UNIT)
    assert dropped(program) == {"tacit.rectified_affine": 5}

    def run() -> torch.Tensor:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        return bound(bound.given(x, owner=1)).reveal()

    found, exact = tacit.launch(run, **setting)[0], x / 2
    assert not found[exact < 0].any()
    lost = (exact >= UNIT) & (found == 0)
    assert float(exact[lost].max()) < 32 * UNIT
    assert int(lost.sum()) > 100
    assert float((found - exact.clamp_min(0))[~lost].abs().max()) <= UNIT


@pytest.mark.parametrize("seed", [1, 3, 6])
def test_each_relu_of_a_model_keeps_its_bound(seed: int) -> None:
    module = normalised(Drawn(seed), seed)
    images = torch.randn(4, CHANNELS, 5, 5, generator=torch.Generator().manual_seed(seed))
    calibrate = images if seed % 2 else None
    compiled = {
        tolerance: tacit.compile(
            module,
            images[:2],
            calibrate=calibrate,
            margin=4.0 if seed % 2 else None,
            tolerance=tolerance,
        )
        for tolerance in (None, 2.0**-6)
    }
    program, weights = compiled[2.0**-6]
    for node in program.graph.nodes:
        can_drop = node.op == "call_function" and node.target in DROPPING
        assert drops(node) <= can_drop * (program.scale - 6), node

    def look() -> list[tuple[str, float, float]]:
        current, found = tacit.session(), []
        bound = program.share(weights if current.party == 0 else None, owner=0)
        (name,) = program.inputs
        values = {name: bound.given(images[:2], owner=1), **bound._weights, **program.constants}
        plain: dict[Any, torch.Tensor] = {}

        def seen(node: Any, value: Any) -> None:
            if not isinstance(value, tacit.SecretTensor):
                return
            plain[node] = value.reveal().to(torch.float64)
            if drops(node):
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), plain.__getitem__)
                error = float((plain[node] - node.target(*args, **kwargs)).abs().max())
                found.append((node.name, error, 2.0 ** (node.meta["dropped"] - program.scale)))

        with current.using(scale=Scale(program.scale)), torch.no_grad():
            held = _Widths(proved=True, guarded=current.core.guards)
            walk(program.graph, values, around=lambda node: _around(current, node, held), seen=seen)
        return found

    for name, error, most in tacit.launch(look, **(THREE if seed % 3 else TWO))[0]:
        # The rounding of a layer's sums is added to the bound.
        assert error < most + 4 * 2.0**-program.scale, name
    before, after = (
        [_cost(each[0], setting) for setting in (THREE, TWO)] for each in compiled.values()
    )
    for (rounds, sent), (fewer_rounds, less) in zip(before, after, strict=True):
        assert fewer_rounds <= rounds
        assert less <= sent
    if any(dropped(program).values()):
        assert after != before


def _cost(program: Program, setting: dict[str, Any]) -> tuple[int, int]:
    found = tacit.launch(metered, program, **setting)
    return found[0].rounds, max(each.bytes_sent for each in found)


# What drops bits
# ----------------------------------------------------------------------------


class Comparing(nn.Module):
    """A ReLU together with all other operators that compare."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        image = x.reshape(1, 1, *x.shape)
        rectified = torch.relu(x)
        return (
            rectified + (x > 0),
            (rectified > 0).to(x.dtype),
            rectified.amax(1),
            nn.functional.relu6(x),
            x.clamp(min=0.0),
            nn.functional.leaky_relu(x),
            x.abs(),
            torch.max_pool2d(torch.relu(image), 2),
            torch.relu(x.to(torch.int64)),
        )


def test_nothing_else_drops_bits() -> None:
    # All are positive, and below the error that a ReLU may make.
    x = (torch.arange(64) + 1).reshape(8, 8) * UNIT
    program, weights = tacit.compile(Comparing().eval(), x, tolerance=2.0**-8)
    relus = [node for node in program.graph.nodes if drops(node)]
    assert [(node.target, node.meta["dropped"]) for node in relus] == [(aten.relu.default, 8)]
    exact = Comparing()(x)

    def run() -> list[torch.Tensor]:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        return [each.reveal() for each in bound(bound.given(x, owner=1))]

    found = tacit.launch(run, **THREE)[0]
    rectified = found[0] - 1
    # The exact comparison x > 0 holds for every number. Only the ReLU loses some of them.
    lost = rectified == 0
    assert lost.any()
    assert torch.equal(torch.where(lost, x, rectified), x)
    # The comparison rectified > 0 does not hold for the lost ones.
    assert torch.equal(found[1] > 0, rectified > 0)
    assert torch.equal(found[2], rectified.amax(1))
    for at in range(3, len(exact)):
        torch.testing.assert_close(found[at], exact[at], rtol=0, atol=UNIT)


def test_without_a_tolerance_all_bits_are_compared() -> None:
    program, _ = tacit.compile(Rectified().eval(), torch.zeros(2, 3))
    (node,) = json.loads(program.text)["nodes"]
    assert node["dropped"] == 0
    (step,) = inspect(program, []).steps
    assert (step.dropped, step.tolerance) == (0, None)


@pytest.mark.parametrize("tolerance", [2.0**-8, 1.99 * 2.0**-8])
def test_it_is_shown(tolerance: float) -> None:
    program, _ = tacit.compile(Rectified().eval(), torch.zeros(2, 3), tolerance=tolerance)
    found = inspect(program, [])
    (step,) = found.steps
    assert (step.dropped, step.tolerance) == (8, 2.0**-8)
    assert found.as_json()["steps"][0]["dropped"] == 8
    shown = " ".join(str(found).split())
    assert "without the lowest 8 bits: below 0.00390625 it may become zero" in shown
    assert math.nextafter(2.0**-8, 0) < 2.0**-8
    less, _ = tacit.compile(
        Rectified().eval(), torch.zeros(2, 3), tolerance=math.nextafter(2.0**-8, 0)
    )
    assert dropped(less) == {"relu": 7}


@pytest.mark.parametrize("tolerance", [-1.0, 0.0, math.nan, math.inf])
def test_what_is_no_tolerance_is_refused(tolerance: float) -> None:
    with pytest.raises(MisuseError, match="a tolerance is a number above 0, not"):
        tacit.compile(Rectified().eval(), torch.zeros(2, 3), tolerance=tolerance)


def test_a_tolerance_that_drops_no_bit_is_refused() -> None:
    with pytest.raises(
        MisuseError, match=r"a tolerance of 3e-05 drops no bit: .* one takes 3.05176e-05"
    ):
        tacit.compile(Rectified().eval(), torch.zeros(2, 3), tolerance=3e-5)


@pytest.mark.parametrize("most", [0.9, 1.0, 7.9])
def test_a_proved_width_holds_what_is_lost_too(most: float) -> None:
    x = torch.linspace(-most, most, 16).reshape(1, 16)
    program, _ = tacit.compile(Rectified().eval(), x, calibrate=x, tolerance=1000.0)
    (node,) = (node for node in program.graph.nodes if node.op == "call_function")
    width = fixed.width(node.meta["width"], Scale(program.scale))
    bits = node.meta["dropped"]
    # |x| ≤ 2^(width − 1) − 2^dropped for every permitted input, and four bits are left.
    (given,) = program.inputs.values()
    assert given.interval is not None
    assert max(map(abs, given.interval)) * 2.0**program.scale <= 2.0 ** (width - 1) - 2.0**bits
    assert 0 < bits <= width - 4
    assert max(map(abs, given.interval)) * 2.0**program.scale > 2.0 ** (width - 1) - 2.0 ** (
        bits + 2
    ) or (bits == width - 4)


def test_uniform_widths_drop_as_many_bits_everywhere() -> None:
    module = nn.Sequential(
        nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)
    ).eval()
    with torch.no_grad():
        module[2].weight.mul_(40.0)
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(3))
    found = {}
    for widths in ("proved", "uniform"):
        program, _ = tacit.compile(module, x[:2], calibrate=x, widths=widths, tolerance=100.0)
        found[widths] = [node.meta["dropped"] for node in program.graph.nodes if drops(node)]
    assert len(set(found["proved"])) == 2
    assert len(set(found["uniform"])) == 1
    assert min(found["uniform"]) > 0


# Savings
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [THREE, TWO, THREE_ADDITIVE])
def test_what_is_sent_falls_as_declared(setting: dict[str, Any]) -> None:
    n = 192 * 64
    x = torch.zeros(1, n)
    for bits in (0, 16, 44):
        tolerance = 2.0 ** (bits - 16) if bits else None
        program, weights = tacit.compile(Rectified().eval(), x, tolerance=tolerance)

        def run(program: Program = program, weights: Any = weights) -> int:
            current = tacit.session()
            bound = program.share(weights if current.party == 0 else None, owner=0)
            given = bound.given(x, owner=1)
            before = current.meter.total
            bound(given)
            return (current.meter.total - before).payload_bytes

        assert (
            8 * sum(tacit.launch(run, **setting))
            == n * DECLARED[setting["parties"], setting["protocol"]][bits]
        )


#: Bits of a ReLU over all links, by the number of dropped bits out of 64. Three additive parties
#: drop one bit less.
DECLARED = {
    (3, "replicated"): {0: 629, 16: 529, 44: 357},
    (2, "additive"): {0: 340, 16: 284, 44: 188},
    (3, "additive"): {0: 1020, 16: 858, 44: 570},
}


def digits_network() -> nn.Module:
    """A small trained network for handwritten digits."""
    images, labels = digits.for_training()
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(150):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
    return model.eval()


def test_digits_keep_their_classes() -> None:
    model = digits_network()
    images, labels = digits.for_training()
    held_out, right = digits.held_out()
    with torch.no_grad():
        assert float((model(held_out).argmax(1) == right).float().mean()) > 0.9
    found = []
    for tolerance in (None, 2.0**-5):
        program, weights = tacit.compile(
            model,
            held_out[:200],
            calibrate=images[:240],
            labels=labels[:240],
            margin=4.0,
            tolerance=tolerance,
        )
        setting: dict[str, Any] = {"parties": 3, "protocol": "replicated", "transport": "memory"}
        found.append(tried(program, weights, [held_out[:200]], **setting).compiled)
    before, after = found
    assert after.argmax_agreement == 1.0
    assert after.rounds <= before.rounds
    assert max(after.bytes_sent_per_party) < max(before.bytes_sent_per_party)
