"""Guards: comparisons of fewer bits than the proved width, and what happens to numbers that need
more."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tacit
from guarded import COMPILED, MANY, compiled, layers, with_sum
from models import Residual, normalised, spent
from tacit.compilation.comparing import Guard
from tacit.compilation.execute import _around, _Widths
from tacit.compilation.graph import calls, walk
from tacit.compilation.importers.exported import of_module
from tacit.compilation.inspect import inspect
from tacit.compilation.passes import improve
from tacit.compilation.passes.assign_widths import LEAST, assign_widths
from tacit.compilation.program import Program
from tacit.compilation.try_model import tried
from tacit.demo import digits
from tacit.errors import MisuseError, PeerError, RangeError
from tacit.fixed import Scale
from tacit.providers import REFERENCE


def guards(program: Program) -> list[Guard | None]:
    return [step.guard for step in inspect(program, []).steps if step.width]


# Widths
# ----------------------------------------------------------------------------


def test_a_guard_takes_the_place_of_a_dearer_proof() -> None:
    first, second = (step for step in inspect(COMPILED[0], []).steps if step.width)
    # Numbers below 32 pass. Sums of 1024 numbers up to 1.5 are proved to be below 2^11.
    assert first.width == 11 + 17
    assert first.guard is not None
    assert (first.guard.width, first.guard.passes, first.guard.most) == (24, 32.0, 96.0)
    assert "below 32 it passes, above 96 there is no result" in first.guarded
    # After a guard, intervals start anew: the result of the ReLU is between 0 and 96.
    assert first.interval == pytest.approx((0.0, 96.0), abs=0.02)
    assert second.interval is not None
    assert second.interval[1] <= 96.1
    assert second.guard is not None
    assert second.guard.width < second.width


def test_without_calibration_there_are_proofs_alone() -> None:
    program, _ = tacit.compile(layers(), with_sum(0))
    assert guards(program) == [None, None]


def test_guards_that_save_less_than_their_rounds_are_left_out() -> None:
    assert any(guards(compiled()[0]))
    few, widths = compiled(margin=None)[0], compiled(margin=None, widths="uniform")[0]
    assert not any(guards(few) + guards(widths))
    many = nn.Sequential(
        *(nn.Sequential(nn.Conv2d(32, 32, 5, padding=2), nn.ReLU()) for _ in range(4))
    ).eval()
    images = torch.rand(2, 32, 64, 64, generator=torch.Generator().manual_seed(0))
    assert not any(guards(tacit.compile(many, images[:1])[0]))
    found = [
        guards(tacit.compile(many, images[:1], calibrate=images, margin=each)[0])
        for each in (None, 4.0)
    ]
    assert found[0] == found[1]
    assert any(found[0])


def test_guards_that_a_margin_asks_for_may_cost_more_than_they_save() -> None:
    setting: dict[str, Any] = {"protocol": "replicated", "parties": 3}
    found = {}
    for margin in (None, 4.0):
        program, weights = compiled(margin=margin)
        found[margin] = max(spent(program, weights, with_sum(0), **setting))
    before = weights.as_it_was()
    eager = max(spent(weights.model, before, with_sum(0), **setting))
    # A guard is the one documented exception to the rule that a program sends no more than its
    # model (docs/compile.md).
    assert found[None] <= eager < found[4.0]


def test_a_greater_margin_lets_more_pass() -> None:
    first, _ = guards(compiled(margin=10)[0])
    assert first is not None
    assert first.passes == 128.0
    # With too large a margin the proofs are cheaper.
    assert guards(compiled(margin=2.0**12)[0])[0] is None


@pytest.mark.parametrize("margin", [0.5, float("nan"), 2.0**17])
def test_margins_that_are_none_are_refused(margin: float) -> None:
    with pytest.raises(MisuseError, match="the margin of guards is 1 to"):
        compiled(margin=margin)


def test_uniform_widths_have_one_guard() -> None:
    program, _ = compiled(widths="uniform")
    found = set(guards(program))
    assert len(found) == 1
    (guard,) = found
    assert guard is not None
    assert guard.reach
    assert all(step.interval is None for step in inspect(program, []).steps)


class Rectified(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


RECTIFIED = of_module(normalised(Rectified()), (torch.zeros(1, 1),), {})


@settings(max_examples=60, deadline=None)
@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e4), st.floats(1.0, 64.0), st.integers(10, 22))
def test_a_guard_passes_what_it_is_to_pass_and_is_as_small_as_can_be(
    reached: float, seen: float, margin: float, bits: int
) -> None:
    draft = RECTIFIED.copy()
    improve(draft)
    (name,) = draft.examples
    draft.intervals, draft.scale = {name: (-reached, reached)}, draft.scale._replace(bits=bits)
    (node,) = calls(draft.graph, torch.ops.tacit.rectified_affine.default)
    assign_widths(draft, {node.name: (-seen, seen / 2)}, margin)
    guard, width = node.meta["guard"], node.meta["width"] or 64
    if guard is None:
        return
    assert guard.cost < Guard(width, 0).cost
    assert guard.reach >= 2
    unit = 4 * 2.0**-bits
    assert guard.passes > margin * seen
    assert guard.width == LEAST or guard.passes <= 2 * margin * (seen + unit) + 2 * unit
    # The guard tests enough bits for every number that the promise permits, or all bits that a word
    # has. So no larger number is mistaken for a small one.
    weight, offset = (float(draft.weights[each.name]) for each in (node.args[1][0], node.args[2]))
    most = reached * abs(weight) + abs(offset)
    b = 2.0 ** (guard.width - 2 - 16)
    room = 64 - 16 - (guard.width + bits - 16 - 2)
    assert most + b / 2 < b * (2**guard.reach - 2) or guard.reach == room


def test_what_is_compared_otherwise_is_not_guarded() -> None:
    class Compared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(MANY, 2)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = self.linear(x)
            return torch.relu(y), y.argmax(1)

    torch.manual_seed(0)
    program, _ = tacit.compile(Compared().eval(), with_sum(0), calibrate=with_sum(4), margin=4.0)
    steps = {step.operator: step for step in inspect(program, []).steps if step.width}
    assert steps["relu"].guard is not None
    assert steps["relu"].guard.reach
    assert steps["argmax"].guard is None


# In sessions
# ----------------------------------------------------------------------------


def run(x: torch.Tensor, to: int | None) -> Any:
    """Runs the program on party 1's input. Returns this party's result or error."""
    program, weights = COMPILED
    party = tacit.session().party
    bound = program.share(weights if party == 0 else None, owner=0)
    result = bound(bound.given(x if party == 1 else None, owner=1))
    try:
        return result.reveal(to=to)
    except RangeError as error:
        return error


@pytest.mark.parametrize("total", [0, 7, 31, -31, -512, 512, 300])
def test_a_guard_decides_at_the_receiver_alone(total: int) -> None:
    x = with_sum(total) if total >= 0 else -with_sum(-total)
    found = tacit.launch(run, x, 1)
    assert found[0] is None
    assert found[2] is None
    if abs(total) < 32:
        with torch.no_grad():
            torch.testing.assert_close(found[1], layers()(x), rtol=0, atol=0.05)
    else:
        assert isinstance(found[1], RangeError)
        # The error names the layer's label and the remedy.
        assert found[1].layers[0] == "0"
        assert "in 0" in str(found[1])
        assert "calibration data like these" in str(found[1])


def test_all_who_would_learn_the_result_are_told() -> None:
    found = tacit.launch(run, with_sum(512), None)
    assert [type(each) for each in found] == [RangeError] * 3


def test_others_are_not_told_what_failed(tmp_path: Path) -> None:
    program, weights = COMPILED

    def run() -> None:
        party = tacit.session().party
        bound = program.share(weights if party == 0 else None, owner=0)
        result = bound(bound.given(with_sum(512) if party == 1 else None, owner=1))
        result.reveal(to=1)
        try:
            tacit.share(torch.ones(1), owner=0).reveal()
        except PeerError as error:
            (tmp_path / f"{party}").write_text(str(error))
            raise

    with pytest.raises(RangeError, match="party 1: numbers left the range"):
        tacit.launch(run)
    told = [path.read_text() for path in tmp_path.iterdir()]
    assert told
    for message in told:
        assert "its program raised MisuseError; see its own output" in message
        assert "range" not in message.lower()


def test_results_of_other_inputs_are_right_after_a_guard_failed() -> None:
    program, weights = COMPILED

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        with pytest.raises(RangeError):
            bound(bound.given(with_sum(512), owner=1)).reveal()
        return bound(bound.given(with_sum(7), owner=1)).reveal()

    with torch.no_grad():
        plain = layers()(with_sum(7))
    torch.testing.assert_close(tacit.launch(run)[0], plain, rtol=0, atol=0.05)


@pytest.mark.parametrize(
    "setting",
    [
        {"parties": 2, "protocol": "additive", "source": "dealer"},
        {"parties": 2, "protocol": REFERENCE},
    ],
)
def test_where_there_are_no_guards_all_bits_are_compared(setting: dict[str, Any]) -> None:
    program, weights = COMPILED

    def run() -> torch.Tensor | None:
        if tacit.session().core.guards:
            return None
        bound = program.share(weights, owner=0)
        return bound(bound.given(with_sum(512), owner=1)).reveal()

    with torch.no_grad():
        plain = layers()(with_sum(512))
    found = tacit.launch(run, **setting)[0]
    if found is not None:
        torch.testing.assert_close(found, plain, rtol=1e-2, atol=0.1)


def test_nothing_is_guarded_of_what_nobody_promised_anything_about() -> None:
    program, weights = COMPILED

    def run() -> list[torch.Tensor]:
        bound = program.share(weights, owner=0)
        secret = bound(tacit.share(with_sum(512), owner=1, scale=program.scale)).reveal()
        public = bound(with_sum(512)).reveal()
        return [secret, public]

    with torch.no_grad():
        plain = layers()(with_sum(512))
    for found in tacit.launch(run)[0]:
        torch.testing.assert_close(found, plain, rtol=1e-2, atol=0.1)


@pytest.mark.parametrize("total", [7, 31, 40, 56, 80, 95, 120])
def test_where_guards_hold_no_number_is_outside(total: int) -> None:
    program, weights = COMPILED

    def look() -> list[str]:
        current, outside = tacit.session(), []
        bound = program.share(weights, owner=0)
        (name,) = program.inputs
        values = {
            name: bound.given(with_sum(total), owner=1),
            **bound._weights,
            **program.constants,
        }

        def seen(node: Any, value: Any) -> None:
            if isinstance(value, tacit.SecretTensor) and node.meta["interval"] is not None:
                low, high = node.meta["interval"]
                shown = value.reveal()
                if not low <= float(shown.min()) <= float(shown.max()) <= high:
                    outside.append(node.name)

        with current.using(scale=Scale(program.scale)), torch.no_grad():
            widths = _Widths(proved=True, guarded=True)
            try:
                walk(
                    program.graph,
                    values,
                    around=lambda node: _around(current, node, widths),
                    seen=seen,
                )
            except RangeError:
                # The guard may fail from 32 on, and must fail from 96 on.
                return ["guarded"]
        return outside

    found = tacit.launch(look)[0]
    assert found == ([] if total < 32 else ["guarded"] if total > 96 else found)
    assert found in ([], ["guarded"])


# What is guarded
# ----------------------------------------------------------------------------

ACTIVATIONS: dict[str, Any] = {
    "abs": torch.abs,
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(1),
    "clamp": lambda x: x.clamp(-1.0, 2.0),
    "clamp, below": lambda x: x.clamp(min=-1.0),
    "clamp, above": lambda x: x.clamp(max=1.0),
    "hardtanh": nn.functional.hardtanh,
    "leaky": nn.functional.leaky_relu,
    "maximum": lambda x: torch.maximum(x, x.flip(1)),
    "minimum": lambda x: torch.minimum(x, x.flip(1)),
    "pooled": lambda x: torch.max_pool2d(x.reshape(1, 1, 2, 3), 2, 1),
    "rectified and pooled": lambda x: torch.max_pool2d(
        torch.relu(x.reshape(1, 1, 2, 3)), (2, 3), 1
    ),
    "relu": lambda x: torch.relu(x.flip(1)),
    "relu6": nn.functional.relu6,
}


class Activated(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.linear = nn.Linear(MANY, 6)
        with torch.no_grad():
            self.linear.weight.fill_(1.0)
            self.linear.weight[3:] *= -1.0
            self.linear.bias.copy_(torch.linspace(-2, 2, 6))
        self._name = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ACTIVATIONS[self._name](self.linear(x)) * 0.5


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_operator_is_right_within_and_fails_beyond(name: str) -> None:
    module = Activated(name).eval()
    program, weights = tacit.compile(
        module, with_sum(0), calibrate=torch.cat([with_sum(0), with_sum(3)]), margin=4.0
    )
    assert any(guard is not None and guard.reach for guard in guards(program))

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        with pytest.raises(RangeError):
            bound(bound.given(with_sum(512), owner=1)).reveal()
        return bound(bound.given(-with_sum(4), owner=1)).reveal()

    with torch.no_grad():
        plain = module(-with_sum(4))
    torch.testing.assert_close(tacit.launch(run)[0], plain, rtol=0, atol=0.02)


def test_digits_keep_their_classes() -> None:
    model = digits.train()
    images, labels = digits.for_training()
    held_out, right = digits.held_out()
    program, weights = tacit.compile(
        model, held_out[:60], calibrate=images[:240], labels=labels[:240], margin=4.0
    )
    found = tried(
        program, weights, [held_out[:60]], parties=3, protocol="replicated", transport="memory"
    )
    with torch.no_grad():
        plain = model(held_out[:60]).argmax(1)
    assert float((plain == right[:60]).float().mean()) > 0.9
    assert found.compiled.argmax_agreement == 1.0
    assert max(found.compiled.bytes_sent_per_party) < 0.7 * max(found.eager.bytes_sent_per_party)


def test_deep_models_keep_their_classes() -> None:
    class Deep(nn.Module):
        """Blocks of a residual network, too deep for useful proofs."""

        def __init__(self) -> None:
            super().__init__()
            self.first = Residual().first
            self.blocks = nn.ModuleList(
                nn.Sequential(
                    nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1)
                )
                for _ in range(6)
            )
            self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(3))
            self.classify = nn.Linear(4, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.first(x))
            for at, block in enumerate(self.blocks):
                # Every second block has a normalisation before its ReLU.
                x = (
                    torch.relu(block(x) + x)
                    if at % 2
                    else block[3](torch.relu(self.norms[at // 2](x))) + x
                )
            return self.classify(x.mean((2, 3), keepdim=True).flatten(1))

    images = torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    program, weights = tacit.compile(normalised(Deep()), images[:2], calibrate=images, margin=4.0)
    assert sum(guard is not None and guard.reach > 0 for guard in guards(program)) >= 3
    found = tried(
        program, weights, [images[:2]], parties=3, protocol="replicated", transport="memory"
    )
    assert found.compiled.normalised_squared_error < 1e-3
    assert found.compiled.argmax_agreement == 1.0
    assert found.compiled.rounds < found.eager.rounds
    assert max(found.compiled.bytes_sent_per_party) < 0.7 * max(found.eager.bytes_sent_per_party)
