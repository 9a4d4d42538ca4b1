"""Tests operators in checked mode on numbers of all magnitudes.

Each result must be right, or the session must refuse to reveal it. A case is *missed* if it reveals
a result that is not near the exact one, or beyond the limit that the session knows of it.

``python tests/operators/overflows.py CASES [SEED] [PROTOCOL]`` runs the given number of cases and
prints how many were refused. The tests run a few.
"""

import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional

import tacit

#: The tolerance, both absolute and relative to the greatest value.
NEAR = 2.0**-6

#: The maximum count of cases in one session.
TOGETHER = 64

Two = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _gradient(function: Two) -> Two:
    def of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x.detach().clone().requires_grad_()
        function(x, y).sum().backward()
        assert x.grad is not None
        return x.grad

    return of


def _written(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    target = x.clone()
    target *= y
    target[0] += y[1]
    return target


#: Functions of two fraction tensors of shape (3, 4), by name.
FRACTIONS: dict[str, Two] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "add many": lambda x, y: x + y + x + y + x + y + x + y,
    "alpha": lambda x, y: torch.add(x, y, alpha=1000),
    "mul": lambda x, y: x * y,
    "written": _written,
    "public mul": lambda x, _: x * 1234567.0,
    "public mul of many": lambda x, _: x * torch.tensor([1e-3, 1.0, 1e4, 1e8], dtype=x.dtype),
    "public div": lambda x, _: x / 1e-4,
    "public matmul": lambda x, _: x @ torch.full((4, 2), 5000.0, dtype=x.dtype),
    "matmul": lambda x, y: x @ y.T,
    "mv": lambda x, y: x @ y[0],
    "dot": lambda x, y: torch.dot(x.flatten(), y.flatten()),
    "bmm": lambda x, y: torch.bmm(x[None], y.T[None]),
    "addmm": lambda x, y: torch.addmm(x[:, :3], x, y.T),
    "linear": lambda x, y: functional.linear(x, y, y[:, 0]),
    "conv1d": lambda x, y: functional.conv1d(x[None], y[None, :, :2]),
    "conv2d": lambda x, y: functional.conv2d(x[None, None], y[None, None, :2, :2], padding=1),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=3),
    "lerp": lambda x, y: torch.lerp(x, y, 0.75),
    "square": lambda x, _: x.square(),
    "cube": lambda x, _: x**3,
    "seventh": lambda x, _: x**7,
    "sum": lambda x, _: x.sum(),
    "sums": lambda x, y: torch.cat([x, y] * 40).sum(0),
    "cumsum": lambda x, y: torch.cat([x, y] * 40).cumsum(0),
    "mean": lambda x, _: x.mean(1),
    "var": lambda x, _: x.var(1),
    "std": lambda x, _: x.std(1),
    "norm": lambda x, _: x.norm(dim=1),
    "prod": lambda x, _: x.prod(1),
    "cumprod": lambda x, _: x.cumprod(1),
    "outer": lambda x, y: torch.outer(x[0], y[0]),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "div": lambda x, y: x / y,
    "reciprocal": lambda x, _: 1.0 / x,
    "exp": lambda x, _: torch.exp(x),
    "cosh": lambda x, _: torch.cosh(x),
    "softplus": lambda x, _: functional.softplus(x),
    "relu": lambda x, y: torch.relu(x * y - x),
    "maximum": lambda x, y: torch.maximum(x * 3, y),
    "less": lambda x, y: torch.where(x < y, x, y),
    "clamp": lambda x, y: (x - y).clamp(-5, 7),
    "max": lambda x, y: (x + y).max(1).values,
    "abs": lambda x, y: (x - y).abs(),
    "mse": lambda x, y: functional.mse_loss(x, y),
    "scatter add": lambda x, y: x.scatter_add(
        1, torch.zeros(3, 40, dtype=torch.long), y.repeat(1, 10)
    ),
    "index add": lambda x, y: x.index_add(0, torch.zeros(60, dtype=torch.long), y.repeat(20, 1)),
    "index put": lambda x, y: x.index_put(
        (torch.zeros(60).long(),), y.repeat(20, 1), accumulate=True
    ),
    "scatter reduce": lambda x, y: x.scatter_reduce(
        1, torch.zeros(3, 40).long(), y.repeat(1, 10), "sum"
    ),
    "adaptive pool": lambda x, y: functional.adaptive_avg_pool2d(torch.stack([x, y]), (2, 3)),
    "pool": lambda x, y: functional.avg_pool1d(torch.cat([x, y], 1), 3),
    "embedding": _gradient(lambda x, y: functional.embedding(torch.zeros(40).long(), x) * y[0]),
    "distances": lambda x, y: torch.cdist(x, y),
    "covariance": lambda x, _: torch.cov(x),
    "layer norm": lambda x, y: functional.layer_norm(x, (4,), y[0], y[1]),
    "softmax": lambda x, _: torch.softmax(x, 1),
    "gradient of mul": _gradient(lambda x, y: x * y),
    "gradient of cube": _gradient(lambda x, _: x**3),
    "gradient of matmul": _gradient(lambda x, y: (x @ y.T) ** 2),
}

#: Functions with products of many numbers, whose error is more than a unit.
ROUNDED = {"prod", "cumprod"}

#: Functions of two int64 tensors of shape (3, 4), by name.
INTEGERS: dict[str, Two] = {
    "int add": lambda x, y: x + y,
    "int sub": lambda x, y: x - y,
    "int mul": lambda x, y: x * y,
    "int matmul": lambda x, y: x @ y.T,
    "int sum": lambda x, y: torch.cat([x, y] * 40).sum(),
    "int public mul": lambda x, _: x * 1000003,
    "int square": lambda x, _: x * x,
    "int prod": lambda x, _: x.prod(1),
    "int as fraction": lambda x, _: x.to(torch.float32),
    "int times fraction": lambda x, _: x * 1.5,
    "int plus fraction": lambda x, _: x + 0.25,
    "int by int": lambda x, y: x / y,
    "int mean": lambda x, _: x.mean(dtype=torch.float32),
}


class Case(NamedTuple):
    """An operator and its inputs."""

    name: str
    x: torch.Tensor
    y: torch.Tensor

    @property
    def function(self) -> Two:
        return FRACTIONS.get(self.name) or INTEGERS[self.name]

    @property
    def exact(self) -> torch.Tensor:
        """The result without limits on the range."""
        if self.name in FRACTIONS:
            return self.function(self.x, self.y)
        # float64 also represents results beyond the range of int64, rounded.
        return self.function(self.x.double(), self.y.double())


def drawn(name: str, numbers: random.Random) -> Case:
    """Draws a case whose magnitudes reach the greatest that can be shared.

    About a fifth of the numbers have another magnitude than the rest.
    """
    highest = 30 if name in FRACTIONS else 62
    least = numbers.choice([-6, highest // 2])
    usual, other = (numbers.uniform(least, highest) for _ in range(2))

    def number() -> float:
        magnitude = usual if numbers.random() < 0.8 else other
        return numbers.choice([-1, 1]) * numbers.uniform(0.5, 1) * 2.0**magnitude

    words = [[number() for _ in range(12)] for _ in range(2)]
    if name in FRACTIONS:
        x, y = (
            torch.tensor([round(each * 2**16) / 2**16 for each in word]).double() for word in words
        )
    else:
        # A quotient by 0 would not be an overflow.
        x, y = (torch.tensor([int(each) or 1 for each in word]) for word in words)
    return Case(name, x.reshape(3, 4), y.reshape(3, 4))


class Shown(NamedTuple):
    """A result, and the limit of its words as a float."""

    value: torch.Tensor
    limit: float


def program(cases: list[Case]) -> list[Shown | None]:
    """Runs in a party. Returns the result of each case, or None if it is refused."""
    found: list[Shown | None] = []
    claims = tacit.session().claims
    for case in cases:
        x, y = (tacit.share(each, owner=0) for each in (case.x, case.y))
        try:
            result = case.function(x, y)
            # Values that are computed when they are needed have a limit only then.
            value, parts = result.reveal().double(), result._parts
            found.append(Shown(value, claims.limit(parts) * 2.0**-result._scale.bits))
        except tacit.RangeError:
            found.append(None)
    return found


def judged(case: Case, found: Shown | None) -> str:
    """ "refused", "right", or "missed"."""
    if found is None:
        return "refused"
    shown, limit = found
    if bool((shown.abs() >= limit).any()):
        return "missed"
    exact = case.exact.double()
    most = exact.abs().max()
    if case.name in ROUNDED:
        # The rounding errors of small factors are multiplied by the large factors.
        most = torch.maximum(most, case.x.double().abs().clamp(min=1.0).prod(1).max())
    return "right" if bool(((shown - exact).abs() <= NEAR * (1 + most)).all()) else "missed"


def tried(
    count: int, seed: int, setting: dict[str, Any]
) -> tuple[Counter[tuple[str, str]], list[Case]]:
    """Runs the given number of cases, and returns counts of outcomes and the missed cases.

    The counts are by the operator's name and "right", "refused" or "missed".
    """
    numbers, told, missed = random.Random(seed), Counter[tuple[str, str]](), []
    names = [*FRACTIONS, *INTEGERS]
    cases = [drawn(names[at % len(names)], numbers) for at in range(count)]
    for start in range(0, count, TOGETHER):
        some = cases[start : start + TOGETHER]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = tacit.launch(program, some, checked=True, **setting)[0]
        for case, one in zip(some, shown, strict=True):
            judgement = judged(case, one)
            told[case.name, judgement] += 1
            if judgement == "missed":
                missed.append(case)
    return told, missed


if __name__ == "__main__":
    total, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    protocol = sys.argv[3] if len(sys.argv) > 3 else "replicated"
    told, missed = tried(
        total, seed, {"protocol": protocol, "parties": 3 if protocol == "replicated" else 2}
    )
    for name in [*FRACTIONS, *INTEGERS]:
        print(
            f"{name:22}", *(f"{told[name, how]:6} {how}" for how in ("right", "refused", "missed"))
        )
    for case in missed[:20]:
        print(case, case.exact)
    print(
        {
            how: sum(n for (_, each), n in told.items() if each == how)
            for how in ("right", "refused", "missed")
        }
    )
