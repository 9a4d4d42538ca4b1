"""Proved intervals contain every number that a protocol computes; and the widths that follow from
them."""

import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fx, nn

import tacit
from models import Residual, normalised
from tacit.compilation.execute import share_weights
from tacit.compilation.graph import Draft, walk
from tacit.compilation.importers.exported import of_module
from tacit.compilation.intervals import intervals
from tacit.compilation.passes import improve
from tacit.compilation.passes.assign_scales import at_scale
from tacit.compilation.passes.assign_widths import LEAST, assign_widths
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights, of_draft
from tacit.errors import EncodingError, MisuseError
from tacit.providers import REFERENCE

IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Everything(nn.Module):
    """A chain of operators, one for each rule."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        y = nn.functional.relu6(x) - nn.functional.hardtanh(-x, -0.5, 0.25) * torch.sigmoid(x)
        y = nn.functional.avg_pool2d(torch.cat([y, torch.tanh(x)], 1), 3, 1, 1)
        y = self.linear(y) + y.sum(-1, keepdim=True) / 4
        return torch.softmax(y, -1) + y.clamp(min=-1) * y.mean(1, keepdim=True)


def at_ends(draft: Draft, low: float, high: float) -> Draft:
    """Sets the promised interval of the draft's input, and rounds weights as programs store
    them."""
    improve(draft)
    draft.weights = {name: value.float().double() for name, value in draft.weights.items()}
    (name,) = draft.examples
    draft.intervals = {name: (low, high)}
    return draft


def found_outside(draft: Draft, x: torch.Tensor) -> list[str]:
    """Returns the nodes with numbers outside their intervals, in the parties' integers."""
    by_name = {node.name: ends for node, ends in intervals(draft).items()}
    program, weights, scale = Program.of(draft), of_draft(draft), draft.scale

    def reference() -> list[str]:
        outside = []

        def look(node: fx.Node, value: object) -> None:
            if isinstance(value, tacit.SecretTensor) and node.name in by_name:
                low, high = by_name[node.name]
                shown = value.reveal().double()
                if not (low <= float(shown.min()) and float(shown.max()) <= high):
                    outside.append(node.name)

        bound = share_weights(program, weights, 0)
        (name,) = program.inputs
        values = {name: bound.given(x, owner=0), **bound._weights, **program.constants}
        with tacit.session().using(scale=scale), torch.no_grad():
            walk(program.graph, values, seen=look)
        return outside

    return tacit.launch(reference, parties=2, protocol=REFERENCE)[0]


@pytest.mark.parametrize("bits", [6, 10, 16, 22])
@pytest.mark.parametrize("module", [Everything(), Residual()], ids=["everything", "residual"])
def test_no_number_is_outside(module: nn.Module, bits: int) -> None:
    draft = at_scale(at_ends(of_module(normalised(module), (IMAGES,), {}), -2.0, 1.5), bits)
    # Random signs at the limits of the promise, each limit everywhere, and the signs that make the
    # first layer's sums largest.
    ends = torch.where(torch.rand(IMAGES.shape) < 0.5, -2.0, 1.5)
    for x in (
        ends,
        torch.full(IMAGES.shape, -2.0),
        torch.full(IMAGES.shape, 1.5),
        IMAGES.clamp(-2, 1.5),
    ):
        assert found_outside(draft, x) == []


def test_a_sum_reaches_the_end_of_its_interval() -> None:
    module = nn.Sequential(nn.Linear(8, 3))
    draft = at_ends(of_module(normalised(module), (torch.zeros(1, 8),), {}), -2.0, 1.5)
    known = intervals(draft)
    last = list(draft.graph.nodes)[-2]
    weight, bias = (draft.weights[node.name] for node in last.args[1:3])
    x = torch.where(weight > 0, 1.5, -2.0)
    reached = ((weight * x).sum(1) + bias).max()
    assert float(reached) == pytest.approx(known[last][1], abs=2e-3)


def test_nothing_is_proved_of_what_nothing_is_promised_of() -> None:
    draft = of_module(normalised(Residual()), (IMAGES,), {})
    improve(draft)
    assign_widths(draft)
    assert all(node.meta["width"] is None for node in draft.graph.nodes)


def test_saturated_functions_bound_whatever_comes() -> None:
    class Saturated(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(torch.sigmoid(x) - 0.5)

    draft = of_module(Saturated().eval(), (IMAGES,), {})
    improve(draft)
    assign_widths(draft)
    # The argument ranges from about −0.5 to 0.5, and a little more.
    assert [node.meta["width"] for node in draft.graph.nodes if "relu" in node.name] == [17]


class Rectified(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


RECTIFIED = of_module(Rectified().eval(), (torch.zeros(4),), {})


@settings(max_examples=25, deadline=None)
@given(st.floats(0.01, 1000.0), st.floats(0.0, 1.0), st.sampled_from([8, 12, 16, 20]))
def test_a_width_is_right_at_its_end_and_as_small_as_can_be(
    high: float, part: float, bits: int
) -> None:
    low = -high * part
    draft = at_scale(at_ends(RECTIFIED.copy(), low, high), bits)
    assign_widths(draft)
    (width,) = [node.meta["width"] for node in draft.graph.nodes if node.name == "relu"]
    # Four units at each end for the rounding of the input, and as many for the number that it is
    # compared with.
    most = high + 8 * 2.0**-bits
    assert most < 2.0 ** (width - 17) or width == LEAST
    assert width == LEAST or 2.0 ** (width - 18) <= most * (1 + 1e-6)
    x = torch.tensor([low, high, low / 2, high / 3], dtype=torch.float64)
    program = Program.of(draft)

    def run() -> torch.Tensor:
        bound = share_weights(program, {}, 0)
        return bound(bound.given(x, owner=1)).reveal()

    result = tacit.launch(run, parties=2, protocol=REFERENCE)[0]
    torch.testing.assert_close(
        result.double(), torch.relu(x), rtol=0, atol=2.0**-bits + 1e-6 * high
    )


def test_a_public_bound_is_as_far_off_as_it_is_encoded() -> None:
    class Clamped(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.clamp(-torch.relu(x), min=-0.99999, max=float("inf"))

    x = torch.tensor([-0.5, -0.1, 0.0, 0.3])
    program, weights = tacit.compile(Clamped().eval(), x, calibrate=x)

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        return bound(bound.given(x, owner=1)).reveal()

    torch.testing.assert_close(tacit.launch(run)[0], -torch.relu(x), rtol=0, atol=2e-3)


def test_uniform_widths_tell_one_number() -> None:
    draft = at_ends(of_module(normalised(Residual()), (IMAGES,), {}), -2.0, 2.0)
    assign_widths(draft)
    own = [node.meta["width"] for node in draft.graph.nodes if node.meta["width"]]
    assign_widths(draft, uniform=True)
    widths = {node.meta["width"] for node in draft.graph.nodes if node.meta["width"]}
    assert widths == {max(own)}
    assert len(set(own)) > 1
    assert all(node.meta["interval"] is None for node in draft.graph.nodes)


# Uses of intervals
# ----------------------------------------------------------------------------


def compiled() -> tuple[Program, Weights]:
    """Compiles with calibration, so that widths are proved."""
    return tacit.compile(normalised(Residual()), IMAGES, calibrate=IMAGES.repeat(2, 1, 1, 1))


def test_numbers_outside_of_what_was_promised_are_refused_at_their_owner() -> None:
    program, weights = compiled()

    def run(x: torch.Tensor) -> None:
        bound = program.share(weights, owner=0)
        bound.given(x, owner=1)

    with pytest.raises(MisuseError, match=r"party 1: the input x has numbers outside of"):
        tacit.launch(run, IMAGES * 100)
    with pytest.raises(EncodingError, match=r"the input x holds NaN.*torch\.nan_to_num"):
        tacit.launch(run, IMAGES.where(IMAGES.max() > IMAGES, torch.nan))


def test_secrets_of_which_nobody_promised_anything_are_compared_in_full() -> None:
    program, weights = compiled()
    x = IMAGES * 100

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        whole = bound(tacit.share(x, owner=1)).reveal()
        promised = bound.given(IMAGES, owner=1)
        promised.mul_(100)
        written = bound(promised).reveal()
        return torch.stack([whole, written])

    whole, written = tacit.launch(run)[0]
    with torch.no_grad():
        plain = normalised(Residual())(x)
    for result in (whole, written):
        assert float((result - plain).norm() / plain.norm()) < 1e-2


def test_who_shares_otherwise_is_told_once_what_it_costs() -> None:
    program, weights = compiled()

    def run() -> list[str]:
        told = []
        bound = program.share(weights, owner=0)
        for x in (bound.given(IMAGES, owner=1), IMAGES, *[tacit.share(IMAGES, owner=1)] * 2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                bound(x)
            told += [str(each.message) for each in caught if each.category is tacit.CostWarning]
        return told

    (told,) = tacit.launch(run, transport="tcp")[0]
    assert told.startswith(
        "these inputs were not checked against what the program was compiled for: x;"
    )
    assert "program.share(...).given(x, owner=...)" in told


def test_a_program_without_proofs_costs_nobody_more() -> None:
    program, weights = tacit.compile(normalised(Residual()), IMAGES)

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error", tacit.CostWarning)
            program.share(weights, owner=0)(tacit.share(IMAGES, owner=1))

    tacit.launch(run, transport="tcp")


def test_the_interval_of_a_calibration_reaches_a_quarter_beyond() -> None:
    program, _ = compiled()
    (interval,) = [each.interval for each in program.inputs.values()]
    low, high = float(IMAGES.min()), float(IMAGES.max())
    assert math.isclose(interval[0], low - (high - low) / 4, rel_tol=1e-5)
    assert math.isclose(interval[1], high + (high - low) / 4, rel_tol=1e-5)
