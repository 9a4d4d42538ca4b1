"""Masks and bounds written as large public numbers match PyTorch, and so do their gradients."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import tacit
from tacit.sessions import fraction_bits

X = torch.tensor([[1.0, -2.0, 0.25, 6.5], [3.0, -1e4, 1e4, -0.5]])
MASK = torch.tensor([[True, False, False, True], [False, True, False, False]])

#: Numbers that programs use as bounds and in masks.
LARGE = [1e9, 1.7e9, 9e15, torch.finfo(torch.float32).max, math.inf]

Function = Callable[[Any, float], Any]


def written(x: Any, b: float) -> Any:
    x = x * 1
    x[MASK] = -b
    return x.amax(-1)


FUNCTIONS: dict[str, Function] = {
    "clamp": lambda x, b: x.clamp(-b, b),
    "clamp, one bound": lambda x, b: x.clamp(min=-b) + x.clamp(max=b),
    "clamp, a side": lambda x, b: x.clamp(0.5, b),
    "clamp by tensors": lambda x, b: x.clamp(
        torch.tensor([-b, 0.5, -b, 0.0]), torch.tensor([b, b, 2.0, b])
    ),
    "hardtanh": lambda x, b: functional.hardtanh(x, -1.0, b),
    "hardtanh, below": lambda x, b: functional.hardtanh(x, -b, 2.0),
    "hardshrink": lambda x, b: functional.hardshrink(x, b) + x,
    "threshold": lambda x, b: functional.threshold(x, -b, 7.0),
    "threshold, above": lambda x, b: functional.threshold(x, b, 7.0) + x,
    "maximum": lambda x, b: torch.maximum(x, torch.tensor([-b, 0.5, -b, -b])),
    "minimum": lambda x, b: torch.minimum(x, torch.full((2, 4), b)),
    "fmax": lambda x, b: torch.fmax(torch.tensor(-b), x),
    "masked, softmax": lambda x, b: x.clamp(-5, 5).masked_fill(MASK, -b).softmax(-1),
    "masked, greatest": lambda x, b: x.masked_fill(MASK, -b).max(-1).values,
    "masked, least": lambda x, b: x.masked_fill(MASK, b).amin(-1),
    "chosen, softmax": lambda x, b: torch.where(
        MASK, -b * torch.ones(2, 4), x.clamp(-5, 5)
    ).softmax(-1),
    "chosen in secret": lambda x, b: torch.where(x > 0, x, -b).amax(-1),
    "index_fill": lambda x, b: x.index_fill(1, torch.tensor([0, 2]), -b).amax(-1),
    "scatter": lambda x, b: x.clamp(-5, 5).scatter(1, torch.tensor([[0], [2]]), -b).softmax(-1),
    "scatter_reduce": lambda x, b: (
        torch.full((2, 4), -b)
        .scatter_reduce(1, torch.tensor([[0, 1, 1, 0], [2, 2, 3, 1]]), x, "amax")
        .amax(-1)
    ),
    "written": written,
    "padded": lambda x, b: functional.pad(x, (1, 1), value=-b).amax(-1),
    "compared": lambda x, b: x * (x > -b) * (x < b) * (x <= torch.tensor(b)) * (x != b),
}


def outcome(function: Function, bound: float, secretly: bool) -> tuple[torch.Tensor, torch.Tensor]:
    x: Any = (tacit.share(X, owner=0) if secretly else X.clone()).requires_grad_()
    result = function(x, bound)
    (result * torch.linspace(-1, 1, result.numel()).reshape(result.shape)).sum().backward()
    return result.detach().reveal() if secretly else result.detach(), shown(x.grad)


def shown(x: Any) -> torch.Tensor:
    """Returns a gradient revealed. It is already public if it depends on no secret."""
    return x.reveal() if isinstance(x, tacit.SecretTensor) else x


def check(bits: int, bounds: list[float]) -> None:
    def program() -> None:
        with fraction_bits(bits):
            for name, function in FUNCTIONS.items():
                for bound in bounds:
                    found, plain = outcome(function, bound, True), outcome(function, bound, False)
                    for mine, expected in zip(found, plain, strict=True):
                        assert torch.allclose(mine, expected, atol=2e-3), (name, bound)

    with warnings.catch_warnings():
        warnings.simplefilter("error", tacit.RangeWarning)
        tacit.launch(program, protocol="plain", parties=2)


@pytest.mark.parametrize("bits", [16, 22])
def test_large_numbers_are_infinite_forward_and_backward(bits: int) -> None:
    check(bits, LARGE)


def test_in_secret() -> None:
    def program() -> None:
        for name, function in FUNCTIONS.items():
            found, plain = outcome(function, 1.7e9, True), outcome(function, 1.7e9, False)
            for mine, expected in zip(found, plain, strict=True):
                assert torch.allclose(mine, expected, atol=2e-3), name

    tacit.launch(program)


#: Numbers that integers and fractions are compared with, alone and in a tensor with other numbers.
NUMBERS = [
    1.7e9,
    -1e9,
    1e12,
    -1e30,
    1e19,
    -1e19,
    math.inf,
    -math.inf,
    2.0,
    0.5,
    10**12,
    -(10**18),
    2**63 - 1,
]
FRACTIONS = torch.tensor([1.0, -2.0, 0.5, 1e6, 5e8])
INTEGERS = torch.tensor([0, 1_700_000_001, 2**62, -(2**63), 2**63 - 1])
COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}


def holds(name: str, x: torch.Tensor, other: torch.Tensor) -> list[bool]:
    """Returns the exact comparison of each pair, computed with Python's numbers."""
    named = {
        "lt": "__lt__",
        "le": "__le__",
        "gt": "__gt__",
        "ge": "__ge__",
        "eq": "__eq__",
        "ne": "__ne__",
    }
    pairs = zip(x.tolist(), other.tolist(), strict=True)
    found = []
    for one, another in pairs:
        both = (one, another) if isinstance(one, int) == isinstance(another, int) else None
        if (
            both is None
            and isinstance(another, float)
            and math.isfinite(another)
            and another == int(another)
        ):
            both = (one, int(another))
        one, another = both or (float(one), another)
        found.append(bool(getattr(one, named[name])(another)))
    return found


def comparisons() -> None:
    for x in (FRACTIONS.double(), INTEGERS):
        secret = tacit.share(x, owner=1)
        for number in NUMBERS:
            kind = torch.int64 if isinstance(number, int) else torch.float64
            several = torch.tensor([number, 0, number, number, 2], dtype=kind)
            for name in COMPARISONS:
                alone = getattr(torch, name)(secret, number).reveal()
                assert alone.tolist() == holds(name, x, torch.full((5,), number, dtype=kind)), (
                    name,
                    number,
                )
                beside = getattr(torch, name)(secret, several).reveal()
                assert beside.tolist() == holds(name, x, several), (name, number)
                turned = getattr(torch, name)(several, secret).reveal()
                assert turned.tolist() == holds(name, several, x), (name, number)


def test_comparisons_with_numbers_of_any_size() -> None:
    tacit.launch(comparisons, protocol="plain", parties=2)


def test_narrow_comparisons_with_large_numbers() -> None:
    """Numbers outside the comparison width count as beyond all secrets."""

    def program() -> None:
        x = tacit.share(torch.tensor([1.0, -2000.0, 2000.0]), owner=0)
        n = tacit.share(torch.tensor([1, -2000, 2000]), owner=0)
        with tacit.comparison_width(32):
            for secret in (x, n):
                for number in (1e6, 10**12):
                    assert (secret < number).reveal().all()
                    assert not (secret <= -number).reveal().any()
                    assert torch.equal(secret.clamp(-number, number).reveal(), secret.reveal())
            assert x.masked_fill(torch.tensor([False, False, True]), -1e9).amax().reveal() == 1.0

    tacit.launch(program)


def test_a_sum_with_a_large_number_is_refused_with_what_to_write() -> None:
    mask = torch.tensor([0.0, 1.0, 0.0, 0.0])

    def program(least: float) -> torch.Tensor:
        scores = tacit.share(X[0], owner=0) + torch.where(mask > 0, least, 0.0)
        return scores.softmax(-1).reveal()

    with pytest.raises(tacit.EncodingError, match="write inf where it stands for a mask"):
        tacit.launch(program, -1e10, protocol="plain", parties=2)
    expected = X[0].masked_fill(mask > 0, -math.inf).softmax(-1)
    assert torch.allclose(tacit.launch(program, -math.inf)[0], expected, atol=1e-3)


def test_a_trial_run_tells_of_secrets_beyond_an_infinite_number() -> None:
    def program() -> None:
        cents = tacit.share(torch.tensor([1e8, 2e8]), owner=0)
        cents.masked_fill(torch.tensor([True, False]), math.inf).amin()

    with pytest.warns(tacit.RangeWarning, match="beside an infinite one"):
        tacit.launch(program, protocol="plain", parties=2)
