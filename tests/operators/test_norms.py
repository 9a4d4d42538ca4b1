"""Norms are right from a few units of fixed point to the end of their domain."""

import warnings

import pytest
import torch

import tacit


@pytest.mark.parametrize(
    "setting", [("plain", 2, None), ("replicated", 3, None), ("additive", 2, "dealer")]
)
def test_euclidean_norms_in_all_of_their_domain(setting: tuple[str, int, str | None]) -> None:
    protocol, parties, source = setting
    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(20, 40, generator=generator, dtype=torch.float64)
    rows = rows / rows.norm(dim=1, keepdim=True)
    powers = [
        -8,
        -6,
        -3,
        0,
        3,
        6,
        6.99,
        7.01,
        9,
        12,
        14,
        14.49,
        14.51,
        14.99,
        16,
        21.99,
        22.01,
        25,
        29,
        29.99,
    ]
    norms = 2.0 ** torch.tensor(powers, dtype=torch.float64)
    values = ((rows * norms.unsqueeze(1)) * 2.0**16).round() / 2.0**16

    def program() -> list[torch.Tensor]:
        x, fine = tacit.share(values, owner=0), tacit.share(values[:16], owner=0, scale=20)
        found = [torch.linalg.vector_norm(each, dim=1).reveal().double() for each in (x, fine)]
        return [*found, tacit.share(torch.zeros(3), owner=0).norm().reveal()]

    with warnings.catch_warnings():
        warnings.simplefilter("error", tacit.RangeWarning)
        *all_found, zero = tacit.launch(program, protocol=protocol, parties=parties, source=source)[
            0
        ]
    for found in all_found:
        wanted = values[: len(found)].norm(dim=1)
        assert bool(((found - wanted).abs() < 2.0**-13 * wanted + 2 * 2.0**-16).all()), (
            found / wanted
        )
    assert zero == 0


@pytest.mark.parametrize("protocol", ["replicated", "plain"])
def test_deviations_whose_variances_are_out_of_range(protocol: str) -> None:
    salaries = torch.tensor([[1e5, 2e5, 1.5e5], [-5e8, 5e8, 1e8]], dtype=torch.float64)
    found = tacit.launch(lambda: tacit.share(salaries, owner=0).std(1).reveal(), protocol=protocol)[
        0
    ]
    torch.testing.assert_close(found, salaries.std(1), rtol=2.0**-13, atol=0)


def test_a_trial_run_names_norms_beyond_their_domain() -> None:
    x = torch.tensor([2.0**29.6, 2.0**29.6])
    with pytest.warns(tacit.RangeWarning, match="aten.linalg_vector_norm"):
        tacit.launch(lambda: tacit.share(x, owner=0).norm().reveal(), protocol="plain", parties=2)


#: Orders without a formula of their own, from the least magnitude to the greatest.
ORDERS = (1 / 16, 0.5, 1.5, 3, 4, 16, -1 / 16, -0.5, -1, -3.5, -16)


@pytest.mark.parametrize(
    "setting", [("plain", 2, None), ("replicated", 3, None), ("additive", 2, "dealer")]
)
def test_norms_of_other_orders(setting: tuple[str, int, str | None]) -> None:
    protocol, parties, source = setting
    generator = torch.Generator().manual_seed(6)
    values = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    values = values * torch.tensor(
        [2.0**-6, 1.0, 2.0**12, 1.0, 0.0], dtype=torch.float64
    ).unsqueeze(1)
    values[3, ::2] = 0.0
    values = (values * 2.0**16).round() / 2.0**16

    def program() -> list[torch.Tensor]:
        x = tacit.share(values, owner=0)
        found = [torch.linalg.vector_norm(x, order, dim=1).reveal().double() for order in ORDERS]
        none = tacit.share(torch.empty(2, 0), owner=0).norm(3, dim=1)
        return [*found, none.reveal()]

    *found, none = tacit.launch(program, protocol=protocol, parties=parties, source=source)[0]
    assert none.tolist() == [0.0, 0.0]
    for order, norms in zip(ORDERS, found, strict=True):
        plain = torch.linalg.vector_norm(values, order, dim=1)
        # Results that cannot be encoded saturate.
        plain = plain.clamp(max=2.0**29.98)
        allowed = (2 + 1 / abs(order)) * 2.0**-13 * plain + 2 * 2.0**-16
        assert bool(((norms - plain).abs() <= allowed).all()), (order, norms, plain)


def test_what_norms_refuse() -> None:
    def program() -> None:
        x = tacit.share(torch.ones(3), owner=0).requires_grad_()
        with pytest.raises(
            tacit.UnsupportedOperatorError, match="the gradient of the norm of order 3"
        ):
            x.norm(3)
        for order in (0.05, 17, -100):
            with pytest.raises(tacit.UnsupportedOperatorError, match=f"the norm of order {order}"):
                x.detach().norm(order)

    tacit.launch(program, protocol="plain", parties=2)
