"""Reductions at public indices, products along dimensions, strided memory, and distances."""

from typing import Any

import pytest
import torch

import tacit

X = torch.tensor([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0], [0.0, 4.0, 2.0], [-0.5, 1.0, 1.0]])
VALUES = torch.tensor(
    [[2.0, -1.0, 3.0], [-4.0, 0.5, 1.0], [1.5, 1.5, -2.0], [0.25, 8.0, 1.0], [1.0, -1.0, 0.5]]
)
INDEX = torch.tensor([[0, 3, 3], [0, 1, 3], [2, 0, 3], [0, 0, 1], [2, 1, 1]])
INTEGERS = torch.tensor([[3, -5, 2**40], [7, 11, -(2**22) - 1]])


def grouped(x: Any, values: Any) -> list[Any]:
    found = []
    for reduce in ("sum", "mean", "prod", "amax", "amin"):
        for own in (True, False):
            found.append(x.scatter_reduce(0, INDEX, values, reduce, include_self=own))
            if reduce != "sum":
                found.append(
                    x.index_reduce(1, torch.tensor([2, 0, 2]), 2 * x, reduce, include_self=own)
                )
    found += [
        x.scatter(1, INDEX[:4, :2] % 3, values, reduce="multiply"),
        x.clone().index_add_(0, INDEX[1], x[:3]),
    ]
    found += [
        torch.index_add(x, 0, INDEX[1], values[:3], alpha=-2),
        torch.fill(x, 3),
        torch.fill(x, values[0, 0]),
    ]
    return found


def multiplied(x: Any, integers: Any) -> list[Any]:
    found = [
        x.prod(),
        x.prod(0, keepdim=True),
        x.cumprod(1),
        integers.prod(),
        integers.cumprod(0),
        x[:, :0].prod(1),
    ]
    y = x.detach().clone().requires_grad_()
    (y.prod(1).sum() + y.prod()).backward()
    return [*found, y.grad]


def integers_grouped(x: Any, values: Any) -> list[Any]:
    index = torch.tensor([[0, 1, 1], [0, 0, 1]])
    return [
        x.scatter_reduce(0, index, values, reduce) for reduce in ("sum", "prod", "amax", "amin")
    ]


def strided(x: Any) -> list[Any]:
    view = torch.as_strided(x.clone(), (2, 3), (1, 4), 1)
    written = x.clone()
    torch.as_strided(written, (4,), (3,)).zero_()
    return [view, written, x.as_strided_scatter(x[0, :2], (2,), (5,), 3)]


def distant(x: Any, values: Any) -> list[Any]:
    y = x.detach().clone().requires_grad_()
    (torch.cdist(y, values).sum() + torch.cdist(values, y, 1.0).sum()).backward()
    return [torch.cdist(x, values), torch.nn.functional.pdist(x, 1.0), y.grad]


@pytest.mark.parametrize("protocol", ["plain", "replicated", "additive"])
def test_as_on_plain_tensors(protocol: str) -> None:
    def program() -> list[torch.Tensor]:
        x, values = tacit.share(X, owner=0), tacit.share(VALUES, owner=1)
        found = [*grouped(x, values), *grouped(x, VALUES), *grouped(X, values)[:-5], *strided(x)]
        integers = tacit.share(INTEGERS, owner=0)
        found += [*multiplied(x, integers), *distant(x, values)]
        found += [*integers_grouped(INTEGERS, integers), *integers_grouped(integers, INTEGERS)]
        return [v.reveal() if isinstance(v, tacit.SecretTensor) else v for v in found]

    more = {"parties": 2, "source": "dealer"} if protocol == "additive" else {}
    plain = [
        *grouped(X, VALUES) * 2,
        *grouped(X, VALUES)[:-5],
        *strided(X),
        *multiplied(X, INTEGERS),
    ]
    plain += [*distant(X, VALUES), *integers_grouped(INTEGERS, INTEGERS) * 2]
    for at, (mine, theirs) in enumerate(
        zip(tacit.launch(program, protocol=protocol, **more)[0], plain, strict=True)
    ):
        assert mine.dtype == theirs.dtype
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-3), (at, mine, theirs)


def test_what_was_not_shared_is_not_read() -> None:
    def program() -> None:
        x = tacit.share(X, owner=0)
        with pytest.raises(tacit.UnsupportedOperatorError, match="memory of a view"):
            x[1:].as_strided((2, 2), (1, 2))
        with pytest.raises(tacit.UnsupportedOperatorError, match="beyond what was shared"):
            x.as_strided((2, 2), (1, 11), 1)

    tacit.launch(program, protocol="plain")


def test_the_gradient_of_products_so_far_may_meet_zeros() -> None:
    x = torch.tensor([1.0, 0.0, 3.0, 0.0, 2.0])

    def gradient(x: Any) -> Any:
        x.requires_grad_()
        x.cumprod(0).sum().backward()
        return x.grad

    found = tacit.launch(
        lambda: gradient(tacit.share(x, owner=0)).reveal(), protocol="plain", parties=2
    )[0]
    assert torch.allclose(found, gradient(x.clone()), atol=1e-3)
