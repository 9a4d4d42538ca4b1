"""Norms from a few units of fixed point to the end of their domain."""

import pytest
import torch

import tacit


@pytest.mark.parametrize("protocol", ["plain", "replicated"])
def test_euclidean_norms_in_all_of_their_domain(protocol: str) -> None:
    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(12, 40, generator=generator, dtype=torch.float64)
    rows = rows / rows.norm(dim=1, keepdim=True)
    norms = 2.0 ** torch.tensor([-8, -6, -3, 0, 3, 6, 6.99, 7.01, 9, 12, 14, 14.99], dtype=torch.float64)
    values = ((rows * norms.unsqueeze(1)) * 2.0**16).round() / 2.0**16

    def program() -> list[torch.Tensor]:
        found = [tacit.share(values, owner=0), tacit.share(values, owner=0, scale=20)]
        return [torch.linalg.vector_norm(x, dim=1).reveal().double() for x in found]

    for found in tacit.launch(program, protocol=protocol)[0]:
        error = (found - values.norm(dim=1)).abs()
        assert bool((error < 2.0**-13 * norms + 2 * 2.0**-16).all())
    zeros = tacit.launch(lambda: tacit.share(torch.zeros(3), owner=0).norm().reveal(), protocol=protocol)[0]
    assert zeros == 0
