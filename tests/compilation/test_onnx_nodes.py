"""ONNX's own tests of single nodes pass, except those listed with a reason."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx_gaps
import onnx_nodes
import pytest
import torch

from tacit.compilation.importers import onnx as importer
from tacit.compilation.importers.onnx.table import OPERATORS
from tacit.errors import TacitError

#: The version of ONNX that the list was made with; the number of its tests that pass, without and
#: with expanded tests of what an operator can be composed of; and the number of operators that
#: these cover.
VERSION, PASSING, KINDS = "1.23.2", {False: 1050, True: 376}, 160


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    return onnx_nodes.cases()


@pytest.fixture(scope="module")
def listed() -> set[str]:
    return {name for names in onnx_gaps.GAPS.values() for name in names.split()}


@pytest.mark.parametrize("expanded", [False, pytest.param(True, marks=pytest.mark.long)])
def test_nodes(expanded: bool, cases: list[Any], listed: set[str], tmp_path: Path) -> None:
    """Detects gaps that are not listed, and listed gaps that pass."""
    import onnx

    tried = [case for case in cases if ("_expanded" in case.name) == expanded]
    failed = onnx_nodes.failures(tried, cases, tmp_path)
    told = {name: str(failed[name])[-200:] for name in failed.keys() - listed}
    assert not told
    passed = [case for case in tried if case.name not in failed]
    if onnx.__version__ == VERSION:
        wrong = listed.intersection(case.name for case in passed)
        assert not wrong, "these pass: run tests/compilation/onnx_survey.py"
        assert listed <= {case.name for case in cases}
    assert len(passed) >= PASSING[expanded]
    # Expanded tests cover other operators than their names say.
    kinds = Counter(onnx_nodes.operator(case) for case in passed)
    assert expanded or len(kinds) >= KINDS
    assert kinds.keys() <= {name for _, name in OPERATORS}


def test_nothing_is_listed_twice() -> None:
    counts = Counter(name for names in onnx_gaps.GAPS.values() for name in names.split())
    assert counts
    assert max(counts.values()) == 1


#: Numbers at which code tends to break: the limits of types, values around zero, and sizes that fit
#: in no memory.
EDGES = [
    -(1 << 63),
    -(1 << 31),
    -5,
    -1,
    0,
    1,
    2,
    100,
    5000,
    1 << 20,
    1 << 28,
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
]


@pytest.mark.long
def test_mutated_operators(cases: list[Any], listed: set[str], tmp_path: Path) -> None:
    """With random sizes, constants and attributes, a model loads, or tacit says why it does not."""
    draw, refusals = random.Random(17), 0
    sound = [case for case in cases if case.name not in listed and case.model.graph.input]
    for case in draw.sample(sound, 1000):
        model = type(case.model)()
        model.CopyFrom(case.model)
        names = [each.name for each in model.graph.input]
        named = dict(zip(names, onnx_nodes.arrays(case.data_sets[0][0]), strict=True))
        named = {name: np.array(each, copy=True) for name, each in named.items()}
        known = onnx_nodes.known_names(model) & named.keys()
        node, tensor = draw.choice(model.graph.node), named[draw.choice(sorted(known or named))]
        numbers = [each for each in node.attribute if each.ints]
        sizes = model.graph.input[draw.randrange(len(names))].type.tensor_type.shape.dim
        match draw.randrange(3):
            case 0 if numbers:
                ints = draw.choice(numbers).ints
                ints[draw.randrange(len(ints))] = draw.choice(EDGES)
            case 1 if tensor.dtype.kind == "i" and tensor.size:
                limits = np.iinfo(tensor.dtype)
                value = max(min(draw.choice(EDGES), int(limits.max)), int(limits.min))
                tensor.reshape(-1)[draw.randrange(tensor.size)] = value
            case _ if sizes:
                sizes[draw.randrange(len(sizes))].dim_value = draw.choice(EDGES)
        onnx_nodes.fix(model, known, named)
        onnx_nodes.renew(model)
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        try:
            importer.load(path)
        except TacitError:
            refusals += 1
    assert 200 < refusals < 800


@pytest.mark.long
def test_operators_are_traced(cases: list[Any], listed: set[str], tmp_path: Path) -> None:
    """Traces one test of each operator with `torch.export`."""
    seen: set[str] = set()
    for case in cases:
        kind = onnx_nodes.operator(case)
        if case.name in listed or "_expanded" in case.name or kind in seen:
            continue
        seen.add(kind)
        given = onnx_nodes.arrays(case.data_sets[0][0])
        imported, inputs = onnx_nodes.read(
            case, given, onnx_nodes.known_names(case.model), tmp_path
        )
        traced = torch.export.export(imported.module, inputs).module()(*inputs)
        traced = tuple(traced) if isinstance(traced, (list, tuple)) else (traced,)
        found = imported.module(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        for have, want in zip(traced, found, strict=True):
            torch.testing.assert_close(
                have, want, rtol=1e-6, atol=1e-6, equal_nan=True, msg=case.name
            )
    assert len(seen) >= KINDS
