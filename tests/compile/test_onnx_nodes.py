"""ONNX's own tests of single nodes pass, all but those that are listed with their reason."""

from collections import Counter
from pathlib import Path
from typing import Any

import onnx_gaps
import onnx_nodes
import pytest

from tacit.compile.importers.onnx.table import OPERATORS

#: The version of ONNX that the list was made with, and how many of its tests, and of their operators, pass.
VERSION, PASSING, KINDS = "1.23.2", 1400, 160


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    return onnx_nodes.cases()


def test_nodes(cases: list[Any], tmp_path: Path) -> None:
    """Neither a gap that is not listed nor a listed one that passes goes unnoticed."""
    import onnx

    listed = {name for names in onnx_gaps.GAPS.values() for name in names.split()}
    failed = onnx_nodes.failures(cases, tmp_path)
    told = {name: str(failed[name])[-200:] for name in failed.keys() - listed}
    assert not told
    passed = [case for case in cases if case.name not in failed]
    if onnx.__version__ == VERSION:
        assert not listed - failed.keys(), "these pass: run tests/compile/onnx_survey.py"
        assert len(passed) >= PASSING
    # Expanded tests are of other operators than their names say.
    kinds = Counter(onnx_nodes.operator(case) for case in passed if "expanded" not in case.name)
    assert len(kinds) >= KINDS
    assert kinds.keys() <= OPERATORS.keys()


def test_nothing_is_listed_twice() -> None:
    counts = Counter(name for names in onnx_gaps.GAPS.values() for name in names.split())
    assert counts
    assert max(counts.values()) == 1
