"""The scale of a result depends on the kinds of arguments and the session's scale, not on values.

Results are right whatever the scales of the arguments are.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit
from tacit.fixed import WHOLE, Scale
from tacit.operators.dispatch import scales

#: The session's scale in these tests.
SESSION = 16

#: One scale below the session's and one above.
COARSE, FINE = 12, 24

#: The first operand is shared at several scales, the second at the session's scale.
X, Y = torch.tensor([[1.5, -2.25], [3.0, 0.5]]), torch.tensor([[0.5, 1.25], [-1.0, 2.0]])

Call = Callable[[Any, Any], Any]


def _written(change: Callable[[Any, Any], Any]) -> Call:
    """Returns a function that writes into a copy of x and returns the copy."""

    def call(x: Any, y: Any) -> Any:
        copy = x.clone()
        change(copy, y)
        return copy

    return call


KEPT = (COARSE, SESSION, FINE)
GREATEST = (SESSION, SESSION, FINE)
SESSIONS = (SESSION, SESSION, SESSION)

#: Each call, and the scales of its results when x is coarse, at the session's scale, and fine.
RULES: dict[str, tuple[Call, tuple[int, int, int]]] = {
    "negative": (lambda x, _: -x, KEPT),
    "moved": (lambda x, _: x.t()[:1], KEPT),
    "sum": (lambda x, _: x.sum(0), KEPT),
    "relu": (lambda x, _: x.relu(), KEPT),
    "plus a secret": (lambda x, y: x + y, GREATEST),
    "plus an integer": (lambda x, _: x + 3, KEPT),
    "plus a fraction": (lambda x, _: x + 3.0, GREATEST),
    "minus a public tensor": (lambda x, _: Y - x, GREATEST),
    "plus a multiple by an integer": (lambda x, y: torch.add(y, x, alpha=2), GREATEST),
    "plus a multiple by a fraction": (lambda x, y: torch.add(y, x, alpha=2.0), SESSIONS),
    "plus itself by a whole fraction": (lambda x, _: torch.add(x, x, alpha=2.0), GREATEST),
    "the reverse": (lambda x, _: torch.rsub(x, 1, alpha=3), KEPT),
    "product": (lambda x, y: x * y, SESSIONS),
    "product by a boolean": (lambda x, y: x * (y > 0), KEPT),
    "product by a secret integer": (lambda x, y: x * (y > 0).long(), KEPT),
    "product by a public boolean": (lambda x, _: x * True, KEPT),
    "product by an integer": (lambda x, _: x * 3, KEPT),
    "product by a tensor of integers": (lambda x, _: x * torch.tensor([2, 3]), KEPT),
    "product by a fraction": (lambda x, _: x * 0.3, SESSIONS),
    "product by a fraction of few bits": (lambda x, _: x * 0.5, SESSIONS),
    "product by a whole fraction": (lambda x, _: x * 3.0, SESSIONS),
    "product by a tensor of whole fractions": (lambda x, _: torch.tensor([2.0, 3.0]) * x, SESSIONS),
    "quotient": (lambda x, _: x / 3, SESSIONS),
    "quotient by one": (lambda x, _: x / 1, SESSIONS),
    "first power": (lambda x, _: x**1, SESSIONS),
    "third power": (lambda x, _: x**3, SESSIONS),
    "matrix product": (lambda x, y: x @ y, SESSIONS),
    "matrix product by public numbers": (lambda x, _: x @ Y, SESSIONS),
    "linear": (lambda x, y: functional.linear(y, x, y[0]), SESSIONS),
    "linear with that bias": (lambda x, y: functional.linear(y, y, x[0]), GREATEST),
    "no bias": (lambda x, y: torch.addmm(x, y, y, beta=0), GREATEST),
    "a public bias that is not looked at": (
        lambda x, y: torch.addmm(torch.full((2, 2), torch.nan), x, y, beta=0),
        SESSIONS,
    ),
    "multiples of a linear map": (lambda x, y: torch.addmm(x, y, y, beta=2, alpha=0.5), GREATEST),
    "addcmul": (lambda x, y: torch.addcmul(y, x, y, value=2), SESSIONS),
    "interpolation": (lambda x, y: torch.lerp(x, y, 0.25), GREATEST),
    "mean": (lambda x, _: x.mean(0), SESSIONS),
    "variance": (lambda x, _: x.var(0), SESSIONS),
    "average": (lambda x, _: functional.avg_pool1d(x, 2), SESSIONS),
    "leaky relu": (lambda x, _: functional.leaky_relu(x), SESSIONS),
    "prelu": (lambda x, y: functional.prelu(x, y[0, :1]), GREATEST),
    "hardswish": (lambda x, _: functional.hardswish(x), SESSIONS),
    "clamped by integers": (lambda x, _: x.clamp(-1, 1), KEPT),
    "clamped by fractions": (lambda x, _: x.clamp(-1.0, 1.0), GREATEST),
    "threshold": (lambda x, _: functional.threshold(x, 0.0, 0.0), GREATEST),
    "threshold of integers": (lambda x, _: functional.threshold(x, 0, 0), KEPT),
    "chosen": (lambda x, y: torch.where(y > 0, x, y), GREATEST),
    # PyTorch converts the zero to a tensor of the dtype of x.
    "chosen, else zero": (lambda x, y: torch.where(y > 0, x, 0), GREATEST),
    "filled by a fraction": (lambda x, _: x.masked_fill(Y > 0, 0.5), GREATEST),
    "joined": (lambda x, y: torch.cat([x, y]), GREATEST),
    "joined with an empty one": (lambda x, y: torch.cat([x[0, :0], y]), GREATEST),
    "padded": (lambda x, _: functional.pad(x, (1, 1), value=0.5), KEPT),
    "new": (lambda x, _: torch.empty_like(x), SESSIONS),
    "scattered": (lambda x, y: x.scatter(0, torch.zeros(1, 2, dtype=torch.int64), y), KEPT),
    "plus in place": (_written(lambda x, y: x.add_(y)), KEPT),
    "product in place": (_written(lambda x, _: x.mul_(0.3)), KEPT),
    "filled in place": (_written(lambda x, _: x.fill_(0.5)), KEPT),
    "copied": (_written(lambda x, y: x.copy_(y)), KEPT),
    "put at indices": (_written(lambda x, y: x.__setitem__(torch.tensor([0]), y[:1])), KEPT),
    "moved in place": (_written(lambda x, _: x.t_()), KEPT),
}


@pytest.mark.parametrize("what", RULES)
def test_a_scale_comes_out_as_its_rule_says(what: str) -> None:
    call, wanted = RULES[what]

    def program() -> list[Any]:
        y = tacit.share(Y, owner=0)
        results = [call(tacit.share(X, owner=0, scale=scale), y) for scale in KEPT]
        return [(result._scale.bits, result.reveal()) for result in results]

    found = tacit.launch(program, protocol="plain", parties=2)[0]
    assert tuple(bits for bits, _ in found) == wanted
    plain = call(X, Y)
    for _, values in found:
        if what != "new":
            assert torch.allclose(values, plain, atol=2.0**-9), (values, plain)


def test_the_same_call_under_another_scale_of_the_session_is_another() -> None:
    """Some of the calls have one operand, so the scales of their arguments never change."""

    def program() -> list[tuple[int, ...]]:
        x = tacit.share(X, owner=0, scale=FINE)
        counts = tacit.share(torch.tensor([1, 2]), owner=0)
        found = []
        for bits in (16, 20, 12, 16, 20):
            with tacit.fraction_bits(bits):
                results = (
                    x * x,
                    x * 0.3,
                    x / 3,
                    x.mean(),
                    x.square(),
                    x + 0.5,
                    counts + 0.5,
                    counts / 2,
                )
                found.append(tuple(result._scale.bits for result in results))
        return found

    for party in tacit.launch(program, protocol="plain", parties=2):
        assert party == [(bits,) * 5 + (FINE,) + (bits,) * 2 for bits in (16, 20, 12, 16, 20)]


def test_integers_and_booleans_are_whole() -> None:
    def program() -> list[int]:
        x = tacit.share(torch.tensor([3, -4]), owner=0)
        small = tacit.share(torch.tensor([3, 4], dtype=torch.int8), owner=0)
        fine = tacit.share(torch.tensor([0.5, 1.5]), owner=0, scale=FINE)
        whole = (
            x + 1,
            x * x,
            x * 3,
            x > 0,
            x.sum(),
            x**2,
            small * small,
            fine > x,
            x.max(0)[1],
            fine.argmax(),
        )
        assert all(result._scale == WHOLE for result in whole)
        mixed = (
            x.float(),
            x.float() * 3,
            x * 0.5,
            x * 2.0,
            x / 2,
            x.float().mean(),
            x * fine,
            x + fine,
        )
        return [result._scale.bits for result in mixed]

    # Integers converted to fractions have no fraction bits until an operator needs them.
    wanted = [0, 0, SESSION, SESSION, SESSION, SESSION, FINE, FINE]
    assert tacit.launch(program, protocol="plain", parties=2)[0] == wanted


def test_a_normalisation_has_the_sessions_scale_whatever_was_kept() -> None:
    """The factor that is cached for the statistics was computed at another scale."""
    norm = nn.BatchNorm1d(2).eval()

    def program() -> list[Any]:
        with tacit.fraction_bits(20):
            tacit.share_module(norm, owner=0)
        counts = tacit.share(torch.tensor([[1, 2], [3, 4]]), owner=1)
        inputs = [tacit.share(X, owner=1, scale=scale) for scale in KEPT] + [counts.float()]
        results = [norm(x) for x in inputs]
        assert {result._scale.bits for result in results} == {SESSION}
        return [result.reveal() for result in results]

    with torch.no_grad():
        plain = [
            nn.BatchNorm1d(2).eval()(x) for x in (X, X, X, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        ]
    for found, wanted in zip(tacit.launch(program)[0], plain, strict=True):
        assert torch.allclose(found, wanted, atol=2.0**-9)


def test_whole_fractions_cost_nothing_at_the_sessions_scale_or_beneath() -> None:
    def program() -> list[bool]:
        meter = tacit.session().meter
        free = []
        for scale in KEPT:
            x = tacit.share(X, owner=0, scale=scale)
            for factor in (3, True, torch.tensor([2, 3]), 3.0, -1.0, 0.0, torch.tensor([2.0, 3.0])):
                before = meter.total.bytes_sent
                x * factor
                free.append(meter.total.bytes_sent == before)
        return free

    assert tacit.launch(program)[0] == [True] * 7 + [True] * 7 + [True] * 3 + [False] * 4


def test_a_value_does_not_tell_in_the_scale() -> None:
    """Public factors of few bits, of no bits and of many bits give the same scale."""

    def program() -> list[set[int]]:
        x = [tacit.share(X, owner=0, scale=scale) for scale in KEPT]
        return [
            {(x * factor)._scale.bits for factor in (0.0, 1.0, 0.5, 0.375, 1 / 3, -7.0)} for x in x
        ]

    assert tacit.launch(program, protocol="plain", parties=2)[0] == [{SESSION}] * 3


def test_a_result_of_another_scale_than_foretold_is_brought_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tacit.operators.dispatch import call_cache, table

    entry = table.TABLE[torch.ops.aten.neg.default]
    other = entry._replace(scale=lambda *_: Scale(7))
    monkeypatch.setitem(table.TABLE, torch.ops.aten.neg.default, other)
    for cached in (table._operator.cache_clear, call_cache._known.clear):
        cached()

    def program() -> tuple[int, Any]:
        negative = -tacit.share(X, owner=0)
        return negative._scale.bits, negative.reveal()

    try:
        bits, found = tacit.launch(program, protocol="plain", parties=2)[0]
        assert bits == 7
        assert torch.equal(found, -X)
    finally:
        for cached in (table._operator.cache_clear, call_cache._known.clear):
            cached()


#: Numbers that can be encoded at all scales, and for which exponentials keep their digits.
NUMBERS = torch.tensor([-7.5, -3.25, -1.5, -0.25, 0.0, 0.5, 1.75, 2.5, 5.0])

#: Functions that compare, approximate or average, of a tensor at some scale and one at the
#: session's scale.
FUNCTIONS: dict[str, Call] = {
    "average of many": lambda x, _: functional.avg_pool1d(x.repeat(20).reshape(1, 1, -1), 150, 1),
    "celu": lambda x, _: functional.celu(x),
    "celu of another alpha": lambda x, _: functional.celu(x, 0.7),
    "cosh": lambda x, _: torch.cosh(x),
    "elu": lambda x, _: functional.elu(x),
    "elu of another alpha": lambda x, _: functional.elu(x, 0.7),
    "exp": lambda x, _: torch.exp(x),
    "exp2": lambda x, _: torch.exp2(x),
    "gelu": lambda x, _: functional.gelu(x),
    "kl_div": lambda x, y: functional.kl_div(x, y, reduction="none", log_target=True),
    "log_softmax": lambda x, _: torch.log_softmax(x, 0),
    "logaddexp": torch.logaddexp,
    "logaddexp, the other way": lambda x, y: torch.logaddexp(y, x),
    "logaddexp of what is masked": lambda x, _: torch.logaddexp(
        x, torch.where(torch.arange(9) < 4, NUMBERS, -torch.inf)
    ),
    "logaddexp2": torch.logaddexp2,
    "mean of many": lambda x, _: x.repeat(30).mean(),
    "mish": lambda x, _: functional.mish(x),
    "poisson": lambda x, y: functional.poisson_nll_loss(x, y, reduction="none"),
    "selu": lambda x, _: functional.selu(x),
    "sigmoid": lambda x, _: torch.sigmoid(x),
    "softmax": lambda x, _: torch.softmax(x, 0),
    "softplus": lambda x, _: functional.softplus(x, 2.0, 5.0),
    "standard deviation": lambda x, _: x.repeat(30).std(),
    "tanh": lambda x, _: torch.tanh(x),
}


def test_functions_are_as_exact_at_every_scale() -> None:
    def program() -> list[Any]:
        y = tacit.share(NUMBERS.flip(0), owner=0)
        shared = [tacit.share(NUMBERS, owner=0, scale=scale) for scale in (8, SESSION, 20, 24)]
        return [[call(x, y).reveal() for x in shared] for call in FUNCTIONS.values()]

    for name, outcomes in zip(
        FUNCTIONS, tacit.launch(program, protocol="plain", parties=2)[0], strict=True
    ):
        plain = FUNCTIONS[name](NUMBERS.double(), NUMBERS.flip(0).double())
        for found in outcomes:
            off = (found.double() - plain).abs() / (1 + plain.abs())
            assert float(off.max()) < 2.0**-9, (name, found, plain)
        for found in outcomes:
            assert torch.allclose(found, outcomes[1], rtol=2.0**-12, atol=2.0**-12), (
                name,
                found,
                outcomes[1],
            )


def test_powers_of_booleans_are_numbers() -> None:
    bits = torch.tensor([True, False] * 4)

    def program() -> list[Any]:
        x = tacit.share(bits, owner=0)
        return [(x**n * 3 + 1).reveal() for n in (1, 2, 3)]

    for found in tacit.launch(program)[0]:
        assert torch.equal(found, bits.long() * 3 + 1)


def test_rules() -> None:
    session, fine = Scale(16), Scale(24)
    assert scales.kept(session, WHOLE, fine, session) == fine
    assert scales.of_product(session, fine, WHOLE) == fine
    assert scales.of_product(session, Scale(4), Scale(4)) == Scale(8)
    assert scales.of_power(session, WHOLE, WHOLE) == WHOLE
    assert scales.of_sum_with_product(session, fine, fine, beta=session) == fine
    assert scales.of_sum_with_product(session, WHOLE, fine, fine, value=WHOLE) == session


@pytest.mark.parametrize(
    "setting", [("plain", 2, None), ("replicated", 3, None), ("additive", 2, "dealer")], ids=str
)
@pytest.mark.filterwarnings("error::tacit.RangeWarning")
def test_factors_of_more_bits_than_a_product_has_room_for(
    setting: tuple[str, int, str | None],
) -> None:
    """Every kind of product rounds such factors to fewer bits, up to the limit of their scale."""
    protocol, parties, source = setting
    generator = torch.Generator().manual_seed(3)
    # The numbers are near 64, the limit of a scale with 40 fraction bits.
    x = (torch.rand(6, 6, generator=generator, dtype=torch.float64) - 0.5) * 127
    products: dict[str, Callable[[Any, Any], Any]] = {
        "elements": lambda a, b: a * b,
        "matrices": lambda a, b: a @ b,
        "batches": lambda a, b: torch.bmm(a[None], b[None]),
        "vectors": lambda a, b: torch.dot(a[0], b[0]),
        "matrix by vector": lambda a, b: a @ b[0],
        "linear": lambda a, b: functional.linear(a, b),
        "convolution": lambda a, b: functional.conv2d(
            a[None, None], b[None, None, :2, :2], padding=1
        ),
        "transposed": lambda a, b: functional.conv_transpose2d(
            a[None, None], b[None, None, :2, :2]
        ),
    }
    scales = [(40, 40), (21, 40), (31, 30), (40, 20)]

    def program() -> list[Any]:
        found = []
        for first, second in scales:
            # Without rounding of factors, the product has room only for numbers below 2^2.
            small = 64.0 if first + second <= 60 else 1.0
            a, b = (tacit.share(x / small, owner=0, scale=bits) for bits in (first, second))
            found.append([call(a, b).reveal() for call in products.values()])
        return found

    for (first, second), found in zip(
        scales,
        tacit.launch(program, parties=parties, protocol=protocol, source=source)[0],
        strict=True,
    ):
        small = 64.0 if first + second <= 60 else 1.0
        for name, values in zip(products, found, strict=True):
            plain = products[name](x / small, x / small)
            # The bound: factors rounded to half a unit of 24 bits, and a result of 16 bits.
            off = 2.0**-25 * 2 * 6 * 64 + 2.0**-15
            assert float((values.double() - plain).abs().max()) <= off, (name, first, second)
