"""ONNX's own tests of single nodes pass, all but those that are listed with their reason."""

from collections import Counter
from pathlib import Path
from typing import Any

import onnx_gaps
import onnx_nodes
import pytest
import torch

from tacit.compile.importers.onnx.table import OPERATORS

#: The version of ONNX that the list was made with, and how many of its tests pass of those that are about an
#: operator, and of those that are about what an operator can be made of; and how many operators that makes.
VERSION, PASSING, KINDS = "1.23.2", {False: 1050, True: 376}, 160


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    return onnx_nodes.cases()


@pytest.fixture(scope="module")
def listed() -> set[str]:
    return {name for names in onnx_gaps.GAPS.values() for name in names.split()}


@pytest.mark.parametrize("expanded", [False, pytest.param(True, marks=pytest.mark.long)])
def test_nodes(expanded: bool, cases: list[Any], listed: set[str], tmp_path: Path) -> None:
    """Neither a gap that is not listed nor a listed one that passes goes unnoticed."""
    import onnx

    tried = [case for case in cases if ("_expanded" in case.name) == expanded]
    failed = onnx_nodes.failures(tried, cases, tmp_path)
    told = {name: str(failed[name])[-200:] for name in failed.keys() - listed}
    assert not told
    passed = [case for case in tried if case.name not in failed]
    if onnx.__version__ == VERSION:
        wrong = listed.intersection(case.name for case in passed)
        assert not wrong, "these pass: run tests/compile/onnx_survey.py"
        assert listed <= {case.name for case in cases}
    assert len(passed) >= PASSING[expanded]
    # Expanded tests are of other operators than their names say.
    kinds = Counter(onnx_nodes.operator(case) for case in passed)
    assert expanded or len(kinds) >= KINDS
    assert kinds.keys() <= OPERATORS.keys()


def test_nothing_is_listed_twice() -> None:
    counts = Counter(name for names in onnx_gaps.GAPS.values() for name in names.split())
    assert counts
    assert max(counts.values()) == 1


@pytest.mark.long
def test_operators_are_traced(cases: list[Any], listed: set[str], tmp_path: Path) -> None:
    """One test of each operator, by what `torch.export` makes of it."""
    seen: set[str] = set()
    for case in cases:
        kind = onnx_nodes.operator(case)
        if case.name in listed or "_expanded" in case.name or kind in seen:
            continue
        seen.add(kind)
        given = onnx_nodes.arrays(case.data_sets[0][0])
        imported, inputs = onnx_nodes.read(case, given, onnx_nodes.known_names(case.model), tmp_path)
        traced = torch.export.export(imported.module, inputs).module()(*inputs)
        traced = tuple(traced) if isinstance(traced, (list, tuple)) else (traced,)
        found = imported.module(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        for have, want in zip(traced, found, strict=True):
            torch.testing.assert_close(have, want, rtol=1e-6, atol=1e-6, equal_nan=True, msg=case.name)
    assert len(seen) >= KINDS
