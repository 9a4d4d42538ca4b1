"""Softmax, attention and normalisation of rows keep their declared errors, masks and gradients."""

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import tacit

SETTINGS = [
    {"protocol": "replicated", "parties": 3},
    {"protocol": "additive", "parties": 2, "source": "dealer"},
]

generator = torch.Generator().manual_seed(9)


def drawn(*shape: int) -> torch.Tensor:
    """Returns normally distributed numbers that fixed point represents exactly."""
    return (torch.randn(shape, generator=generator) * 2**16).round() / 2**16


#: Rows of ten classes, rows of a thousand classes, a row of equal numbers, and numbers far apart.
ROWS = {
    "ten": drawn(20, 10) * 5,
    "thousand": drawn(4, 1000) * 3,
    "equal": torch.full((1, 1000), 7.5),
    "far": torch.tensor([[-16000.0, 12.0, 16000.0, 15999.0], [0.0, -3.5, -9.0, -17.25]]),
}

#: The largest error of an element, and the largest error of a sum of softmax.
LARGEST, SUM = 2.0**-9, 2.0**-7


@pytest.mark.parametrize("setting", SETTINGS)
def test_softmax_is_as_exact_as_it_says(setting: dict[str, Any]) -> None:
    def program() -> list[Any]:
        found = []
        for x in ROWS.values():
            secret = tacit.share(x, owner=0)
            found += [secret.softmax(-1), secret.log_softmax(-1), secret.logsumexp(-1)]
        return [tensor.reveal() for tensor in found]

    found = iter(tacit.launch(program, **setting)[0])
    for x in ROWS.values():
        softmax, log_softmax, logsumexp = next(found), next(found), next(found)
        assert (softmax - x.softmax(-1)).abs().max() <= LARGEST
        assert (softmax.sum(-1) - 1).abs().max() <= SUM
        assert (log_softmax - x.log_softmax(-1)).abs().max() <= LARGEST
        assert (logsumexp - x.logsumexp(-1)).abs().max() <= LARGEST


def safe_softmax(x: Any) -> Any:
    """Calls the softmax of ``scaled_dot_product_attention``."""
    return torch.ops.aten._safe_softmax(x, -1)


def test_what_is_masked_out_has_no_share() -> None:
    x = drawn(3, 6)
    mask = torch.tensor(
        [[0, 1, 0, 0, 1, 1], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]], dtype=torch.bool
    )
    additive = torch.zeros(3, 6).masked_fill(mask, torch.finfo(torch.float32).min)

    def program() -> list[Any]:
        secret, secret_mask = tacit.share(x, owner=0), tacit.share(mask, owner=1)
        with tacit.comparison_width(32):
            narrow = secret.masked_fill(mask, -math.inf).softmax(-1)
        masked = [
            secret.masked_fill(mask, -math.inf),
            secret + additive,
            secret + additive + additive,
        ]
        masked.append(secret.masked_fill(secret_mask, -math.inf))
        safe = safe_softmax(masked[0])
        return [tensor.reveal() for tensor in (narrow, *(one.softmax(-1) for one in masked), safe)]

    *found, safe = tacit.launch(program)[0]
    plain = x.masked_fill(mask, -math.inf).softmax(-1)
    for mine in found:
        assert (mine[:2] - plain[:2]).abs().max() <= LARGEST
        assert (mine[:2][mask[:2]] == 0).all()
    # In a fully masked row, numbers replaced by −∞ are all equal, and numbers lowered by a finite
    # mask keep their differences.
    for mine, expected in zip(
        found, [1 / 6, 1 / 6, x[2].softmax(-1), x[2].softmax(-1), 1 / 6], strict=True
    ):
        assert (mine[2] - expected).abs().max() <= LARGEST
    assert (safe[2] == 0).all()
    assert (safe[:2] - plain[:2]).abs().max() <= LARGEST


MASK = torch.rand(5, 7, generator=generator) > 0.4
MASK[3] = False

#: Arguments of an attention other than query, key and value.
FORMS: dict[str, dict[str, Any]] = {
    "all": {},
    "causal": {"is_causal": True},
    "booleans": {"attn_mask": MASK},
    "shared heads": {"enable_gqa": True},
    "numbers": {"attn_mask": torch.zeros(5, 7).masked_fill(~MASK, -math.inf), "scale": 0.3},
}


def test_attention_and_its_gradients() -> None:
    tensors = drawn(2, 4, 5, 4), drawn(2, 4, 7, 4), drawn(2, 4, 7, 4)

    def attend(operands: tuple[Any, ...], form: dict[str, Any]) -> list[Any]:
        query, *others = operands
        if "enable_gqa" in form:
            others = [other[:, :2] for other in others]
        leaves = [operand.detach().requires_grad_() for operand in (query, *others)]
        result = scaled_dot_product_attention(*leaves, **form)
        result.square().sum().backward()
        return [result.detach(), *(leaf.grad for leaf in leaves)]

    def program() -> list[Any]:
        secrets = tuple(tacit.share(tensor, owner=0) for tensor in tensors)
        return [[one.reveal() for one in attend(secrets, form)] for form in FORMS.values()]

    for mine, form in zip(tacit.launch(program)[0], FORMS.values(), strict=True):
        for secret, plain in zip(mine, attend(tensors, form), strict=True):
            # PyTorch's gradient is NaN if a query sees nothing.
            plain = plain.nan_to_num(0.0)
            assert (secret - plain).norm() <= 2e-3 * plain.norm()


def test_a_public_mask_of_an_attention_costs_nothing_where_all_see_something() -> None:
    tensors = drawn(1, 2, 5, 4), drawn(1, 2, 7, 4), drawn(1, 2, 7, 4)
    seeing = MASK.clone()
    seeing[3, 0] = True
    numbers = torch.zeros(5, 7).masked_fill(~seeing, -math.inf)

    def program() -> list[tuple[int, int]]:
        secrets = [tacit.share(tensor, owner=0) for tensor in tensors]
        spent = []
        for mask in (None, seeing, numbers):
            before = tacit.session().meter.total
            scaled_dot_product_attention(*secrets, attn_mask=mask)
            cost = tacit.session().meter.total - before
            spent.append((cost.frames, cost.payload_bytes))
        return spent

    without, *masked = tacit.launch(program)[0]
    assert masked == [without, without]


@pytest.mark.parametrize("setting", SETTINGS)
def test_normalisation_of_rows(setting: dict[str, Any]) -> None:
    norm = nn.LayerNorm(96, eps=1e-12)
    nn.init.uniform_(norm.weight, 0.5, 2)
    nn.init.normal_(norm.bias)
    groups = nn.GroupNorm(3, 6)
    images = drawn(2, 6, 4, 4) * 3 - 1
    # A row with small deviations, one with large deviations, one far from zero, and a constant one.
    x = torch.stack([drawn(96) * 0.01, drawn(96) * 1000, drawn(96) + 500, torch.full((96,), 3.0)])

    def program() -> tuple[list[Any], int]:
        mine = tacit.share(x, owner=0)
        before = tacit.session().meter.total.rounds
        first = norm(mine)
        rounds = tacit.session().meter.total.rounds - before
        found = [
            first,
            groups(tacit.share(images, owner=0)),
            tacit.share_module(norm, owner=1)(mine),
        ]
        return [one.reveal() for one in found], rounds

    with torch.no_grad():
        plain = [norm(x), groups(images), norm(x)]
    (first, grouped, by_secret), rounds = tacit.launch(program, **setting)[0]
    assert rounds <= 60
    assert (grouped - plain[1]).abs().max() < 1e-3
    for mine in (first, by_secret):
        # Deviations of 0.01 are 650 units, so the input's rounding dominates.
        assert (mine[0] - plain[0][0]).abs().max() < 2e-2
        assert (mine[1:] - plain[0][1:]).abs().max() < 2e-3


def test_means_of_squares_may_be_large_or_small() -> None:
    norm = nn.RMSNorm(64)
    x = torch.stack([drawn(64) * 0.05, drawn(64), drawn(64) * 1000])

    def program() -> Any:
        return norm(tacit.share(x, owner=0)).detach().reveal()

    mine = tacit.launch(program)[0]
    assert (mine - norm(x).detach()).abs().max() < 2e-2
