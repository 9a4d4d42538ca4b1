"""Control flow of ONNX whose course is public, compared with ONNX's reference evaluator."""

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
from tacit.compilation.importers.onnx import control
from tacit.errors import MisuseError, UnsupportedOperatorError

X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


def node(kind: str, inputs: list[str], outputs: list[str], **more: Any) -> Any:
    return helper.make_node(kind, inputs, outputs, name=more.pop("name", f"{kind} of"), **more)


def body(nodes: list[Any], outputs: list[str], inputs: list[Any] = [], **held: Any) -> Any:  # noqa: B006
    """A graph inside of a node. Its results have any type and shape."""
    tensors = [numpy_helper.from_array(np.asarray(each), name) for name, each in held.items()]
    given = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    found = [
        helper.make_tensor_value_info(name, TensorProto.BOOL if name == "on" else REAL, None)
        for name in outputs
    ]
    return helper.make_graph(nodes, "body", given, found, tensors)


ROUND = [("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("v", REAL, [2, 3])]


def same(made: Any, folder: Path, **more: Any) -> Any:
    """Checks a model on X, and returns it."""
    imported = load(made, folder, **more)
    found = imported.module(torch.from_numpy(X))
    found = found if isinstance(found, tuple) else (found,)
    given = {"x": X, **more.get("public", {})}
    given = {name: np.asarray(value) for name, value in given.items()}
    wanted = ReferenceEvaluator(made).run(None, given)
    assert len(found) == len(wanted)
    for have, want in zip(found, wanted, strict=True):
        assert tuple(have.shape) == want.shape
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-5, atol=1e-5)
    return imported


def either(condition: list[Any], **more: Any) -> Any:
    """A model that doubles or negates its input, as a condition says."""
    then = body([node("Mul", ["x", "two"], ["t"])], ["t"], two=np.float32(2))
    other = body([node("Neg", ["x"], ["e"])], ["e"])
    nodes = [
        *condition,
        node("If", ["c"], ["y"], name="either", then_branch=then, else_branch=other),
    ]
    return model(nodes, {"x": [2, 3]}, ["y"], **more)


def of_shape(wanted: int) -> list[Any]:
    """Nodes that tell whether the input has this number of columns."""
    return [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "at"], ["n"], axis=0),
        node("Constant", [], ["w"], value_int=wanted),
        node("Constant", [], ["at"], value_int=1),
        node("Equal", ["n", "w"], ["c"]),
    ]


@pytest.mark.parametrize("wanted", [3, 4])
def test_a_branch_follows_from_shapes(wanted: int, tmp_path: Path) -> None:
    nodes = of_shape(wanted)
    nodes[1], nodes[2], nodes[3] = nodes[2], nodes[3], nodes[1]
    imported = same(either(nodes), tmp_path)
    kinds = [step.step.node.operator for step in imported.module.children()]
    assert kinds == ["Mul" if wanted == 3 else "Neg", "Identity"]


@pytest.mark.parametrize("rank", [2, 3])
def test_a_branch_follows_from_ranks(rank: int, tmp_path: Path) -> None:
    condition = [
        node("Shape", ["x"], ["s"]),
        node("Size", ["s"], ["n"]),
        node("Constant", [], ["w"], value_int=rank),
        node("Equal", ["n", "w"], ["c"]),
    ]
    same(either(condition), tmp_path)


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_follows_from_a_public_input(taken: bool, tmp_path: Path) -> None:
    made = either([])
    made.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    imported = same(made, tmp_path, public={"c": taken})
    assert [name for name, _, _ in imported.inputs] == ["x"]
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert "If 'either': its condition depends on secret values, and so would what parties" in told
    assert "--public NAME=VALUE" in told


def test_what_is_in_the_branch_that_is_not_taken_does_not_matter(tmp_path: Path) -> None:
    """Nor what it would compute: it has an operator that is not imported."""
    made = either([node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))])
    same(made, tmp_path)
    branches = {each.name: each.g for each in made.graph.node[1].attribute}
    branches["else_branch"].node[0].op_type = "Det"
    branches["else_branch"].node[0].input[0] = "x"
    same(made, tmp_path)
    branches["then_branch"].node[0].op_type = "Unique"
    branches["then_branch"].node[0].name = "unlike"
    del branches["then_branch"].node[0].input[1:]
    told = refused(made, tmp_path, UnsupportedOperatorError)
    assert "Unique 'unlike': " in told


def test_graphs_see_what_is_around_them_and_have_names_of_their_own(tmp_path: Path) -> None:
    """Two nodes have the same graph, and each has it twice inside."""
    inner = body([node("Add", ["z", "k"], ["w"], name="inner")], ["w"], k=np.float32([[1, 2, 3]]))
    always = numpy_helper.from_array(np.array(True))
    then = body(
        [
            node("Constant", [], ["yes"], value=always),
            node("Mul", ["x", "k"], ["z"], name="outer"),
            node("If", ["yes"], ["q"], name="nested", then_branch=inner, else_branch=inner),
            node("Sub", ["q", "k"], ["r"], name="after"),
        ],
        ["r"],
        k=np.float32(4),
    )
    nodes = [
        node("Constant", [], ["c"], value=always),
        node("Neg", ["x"], ["o"], name="around"),
        node("If", ["c"], ["f"], name="first", then_branch=then, else_branch=then),
        node("If", ["c"], ["g"], name="second", then_branch=then, else_branch=then),
        node("Add", ["f", "o"], ["h"], name="joined"),
        node("Add", ["h", "g"], ["y"], name="last"),
    ]
    held = {"k": np.float32([[7, 8, 9]])}
    imported = load(model(nodes, {"x": [2, 3]}, ["y"], held), tmp_path)
    found = imported.module(torch.from_numpy(X)).numpy()
    once = 4 * X + np.float32([[1, 2, 3]]) - 4
    np.testing.assert_allclose(found, 2 * once - X, rtol=1e-5, atol=1e-5)


def loop(nodes: list[Any], outputs: list[str], more: int = 0, most: str = "m") -> Any:
    """A model with a loop of three rounds that carries its input, and collects more values."""
    given = body(nodes, outputs, ROUND)
    names = ["y", *(f"y{at}" for at in range(more))]
    always = numpy_helper.from_array(np.array(True))
    before = [
        node("Constant", [], ["m"], value_int=3),
        node("Constant", [], ["c"], value=always),
    ]
    return model(
        [*before, node("Loop", [most, "c", "x"], names, name="again", body=given)],
        {"x": [2, 3]},
        names,
        {"weight": np.float32([[0.5, -1.5, 2.0]])},
    )


def test_a_loop_is_unrolled(tmp_path: Path) -> None:
    """Rounds have their number, what is carried, and what is collected."""
    nodes = [
        node("Cast", ["i"], ["f"], to=REAL),
        node("Add", ["v", "f"], ["a"]),
        node("Mul", ["a", "weight"], ["b"]),
        node("ReduceSum", ["b"], ["c1"], keepdims=0),
        node("Identity", ["go"], ["on"]),
    ]
    imported = load(loop(nodes, ["on", "b", "c1", "b"], 2), tmp_path)
    # What is collected is along a new first dimension, as ONNX infers its shape. ONNX's own
    # evaluator joins it along the first one that there is.
    value, rounds = X, []
    for number in range(3):
        value = (value + number) * np.float32([[0.5, -1.5, 2.0]])
        rounds.append(value)
    wanted = [value, np.array([each.sum() for each in rounds]), np.array(rounds)]
    for have, want in zip(imported.module(torch.from_numpy(X)), wanted, strict=True):
        assert tuple(have.shape) == want.shape
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-5, atol=1e-5)
    kinds = [step.step.node.operator for step in imported.module.children()]
    assert kinds.count("Mul") == 3
    # The weights of all rounds are one parameter.
    assert len(list(imported.module.parameters())) == 1


@pytest.mark.parametrize("most", ["m", ""])
def test_a_loop_ends_by_a_condition_on_its_number(most: str, tmp_path: Path) -> None:
    nodes = [
        node("Neg", ["v"], ["n"]),
        node("Constant", [], ["last"], value_int=1),
        node("Less", ["i", "last"], ["on"]),
    ]
    imported = same(loop(nodes, ["on", "n"], most=most), tmp_path)
    kinds = [step.step.node.operator for step in imported.module.children()]
    assert kinds.count("Neg") == 2


def test_loops_that_cannot_be_unrolled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(nodes: list[Any], outputs: list[str], **more: Any) -> str:
        return refused(loop(nodes, outputs, **more), tmp_path, UnsupportedOperatorError)

    keep = node("Identity", ["go"], ["on"])
    by_secret = [
        node("Neg", ["v"], ["n"]),
        node("ReduceSum", ["n"], ["s"], keepdims=0),
        node("Cast", ["s"], ["on"], to=TensorProto.BOOL),
    ]
    assert "Loop 'again': its condition depends on secret values" in told(by_secret, ["on", "n"])
    endless = [node("Neg", ["v"], ["n"]), keep]
    monkeypatch.setattr(control, "MOST_ROUNDS", 50)
    assert "it would go on for more than 50 rounds" in told(endless, ["on", "n"], most="")
    monkeypatch.setattr(control, "MOST_ADDED", 5)
    assert "its branches and rounds have more than 5 operators" in told(endless, ["on", "n"])


def test_the_remedies_are_right(tmp_path: Path) -> None:
    """Where a condition would depend on secret values, Where computes both ways."""
    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Constant", [], ["zero"], value_float=0.0),
        node("Greater", ["s", "zero"], ["c"]),
        node("Add", ["x", "x"], ["t"]),
        node("Neg", ["x"], ["e"]),
        node("Where", ["c", "t", "e"], ["y"]),
    ]
    same(model(nodes, {"x": [2, 3]}, ["y"]), tmp_path)


def test_a_compiled_loop_gives_the_plain_results(tmp_path: Path) -> None:
    nodes = [
        node("Mul", ["v", "weight"], ["b"]),
        node("Relu", ["b"], ["r"]),
        node("Identity", ["go"], ["on"]),
    ]
    made = loop(nodes, ["on", "r"])
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    program, weights = tacit.compile(path)
    expected = ReferenceEvaluator(made).run(None, {"x": X})[0]

    def run() -> torch.Tensor:
        own = weights.values if tacit.session().party == 0 else None
        bound = share_weights(program, own, 0)
        return bound(bound.given(torch.from_numpy(X), owner=1)).reveal()

    found = tacit.launch(run, **THREE)[0]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("public", "message"),
    [
        ({"q": 1}, "has no input 'q' to be public; it has 'x', 'c'"),
        ({"x": X, "c": True}, "all inputs of .* are public, so that nothing is secret"),
        ({"c": [True, False]}, "which .2,. does not fit"),
        ({"c": 2}, "the public input 'c' has numbers that torch.bool does not hold"),
        ({"c": "yes"}, "the public input 'c' is of type str; it is a number, a list of numbers"),
    ],
)
def test_what_is_no_public_input(public: Any, message: str, tmp_path: Path) -> None:
    made = either([])
    made.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    with pytest.raises((MisuseError, tacit.errors.SetupError), match=message):
        load(made, tmp_path, public=public)


def test_public_inputs_are_not_for_modules() -> None:
    with pytest.raises(MisuseError, match="let the module hold such a value itself, as a buffer"):
        tacit.compile(torch.nn.Linear(2, 2).eval(), torch.zeros(1, 2), public={"x": 1})
