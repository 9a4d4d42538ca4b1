"""Operators are right on extreme values, ties, empty tensors, scalars and fully masked rows."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit

LARGE = 2.0**29
ENDS = torch.tensor(
    [LARGE, -LARGE, 0.0, 2.0**-16, -(2.0**-16), 1.0, -1.0, LARGE - 1], dtype=torch.float64
)
HALVES = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, LARGE - 0.5, 0.5 - LARGE], dtype=torch.float64)
TABLE = torch.arange(12.0).reshape(3, 4) - 5
IMAGE = TABLE.reshape(1, 1, 3, 4)
NONE, ROWS, NUMBER = torch.empty(0), torch.empty(3, 0), torch.tensor(3.0)
ALIKE = torch.full((2, 4), 1000.0)
SEEN = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])

CALLS: dict[str, tuple[torch.Tensor, Callable[[Any], Any]]] = {
    "softmax": (ENDS, lambda x: x.softmax(0)),
    "log_softmax": (ENDS / 2, lambda x: x.log_softmax(0)),
    "logsumexp": (ENDS, lambda x: x.logsumexp(0)),
    "quotient": (ENDS, lambda x: x / 3),
    "remainder": (ENDS, lambda x: x % 1.5),
    "fmod": (ENDS, lambda x: torch.fmod(x, -1.5)),
    "floor of a quotient": (ENDS, lambda x: torch.div(x, 0.75, rounding_mode="floor")),
    "floor": (ENDS, torch.floor),
    "ceil": (ENDS, torch.ceil),
    "trunc": (ENDS, torch.trunc),
    "round": (HALVES, torch.round),
    "integers": (ENDS, lambda x: x.long()),
    "least": (ENDS, lambda x: x.min()),
    "sorted": (ENDS, lambda x: x.sort().values),
    "quantile": (ENDS, lambda x: x.quantile(0.5)),
    "mean": (ENDS, lambda x: x.mean()),
    "greatest of magnitudes": (ENDS, lambda x: x.norm(math.inf)),
    "norm": (ENDS[:2] / 2**15, lambda x: x.norm()),
    "variance": (ENDS[:3] / 2**15, lambda x: x.var()),
    "deviation": (ENDS[:3] / 2**15, lambda x: x.std()),
    "mish": (ENDS, functional.mish),
    "softplus": (ENDS, functional.softplus),
    "cross entropy": (ENDS[None] / 2, lambda x: functional.cross_entropy(x, torch.tensor([1]))),
    "quotients of none": (ROWS, lambda x: x // torch.ones(3, 0) + x % x + x // 2.0),
    "norm of none": (NONE, lambda x: x.norm()),
    "norms of none": (ROWS, lambda x: x.norm(dim=1)),
    "no norms": (ROWS, lambda x: x.norm(dim=0)),
    "product of none": (NONE, lambda x: x.prod()),
    "maxima so far of none": (NONE, lambda x: x.cummax(0).values),
    "loss of none": (NONE, lambda x: functional.mse_loss(x, x, reduction="sum")),
    "softmax of a number": (NUMBER, lambda x: x.softmax(0)),
    "median of a number": (NUMBER, lambda x: x.median()),
    "filled": (NUMBER, lambda x: torch.fill(TABLE, x)),
    "of equal numbers": (ALIKE, lambda x: functional.layer_norm(x, (4,))),
    "deviation of equal numbers": (ALIKE, lambda x: x.std(1)),
    "direction of zero": (ALIKE * 0, functional.normalize),
    "secret bounds": (TABLE, lambda x: torch.clamp(TABLE, min=x - 1, max=x)),
    "a secret bound": (TABLE, lambda x: torch.clamp(TABLE, max=x - 1)),
    "maxima with padding": (IMAGE, lambda x: functional.max_pool2d(x, 2, 1, 1, 2)),
    "maxima at the end": (IMAGE, lambda x: functional.max_pool2d(x, 2, 2, 1, ceil_mode=True)),
    "means with padding": (
        IMAGE,
        lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    ),
    "rows that see nothing": (
        TABLE[None],
        lambda x: functional.scaled_dot_product_attention(x, x, x, SEEN),
    ),
    "no keys": (
        TABLE[None],
        lambda x: functional.scaled_dot_product_attention(x, x[:, :0], x[:, :0]),
    ),
    "no queries": (TABLE[None], lambda x: functional.scaled_dot_product_attention(x[:, :0], x, x)),
    "powers": (TABLE + 0.5, lambda x: x ** torch.tensor([2.0, -1.0, 0.0, 3.0])),
    "squares": (TABLE, lambda x: x ** torch.tensor(2.0)),
    "powers of integers": (TABLE.long(), lambda x: x ** torch.tensor([[0], [2], [5]])),
    "powers of all signs by many exponents": (
        torch.linspace(-3, 3, 13, dtype=torch.float64)[:, None].clamp(min=-3) + 0.125,
        lambda x: x ** torch.arange(-1.0, 9.0, dtype=torch.float64).clamp(max=5) * 0.01,
    ),
    "a whole power beyond all that are squared": (
        torch.tensor([-1.0, 0.96875, -1.03125, 0.0]),
        lambda x: torch.stack([x**65, x**66]),
    ),
    "powers of zero": (TABLE * 0, lambda x: torch.cat([x**2.5, x**0, x ** x.abs()])),
}


SMALL = torch.randn(64, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4)) * 0.01


def test_what_varies_little_is_exact(everywhere: Callable[..., Any]) -> None:
    def normalised(x: Any) -> list[Any]:
        return [
            functional.batch_norm(x, None, None, training=True) / 10,
            functional.instance_norm(x.T[None]) / 10,
            x.std(0) * 100,
            torch.std_mean(x, correction=0)[0] * 100,
        ]

    found = everywhere(lambda: [each.reveal() for each in normalised(tacit.share(SMALL, owner=0))])
    # The error that `euclidean` states for deviations below 0.02, and a unit of the product.
    hundredfold = 100 * (2 * 2**-16 + 0.02 * 2**-13) + 2**-16
    errors = [2e-3, 2e-3, hundredfold, hundredfold]
    for mine, plain, error in zip(found, normalised(SMALL), errors, strict=True):
        assert torch.allclose(mine, plain, rtol=0, atol=error)


def test_edges(everywhere: Callable[..., Any]) -> None:
    def program() -> list[Any]:
        found = [call(tacit.share(x, owner=0, scale=16)) for x, call in CALLS.values()]
        return [each.reveal() if isinstance(each, tacit.SecretTensor) else each for each in found]

    for (name, (x, call)), mine in zip(CALLS.items(), everywhere(program), strict=True):
        plain = call(x)
        assert (mine.dtype, mine.shape) == (plain.dtype, plain.shape), name
        assert torch.allclose(mine, plain, rtol=1e-3, atol=2e-3), (name, mine, plain)


def test_what_is_written_everywhere_has_the_kind_of_its_target() -> None:
    def program() -> Any:
        fine = tacit.share(torch.tensor(0.75), owner=0, scale=20)
        with pytest.raises(
            tacit.MisuseError, match="fractions are not written into secret integers"
        ):
            torch.fill(torch.zeros(2, dtype=torch.int64), fine)
        return torch.fill(torch.zeros(2), fine).reveal()

    assert tacit.launch(program, protocol="plain", parties=2)[0].tolist() == [0.75, 0.75]


def test_what_is_refused() -> None:
    def program() -> None:
        x = tacit.share(torch.ones(1, 1, 3, 3), owner=0)
        with pytest.raises(tacit.UnsupportedOperatorError, match="averages of integers"):
            functional.avg_pool2d(x.long(), 2)
        with pytest.raises(tacit.UnsupportedOperatorError, match="a power of booleans"):
            x.bool() ** x.bool()
        with pytest.raises(tacit.UnsupportedOperatorError, match="a negative power of integers"):
            x.long() ** -1
        with pytest.raises(
            tacit.UnsupportedOperatorError, match="a window that lies in the padding"
        ):
            functional.max_pool2d(x, 2, 1, 1, 4)

    tacit.launch(program, protocol="plain", parties=2)


@pytest.mark.parametrize("protocol", ["plain", "replicated"])
def test_the_last_of_several_is_written_whatever_threads_do(protocol: str) -> None:
    # Two threads each take half of the indices. The second half begins with the index that the
    # first half ends with.
    size = 1 << 17
    index = torch.arange(size)
    index[size // 2] = size // 2 - 1
    values = torch.arange(size).unsqueeze(1).expand(size, 2).contiguous()
    wanted = values.clone()
    wanted[size // 2 - 1], wanted[size // 2] = size // 2, -7

    def program() -> list[torch.Tensor]:
        x, new = (tacit.share(each, owner=0) for each in (torch.full((size, 2), -7), values))
        inplace = x.clone()
        inplace[index - size] = new
        rows = torch.arange(size).unsqueeze(1).expand(size, 2).contiguous()
        copied = x.index_copy(0, index, new)
        turned = x.T.index_copy(-1, index, new.T).T
        return [each.reveal() for each in (x.index_put((index,), new), inplace, copied, turned)] + [
            x.scatter(0, index.unsqueeze(1).expand_as(rows), new).reveal()
        ]

    for found in tacit.launch(program, protocol=protocol):
        assert all(torch.equal(each, wanted) for each in found)


#: One element with a stride of 0. PyTorch creates the first gradient of `backward()` this way.
ONE = torch.tensor(1.5).expand(1)


def test_a_public_element_that_stands_for_many(everywhere: Callable[..., Any]) -> None:
    def gradients(x: Any, w: Any) -> list[Any]:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        ((w * x).sum() + w.tanh().sum()).backward()
        return [x.grad, w.grad, x.detach() * ONE, x.detach() + ONE.expand(1, 1)]

    values = torch.tensor([0.75]), torch.tensor([-0.5])

    def program() -> list[Any]:
        x, w = (tacit.share(value, owner=at) for at, value in enumerate(values))
        return [each.reveal() for each in gradients(x, w)]

    for mine, plain in zip(everywhere(program), gradients(*values), strict=True):
        assert torch.allclose(mine, plain, atol=1e-3)


BASES = torch.tensor(
    [-2.0, -2.0, -3.0, 2.0, -1.5, 0.0, -2.0, 0.0, 2.0, -7.0, -0.5], dtype=torch.float64
)
EXPONENTS = torch.tensor(
    [3.0, 2.0, -1.0, 3.0, 4.0, 2.0, 0.0, 0.0, -0.5, 5.0, -3.0], dtype=torch.float64
)
WHOLE = EXPONENTS.long()


def test_powers_of_all_signs_by_secret_exponents(everywhere: Callable[..., Any]) -> None:
    def powers(x: Any, y: Any, whole: Any) -> list[Any]:
        x = x.detach().requires_grad_()
        found = [x**y, x**whole, torch.pow(-3.0, y[:8]), torch.pow(BASES[:4], whole[:4])]
        found[0].sum().backward()
        return [*(each.detach() for each in found), x.grad]

    def program() -> list[Any]:
        operands = (
            tacit.share(value, owner=at % 2) for at, value in enumerate((BASES, EXPONENTS, WHOLE))
        )
        return [each.reveal() for each in powers(*operands)]

    for mine, plain in zip(everywhere(program), powers(BASES, EXPONENTS, WHOLE), strict=True):
        assert torch.allclose(mine, plain, rtol=2e-3, atol=2e-3), (mine, plain)


def test_a_fractional_power_of_a_negative_base_is_zero_and_a_trial_run_warns() -> None:
    base, exponents = torch.tensor([-2.0, 4.0]), torch.tensor([0.5, 2.5])
    many = torch.linspace(0.25, 3.25, 12)[:, None]
    calls = [
        lambda x, y: x**y,
        lambda x, _: x**many,
        lambda x, _: x**2.5,
        lambda x, _: x**0.5,
        lambda _, y: torch.pow(-2.0, y),
    ]

    def program(at: int) -> torch.Tensor:
        return calls[at](tacit.share(base, owner=0), tacit.share(exponents, owner=1)).reveal()

    for at, call in enumerate(calls):
        with pytest.warns(tacit.RangeWarning, match="a negative base of a fractional exponent"):
            found = tacit.launch(program, at, protocol="plain", parties=2)[0]
        plain = call(base, exponents)
        assert torch.allclose(found, plain.nan_to_num(0.0), rtol=2e-3, atol=5e-3), at
