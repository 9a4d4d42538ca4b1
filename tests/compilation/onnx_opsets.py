"""ONNX's own tests of single nodes at every imported version of their operators.

The results are checked against ONNX's reference evaluator, which supports all versions.
"""

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx_nodes

from tacit.compilation.importers.onnx.reading import OLDEST
from tacit.errors import TacitError

#: Outcomes of a test at a version: the result agrees with the evaluator; tacit refuses it and names
#: the cause; the operator did not exist, or differed, at that version; the evaluator has no answer;
#: anything else.
RIGHT, REFUSED, NONE, UNKNOWN, OTHER = (
    "right",
    "refused",
    "no such operator then",
    "not evaluated",
    "other",
)


class Found(NamedTuple):
    """Outcomes of all tests."""

    counts: Counter[str]
    right: set[str]
    """Operators with at least one agreeing result."""
    others: dict[str, str]
    """Results that differ, by test and version."""


def newest() -> int:
    """Returns ONNX's newest version of its operators."""
    from onnx import defs

    return int(defs.onnx_opset_version())


def versions(case: Any) -> list[int]:
    """Returns the versions at which to run a test: one for each change of its operator since the
    oldest imported version, and the newest."""
    from onnx import defs

    kind, found = onnx_nodes.operator(case), dict[int, int]()
    for version in range(OLDEST, newest() + 1):
        if defs.has(kind, version, ""):
            found.setdefault(defs.get_schema(kind, version).since_version, version)
    return sorted({*found.values(), newest()})


def survey(cases: list[Any], folder: Path) -> Found:
    """Runs the given tests at all their versions."""
    found = Found(Counter(), set(), {})
    for case in cases:
        for version in versions(case):
            for outcome, detail in _outcomes(case, version, folder):
                found.counts[outcome] += 1
                if outcome == RIGHT:
                    found.right.add(onnx_nodes.operator(case))
                elif outcome == OTHER:
                    found.others[f"{case.name} at {version}"] = detail
    return found


def _outcomes(case: Any, version: int, folder: Path) -> Iterator[tuple[str, str]]:
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    if any(each.domain for each in model.opset_import):
        return
    model.opset_import[0].version = version
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        yield NONE, str(error)
        return
    for data in case.data_sets:
        given: list[Any] = []
        try:
            given = onnx_nodes.arrays(data[0])
            named = dict(zip([each.name for each in model.graph.input], given, strict=True))
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                expected = ReferenceEvaluator(model).run(None, named)
            expected = onnx_nodes.arrays(expected)
        except Exception as error:
            yield UNKNOWN, str(error)
            continue
        try:
            moved = _Moved(case, model)
            imported, inputs = onnx_nodes.read(moved, given, onnx_nodes.known_names(model), folder)
            result = imported.module(*inputs)
        except TacitError as error:
            yield REFUSED, str(error)
            continue
        except Exception as error:
            yield OTHER, f"{type(error).__name__}: {error}"
            continue
        several = result if isinstance(result, tuple) else (result,)
        try:
            onnx_nodes.compare(several, expected, case.rtol, case.atol)
        except AssertionError as error:
            yield OTHER, str(error)
        else:
            yield RIGHT, ""


class _Moved:
    """A test whose model is moved to another version."""

    def __init__(self, case: Any, model: Any) -> None:
        self.model, self.data_sets = model, case.data_sets


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        everything = survey(
            [each for each in onnx_nodes.cases() if "_expanded" not in each.name], Path(name)
        )
    print(everything.counts, len(everything.right))
    for at, what in sorted(everything.others.items()):
        print(at, "|", " ".join(what.split())[:200])
