"""Operators that PyTorch composes of others.

If programs may not call the whole operator, it is decomposed. The result is that on secret tensors.
"""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit
from models import Whole
from tacit.compilation.graph import is_call
from tacit.compilation.importers.exported import of_module
from tacit.errors import UnsupportedOperatorError
from tacit.providers import REFERENCE

ROWS = torch.randn(3, 6, generator=torch.Generator().manual_seed(1))
VECTORS = torch.randn(4, 3, generator=torch.Generator().manual_seed(2))
IMAGES = torch.randn(1, 2, 5, 5, generator=torch.Generator().manual_seed(3))

#: Public sampling positions in an image.
PLACES = functional.affine_grid(
    torch.tensor([[[1.0, 0.1, 0.0], [0.0, 1.0, 0.1]]]), (1, 2, 4, 4), False
)


#: A matrix with the magnitude of sums of squares over many rows.
SQUARE = torch.eye(3) * 1e4 + torch.randn(3, 3, generator=torch.Generator().manual_seed(4)) * 1e3

CASES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "std": (lambda x: x.std(1), ROWS),
    "linalg.solve": (lambda x: torch.linalg.solve(x, x.sum(1)), SQUARE),
    "linalg.inv": (lambda x: torch.linalg.inv(x / 1e4), SQUARE),
    "linalg.cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT / 1e4), SQUARE),
    "var": (lambda x: x.var(1), ROWS),
    "var_mean": (lambda x: torch.stack(torch.var_mean(x, 1), 1), ROWS),
    "cosine_similarity": (lambda x: functional.cosine_similarity(x, x.flip(0)), ROWS),
    "pairwise_distance": (lambda x: functional.pairwise_distance(x, x.flip(1)), ROWS),
    "cdist": (lambda x: torch.cdist(x, x.flip(1) * 0.5), ROWS),
    "logsigmoid": (functional.logsigmoid, ROWS),
    "outer": (lambda x: torch.outer(x[0], x[1]), ROWS),
    "kron": (lambda x: torch.kron(x[:, :2], x[:, 2:4]), ROWS),
    "tensordot": (lambda x: torch.tensordot(x, x, ([1], [1])), ROWS),
    "cross": (lambda x: torch.cross(x, x.flip(0), dim=1), VECTORS),
    "one_hot": (lambda x: functional.one_hot(x.argmax(1), 6).float(), ROWS),
    "diff": (lambda x: torch.diff(x, dim=1), ROWS),
    "trapezoid": (lambda x: torch.trapezoid(x, dim=1), ROWS),
    "linalg.norm": (lambda x: torch.linalg.norm(x, dim=1), ROWS),
    "bicubic": (lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"), IMAGES),
    "grid_sample": (lambda x: functional.grid_sample(x, PLACES, align_corners=False), IMAGES),
    "affine_grid": (
        lambda x: functional.grid_sample(
            x,
            functional.affine_grid(torch.eye(2, 3).unsqueeze(0), [1, 2, 4, 4], False),
            align_corners=False,
        ),
        IMAGES,
    ),
    "rrelu": (functional.rrelu, ROWS),
    "cov": (torch.cov, ROWS),
    "cov of one": (lambda x: x[0].cov(correction=0), ROWS),
}


@pytest.mark.parametrize("name", CASES)
def test_a_composed_operator_gives_what_it_gives_on_secret_tensors(name: str) -> None:
    function, x = CASES[name]
    program, weights = tacit.compile(Whole(function).eval(), x)

    def compiled() -> torch.Tensor | None:
        bound = program.share(weights if tacit.session().party == 0 else None, owner=0)
        result = bound(bound.given(x if tacit.session().party == 1 else None, owner=1))
        return result.reveal()

    def eager() -> torch.Tensor | None:
        return function(tacit.share(x, owner=1)).reveal()

    found, expected = (
        tacit.launch(each, parties=2, protocol=REFERENCE)[0] for each in (compiled, eager)
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=2.0**-13)
    torch.testing.assert_close(found, function(x), rtol=1e-2, atol=1e-2)


def test_what_a_program_may_call_stays_whole() -> None:
    module = nn.Sequential(
        nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(12, 3), nn.LogSigmoid()
    )
    draft = of_module(module.eval(), (torch.randn(1, 2, 5),), {})
    called = [str(node.target).split(".")[1] for node in draft.graph.nodes if is_call(node)]
    assert called == ["conv1d", "group_norm", "reshape", "linear", "log_sigmoid_forward"]


def test_what_a_composed_operator_lacks_is_named() -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"aten\.i0"):
        of_module(Whole(lambda x: torch.special.i0(x.std(1))).eval(), (ROWS,), {})
