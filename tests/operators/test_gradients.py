"""The gradient of every operator in PyTorch's database matches plain tensors or is a listed gap.

The refusal of a listed gap contains the listed reason.
"""

import gradients
import pytest

from tacit.commands.coverage import gradient_coverage

COVERAGE = gradient_coverage()

#: The operators that training uses. They are tested on shares too, not only on the reference.
ON_SHARES = [
    "addmm",
    "amax",
    "bmm",
    "cat",
    "clamp",
    "cumsum",
    "index_select",
    "masked_fill",
    "matmul",
    "mean",
    "mul",
    "nn.functional.embedding",
    "nn.functional.hardtanh",
    "nn.functional.interpolate/nearest",
    "nn.functional.leaky_relu",
    "nn.functional.linear",
    "nn.functional.pad/reflect",
    "nn.functional.prelu",
    "nn.functional.relu",
    "sum",
    "var",
    "where",
]


def check(key: str, protocol: str, parties: int, source: str | None = None) -> None:
    """Checks an operator's gradients against the plain ones and the lists."""
    verdict = gradients.verdict(key, protocol, parties, source)
    assert verdict.is_empty == (key in COVERAGE.none)
    assert not verdict.wrong, verdict.wrong[0]
    refused = COVERAGE.partly.get(key, COVERAGE.refused.get(key))
    assert bool(verdict.right) == (key in COVERAGE.whole or key in COVERAGE.partly)
    if refused is None:
        assert not verdict.refusals, verdict.refusals[0]
    else:
        assert any(refused in refusal for refusal in verdict.refusals), (
            "survey_gradients.py writes the lists"
        )


@pytest.mark.parametrize("key", gradients.KEYS)
def test_gradient(key: str) -> None:
    check(key, "plain", 2)


@pytest.mark.parametrize("key", ON_SHARES)
def test_gradient_on_shares(key: str) -> None:
    check(key, "replicated", 3)


@pytest.mark.long
@pytest.mark.parametrize("key", sorted({*COVERAGE.whole, *COVERAGE.partly} - set(ON_SHARES)))
def test_every_other_gradient_on_shares(key: str) -> None:
    check(key, "replicated", 3)


@pytest.mark.long
@pytest.mark.parametrize("key", sorted({*COVERAGE.whole, *COVERAGE.partly}))
def test_gradient_by_additive_sharing(key: str) -> None:
    """Additive sharing takes four hundred sessions with a dealer, so the test is long."""
    check(key, "additive", 2, "dealer")


def test_the_lists_name_every_operator_once() -> None:
    listed = [*COVERAGE.none, *COVERAGE.whole, *COVERAGE.partly, *COVERAGE.refused]
    assert sorted(listed) == sorted(gradients.KEYS)
