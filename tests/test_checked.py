"""Checked mode: every overflow is detected, only the receivers of a result learn of it, and all
other results stay the same."""

import re
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit import _core, checks
from tacit.compilation.try_model import tried as compared
from tacit.errors import RangeError, RangeWarning
from tacit.storage_cache import Storages
from tacit.tensor import SecretTensor

sys.path.insert(0, str(Path(__file__).parent / "operators"))

import overflows

FAMILIES = [
    {"protocol": "replicated", "parties": 3},
    {"protocol": "replicated-malicious", "parties": 3},
    {"protocol": "additive", "parties": 2, "source": "dealer"},
    {"protocol": "additive", "parties": 3, "source": "dealer"},
]

#: A RISC-V program with functions over arrays.
ARRAYS = Path(__file__).parents[1] / "crates" / "riscv" / "programs" / "arrays.elf"

#: Two numbers that can be shared, but whose product overflows.
LARGE = torch.tensor([3.0, 1e6])


def shared(*tensors: torch.Tensor) -> list[SecretTensor]:
    return [tacit.share(each, owner=at % 2) for at, each in enumerate(tensors)]


def opened(secret: torch.Tensor, to: int | None = None) -> Any:
    """Reveals a value, or returns the operators that its error names."""
    try:
        value = secret.reveal(to=to)  # type: ignore[attr-defined]
    except RangeError as error:
        return error.operators
    return None if value is None else value.tolist()


def in_checks(fn: Callable[..., Any], *args: Any, **setting: Any) -> Any:
    """Runs a program in checked mode; returns the result that all parties agree on."""
    told = tacit.launch(fn, *args, checked=True, **setting)
    assert all(each == told[0] for each in told)
    return told[0]


# Refused results
# -------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [*FAMILIES, {"protocol": "plain", "parties": 2}])
def test_what_is_shown_of_numbers_of_all_magnitudes_is_right(setting: dict[str, Any]) -> None:
    """`operators/overflows.py` can try more cases."""
    told, missed = overflows.tried(128, 7, setting)
    assert not missed
    counts = [
        sum(n for (_, each), n in told.items() if each == how) for how in ("right", "refused")
    ]
    assert min(counts) > 30, counts


@pytest.mark.parametrize("without", ["hold", "claim_product"])
def test_without_its_claims_overflows_are_missed(
    without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verifies that the test above detects missing claims."""
    monkeypatch.setattr(checks, without, lambda *_, **__: None)
    assert overflows.tried(128, 7, {"protocol": "replicated"})[1]


@pytest.mark.parametrize("of", ["inherit", "added", "summed", "multiplied", "known"])
def test_limits_that_are_too_low_are_noticed(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way in which a tensor gets its limit is lowered by 2^40 in turn."""
    lowered = getattr(checks, of)

    def lower(session: Any, out: Any, *args: Any) -> None:
        lowered(session, out, *args)
        claims = session.claims
        if claims.limit(out) < checks.UNKNOWN:
            claims.limited(out, max(1, claims.limit(out) >> 40))

    monkeypatch.setattr(checks, of, lower)
    assert overflows.tried(128, 7, {"protocol": "replicated"})[1]


@pytest.mark.parametrize("setting", FAMILIES)
def test_no_value_below_2_to_20_times_one_below_2_to_8_is_refused(setting: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(1)

    def below(power: int) -> torch.Tensor:
        edge = 2.0**power - 2.0**-16
        powers = torch.rand(14, generator=generator, dtype=torch.float64) * (power + 16) - 16
        signs = torch.tensor([1.0, -1.0] * 8, dtype=torch.float64)
        values = torch.cat([torch.tensor([edge, edge], dtype=torch.float64), 2.0**powers]) * signs
        return (values * 2.0**16).round() / 2.0**16

    x, y = below(20), below(8)

    def program() -> None:
        one, other = shared(x, y)
        found = [
            one * other,
            one * y,
            x * other,
            torch.outer(one, other),
            one.reshape(1, -1) * other,
        ]
        found += [
            torch.addcmul(one, one, other),
            nn.functional.conv1d(one[None], other[None, None, :1]),
        ]
        for each in found:
            each.reveal()  # type: ignore[attr-defined]
        assert torch.allclose(found[0].reveal(), x * y, rtol=0, atol=2.0**-16)  # type: ignore[attr-defined]

    tacit.launch(program, checked=True, **setting)


def test_the_error_names_operator_module_and_line() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    net = Net()
    with torch.no_grad():
        net.layers[0].weight.fill_(1.0)
        net.layers[2].weight.fill_(1e6)

    def program() -> Any:
        tacit.share_module(net, owner=0)
        (secret,) = shared(LARGE)
        with pytest.raises(
            RangeError, match=r"in module 'layers\.2', .*test_checked\.py:\d+"
        ) as error:
            net(secret).reveal()
        assert "layers.0" not in str(error.value)
        return error.value.operators

    (operator,) = in_checks(program)
    assert operator.startswith("aten.mm.default in module 'layers.2'")


# Receivers of errors
# ------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", FAMILIES)
def test_what_overflowed_stops_what_depends_on_it_and_nothing_else(setting: dict[str, Any]) -> None:
    def program() -> list[Any]:
        x, y = shared(LARGE, LARGE)
        bad, good = x * y, x + y
        later = torch.relu(bad * 0)
        y[1] = 1.0
        return [opened(each) for each in (good, bad, good * 2, later, x * y)]

    good, bad, twice, later, again = in_checks(program, **setting)
    assert (good, twice, again) == ([6.0, 2e6], [12.0, 4e6], [9.0, 1e6])
    assert bad[0].startswith("aten.mul.Tensor in no module")
    assert set(bad) <= set(later)


@pytest.mark.parametrize("setting", FAMILIES)
def test_the_receiver_alone_is_told(setting: dict[str, Any]) -> None:
    def program() -> list[Any]:
        x, y = shared(LARGE, LARGE)
        return [opened(x * y, to=1), opened(x + y, to=0), opened(x + y)]

    told = tacit.launch(program, checked=True, **setting)
    assert [each[0] for each in told if each[0] is not None] == [told[1][0]]
    assert told[1][0][0].startswith("aten.mul.Tensor")
    assert told[0][1] == [6.0, 2e6]
    assert all(each[2] == [6.0, 2e6] for each in told)


@pytest.mark.parametrize("setting", FAMILIES)
def test_the_receiver_of_a_call_alone_is_told_the_operator(setting: dict[str, Any]) -> None:
    numbers = torch.tensor([3 * 10**9, 4, 5])

    def greatest(given: SecretTensor) -> Any:
        program = tacit.riscv.load(ARRAYS)
        try:
            return program.call("greatest", ["x", "len:x"], secret={"x": given}, result=1).result
        except RangeError as error:
            return error.operators

    def told() -> list[Any]:
        x, y = shared(numbers, numbers)
        squares = x * y
        return [greatest(squares * y), greatest(x + y), opened(y - 1)]

    for party, (bad, good, later) in enumerate(tacit.launch(told, checked=True, **setting)):
        if party == 1:
            assert re.match(r"aten\.mul\.Tensor in no module, .*test_checked\.py:\d+", bad[0])
        assert (bad is None, good) == ((False, 6 * 10**9) if party == 1 else (True, None))
        assert later == [3 * 10**9 - 1, 3, 4]


def _written_to(x: SecretTensor, y: SecretTensor) -> SecretTensor:
    result = x * y
    x.zero_()
    y[:] = 1.0
    return result


def _written_to_by_itself(x: SecretTensor, y: SecretTensor) -> SecretTensor:
    x.mul_(y)
    x.mul_(0)
    return x


def _of_views(x: SecretTensor, y: SecretTensor) -> SecretTensor:
    whole = torch.stack([x, y])
    result = whole[0] * whole[1]
    whole.fill_(0)
    return result[1:]


def _optimised(x: SecretTensor, y: SecretTensor) -> SecretTensor:
    weight = x.detach().requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.5)
    (weight * y * y).sum().backward()
    optimizer.step()
    return weight.detach()


@pytest.mark.parametrize("way", [_written_to, _written_to_by_itself, _of_views, _optimised])
def test_what_is_written_later_hides_no_overflow(way: Callable[..., SecretTensor]) -> None:
    def program(values: torch.Tensor) -> Any:
        return opened(way(*shared(values, values)))

    assert isinstance(in_checks(program, LARGE), tuple)
    assert isinstance(in_checks(program, torch.tensor([3.0, 4.0])), list)


def test_an_overflow_is_in_what_is_saved(tmp_path: Path) -> None:
    def module() -> nn.Linear:
        return nn.Linear(2, 1, bias=False)

    def save() -> None:
        own = tacit.share_module(module(), owner=0, trainable=True)
        with torch.no_grad():
            own.weight.copy_(torch.stack(shared(LARGE, LARGE)).prod(0, keepdim=True))
        tacit.save_checkpoint(tmp_path / f"{tacit.session().party}", own, step=1)

    def load() -> Any:
        own = tacit.share_module(module(), owner=0, trainable=True)
        tacit.load_checkpoint(tmp_path / f"{tacit.session().party}", own)
        return opened(own.weight)

    tacit.launch(save, checked=True)
    assert all(each[0].startswith("aten.") for each in tacit.launch(load))


# Checks that end without a result
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", FAMILIES)
def test_where_checks_end_without_an_answer_nothing_is_opened_that_depends_on_them(
    tmp_path: Path, setting: dict[str, Any]
) -> None:
    def program() -> list[Any]:
        x, y = shared(LARGE, torch.ones(2))
        product, unrelated = x * y, tacit.share(torch.ones(1), owner=0)
        module = nn.Module()
        module.weight = nn.Parameter(product)
        # Only code that reaches into a secret tensor can do this.
        x._parts[0].add_(0)
        told = []
        for secret in (unrelated, product, product * 2, torch.relu(product)):
            for to in (None, 1):
                try:
                    told.append(opened(secret, to))
                except (AssertionError, tacit.MisuseError) as error:
                    told.append(f"{type(error).__name__}: {error}")
        for act in (
            lambda: tacit.save_checkpoint(tmp_path, module, step=1),
            lambda: tacit.reveal_module(module),
            lambda: tacit.riscv.load(ARRAYS).call(
                "greatest", ["x", "len:x"], secret={"x": product.long()}
            ),
        ):
            with pytest.raises(tacit.MisuseError) as error:
                act()
            told.append(f"MisuseError: {error.value}")
        return [*told, opened(y * 2), opened(unrelated)]

    for party, told in enumerate(tacit.launch(program, checked=True, **setting)):
        assert told[0] == "AssertionError: a tensor was written to unseen"
        assert told[1] == ([1.0] if party == 1 else None)
        for each in told[2:11]:
            assert re.fullmatch(
                r'MisuseError: the checks of "checked: aten\.mul\.Tensor in no module, '
                r'.*_checked\.py:\d+" '
                "ended without an answer, .*: AssertionError: a tensor was written to unseen",
                each,
            ), each
        assert told[11:] == [[2.0, 2.0], [1.0]]


def test_where_a_party_is_lost_amid_checks_all_openings_say_so(tmp_path: Path) -> None:
    def program() -> None:
        x, y = shared(LARGE, torch.ones(2))
        unrelated = tacit.share(torch.ones(1), owner=0)
        # No party may still wait for a share when the other party is lost.
        unrelated.reveal()
        product = x * y
        # The same holds for a product, which opens nothing.
        told_of = [tmp_path / f"{party}" for party in range(2)]
        if tacit.session().party == 2:
            while not all(path.exists() for path in told_of):
                time.sleep(0.01)
            raise KeyError("a program's own")
        told_of[tacit.session().party].touch()
        told = []
        for secret in (product, product, unrelated):
            with pytest.raises(tacit.TacitError) as error:
                opened(secret)
            told.append(f"{error.typename}: {error.value}")
        told_of[tacit.session().party].write_text("\n".join(told))
        raise error.value

    with pytest.raises((KeyError, tacit.PeerError)):
        tacit.launch(program, checked=True)
    said = [path.read_text().split("\n") for path in tmp_path.iterdir()]
    assert len(said) == 2
    for first, again, unrelated in said:
        assert first.startswith("PeerError: party 2 failed")
        assert again.startswith("MisuseError: the checks of ")
        assert first in again
        assert unrelated.startswith("PeerError: party 2 failed")


# Costs
# -----------------------------------------------------------------------------


def test_rounds_are_those_of_the_program_until_something_is_opened() -> None:
    def program() -> tuple[int, int]:
        x, y = shared(torch.ones(8, 8), torch.ones(8, 8))
        meter, before = tacit.session().meter, tacit.session().meter.total.rounds
        for _ in range(5):
            x = torch.relu(x @ y * 0.1) + y * y
        computed = meter.total.rounds
        x.reveal()
        return computed - before, meter.total.rounds - computed

    usual, checked = tacit.launch(program)[0], tacit.launch(program, checked=True)[0]
    assert checked[0] == usual[0]
    # Rounds for the coins, the holds and their check, the lifting, the product, the comparison with
    # zero and the AND; and for the flags.
    assert 0 < checked[1] - usual[1] < 30


def _uses_of_a_weight() -> tuple[list[Any], list[int], list[Any]]:
    """Uses a layer, writes to its weight and uses it again; returns the results and the bytes of
    each use."""
    session = tacit.session()
    layer = nn.Linear(64, 32, bias=False)
    weight = torch.arange(2048.0).reshape(32, 64) / 256
    with torch.no_grad():
        layer.weight.copy_(weight)
    layer = tacit.share_module(layer, owner=0)
    ones = torch.ones(1, 64)
    shown, sent = [], []

    def use(x: torch.Tensor) -> None:
        before = session.meter.total.bytes_sent
        found = opened(layer(tacit.share(x, owner=1)))
        sent.append(session.meter.total.bytes_sent - before)
        shown.append(found)

    with torch.no_grad():
        use(ones)
        use(2 * ones)
        use(1e8 * ones)
        layer.weight.mul_(2)
        use(ones)
        use(2 * ones)
        use(1e8 * ones)
    return shown, sent, (weight.sum(1)[None] * 2).tolist()


def _about(found: Any, expected: Any) -> bool:
    return bool(torch.allclose(torch.tensor(found), torch.tensor(expected), rtol=0, atol=0.02))


@pytest.mark.parametrize("setting", FAMILIES)
def test_a_weight_is_lifted_once_until_it_is_written_to(setting: dict[str, Any]) -> None:
    for shown, sent, doubled in tacit.launch(_uses_of_a_weight, checked=True, **setting):
        assert _about(shown[1], doubled)
        assert _about(shown[3], doubled)
        for refused in (shown[2], shown[5]):
            assert "linear" in str(refused).lower()
        # The second use sends no residues of the weight, and neither does the second use of the new
        # weight.
        assert sent[1] < sent[0], sent
        assert sent[4] < sent[3], sent


@pytest.mark.parametrize("setting", FAMILIES)
def test_an_overflow_of_one_input_stops_no_other_use_of_a_weight(setting: dict[str, Any]) -> None:
    """Later uses take the weight's residues from the first use, and depend on nothing else of
    it."""

    def program() -> Any:
        layer = tacit.share_module(nn.Linear(3, 1, bias=False), owner=0)
        with torch.no_grad():
            layer.weight.copy_(tacit.share(torch.full((1, 3), 100.0), owner=0))
            found = [
                opened(layer(tacit.share(each * torch.ones(1, 3), owner=1))) for each in (1e9, 1.0)
            ]
            # The receiver of the second result learns nothing of the first one, which another party
            # received.
            layer.weight.mul_(2)
            first, second = (
                layer(tacit.share(each * torch.ones(1, 3), owner=1)) for each in (1e9, 1.0)
            )
            opened(first, to=1)
            return found, opened(second, to=0)

    told = tacit.launch(program, checked=True, **setting)
    for (refused, right), _ in told:
        assert "linear" in str(refused).lower()
        assert _about(right, [[300.0]])
    assert _about(told[0][1], [[600.0]])


def test_residues_of_what_a_weight_was_are_not_taken_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Verifies that the test above detects stale residues: they would refuse a right result."""
    forget = Storages._forget

    def keeps(self: Storages, lasting: Any) -> None:
        residues = {key: each for key, each in self._derived.items() if key[0] is _core.Residues}
        forget(self, lasting)
        self._derived.update(residues)

    monkeypatch.setattr(Storages, "_forget", keeps)
    told = tacit.launch(_uses_of_a_weight, checked=True, protocol="replicated")
    assert all("linear" in str(shown[3]).lower() for shown, _, _ in told)


def test_where_much_waits_it_is_settled_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_WAITING", 100)

    def program() -> list[Any]:
        x, y = shared(torch.full((50,), 1e6), torch.full((50,), 2.0))
        found = x
        for _ in range(4):
            found = found * y
        assert tacit.session().claims._elements <= 250
        return [opened(found[:1]), opened((x * x + x)[:1])]

    right, wrong = in_checks(program)
    assert right == [1.6e7]
    assert wrong[0].startswith("aten.mul.Tensor")


def test_what_lies_outside_of_the_block_is_not_checked() -> None:
    def program() -> list[Any]:
        x, y = shared(LARGE, LARGE)
        before = x * y
        with tacit.checked():
            inside = x * y
        return [isinstance(opened(each), tuple) for each in (before, inside, x * y)]

    assert tacit.launch(program)[0] == [False, True, False]


# Available protocols, and messages
# -------------------------------------------------------------------------


def test_more_parties_than_two_of_additive_sharing_are_told_to_take_a_dealer() -> None:
    def program() -> list[Any]:
        x, y = shared(LARGE, LARGE)
        return [isinstance(opened(each), tuple) for each in (x * y, x * 2, torch.relu(x))]

    setting: dict[str, Any] = {"protocol": "additive", "parties": 3}
    with pytest.raises(tacit.MisuseError, match=r"checked mode among 3 .* needs a dealer") as error:
        tacit.launch(program, checked=True, **setting, source="ot")
    message = str(error.value)
    # The remedies of the message, one after another.
    for remedy, instead in {
        'source = "dealer"': {"source": "dealer"},
        'protocol = "replicated"': {"protocol": "replicated"},
        "two parties": {"parties": 2, "source": "ot"},
        "rehearse the program with tacit.check": None,
    }.items():
        assert remedy in message
        if instead is not None:
            assert in_checks(program, **{**setting, **instead}) == [True, False, False]
    with pytest.warns(tacit.RangeWarning, match="aten.mul.Tensor"):
        tacit.check(program)


def test_a_party_that_does_not_check_is_noticed() -> None:
    def program() -> None:
        x, y = shared(LARGE, LARGE)
        if tacit.session().party:
            with tacit.checked():
                (x * y).reveal()
        else:
            (x * y).reveal()

    with pytest.raises(tacit.DesyncError, match="programs differ"):
        tacit.launch(program)


def test_a_promised_width_is_held() -> None:
    def program(greatest: float) -> Any:
        with tacit.comparison_width(32):
            (x,) = shared(torch.tensor([-1.0, greatest]))
            return opened(torch.relu(x))

    for greatest in (2.0**15 - 1, 1e4):
        assert in_checks(program, greatest) == [0.0, greatest]
    for greatest in (2.0**17, 1e6, 2.0**16 * 3, 1e9):
        assert in_checks(program, greatest)[0].startswith("aten.relu")


@pytest.mark.parametrize("setting", FAMILIES)
@pytest.mark.parametrize(
    ("scale", "width", "within", "beyond"),
    [
        (24, 64, 2.0**20, 9e6),
        (24, 64, 2.0**21 - 1, 1e7),
        (16, 32, 2.0**15 - 1, 2e5),
        (16, 32, 3e4, 1e6),
    ],
)
def test_a_sign_that_starts_beside_a_truncation_is_held(
    scale: int, width: int, within: float, beyond: float, setting: dict[str, Any]
) -> None:
    """A compiled layer with its ReLU does this. The truncation alone may be right by chance."""

    def program() -> Any:
        def rectified(value: float) -> Any:
            (x,) = shared(torch.tensor([[value]]))
            return opened(torch.ops.tacit.rectified_affine([x], [weight], None, [], []))

        with tacit.comparison_width(width):
            weight = tacit.share(torch.ones(1, 1), owner=1, scale=scale)
            return [rectified(each) for each in (within, -within, *10 * [beyond, -beyond])]

    positive, negative, *refused = in_checks(program, **setting)
    assert positive == [[pytest.approx(within, abs=2**-15)]]
    assert negative == [[0.0]]
    assert all(each[0].startswith("tacit.rectified_affine") for each in refused), refused


def test_a_rehearsal_names_what_a_promised_width_does_not_hold() -> None:
    def program(value: float) -> None:
        with tacit.comparison_width(32):
            weight = tacit.share(torch.ones(1, 1), owner=1)
            (x,) = shared(torch.tensor([[value]]))
            torch.ops.tacit.rectified_affine([x], [weight], None, [], [])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tacit.launch(program, 3e4, protocol="plain", parties=2)
    for _ in range(2):
        with pytest.warns(RangeWarning, match="comparison of 2.33"):
            tacit.launch(program, 2e5, protocol="plain", parties=2)


#: Functions that compare their argument with public numbers.
COMPARING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "arctan": torch.arctan,
    "gelu": nn.functional.gelu,
    "silu": nn.functional.silu,
    "softplus": nn.functional.softplus,
    "mish": nn.functional.mish,
    "sin": torch.sin,
    "log": torch.log,
    "quotient": lambda x: x / 4e4,
    "secret quotient": lambda x: x[:1] / x[1:],
    "argmax": lambda x: x.argmax(),
    "sort": lambda x: x.sort().values,
    "topk": lambda x: x.topk(2).values,
    "cummax": lambda x: x.cummax(0).values,
    "clamp": lambda x: x.clamp(-3, 1e4),
}


@pytest.mark.parametrize("setting", FAMILIES)
def test_functions_hold_what_a_width_promises(setting: dict[str, Any]) -> None:
    def program(values: torch.Tensor) -> dict[str, Any]:
        with tacit.comparison_width(32):
            (x,) = shared(values)
            return {name: opened(of(x)) for name, of in COMPARING.items()}

    within = torch.tensor([2.0, 7.0, 3e4, 5.0, 1.0])
    for name, found in in_checks(program, within, **setting).items():
        wanted = COMPARING[name](within)
        assert torch.allclose(torch.tensor(found).float(), wanted.float(), rtol=2e-3, atol=2e-3), (
            name
        )
    beyond = in_checks(program, torch.tensor([1e6, -1e6, 7e4, 4e4, -3.0]), **setting)
    right = {name for name, found in beyond.items() if not isinstance(found, tuple)}
    # A product by a public number makes no comparison.
    assert right == {"quotient"}


def test_what_is_sorted_is_held_to_what_sorting_compares() -> None:
    def program(times: int) -> list[Any]:
        (x,) = shared(torch.tensor([1e9, -3e8, 5e8, -1e9]).repeat(times, 1))
        x = x.sum(0)
        return [opened(x.sort().values), opened(x.topk(2).values), opened(x.median())]

    assert in_checks(program, 1) == [[-1e9, -3e8, 5e8, 1e9], [1e9, 5e8], -3e8]
    assert all(isinstance(found, tuple) for found in in_checks(program, 64))


def test_as_many_operators_as_there_are_are_settled() -> None:
    def program() -> list[Any]:
        (x,) = shared(torch.tensor([1.0]))
        for _ in range(2100):
            x = x + 1
        return [opened(x), opened(x * x * x * x)]

    right, wrong = in_checks(program)
    assert right == [2101.0]
    assert isinstance(wrong, tuple)


def test_rows_of_ten_thousand_salaries_are_normalised() -> None:
    generator = torch.Generator().manual_seed(2)
    salaries = torch.rand(2, 10_000, generator=generator) * 1e5

    def program() -> list[Any]:
        (x,) = shared(salaries)
        found = [
            nn.functional.layer_norm(x, (10_000,)),
            x.std(1),
            x.mean(1),
            x.sort(1).values[:, ::5000],
        ]
        return [opened(each) for each in found]

    for _ in range(3):
        normalised, deviation, means, least = tacit.launch(program, checked=True)[0]
        wanted = nn.functional.layer_norm(salaries, (10_000,))
        assert torch.allclose(torch.tensor(normalised), wanted, atol=2e-3)
        assert torch.allclose(torch.tensor(deviation), salaries.std(1), rtol=1e-3)
        assert torch.allclose(torch.tensor(means), salaries.mean(1), rtol=1e-3)
        assert torch.allclose(torch.tensor(least), salaries.sort(1).values[:, ::5000], atol=2e-2)


@pytest.mark.parametrize(
    "of",
    [
        lambda x: x * 1e-7,
        lambda x: x / 1e7,
        lambda x: nn.functional.conv1d(x[None, None], x[None, None, :1] * 0 + 27),
        lambda x: x << 10,
        lambda x: x << (x - x + 10),
        lambda x: x.index_add(0, torch.zeros(30, dtype=torch.long), x.repeat(10)),
    ],
)
def test_integers_near_the_end_of_a_word_do_not_wrap(
    of: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    def program(values: torch.Tensor) -> Any:
        return opened(of(*shared(values)))

    assert isinstance(in_checks(program, torch.tensor([9 * 10**18, -7 * 10**18, 10**18])), tuple)
    small = torch.tensor([9 * 10**6, -7 * 10**6, 10**6])
    assert torch.allclose(
        torch.tensor(in_checks(program, small)).double(), of(small).double(), atol=2e-5
    )


#: Powers of integers, by whether the base or the exponent is secret.
POWERS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "secret by secret": lambda x, n: tacit.share(x, owner=0) ** tacit.share(n, owner=1),
    "secret by public": lambda x, n: tacit.share(x, owner=0) ** n,
    "public by secret": lambda x, n: x ** tacit.share(n, owner=1),
}


@pytest.mark.parametrize("setting", FAMILIES)
@pytest.mark.parametrize("of", POWERS.values(), ids=POWERS)
def test_powers_of_integers_are_right_or_refused(setting: dict[str, Any], of: Any) -> None:
    inside = [
        (0, 0),
        (0, 2**40),
        (1, 2**62),
        (-1, 65),
        (-1, 2**62 + 2),
        (2, 59),
        (-3, 37),
        (7, 18),
        (2**20, 2),
    ]
    inside += [(2**59, 1), (10**9, 1), (100, 8), (-5, 0)]
    if of is not POWERS["secret by public"]:
        inside += [(1, -(2**63)), (-1, -1), (7, -2), (0, -1)]
    beyond = [
        (2, 63),
        (2, 64),
        (2, 66),
        (-3, 41),
        (7, 31),
        (2**20, 4),
        (2**31 + 1, 2),
        (-(2**40), 2),
        (10, 2**40),
    ]

    def program() -> Any:
        found = opened(of(*torch.tensor(inside).unbind(1)))
        return found, [opened(of(*torch.tensor([pair]).unbind(1))) for pair in beyond]

    found, refused = in_checks(program, **setting)
    assert found == [
        x ** (n % 2 if abs(x) == 1 else n) if n >= 0 or abs(x) == 1 else 0 for x, n in inside
    ]
    assert all(isinstance(each, tuple) for each in refused)


def test_the_least_integer_has_no_magnitude() -> None:
    def program() -> Any:
        return [opened(tacit.share(torch.tensor([x]), owner=0).abs()) for x in (-(2**63), -(2**59))]

    least, other = in_checks(program)
    assert isinstance(least, tuple)
    assert other == [2**59]


# Compiled
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("setting", FAMILIES)
@pytest.mark.parametrize("streams", [1, 2])
def test_compiled_programs_are_checked(setting: dict[str, Any], streams: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32, 8),
        nn.GELU(),
        nn.Linear(8, 3),
    ).eval()
    program, weights = tacit.compile(model, torch.randn(1, 1, 4, 4))
    images = torch.randn(2, 1, 4, 4)
    trial = compared(
        program, weights, [images], transport="memory", streams=streams, checked=True, **setting
    )
    assert trial.compiled.normalised_squared_error < 1e-5
    assert trial.eager.normalised_squared_error < 1e-5
    with torch.no_grad():
        model[3].weight.fill_(1e6)
    program, weights = tacit.compile(model, torch.randn(1, 1, 4, 4))
    with pytest.raises(RangeError, match="out of range") as error:
        compared(
            program,
            weights,
            [1e4 * images],
            transport="memory",
            streams=streams,
            checked=True,
            **setting,
        )
    assert error.value.operators
