"""What becomes public of the numbers in an ONNX file is reported by name, or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_made import REAL, load, model, refused
from ran import THREE

import tacit
from tacit.compilation.execute import share_weights
from tacit.errors import MisuseError, UnsupportedOperatorError

X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
ROUND = [("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("v", REAL, [2, 3])]


def node(kind: str, inputs: list[str], outputs: list[str], **more: Any) -> Any:
    return helper.make_node(kind, inputs, outputs, name=more.pop("name", f"{kind} of"), **more)


def constant(name: str, value: Any) -> Any:
    held = numpy_helper.from_array(np.asarray(value))
    return node("Constant", [], [name], name=f"holds {name}", value=held)


def body(nodes: list[Any], outputs: list[str], inputs: list[Any] = [], **held: Any) -> Any:  # noqa: B006
    tensors = [numpy_helper.from_array(np.asarray(each), name) for name, each in held.items()]
    given = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    found = [
        helper.make_tensor_value_info(name, TensorProto.BOOL if name == "on" else REAL, None)
        for name in outputs
    ]
    return helper.make_graph(nodes, "body", given, found, tensors)


def either(condition: list[Any], held: dict[str, Any] | None = None) -> Any:
    """A model that multiplies its input by a number of the branch, or negates it."""
    then = body([node("Mul", ["x", "factor"], ["t"], name="times")], ["t"], factor=np.float32(1.7))
    other = body([node("Neg", ["x"], ["e"])], ["e"])
    last = node("If", ["c"], ["y"], name="either", then_branch=then, else_branch=other)
    return model([*condition, last], {"x": [2, 3]}, ["y"], held)


def loop(nodes: list[Any], before: list[Any], held: dict[str, Any], **inside: Any) -> Any:
    """A model whose loop carries its input: ``m`` rounds, while ``on``."""
    again = body(nodes, ["on", "n"], ROUND, **inside)
    always = constant("c", True)
    last = node("Loop", ["m", "c", "x"], ["y"], name="again", body=again)
    return model([*before, always, last], {"x": [2, 3]}, ["y"], held)


ALWAYS = [constant("c", True)]
#: Whether the sum of a weight, or a number, is positive.
BY_WEIGHT = [node("ReduceSum", ["w"], ["s"], keepdims=0), node("Cast", ["s"], ["c"], to=9)]
BY_NUMBER = [constant("edge", np.float32(0.5)), node("Greater", ["w", "edge"], ["c"])]
WEIGHT = np.float32([[0.5, 1.5], [2.0, -1.0]])


def test_numbers_of_a_branch_are_reported_and_kept_secret_by_name(tmp_path: Path) -> None:
    imported = load(either(ALWAYS), tmp_path)
    assert imported.public == ["factor"]
    assert not list(imported.module.parameters())
    kept = load(either(ALWAYS), tmp_path, secret=["factor"])
    assert kept.public == []
    assert [each.item() for each in kept.module.parameters()] == [pytest.approx(1.7)]
    torch.testing.assert_close(kept.module(torch.from_numpy(X)), 1.7 * torch.from_numpy(X))


def test_constants_are_numbers_too(tmp_path: Path) -> None:
    """Also those of nodes, at the top and inside of a branch."""
    then = body([constant("half", np.float32(0.5)), node("Mul", ["x", "half"], ["t"])], ["t"])
    nodes = [
        *ALWAYS,
        node("If", ["c"], ["z"], name="either", then_branch=then, else_branch=then),
        constant("third", np.float32(1 / 3)),
        node("Add", ["z", "third"], ["y"], name="plus"),
    ]
    made = model(nodes, {"x": [2, 3]}, ["y"])
    assert load(made, tmp_path).public == ["half", "third"]
    kept = load(made, tmp_path, secret=["half", "third"])
    assert kept.public == []
    assert sorted(each.item() for each in kept.module.parameters()) == [
        pytest.approx(1 / 3),
        pytest.approx(0.5),
    ]
    with pytest.raises(MisuseError, match="no number named 'quarter' that could be secret"):
        load(made, tmp_path, secret=["quarter"])


@pytest.mark.parametrize(
    ("condition", "held", "told"),
    [
        (BY_WEIGHT, WEIGHT, "w (by If 'either')"),
        (BY_NUMBER, np.float32([0.75]), "w (by If 'either')"),
        (BY_NUMBER, np.float32(0.75), "w"),
    ],
)
def test_what_decides_on_a_branch_is_reported_or_refused(
    condition: list[Any], held: Any, told: str, tmp_path: Path
) -> None:
    made = either(condition, {"w": held})
    assert told in load(made, tmp_path).public
    message = refused(made, tmp_path, UnsupportedOperatorError, secret=["w"])
    assert (
        "If 'either': what it takes of 'w' would become public, and that is named as secret; do "
        "not name it, or export a model that computes with it" in message
    )


def test_what_decides_on_rounds_is_reported_or_refused(tmp_path: Path) -> None:
    """Their number follows from a weight around the loop, or their end from one inside of it."""
    rounds = [
        node("ReduceSum", ["w"], ["s"], keepdims=0),
        node("Cast", ["s"], ["m"], to=TensorProto.INT64),
    ]
    carried = [node("Neg", ["v"], ["n"]), node("Identity", ["go"], ["on"])]
    counted = loop(carried, rounds, {"w": WEIGHT})
    assert load(counted, tmp_path).public == ["w (by Loop 'again')"]
    told = refused(counted, tmp_path, UnsupportedOperatorError, secret=["w"])
    assert "Loop 'again': what it takes of 'w' would become public" in told
    ended = [
        node("Neg", ["v"], ["n"]),
        node("Cast", ["i"], ["f"], to=REAL),
        node("Less", ["f", "last"], ["on"]),
    ]
    inside = loop(ended, [constant("m", 5)], {}, last=np.float32([1.5]))
    assert load(inside, tmp_path).public == ["last (by Loop 'again')"]
    told = refused(inside, tmp_path, UnsupportedOperatorError, secret=["last"])
    assert "Loop 'again': what it takes of 'last' would become public" in told


def test_what_decides_on_shapes_is_reported_or_refused(tmp_path: Path) -> None:
    """How many columns are left, and how many elements of a weight are not zero."""
    columns = [
        constant("zero", np.int64([0])),
        constant("one", np.int64([1])),
        node("ReduceSum", ["w"], ["s"], keepdims=1, name="sum"),
        node("Reshape", ["s", "one"], ["r"], name="flat"),
        node("Cast", ["r"], ["end"], to=TensorProto.INT64),
        node("Slice", ["x", "zero", "end", "one"], ["y"], name="part"),
    ]
    made = model(columns, {"x": [2, 3]}, ["y"], {"w": np.float32([[0.5, 1.5]])})
    assert load(made, tmp_path).public == ["w (by Slice 'part')"]
    assert "Slice 'part': what it takes of 'w' would" in refused(
        made, tmp_path, UnsupportedOperatorError, secret=["w"]
    )
    counted = [
        node("NonZero", ["w"], ["places"]),
        node("Shape", ["places"], ["sizes"]),
        node("Cast", ["sizes"], ["real"], to=REAL),
        node("ReduceSum", ["real"], ["s"], keepdims=0),
        node("Mul", ["x", "s"], ["y"], name="times"),
    ]
    made = model(counted, {"x": [2, 3]}, ["y"], {"w": WEIGHT})
    assert load(made, tmp_path).public == ["w (by Mul 'times')"]


def test_only_what_is_used_is_reported(tmp_path: Path) -> None:
    """A number that only changes a weight is part of that weight."""
    nodes = [
        node("Mul", ["w", "scale"], ["v"]),
        node("MatMul", ["x", "v"], ["y"]),
        node("Mul", ["x", "unused"], ["lost"]),
    ]
    held = {
        "w": np.ones((3, 2), np.float32),
        "scale": np.float32(0.3),
        "unused": np.float32(2),
    }
    imported = load(model(nodes, {"x": [2, 3]}, ["y"], held), tmp_path)
    assert imported.public == []
    (weight,) = imported.module.parameters()
    torch.testing.assert_close(weight, torch.full((3, 2), 0.3))


def test_bounds_are_public_and_minima_are_not(tmp_path: Path) -> None:
    """The remedy of the refusal is followed."""
    held = {"low": np.float32(-0.5), "high": np.float32(0.25)}
    clip = model([node("Clip", ["x", "low", "high"], ["y"])], {"x": [2, 3]}, ["y"], held)
    assert load(clip, tmp_path).public == ["high", "low"]
    told = refused(clip, tmp_path, UnsupportedOperatorError, secret=["high"])
    assert "Clip 'Clip of': what it takes of 'high' would become public" in told
    nodes = [node("Max", ["x", "low"], ["a"]), node("Min", ["a", "high"], ["y"])]
    kept = load(model(nodes, {"x": [2, 3]}, ["y"], held), tmp_path, secret=["high", "low"])
    assert kept.public == []
    np.testing.assert_allclose(kept.module(torch.from_numpy(X)), X.clip(-0.5, 0.25))


def test_comparisons_of_secret_numbers_are_computed_in_secret(tmp_path: Path) -> None:
    """No program shows on which side of zero a number is that was named as secret."""
    nodes = [
        constant("zero", np.float32(0)),
        node("Greater", ["w", "zero"], ["c"], name="sign"),
        node("Neg", ["x"], ["e"]),
        node("Where", ["c", "x", "e"], ["y"], name="one"),
    ]
    texts = []
    for weight in (0.75, -0.75):
        made = model(nodes, {"x": [2, 3]}, ["y"], {"w": np.float32(weight)})
        path = tmp_path / "model.onnx"
        path.write_bytes(made.SerializeToString())
        assert "w" in load(made, tmp_path).public
        assert load(made, tmp_path, secret=["w"]).public == ["zero"]
        program, weights = tacit.compile(path, secret=["w"])
        texts.append(program.text)

        def run(program: Any = program, weights: Any = weights) -> torch.Tensor:
            own = weights.values if tacit.session().party == 0 else None
            bound = share_weights(program, own, 0)
            return bound(bound.given(torch.from_numpy(X), owner=1)).reveal()

        found = tacit.launch(run, **THREE)[0]
        np.testing.assert_allclose(found.numpy(), X if weight > 0 else -X, atol=1e-3)
    assert texts[0] == texts[1]


def quantised(kind: str) -> Any:
    """A layer of quantised weights, whose real ones a file computes, or not at all."""
    held: dict[str, Any] = {
        "w": np.int8([[3, -2], [1, 4], [-5, 6]]),
        "b": np.int32([100, -200]),
        "scale": np.float32(0.25),
    }
    if kind == "real":
        nodes = [
            node("DequantizeLinear", ["w", "scale"], ["weight"], name="weights"),
            node("DequantizeLinear", ["b", "scale"], ["bias"], name="biases"),
            node("Gemm", ["x", "weight", "bias"], ["y"]),
        ]
    elif kind == "cast":
        nodes = [
            node("Cast", ["w"], ["whole"], to=TensorProto.INT32),
            node("Cast", ["whole"], ["real"], to=REAL),
            node("Mul", ["real", "scale"], ["weight"]),
            node("MatMul", ["x", "weight"], ["y"]),
        ]
    else:
        held |= {"zero": np.int8(0), "one": np.float32(1)}
        nodes = [
            node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
            node(
                "QLinearMatMul",
                ["q", "scale", "zero", "w", "scale", "zero", "one", "zero"],
                ["p"],
                name="product",
            ),
            node("DequantizeLinear", ["p", "one", "zero"], ["y"], name="result"),
        ]
    return model(nodes, {"x": [2, 3]}, ["y"], held)


@pytest.mark.parametrize("kind", ["real", "cast"])
def test_quantised_weights_stay_secret(kind: str, tmp_path: Path) -> None:
    made = quantised(kind)
    imported = load(made, tmp_path)
    assert imported.public == []
    shapes = [tuple(each.shape) for each in imported.module.parameters()]
    assert shapes == ([(3, 2), (2,)] if kind == "real" else [(3, 2)])
    wanted = ReferenceEvaluator(made).run(None, {"x": X})[0]
    np.testing.assert_allclose(imported.module(torch.from_numpy(X)), wanted, atol=1e-5)
    constants = torch.export.export(imported.module, (torch.from_numpy(X),)).constants
    assert not constants


def test_weights_of_quantised_products_are_reported_or_refused(tmp_path: Path) -> None:
    """Their integers are constants of the program."""
    made = quantised("product")
    assert "w (by QLinearMatMul 'product')" in load(made, tmp_path).public
    told = refused(made, tmp_path, UnsupportedOperatorError, secret=["w"])
    assert "QLinearMatMul 'product': what it takes of 'w' would become public" in told


def test_compiling_reports_what_decides(tmp_path: Path) -> None:
    path, told = tmp_path / "model.onnx", []
    path.write_bytes(either(BY_WEIGHT, {"w": WEIGHT}).SerializeToString())
    tacit.compile(path, progress=told.append)
    (shown,) = [line for line in told if line.startswith("numbers of the file that become public")]
    assert shown.endswith(": w (by If 'either'), factor")
