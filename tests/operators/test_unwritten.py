"""Tensors created like a secret tensor are public until a secret is written into them.

From then on they are secret. They stay the same objects, their views become secret too, and their
gradients match PyTorch's.
"""

import io
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tacit

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
ROWS = torch.tensor([[0, 0, 0], [0, 0, 0]])


def written_later(x: Any) -> Any:
    out = torch.zeros_like(x)
    row, turned, flat = out[0], out.t(), out.view(-1)
    out[:, 1] = x[:, 0]
    out[0] += x[1]
    return out + flat.reshape(2, 3) + turned.t() + row


def outputs_of_steps(x: Any) -> Any:
    outputs = x.new_zeros(2, 3)
    for step in range(2):
        outputs[step] = x[step] * (step + 1)
    return outputs


def derived(x: Any) -> Any:
    """Writes into a tensor that was computed from public tensors alone."""
    out = (torch.ones_like(x).double() + 1).float().repeat(2, 1).clone()
    out[1:3] = x
    return out


def grown(x: Any) -> Any:
    out = x.new_zeros(3)
    out.unsqueeze_(0)
    out += x[:1]
    return out


def added(x: Any) -> Any:
    total = x.new_zeros(())
    for row in x:
        total += row.sum()
    return total


def several(x: Any) -> Any:
    states = [torch.zeros_like(row) for row in x]
    torch._foreach_add_(states, list(x))
    return torch.stack(states)


def out_of(x: Any) -> Any:
    out = torch.zeros_like(x)
    torch.mul(x, 2.0, out=out)
    return out


#: Programs that write secrets and have gradients.
WRITES: dict[str, Callable[[Any], Any]] = {
    "through views, before and after": written_later,
    "step by step": outputs_of_steps,
    "into what was derived": derived,
    "after it was reshaped in place": grown,
    "a running sum": added,
    "scatter_add_": lambda x: x.new_zeros(1, 3).scatter_add_(0, ROWS, x),
    "scatter_reduce_": lambda x: x.new_zeros(1, 3).scatter_reduce_(0, ROWS, x, "sum"),
    "index_add_": lambda x: x.new_zeros(4, 3).index_add_(0, torch.tensor([3, 1]), x),
    "index_copy_": lambda x: x.new_ones(4, 3).index_copy_(0, torch.tensor([3, 1]), x),
    "index_put_": lambda x: torch.zeros_like(x).index_put_((torch.tensor([1]),), x[0]),
    "copy_": lambda x: torch.full_like(x, 2.0).copy_(x),
    "a mask": lambda x: torch.full_like(x, 2.0).masked_fill_(
        torch.tensor([True, False, True]), x[0, 0]
    ),
    "add_ with alpha": lambda x: torch.ones_like(x).add_(x, alpha=2),
    "addmm_": lambda x: x.new_ones(2, 2).addmm_(x, x.t()),
    "where on the left": lambda x: torch.where(x > 0, x, torch.zeros_like(x)),
    "infinities that are replaced": lambda x: torch.full_like(x, -torch.inf).copy_(x),
    "fill_diagonal_ of what was written": lambda x: (
        x.new_zeros(3, 3).add_(x[0]).fill_diagonal_(0.0)
    ),
}


@pytest.mark.parametrize("name", [*WRITES])
def test_a_public_tensor_takes_secrets_and_gives_their_gradients(name: str) -> None:
    program = WRITES[name]
    plain = X.clone().requires_grad_()
    expected = program(plain)
    expected.square().sum().backward()

    def secretly() -> tuple[torch.Tensor, torch.Tensor]:
        x = tacit.share(X, owner=0).requires_grad_()
        result = program(x)
        assert isinstance(result, tacit.SecretTensor)
        result.square().sum().backward()
        return result.reveal(), x.grad.reveal()

    result, gradient = tacit.launch(secretly)[0]
    assert (result - expected).abs().max() < 1e-3
    assert (gradient - plain.grad).abs().max() < 5e-3


@pytest.mark.parametrize("program", [several, out_of])
def test_lists_and_outs_take_secrets_as_well(program: Callable[[Any], Any]) -> None:
    found = tacit.launch(lambda: program(tacit.share(X, owner=0)).reveal())[0]
    assert (found - program(X)).abs().max() < 1e-3


KINDS: dict[str, Callable[[Any], Any]] = {
    "booleans": lambda x: torch.zeros_like(x, dtype=torch.bool).logical_or_(x > 0),
    "integers": lambda x: torch.zeros_like(x, dtype=torch.int64).add_((x > 0).long()),
    "a mask at secret places": lambda x: torch.zeros_like(x).scatter_(
        1, x.argmax(1, keepdim=True), 1.0
    ),
    "a secret row": lambda x: torch.zeros_like(x).index_put_((x.sum(1).argmax(),), torch.ones(3)),
    "by a secret mask": lambda x: torch.zeros_like(x).masked_fill_(x > 0, 5.0),
}


@pytest.mark.parametrize("name", [*KINDS])
def test_of_every_kind(name: str) -> None:
    program = KINDS[name]
    found = tacit.launch(lambda: program(tacit.share(X, owner=0)).reveal())[0]
    assert torch.equal(found, program(X))
    assert found.dtype == program(X).dtype


def test_until_then_it_is_plain_in_all_that_it_does() -> None:
    def program() -> None:
        x = tacit.share(X, owner=0)
        ones = torch.ones_like(x)
        assert not isinstance(ones, tacit.SecretTensor)
        assert bool(ones.all())
        assert ones.sum().item() == 6
        assert ones.tolist() == [[1.0] * 3] * 2
        assert np.asarray(ones).sum() == ones.numpy().sum() == 6
        assert repr(ones) == repr(torch.ones(2, 3))
        assert f"{ones[0, 0]:.2f}" == "1.00"
        assert torch.ones_like(x, dtype=torch.bool).nonzero().shape == (6, 2)
        assert X[torch.ones_like(x, dtype=torch.bool)].shape == (6,)
        assert torch.equal(ones.reveal(), torch.ones(2, 3))
        assert (ones.reveal(to=1) is None) == (tacit.session().party != 1)
        kept = io.BytesIO()
        torch.save(ones, kept)
        kept.seek(0)
        assert type(torch.load(kept)) is torch.Tensor
        ones[0] = 3.0
        assert not isinstance(ones, tacit.SecretTensor)
        shared = tacit.share(ones, owner=1)
        assert torch.equal(shared.reveal(), torch.tensor([[3.0] * 3, [1.0] * 3]))

    tacit.launch(program)


def test_as_an_operand_it_costs_what_a_plain_tensor_costs() -> None:
    def costs(plain: bool) -> tuple[float, float]:
        x = tacit.share(X, owner=0)
        # A product by a public whole number would cost nothing, so the factor is a fraction.
        like = [
            torch.full_like(x, 0.3),
            torch.full_like(x, -torch.inf),
            torch.zeros_like(x, dtype=torch.bool),
        ]
        ones, infinite, mask = [each.reveal() for each in like] if plain else like
        meter = tacit.session().meter
        before = meter.total
        y = torch.where(mask, infinite, x * ones + ones)
        y = y.masked_fill(mask, 0.0) @ ones.t() + torch.maximum(ones, torch.zeros_like(x)).sum()
        y.mul_(2.0).reveal()
        spent = meter.total - before
        return spent.rounds, spent.bytes_sent

    assert tacit.launch(costs, True) == tacit.launch(costs, False)
    assert tacit.launch(costs, False)[0][0] > 0


def test_copies_have_their_own_fate() -> None:
    def program() -> None:
        x = tacit.share(X, owner=0)
        zeros = torch.zeros_like(x)
        other, alias, parameter = deepcopy(zeros), copy(zeros), nn.Parameter(torch.zeros_like(x))
        zeros += x
        assert not isinstance(other, tacit.SecretTensor)
        assert torch.equal(alias.reveal(), X)
        with torch.no_grad():
            parameter += x
        assert isinstance(parameter, nn.Parameter)
        assert torch.equal(parameter.reveal(), X)

    tacit.launch(program)


def test_numbers_keep_the_scale_of_what_is_written() -> None:
    small, large = torch.tensor([1e-6, 3e-7]), torch.tensor([1e10, -2e10])

    def program() -> list[torch.Tensor]:
        found = []
        for values, scale in ((small, 30), (large, 8)):
            x = tacit.share(values, owner=0, scale=scale)
            out = torch.zeros_like(x)
            out[1] = x[0]
            found.append(out.reveal())
        return found

    fine, coarse = tacit.launch(program)[0]
    assert abs(fine[1] - 1e-6) < 2e-9
    assert abs(coarse[1] - 1e10) < 1024


def test_what_differs_between_parties_is_noticed_when_it_becomes_secret() -> None:
    def program() -> None:
        x = tacit.share(X, owner=0)
        out = torch.zeros_like(x) + tacit.session().party
        out[0] = x[0]
        out.reveal()

    with pytest.raises(tacit.DesyncError, match=r"aten\.copy_\.default"):
        tacit.launch(program)


def outputs_of_a_decoder(x: Any) -> Any:
    outputs, total = torch.zeros(3, 2, 3), torch.tensor(0.0)
    for step in range(3):
        outputs[step] = x * step
        total += x.sum()
    return outputs.sum() * total


def test_what_python_writes_into_a_plain_tensor_makes_it_secret() -> None:
    plain = X.clone().requires_grad_()
    expected = outputs_of_a_decoder(plain)
    expected.backward()

    def program() -> tuple[torch.Tensor, torch.Tensor]:
        x = tacit.share(X, owner=0).requires_grad_()
        found = outputs_of_a_decoder(x)
        found.backward()
        zeros = torch.zeros(2)
        same = zeros
        same[0] = x[0, 2]
        assert torch.equal(zeros.reveal(), torch.tensor([3.0, 0.0]))
        return found.reveal(), x.grad.reveal()

    found, gradient = tacit.launch(program)[0]
    assert abs(found - expected) < 1e-2
    assert (gradient - plain.grad).abs().max() < 1e-2


#: Writes into plain targets that cannot become secret. Other references would not notice, or
#: gradients would be lost.
REFUSED: dict[str, Callable[[Any], Any]] = {
    "a view": lambda x: torch.zeros(2, 3)[0].__setitem__(0, x[0, 0]),
    "what has a view": lambda x: (lambda whole, _row: whole.__setitem__(0, x[0]))(*_with_a_view()),
    "an array's": lambda x: torch.from_numpy(np.zeros((2, 3), np.float32)).__setitem__(0, x[0]),
    "a parameter": lambda x: (lambda layer: layer.weight.data.__setitem__(0, x[0]))(
        nn.Linear(3, 2)
    ),
    "by a method": lambda x: torch.zeros(2, 3).add_(x),
    "by another": lambda x: torch.zeros(1, 3).scatter_add_(0, ROWS, x),
    "by copying": lambda x: torch.zeros(2, 3).copy_(x),
}


def _with_a_view() -> tuple[torch.Tensor, torch.Tensor]:
    whole = torch.zeros(2, 3)
    return whole, whole[0]


@pytest.mark.parametrize("name", [*REFUSED])
def test_other_plain_tensors_are_refused_with_what_works(name: str) -> None:
    with pytest.raises(
        tacit.UnsupportedOperatorError, match=r"x\.new_zeros\(shape\) or torch\.zeros_like\(x\)"
    ):
        tacit.launch(lambda: REFUSED[name](tacit.share(X, owner=0)), protocol="plain")


def test_a_plain_tensor_takes_the_data_of_one_like_a_secret() -> None:
    def program() -> None:
        x = tacit.share(X, owner=0)
        layer = nn.Linear(3, 2)
        weight = layer.weight
        weight.data = torch.zeros_like(x)
        assert layer.weight is weight
        assert type(weight) is nn.Parameter
        assert torch.equal(layer(X[:1]), layer.bias[None])
        plain = torch.ones(4)
        plain.set_(torch.zeros_like(x))
        assert torch.equal(plain, torch.zeros(2, 3))
        copied = torch.ones(4)
        copied.data = torch.zeros_like(x).clone()
        copied += x
        assert torch.equal(copied.reveal(), X)

    tacit.launch(program)


def test_zeros_like_a_secret_take_the_data_and_the_size_of_others() -> None:
    def program() -> None:
        x = tacit.share(X, owner=0)
        ones, moved, larger = torch.ones(4), torch.zeros_like(x), torch.zeros_like(x)
        moved.set_(ones)
        assert torch.equal(moved, ones)
        moved[1] = x[0, 0]
        assert torch.equal(moved.reveal(), torch.tensor([1.0, X[0, 0], 1.0, 1.0]))
        larger.resize_(3, 3).fill_(1.0)
        larger[1] = x[0]
        assert torch.equal(larger.reveal()[1], X[0])
        x.data = torch.zeros_like(x)
        assert torch.equal(x.reveal(), torch.zeros(2, 3))

    tacit.launch(program)


def shares_memory(give: Callable[[torch.Tensor, torch.Tensor], Any]) -> None:
    x = tacit.share(X, owner=0)
    plain, zeros = torch.ones(2, 3), torch.zeros_like(x)
    give(plain, zeros)
    zeros += x


@pytest.mark.parametrize("way", ["data", "set_"])
def test_memory_of_a_plain_tensor_does_not_become_secret_unseen(way: str) -> None:
    def give(plain: torch.Tensor, zeros: torch.Tensor) -> None:
        # The owner of the memory stays alive.
        kept.append(plain)
        if way == "data":
            plain.data = zeros
        else:
            plain.set_(zeros)

    kept: list[torch.Tensor] = []
    with pytest.raises(tacit.MisuseError, match=r"give x a copy, x\.data = y\.clone\(\)"):
        tacit.launch(shares_memory, give)


def test_a_secret_is_not_the_data_of_a_plain_tensor() -> None:
    def refused() -> None:
        torch.ones(2, 3).data = tacit.share(X, owner=0)

    def remedied() -> torch.Tensor:
        layer, x = nn.Linear(3, 2), tacit.share(X, owner=0)
        layer.weight = nn.Parameter(x)
        return layer.weight.reveal()

    with pytest.raises(tacit.MisuseError, match=r"in a module torch\.nn\.Parameter\(secret\)"):
        tacit.launch(refused)
    assert torch.equal(tacit.launch(remedied)[0], X)
