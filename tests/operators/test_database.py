"""Every operator of PyTorch's own database matches plain tensors or is a listed gap.

The refusal of a listed gap contains the listed reason.
"""

import warnings
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gaps
import harness
import pytest
import torch

import tacit
from tacit.commands import coverage, operators

OPERATORS = [f"{name}/{variant}" if variant else name for name, variant in harness.operators()]

#: Operator families that CrypTen-like libraries get wrong most often. They are tested on shares
#: too, not only on the reference.
ON_SHARES = [
    "abs",
    "add",
    "addmm",
    "argmax",
    "argmin",
    "amax",
    "bmm",
    "bool",
    "cat",
    "clamp",
    "cumsum",
    "div/no_rounding_mode",
    "eq",
    "ge",
    "gather",
    "index_put",
    "le",
    "linalg.multi_dot",
    "lt",
    "masked_fill",
    "matmul",
    "masked.amax",
    "max/reduction_with_dim",
    "maximum",
    "mean",
    "min/reduction_with_dim",
    "mul",
    "ne",
    "nn.functional.adaptive_avg_pool2d",
    "nn.functional.avg_pool2d",
    "nn.functional.conv1d",
    "nn.functional.conv2d",
    "nn.functional.hardswish",
    "nn.functional.hardtanh",
    "nn.functional.huber_loss",
    "nn.functional.interpolate/bicubic",
    "nn.functional.leaky_relu",
    "nn.functional.linear",
    "nn.functional.max_pool2d",
    "nn.functional.pad/constant",
    "nn.functional.prelu",
    "nn.functional.relu",
    "roll",
    "sign",
    "sub",
    "sum",
    "var",
    "where",
]


#: Operators that work at least in part.
WORKING = set(OPERATORS) - set(gaps.REFUSED) - gaps.NO_INPUT - gaps.ELSEWHERE

#: Fraction bits that shared tensors take in turn. None is the session's scale.
SCALES = (20, 13, 24)


def attempt_at_scales(samples: list[harness.Sample]) -> list[Any]:
    """Runs in a party. Runs samples at scales that differ from each other and from the session's.

    The operators themselves check the scale of each result against the scale that their rules
    predict.
    """
    with tacit.fraction_bits(18):
        return harness.attempt(samples, SCALES)


def check(
    key: str,
    protocol: str,
    parties: int,
    attempt: Callable[[list[harness.Sample]], list[Any]] = harness.attempt,
    source: str | None = None,
) -> None:
    """Runs an operator's samples and checks each against the plain result or the list of gaps."""
    name, _, variant = key.partition("/")
    samples = harness.samples(name, variant)
    if key in gaps.NO_INPUT:
        assert not samples
        return
    assert samples, "the database has no usable samples"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = tacit.launch(
            attempt, samples, parties=parties, protocol=protocol, source=source
        )[0]
        wrong = [
            None
            if isinstance(found, Exception)
            else harness.wrong(sample, found, key not in gaps.UNDEFINED)
            for sample, found in zip(samples, outcomes, strict=True)
        ]
    for sample, what in zip(samples, wrong, strict=True):
        assert what is None, f"sample {sample.at}, all secret: {sample.all_secret}: {what}"
    refusals = [found for found in outcomes if isinstance(found, Exception)]
    successes = len(outcomes) - len(refusals)
    if key in gaps.ELSEWHERE:
        assert not successes
        return
    assert all(isinstance(refusal, tacit.MisuseError) for refusal in refusals), refusals
    if key in gaps.REFUSED:
        assert not successes, "it works: take it out of the list of gaps"
        assert any(gaps.REFUSED[key] in str(refusal) for refusal in refusals)
    elif key in gaps.PARTLY:
        assert successes, "no form works: it belongs to REFUSED"
        assert refusals, "all forms work: take it out of the list of gaps"
        assert any(gaps.PARTLY[key] in str(refusal) for refusal in refusals)
    else:
        assert not refusals, refusals[0]


@pytest.mark.parametrize("key", OPERATORS)
def test_operator(key: str) -> None:
    check(key, "plain", 2)


@pytest.mark.parametrize("key", ON_SHARES)
def test_operator_at_scales_that_differ(key: str) -> None:
    check(key, "plain", 2, attempt_at_scales)


@pytest.mark.long
@pytest.mark.parametrize("key", sorted(WORKING - set(ON_SHARES)))
def test_every_other_operator_at_scales_that_differ(key: str) -> None:
    check(key, "plain", 2, attempt_at_scales)


@pytest.mark.parametrize("key", ON_SHARES)
def test_operator_on_shares(key: str) -> None:
    check(key, "replicated", 3)


#: Operators that draw random numbers. Each party would draw others, so the programs would differ.
DRAWING = {"pca_lowrank", "svd_lowrank"}


@pytest.mark.long
@pytest.mark.parametrize("key", sorted(set(OPERATORS) - set(ON_SHARES) - DRAWING))
def test_every_other_operator_on_shares(key: str) -> None:
    check(key, "replicated", 3)


@pytest.mark.long
@pytest.mark.parametrize("key", sorted(WORKING - DRAWING))
def test_operator_by_additive_sharing(key: str) -> None:
    """Additive sharing takes five hundred sessions with a dealer, so the test is long."""
    check(key, "additive", 2, source="dealer")


def test_the_lists_name_operators_that_exist() -> None:
    # Another release of PyTorch may lack some. The release in the lock file has them all.
    lists = gaps.NO_INPUT | gaps.ELSEWHERE | set(ON_SHARES)
    lists |= set(coverage.operator_coverage().names)
    assert lists <= set(OPERATORS), (
        f"with PyTorch {torch.__version__}: {sorted(lists - set(OPERATORS))}"
    )
    assert set(OPERATORS) <= lists, "tests/operators/survey.py finds out of which kind they are"


def test_the_lists_are_as_the_surveys_write_them() -> None:
    folder = Path(coverage.__file__).parent
    for name in ("operator_coverage", "gradient_coverage"):
        found = getattr(coverage, name)()
        assert found.whole and found.partly and found.refused  # noqa: PT018
        assert (folder / f"{name}.json").read_text() == found.to_json(), f"{name}: run its survey"


def test_the_page_of_operators_is_what_the_lists_say(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).resolve().parents[2]
    assert (root / "docs" / "operators.md").read_text() == operators.page(), (
        "run tests/operators/survey.py"
    )
    operators.run(Namespace(word="softm", write=None))
    shown = capsys.readouterr().out
    assert "softmin" in shown
    assert "relu" not in shown
