"""Secret indices read, add and write in every operator that takes an index.

The tests include indices out of range, and gradients.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.operators.selection import one_hot

generator = torch.Generator().manual_seed(5)


def drawn(*shape: int) -> torch.Tensor:
    """Returns random fractions that fixed point represents exactly."""
    return torch.randint(-90, 90, shape, generator=generator) / 8


def below(size: int, *shape: int) -> torch.Tensor:
    """Returns random indices below size."""
    return torch.randint(size, shape, generator=generator)


#: A tensor, an index, values, and the function of them.
Case = tuple[torch.Tensor, torch.Tensor, torch.Tensor, Callable[[Any, Any, Any], Any]]

X, WIDE = drawn(4, 5, 3), drawn(7, 4)
UNIQUE = torch.randperm(5, generator=generator)[:3]
CASES: dict[str, Case] = {
    "gather": (X, below(5, 4, 2, 3), X, lambda x, i, _: x.gather(1, i)),
    "gather of less": (X, below(4, 6, 2, 1), X, lambda x, i, _: x.gather(0, i)),
    "gather of a number": (X[0, 0, 0], below(1, 3), X, lambda x, i, _: x.gather(0, i)),
    "index_select": (X, below(5, 6), X, lambda x, i, _: x.index_select(-2, i)),
    "take": (X, below(120, 2, 3) - 60, X, lambda x, i, _: x.take(i)),
    "index": (X, below(8, 2, 3) - 4, X, lambda x, i, _: x[i]),
    "index in the middle": (X, below(5, 2, 2), X, lambda x, i, _: x[:, i]),
    "index of two": (X, below(3, 2, 1), X, lambda x, i, _: x[:, i, torch.tensor([0, -1])]),
    "index of two secrets": (X, below(3, 6), X, lambda x, i, _: x[i, i - 1]),
    "index apart": (X, below(3, 2), X, lambda x, i, _: x[i, :, i]),
    "integers": (below(2**40, 9), below(9, 4), X, lambda x, i, _: x[i]),
    "booleans": (X > 0, below(4, 3), X, lambda x, i, _: x[i]),
    "small integers": (
        X.to(torch.int8),
        below(4, 3).to(torch.int32),
        X,
        lambda x, i, _: x.index_select(0, i),
    ),
    "embedding": (WIDE, below(7, 2, 3), X, lambda x, i, _: nn.functional.embedding(i, x)),
    "one class": (drawn(1, 3), below(1, 2), X, lambda x, i, _: x[i]),
    "no index": (X, below(4, 0), X, lambda x, i, _: x[i]),
    "gather of nothing": (X[0, 0], below(3, 2, 0), X, lambda x, i, _: x.gather(0, i)),
    "index_select of a number": (X[0, 0, 0], below(1, 1), X, lambda x, i, _: x.index_select(0, i)),
    "index_select by a number": (X, below(4), X, lambda x, i, _: x.index_select(0, i)),
    "take of a number": (X[0, 0, 0], below(1), X, lambda x, i, _: x.take(i)),
    "take by a number": (X, below(9), X, lambda x, i, _: x.take(i)),
    "index_add to a number": (
        X[0, 0, 0],
        below(1, 1),
        X[0, 0, 1],
        lambda x, i, v: x.index_add(0, i, v),
    ),
    "index_copy into a number": (
        X[0, 0, 0],
        below(1, 1),
        X[0, 0, 1],
        lambda x, i, v: x.index_copy(0, i, v),
    ),
    "index_add": (X, below(5, 6), drawn(4, 6, 3), lambda x, i, v: x.index_add(1, i, v)),
    "index_add of a part": (
        X,
        below(5, 6),
        drawn(4, 6, 3),
        lambda x, i, v: x.index_add(1, i, v, alpha=-2),
    ),
    "index_copy": (X, UNIQUE, drawn(4, 3, 3), lambda x, i, v: x.index_copy(1, i, v)),
    "index_fill": (X, UNIQUE, X, lambda x, i, _: x.index_fill(1, i, -2)),
    "index_fill_": (X, UNIQUE, X, lambda x, i, _: x.clone().index_fill_(1, i, 0.5)),
    "scatter_add": (X, below(5, 3, 6, 2), drawn(4, 7, 3), lambda x, i, v: x.scatter_add(1, i, v)),
    "scatter": (
        X,
        UNIQUE.expand(2, 3).T.unsqueeze(0),
        drawn(4, 5, 3),
        lambda x, i, v: x.scatter(1, i, v),
    ),
    "scatter of a number": (X, below(5, 3, 6, 2), X, lambda x, i, _: x.scatter(1, i, -2.5)),
    "scatter_ of a number": (X, below(5, 3, 1, 2), X, lambda x, i, _: x.clone().scatter_(1, i, 1)),
    "scatter into booleans": (
        X > 0,
        UNIQUE.reshape(1, 3, 1),
        X < 0,
        lambda x, i, v: x.scatter(1, i, v),
    ),
    "index_put": (
        X,
        UNIQUE,
        drawn(4, 3, 1),
        lambda x, i, v: x.index_put([torch.arange(4)[:, None], i], v),
    ),
    "index_put in place": (
        X,
        UNIQUE - 5,
        drawn(3, 3),
        lambda x, i, v: _assigned(x.transpose(0, 1), i, v),
    ),
    "index_put adding": (
        X,
        below(4, 6),
        drawn(3),
        lambda x, i, v: x.index_put([i], v, accumulate=True),
    ),
    "put": (X, UNIQUE, drawn(3), lambda x, i, v: x.put(i, v)),
    "adding integers": (
        X.to(torch.uint8),
        below(4, 9),
        X.to(torch.uint8)[0, 0],
        lambda x, i, v: x.index_put([i], v, accumulate=True),
    ),
}


REDUCTIONS = ("sum", "mean", "prod", "amax", "amin")

#: Numbers whose reductions are exact, except for means.
FEW, MANY = torch.tensor([[1.5, -2.0, 0.5, 4.0], [0.0, 1.0, -1.5, 2.0]]), drawn(2, 7).clamp(-2, 2)
MEETING: dict[str, Case] = {
    f"{which}, {reduce}, {'with' if own else 'without'} its own": (
        x,
        index,
        values,
        lambda x, i, v, call=call, reduce=reduce, own=own: call(x, i, v, reduce, own),
    )
    for which, x, index, values, call in (
        (
            "scatter_reduce",
            FEW,
            below(4, 2, 7),
            MANY,
            lambda x, i, v, reduce, own: x.scatter_reduce(1, i, v, reduce, include_self=own),
        ),
        (
            "index_reduce",
            FEW,
            below(4, 3),
            MANY[:, :3],
            lambda x, i, v, reduce, own: x.index_reduce(1, i, v, reduce, include_self=own),
        ),
        (
            "scatter_reduce of integers",
            (FEW * 2).long() * 2**40,
            below(4, 2, 7),
            (MANY * 2).long() * 2**40,
            lambda x, i, v, reduce, own: x.scatter_reduce(1, i, v, reduce, include_self=own),
        ),
    )
    for reduce in REDUCTIONS
    for own in (True, False)
    if not (reduce == "sum" and which == "index_reduce")
    and not (reduce == "mean" and x.dtype == torch.int64)
}


def test_values_that_meet_at_secret_places(everywhere: Callable[..., Any]) -> None:
    def program() -> dict[str, list[Any]]:
        found = {}
        for name, (x, index, values, apply) in MEETING.items():
            i, secret = tacit.share(index, owner=0), tacit.share(x, owner=1)
            found[name] = [
                shown(apply(secret, i, tacit.share(values, owner=1))),
                shown(apply(x, i, values)),
            ]
        return found

    for name, ways in everywhere(program).items():
        x, index, values, apply = MEETING[name]
        plain = apply(x, index, values)
        for mine in ways:
            assert (mine.dtype, mine.shape) == (plain.dtype, plain.shape), name
            if plain.is_floating_point():
                assert torch.allclose(mine, plain, atol=2.0**-11), (name, mine, plain)
            else:
                assert torch.equal(mine, plain), name


def test_values_at_places_out_of_range_are_left_out() -> None:
    def program() -> list[Any]:
        x = tacit.share(torch.tensor([1.0, 2.0, 3.0]), owner=0)
        i = tacit.share(torch.tensor([-1, 2, 7, 2]), owner=1)
        values = torch.tensor([9.0, 4.0, 9.0, 8.0])
        ways = [x.scatter_reduce(0, i, values, reduce, include_self=False) for reduce in REDUCTIONS]
        return [each.reveal() for each in ways]

    for found, last in zip(tacit.launch(program)[0], (12.0, 6.0, 32.0, 8.0, 4.0), strict=True):
        assert torch.allclose(found, torch.tensor([1.0, 2.0, last]), atol=2.0**-11)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_gradients_of_values_that_meet_at_secret_places(reduce: str, own: bool) -> None:
    index = torch.tensor([[0, 2, 2, 1, 0], [3, 3, 3, 0, 1]])
    x, values = FEW + 0.25, torch.tensor([[2.0, -1.0, 3.0, 0.5, 1.5], [1.0, 2.5, -0.5, 2.0, -2.0]])
    weights = torch.arange(1.0, 9.0).reshape(2, 4) / 4

    def program() -> list[Any]:
        secret, v = (tacit.share(each, owner=0).requires_grad_() for each in (x, values))
        i = tacit.share(index, owner=1)
        (secret.scatter_reduce(1, i, v, reduce, include_self=own) * weights).sum().backward()
        # The gradient of a sum is public, since the weights are.
        return [shown(secret.grad), shown(v.grad)]

    plain = [each.clone().requires_grad_() for each in (x, values)]
    (
        plain[0].scatter_reduce(1, index, plain[1], reduce, include_self=own) * weights
    ).sum().backward()
    for found, each in zip(
        tacit.launch(program, protocol="plain", parties=2)[0], plain, strict=True
    ):
        assert torch.allclose(found, each.grad, atol=2.0**-8), (found, each.grad)


def _assigned(x: Any, index: Any, values: Any) -> Any:
    x = x.clone()
    x[index] = values[:, None]
    return x


def shown(value: Any) -> Any:
    """Returns a value, revealed if it is secret."""
    return value.reveal() if isinstance(value, tacit.SecretTensor) else value


def test_secret_indices(everywhere: Callable[..., Any]) -> None:
    def program() -> dict[str, list[Any]]:
        found = {}
        for name, (x, index, values, apply) in CASES.items():
            i, secret = tacit.share(index, owner=0), tacit.share(x, owner=1)
            v = tacit.share(values, owner=1)
            ways = [apply(secret, i, v), apply(secret, i, values)]
            if name not in ("index_put in place", "index_fill_", "scatter_ of a number"):
                ways += [apply(x, i, values), apply(x, i, v)]
            found[name] = list(map(shown, ways))
        return found

    for name, ways in everywhere(program).items():
        x, index, values, apply = CASES[name]
        plain = apply(x, index, values)
        for mine in ways:
            assert (mine.dtype, mine.shape) == (plain.dtype, plain.shape), name
            assert torch.equal(mine, plain), name


def test_out_of_range_reads_zeros_and_writes_nothing(everywhere: Callable[..., Any]) -> None:
    outside = torch.tensor([5, -1, 2, 8, 2**40, -(2**40), 4])

    def program() -> list[Any]:
        i, x = tacit.share(outside, owner=0), tacit.share(WIDE[:5, 0], owner=0)
        ones = torch.ones(7)
        found = [
            one_hot(i, 5),
            x.index_select(0, i),
            x.gather(0, i),
            nn.functional.embedding(i, WIDE[:5]),
        ]
        found += [x[i], x.scatter(0, i, 9 * ones), x.index_add(0, i, ones)]
        return [each.reveal() for each in found]

    hot, *read, index, scattered, added = everywhere(program)
    assert torch.equal(hot.nonzero(), torch.tensor([[2, 2], [6, 4]]))
    assert torch.equal(read[0], WIDE[:5, 0] @ hot.float().T)
    assert torch.equal(read[1], read[0])
    assert torch.equal(read[2], hot.float() @ WIDE[:5])
    # In this operator, −1 is the last index.
    assert torch.equal(index, read[0] + torch.eye(7)[1] * WIDE[4, 0])
    assert torch.equal(scattered, torch.where(hot.any(0), torch.tensor(9.0), WIDE[:5, 0]))
    assert torch.equal(added, WIDE[:5, 0] + hot.any(0))


def test_the_last_of_several_is_written(everywhere: Callable[..., Any]) -> None:
    index, values = torch.tensor([3, 1, 3, 0, 1, 3, 7]), torch.arange(7.0) + 1

    def program() -> Any:
        x = tacit.share(torch.zeros(5), owner=0)
        return x.scatter(0, tacit.share(index, owner=1), values).reveal()

    assert everywhere(program).tolist() == [4, 5, 0, 6, 0]


def test_one_hot_vectors_of_every_size() -> None:
    def program() -> list[Any]:
        index = tacit.share(torch.arange(-2, 20), owner=0)
        ways = [one_hot(index, size).reveal() for size in range(1, 19)]
        with torch.inference_mode():
            inferred = nn.functional.one_hot(index[2:], 20).reveal()
            with pytest.raises(tacit.MisuseError, match=r"item\(\) would show"):
                nn.functional.one_hot(index)
        return [*ways, inferred, nn.functional.one_hot(index[2:], 20).reveal()]

    *ways, inferred, plain = tacit.launch(program, parties=2, protocol="plain")[0]
    for size, found in enumerate(ways, 1):
        assert torch.equal(found, torch.arange(-2, 20)[:, None] == torch.arange(size))
    assert torch.equal(inferred, plain)
    assert torch.equal(plain, torch.eye(20, dtype=torch.int64)[:20])


def test_many_rows_are_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.operators.selection.ENTRIES", 30)
    tokens = below(7, 9)

    def program() -> Any:
        return nn.functional.embedding(tacit.share(tokens, owner=0), WIDE).reveal()

    assert torch.equal(tacit.launch(program)[0], WIDE[tokens])


def test_gradients(everywhere: Callable[..., Any]) -> None:
    weight, tokens, order = (
        drawn(7, 3),
        below(7, 2, 4),
        torch.randperm(12, generator=generator).reshape(6, 2) / 4,
    )

    def gradients(weight: Any, tokens: Any, order: Any) -> list[Any]:
        ways = [
            lambda w, _: nn.functional.embedding(tokens, w),
            lambda w, _: nn.functional.embedding(tokens, w, padding_idx=2),
            lambda w, _: w[tokens],
            lambda w, _: nn.functional.embedding_bag(tokens, w, mode="sum"),
            lambda w, _: nn.functional.embedding_bag(tokens[0], w, torch.tensor([0, 3, 3])),
            lambda w, _: w.index_select(0, tokens[0]),
            lambda w, _: w.gather(0, tokens.T[:, :2]),
            lambda w, _: w.take(tokens),
            lambda _, o: o.sort(0).values,
            lambda _, o: o.topk(2, 0).values,
            lambda _, o: o.kthvalue(2, 0).values,
            lambda _, o: o.median(0).values,
            lambda _, o: o.cummax(0).values,
        ]
        found = []
        for way in ways:
            w, o = weight.clone().requires_grad_(), order.clone().requires_grad_()
            y = way(w, o)
            (y * torch.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
            found += [each.grad for each in (w, o) if each.grad is not None]
        return found

    def program() -> list[Any]:
        secrets = (tacit.share(each, owner=0) for each in (weight, tokens, order))
        return [each.reveal() for each in gradients(*secrets)]

    for at, (mine, plain) in enumerate(
        zip(everywhere(program), gradients(weight, tokens, order), strict=True)
    ):
        assert torch.allclose(mine, plain, atol=1e-3), at


def test_bags(everywhere: Callable[..., Any]) -> None:
    weight, words, weights = drawn(7, 3), below(7, 9), drawn(9)
    offsets = torch.tensor([0, 4, 4, 9])

    def bags(weight: Any, words: Any, weights: Any) -> list[Any]:
        bag = nn.functional.embedding_bag
        return [
            bag(words, weight, offsets, mode="sum", per_sample_weights=weights),
            bag(words, weight, offsets, mode="sum", include_last_offset=True),
            bag(words, weight, offsets),
        ]

    def program() -> list[Any]:
        w, i, v = (tacit.share(each, owner=0) for each in (weight, words, weights))
        ways = [bags(w, i, v), bags(w, i, weights), bags(weight, i, v), bags(w, words, v)]
        return [[each.reveal() for each in way] for way in ways]

    for way in everywhere(program):
        for mine, plain in zip(way, bags(weight, words, weights), strict=True):
            assert mine.dtype == plain.dtype
            assert torch.allclose(mine, plain, atol=1e-3)


def test_what_is_no_index_is_refused() -> None:
    def program() -> None:
        x, marks = tacit.share(X, owner=0), tacit.share(X[:, 0, 0] > 0, owner=0)
        for wrong in (
            lambda: x[marks],
            lambda: x[tacit.share(torch.arange(4), owner=0), X[0, :, 0] > 0],
        ):
            with pytest.raises(tacit.MisuseError):
                wrong()

    tacit.launch(program, parties=2, protocol="plain")
