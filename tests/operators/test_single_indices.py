"""A single secret number as an index reads and writes like a plain one, at every position."""

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit

X = torch.arange(24.0).reshape(2, 3, 4) / 4
V = torch.tensor([10.0, -20.0, 30.0, 40.0])

#: Functions of a tensor of shape (2, 3, 4) and the numbers 1 and 2.
READ: dict[str, Callable[[Any, Any, Any], Any]] = {
    "first": lambda x, i, _: x[i],
    "in the middle": lambda x, _, j: x[:, j],
    "last": lambda x, i, _: x[..., i],
    "two": lambda x, i, j: x[i, j],
    "apart": lambda x, i, j: x[i, :, j],
    "all three": lambda x, i, j: x[i, j, j],
    "beside a range": lambda x, i, _: x[:, i, 1:3],
    "beside a list": lambda x, i, _: x[0, i, [0, 2]],
    "behind a list": lambda x, i, _: x[[0, 1], :, i],
    "behind a mask": lambda x, i, _: x[torch.ones(2, 3).bool(), i],
    "beside a new dimension": lambda x, i, j: x[i, None, ..., j],
    "from the end": lambda x, i, _: x[-i],
    "of a largest": lambda x, _i, _j: x[x.sum((1, 2)).argmax()],
}


def write(
    index: Callable[[Any, Any], Any], value: Callable[[Any], Any]
) -> Callable[[Any, Any, Any], Any]:
    def written(x: Any, i: Any, j: Any) -> Any:
        out = x.clone()
        out[index(i, j)] = value(x)
        return out

    return written


def changed(x: Any, i: Any, j: Any) -> Any:
    out = x + 0 * i
    out[i] += 2
    out[:, j] *= 3
    return out


WRITTEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a number": write(lambda i, _j: i, lambda _x: 5.0),
    "a number at three": write(lambda i, j: (i, j, i), lambda _x: 5.0),
    "a secret at three": write(lambda i, j: (i, j, i), lambda x: x[0, 0, 3]),
    "a slice": write(lambda i, _j: i, lambda x: x[0]),
    "a row": write(lambda i, j: (i, j), lambda _x: V),
    "in the middle": write(lambda i, _j: (slice(None), i), lambda x: x[:, 0] + V),
    "last": write(lambda _i, j: (..., j), lambda x: x[..., 0]),
    "apart": write(lambda i, j: (i, slice(None), j), lambda _x: V[:3]),
    "beside an integer": write(lambda i, _j: (0, i, slice(1, 3)), lambda _x: V[:2]),
    "beside a list": write(lambda i, _j: (slice(None), i, [0, 2]), lambda _x: V[:2]),
    "beside a new dimension": write(lambda i, _j: (None, i), lambda x: x[:1]),
    "in place": changed,
}


@pytest.mark.parametrize("is_secret", [True, False], ids=["of a secret", "of a plain"])
def test_a_single_secret_number_is_an_index(is_secret: bool) -> None:
    programs = {("read", name): each for name, each in READ.items()}
    programs |= {("written", name): each for name, each in WRITTEN.items()}

    def program() -> Any:
        i, j = (
            tacit.share(torch.tensor(1), owner=0),
            tacit.share(torch.tensor(2, dtype=torch.int32), owner=1),
        )
        x = tacit.share(X, owner=0) if is_secret else X
        found = {}
        for name, each in programs.items():
            result = each(x, i, j)
            found[name] = result.reveal() if isinstance(result, tacit.SecretTensor) else result
        return found

    for name, found in tacit.launch(program)[0].items():
        expected = programs[name](X, torch.tensor(1), torch.tensor(2))
        assert found.shape == expected.shape, name
        assert (found - expected).abs().max() < 1e-3, name


def test_gradients_go_through_it() -> None:
    plain = X.clone().requires_grad_()
    plain[1, 2].square().sum().backward()

    def program() -> torch.Tensor:
        x = tacit.share(X, owner=0).requires_grad_()
        i = tacit.share(torch.tensor(1), owner=0)
        x[i, i + 1].square().sum().backward()
        return x.grad.reveal()

    assert (tacit.launch(program)[0] - plain.grad).abs().max() < 1e-2


def test_bytes_are_a_condition() -> None:
    mask, x = torch.tensor([1, 0, 128, 255], dtype=torch.uint8), torch.tensor([1.0, -2.0, 3.0, 4.0])

    def program() -> list[torch.Tensor]:
        secret, condition = tacit.share(x, owner=0), tacit.share(mask, owner=1)
        chosen = [torch.where(each, secret, 0.0) for each in (mask, condition)]
        # A value that wraps around to zero counts as false as well.
        chosen += [torch.where(condition * 2, secret, x - 1), torch.where(condition, 1, 2)]
        return [each.reveal() for each in chosen]

    expected = [torch.where(mask.bool(), x, 0.0)] * 2
    expected += [torch.where((mask * 2).bool(), x, x - 1), torch.where(mask.bool(), 1, 2)]
    for found, wanted in zip(tacit.launch(program)[0], expected, strict=True):
        assert torch.equal(found, wanted)


def test_that_numbers_are_finite_is_known() -> None:
    def program() -> None:
        x = tacit.share(torch.tensor([1.0, 2.0]), owner=0)
        for function in (torch.isfinite, torch.isreal):
            assert bool(function(x).all())
        for function in (torch.isnan, torch.isinf, torch.isposinf, torch.isneginf):
            assert not bool(function(x).any())
        assert bool(x.isfinite().all())

    tacit.launch(program, protocol="plain")


def _written_one_by_one() -> list[torch.Tensor]:
    x = tacit.share(X2, owner=0)
    made, plain, turned = torch.zeros_like(x), torch.zeros(2, 3), x.clone()
    for i in range(2):
        for j in range(3):
            made[i, j] = x[i, j] * 2
            plain[i, j] = x[i, j] * 2
    turned[0, :] = turned[1, 1]
    turned[turned.isnan()] = x[0, 0]
    return [each.reveal() for each in (made, plain, turned)]  # type: ignore[attr-defined]


X2 = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.5, -6.0]])


def test_single_numbers_are_written_one_by_one() -> None:
    turned = X2.clone()
    turned[0, :] = turned[1, 1]
    for setting in ({"protocol": "plain", "parties": 2}, {"protocol": "replicated"}):
        found = tacit.launch(_written_one_by_one, **setting)[0]
        for mine, wanted in zip(found, (X2 * 2, X2 * 2, turned), strict=True):
            assert torch.equal(mine, wanted)


def test_what_somebody_refers_to_weakly_is_refused_in_words() -> None:
    def program() -> str:
        plain, x = torch.zeros(2, 3), tacit.share(X2, owner=0)
        reference = weakref.ref(plain)
        with pytest.raises(tacit.MisuseError) as raised:
            plain[0] = x[0]
        assert reference() is plain
        return str(raised.value)

    assert "zeros_like" in tacit.launch(program, protocol="plain", parties=2)[0]


def test_plain_tensors_have_pytorchs_own_methods_outside_of_sessions() -> None:
    names = ("__getitem__", "__setitem__", "__iadd__", "__itruediv__", "data")
    own = torch.Tensor.__itruediv__

    def methods() -> list[Any]:
        return [vars(torch.Tensor).get(name) for name in names]

    before = methods()
    assert before == [None, None, None, own, None]
    within = tacit.launch(lambda: [each is not None for each in methods()])[0]
    assert all(within)
    assert methods() == before
