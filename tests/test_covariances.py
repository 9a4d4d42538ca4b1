"""Covariances and correlations of secret rows, weighted or not, and their gradients agree with
PyTorch's."""

from collections.abc import Callable

import pytest
import torch

import tacit
from tacit.errors import UnsupportedOperatorError

ROWS = (
    torch.randn(4, 9, generator=torch.Generator().manual_seed(1))
    * torch.tensor([[1.0], [10], [0.1], [9]])
    + 5
)
REPEATED = torch.tensor([1, 3, 0, 2, 1, 1, 2, 0, 1])
WEIGHTS = torch.linspace(0.1, 1, 9)
FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": torch.cov,
    "uncorrected": lambda x: torch.cov(x, correction=0),
    "repeated": lambda x: torch.cov(x, fweights=REPEATED),
    "weighted": lambda x: torch.cov(x, aweights=WEIGHTS),
    "both": lambda x: torch.cov(x, correction=2, fweights=REPEATED, aweights=WEIGHTS),
    "of one row": lambda x: torch.cov(x[0]),
    "of integers": lambda x: torch.cov((x * 3).long()),
    "correlation": torch.corrcoef,
    "correlation of large numbers": lambda x: torch.corrcoef(x.detach() * 2.0**11),
    "correlation of one row": lambda x: torch.corrcoef(x[1]),
}


@pytest.mark.parametrize("protocol", ["replicated", "additive"])
def test_as_pytorch_has_them(protocol: str) -> None:
    def program() -> dict[str, list[torch.Tensor]]:
        found = {}
        for name, form in FORMS.items():
            x = tacit.share(ROWS if tacit.session().party == 0 else None, owner=0).requires_grad_()
            result = form(x)
            found[name] = [result.detach().reveal()]
            if result.requires_grad:
                result.sum().backward()
                found[name].append(x.grad.reveal())
        return found

    found = tacit.launch(program, protocol=protocol)[0]
    for name, form in FORMS.items():
        x = ROWS.clone().requires_grad_()
        plain = form(x)
        wanted = [plain.detach()]
        if plain.requires_grad:
            plain.sum().backward()
            wanted.append(x.grad)
        assert len(found[name]) == len(wanted)
        for one, other in zip(found[name], wanted, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), name
            assert torch.allclose(one, other, rtol=2.0**-10, atol=2.0**-8), (name, one, other)


def test_what_cannot_be_is_refused() -> None:
    def program() -> None:
        x = tacit.share(ROWS if tacit.session().party == 0 else None, owner=0)
        secret = tacit.share(WEIGHTS if tacit.session().party == 0 else None, owner=0)
        with pytest.raises(UnsupportedOperatorError, match=r"secret weights.*roots"):
            torch.cov(x, aweights=secret)
        with pytest.raises(UnsupportedOperatorError, match=r"few observations.*correction"):
            torch.cov(x[:, :1])
        with pytest.raises(UnsupportedOperatorError, match=r"few observations.*at least two"):
            torch.corrcoef(x[:, :1])
        with pytest.raises(RuntimeError, match=r"fweights cannot be negative"):
            torch.cov(x, fweights=REPEATED - 2)

    tacit.launch(program)
