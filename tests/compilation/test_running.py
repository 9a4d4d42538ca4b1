"""Programs in sessions: all protocols give the model's results, parties run the same program, and
the cost is lower."""

import pytest
import torch
from torch import nn

import tacit
from models import Attention, Residual, normalised
from tacit.compilation.inspect import inspect
from tacit.compilation.try_model import tried
from tacit.errors import MisuseError, SetupError
from tacit.providers import REFERENCE

IMAGES = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))

SETTINGS = [
    ("replicated", 3, None),
    ("additive", 2, "dealer"),
    ("additive", 3, "dealer"),
    (REFERENCE, 2, None),
]


@pytest.mark.parametrize(("protocol", "parties", "source"), SETTINGS)
@pytest.mark.parametrize("widths", ["proved", "uniform"])
def test_a_program_gives_what_its_model_gives(
    protocol: str, parties: int, source: str | None, widths: str
) -> None:
    program, weights = tacit.compile(
        normalised(Residual()), IMAGES, calibrate=IMAGES, widths=widths
    )
    found = tried(
        program,
        weights,
        [IMAGES],
        parties=parties,
        protocol=protocol,
        source=source,
        transport="memory",
    )
    assert found.compiled.normalised_squared_error < 1e-3
    assert found.eager.normalised_squared_error < 1e-4
    assert found.compiled.argmax_agreement == 1.0
    if protocol != REFERENCE:
        assert found.compiled.rounds < found.eager.rounds
        assert max(found.compiled.bytes_sent_per_party) < 0.7 * max(
            found.eager.bytes_sent_per_party
        )


def test_eager_is_what_a_shared_module_costs() -> None:
    program, weights = tacit.compile(normalised(Residual()), IMAGES)
    found = tried(
        program, weights, [IMAGES], parties=3, protocol="replicated", transport="memory"
    ).eager

    def eager() -> tuple[int, int]:
        current = tacit.session()
        module = tacit.share_module(normalised(Residual()), owner=0)
        before = current.meter.total
        with torch.no_grad():
            module(tacit.share(IMAGES, owner=1)).reveal(to=1)
        spent = current.meter.total - before
        return spent.rounds, spent.bytes_sent

    told = tacit.launch(eager)
    assert found.rounds == max(rounds for rounds, _ in told)
    assert found.bytes_sent_per_party == pytest.approx([sent for _, sent in told], rel=0.01)


def test_sequences_too() -> None:
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(2))
    program, weights = tacit.compile(normalised(Attention()), x)
    found = tried(program, weights, [x], parties=3, protocol="replicated", transport="memory")
    assert found.compiled.normalised_squared_error < 1e-4
    assert found.compiled.rounds < found.eager.rounds


def test_where_tensors_lie_is_left_to_the_parties() -> None:
    class Made(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.full_like(x, 0.5) * x + torch.arange(8.0).to(x.device)

    program, weights = tacit.compile(Made().eval(), IMAGES)
    assert b"device" not in program.text
    found = tried(program, weights, [IMAGES], parties=2, protocol=REFERENCE, transport="memory")
    assert found.compiled.normalised_squared_error < 1e-8


def test_masks_are_public_and_may_be_infinite() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask = torch.full((8, 8), float("-inf")).triu(1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x + self.mask, -1)

    program, weights = tacit.compile(Masked().eval(), IMAGES, calibrate=IMAGES)
    found = tried(program, weights, [IMAGES], parties=3, protocol="replicated", transport="memory")
    assert found.compiled.normalised_squared_error < 1e-4


def test_several_inputs_and_results() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(
            self, left: torch.Tensor, right: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            return self.linear(left) * right, torch.maximum(left.sum(), right.sum())

    module = normalised(Both())
    left, right = torch.rand(2, 4), torch.rand(2, 3)
    program, weights = tacit.compile(module, (left, right))

    def run() -> list[torch.Tensor]:
        bound = program.share(weights, owner=2)
        results = bound(bound.given(left, owner=0, name="left"), right)
        return [result.reveal() for result in results]

    with torch.no_grad():
        plain = module(left, right)
    for result, expected in zip(tacit.launch(run)[0], plain, strict=True):
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-3)


def test_parties_with_other_programs_are_told_both_hashes() -> None:
    one, weights = tacit.compile(normalised(Residual()), IMAGES)
    other, _ = tacit.compile(normalised(Residual()), IMAGES[:1])

    def run() -> None:
        party = tacit.session().party
        (other if party == 2 else one).share(weights if party == 0 else None, owner=0)

    with pytest.raises(SetupError) as caught:
        tacit.launch(run)
    assert one.digest in str(caught.value)
    assert other.digest in str(caught.value)


def test_parties_that_are_threads_may_each_compile() -> None:
    module = normalised(Residual())

    def run() -> torch.Tensor:
        program, weights = tacit.compile(module, IMAGES, calibrate=IMAGES)
        owns = tacit.session().party == 0
        return program.share(weights if owns else None, owner=0)(
            tacit.share(IMAGES, owner=1)
        ).reveal()

    torch.testing.assert_close(tacit.launch(run)[2], module(IMAGES).detach(), rtol=0, atol=0.02)


def test_whoever_owns_weights_must_have_them() -> None:
    program, _ = tacit.compile(normalised(Residual()), IMAGES)
    with pytest.raises(MisuseError, match="party 1 owns the weights"):
        tacit.launch(lambda: program.share(None, owner=1))


def test_inputs_of_other_shapes_are_refused() -> None:
    program, weights = tacit.compile(normalised(Residual()), IMAGES)

    def run() -> None:
        bound = program.share(weights, owner=0)
        bound(tacit.share(IMAGES[:1], owner=1))

    with pytest.raises(
        MisuseError, match=r"shape \(1, 3, 8, 8\), the program was compiled for \(2, 3, 8, 8\)"
    ):
        tacit.launch(run)


@pytest.mark.parametrize(
    ("calibrate", "labels", "message"),
    [
        (torch.zeros(0, 3, 8, 8), None, "0 rows.*: give as many or more"),
        (torch.zeros(4, 3, 8, 9), None, "the number of rows may differ"),
        (torch.full((4, 3, 8, 8), float("nan")), None, "NaN or infinity: leave those rows out"),
        ((IMAGES, IMAGES), None, "2 inputs, the model takes 1: give one tensor"),
        (IMAGES, torch.zeros(3, dtype=torch.int64), "a class for each"),
        (IMAGES, torch.zeros(2), "a class for each"),
        (IMAGES, torch.tensor([0, 5]), "not classes of the model, which has 5"),
        ({"y": IMAGES}, None, "calibration data of y; the model takes x"),
        ("images.npy", None, "are tensors"),
        (
            torch.zeros(2, 3, 8, 8, dtype=torch.uint8),
            None,
            r"torch\.uint8, the model takes torch\.float32",
        ),
        (None, torch.zeros(2, dtype=torch.int64), "labels belong to calibration data"),
    ],
)
def test_calibration_data_that_do_not_fit_are_refused(
    calibrate: torch.Tensor, labels: torch.Tensor | None, message: str
) -> None:
    with pytest.raises(MisuseError, match=message):
        tacit.compile(normalised(Residual()), IMAGES, calibrate=calibrate, labels=labels)


def test_a_model_that_no_scale_holds_is_refused() -> None:
    module = normalised(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2.0**28)
    with pytest.raises(
        MisuseError,
        match=r"at no scale.*with 10: .* in module '1' has a product .*; "
        r"with 22: p_0_weight, a weight of layer 0: .*; scale down the data",
    ):
        tacit.compile(module, torch.ones(1, 4), calibrate=torch.ones(2, 4))


def test_without_calibration_weights_beyond_the_scale_are_refused_with_their_layer() -> None:
    module = normalised(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    with torch.no_grad():
        module[1].weight.mul_(2.0**40)
    with pytest.raises(tacit.EncodingError, match=r"p_1_weight, a weight of layer 1: .*too large"):
        tacit.compile(module, torch.ones(1, 4))


def test_without_calibration_it_is_told_that_nothing_shows_the_range() -> None:
    said: list[str] = []
    module = normalised(nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()))
    program, _ = tacit.compile(module, torch.ones(1, 4), progress=said.append)
    assert any("nothing has shown" in each and "--calibrate" in each for each in said)
    found = inspect(program, [])
    assert found.in_range == {"steps": 1, "below": 2.0**30}
    shown = " ".join(str(found).split())
    assert "range: 1 of 2 steps are shown to give numbers below 1.07374e+09" in shown
    said.clear()
    program, _ = tacit.compile(
        module, torch.ones(1, 4), calibrate=torch.rand(4, 4), progress=said.append
    )
    assert not any("nothing has shown" in each for each in said)
    found = inspect(program, [])
    assert found.in_range["steps"] == len(found.steps)
    assert "range:" not in str(found)


def test_what_the_owner_of_weights_that_are_too_small_can_do() -> None:
    module = normalised(nn.Sequential(nn.Linear(4, 4)))
    with torch.no_grad():
        module[0].weight.mul_(1e-4)
    program, weights = tacit.compile(module, torch.ones(1, 4))

    def shared() -> None:
        program.share(weights if tacit.session().party == 0 else None, owner=0)

    with pytest.warns(
        tacit.PrecisionWarning, match="so small .* compile the model with calibration data"
    ) as told:
        tacit.launch(shared)
    assert len(told) == 1
    assert "share_module" not in str(told[0].message)


class Beside(nn.Module):
    """A layer whose results contribute almost nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.last = nn.Linear(16, 16), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x + self.small(x))


@pytest.mark.parametrize("widths", ["proved", "uniform"])
def test_of_a_program_that_was_calibrated_the_remedy_is_another(widths: str) -> None:
    module = normalised(Beside())
    with torch.no_grad():
        module.small.weight.mul_(1e-3)
    data = torch.randn(40, 16, generator=torch.Generator().manual_seed(3))
    program, weights = tacit.compile(module, data[:1], calibrate=data, widths=widths)

    def shared() -> None:
        program.share(weights if tacit.session().party == 0 else None, owner=0)

    with pytest.warns(
        tacit.PrecisionWarning, match=r"p_small_weight \(.*; on its calibration data"
    ) as told:
        tacit.launch(shared)
    assert len(told) == 1
    # The trial also runs the uncompiled model with the usual 16 bits. Its warning has no remedy.
    with pytest.warns(tacit.PrecisionWarning) as told:
        tried(program, weights, [data[:1]], parties=2, protocol=REFERENCE, transport="memory")
    said = [str(each.message) for each in told]
    assert sum("on its calibration data" in each for each in said) == 1
    assert sum("in the model as it runs without compilation" in each for each in said) == 1
    assert not any(
        "compile the model with calibration data, on which scales" in each for each in said
    )
