"""Common first mistakes: they work, or the error names a remedy, which these tests follow."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit
from saying import said_twice

X = torch.tensor([1.0, 3.5, -2.0])
ARRAY = np.array([2.0, 0.5, -1.0])


def share(values: torch.Tensor) -> Any:
    return tacit.share(values, owner=0)


#: Operations of arrays with tensors.
ARRAYS: dict[str, Callable[[Any], Any]] = {
    "on the left of *": lambda x: ARRAY * x,
    "on the left of +": lambda x: ARRAY + x,
    "on the left of -": lambda x: ARRAY - x,
    "on the left of /": lambda x: ARRAY / x,
    "on the left of @": lambda x: np.ones((2, 3)) @ x,
    "on the left of <": lambda x: x > ARRAY,
    "on the left of ==": lambda x: x == ARRAY,
    "on the left of **": lambda x: ARRAY.round() ** 2 * x,
    "on the right of *": lambda x: x * ARRAY,
    "on the right of +": lambda x: x + ARRAY,
    "on the right of @": lambda x: x @ np.ones((3, 2)),
    "a number of NumPy's": lambda x: np.float32(2.0) * x - np.int64(3),
    "a function of it": lambda x: np.exp(x / 2),
    "a maximum": lambda x: np.maximum(x, ARRAY),
}


@pytest.mark.parametrize("protocol", ["replicated"])
def test_arrays_meet_secret_tensors_as_public_ones(protocol: str) -> None:
    found = tacit.launch(
        lambda: {name: each(share(X)).reveal() for name, each in ARRAYS.items()}, protocol=protocol
    )[0]
    for name, each in ARRAYS.items():
        expected = torch.as_tensor(each(X.numpy()))
        assert found[name].shape == expected.shape, name
        assert (found[name].double() - expected.double()).abs().max() < 1e-2, name


#: Binary functions of NumPy that PyTorch has too, with their dtypes.
FUNCTIONS: dict[str, tuple[torch.dtype, ...]] = {
    **dict.fromkeys(
        (
            "add",
            "subtract",
            "multiply",
            "divide",
            "maximum",
            "minimum",
            "fmax",
            "fmin",
            "equal",
            "not_equal",
        )
        + (
            "greater",
            "greater_equal",
            "less",
            "less_equal",
            "remainder",
            "fmod",
            "floor_divide",
            "power",
        )
        + ("hypot", "logaddexp", "logical_and", "logical_or", "logical_xor", "arctan2", "copysign"),
        (torch.float32, torch.int64),
    ),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (torch.int64, torch.bool)),
    **dict.fromkeys(("left_shift", "right_shift"), (torch.int64,)),
}

#: Unary functions of NumPy that PyTorch has too.
OF_ONE = (
    "absolute",
    "fabs",
    "negative",
    "rint",
    "floor",
    "sign",
    "square",
    "degrees",
    "radians",
    "conjugate",
)


def test_functions_of_numpy_meet_numbers_and_arrays_on_both_sides() -> None:
    values = torch.tensor([3.0, 1.0, 4.0])

    def applied(function: Any, own: Any) -> list[Any]:
        number = True if own.dtype in (torch.bool, np.bool_) else 2
        others = [number, np.asarray(number)[()], np.full(3, number)]
        return [function(own, other) for other in others] + [
            function(other, own) for other in others
        ]

    def program() -> Any:
        both = {
            (name, dtype): [
                each.reveal() for each in applied(getattr(np, name), share(values.to(dtype)))
            ]
            for name, dtypes in FUNCTIONS.items()
            for dtype in dtypes
        }
        return both, {name: getattr(np, name)(share(values - 2.25)).reveal() for name in OF_ONE}

    both, of_one = tacit.launch(program, protocol="plain", parties=2)[0]
    for (name, dtype), found in both.items():
        for one, other in zip(
            found, applied(getattr(np, name), values.to(dtype).numpy()), strict=True
        ):
            assert (one.double() - torch.as_tensor(other).double()).abs().max() < 2e-3, (
                name,
                dtype,
            )
    for name, found in of_one.items():
        wanted = torch.as_tensor(getattr(np, name)((values - 2.25).numpy()))
        assert (found - wanted).abs().max() < 2e-2, name


def test_whatever_numpy_has_is_done_or_refused_in_our_words() -> None:
    functions = [
        each for each in vars(np).values() if isinstance(each, np.ufunc) and each is not np.matmul
    ]
    tensors = [torch.tensor([3.0, 1.0]), torch.tensor([3, 1]), torch.tensor([True, False])]

    def program() -> list[str]:
        said = []
        for own in map(share, tensors):
            for function in functions:
                for operands in (
                    [[own]] if function.nin == 1 else [[own, 2], [2.0, own], [own, own]]
                ):
                    try:
                        function(*operands)
                    except tacit.MisuseError as error:
                        said.append(str(error))
        return said

    said = tacit.launch(program, protocol="plain", parties=2)[0]
    assert said
    assert not any(map(said_twice, said))


def test_truth_values_are_numbers_where_functions_of_numpy_ask_for_some() -> None:
    truths = torch.tensor([True, False])
    with pytest.raises(
        tacit.UnsupportedOperatorError, match=r"np\.positive of torch\.bool .*; .* x\.long\(\)"
    ):
        tacit.launch(lambda: np.positive(share(truths)))
    assert tacit.launch(lambda: np.positive(share(truths).long()).reveal())[0].tolist() == [1, 0]
    with pytest.raises(
        tacit.UnsupportedOperatorError, match=r"np\.cbrt .*; write it of functions that torch has"
    ):
        tacit.launch(lambda: np.cbrt(share(X)))


def add_to_an_array() -> None:
    array = ARRAY.copy()
    array += share(X)


def untrained(**how: bool) -> None:
    layer = tacit.share_module(nn.Linear(3, 1), owner=0, **how)
    torch.optim.SGD(layer.parameters(), 0.1)
    layer(share(X)).sum().backward()


def untrained_step(**how: bool) -> torch.Tensor:
    """Takes a step on data with gradients, so that the loss has some; returns the bias's change."""
    layer = tacit.share_module(nn.Linear(3, 1), owner=0, **how)
    before = layer.bias.reveal()
    optimizer = torch.optim.SGD(layer.parameters(), 0.125)
    layer(share(X.clone().requires_grad_())).sum().backward()
    optimizer.step()
    return before - layer.bias.reveal()


#: Mistakes and their error messages.
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "into an array": (add_to_an_array, r"torch\.as_tensor\(array\) \+ x"),
    "a sum of NumPy's": (lambda: np.sum(share(X)), r"torch\.sum takes it"),
    "rows of NumPy's": (lambda: np.concatenate([share(X), ARRAY]), r"torch\.concatenate takes it"),
    "a module": (
        lambda: share(nn.Linear(2, 2)),
        r"share\(\) takes .* not Linear; tacit\.share_module\(module",
    ),
    "a dict": (lambda: share({"a": X}), r"not dict; share its tensors one by one"),
    "a list of tensors": (
        lambda: share([X, X]),
        r"not list; share its tensors one by one.* torch\.stack",
    ),
    "a list of numbers": (lambda: share([1.0, 2.0]), r"not list; torch\.as_tensor makes one$"),
    "an array": (lambda: share(ARRAY), r"not ndarray; torch\.as_tensor makes one$"),
    "a data set": (
        lambda: share(torch.utils.data.TensorDataset(X)),
        r"not TensorDataset; share the tensors that it holds",
    ),
    "no module": (
        lambda: tacit.share_module(
            nn.Linear(2, 2) if tacit.session().party == 1 else None, owner=1
        ),
        r"share_module\(None\): every party passes .* party 1's weights alone .*Net\(\), "
        r"owner=1\), in every",
    ),
    "a tensor as a module": (
        lambda: tacit.share_module(X, owner=0),
        r"not a tensor; tacit\.share\(tensor",
    ),
    "a class": (
        lambda: tacit.share_module(nn.Linear, owner=0),
        r"not the class Linear; make one: Linear\(",
    ),
    "weights": (
        lambda: tacit.share_module(nn.Linear(2, 2).state_dict(), owner=0),
        r"not a dict; load the weights .*load_state_dict",
    ),
    "several modules": (
        lambda: tacit.share_module([nn.Linear(2, 2)], owner=0),
        r"not a list; .*ModuleList",
    ),
    "parameters": (
        lambda: tacit.share_module(nn.Linear(2, 2).parameters(), owner=0),
        "not a generator; pass",
    ),
    "a module that is not trainable": (
        untrained,
        r"^party \d: backward\(\) of .* trainable=True\)",
    ),
    "a step of one": (untrained_step, r"no parameter of this optimiser .* trainable=True\)"),
    "a list at a secret index": (
        lambda: [X, X * 2][share(torch.tensor(1))],
        r"of a list torch\.stack\(values\)\[i\]",
    ),
    "data without gradients": (
        lambda: (share(X) * 2).sum().backward(),
        r"call requires_grad_\(\) on the",
    ),
}


@pytest.mark.parametrize("name", [*MISTAKES])
def test_a_mistake_is_told_with_what_works(name: str) -> None:
    program, said = MISTAKES[name]
    with pytest.raises(tacit.MisuseError, match=said) as caught:
        tacit.launch(program, timeout=5)
    assert not said_twice(str(caught.value))


def test_what_is_told_works() -> None:
    def program() -> None:
        party = tacit.session().party
        assert torch.equal((torch.as_tensor(ARRAY) + share(X)).reveal(), torch.as_tensor(ARRAY) + X)
        assert abs(torch.sum(share(X)).reveal() - X.sum()) < 1e-3
        rows = torch.concatenate([share(X), torch.as_tensor(ARRAY, dtype=torch.float32)])
        assert torch.equal(rows.reveal(), torch.cat([X, torch.as_tensor(ARRAY)]).float())
        data = {"a": X, "b": X * 2} if party == 0 else {}
        both = {name: tacit.share(data.get(name), owner=0) for name in ("a", "b")}
        assert torch.equal(both["b"].reveal(), X * 2)
        assert share(torch.stack([X, X])).reveal().shape == (2, 3)
        assert torch.equal(share(torch.as_tensor(ARRAY)).reveal(), torch.as_tensor(ARRAY))
        layer = tacit.share_module(nn.Linear(3, 2), owner=1)
        weights = {
            name: torch.ones_like(weight.reveal()) for name, weight in layer.state_dict().items()
        }
        other = nn.Linear(3, 2)
        other.load_state_dict(weights)
        tacit.share_module(other, owner=0)
        tacit.share_module(nn.ModuleList([nn.Linear(2, 2)]), owner=0)
        untrained(trainable=True)
        assert untrained_step(trainable=True) == 0.125
        assert torch.equal(torch.stack([X, X * 2])[share(torch.tensor(1))].reveal(), X * 2)
        x = share(X).requires_grad_()
        (x * 2).sum().backward()
        assert x.grad.reveal().tolist() == [2.0] * 3

    tacit.launch(program)


def test_what_requires_gradients_does_so_when_it_is_shared() -> None:
    def program() -> None:
        mine = tacit.session().party == 1
        x = tacit.share(X.clone().requires_grad_() if mine else None, owner=1)
        (x * x).sum().backward()
        assert (x.grad.reveal() - 2 * X).abs().max() < 1e-3
        weight = tacit.share(nn.Parameter(X) if mine else None, owner=1)
        assert weight.requires_grad
        assert weight.is_leaf
        assert not tacit.share(X if mine else None, owner=1).requires_grad
        # A computed tensor is shared without gradients.
        assert not tacit.share(
            X.clone().requires_grad_() * 2 if mine else None, owner=1
        ).requires_grad

    tacit.launch(program)


#: Uses of None in place of another party's labels.
NONE: dict[str, Callable[[Any], Any]] = {
    "a mean square": lambda x: functional.mse_loss(x, None),
    "a cross entropy": lambda x: functional.cross_entropy(x[None], None),
    "logits": lambda x: functional.binary_cross_entropy_with_logits(x, None),
    "arithmetic": lambda x: x - None,
}


@pytest.mark.parametrize("name", [*NONE])
def test_labels_that_are_none_are_to_be_shared(name: str) -> None:
    with pytest.raises((TypeError, AttributeError), match="NoneType") as caught:
        tacit.launch(lambda: NONE[name](share(X)), protocol="plain")
    assert any("labels = tacit.share(labels, owner=...)" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_modules_of_other_floating_dtypes_keep_them(dtype: torch.dtype) -> None:
    """The dtype stays the same before and after sharing, on data of this dtype, as in PyTorch."""
    data, layers = torch.randn(4, 2, 3), {"LSTM": nn.LSTM(3, 2), "Conv1d": nn.Conv1d(2, 3, 2)}

    def program() -> None:
        x = tacit.share(data.to(dtype), owner=1)
        for make in (nn.LSTM, nn.Conv1d):
            layer = layers[make.__name__]
            for shared in (
                tacit.share_module(deepcopy(layer).to(dtype), owner=0, trainable=True),
                tacit.share_module(deepcopy(layer), owner=0, trainable=True).to(dtype),
            ):
                found = shared(x)
                found = found[0] if isinstance(found, tuple) else found
                found.square().mean().backward()
                assert found.dtype == dtype
                assert all(parameter.grad.dtype == dtype for parameter in shared.parameters())
                plain = layer(data)
                plain = plain[0] if isinstance(plain, tuple) else plain
                assert (found.reveal().float() - plain.detach()).abs().max() < 2e-2

    tacit.launch(program, protocol="plain", parties=2)


def test_modules_of_two_dtypes_differ() -> None:
    def program() -> None:
        layer = nn.Linear(2, 2)
        tacit.share_module(layer.double() if tacit.session().party else layer, owner=0)

    said = r"the modules differ: .*weight of shape \(2, 2\) and torch\.float64"
    with pytest.raises(tacit.MisuseError, match=said):
        tacit.launch(program, protocol="plain", parties=2, timeout=5)
