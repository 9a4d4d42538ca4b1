"""Parties draw equal batches, or the difference is detected."""

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import tacit

INPUTS = torch.arange(12, dtype=torch.float32).reshape(12, 1)


def sums(secret: tacit.SecretTensor, loader: DataLoader[Any]) -> list[float]:
    """Runs in a party. Returns the sums of the secret rows that a loader of indices selects."""
    return [float(secret[batch].sum().reveal()) for (batch,) in loader]


def test_a_shuffled_loader_draws_alike_in_every_party() -> None:
    def program() -> tuple[list[float], list[float], float]:
        secret = tacit.share(INPUTS, owner=1)
        loader = DataLoader(TensorDataset(torch.arange(12)), batch_size=5, shuffle=True)
        with tacit.public_random():
            first = sums(secret, loader)
        with tacit.public_random():
            second = sums(secret, loader)
        return first, second, float(torch.rand(()))

    found = tacit.launch(program)
    assert found[0][:2] == found[1][:2] == found[2][:2]
    assert len({own for _, _, own in found}) == 3, "afterwards each draws for itself again"
    for epoch in found[0][:2]:
        assert sum(epoch) == INPUTS.sum()
    epochs = [epoch for _ in range(4) for epoch in tacit.launch(program, protocol="plain")[0][:2]]
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_a_loader_of_secret_tensors_draws_alike_too() -> None:
    def program() -> list[float]:
        data = TensorDataset(tacit.share(INPUTS, owner=1), tacit.share(2 * INPUTS, owner=2))
        with tacit.public_random():
            batches = list(DataLoader(data, batch_size=4, shuffle=True, collate_fn=_stacked))
        return [float((2 * x - y).abs().sum().reveal()) for x, y in batches]

    assert tacit.launch(program) == [[0.0, 0.0, 0.0]] * 3


def _stacked(rows: list[tuple[torch.Tensor, ...]]) -> list[torch.Tensor]:
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def test_a_loader_that_draws_otherwise_in_each_party_is_caught_with_the_remedy() -> None:
    def program() -> list[float]:
        secret = tacit.share(INPUTS, owner=1)
        return sums(secret, DataLoader(TensorDataset(torch.arange(12)), batch_size=3, shuffle=True))

    with pytest.raises(tacit.DesyncError, match="public_random"):
        tacit.launch(program)


def test_a_loader_of_secret_tensors_that_draws_otherwise_is_caught_with_the_remedy() -> None:
    """The selected rows change no public value, but the next steps detect the difference."""

    def program() -> float:
        data = TensorDataset(tacit.share(INPUTS, owner=1))
        (batch,) = next(iter(DataLoader(data, batch_size=4, shuffle=True)))
        return float((batch * batch).sum().reveal())

    with pytest.raises(tacit.DesyncError, match=r"programs differ.*tacit\.public_random\(\)"):
        tacit.launch(program)
