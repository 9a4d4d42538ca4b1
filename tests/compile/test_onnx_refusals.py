"""What a file of ONNX may not be is told by name, and nothing that a file holds does harm."""

import builtins
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from tacit.compile.importers import onnx as importer
from tacit.compile.importers.onnx import graph, reading
from tacit.errors import SetupError, TacitError, UnsupportedOperatorError

REAL = TensorProto.FLOAT


def model(
    nodes: list[Any],
    inputs: dict[str, Any],
    outputs: list[str],
    held: dict[str, Any] | None = None,
    opset: int = 20,
    **others: Any,
) -> Any:
    """A model whose values are real."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, REAL, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, REAL, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in (held or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), *others.pop("opset_imports", [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, **others)


def relu(**others: Any) -> Any:
    return model([helper.make_node("Relu", ["x"], ["y"], name="first")], {"x": [2, 3]}, ["y"], **others)


def load(made: Any, folder: Path, **others: Any) -> Any:
    path = folder / "model.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    return importer.load(path, **others)


def refused(made: Any, folder: Path, kind: type[TacitError] = SetupError, **others: Any) -> str:
    with pytest.raises(kind) as caught:
        load(made, folder, **others)
    return str(caught.value).replace(str(folder / "model.onnx"), "FILE")


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Gelu", ["a"], ["b"], name="fused", domain="com.microsoft"),
        helper.make_node("NonZero", ["x"], ["n"], name="where"),
        helper.make_node("Unique", ["x"], ["u"], name="unique"),
        helper.make_node(
            "Resize", ["x", "", "s"], ["r"], name="resize", coordinate_transformation_mode="new"
        ),
        helper.make_node("Add", ["b", "r"], ["y"], name="sum"),
    ]
    made = model(
        nodes,
        {"x": [2, 3]},
        ["y"],
        {"s": np.float32([2, 2])},
        opset_imports=[helper.make_opsetid("com.microsoft", 1)],
    )
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert told.splitlines()[0] == "FILE cannot be imported:"
    assert sorted(told.splitlines()[1:]) == [
        "  Gelu 'fused': operators of 'com.microsoft' are not imported; export without that runtime's own "
        "optimisations, to ONNX's operators alone",
        "  NonZero 'where': the shape of its result depends on data; export a model in which all shapes are "
        "fixed",
        "  Resize 'resize': its coordinates new are not known; use half_pixel",
        "  Unique 'unique': this operator is not imported; replace it in the model, or leave it to the "
        "receiver",
    ]


def test_control_flow(tmp_path: Path) -> None:
    branch = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["z"])],
        "b",
        [],
        [helper.make_tensor_value_info("z", REAL, [2, 3])],
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], name="either", then_branch=branch, else_branch=branch),
    ]
    told = refused(model(nodes, {"x": [2, 3]}, ["y"]), tmp_path, UnsupportedOperatorError)
    assert "If 'either': control flow is not imported" in told
    assert "torch.where" in told


def test_shapes_are_static_or_given(tmp_path: Path) -> None:
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["batch", 3]}, ["y"])
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert "input 'x': its shape is (batch, 3), and only static shapes are imported" in told
    assert "shapes={'x': (1, ...)}" in told
    assert load(made, tmp_path, shapes={"x": (5, 3)}).inputs == [("x", torch.float32, (5, 3))]
    assert "has shape (batch, 3), which (5, 4) does not fit" in refused(made, tmp_path, shapes={"x": (5, 4)})
    assert "which (5,) does not fit" in refused(made, tmp_path, shapes={"x": (5,)})
    assert "has no input 'z'; it has 'x'" in refused(made, tmp_path, shapes={"z": (5,)})
    assert "must be whole numbers" in refused(made, tmp_path, shapes={"x": (-1, 3)})


def test_inputs(tmp_path: Path) -> None:
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1 << 40, 1 << 40]}, ["y"])
    assert "input 'x': its shape is (1099511627776, 1099511627776); use a smaller one" in refused(
        made, tmp_path, UnsupportedOperatorError
    )
    made.graph.input[0].type.tensor_type.ClearField("shape")
    assert "its shape is of any rank" in refused(made, tmp_path, UnsupportedOperatorError)
    assert load(made, tmp_path, shapes={"x": ()}).inputs == [("x", torch.float32, ())]
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    told = refused(made, tmp_path, UnsupportedOperatorError, shapes={"x": ()})
    assert "input 'x': inputs of type string are not imported" in told


@pytest.mark.parametrize(("opset", "told"), [(12, "13 is the oldest"), (999, "upgrade onnx")])
def test_versions(opset: int, told: str, tmp_path: Path) -> None:
    assert told in refused(relu(opset=opset), tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_are_finite(value: float, tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    made = model(nodes, {"x": [2, 3]}, ["y"], {"w": np.float32([[1], [value], [2]])})
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert f"its weights 'w' have {'NaN' if value != value else 'infinite values'}" in told


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 100, b"PK\x03\x04 no model", b"\x08\x0a", bytes(range(256)) * 9]
)
def test_other_files(content: bytes, tmp_path: Path) -> None:
    assert "FILE is not an ONNX file" in refused(content, tmp_path)
    with pytest.raises(SetupError, match="is no file"):
        importer.load(tmp_path / "absent.onnx")
    with pytest.raises(SetupError, match="is no file"):
        importer.load(tmp_path)


def test_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 50)
    assert "no more than 2 GiB can be read: save its weights beside it" in refused(relu(), tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(reading, "MOST_NODES", 0)
    assert "has 1 operators; 0 are the most" in refused(relu(), tmp_path)


def test_graphs_that_are_not_sound(tmp_path: Path) -> None:
    circle = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    assert "not a sound ONNX model" in refused(model(circle, {"x": [2]}, ["b"]), tmp_path)
    mixed = [helper.make_node("Add", ["x", "n"], ["y"])]
    made = model(mixed, {"x": [2]}, ["y"], {"n": np.int64([1, 2])})
    assert "its input 2 is of torch.int64, and another of torch.float32" in refused(made, tmp_path)
    halves = model([helper.make_node("And", ["x", "x"], ["y"])], {"x": [2]}, ["y"])
    assert "And 'y': its operands do not fit it (its input 1 is of torch.float32)" in refused(
        halves, tmp_path
    )
    misshapen = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    made = model(misshapen, {"x": [2, 3]}, ["y"], {"w": np.ones((4, 5), np.float32)})
    assert "MatMul" in refused(made, tmp_path)


def test_two_tensors_of_a_name(tmp_path: Path) -> None:
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2]}, ["y"], {"w": np.float32([1, 2])})
    made.graph.initializer.append(made.graph.initializer[0])
    assert "two tensors named 'w'" in refused(made, tmp_path)


def outside(folder: Path, location: str, **entries: Any) -> Any:
    made = model(
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, ["y"], {"w": np.ones(4, np.float32)}
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
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, ["y"], {"w": np.ones(4, np.float32)}
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
    nodes = [node, helper.make_node("ReduceSum", ["big"], ["s"]), helper.make_node("Add", ["x", "s"], ["y"])]
    held = {
        "n": np.int64([1 << 20, 1 << 20]),
        "one": np.float32(1),
        "row": np.ones((1, 2), np.float32),
        "f": np.float32([1e9, 1e9]),
    }
    with pytest.raises(TacitError):
        load(model(nodes, {"x": [2]}, ["y"], held), tmp_path)


def test_functions_that_grow_are_counted(tmp_path: Path) -> None:
    """Sixty lines that ask for 2^60 operators."""
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    made = model(
        [helper.make_node("f0", ["x"], ["y"], domain="own")], {"x": [2]}, ["y"], opset_imports=imports[1:]
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
    made = model([helper.make_node("Unique", ["x"], ["y"], name="\x1b[2J\n" + "n" * 500)], {"x": [2]}, ["y"])
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert "\x1b" not in told
    assert len(told) < 400


def test_onnx_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real: Callable[..., Any] = builtins.__import__

    def without(name: str, *others: Any, **more: Any) -> Any:
        if name == "onnx":
            raise ImportError(name)
        return real(name, *others, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SetupError, match=r"pip install 'tacit\[onnx\]'"):
        importer.load(tmp_path / "model.onnx")


def fuzzed() -> Any:
    """A model with a bit of everything that files can have."""
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
    """Nothing but errors of tacit, whatever bytes a file has; where it loads, it can be used."""
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


def test_the_bound_of_constants_is_what_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nodes = [helper.make_node("Expand", ["one", "n"], ["big"]), helper.make_node("Add", ["x", "big"], ["y"])]
    made = model(nodes, {"x": [100]}, ["y"], {"n": np.int64([100]), "one": np.float32([1])})
    assert load(made, tmp_path).inputs
    monkeypatch.setattr(graph, "MOST_FOLDED", 99)
    assert "what the file computes of constants is too large" in refused(
        made, tmp_path, UnsupportedOperatorError
    )
