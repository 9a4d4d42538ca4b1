"""Predictions before a run: what is missing, how exact the results are, what they cost."""

import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from commands import tacit as command
from tacit.operators.dispatch.hints import REWRITES
from tacit.operators.dispatch.table import TABLE
from tacit.rehearsal.check import Check

# check
# ----------------------------------------------------------------------------


class Factored(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.ldl_factor_ex(x).LD


class Lacking(nn.Module):
    """A module that uses an operator that secret tensors lack, between layers that they support."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), Factored(), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers(x)
        if x.sum() > 0:
            x = x + 1
        x.igamma_(torch.ones(4))
        return x * x.max().item() + torch.special.airy_ai(x).sum() + x[torch.nonzero(x)[0, 0]]


def wanted(found: Check) -> list[tuple[str, str]]:
    return [(gap.what, gap.module) for gap in found.gaps]


def test_check_finds_all_that_is_missing_in_one_run() -> None:
    module = Lacking()
    before = module.layers[0].weight.clone()
    found = tacit.check(module, torch.rand(4, 4))
    assert wanted(found) == [
        ("aten.linalg_ldl_factor_ex.default", "layers.1"),
        ("a condition, such as `if tensor:`", "Lacking"),
        ("aten.igamma_.default", "Lacking"),
        ("item()", "Lacking"),
        ("aten.special_airy_ai.default", "Lacking"),
        ("nonzero()", "Lacking"),
    ]
    assert not found.passed
    assert found.ended == ""
    lines = Path(__file__).read_text().splitlines()
    for gap in found.gaps:
        file, line = gap.line.rsplit(":", 1)
        assert file.endswith("test_rehearsal.py")
        said = lines[int(line) - 1]
        assert any(
            word in said for word in ("ldl_factor", "if x.sum()", "igamma_", "return x * x.max()")
        )
    remedies = {gap.what: gap.remedy for gap in found.gaps}
    assert "torch.where" in remedies["item()"]
    assert "before it is shared" in remedies["aten.linalg_ldl_factor_ex.default"]
    assert all(remedies.values())
    # The module itself is unchanged.
    assert type(module.layers[0].weight) is nn.Parameter
    assert torch.equal(module.layers[0].weight, before)


def test_what_takes_the_place_of_a_missing_operator_is_right() -> None:
    def program() -> Any:
        x = tacit.share(torch.full((3,), 2.0) if tacit.session().party == 2 else None, owner=2)
        x.igamma_(torch.ones(3))
        assert torch.allclose(
            x.reveal(), torch.igamma(torch.full((3,), 2.0), torch.ones(3)), atol=1e-4
        )
        y = torch.special.bessel_j0(x) + 1
        assert isinstance(y, tacit.SecretTensor)
        raise ValueError(f"ended at {y.shape[0]}")

    found = tacit.check(program)
    assert wanted(found) == [("aten.igamma_.default", ""), ("aten.special_bessel_j0.default", "")]
    assert found.ended == "ValueError: ended at 3"
    assert "not checked: ValueError" in str(found)


def test_what_is_complex_in_the_clear_is_said_without_a_warning() -> None:
    class Spectrum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvals(x).real + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tacit.check(Spectrum(), torch.rand(3, 3))
    assert "aten.linalg_eig.default" in [gap.what for gap in found.gaps]


def test_every_rewrite_is_of_something_that_is_missing() -> None:
    entered = {func._schema.name for func in TABLE}
    operators = {name.split(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    for start in REWRITES:
        assert any(name.startswith(f"aten::{start}") for name in operators - entered), start


def test_outside_a_check_nothing_takes_its_place() -> None:
    def program() -> None:
        x = tacit.share(torch.ones(3), owner=0)
        with pytest.raises(tacit.UnsupportedOperatorError):
            torch.special.bessel_j0(x)
        with pytest.raises(tacit.MisuseError, match=r"item\(\) would show"):
            x.sum().item()

    tacit.launch(program, parties=2, protocol="plain")


def test_check_of_what_does_not_fit() -> None:
    with pytest.raises(tacit.MisuseError, match="needs an example"):
        tacit.check(nn.Linear(2, 2))
    with pytest.raises(tacit.MisuseError, match="a program has its own"):
        tacit.check(lambda: None, torch.ones(2))


# compare
# ----------------------------------------------------------------------------


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 5),
    ).eval()


class Times(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


class Square(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x


def test_compare_shows_every_layer() -> None:
    images = torch.rand(2, 1, 8, 8)
    found = tacit.compare(network(), images)
    assert [layer.name for layer in found.layers] == ["0", "1", "2", "3", "4", "5", "Sequential"]
    assert found.passed
    assert found.first_divergence is None
    assert found.advised_scale == found.scale == 16
    plain = network()(images).detach()
    last = found.layers[-1]
    assert (last.low, last.high) == pytest.approx((float(plain.min()), float(plain.max())))
    assert 0 < last.error < 1e-3
    # Words of the first layer: products of numbers near 1 have 32 of the 62 bits.
    assert found.layers[0].headroom == pytest.approx(62 - 32, abs=2.5)
    assert found.layers[-1].headroom is None


def test_no_overflow_escapes_compare() -> None:
    module = nn.Sequential(Times(1.0), Square(), Times(2.0**-20))
    with pytest.warns(tacit.RangeWarning, match="module '1'"):
        found = tacit.compare(module, torch.tensor([1.0, 2.0**15.5]))
    assert not found.passed
    assert found.first_divergence is not None
    assert found.first_divergence.name == "1"
    assert found.first_divergence.headroom == pytest.approx(-1, abs=0.1)
    assert [overflow for overflow in found.overflows if "module '1'" in overflow]
    # With fewer fraction bits the result is in range, as a second run confirmed.
    assert found.advised_scale is not None
    assert found.advised_scale <= 14
    assert found.advised_error is not None
    assert found.advised_error < 1e-3
    assert (
        tacit.compare(module, torch.tensor([1.0, 2.0**15.5]), scale=found.advised_scale).overflows
        == []
    )


def test_compare_advises_more_bits_where_they_are_missing() -> None:
    found = tacit.compare(nn.Sequential(Square(), Times(1e5)), torch.linspace(1e-3, 2e-3, 10))
    assert not found.passed
    assert found.advised_scale is not None
    assert found.advised_scale > 16
    assert found.advised_error is not None
    assert found.advised_error < found.layers[-1].normalised / 100
    assert f"fraction_bits({found.advised_scale})" in str(found)


class Quotients(nn.Module):
    """Computes log 0 and 0/0 if x begins with zeros, and doubles the other numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.log(x[:1]), x[1:2] / x[1:2], x[2:] * 2])


class Wrong(nn.Module):
    """Gives another, finite result on secret tensors."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        off = 1.0 if isinstance(x, tacit.SecretTensor) else 0.0
        return torch.cat([x[:1] - torch.tensor([math.inf]), x[1:] + off])


class Masked(nn.Module):
    """Has infinities inside, by a mask and by saturation, and none at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.mask, self.large = nn.Identity(), nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.mask(x.masked_fill(torch.arange(len(x)) == 1, -math.inf)).softmax(0)
        return self.large(torch.exp(x + 100.0)).clamp(max=1.0) + seen


def test_what_is_infinite_or_no_number_on_plain_tensors_is_found_by_compare() -> None:
    found = tacit.compare(
        nn.Sequential(Quotients(), nn.Identity()), torch.tensor([0.0, 0.0, 1.5, 3.0])
    )
    assert not found.passed
    assert found.first_divergence is not None
    assert found.first_divergence.name == "0"
    assert [layer.missed for layer in found.layers] == [2, 2, 2]
    # The other numbers are still compared, and they match.
    assert (found.layers[0].low, found.layers[0].high) == (-math.inf, 6.0)
    assert found.layers[0].error < 1e-3
    assert "NOT FINITE: 0 has 2 numbers" in str(found)
    assert found.as_json()["layers"][0]["low"] is None


def test_an_infinity_hides_no_error_from_compare() -> None:
    found = tacit.compare(Wrong(), torch.tensor([1.0, 2.0, 3.0]))
    assert not found.passed
    assert found.layers[-1].missed == 0
    assert found.layers[-1].error == pytest.approx(1.0, abs=1e-3)
    assert found.layers[-1].normalised == pytest.approx(2 / 13, abs=1e-3)


@pytest.mark.parametrize("scale", [12, 16])
def test_infinities_that_secret_tensors_have_match(scale: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.RangeWarning)
        found = tacit.compare(Masked(), torch.tensor([1.0, 2.0, 3.0]), scale=scale)
    assert [layer.missed for layer in found.layers] == [0, 0, 0]
    assert [layer.low for layer in found.layers][:2] == [-math.inf, math.inf]
    assert not found.layers[-1].diverges


# cost
# ----------------------------------------------------------------------------


def classify() -> dict[str, Any]:
    party = tacit.session().party
    model = tacit.share_module(network(), owner=0)
    images = tacit.share(torch.rand(2, 1, 8, 8) if party == 1 else None, owner=1)
    for _ in range(2):
        (model(images) * torch.ones(5)).argmax(1).reveal(to=1)
    meter = tacit.session().meter
    total = meter.total
    return {
        "bytes_sent": total.bytes_sent,
        "payload_bytes": total.payload_bytes,
        "rounds": total.rounds,
        "labels": {label: reading.bytes_sent for label, reading in meter.items()},
    }


@pytest.mark.parametrize(
    ("protocol", "parties", "source", "transport"),
    [
        ("replicated", 3, None, "tcp"),
        ("additive", 2, "ot", "memory"),
        ("additive", 3, "dealer", "memory"),
    ],
)
def test_cost_is_what_the_meter_counts(
    protocol: str, parties: int, source: str | None, transport: str
) -> None:
    real = tacit.launch(
        classify, protocol=protocol, parties=parties, source=source, transport=transport
    )
    predicted = tacit.cost(classify, network="20,100", protocol=protocol, parties=parties)
    assert predicted.bytes_sent == [each["bytes_sent"] for each in real]
    assert predicted.payload_bytes == [each["payload_bytes"] for each in real]
    assert predicted.rounds == max(each["rounds"] for each in real) > 50
    sent = max(predicted.bytes_sent)
    labels = real[predicted.bytes_sent.index(sent)]["labels"]
    for label, line in predicted.layers.items():
        assert line.bytes_sent == labels.get(label, 0)
    assert sum(line.bytes_sent for line in predicted.layers.values()) == sent
    assert sum(line.rounds for line in predicted.layers.values()) == predicted.rounds
    assert predicted.network_seconds == pytest.approx(predicted.rounds * 0.01 + sent / 12.5e6)
    assert predicted.seconds > predicted.network_seconds
    assert predicted.correlation_bytes == 0


class Around(nn.Module):
    """Gives the same layers a longer path."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.within = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.within(x)


def sent_by_hand(model: nn.Module, x: torch.Tensor, within: bool = False) -> tacit.Reading:
    """Runs the program for which cost takes a module; with ``within``, as part of another
    module."""
    tacit.share_module(model, owner=0)
    model = Around(model) if within else model
    images = tacit.share(x if tacit.session().party == 1 else None, owner=1)
    with torch.no_grad():
        model(images).reveal(to=1)
    return tacit.session().meter.total


@pytest.mark.parametrize(
    ("protocol", "parties", "source", "transport"),
    [
        ("replicated", 3, None, "tcp"),
        ("additive", 2, "dealer", "tcp"),
        ("additive", 3, "dealer", "memory"),
    ],
)
def test_cost_of_a_module_is_what_the_meter_counts(
    protocol: str, parties: int, source: str | None, transport: str
) -> None:
    """Predictions are exact to the byte, headers included. Frames contain the names of steps, so
    a longer path only makes the names longer."""
    setting = {"protocol": protocol, "parties": parties, "source": source}
    x = torch.rand(2, 1, 8, 8)
    predicted = tacit.cost(network(), x, **setting)
    real = tacit.launch(sent_by_hand, network(), x, transport=transport, **setting)
    assert predicted.bytes_sent == [each.bytes_sent for each in real]
    assert predicted.payload_bytes == [each.payload_bytes for each in real]
    assert predicted.rounds == max(each.rounds for each in real) > 25
    names = list(predicted.layers)
    assert names[1] == "(sharing the model)"
    assert names[-1] == "(revealing)"
    assert sum(line.bytes_sent for line in predicted.layers.values()) == max(predicted.bytes_sent)
    assert sum(line.rounds for line in predicted.layers.values()) == predicted.rounds
    assert all(line.bytes_sent >= 0 and line.rounds >= 0 for line in predicted.layers.values())
    elsewhere = tacit.launch(sent_by_hand, network(), x, True, transport=transport, **setting)
    assert predicted.payload_bytes == [each.payload_bytes for each in elsewhere]
    assert predicted.rounds == max(each.rounds for each in elsewhere)
    # Every frame of a layer has the prefix "within.".
    for party, each in enumerate(elsewhere):
        more = each.bytes_sent - predicted.bytes_sent[party]
        assert 0 < more <= each.frames * len("within.")
        assert more % len("within.") == 0


def test_cost_of_correlations_is_counted_where_they_are_made() -> None:
    found = tacit.cost(network(), torch.rand(1, 1, 8, 8), protocol="additive", source="dealer")
    assert found.correlation_bytes > 0
    assert "correlations:" in str(found)
    with pytest.raises(tacit.MisuseError, match="'far' is no network"):
        tacit.cost(network(), torch.rand(1, 1, 8, 8), network="far")


# Parametrised weights
# ------------------------------------------------------------------------------------


def parametrised() -> nn.Module:
    """Makes a module with weights that are computed from others, and an LSTM, which has a state
    to copy."""
    torch.manual_seed(5)

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.utils.parametrizations.weight_norm(nn.Linear(4, 6))
            self.recurrent = nn.utils.parametrizations.weight_norm(nn.LSTM(6, 3), "weight_hh_l0")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.recurrent(self.first(x))[0]

    return Tagger()


def test_parametrised_modules_are_rehearsed() -> None:
    model, example = parametrised(), torch.rand(2, 1, 4)
    assert tacit.check(model, example).passed
    assert tacit.compare(model, example).passed
    assert tacit.cost(model, example).rounds > 0


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_parametrised_modules_reach_every_party(transport: str) -> None:
    model, x = parametrised(), torch.rand(2, 1, 4)

    def program() -> tuple[torch.Tensor, torch.Tensor, nn.Module]:
        plain = model(x).detach()
        secret = tacit.share_module(model, owner=0)
        return plain, secret(tacit.share(x, owner=1)).reveal(), parametrised()

    for plain, found, returned in tacit.launch(program, transport=transport):
        assert torch.equal(plain, model(x))
        assert torch.allclose(found, plain, atol=2e-3)
        assert torch.equal(returned(x), model(x))
        assert list(returned.state_dict()) == list(model.state_dict())


# Commands
# ----------------------------------------------------------------------------

MODEL = """
import torch
from torch import nn

import tacit

class Square(nn.Module):
    def forward(self, x):
        return x * x

def build():
    return nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.rand(4, 3)

def large():
    return Square(), torch.full((3,), 1e6)

def lacking():
    x = tacit.share(torch.ones(3), owner=0)
    return torch.special.airy_ai(x).reveal()

def nothing():
    return 3
"""


def test_commands(tmp_path: Path) -> None:
    model, found = tmp_path / "model.py", tmp_path / "found.json"
    model.write_text(MODEL)

    def run(name: str, function: str, *options: object) -> tuple[int, str, str, Any]:
        found.unlink(missing_ok=True)
        done = command(name, f"{model}:{function}", "--json", found, *options)
        written = json.loads(found.read_text()) if found.exists() else None
        return done.returncode, done.stdout, done.stderr, written

    code, said, _, written = run("check", "build")
    assert (code, written["passed"], written["gaps"]) == (0, True, [])
    assert "operators that it uses are there" in said
    code, said, _, written = run("check", "lacking")
    assert (code, written["gaps"][0]["what"]) == (1, "aten.special_airy_ai.default")
    assert written["gaps"][0]["line"].endswith("model.py:19")
    assert "in no module" in said

    code, said, _, written = run("compare", "build")
    assert (code, [layer["name"] for layer in written["layers"]]) == (0, ["0", "1", "Sequential"])
    assert "All layers match." in said
    code, said, _, written = run("compare", "large")
    assert (code, written["first_divergence"]) == (1, "Square")
    assert "OVERFLOW: aten.mul.Tensor in module 'Square'" in said
    assert "RangeWarning" not in said

    code, said, _, written = run("cost", "build", "--network", "wan")
    assert code == 0
    assert written["rounds"] > 0
    assert "40 ms round trip, 100 Mbit/s" in said
    for name, function, message in (
        ("check", "nothing", "returns int: return a pair"),
        ("compare", "lacking", "compare takes a module"),
        ("cost", "missing", "has no function 'missing'"),
    ):
        code, _, errors, written = run(name, function)
        assert (code, written) == (1, None)
        assert message in errors
