"""Every imported version of ONNX's operators, checked against ONNX's reference evaluator."""

import re
from pathlib import Path

import onnx_nodes
import onnx_opsets
import pytest
from onnx_opsets import NONE, OTHER, REFUSED, RIGHT, UNKNOWN
from test_onnx_nodes import VERSION

#: The number of each outcome over ONNX's tests of single nodes at all versions of their operators,
#: with that version of ONNX, whose newest operators are of opset 28; and the number of operators
#: with at least one agreeing result.
COUNTS = {RIGHT: 3025, REFUSED: 964, NONE: 565, UNKNOWN: 80, OTHER: 32}
KINDS = 163

#: Why results differ, by the test's name, and how often.
EXPLAINED = {
    r"_bf16 ": ("Values rounded to 16 bits between steps.", 18),
    r"top_k_same_values": ("Which of equals comes first is left open by PyTorch's topk.", 9),
    r"dft_inverse": ("Rounding errors near 0 that the evaluator has.", 3),
    r"batchnorm_(example|epsilon) at 13": (
        "Before opset 14 five results say that a normalisation trains; the evaluator takes one "
        "that has a "
        "momentum, as all have, to train.",
        2,
    ),
}


@pytest.mark.long
def test_all_versions_are_as_the_evaluator_has_them(tmp_path: Path) -> None:
    import onnx

    cases = [case for case in onnx_nodes.cases() if "_expanded" not in case.name]
    found = onnx_opsets.survey(cases, tmp_path)
    reasons = [[why for why in EXPLAINED if re.search(why, at)] for at in found.others]
    told = [
        f"{at}: {what[-200:]}"
        for (at, what), known in zip(found.others.items(), reasons, strict=True)
        if not known
    ]
    assert not told
    assert len(found.right) >= KINDS
    if onnx.__version__ == VERSION:
        assert onnx_opsets.newest() == 28
        assert dict(found.counts) == COUNTS
        assert {why: reasons.count([why]) for why in EXPLAINED} == {
            why: count for why, (_, count) in EXPLAINED.items()
        }
