"""Public infinities work as addends, choices and bounds, as in masks."""

from typing import Any

import pytest
import torch

import tacit

X = torch.tensor([[-3.0, 0.5, 2.0], [100.0, -7.25, 0.0]])
MASK = torch.tensor([[True, False, False], [True, True, True]])
INFINITE = float("inf")

#: An additive mask, and another one that uses the least float32 instead of minus infinity.
ADDITIVE = torch.zeros(2, 3).masked_fill(MASK, -INFINITE)
LEAST = torch.zeros(2, 3).masked_fill(MASK, torch.finfo(torch.float32).min)


def program() -> list[Any]:
    x = tacit.share(X, owner=0)
    secret_mask = tacit.share(MASK, owner=1)
    exact = [
        x < INFINITE,
        x == INFINITE,
        torch.maximum(x, torch.tensor(-INFINITE)),
        x.clamp(-INFINITE, 1.0),
        x.masked_fill(MASK, -INFINITE)[0].amax(),
        (x + ADDITIVE)[0].amax(),
        (x + LEAST + ADDITIVE)[0].amax(),
        x.masked_fill(secret_mask, INFINITE)[0].amin(),
    ]
    masked = [
        x.masked_fill(MASK, -INFINITE),
        x + ADDITIVE,
        torch.where(secret_mask, -INFINITE, x),
        x + LEAST,
    ]
    return [
        tensor.reveal() if isinstance(tensor, tacit.SecretTensor) else tensor
        for tensor in exact + masked
    ]


def narrow() -> list[Any]:
    with tacit.comparison_width(32):
        return program()


@pytest.mark.parametrize("run", [program, narrow])
@pytest.mark.parametrize(
    "setting", [{}, {"parties": 2, "protocol": "additive", "source": "dealer"}]
)
def test_infinities_are_beyond_all_numbers(run: Any, setting: dict[str, Any]) -> None:
    exact = [
        X < INFINITE,
        X == INFINITE,
        X,
        X.clamp(max=1.0),
        X[0, 1:].max(),
        X[0, 1:].max(),
        X[0, 1:].max(),
        X[0, 1:].min(),
    ]
    found = tacit.launch(run, **setting)[0]
    for mine, plain in zip(found[: len(exact)], exact, strict=True):
        assert torch.equal(mine, plain)
    # Infinities become finite numbers that fit the width of comparisons.
    beyond = 2.0**12 if run is narrow else 2.0**26
    for mine in found[len(exact) :]:
        assert torch.equal(mine[~MASK], X[~MASK])
        assert ((mine[MASK] + beyond).abs() <= X.abs().max()).all()


def test_infinities_are_refused_as_data_and_as_factors() -> None:
    def shared() -> None:
        tacit.share(torch.tensor([INFINITE]), owner=0)

    def multiplied() -> None:
        tacit.share(X, owner=0) * INFINITE

    for refused in (shared, multiplied):
        with pytest.raises(tacit.EncodingError):
            tacit.launch(refused, parties=2, protocol="plain")
