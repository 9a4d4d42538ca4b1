"""Powers and products of many numbers: their errors by exponent. More fraction bits reduce them."""

import pytest
import torch

import tacit
from tacit.providers import REFERENCE

BASES = torch.tensor(
    [1.0001, 1.004, 1.05, 0.999, 0.95, 0.5, 1.5, -1.01, 3.0, -50.0], dtype=torch.float64
)
EXPONENTS = [3, 12, 64, 65, 360, 1000]


def encoded(x: torch.Tensor, bits: int) -> torch.Tensor:
    return (x * 2**bits).round() / 2**bits


@pytest.mark.parametrize("protocol", [REFERENCE, "replicated"])
@pytest.mark.parametrize("bits", [16, 24])
def test_powers_and_products_are_off_by_their_exponent(bits: int, protocol: str) -> None:
    """The error of x^n and of a product of n factors is n units, relative to results above 1.
    Negative powers have twice the error."""

    def program() -> list[torch.Tensor]:
        with tacit.fraction_bits(bits):
            x = tacit.share(BASES, owner=0)
            small = tacit.share(BASES[:4], owner=0).expand(360, 4)
            powers = [x**n for n in (*EXPONENTS, *(-n for n in EXPONENTS))]
            return [value.reveal() for value in (*powers, small.prod(0), small.cumprod(0)[-1])]

    results = tacit.launch(program, protocol=protocol)[0]
    bases, largest = encoded(BASES, bits), 2.0 ** min(46 - bits, 62 - 2 * bits)
    exponents = [*EXPONENTS, *(-n for n in EXPONENTS)]
    for n, mine in zip(exponents, results, strict=False):
        exact = bases ** float(n)
        # Between half of the limit and the limit, rounding decides.
        is_right = exact.abs() < largest / 2
        units = n if n > 0 else -2 * n
        assert bool(
            ((mine - exact).abs() <= units * 2.0**-bits * (1 + exact.abs()))[is_right].all()
        ), n
        if n > 64 or n < 0:
            beyond = mine[exact.abs() > largest].abs()
            assert bool(((beyond > largest / 2) & (beyond <= largest)).all()), (n, beyond)
    for mine in results[len(exponents) :]:
        exact = bases[:4] ** 360
        is_right = exact.abs() < largest / 2
        assert bool(((mine - exact).abs() <= 360 * 2.0**-bits * (1 + exact.abs()))[is_right].all())


def payments(rate: torch.Tensor) -> torch.Tensor:
    """Payments for a loan of 1 in 360 equal parts."""
    return rate / (1 - (1 + rate) ** -360)


def test_more_fraction_bits_make_annuities_more_exact() -> None:
    rates = torch.tensor([1 / 1024, 1 / 256, 1 / 128], dtype=torch.float64)

    def program(bits: int) -> torch.Tensor:
        with tacit.fraction_bits(bits):
            return payments(tacit.share(rates, owner=0)).reveal()

    usual, finer = (
        float((tacit.launch(program, bits)[0] - payments(rates)).abs().max()) for bits in (16, 24)
    )
    assert usual < 2**-13
    assert finer < 2**-20


def test_quotients_are_as_exact_as_many_fraction_bits_allow() -> None:
    x, y = torch.tensor([1.0, -2.0, 0.001, 100.0]), torch.tensor([3.0, 7.0, 300.0, 0.37])

    def program() -> torch.Tensor:
        with tacit.fraction_bits(24):
            return (tacit.share(x, owner=0) / tacit.share(y, owner=1)).double().reveal()

    exact = encoded(x.double(), 24) / encoded(y.double(), 24)
    assert ((tacit.launch(program)[0] - exact).abs() <= 2.0**-23 + 2.0**-24 * exact.abs()).all()
