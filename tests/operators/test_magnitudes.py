"""Normalisations are exact for rows of every magnitude, and so are their gradients.

Small and large rows are in one tensor.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
    "additive of three": {"parties": 3, "protocol": "additive", "source": "dealer"},
}

#: Magnitudes from 16 units of fixed point to numbers whose squares do not fit in a word with 32
#: fraction bits.
MAGNITUDES = 2.0 ** torch.arange(-12, 15, dtype=torch.float64)
SIZE = 48
ROWS = len(MAGNITUDES)


def _drawn(*shape: int, seed: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _rows() -> torch.Tensor:
    rows = _drawn(ROWS, SIZE)
    rows = (rows - rows.mean(1, keepdim=True)) / rows.std(1, keepdim=True) * MAGNITUDES.unsqueeze(1)
    return (rows * 2.0**16).round() / 2.0**16


X, GRADIENT = _rows(), _drawn(ROWS, SIZE, seed=4)

#: Normalisations with an ε argument. The tests pass a small ε, so that it does not dominate small
#: rows.
FORMS: dict[str, Callable[[torch.Tensor, float], torch.Tensor]] = {
    "RMS": lambda x, eps: functional.rms_norm(x, (SIZE,), eps=eps),
    "layer": lambda x, eps: functional.layer_norm(x, (SIZE,), eps=eps),
    "group": lambda x, eps: functional.group_norm(x.reshape(ROWS, 4, -1), 2, eps=eps).flatten(1),
    "instance": lambda x, eps: functional.instance_norm(x.unsqueeze(1), eps=eps).squeeze(1),
    "batch": lambda x, eps: functional.batch_norm(x.T, None, None, training=True, eps=eps).T,
}


def _both(x: torch.Tensor, gradient: torch.Tensor) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    found = {}
    for name, form in FORMS.items():
        leaf = x.clone().requires_grad_()
        result = form(leaf, 1e-9)
        result.backward(gradient)
        found[name] = result.detach(), leaf.grad
    return found


@pytest.mark.parametrize("setting", SETTINGS)
def test_rows_of_every_magnitude_are_as_exact_as_others(setting: str) -> None:
    def program() -> Any:
        found = _both(tacit.share(X, owner=0), tacit.share(GRADIENT, owner=0))
        return {name: [one.reveal() for one in pair] for name, pair in found.items()}

    mine, plain = tacit.launch(program, **SETTINGS[setting])[0], _both(X, GRADIENT)
    for name in FORMS:
        result, gradient = plain[name]
        allowed = 2.0**-12 * result.abs() + 2.0**-15
        if name != "RMS":
            # Means have units of 2^−24.
            allowed = allowed + 2.0**-24 / MAGNITUDES.unsqueeze(1)
        if name in ("batch", "instance"):
            allowed = allowed + 2.0**-24 * MAGNITUDES.unsqueeze(1) * result.abs()
        assert ((mine[name][0] - result).abs() <= allowed).all(), name
        # A gradient has units of 2^−20.
        allowed = 2.0**-12 * gradient.abs().amax(1, keepdim=True) + 2.0**-18
        assert ((mine[name][1] - gradient).abs() <= allowed).all(), name


def test_single_units_and_the_end_of_the_domain() -> None:
    """Rows of one unit work without an ε, and so do rows at the limits of RMS and layer norm."""
    units = torch.zeros(3, 16, dtype=torch.float64)
    units[0, 3], units[1, :4], units[2] = 64, 16, 16
    units = units * 2.0**-16
    large = torch.ones(1, 16, dtype=torch.float64) * (2.0**28 - 2.0**10)
    pairs = _drawn(2, 16).sign() * torch.tensor([[2.0**19], [2.0**-13]], dtype=torch.float64)
    pairs = torch.cat([pairs, -pairs], 1) * 0.7

    def program() -> Any:
        x, y, z = (tacit.share(one, owner=0) for one in (units, large, pairs))
        found = [functional.rms_norm(x, (16,), eps=0.0), functional.rms_norm(y, (16,))]
        return [one.reveal() for one in (*found, functional.layer_norm(z, (32,), eps=0.0))]

    rooted, largest, centred = tacit.launch(program)[0]
    # The norms of these rows are 64 and 16·2 units. The least ε, 2^−30/n, adds four squared units
    # to the sums of squares, which lowers the results by at most 2^−9.
    assert torch.allclose(rooted, functional.rms_norm(units, (16,), eps=0.0), rtol=2.0**-7)
    assert torch.allclose(largest, torch.ones(1, 16, dtype=torch.float64), rtol=2.0**-5)
    assert torch.allclose(centred, pairs.sign(), rtol=2.0**-11)


def test_a_trial_names_rows_beyond_the_domain() -> None:
    def program(size: float) -> None:
        functional.rms_norm(tacit.share(torch.full((1, 4), size), owner=0), (4,))

    with pytest.warns(tacit.RangeWarning, match="product of 2\\^6"):
        tacit.launch(program, 2.0**29.5, protocol="plain", parties=2)


@pytest.mark.parametrize("setting", ["replicated", "additive"])
def test_running_variances_of_small_and_large_channels(setting: str) -> None:
    def tracked(x: torch.Tensor, norm: Any) -> list[torch.Tensor]:
        norm(x.T)
        return [norm.running_mean, norm.running_var]

    def program() -> Any:
        norm = tacit.share_module(nn.BatchNorm1d(ROWS).double(), owner=0)
        return [one.reveal() for one in tracked(tacit.share(X, owner=0), norm.train())]

    mine = tacit.launch(program, **SETTINGS[setting])[0]
    for found, plain in zip(mine, tracked(X, nn.BatchNorm1d(ROWS).double()), strict=True):
        assert torch.allclose(found.double(), plain, rtol=2.0**-14, atol=2.0**-14)


def test_gradients_of_root_mean_squares_have_gradients() -> None:
    x = _drawn(3, 8).float()
    weight = torch.linspace(0.5, 1.5, 8)

    def second(x: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
        x, weight = x.requires_grad_(), weight.requires_grad_()
        first = torch.autograd.grad(
            functional.rms_norm(x, (8,), weight).pow(2).sum(), x, create_graph=True
        )[0]
        return list(torch.autograd.grad(first.square().sum(), [x, weight]))

    def program() -> Any:
        mine = second(tacit.share(x.clone(), owner=0), tacit.share(weight.clone(), owner=0))
        return [one.reveal() for one in mine]

    for found, plain in zip(
        tacit.launch(program)[0], second(x.clone(), weight.clone()), strict=True
    ):
        assert (found - plain).norm() <= 0.01 * plain.norm()
