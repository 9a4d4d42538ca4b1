"""Information that is cached for a root applies to that root alone.

Other views of the root, other numbers divided by it, and operations on it and its gradient match
PyTorch.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest
import torch

import tacit
from tacit.operators.numerics import remembered_squares

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}


def _drawn(seed: int) -> torch.Tensor:
    found = torch.randn(4, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (found.clamp(-2, 2) * 2.0**16).round() / 2.0**16


X, Y = _drawn(1), _drawn(2) + 3.0
SIZES = torch.tensor([[1.0], [2.0], [4.0], [8.0]]).double()

Form = Callable[[torch.Tensor, torch.Tensor], Any]


def _mean(x: torch.Tensor) -> torch.Tensor:
    return x.pow(2).mean(-1, keepdim=True)


def _root(x: torch.Tensor) -> torch.Tensor:
    return _mean(x).sqrt()


def _check(forms: dict[str, Form], setting: dict[str, Any], most: float) -> None:
    def program() -> dict[str, torch.Tensor]:
        return {
            name: form(tacit.share(X, owner=0), tacit.share(Y, owner=0)).reveal()
            for name, form in forms.items()
        }

    for name, mine in tacit.launch(program, **setting)[0].items():
        plain = forms[name](X.clone(), Y.clone()).detach()
        assert mine.shape == plain.shape, name
        assert mine.dtype == plain.dtype, name
        assert ((mine - plain).abs() <= most * plain.abs() + 2.0**-14).all(), name


QUOTIENTS: dict[str, Form] = {
    "large root": lambda x, y: (y * 2.0**19) / (x * 2.0**19).norm(dim=-1, keepdim=True),
    "larger root": lambda x, y: (y * 2.0**25) / (x * 2.0**25).norm(dim=-1, keepdim=True),
    "large root and factor": lambda x, y: (
        (y * 2.0**19) / ((x * 2.0**19).norm(dim=-1, keepdim=True) * 0.3)
    ),
    "large root and more": lambda x, y: (
        (y * 2.0**19) / ((x * 2.0**19).norm(dim=-1, keepdim=True) + 1e-6)
    ),
    "large quotient": lambda x, y: (y * 2.0**12) / _root((x * 64).long().double() * 2.0**-16),
    "much more than the root": lambda x, y: 100 * y / (_root(x * 2.0**-13) + 100.0),
    "much more than no root": lambda x, y: 10 * y / ((x * 0).std(-1, keepdim=True) + 10.0),
    "some more": lambda x, y: y / (_root(x) * 0.3 + 0.01),
    "negative": lambda x, y: y / (_root(x) * -0.3),
    "integers": lambda x, y: (y * 100).long() / _root(x),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_others_are_divided_by_roots_of_every_size(setting: str) -> None:
    _check(QUOTIENTS, SETTINGS[setting], 2.0**-9)


CHANGED: dict[str, Form] = {
    "negative root, clamped": lambda x, y: y / (_root(x) * -1.0).clamp(min=-0.5),
    "negative inverse root, clamped": lambda x, y: y * (_mean(x).rsqrt() * -1.0).clamp(min=-0.5),
    "no root, clamped": lambda x, y: (
        y / ((x * 0).norm(dim=-1, keepdim=True) * 1000).clamp(min=0.125)
    ),
    "of truths": lambda x, _: _root((x > 0).double()),
    "of whole numbers": lambda x, y: y / (x * 8).long().double().norm(dim=-1, keepdim=True),
    "far too small": lambda x, _: _root(x) * 1e-200 * 1e-200,
    "divided by infinity": lambda x, _: _root(x) / torch.inf,
    # Infinity is encoded as a finite number, whose inverse root is 2^-13.
    "and infinity": lambda x, _: (_mean(x) + torch.inf).rsqrt() * 0.25,
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_roots_that_were_changed(setting: str) -> None:
    _check(CHANGED, SETTINGS[setting], 2.0**-10)


def _gradient(form: Form) -> Form:
    def gradient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        leaf = (x * SIZES).detach().requires_grad_()
        result = form(leaf, y)
        result.backward(y.flatten()[: result.numel()].reshape(result.shape))
        assert leaf.grad is not None
        return leaf.grad

    return gradient


def _neighbours(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    norm = x.norm(dim=-1)
    return (x[:-1] * x[1:]).sum(-1) / norm[:-1] / norm[1:]


def _pairs(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    norm = x.norm(dim=-1)
    return (x @ x.T) / norm[:, None].expand(4, 4) / norm[None, :].expand(4, 4)


@pytest.mark.parametrize("setting", SETTINGS)
def test_gradients_by_several_views_of_one_root(setting: str) -> None:
    forms = {"neighbours": _gradient(_neighbours), "pairs": _gradient(_pairs)}
    _check(forms, SETTINGS[setting], 2.0**-8)


def _hooked(hook: Callable[[torch.Tensor], Any], at: str = "mean") -> Form:
    """Returns a function that registers a hook and returns the gradient and the hook's result.

    The hook gets the gradient of the mean or of the squares.
    """

    def found(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        leaf, seen = x.requires_grad_(), []
        squares = leaf.pow(2)
        mean = squares.mean(-1, keepdim=True)
        looked_at = mean if at == "mean" else squares

        def look(gradient: torch.Tensor) -> Any:
            given = hook(gradient)
            seen.append(given)
            return given if given.shape == gradient.shape else None

        looked_at.register_hook(look)
        (leaf.detach() * (mean + 0.125).rsqrt() * y).sum().backward()
        assert leaf.grad is not None
        return torch.cat([leaf.grad.flatten(), seen[0].flatten()])

    return found


def _turned(gradient: torch.Tensor) -> torch.Tensor:
    square = gradient.detach().view(2, 2)
    return square.t_().reshape(4).detach()


def _repeated(write: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    def repeated(gradient: torch.Tensor) -> torch.Tensor:
        gradient = gradient.detach()
        seen = gradient.expand(4, 3)
        write(gradient)
        return seen * 1.0

    return repeated


def _other_data(gradient: torch.Tensor) -> torch.Tensor:
    other = gradient.detach()
    other.data = gradient * 3.0
    return other.view(4, 1)


@pytest.mark.parametrize("setting", SETTINGS)
def test_hooks_find_and_give_what_they_do_of_other_numbers(setting: str) -> None:
    forms = {
        "a factor of more dimensions": _hooked(lambda g: g * torch.full((1, 1, 1), 2.0).double()),
        "a secret factor for each row": _hooked(lambda g: g * g[:, :1], "squares"),
        "turned in place": _hooked(_turned),
        "other data": _hooked(_other_data),
        "repeated, then multiplied": _hooked(_repeated(lambda g: g.mul_(2.0))),
        "repeated, then added to": _hooked(_repeated(lambda g: g.add_(2.0))),
    }
    _check(forms, SETTINGS[setting], 2.0**-8)


def test_what_is_remembered_does_not_hang_on_when_numbers_are_freed() -> None:
    """The cache survives when garbage collection frees numbers in reference cycles at any time."""

    def program() -> torch.Tensor:
        x = tacit.share(X.T.contiguous(), owner=0).T
        mean = x.pow(2)[:, 1:].mean(-1)
        kept = [x] if tacit.session().party == 0 else []
        del x
        # Each new entry drops the entries of freed tensors, and frees what only those entries held.
        for _ in range(3):
            tacit.share(Y, owner=0).pow(2)
        assert len(kept) < 2
        return mean.sqrt().reveal()

    plain = X[:, 1:].square().mean(-1).sqrt()
    # The documented error of roots of squares: 2^−13 relative and two units.
    assert ((tacit.launch(program)[0] - plain).abs() <= 2.0**-13 * plain + 2.0**-15).all()


def test_means_that_a_program_keeps_do_not_keep_all_numbers() -> None:
    def program() -> int:
        means, numbers = [], []
        for _ in range(8 * remembered_squares.MOST):
            x = tacit.share(Y, owner=0)
            numbers.append(ref(x._parts[0].untyped_storage()))
            means.append(x.pow(2).mean())
            means.append(x.norm().detach())
        return sum(number() is not None for number in numbers)

    # The entries of squares, of their sums and of norms, and a few tensors in use.
    assert max(tacit.launch(program)) <= 3 * remembered_squares.MOST + 8


def test_a_deep_model_has_the_roots_of_all_its_layers_in_its_backward_pass() -> None:
    """The rows have magnitude 2^−9, so their squares have few bits.

    The model has far more results than the limit of the cache for other results.
    """
    plain = X / 512.0

    def deep(x: torch.Tensor) -> torch.Tensor:
        leaf = x.detach().requires_grad_()
        y = leaf * torch.rsqrt(_mean(leaf) + 1e-9)
        for _ in range(2 * remembered_squares.MOST):
            y = y * torch.rsqrt(_mean(y) + 1e-9)
        (y * SIZES).sum().backward()
        assert leaf.grad is not None
        return leaf.grad

    found = tacit.launch(lambda: deep(tacit.share(plain, owner=0)).reveal())[0]
    expected = deep(plain)
    assert (found - expected).abs().max() <= 2.0**-6 * expected.abs().max()
