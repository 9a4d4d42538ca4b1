"""Secret tensors share memory exactly where PyTorch's schemas say so.

Writes are visible through views and nowhere else. Integers of few bits wrap around. Secret tensors
refuse operations on memory, which they lack.
"""

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import pytest
import torch
from torch import nn

import tacit


def everywhere(program: Callable[..., Any], *args: Any) -> Any:
    """Runs a program on replicated shares and returns the result of party 0."""
    return tacit.launch(program, *args)[0]


def shown(value: Any) -> Any:
    """Returns a value, revealed if it is secret."""
    return value.reveal() if isinstance(value, tacit.SecretTensor) else value


#: Functions of a tensor of shape (1, 4). Some return views of it, some do not.
DERIVED: dict[str, Callable[[Any], Any]] = {
    "amax of one row": lambda x: x.amax(0),
    "amin of one row": lambda x: x.amin(0),
    "max of one row": lambda x: x.max(0).values,
    "sum of one row": lambda x: x.sum(0),
    "mean of one row": lambda x: x.mean(0),
    "first power": lambda x: x**1,
    "times one": lambda x: x * 1,
    "plus nothing": lambda x: x + 0,
    "same dtype": lambda x: x.to(torch.float32),
    "another dtype": lambda x: x.double().float(),
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "view": lambda x: x.view(4),
    "reshape": lambda x: x.reshape(2, 2),
    "reshape of a transpose": lambda x: x.reshape(2, 2).t().reshape(4),
    "transpose": lambda x: x.t(),
    "contiguous": lambda x: x.contiguous(),
    "contiguous transpose": lambda x: x.reshape(2, 2).t().contiguous(),
    "slice": lambda x: x[:, 1:3],
    "index": lambda x: x[:, [1, 2]],
    "squeeze": lambda x: x.squeeze(),
    "diagonal": lambda x: x.reshape(2, 2).diagonal(),
    "flip": lambda x: x.flip(1),
    "cat of one": lambda x: torch.cat([x]),
    "masked fill of nothing": lambda x: x.masked_fill(torch.zeros(4, dtype=torch.bool), 1.0),
    "average pool of one": lambda x: nn.functional.avg_pool1d(x, 1),
    "max pool of one": lambda x: nn.functional.max_pool1d(x, 1),
    "dropout in evaluation": lambda x: nn.functional.dropout(x, training=False),
}


def test_writes_are_seen_through_views_and_nowhere_else() -> None:
    start = torch.tensor([[1.0, -2.0, 3.0, 4.0]])

    def steps(secret: Callable[[torch.Tensor], Any]) -> list[Any]:
        found = []
        for derive in DERIVED.values():
            x = secret(start.clone())
            derived = derive(x)
            derived.mul_(2.0)
            derived.view(-1)[0] = 9.0 if derived.is_contiguous() else 0.0
            first = shown(x).clone()
            x.add_(1.0)
            found += [first, shown(derived).clone()]
        return found

    names = [name for name in DERIVED for _ in range(2)]
    found = everywhere(lambda: steps(lambda value: tacit.share(value, owner=0)))
    for name, mine, plain in zip(names, found, steps(lambda value: value), strict=True):
        assert torch.allclose(mine, plain, atol=1e-3), name


def steps_that_view(x: Any) -> list[Any]:
    """Tries views of views, views of expanded tensors, and tensors that have no view."""
    found = []
    for make in (
        lambda: x.t().view(-1),
        lambda: x[:, :2].view(-1),
        lambda: x.expand(3, 2, 4).add_(1.0),
        lambda: x.unfold(1, 2, 2).add_(1.0),
    ):
        try:
            found.append(make())
        except RuntimeError as error:
            found.append(str(error)[:40])
    view = x.view(4, 2).view(8).view(2, 2, 2)
    view[0, 1, 1] = 7.0
    x.view(-1)[4:].mul_(-1.0)
    return [
        *found,
        x,
        view,
        x.is_contiguous(),
        x.t().is_contiguous(),
        x.t().stride(),
        x[1:].storage_offset(),
    ]


def test_what_can_be_viewed_is_as_in_pytorch() -> None:
    start = torch.arange(8.0).reshape(2, 4)

    def program() -> list[Any]:
        return [shown(value) for value in steps_that_view(tacit.share(start, owner=0))]

    for mine, plain in zip(everywhere(program), steps_that_view(start.clone()), strict=True):
        if isinstance(plain, torch.Tensor):
            assert torch.allclose(mine, plain, atol=1e-4)
        else:
            assert mine == plain


def test_data_that_are_assigned_take_their_place() -> None:
    other = torch.tensor([[1.0, 2.0], [3.0, 4.0]])

    def program() -> list[Any]:
        module = tacit.share_module(nn.Linear(2, 2, bias=False), owner=0)
        weight, x = module.weight, tacit.share(torch.eye(2), owner=1)
        before = module(x).reveal()
        weight.data = tacit.share(other, owner=0)
        assert module.weight is weight
        found = [weight.reveal(), module(x).reveal()]
        weight.data = other
        assert torch.equal(weight.reveal(), other)
        weight.data = tacit.share(torch.ones(3, 2), owner=0, scale=20)
        assert (tuple(weight.shape), weight._scale.bits) == ((3, 2), 20)
        return [*found, module(x).reveal(), before]

    weight, product, larger, _ = everywhere(program)
    assert torch.equal(weight, other)
    assert torch.allclose(product, other.t(), atol=1e-4)
    assert torch.allclose(larger, torch.ones(2, 3), atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_wrap_around(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    edges = [limits.max, limits.max - 1, limits.min, limits.min + 1, 0, 1, 100]
    if dtype == torch.int64:
        edges = [(1 << 45), -(1 << 45), 0, 1, 100, -7, 3]
    x, y = torch.tensor(edges, dtype=dtype), torch.tensor(edges[::-1], dtype=dtype)

    def steps(x: Any, y: Any) -> list[Any]:
        total, difference, product = x + y, x - y, x * y
        return [
            total,
            total > 5,
            total == y,
            difference < 0,
            difference.relu(),
            -x > x,
            torch.maximum(total, difference),
            product.bool(),
            (x * 3) >= y,
            total.argmax(),
            total.sum(),
            torch.where(total > y, total, y),
            total.to(torch.int64),
            total.float() / 4,
            total.clone().add_(y),
        ]

    def program() -> list[Any]:
        return [shown(value) for value in steps(tacit.share(x, owner=0), tacit.share(y, owner=1))]

    for at, (mine, plain) in enumerate(zip(everywhere(program), steps(x, y), strict=True)):
        assert mine.dtype == plain.dtype, at
        assert torch.allclose(mine.double(), plain.double(), rtol=1e-6), (at, mine, plain)


NEEDS_MEMORY: dict[str, Callable[[Any], Any]] = {
    "share_memory_": lambda x: x.share_memory_(),
    "module.share_memory": lambda x: nn.ParameterList([nn.Parameter(x)]).share_memory(),
    "apply_": lambda x: x.apply_(abs),
    "map_": lambda x: x.map_(torch.ones(4), max),
    "map2_": lambda x: x.map2_(torch.ones(4), torch.ones(4), max),
    "to_dlpack": lambda x: torch.utils.dlpack.to_dlpack(x),
    "from_dlpack": lambda x: torch.from_dlpack(x),
    "untyped_storage": lambda x: x.untyped_storage()[0],
    "storage": lambda x: list(x.storage()),
    "storage that is shared": lambda x: x.storage().share_memory_(),
    "set_": lambda x: x.set_(torch.ones(4)),
    "resize_": lambda x: x.resize_(100),
    "as_strided": lambda x: x.as_strided((200, 200), (1, 1)),
    "view of another dtype": lambda x: x.view(torch.int32),
    "memoryview": lambda x: memoryview(x),
}


@pytest.mark.parametrize("how", NEEDS_MEMORY)
def test_what_needs_memory_is_refused_and_does_no_harm(how: str) -> None:
    def program() -> Any:
        x = tacit.share(torch.arange(4.0), owner=0)
        with pytest.raises((tacit.MisuseError, RuntimeError, TypeError)):
            NEEDS_MEMORY[how](x)
        return (x + 1).reveal()

    assert torch.allclose(everywhere(program), torch.arange(4.0) + 1, atol=1e-4)


def data_of_a_plain_one(x: Any) -> torch.Tensor:
    """Assigns a secret tensor as the data of a plain one, which is refused."""
    plain = torch.zeros(4)
    plain.data = x
    return plain


#: Functions that read the storage of a secret tensor, directly or inside PyTorch.
NEEDS_STORAGE: dict[str, Callable[[Any], Any]] = {
    "shared": lambda x: x.untyped_storage().share_memory_(),
    "shared, of the class": lambda x: torch.Tensor.untyped_storage(x).share_memory_(),
    "under a file's name": lambda x: x.untyped_storage()._share_filename_cpu_(),
    "under a file's number": lambda x: x.untyped_storage()._share_fd_cpu_(),
    "of another dtype": lambda x: x.untyped_storage().float(),
    "as bytes": lambda x: bytes(x.untyped_storage().tolist()),
    "under a type": lambda x: torch.storage.TypedStorage(
        wrap_storage=x.untyped_storage(), dtype=torch.float32, _internal=True
    )[0],
    "in a plain tensor": lambda x: torch.empty(0).set_(x.untyped_storage()).sum(),
    "in a queue": lambda x: torch.multiprocessing.reductions.reduce_storage(x.untyped_storage()),
    "of a view": lambda x: x.view(2, 2).t().untyped_storage().share_memory_(),
    "of a copy": lambda x: copy(x).untyped_storage().share_memory_(),
    "address": lambda x: x.data_ptr(),
    "data": lambda x: data_of_a_plain_one(x) + 1,
    "data that are summed": lambda x: data_of_a_plain_one(x).sum(),
    "data beside secrets": lambda x: data_of_a_plain_one(x) + x,
    "data shown": lambda x: repr(data_of_a_plain_one(x)),
    "data as numbers": lambda x: data_of_a_plain_one(x).tolist(),
}


def test_what_reads_a_storage_is_refused_in_words() -> None:
    """Functions that read a storage raise clear errors.

    The parties run in processes of their own, since a failure would crash this process.
    """

    def program() -> tuple[dict[str, str], torch.Tensor]:
        x, found = tacit.share(torch.arange(4.0), owner=0), {}
        for name, read in NEEDS_STORAGE.items():
            try:
                found[name] = f"gave {type(read(x))}"
            except (tacit.MisuseError, RuntimeError) as error:
                found[name] = str(error)
        return found, (x + 1).reveal()

    found, after = tacit.launch(
        program, parties=2, protocol="additive", source="dealer", transport="tcp"
    )[0]
    refused = "has no memory of its own", "a secret tensor as the data of a plain one"
    assert {
        name: said for name, said in found.items() if not any(why in said for why in refused)
    } == {}
    assert torch.allclose(after, torch.arange(4.0) + 1, atol=1e-4)


def test_a_shallow_copy_shares_its_memory_and_a_deep_one_does_not() -> None:
    def steps(x: Any) -> list[Any]:
        parameter = nn.Parameter(x.clone())
        shallow, deep, weight = copy(x), deepcopy(x), copy(parameter)
        shallow.add_(1.0)
        assert isinstance(weight, nn.Parameter)
        assert not shallow.requires_grad
        assert [make(x.clone().requires_grad_()).requires_grad for make in (copy, deepcopy)] == [
            True,
            True,
        ]
        weight.data.mul_(2.0)
        return [shown(value) for value in (x, shallow, deep, parameter.detach(), weight.detach())]

    start = torch.arange(4.0)
    found = everywhere(lambda: steps(tacit.share(start, owner=0)))
    for mine, plain in zip(found, steps(start.clone()), strict=True):
        assert torch.allclose(mine, plain, atol=1e-4)


def test_what_would_leave_its_process_or_be_copied_with_its_session_is_refused() -> None:
    def program() -> None:
        x = tacit.share(torch.arange(4.0), owner=0)
        with pytest.raises(tacit.MisuseError, match=r"is not pickled; tacit\.save_checkpoint"):
            torch.multiprocessing.get_context("fork").SimpleQueue().put(x)
        with pytest.raises(
            tacit.MisuseError, match=r"torch\.compile asks for the copy, do not use it"
        ):
            deepcopy(tacit.session())

    everywhere(program)


#: Functions of plain or secret tensors that write into a secret target of shape (2, 2).
INTO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "mul": lambda x, out: torch.mul(x, 0.5, out=out),
    "mm": lambda x, out: torch.mm(x, x, out=out),
    "bmm": lambda x, out: torch.bmm(x.unsqueeze(0), x.unsqueeze(0), out=out.unsqueeze(0)),
    "addmm": lambda x, out: torch.addmm(x, x, x, out=out),
    "exp": lambda x, out: torch.exp(x, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "cat": lambda x, out: torch.cat([x[:1], x[1:]], out=out),
    "stack": lambda x, out: torch.stack([x[0], x[1]], out=out),
    "where": lambda x, out: torch.where(x > 0.5, x, -x, out=out),
    "sum along a dimension": lambda x, out: torch.sum(x, 0, out=out[0]),
    "mean along a dimension": lambda x, out: torch.mean(x, 1, out=out[1]),
    "amax": lambda x, out: torch.amax(x, 0, out=out[0]),
    "index_select": lambda x, out: torch.index_select(x, 0, torch.tensor([1, 0]), out=out),
    "gather": lambda x, out: torch.gather(x, 0, torch.tensor([[1, 0], [0, 0]]), out=out),
    "dot": lambda x, out: torch.dot(x[0], x[1], out=out[0, 0]),
    "histc": lambda x, out: torch.histc(x, 4, out=out.view(4)),
}


@pytest.mark.parametrize("what", INTO)
def test_results_go_into_secret_targets(what: str) -> None:
    values, into = torch.tensor([[0.25, 1.5], [-0.5, 0.75]]), INTO[what]
    expected = torch.full((2, 2), 7.0)
    into(values, expected)

    def program() -> None:
        for x in (values, tacit.share(values, owner=0)):
            target = tacit.share(torch.full((2, 2), 7.0), owner=1)
            same = target
            into(x, target)
            assert torch.allclose(target.reveal(), expected, atol=2.0**-12), type(x)
            assert target is same

    tacit.launch(program)


def test_targets_that_do_not_fit_are_refused_in_our_words() -> None:
    values = torch.ones(3)

    def program() -> None:
        x, target = tacit.share(values, owner=0), tacit.share(values, owner=0)
        refused: dict[str, Callable[[], Any]] = {
            "out= that is plain": lambda: torch.add(x, x, out=torch.ones(3)),
            "out= of another shape": lambda: torch.add(values[:2], values[:2], out=target),
            "filling a plain tensor with a secret": lambda: torch.ones(3).fill_(x[0]),
            # Each party would draw its own numbers.
            "aten.normal.Tensor_float_out": lambda: torch.normal(values, 1.0, out=target),
            "aten.bernoulli.out": lambda: torch.bernoulli(values, out=target),
        }
        for what, wrong in refused.items():
            with pytest.raises(tacit.UnsupportedOperatorError, match=what):
                wrong()
        assert torch.equal(target.reveal(), values)

    tacit.launch(program, protocol="plain", parties=2)
