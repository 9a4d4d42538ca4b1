"""Types that a type checker infers in programs.

mypy reads this file, and nothing runs it.
"""

from typing import assert_type

import torch
from torch import nn

import tacit


def sharing(plain: torch.Tensor) -> None:
    assert_type(tacit.share(plain, owner=0), tacit.SecretTensor)
    assert_type(tacit.share(None, owner=1), tacit.SecretTensor)
    assert_type(tacit.share_module(nn.Linear(2, 2), owner=0), nn.Linear)


def operators(s: tacit.SecretTensor, plain: torch.Tensor) -> None:
    assert_type(s @ s, tacit.SecretTensor)
    assert_type(-s, tacit.SecretTensor)
    assert_type(2 * s - 1, tacit.SecretTensor)
    assert_type(s / 3 + plain, tacit.SecretTensor)
    assert_type(s < 0, tacit.SecretTensor)
    assert_type(s[0], tacit.SecretTensor)
    assert_type(s[..., None, 1:], tacit.SecretTensor)
    assert_type(s.relu(), tacit.SecretTensor)
    assert_type((s + 1).sum(), tacit.SecretTensor)


def revealing(s: tacit.SecretTensor, receiver: int | None) -> None:
    assert_type((s @ s).reveal(), torch.Tensor)
    assert_type((s + 1).sum().reveal(to=1), torch.Tensor | None)
    assert_type(s.reveal(receiver), torch.Tensor | None)


def sessions() -> None:
    assert_type(tacit.session(), tacit.Session)
    assert_type(tacit.session().meter.total, tacit.Reading)
    with tacit.public_random() as coin:
        assert_type(coin, int)
    with tacit.connect("parties.toml", 0) as session:
        assert_type(session, tacit.Session)


def random_secrets(s: tacit.SecretTensor) -> None:
    assert_type(tacit.random.normal((2, 3)), tacit.SecretTensor)
    assert_type(tacit.random.bernoulli(s), tacit.SecretTensor)
    assert_type(tacit.shuffle(s), tacit.SecretTensor)
    assert_type(tacit.shuffle(s, s), tuple[tacit.SecretTensor, ...])
