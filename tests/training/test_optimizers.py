"""PyTorch's optimisers update secret parameters like plain ones."""

import copy
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.operators.numerics import optimizer_scope

torch.manual_seed(6)
SHAPES = [(4, 3), (5,), ()]
WEIGHTS = [torch.randn(shape) for shape in SHAPES]

#: Gradients of several steps, with magnitudes from a few units of fixed point to beyond one.
GRADIENTS = [
    [torch.randn(shape) * 10.0**-exponent for shape in SHAPES] for exponent in (0, 1, 1, 2, 3)
]

Make = Callable[[list[torch.Tensor]], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Make] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, weight_decay=0.01, dampening=0.2
    ),
    "SGD, Nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "Adam, a rate that is a tensor": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01)),
    "Adam, weight decay": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "Adam, amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, betas=(0.8, 0.99)),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "RMSprop, centred": lambda p: torch.optim.RMSprop(
        p, lr=0.001, centered=True, momentum=0.5, eps=1e-3
    ),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=10.0),
    "Adadelta, a greater eps": lambda p: torch.optim.Adadelta(p, eps=1e-3),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.1),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.05),
    "Adafactor, weight decay": lambda p: torch.optim.Adafactor(
        p, lr=0.05, weight_decay=0.1, d=2.0, eps=(1e-4, 1e-2)
    ),
    "Adagrad, from a sum": lambda p: torch.optim.Adagrad(p, lr=0.05, initial_accumulator_value=0.5),
}


def stepped(
    make: Make, secretly: bool, foreach: bool | None, gradients: Any = GRADIENTS
) -> list[torch.Tensor]:
    """Returns the parameters after some steps, computed in secret or on plain tensors."""
    parameters: list[torch.Tensor] = []
    for weight in WEIGHTS:
        # The scales that share_module gives to trainable parameters.
        bits = 20 if weight.dim() > 1 else 16
        made = tacit.share(weight, owner=0, scale=bits) if secretly else weight.clone()
        parameters.append(made.requires_grad_())
    optimizer = make(parameters)
    for group in optimizer.param_groups:
        group["foreach"] = foreach
    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = tacit.share(gradient, owner=1) if secretly else gradient.clone()
        optimizer.step()
    return [each.detach().reveal() if secretly else each.detach() for each in parameters]


def changes(after: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat(
        [(each - before).reshape(-1) for each, before in zip(after, WEIGHTS, strict=True)]
    )


def check(found: list[torch.Tensor], make: Make, gradients: Any = GRADIENTS) -> None:
    """Checks that all parameters changed as plain ones do."""
    mine, plain = changes(found), changes(stepped(make, False, False, gradients))
    assert float((mine - plain).norm() / plain.norm()) < 0.02
    assert torch.allclose(mine, plain, atol=5e-4, rtol=0.05)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("foreach", [None, False])
def test_steps(name: str, foreach: bool | None) -> None:
    make = OPTIMIZERS[name]
    check(tacit.launch(stepped, make, True, foreach, protocol="plain", parties=2)[0], make)


def test_small_gradients_move_rmsprop_as_far() -> None:
    """RMSprop's first averages are a hundredth of a square.

    An eps below 2^-20 counts as 2^-20.
    """
    units = [
        torch.arange(-6.0, 6.0).reshape(4, 3),
        torch.tensor([1.0, -2.0, 40.0, 300.0, -900.0]),
        torch.tensor(-1.0),
    ]
    gradients = [[each * 2.0**-16 for each in units]]
    found = tacit.launch(
        stepped, OPTIMIZERS["RMSprop"], True, None, gradients, protocol="plain", parties=2
    )[0]
    plain = stepped(lambda p: torch.optim.RMSprop(p, lr=0.01, eps=2.0**-20), False, None, gradients)
    off = (changes(found) - changes(plain)).abs() / changes(plain).abs().clamp(min=2.0**-12)
    single = torch.cat([each.reshape(-1) for each in units]).abs() == 1
    assert off[single].max() < 0.05
    assert off[~single].max() < 0.01


def test_muon() -> None:
    """Muon multiplies matrices of many fraction bits. PyTorch computes plain ones in bfloat16."""
    weight, gradient = torch.randn(5, 7), torch.randn(5, 7)

    def program(secretly: bool) -> torch.Tensor:
        parameter = (tacit.share(weight, owner=0) if secretly else weight.clone()).requires_grad_()
        optimizer = torch.optim.Muon([parameter], lr=0.1)
        for _ in range(3):
            parameter.grad = tacit.share(gradient, owner=1) if secretly else gradient.clone()
            optimizer.step()
        return parameter.detach().reveal() if secretly else parameter.detach()

    plain = program(False) - weight
    for found in (
        tacit.launch(program, True)[0],
        tacit.launch(program, True, protocol="plain", parties=2)[0],
    ):
        assert float((found - weight - plain).norm() / plain.norm()) < 0.02


def test_what_is_refused_is_named() -> None:
    def program() -> None:
        parameter = tacit.share(torch.ones(2, 2), owner=0).requires_grad_()
        optimizer = torch.optim.LBFGS([parameter], line_search_fn="strong_wolfe")
        with pytest.raises(tacit.UnsupportedOperatorError, match=r"leave line_search_fn out"):
            optimizer.step(lambda: (parameter * parameter).sum())
        with pytest.raises(tacit.MisuseError, match=r"give step\(\) a closure"):
            torch.optim.LBFGS([parameter]).step()  # type: ignore[call-arg]
        # The failed step has left the optimiser's scope.
        assert not tacit.session().numerics.is_optimizing

    tacit.launch(program, protocol="plain", parties=2)


@pytest.mark.parametrize(
    ("protocol", "parties", "source"), [("replicated", 3, None), ("additive", 2, "dealer")]
)
def test_steps_on_shares(protocol: str, parties: int, source: str | None) -> None:
    names = ("SGD, Nesterov", "AdamW", "RMSprop", "Adagrad", "Adafactor")

    def program() -> list[list[torch.Tensor]]:
        return [stepped(OPTIMIZERS[name], True, None) for name in names]

    found = tacit.launch(program, protocol=protocol, parties=parties, source=source)[0]
    for name, parameters in zip(names, found, strict=True):
        check(parameters, OPTIMIZERS[name])


def test_a_step_of_many_tensors_takes_the_rounds_of_one() -> None:
    def program(count: int) -> int:
        scales = [(20, 16)[at % 2] for at in range(count)]
        parameters = [
            tacit.share(torch.ones(3), owner=0, scale=bits).requires_grad_() for bits in scales
        ]
        optimizer = torch.optim.Adam(parameters)
        for parameter in parameters:
            parameter.grad = tacit.share(torch.ones(3), owner=1)
        before = tacit.session().meter.total
        optimizer.step()
        assert optimizer.param_groups[0]["foreach"] is None
        return (tacit.session().meter.total - before).rounds

    # The rounds depend on which scales occur, not on the number of tensors.
    assert max(tacit.launch(program, 2)) == max(tacit.launch(program, 7))
    assert max(tacit.launch(program, 1)) + 2 >= max(tacit.launch(program, 2))


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adagrad"])
def test_gradients_at_the_limit_and_beyond_it(name: str) -> None:
    """Elements beyond the limit count as the limit.

    The test takes as many steps as the averages need to reach it.
    """
    limit = optimizer_scope.LIMIT
    many = 60 if name == "RMSprop" else 12
    beyond = [[torch.full(shape, 1000.0) for shape in SHAPES]] * many
    at = [[torch.full(shape, limit) for shape in SHAPES]] * many
    found = tacit.launch(
        stepped, OPTIMIZERS[name], True, None, beyond, protocol="plain", parties=2
    )[0]
    check(found, OPTIMIZERS[name], at)


def test_sums_of_squares_stop_where_they_have_to() -> None:
    def program() -> tuple[float, float]:
        weight = tacit.share(torch.zeros(1), owner=0).requires_grad_()
        optimizer = torch.optim.Adagrad(
            [weight], lr=1.0, initial_accumulator_value=optimizer_scope.MOST_SUM - 20
        )
        for _ in range(3):
            weight.grad = tacit.share(torch.full((1,), optimizer_scope.LIMIT), owner=1)
            optimizer.step()
        return float(optimizer.state[weight]["sum"].reveal()), float(weight.detach().reveal())

    total, weight = tacit.launch(program, protocol="plain", parties=2)[0]
    assert total == optimizer_scope.MOST_SUM
    assert math.isclose(
        weight, -3 * optimizer_scope.LIMIT / math.sqrt(optimizer_scope.MOST_SUM), rel_tol=0.01
    )


@pytest.mark.parametrize("name", ["Adam", "Adagrad"])
def test_a_trial_run_shows_gradients_and_sums_that_reach_their_limit(name: str) -> None:
    def run(gradient: float, start: float) -> list[str]:
        def program() -> None:
            weight = tacit.share(torch.zeros(2), owner=0).requires_grad_()
            more = {"initial_accumulator_value": start} if name == "Adagrad" else {}
            optimizer = getattr(torch.optim, name)([weight], lr=0.1, **more)
            for _ in range(2):
                weight.grad = tacit.share(torch.tensor([0.5, gradient]), owner=1)
                optimizer.step()

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tacit.launch(program, protocol="plain", parties=2)
        return [
            str(warning.message) for warning in caught if warning.category is tacit.RangeWarning
        ]

    assert run(optimizer_scope.LIMIT, 0.0) == []
    (found,) = run(7.0, 0.0)
    assert f"{name}.step in no module" in found
    assert "an element of a gradient of magnitude 7, which counts as 4" in found
    if name == "Adagrad":
        (found,) = run(2.0, optimizer_scope.MOST_SUM - 5)
        assert (
            f"a sum of squares of magnitude {optimizer_scope.MOST_SUM + 3:g}, which counts as 8192"
            in found
        )


def test_gradients_of_a_unit_do_not_leap() -> None:
    """If squares are below a unit, a step exceeds the rate only slightly."""
    for units in (1, 2, 8, 64):
        gradients = [[torch.full(shape, units * 2.0**-16) for shape in SHAPES]] * 3
        found = tacit.launch(
            stepped, OPTIMIZERS["Adam"], True, None, gradients, protocol="plain", parties=2
        )[0]
        steps = changes(found) / -0.03
        assert float(steps.max()) < 1.2
        assert float(steps.mean()) > 0.2
    assert float(steps.mean()) > 0.9


@pytest.mark.parametrize("foreach", [False, True])
def test_signs_of_small_gradients_count_as_those_of_large_ones(foreach: bool) -> None:
    """Rprop's steps grow while signs stay and shrink when they change, at any magnitude."""
    weight = torch.tensor([0.5, -1.0, 2.0])
    signs = [torch.tensor(sign) for sign in ([1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [1.0, -1.0, 1.0])]

    def moved(size: float, make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        parameter = make(weight).requires_grad_()
        optimizer = torch.optim.Rprop([parameter], lr=0.02, foreach=foreach)
        for sign in signs:
            parameter.grad = make(sign * size)
            optimizer.step()
        return parameter.detach()

    def program() -> list[torch.Tensor]:
        return [moved(size, lambda x: tacit.share(x, owner=0)).reveal() for size in sizes]

    sizes = (2.0**-14, 2.0**-9, 1.0, 2.5, 3.0, 100.0, 1e5)
    for setting in ({"protocol": "plain", "parties": 2}, {}):
        for size, found in zip(sizes, tacit.launch(program, **setting)[0], strict=True):
            assert torch.allclose(found, moved(size, torch.clone), atol=1e-3)


@pytest.mark.parametrize("foreach", [False, True])
def test_rprop_takes_long_steps_by_gradients_of_all_magnitudes(foreach: bool) -> None:
    """Gradients have magnitudes from a unit to a thousand, and steps grow to the maximum of 50."""
    generator = torch.Generator().manual_seed(4)
    sizes = 10.0 ** torch.linspace(-4, 3, 24)
    gradients = [torch.randn(24, generator=generator) * sizes for _ in range(8)] + [sizes] * 26
    gradients = [(each * 2**16).round() / 2**16 for each in gradients]

    def moved(make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        parameter = make(torch.zeros(24)).requires_grad_()
        optimizer = torch.optim.Rprop([parameter], lr=0.5, foreach=foreach)
        for gradient in gradients:
            parameter.grad = make(gradient)
            optimizer.step()
        return parameter.detach()

    def program() -> torch.Tensor:
        return moved(lambda x: tacit.share(x, owner=0)).reveal()

    plain = moved(torch.clone)
    assert float(plain.abs().max()) > 100
    assert torch.allclose(
        tacit.launch(program, protocol="plain", parties=2)[0], plain, rtol=1e-3, atol=1e-3
    )


def test_zero_gradients_move_nothing() -> None:
    gradients = [[torch.zeros(shape) for shape in SHAPES]] * 2
    for name in ("Adam", "RMSprop", "Adagrad"):
        found = tacit.launch(
            stepped, OPTIMIZERS[name], True, None, gradients, protocol="plain", parties=2
        )[0]
        assert float(changes(found).abs().max()) < 2.0**-15


def test_a_step_that_fails_leaves_everything_as_it_was() -> None:
    def program() -> None:
        session = tacit.session()
        weight = tacit.share(torch.ones(2), owner=0).requires_grad_()
        optimizer = torch.optim.Adam([weight], fused=None)
        optimizer.param_groups[0]["betas"] = ("wrong", 0.999)
        weight.grad = gradient = tacit.share(torch.full((2,), 9.0), owner=1)
        before = dict(optimizer.param_groups[0])
        with pytest.raises(TypeError):
            optimizer.step()
        assert session.scale == tacit.fixed.DEFAULT
        assert not session.numerics.is_optimizing
        assert weight.grad is gradient
        assert optimizer.param_groups[0] == before

    tacit.launch(program, protocol="plain", parties=2)


def test_schedules_and_closures() -> None:
    def trained(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        schedules = [
            torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4),
        ]
        losses = []

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        for _ in range(4):
            losses.append(optimizer.step(closure).detach())
            for schedule in schedules:
                schedule.step()
        return losses

    model, x, y = nn.Linear(3, 2), torch.randn(6, 3), torch.randn(6, 2)

    def program() -> list[torch.Tensor]:
        secret = tacit.share_module(copy.deepcopy(model), owner=0, trainable=True)
        return [
            loss.reveal()
            for loss in trained(secret, tacit.share(x, owner=1), tacit.share(y, owner=2))
        ]

    found = tacit.launch(program)[0]
    for mine, plain in zip(found, trained(copy.deepcopy(model), x, y), strict=True):
        assert torch.allclose(mine, plain, rtol=5e-3, atol=2e-3)


@pytest.mark.parametrize("largest", [0.5, 100.0])
def test_clipping(largest: float) -> None:
    gradients = [torch.randn(4, 3), torch.randn(5) * 3]

    def clipped(parameters: list[torch.Tensor], which: str) -> Any:
        if which.startswith("norm"):
            return torch.nn.utils.clip_grad_norm_(
                parameters, largest, foreach=which == "norm of a list"
            )
        return torch.nn.utils.clip_grad_value_(parameters, largest)

    def program(which: str) -> tuple[Any, list[torch.Tensor]]:
        parameters = [
            tacit.share(torch.zeros(each.shape), owner=0).requires_grad_() for each in gradients
        ]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = tacit.share(gradient, owner=1)
        norm = clipped(parameters, which)
        return norm if norm is None else norm.reveal(), [each.grad.reveal() for each in parameters]

    for which in ("norm", "norm of a list", "value"):
        plain = [torch.zeros(each.shape, requires_grad=True) for each in gradients]
        for parameter, gradient in zip(plain, gradients, strict=True):
            parameter.grad = gradient.clone()
        norm = clipped(plain, which)
        found_norm, found = tacit.launch(program, which)[0]
        if norm is not None:
            assert torch.allclose(found_norm, norm, rtol=2e-3)
        for mine, parameter in zip(found, plain, strict=True):
            assert torch.allclose(mine, parameter.grad, rtol=5e-3, atol=1e-3)


@pytest.mark.parametrize(("protocol", "parties"), [("replicated", 3), ("additive", 2)])
def test_exploding_gradients_are_clipped_as_exactly_as_others(protocol: str, parties: int) -> None:
    """The clipping factor may be less than a unit of 2^−16.

    Gradients that are short enough, or have no limit, stay unchanged. A norm of norms is off by at
    most five units of 2^−16, since each root is off by two.
    """
    direction = torch.linspace(-1, 1, 24) / torch.linspace(-1, 1, 24).norm()
    cases = [
        (length, largest, foreach)
        for length in (0.0, 0.01, 1.0, 1e2, 1e4, 1e6)
        for largest, foreach in ((0.01, None), (1.0, False), (5.0, True), (math.inf, None))
    ]

    def clipped(share: Any, length: float, largest: float, foreach: bool | None) -> Any:
        parameters = [share(torch.zeros(8, 2)), share(torch.zeros(8))]
        for parameter, part in zip(parameters, (direction * length).split([16, 8]), strict=True):
            parameter.requires_grad_().grad = share(part.reshape(parameter.shape))
        norm = torch.nn.utils.clip_grad_norm_(parameters, largest, foreach=foreach)
        # Clip again by the given norm, with PyTorch's separate function.
        torch.nn.utils.clip_grads_with_norm_(parameters, 2 * largest, norm, foreach)
        return [each.grad for each in parameters]

    def program() -> list[torch.Tensor]:
        share = functools.partial(tacit.share, owner=0, scale=20)
        return [
            torch.cat([each.reveal().flatten() for each in clipped(share, *case)]) for case in cases
        ]

    source = "dealer" if protocol == "additive" else None
    found = tacit.launch(program, protocol=protocol, parties=parties, source=source)[0]
    for case, mine in zip(cases, found, strict=True):
        plain = torch.cat([each.flatten() for each in clipped(torch.clone, *case)])
        length, largest, _ = case
        # Gradients that are not shortened do not depend on the norm.
        of_norm = 5 * 2.0**-16 / length if length >= largest else 0.0
        assert torch.allclose(mine, plain, rtol=2e-3 + of_norm, atol=2.0**-18), case


def test_clipping_that_would_show_whether_a_norm_is_finite_is_refused_or_shows_nothing() -> None:
    def program() -> torch.Tensor:
        weight = tacit.share(torch.zeros(2), owner=0).requires_grad_()
        weight.grad = tacit.share(torch.tensor([3.0, 4.0]), owner=1)
        # All fixed-point numbers are finite, which is public, so the check reveals nothing.
        torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)
        return weight.grad.reveal()

    assert torch.allclose(tacit.launch(program)[0], torch.tensor([0.6, 0.8]), atol=2e-3)


def fitted(
    secretly: bool, logistic: bool, steps: int, options: dict[str, Any], magnitude: float = 1.0
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Fits a line or a logistic regression by LBFGS; returns parameters and losses."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(60, 4, generator=generator)
    y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0]) + 1 + 0.3 * torch.randn(60, generator=generator)
    y = (y > 0).float() if logistic else y * magnitude
    torch.manual_seed(0)
    model: Any = nn.Linear(4, 1)
    if secretly:
        model = tacit.share_module(model, owner=0, trainable=True)
        x, y = tacit.share(x, owner=0), tacit.share(y, owner=1)
    optimizer = torch.optim.LBFGS(model.parameters(), **options)

    def closure() -> Any:
        optimizer.zero_grad()
        found = model(x).squeeze(-1)
        if logistic:
            loss = nn.functional.binary_cross_entropy_with_logits(found, y)
            loss = loss + 0.01 * (model.weight**2).sum()
        else:
            loss = nn.functional.mse_loss(found, y)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).detach() for _ in range(steps)]
    parameters = [each.detach() for each in model.parameters()]
    if secretly:
        return [each.reveal() for each in parameters], [each.reveal() for each in losses]
    return parameters, losses


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize(
    "options",
    [{"lr": 0.5, "max_iter": 10}, {"lr": 1.0, "max_iter": 6, "max_eval": 4, "history_size": 2}],
    ids=str,
)
@pytest.mark.parametrize(("protocol", "parties"), [("plain", 2), ("replicated", 3)])
def test_lbfgs(logistic: bool, options: dict[str, Any], protocol: str, parties: int) -> None:
    steps = 2 if protocol == "plain" else 1
    mine = tacit.launch(fitted, True, logistic, steps, options, protocol=protocol, parties=parties)
    plain = fitted(False, logistic, steps, options)
    for found, exact in zip(mine[0][0], plain[0], strict=True):
        assert torch.allclose(found, exact, atol=5e-3)
    for found, exact in zip(mine[0][1], plain[1], strict=True):
        assert torch.allclose(found, exact, rtol=1e-3, atol=1e-3)


def test_lbfgs_stays_where_it_has_arrived() -> None:
    """Steps after convergence, which PyTorch does not make, change nothing."""
    options: dict[str, Any] = {"lr": 1.0, "max_iter": 30}
    found = tacit.launch(fitted, True, False, 2, options, protocol="plain", parties=2)[0][0]
    for mine, exact in zip(found, fitted(False, False, 2, options)[0], strict=True):
        assert torch.allclose(mine, exact, atol=2e-3)


def test_the_reference_tells_of_gradients_that_lbfgs_cannot_square() -> None:
    with pytest.warns(tacit.RangeWarning):
        tacit.launch(fitted, True, False, 1, {"max_iter": 2}, 2e3, protocol="plain", parties=2)
