"""Hostile ONNX files do no harm: the resources they ask for are bounded, and the paths they name
stay inside their folder."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from onnx_made import REAL, load, model, refused, relu

from tacit.compilation.importers.onnx import graph, reading
from tacit.errors import TacitError, UnsupportedOperatorError


def test_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 50)
    assert "no more than 2 GiB can be read: save its weights beside it" in refused(relu(), tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(reading, "MOST_NODES", 0)
    assert "has 1 operators; 0 are the most" in refused(relu(), tmp_path)


def outside(folder: Path, location: str, **entries: Any) -> Any:
    made = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        {"x": [4]},
        ["y"],
        {"w": np.ones(4, np.float32)},
    )
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    (folder / "weights").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    return made


def test_weights_beside_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"\0" * 100)
    (folder / "link").symlink_to(tmp_path / "secret")
    imported = load(outside(folder, "weights", offset=8, length=16), folder)
    assert torch.equal(imported.module.w, torch.tensor([2.0, 3, 4, 5]))
    for location in ("../secret", str(tmp_path / "secret"), "link", "inner/../../secret"):
        assert "outside of the model's folder" in refused(outside(folder, location), folder)
    assert "is not beside the model" in refused(outside(folder, "absent"), folder)
    assert "does not say in which" in refused(outside(folder, ""), folder)
    for wrong in ({"offset": 12}, {"offset": -4}, {"length": 1 << 40}, {"length": 4}):
        assert "needs 16 bytes" in refused(outside(folder, "weights", **wrong), folder)
    assert "no numbers for its place" in refused(outside(folder, "weights", offset="a"), folder)


def test_tensors_hold_what_they_declare(tmp_path: Path) -> None:
    made = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        {"x": [4]},
        ["y"],
        {"w": np.ones(4, np.float32)},
    )
    for dims, told in (
        ([5], "holds 16 of 20 in raw_data"),
        ([1 << 40, 4], "which no tensor has"),
        ([-4], "no tensor"),
    ):
        del made.graph.initializer[0].dims[:]
        made.graph.initializer[0].dims.extend(dims)
        assert told in refused(made, tmp_path)


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("ConstantOfShape", ["n"], ["big"]),
        helper.make_node("Expand", ["one", "n"], ["big"]),
        helper.make_node("Tile", ["row", "n"], ["big"]),
        helper.make_node("Resize", ["row", "", "f"], ["big"]),
    ],
)
def test_what_is_computed_of_constants_is_bounded(node: Any, tmp_path: Path) -> None:
    nodes = [
        node,
        helper.make_node("ReduceSum", ["big"], ["s"]),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    held = {
        "n": np.int64([1 << 20, 1 << 20]),
        "one": np.float32(1),
        "row": np.ones((1, 2), np.float32),
        "f": np.float32([1e9, 1e9]),
    }
    with pytest.raises(TacitError):
        load(model(nodes, {"x": [2]}, ["y"], held), tmp_path)


def test_functions_that_grow_are_counted(tmp_path: Path) -> None:
    """Sixty nested functions that expand to 2^60 operators."""
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    made = model(
        [helper.make_node("f0", ["x"], ["y"], domain="own")],
        {"x": [2]},
        ["y"],
        opset_imports=imports[1:],
    )
    for at in range(60):
        inner = "Relu" if at == 59 else f"f{at + 1}"
        domain = "" if at == 59 else "own"
        body = [
            helper.make_node(inner, ["a"], ["b"], domain=domain),
            helper.make_node(inner, ["b"], ["c"], domain=domain),
        ]
        made.functions.append(helper.make_function("own", f"f{at}", ["a"], ["c"], body, imports))
    assert "operators; 100000 are the most" in refused(made, tmp_path)
    made.functions[59].node[0].op_type, made.functions[59].node[0].domain = "f0", "own"
    assert "functions that call themselves" in refused(made, tmp_path)
    del made.functions[3:]
    made.functions[2].node[0].op_type = made.functions[2].node[1].op_type = "Relu"
    made.functions[2].node[0].domain = made.functions[2].node[1].domain = ""
    assert torch.equal(load(made, tmp_path).module(torch.tensor([-1.0, 2])), torch.tensor([0.0, 2]))


def test_names_are_quoted(tmp_path: Path) -> None:
    made = model(
        [helper.make_node("Unique", ["x"], ["y"], name="\x1b[2J\n" + "n" * 500)], {"x": [2]}, ["y"]
    )
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert "\x1b" not in told
    assert len(told) < 400


def fuzzed() -> Any:
    """A model with most features that files can have."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Shape", ["c"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["wanted"], axis=0),
        helper.make_node("MaxPool", ["c"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Resize", ["m", "", "factors"], ["r"]),
        helper.make_node("Reshape", ["r", "wanted"], ["flat"]),
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Mul", ["flat", "half"], ["y"]),
    ]
    held = {
        "w": np.ones((2, 1, 3, 3), np.float32),
        "b": np.ones(2, np.float32),
        "zero": np.int64([0]),
        "rest": np.int64([-1]),
        "factors": np.float32([1, 1, 2, 2]),
    }
    return model(nodes, {"x": [1, 1, 4, 4]}, ["y"], held)


def test_mutated_files(tmp_path: Path) -> None:
    """Mutated files end in errors of tacit. If one loads, it can be used."""
    whole = fuzzed().SerializeToString()
    assert load(whole, tmp_path).module(torch.ones(1, 1, 4, 4)).shape == (1, 32)
    draw = random.Random(13)
    refusals = 0
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(content))
            match draw.randrange(3):
                case 0:
                    content[at] = draw.randrange(256)
                case 1:
                    del content[at : at + draw.randint(1, 8)]
                case _:
                    content[at:at] = draw.randbytes(draw.randint(1, 8))
        try:
            load(bytes(content), tmp_path)
        except TacitError:
            refusals += 1
    assert 100 < refusals < 300


def test_the_bound_of_constants_is_what_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nodes = [
        helper.make_node("Expand", ["one", "n"], ["big"]),
        helper.make_node("Add", ["x", "big"], ["y"]),
    ]
    made = model(nodes, {"x": [100]}, ["y"], {"n": np.int64([100]), "one": np.float32([1])})
    assert load(made, tmp_path).inputs
    monkeypatch.setattr(graph, "MOST_FOLDED", 99)
    assert "what the file computes of constants is too large" in refused(
        made, tmp_path, UnsupportedOperatorError
    )


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"])
@pytest.mark.parametrize("raw", [True, False])
def test_real_weights_of_all_types(kind: str, raw: bool, tmp_path: Path) -> None:
    values = np.float32([1.5, -2.25, 0.0, 1024])
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, ["y"])
    number = getattr(TensorProto, kind)
    content = values.astype(helper.tensor_dtype_to_np_dtype(number))
    held = helper.make_tensor("w", number, [4], content.tobytes() if raw else content, raw=raw)
    made.graph.initializer.append(held)
    assert torch.equal(load(made, tmp_path).module.w, torch.from_numpy(values))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "bool"])
def test_whole_numbers_of_all_types(dtype: str, tmp_path: Path) -> None:
    values = np.array([1, 0, 3, 1]).astype(dtype)
    nodes = [
        helper.make_node("Cast", ["w"], ["c"], to=REAL),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    made = model(nodes, {"x": [4]}, ["y"], {"w": values})
    found = load(made, tmp_path).module(torch.zeros(4))
    assert torch.equal(found, torch.from_numpy(values.astype(np.float32)))
