"""Unsupported parts of an ONNX file are all reported together, by name."""

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from onnx_made import REAL, load, model, refused, relu

from tacit.compilation.importers import onnx as importer
from tacit.errors import SetupError, UnsupportedOperatorError


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("QGemm", ["a"], ["b"], name="fused", domain="com.microsoft"),
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
        "  NonZero 'where': the shape of its result depends on data; export a model in which all "
        "shapes are "
        "fixed",
        "  QGemm 'fused': operators of 'com.microsoft' are not imported; export without that "
        "runtime's own "
        "optimisations, to ONNX's operators alone",
        "  Resize 'resize': its coordinates new are not known; use half_pixel",
        "  Unique 'unique': this operator is not imported; replace it in the model, or leave it to "
        "the "
        "receiver",
    ]


def test_what_has_no_shape_without_data_is_told_behind_what_is_missing(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QGemm", ["x"], ["a"], name="fused", domain="com.microsoft"),
        helper.make_node("Relu", ["a"], ["b"], name="behind"),
        helper.make_node("NonZero", ["b"], ["y"], name="where"),
        # These depend on shapes or constants only, so they are known once the missing operators are
        # supported.
        helper.make_node("Shape", ["b"], ["s"]),
        helper.make_node("NonZero", ["s"], ["of_shapes"], name="known"),
        helper.make_node("QGemm", ["c"], ["d"], name="constant", domain="com.microsoft"),
        helper.make_node("NonZero", ["d"], ["of_constants"], name="known too"),
    ]
    own = [helper.make_opsetid("com.microsoft", 1)]
    made = model(nodes, {"x": [2, 3]}, ["y"], {"c": np.float32([0, 2])}, opset_imports=own)
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert [line.split(":")[0] for line in told.splitlines()[1:]] == [
        "  QGemm 'fused'",
        "  QGemm 'constant'",
        "  NonZero 'where'",
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
    assert "If 'either': its condition depends on secret values" in told
    assert "torch.where" in told


def test_shapes_are_static_or_given(tmp_path: Path) -> None:
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["batch", 3]}, ["y"])
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert "input 'x': its shape is (batch, 3), and only static shapes are imported" in told
    assert "shapes={'x': (1, ...)}" in told
    assert load(made, tmp_path, shapes={"x": (5, 3)}).inputs == [("x", torch.float32, (5, 3))]
    assert "has shape (batch, 3), which (5, 4) does not fit" in refused(
        made, tmp_path, shapes={"x": (5, 4)}
    )
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


@pytest.mark.parametrize(("opset", "told"), [(6, "7 is the oldest"), (999, "upgrade onnx")])
def test_versions(opset: int, told: str, tmp_path: Path) -> None:
    assert told in refused(relu(opset=opset), tmp_path)


@pytest.mark.parametrize("opset", range(7, 13))
def test_older_versions_are_converted(opset: int, tmp_path: Path) -> None:
    """Before opset 13 Softmax flattened what follows its axis, and axes were attributes."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], axis=1),
        helper.make_node("Squeeze", ["s"], ["q"], axes=[0]),
        helper.make_node("ReduceSum", ["q"], ["y"], axes=[0], keepdims=0),
    ]
    x = torch.arange(6.0).reshape(1, 2, 3)
    found = load(model(nodes, {"x": [1, 2, 3]}, ["y"], opset=opset), tmp_path).module(x)
    wanted = torch.softmax(x.reshape(1, 6), 1).reshape(2, 3).sum(0)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(("opset", "kind"), [(9, "Upsample"), (10, "Resize")])
def test_older_images_are_resized_as_before(opset: int, kind: str, tmp_path: Path) -> None:
    """Before opset 11 elements came from place ⌊i / 2⌋, or between i / 2 and the next."""
    for mode, wanted in (("nearest", [0, 0, 1, 1]), ("linear", [0, 0.5, 1, 1])):
        node = helper.make_node(kind, ["x", "scales"], ["y"], mode=mode)
        scales = {"scales": np.float32([1, 1, 1, 2])}
        made = model([node], {"x": [1, 1, 1, 2]}, ["y"], scales, opset=opset)
        found = load(made, tmp_path).module(torch.tensor([[[[0.0, 1.0]]]]))
        torch.testing.assert_close(found.reshape(-1), torch.tensor(wanted, dtype=torch.float32))


def test_a_domain_may_be_repeated_at_one_version(tmp_path: Path) -> None:
    again = helper.make_opsetid("", 20)
    assert load(relu(opset_imports=[again]), tmp_path).outputs == ["y"]
    told = refused(relu(opset_imports=[helper.make_opsetid("ai.onnx", 18)]), tmp_path)
    assert told == (
        "FILE names the versions 20 and 18 of the operators of 'ai.onnx', and must name one: "
        "export it again with one target_opset"
    )


def test_sizes_of_minus_one_are_open(tmp_path: Path) -> None:
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": [-1, 3]}, ["y"])
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert "its shape is (-1, 3), and only static shapes are imported" in told
    # The remedy of the message.
    assert load(made, tmp_path, shapes={"x": (5, 3)}).inputs == [("x", torch.float32, (5, 3))]


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
    made = model(
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2]}, ["y"], {"w": np.float32([1, 2])}
    )
    made.graph.initializer.append(made.graph.initializer[0])
    assert "two tensors named 'w'" in refused(made, tmp_path)


def test_onnx_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real: Callable[..., Any] = builtins.__import__

    def without(name: str, *others: Any, **more: Any) -> Any:
        if name == "onnx":
            raise ImportError(name)
        return real(name, *others, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SetupError, match=r"pip install 'tacit-mpc\[onnx\]'"):
        importer.load(tmp_path / "model.onnx")
