"""Integers wrap around at the ends of their dtypes as in PyTorch.

The tests check each result, its conversion to int64, and a comparison of it.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit

AT_ONE = torch.tensor([0, 0, 1, 1, 1, 1, 1, 1])

CALLS: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x,
    "abs": torch.abs,
    "sign": torch.sign,
    "min": lambda x: x.min(),
    "min along": lambda x: x.min(0).values,
    "argmin": lambda x: x.argmin(),
    "amin": lambda x: (x + x).amin(0),
    "aminmax": lambda x: torch.stack(list(torch.aminmax(x + x))),
    "minimum": lambda x: torch.minimum(x, x.flip(0)),
    "minimum of public": lambda x: torch.minimum(x, torch.ones((), dtype=x.dtype)),
    "maximum": lambda x: torch.maximum(x + x, x.flip(0)),
    "prod": lambda x: x[4:].prod(dtype=x.dtype),
    "cumprod": lambda x: x.cumprod(0, dtype=x.dtype),
    "cumsum": lambda x: x.cumsum(0, dtype=x.dtype),
    "trace": lambda x: (x + x)[:4].reshape(2, 2).trace(),
    "square": lambda x: x**2,
    "power by a fraction": lambda x: (x + x) ** 2.0,
    "ceil": lambda x: (x + x).ceil(),
    "any": lambda x: (x + x).any(),
    "all": lambda x: (x + x).all(0),
    "added at indices": lambda x: x.scatter_reduce(0, AT_ONE, x, "sum"),
    "multiplied at indices": lambda x: x.scatter_reduce(0, AT_ONE, x, "prod"),
    "greatest at indices": lambda x: (x + x).scatter_reduce(0, AT_ONE, x + x, "amax"),
    "least at indices": lambda x: (x + x).scatter_reduce(0, AT_ONE, x + x, "amin"),
    "a number beyond": lambda x: (x + x) == -2,
    "less than a number beyond": lambda x: x < 300,
    "by a number beyond": lambda x: torch.div(x, -9, rounding_mode="floor"),
    "rest by a number beyond": lambda x: x % -9,
    "sort": lambda x: (x + x).sort().values,
    "cummin": lambda x: (x + x).cummin(0).values,
    "clamp": lambda x: functional.relu(x + x).clamp(1, 5),
    "between fractions": lambda x: functional.hardtanh(x, 0.5, 5.5),
    "where": lambda x: torch.where(x > 0, x + x, x),
    "logsumexp": lambda x: (x + x).logsumexp(0),
    "matrix product": lambda x: x.reshape(2, 4) @ x.reshape(4, 2),
    "filled": lambda x: torch.fill(x, (x + x)[7]),
}


def shown(value: Any) -> list[torch.Tensor]:
    """Returns a value, its conversion to int64, and whether it is positive."""
    wide = value if value.dtype.is_floating_point else value.to(torch.int64)
    return [
        each.reveal() if isinstance(each, tacit.SecretTensor) else each
        for each in (value, wide, value > 0)
    ]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_small_integers_wrap_around(everywhere: Callable[..., Any], dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    lowest, highest = limits.min, limits.max
    x = torch.tensor([lowest, lowest + 1, 1, 0, 2, 5, highest - 1, highest]).to(dtype)

    def program() -> list[list[torch.Tensor]]:
        return [shown(call(tacit.share(x, owner=0))) for call in CALLS.values()]

    for (name, call), found in zip(CALLS.items(), everywhere(program), strict=True):
        for mine, plain in zip(found, shown(call(x)), strict=True):
            assert mine.dtype == plain.dtype, name
            tolerance = 1e-3 if plain.dtype.is_floating_point else 0
            assert torch.allclose(mine, plain, rtol=0, atol=tolerance), (name, mine, plain)


TRUTHS = torch.tensor([[True, False, False, True], [False, False, False, True]])

OF_BOOLEANS: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: x.max(),
    "max along": lambda x: x.max(0).values,
    "first of the greatest": lambda x: x.max(1).indices,
    "first of the least": lambda x: x.min(1).indices,
    "amax": lambda x: x.amax((0, 1)),
    "amin": lambda x: x.amin(1, keepdim=True),
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "minimum": lambda x: torch.minimum(x, x.flip(1)),
    "minimum of public": lambda x: torch.minimum(x, TRUTHS[:1]),
    "sign": torch.sign,
    "or": lambda x: (x + x.flip(0)) & x[:1],
    "or public": lambda x: (x + TRUTHS[:1]) ^ x,
    "or nothing": lambda x: torch.add(x, x.flip(0), alpha=False),
    "and public": lambda x: (x * TRUTHS[:1]) | x[1:],
    "and a number": lambda x: (x * True) ^ x.flip(0),
    "outer": lambda x: torch.outer(x[0], TRUTHS[1]),
    "added at indices": lambda x: x[0].scatter_reduce(0, AT_ONE[:4], x[1], "sum"),
    "multiplied at indices": lambda x: x[0].scatter_reduce(0, AT_ONE[:4], x[1], "prod"),
    "least at indices": lambda x: x[0].scatter_reduce(
        0, AT_ONE[:4], x[1], "amin", include_self=False
    ),
}


def test_booleans(everywhere: Callable[..., Any]) -> None:
    def program() -> list[torch.Tensor]:
        return [call(tacit.share(TRUTHS, owner=0)).reveal() for call in OF_BOOLEANS.values()]

    for (name, call), mine in zip(OF_BOOLEANS.items(), everywhere(program), strict=True):
        assert torch.equal(mine, call(TRUTHS)), (name, mine)
        assert mine.dtype == call(TRUTHS).dtype, name
