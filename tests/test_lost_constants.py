"""Constants that round to nothing or to 1: a trial run names each of them, with a remedy."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit

X = torch.tensor([[-20.0, 0.5, -9.0], [-5.0, 0.0, 5.0]])


class Scaled(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.log(torch.relu(x) + 1e-8)


LOST: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a bound": (lambda x: x.clamp(1e-7, 2.0), "clamp.* 1e-07, which is 0"),
    "a bound below 1": (lambda x: x.clamp(max=1 - 1e-7), "clamp.* 1 - 1e-07, which is 1"),
    "an eps": (lambda x: x / (x.abs().sum() + 1e-8), "add.* 1e-08, which is 0"),
    "of a difference": (lambda x: 1e-8 - x, "rsub.* 1e-08, which is 0"),
    "in a module": (
        lambda x: nn.Sequential(Scaled())(x),
        "add.* in module '0'.* 1e-08, which is 0",
    ),
    "maximum": (lambda x: torch.maximum(x, torch.tensor(1e-7)), "maximum.* 1e-07, which is 0"),
    "where": (lambda x: torch.where(x > 0, x, 1e-9), "where.* 1e-09, which is 0"),
    "masked_fill": (lambda x: x.masked_fill(X > 0, 1e-9), "masked_fill.* 1e-09, which is 0"),
    "compared": (lambda x: x > 1e-9, "gt.* 1e-09, which is 0"),
    "threshold": (lambda x: functional.threshold(x, 1e-9, 0.0), "threshold.* 1e-09, which is 0"),
    "a distance": (lambda x: functional.pairwise_distance(x[:1], x[1:]), "add.* 1e-06, which is 0"),
    "a factor": (lambda x: x * 1e-9, "mul.* a factor of 1e-09, by which all of it is 0"),
    "a factor near 1": (
        lambda x: x * (1 - 1e-9),
        "mul.* a factor of 0.999999999, by which all of it stays",
    ),
    "written in place": (
        lambda x: (x * 1).mul_(1e-9),
        "mul.* a factor of 1e-09, by which all of it is 0",
    ),
    "a divisor": (lambda x: x / 1e8, "div.* a divisor of 1e\\+08, by which all of it is 0"),
}

KEPT: dict[str, Callable[[Any], Any]] = {
    "usual numbers": lambda x: torch.where(x > 0.5, x * 0.25 + 1e-3, x.clamp(-1.0, 0.99)),
    "activations": lambda x: functional.gelu(x) + functional.silu(x) + functional.softplus(x),
    "norms with an eps": lambda x: (
        functional.normalize(x) + functional.layer_norm(x, (3,), eps=1e-9)
    ),
    "a norm by hand": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-8),
    "a deviation and an eps": lambda x: (x - x.mean()) / (x.std() + 1e-8),
    "integers": lambda x: (x > 0).long() > 1e-9,
    "losses": lambda x: functional.binary_cross_entropy(torch.sigmoid(x), torch.ones(2, 3)),
    "data with small numbers": lambda x: x + torch.tensor([1e-9, 1.0, 1e-8]),
}


TRIAL = {"protocol": "plain", "parties": 2}


def found(function: Callable[[Any], Any], **setting: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tacit.launch(lambda: function(tacit.share(X, owner=0)) is None, **(setting or TRIAL))
    return [str(each.message) for each in caught if each.category is tacit.PrecisionWarning]


@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_is_named(name: str) -> None:
    function, said = LOST[name]
    with pytest.warns(tacit.PrecisionWarning, match=f"lost in rounding: aten.{said}") as caught:
        tacit.launch(lambda: function(tacit.share(X, owner=0)) is None, protocol="plain", parties=2)
    assert "test_lost_constants.py:" in str(caught[0].message)


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_not(name: str) -> None:
    assert found(KEPT[name]) == []


#: Losses that follow from the scale alone, without values. Real runs report them too.
SINGLE = (
    "a bound below 1",
    "an eps",
    "of a difference",
    "in a module",
    "maximum",
    "where",
    "masked_fill",
    "compared",
)


def test_a_real_run_names_single_numbers_once_for_each_place() -> None:
    def again(x: Any) -> None:
        for _ in range(2):
            for name in SINGLE:
                LOST[name][0](x)

    said = found(again, protocol="replicated")
    assert len(said) == len(SINGLE)
    for name, message in zip(SINGLE, said, strict=True):
        assert re.search(f"lost in rounding: aten.{LOST[name][1]}", message)
        assert "test_lost_constants.py:" in message


def test_a_real_run_names_nothing_that_is_kept() -> None:
    assert found(lambda x: [each(x) for each in KEPT.values()], protocol="replicated") == []


def test_a_probability_and_a_constant_that_is_lost_have_no_gradient_and_it_is_said() -> None:
    def program(constant: float) -> torch.Tensor:
        x = tacit.share(torch.tensor([-20.0]), owner=0).requires_grad_()
        torch.log(torch.sigmoid(x) + constant).sum().backward()
        return x.grad.reveal()

    with pytest.warns(
        tacit.PrecisionWarning, match=r"1e-08, which is 0 .* take the loss of its logits"
    ):
        assert tacit.launch(program, 1e-8)[0] == 0

    def remedied() -> torch.Tensor:
        x = tacit.share(torch.tensor([-20.0]), owner=0).requires_grad_()
        functional.logsigmoid(x).sum().backward()
        return x.grad.reveal()

    assert abs(tacit.launch(remedied)[0] - 1) < 1e-3


def test_with_the_bits_that_are_told_it_is_right() -> None:
    def program(bits: int) -> torch.Tensor:
        with tacit.fraction_bits(bits):
            return tacit.share(X[1], owner=0).clamp(1e-7, 1 - 1e-7).log().reveal()

    (said, _) = found(lambda x: x.clamp(1e-7, 1 - 1e-7))
    assert "tacit.fraction_bits(24)" in said
    with warnings.catch_warnings():
        warnings.simplefilter("error", tacit.PrecisionWarning)
        right = tacit.launch(program, 24, protocol="plain", parties=2)[0]
    # 1e-7 is 1.7 units at this scale, and rounds to 2.
    assert torch.allclose(right, X[1].clamp(1e-7, 1 - 1e-7).log(), atol=0.3)


def test_compare_tells_of_them() -> None:
    losses = tacit.compare(nn.Sequential(Scaled()), X).losses
    assert any("1e-08, which is 0" in said and "0" in said for said in losses)
