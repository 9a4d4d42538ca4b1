"""ONNX's own tests of single nodes, run on the module that the importer makes of each.

tacit must know some inputs at import (shapes, axes, bounds). These become constants of the model
first.
"""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tacit.compilation.importers import onnx as importer
from tacit.compilation.importers.imported import Imported
from tacit.compilation.importers.onnx.reading import OLDEST
from tacit.compilation.importers.onnx.table import operator_of


def cases() -> list[Any]:
    """Returns all tests of ONNX's own domain in a fixed order."""
    with warnings.catch_warnings():
        # Some cases contain divisions by zero.
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return sorted(collect_testcases(None), key=lambda case: case.name)


def operator(case: Any) -> str:
    """Returns the operator that a test is about."""
    return str(case.model.graph.node[0].op_type)


def fix(model: Any, names: set[str], inputs: dict[str, Any]) -> None:
    """Turns the named inputs into constants of the model."""
    from onnx import numpy_helper

    kept = [each for each in model.graph.input if each.name not in names]
    for name in sorted(names & set(inputs)):
        model.graph.initializer.append(numpy_helper.from_array(inputs[name], name))
    del model.graph.input[:]
    model.graph.input.extend(kept)


def known_names(model: Any) -> set[str]:
    """Returns the inputs whose values an operator needs at import."""
    found = set()
    for node in model.graph.node:
        entry = operator_of(node.domain, node.op_type)
        if entry is not None:
            found |= {name for at, name in enumerate(node.input) if entry.knows(at)}
    return found


def run(case: Any, known: set[str], folder: Path) -> None:
    """Imports the test's model and checks its outputs against those that ONNX expects.

    Raises:
        Exception: tacit does not import the model, or an output differs.
    """

    for data in case.data_sets:
        given, expected = (arrays(part) for part in data)
        imported, inputs = read(case, given, known, folder)
        found = imported.module(*inputs)
        compare(found if isinstance(found, tuple) else (found,), expected, case.rtol, case.atol)


def read(
    case: Any, given: list[Any], known: set[str], folder: Path
) -> tuple[Imported, tuple[torch.Tensor, ...]]:
    """Imports the test's model for these inputs. Returns it with the remaining inputs in the form
    that it takes."""
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    named = dict(zip([each.name for each in model.graph.input], given, strict=True))
    fix(model, known, {name: np.asarray(each) for name, each in named.items()})
    renew(model)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    imported = importer.load(
        path, {each.name: np.shape(named[each.name]) for each in model.graph.input}
    )
    return imported, tuple(
        torch.from_numpy(np.array(named[name], copy=True, dtype=_numpy(dtype)))
        for name, dtype, _ in imported.inputs
    )


def arrays(values: Any) -> list[np.ndarray[Any, Any]]:
    """Returns the tensors of a test, which are stored in one of several forms."""
    return [_array(each) for each in values]


def _array(value: Any) -> np.ndarray[Any, Any]:
    import onnx

    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        raise TypeError("its values are no tensors")
    return np.asarray(value)


def renew(model: Any) -> None:
    """Raises a model's version to the oldest that is imported, if its operators are the same there.

    Each test is of the version that introduced its operator.
    """
    from onnx import defs

    for each in model.opset_import:
        if each.domain == "" and each.version < OLDEST:
            kinds = {node.op_type for node in model.graph.node}
            same = (
                defs.get_schema(kind, OLDEST).since_version
                == defs.get_schema(kind, each.version).since_version
                for kind in kinds
            )
            each.version = OLDEST if all(same) else each.version


def compare(
    found: tuple[torch.Tensor, ...], expected: Any, relative: float, absolute: float
) -> None:
    """Compares shapes, kinds, and values within ONNX's own tolerance."""
    assert len(found) == len(expected)
    for have, want in zip(found, expected, strict=True):
        want = np.asarray(want)
        assert tuple(have.shape) == want.shape, f"shape {tuple(have.shape)}, not {want.shape}"
        real = want.dtype.kind not in "biu"
        assert have.is_floating_point() == real, f"type {have.dtype}, not {want.dtype}"
        if not real:
            np.testing.assert_array_equal(have.numpy(), want)
            assert str(have.dtype) == f"torch.{want.dtype}", f"type {have.dtype}, not {want.dtype}"
        else:
            # The test has this value in float32; the file has it rounded to a narrower type.
            rounded = have.numpy().astype(want.dtype).astype(np.float32)
            np.testing.assert_allclose(
                rounded, want.astype(np.float32), rtol=relative, atol=absolute
            )


def _numpy(dtype: torch.dtype) -> Any:
    return torch.empty(0, dtype=dtype).numpy().dtype


def plain_name(name: str) -> str:
    """Returns the name of the test that an expanded test was derived from."""
    return re.sub(r"(_ver\d+)?_expanded(_ver\d+)?$", "", name)


def failures(cases: list[Any], among: list[Any], folder: Path) -> dict[str, Exception]:
    """Returns the tests that do not pass, with their errors.

    Args:
        cases: The tests to run.
        among: All tests. Expanded tests are matched to their originals in it.
        folder: Where models are written.
    """
    by_name = {case.name: case for case in among}
    found: dict[str, Exception] = {}
    for case in cases:
        plain = by_name.get(plain_name(case.name), case)
        try:
            run(case, known_names(case.model) | known_names(plain.model), folder)
        except Exception as error:
            found[case.name] = error
    return found
