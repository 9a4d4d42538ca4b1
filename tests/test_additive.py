"""Additive sharing in Python: results of programs, and weights that are masked once and reused."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.flags import Dependencies
from tacit.storage_cache import Storages

SETTINGS = [(2, "ot"), (2, "he"), (3, "dealer")]


def everywhere(setting: tuple[int, str], fn: Any, *args: Any) -> list[Any]:
    """Runs a program by additive sharing, with parties as threads."""
    parties, source = setting
    return tacit.launch(fn, *args, parties=parties, protocol="additive", source=source)


@pytest.fixture(params=SETTINGS, ids=lambda setting: f"{setting[0]} parties, {setting[1]}")
def setting(request: pytest.FixtureRequest) -> tuple[int, str]:
    """Number of parties and source of correlations."""
    return request.param


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_what_is_shared_is_revealed(setting: tuple[int, str], dtype: torch.dtype) -> None:
    plain = (torch.arange(12).reshape(3, 4) % 5).to(dtype)

    def program() -> list[Any]:
        found = []
        for owner in range(setting[0]):
            secret = tacit.share(plain if tacit.session().party == owner else None, owner=owner)
            found += [secret.reveal(), secret.reveal(to=1)]
        return found

    for party, found in enumerate(everywhere(setting, program)):
        assert all(torch.equal(value, plain) for value in found[::2])
        assert all((value is None) == (party != 1) for value in found[1::2])


def test_operators_on_secrets(setting: tuple[int, str]) -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(2, 3, 6, 6, generator=generator) for _ in range(2))

    def operators(x: Any, y: Any) -> list[Any]:
        return [
            x * y,
            x @ y,
            x < y,
            x.relu(),
            x.abs(),
            x.argmax(-1),
            x.max(2).values,
            torch.where(x > 0, x, y),
            torch.maximum(x, y),
            x.clamp(-0.5, 0.5),
            nn.functional.max_pool2d(x, 2),
            nn.functional.avg_pool2d(x, 3),
            (x > 0) & (y > 0),
            (x > 0).any(1),
            x.square().sum((2, 3)),
            (x > 0) == (y > 0),
        ]

    def program() -> list[Any]:
        secret = tacit.share(x, owner=0), tacit.share(y, owner=1)
        return [value.reveal() for value in operators(*secret)]

    for found in everywhere(setting, program):
        for mine, plain in zip(found, operators(x, y), strict=True):
            assert (mine.dtype, mine.shape) == (plain.dtype, plain.shape)
            assert torch.allclose(mine.double(), plain.double(), atol=1e-3)


def network() -> nn.Module:
    """Makes a network with a convolution, a normalisation and a linear layer."""
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4)
    ).eval()


def wide_network() -> nn.Module:
    """Makes a network whose products are encrypted, if the source of correlations encrypts."""
    torch.manual_seed(6)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Linear(32, 64),
    ).eval()


def compared(setting: tuple[int, str], program: Any) -> None:
    """Compares the pairs of computed and right results that the program returns."""
    for found in everywhere(setting, program):
        for at, (mine, plain) in enumerate(found):
            assert torch.allclose(mine, plain, atol=2e-3), (at, (mine - plain).abs().max())


def test_a_module_used_for_several_batches(setting: tuple[int, str]) -> None:
    model = network()

    def program() -> list[Any]:
        plain, secret = model, tacit.share_module(copy.deepcopy(model), owner=0)
        found = []
        for size in (2, 2, 1, 3, 2):
            batch = torch.randn(size, 1, 4, 4, generator=torch.Generator().manual_seed(size))
            with torch.inference_mode():
                found.append((secret(tacit.share(batch, owner=1)).reveal(), plain(batch)))
        return found

    compared(setting, program)


def test_a_wide_module_that_is_used_changed_and_made_anew(setting: tuple[int, str]) -> None:
    model = wide_network()

    def program() -> list[Any]:
        found = []
        for owner in range(2):
            plain = copy.deepcopy(model)
            secret = tacit.share_module(copy.deepcopy(model), owner=owner)
            for size in (4, 4, 1, 6, 4):
                batch = torch.randn(size, 3, 8, 8, generator=torch.Generator().manual_seed(size))
                with torch.inference_mode():
                    found.append((secret(tacit.share(batch, owner=1)).reveal(), plain(batch)))
                if size == 1:
                    with torch.no_grad():
                        for each in (secret, plain):
                            each[0].weight.mul_(-0.5)
                            each[3].weight.add_(0.0625)
            del secret
        return found

    compared(setting, program)


def test_encryption_sends_less_than_transfers() -> None:
    model, batch = wide_network(), torch.randn(2, 3, 8, 8)

    def program() -> int:
        secret = tacit.share_module(copy.deepcopy(model), owner=0)
        with torch.inference_mode():
            secret(tacit.share(batch, owner=1)).reveal()
        return tacit.session().meter.correlations.bytes_sent

    transferred, encrypted = (everywhere((2, source), program) for source in ("ot", "he"))
    assert 2 * max(encrypted) < min(transferred)


def test_weights_that_are_changed_in_place(setting: tuple[int, str]) -> None:
    model = network()

    def program() -> list[Any]:
        plain, secret = model, tacit.share_module(copy.deepcopy(model), owner=0)
        batch = torch.randn(2, 1, 4, 4, generator=torch.Generator().manual_seed(9))
        other = torch.randn(4, 48, generator=torch.Generator().manual_seed(10))
        found = []

        def compare() -> None:
            with torch.no_grad():
                found.append((secret(tacit.share(batch, owner=1)).reveal(), plain(batch)))

        compare()
        for change in (
            lambda model, _: model[0].weight.add_(0.25),
            lambda model, _: model[4].weight.mul_(-1.5),
            lambda model, share: model[4].weight.copy_(share(other)),
            lambda model, _: model[4].weight[1].add_(0.5),
            lambda model, _: model[4].weight.t().mul_(0.5),
            lambda model, _: model[0].weight.detach().view(-1).sub_(0.125),
        ):
            with torch.no_grad():
                change(secret, lambda value: tacit.share(value, owner=0))
            with torch.no_grad():
                change(plain, lambda value: value)
            compare()
            compare()
        return found

    compared(setting, program)


def test_modules_that_are_deleted_and_made_anew(setting: tuple[int, str]) -> None:
    batch, modules = torch.randn(3, 16), [nn.Linear(16, 16) for _ in range(8)]

    def program() -> list[Any]:
        found = []
        for at, module in enumerate(modules):
            with torch.no_grad():
                plain = module(batch)
            # The modules have one size: a storage may reuse the memory of the previous one.
            module = tacit.share_module(copy.deepcopy(module), owner=at % 2)
            secret = tacit.share(batch, owner=0)
            found += [(module(secret).reveal(), plain), (module(secret).reveal(), plain)]
            del module
        return found

    compared(setting, program)


def test_a_weight_on_either_side_and_its_views(setting: tuple[int, str]) -> None:
    module, batch = nn.Linear(6, 6, bias=False), torch.randn(6, 6)

    def program() -> list[Any]:
        weight = module.weight.detach().clone()
        secret = tacit.share_module(module, owner=0).weight
        x = tacit.share(batch, owner=1)
        found = []
        for _ in range(2):
            found += [
                (x @ secret, batch @ weight),
                (secret @ x, weight @ batch),
                (secret @ x.t(), weight @ batch.t()),
                (secret.t() @ x, weight.t() @ batch),
                (x @ secret.t(), batch @ weight.t()),
                (secret[:, :3] @ x[:3], weight[:, :3] @ batch[:3]),
                (secret[3:].t() @ x[:3], weight[3:].t() @ batch[:3]),
                (secret * x, weight * batch),
                (x * secret[0], batch * weight[0]),
                (secret * secret, weight * weight),
                (secret @ secret, weight @ weight),
                (secret @ secret.t(), weight @ weight.t()),
            ]
        return [(mine.reveal(), plain) for mine, plain in found]

    compared(setting, program)


def test_sessions_end_while_correlations_are_being_made() -> None:
    """The thread that makes correlations ahead waits for a message, and never for a lock that the
    ending thread holds."""

    def program() -> None:
        x = tacit.share(torch.ones(2000), owner=0)
        (x * x).relu().reveal()

    for _ in range(6):
        tacit.launch(program, parties=2, protocol="additive", transport="tcp")


class Forgetting:
    """Stand-in for the part of a core that storages use."""

    def __init__(self) -> None:
        self.forgotten: list[int] = []

    def forget(self, name: int) -> None:
        self.forgotten.append(name)


def test_masks_of_freed_weights_are_forgotten_while_others_are_used() -> None:
    core: Any = Forgetting()
    storages = Storages(core, Dependencies())
    kept, freed = torch.zeros(3), torch.zeros(4)
    storages.add(kept)
    storages.add(freed)
    names = [storages.name(weight) for weight in (kept, freed)]
    del freed
    for _ in range(2 + 1):
        assert storages.name(kept) == names[0]
    assert core.forgotten == names[1:]
