"""Root mean squares that models write themselves are as exact as PyTorch's normalisations.

They are exact for rows of every magnitude, and so are their gradients. The exactness ends when the
numbers, the squares or the mean are written to.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

import tacit

SETTINGS: dict[str, dict[str, Any]] = {
    "replicated": {},
    "additive": {"parties": 2, "protocol": "additive", "source": "dealer"},
}

#: Magnitudes from 16 units of fixed point to the largest numbers whose squares are in range.
MAGNITUDES = 2.0 ** torch.arange(-12, 15, dtype=torch.float64)
SIZE, EPS = 64, 1e-9


def _drawn(*shape: int, seed: int = 3) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _rows(size: int = SIZE) -> torch.Tensor:
    rows = _drawn(len(MAGNITUDES), size)
    rows = rows / rows.square().mean(1, keepdim=True).sqrt() * MAGNITUDES.unsqueeze(1)
    return (rows * 2.0**16).round() / 2.0**16


X, GRADIENT = _rows(), _drawn(len(MAGNITUDES), SIZE, seed=4)

Form = Callable[[torch.Tensor], torch.Tensor]

SPELLINGS: dict[str, Form] = {
    "rsqrt of a mean": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS),
    "quotient": lambda x: x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS),
    "power": lambda x: (x.square().mean(-1, keepdim=True) + EPS).pow(-0.5) * x,
    "root as a power": lambda x: x / (EPS + (x**2).mean(-1, keepdim=True)) ** 0.5,
    "reciprocal": lambda x: x * (1 / torch.sqrt(x.pow(2).mean(-1) + EPS)).unsqueeze(-1),
    "sum": lambda x: x * (x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + EPS).rsqrt(),
    "sum and root": lambda x: x / ((x * x).sum(-1, keepdim=True).sqrt() * x.shape[-1] ** -0.5),
    "norm": lambda x: x / torch.linalg.vector_norm(x, dim=-1, keepdim=True),
    "unit vectors": lambda x: nn.functional.normalize(x, dim=-1),
    "norm and factor": lambda x: (
        x / (x.norm(2, dim=-1, keepdim=True) * x.shape[-1] ** -0.5).clamp(min=1e-8)
    ),
    "norm and more": lambda x: x / (x.norm(2, dim=-1, keepdim=True) * x.shape[-1] ** -0.5 + 1e-5),
    "root and more": lambda x: x / ((x * x).mean(-1, keepdim=True).sqrt() + 1e-6),
    "deviation": lambda x: x / (x.std(-1, keepdim=True) + 1e-6),
    "heads": lambda x: (
        (h := x.reshape(-1, 2, SIZE // 2)) * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + EPS)
    ).flatten(1),
    "first dimension": lambda x: (x.T / torch.sqrt(x.T.pow(2).mean(0, keepdim=True) + EPS)).T,
    "repeated": lambda x: x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + EPS).expand_as(x),
    "ε in a tensor": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + torch.tensor(EPS)),
    "ε in a parameter": lambda x: (
        x * torch.rsqrt(torch.tensor([[EPS]]).double() + x.pow(2).mean(-1, True))
    ),
}


#: Larger tolerances. Some forms multiply inverse roots with units of 2^−24, which are 2^−14 for the
#: largest rows. Means have units of 2^−16, and the smallest rows have only 16 of these.
ROUGHER = {
    "sum and root": 2.0**-10,
    "norm and factor": 2.0**-10,
    "norm and more": 2.0**-10,
    "root and more": 2.0**-10,
    "deviation": 2.0**-8,
}


def _with_gradient(form: Form, x: torch.Tensor, gradient: torch.Tensor) -> list[torch.Tensor]:
    leaf = x.clone().requires_grad_()
    result = form(leaf)
    result.backward(gradient)
    assert leaf.grad is not None
    return [result.detach(), leaf.grad]


def _check(
    mine: list[torch.Tensor], plain: list[torch.Tensor], name: str, finest: float = 2.0**-12
) -> None:
    (result, gradient), (expected, exact) = mine, plain
    assert ((result - expected).abs() <= finest * expected.abs() + 2.0**-14).all(), name
    # A gradient has units of 2^−20, and several steps round.
    allowed = max(finest, 2.0**-10) * exact.abs().amax(1, keepdim=True) + 2.0**-17
    assert ((gradient - exact).abs() <= allowed).all(), name


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_spelling_is_as_exact_for_rows_of_every_magnitude(setting: str) -> None:
    def program() -> dict[str, list[torch.Tensor]]:
        x, gradient = tacit.share(X, owner=0), tacit.share(GRADIENT, owner=0)
        return {
            name: [one.reveal() for one in _with_gradient(form, x, gradient)]
            for name, form in SPELLINGS.items()
        }

    for name, mine in tacit.launch(program, **SETTINGS[setting])[0].items():
        _check(
            mine, _with_gradient(SPELLINGS[name], X, GRADIENT), name, ROUGHER.get(name, 2.0**-12)
        )


def _module(kind: Any, size: int) -> nn.Module:
    norm = kind(size, EPS)
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(0.5, 1.5, size))
    return norm


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", [LlamaRMSNorm, T5LayerNorm])
def test_modules_of_hugging_face_as_they_are(kind: Any, setting: str) -> None:
    sizes = (64, 128)
    data = [(_rows(size).float(), _drawn(len(MAGNITUDES), size, seed=5).float()) for size in sizes]

    def program() -> list[list[torch.Tensor]]:
        found = []
        for size, (x, gradient) in zip(sizes, data, strict=True):
            norm = tacit.share_module(_module(kind, size), owner=0, trainable=True)
            pair = _with_gradient(norm, tacit.share(x, owner=0), tacit.share(gradient, owner=0))
            found.append([one.reveal() for one in (*pair, norm.weight.grad)])
        return found

    for size, (x, gradient), mine in zip(
        sizes, data, tacit.launch(program, **SETTINGS[setting])[0], strict=True
    ):
        norm = _module(kind, size)
        plain = _with_gradient(norm, x, gradient)
        _check(mine[:2], plain, f"{size}")
        assert isinstance(norm.weight, nn.Parameter)
        assert norm.weight.grad is not None
        # Each addend has the relative error of the result.
        sums = (gradient * plain[0] / norm.weight).abs().sum(0).detach()
        assert ((mine[2] - norm.weight.grad).abs() <= 2.0**-12 * sums + 2.0**-14).all()


def test_numbers_of_another_dtype_are_not_those_that_were_squared() -> None:
    """A copy in another dtype counts as other numbers than the original.

    Given doubles, the modules square a copy in single precision, and T5's module multiplies the
    original.
    """

    def program() -> list[torch.Tensor]:
        x = tacit.share(X, owner=0)
        found = [
            tacit.share_module(_module(kind, SIZE), owner=0)(x)
            for kind in (LlamaRMSNorm, T5LayerNorm)
        ]
        return [one.reveal() for one in found]

    for kind, mine in zip((LlamaRMSNorm, T5LayerNorm), tacit.launch(program)[0], strict=True):
        plain = _module(kind, SIZE)(X).detach()
        # The inverse root has units of 2^−24, and is 2^−14 for the largest rows.
        assert ((mine - plain).abs() <= 2.0**-9 * plain.abs() + 2.0**-14).all()


@pytest.mark.parametrize("setting", SETTINGS)
def test_cosines_of_vectors_of_every_magnitude(setting: str) -> None:
    def cosines(x: torch.Tensor) -> list[torch.Tensor]:
        return _with_gradient(
            lambda x: nn.functional.cosine_similarity(x, x.roll(1, -1), dim=-1), x, weights
        )

    weights = _drawn(len(MAGNITUDES), seed=6)

    def program() -> list[torch.Tensor]:
        return [one.reveal() for one in cosines(tacit.share(X, owner=0))]

    (mine, gradient), (plain, exact) = tacit.launch(program, **SETTINGS[setting])[0], cosines(X)
    assert (mine - plain).abs().max() <= 2.0**-11
    allowed = 2.0**-10 * exact.abs().amax(1, keepdim=True) + 2.0**-17
    assert ((gradient - exact).abs() <= allowed).all()


def test_roots_and_means_themselves() -> None:
    """√(mean of x² + ε) is right to two units, and the mean remains an ordinary number."""

    def program() -> list[torch.Tensor]:
        x = tacit.share(X, owner=0)
        mean = x.pow(2).mean(-1)
        alone = (
            mean * 1.0,
            torch.rsqrt(mean),
            mean.sqrt(),
            (x * x).sum(-1).sqrt(),
            mean,
            x.var(-1).sqrt(),
        )
        return [
            one.reveal()
            for one in (*alone, mean.log(), (x.pow(2).mean(-1, keepdim=True) + 0.5).sqrt())
        ]

    first, inverse, root, norm, mean, deviation, logarithm, moved = tacit.launch(program)[0]
    plain = X.square().mean(-1)
    # Squares are in range below 2^30.
    inside = X.abs().amax(1) < 2.0**15
    assert torch.allclose(first[inside], plain[inside], rtol=2.0**-14, atol=2.0**-15)
    assert mean.equal(first)
    assert torch.allclose(inverse, plain.rsqrt(), rtol=2.0**-9)
    assert torch.allclose(root, plain.sqrt(), rtol=2.0**-12, atol=2.0**-15)
    assert torch.allclose(norm, X.norm(dim=-1), rtol=2.0**-12, atol=2.0**-15)
    assert torch.allclose(deviation, X.std(-1), rtol=2.0**-12, atol=2.0**-13)
    assert torch.allclose(logarithm[inside], mean[inside].clamp(min=2.0**-16).log(), atol=2.0**-12)
    assert torch.allclose(moved.squeeze(-1), (plain + 0.5).sqrt(), rtol=2.0**-12, atol=2.0**-15)


#: Writes to a tensor between the mean and its root. Each function returns the mean after the write.
WRITES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the numbers": lambda x: _written(x, lambda x, _, mean: (x.add_(1.0), mean)[1]),
    "a view of the numbers": lambda x: _written(x, lambda x, _, mean: (x[:, 1:].zero_(), mean)[1]),
    "the squares": lambda x: _written(
        x, lambda _, squares, __: (squares.add_(0.25), squares.mean(-1, keepdim=True))[1]
    ),
    "the mean": lambda x: _written(x, lambda x, _, mean: mean.add_(x[:, :1].abs())),
    "a view of the mean": lambda x: _written(x, lambda _, __, mean: (mean[1:].fill_(3.0), mean)[1]),
    "the mean, by another": lambda x: _written(
        x, lambda x, _, mean: mean.copy_(x[:, :1].abs() + 1.0)
    ),
}


def _written(x: torch.Tensor, write: Callable[..., torch.Tensor]) -> torch.Tensor:
    x = x.clone()
    squares = x.pow(2)
    return write(x, squares, squares.mean(-1, keepdim=True))


@pytest.mark.parametrize("setting", SETTINGS)
def test_nothing_outlives_a_write(setting: str) -> None:
    """After a write, the root is that of the present number, which has lost its small digits."""
    rows = X[:20]

    def program() -> dict[str, list[torch.Tensor]]:
        found = {}
        for name, write in WRITES.items():
            mean = write(tacit.share(rows, owner=0))
            found[name] = [one.reveal() for one in (mean, mean.rsqrt(), mean.sqrt())]
        return found

    for name, (mean, inverse, root) in tacit.launch(program, **SETTINGS[setting])[0].items():
        assert torch.allclose(mean, WRITES[name](rows), rtol=2.0**-12, atol=2.0**-14), name
        there = mean.clamp(min=2.0**-16)
        assert torch.allclose(inverse, there.rsqrt(), rtol=2.0**-11, atol=2.0**-11), name
        assert torch.allclose(root, mean.clamp(min=0).sqrt(), rtol=2.0**-11, atol=2.0**-13), name


def test_steps_in_place_are_steps() -> None:
    def in_place(x: torch.Tensor) -> list[torch.Tensor]:
        inverse = x.pow(2).mean(-1, keepdim=True).add_(EPS).rsqrt_()
        root = x.pow(2).sum(-1, keepdim=True).mul_(1 / SIZE).add_(EPS).sqrt_()
        by_itself = x.clone()
        by_itself.mul_(torch.rsqrt(by_itself.pow(2).mean(-1, keepdim=True) + EPS))
        return [x * inverse, x / root, by_itself]

    def program() -> list[torch.Tensor]:
        with torch.inference_mode():
            return [one.reveal() for one in in_place(tacit.share(X, owner=0))]

    for mine, plain in zip(tacit.launch(program)[0], in_place(X), strict=True):
        assert ((mine - plain).abs() <= 2.0**-9 * plain.abs() + 2.0**-14).all()


def test_all_parties_do_the_same_and_so_does_a_trial() -> None:
    """Rounds and bytes do not depend on the numbers."""

    def program(x: torch.Tensor) -> list[tuple[int, int]]:
        own, gradient = tacit.share(x, owner=0), tacit.share(torch.ones_like(x), owner=0)
        readings = []
        for form in SPELLINGS.values():
            before = tacit.session().meter.total
            _with_gradient(form, own, gradient)
            spent = tacit.session().meter.total - before
            readings.append((spent.rounds, spent.payload_bytes))
        return readings

    rows = torch.ones(12, SIZE)
    assert tacit.launch(program, rows) == tacit.launch(program, rows * 2.0**-14)


def test_a_trial_names_squares_that_leave_the_range() -> None:
    def program() -> None:
        x = tacit.share(torch.full((1, 4), 2.0**16), owner=0)
        SPELLINGS["rsqrt of a mean"](x)

    with pytest.warns(tacit.RangeWarning, match="product of 2\\^64"):
        tacit.launch(program, protocol="plain", parties=2)


def test_small_rows_warn_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    def program() -> None:
        for form in SPELLINGS.values():
            _with_gradient(form, tacit.share(X[:4], owner=0), tacit.share(GRADIENT[:4], owner=0))

    tacit.launch(program, protocol="plain", parties=2)
    assert not [warning for warning in recwarn if issubclass(warning.category, tacit.RangeWarning)]


def test_gradients_have_gradients() -> None:
    def second(form: Form, x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        first = torch.autograd.grad(form(x).pow(3).sum(), x, create_graph=True)[0]
        return torch.autograd.grad(first.square().sum(), x)[0]

    rows = _drawn(3, 8).float()
    names = ("rsqrt of a mean", "quotient", "power")

    def program() -> list[torch.Tensor]:
        return [
            second(SPELLINGS[name], tacit.share(rows.clone(), owner=0)).reveal() for name in names
        ]

    for name, mine in zip(names, tacit.launch(program)[0], strict=True):
        plain = second(SPELLINGS[name], rows.clone())
        assert (mine - plain).norm() <= 0.01 * plain.norm(), name


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_what_is_traced_is_as_exact(mode: str) -> None:
    names = ("rsqrt of a mean", "quotient")

    def program() -> list[torch.Tensor]:
        x, found = tacit.share(X, owner=0), []
        attributes, rest = x.__tensor_flatten__()
        for name in names:
            made: list[Any] = []

            def traced(
                *parts: torch.Tensor, form: Form = SPELLINGS[name], made: Any = made
            ) -> list[Any]:
                held = dict(zip(attributes, parts, strict=True))
                result = form(
                    tacit.SecretTensor.__tensor_unflatten__(held, rest, x.shape, x.stride())
                )
                how = result.__tensor_flatten__()
                made.append((how, result.shape, result.stride()))
                return [getattr(result, each) for each in how[0]]

            parts = [getattr(x, each) for each in attributes]
            graph = make_fx(traced, tracing_mode=mode)(*parts)
            (own, how), shape, stride = made[0]
            parts = dict(zip(own, graph(*parts), strict=True))
            found.append(
                tacit.SecretTensor.__tensor_unflatten__(parts, how, shape, stride).reveal()
            )
        return found

    for name, mine in zip(names, tacit.launch(program, transport="tcp")[0], strict=True):
        plain = SPELLINGS[name](X)
        assert ((mine - plain).abs() <= 2.0**-12 * plain.abs() + 2.0**-14).all(), name


@pytest.mark.parametrize("name", ["rsqrt of a mean", "heads", "first dimension", "sum"])
def test_compiled_programs_are_as_exact(name: str) -> None:
    class Written(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return SPELLINGS[name](x)

    rows = X.float()
    program, weights = tacit.compile(Written().eval(), rows)

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        return bound(tacit.share(rows, owner=0)).reveal()

    mine, plain = tacit.launch(run)[0], SPELLINGS[name](rows)
    assert ((mine - plain).abs() <= 2.0**-11 * plain.abs() + 2.0**-14).all()
