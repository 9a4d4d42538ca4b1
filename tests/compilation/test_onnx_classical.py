"""ONNX's operators of classical models, compared with ONNX's reference evaluator."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_made import load, model
from ran import THREE

import tacit
from tacit.compilation.execute import share_weights
from tacit.errors import MisuseError, SetupError, UnsupportedOperatorError

ML = "ai.onnx.ml"
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def classical(kind: str, version: int = 3, results: int = 1, **attributes: Any) -> Any:
    """A model of one classical operator on (5, 4)."""
    names = ["y", "z"][:results]
    node = helper.make_node(kind, ["x"], names, name="node", domain=ML, **attributes)
    own = [helper.make_opsetid(ML, version)]
    made = model([node], {"x": [5, 4]}, names, opset=18, opset_imports=own)
    if results == 2 or kind == "label":
        made.graph.output[0].type.tensor_type.elem_type = 7
    return made


def rows(seed: int = 0) -> Any:
    """Numbers that are often equal to each other."""
    return np.random.default_rng(seed).integers(-4, 5, (5, 4)).astype(np.float32) / 2


def same(made: Any, folder: Path, x: Any) -> None:
    found = load(made, folder).module(torch.from_numpy(x))
    found = found if isinstance(found, tuple) else (found,)
    wanted = ReferenceEvaluator(made).run(None, {"x": x})
    assert len(found) == len(wanted)
    for have, want in zip(found, wanted, strict=True):
        assert tuple(have.shape) == want.shape
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-5, atol=1e-5)


COEFFICIENTS = [0.5, -1.0, 2.0, 0.25, 1.0, 1.0, -0.5, 0.125, -1.0, 0.5, 0.5, -2.0]
VECTORS = [0.5, 1.0, -0.5, 0.0, 1.0, 1.0, 0.5, -1.0, 0.0, 0.25, 1.0, 0.5, -1.0, 1.0, 0.0, 0.5]

OF_COLUMNS = [
    ("Scaler", {"offset": [1.0, 2.0, 3.0, 4.0], "scale": [0.5, 0.25, 2.0, 1.0]}),
    ("Scaler", {"offset": [1.0], "scale": [0.5]}),
    ("Normalizer", {"norm": "L1"}),
    ("Normalizer", {"norm": "L2"}),
    ("Normalizer", {"norm": "MAX"}),
    ("Imputer", {"imputed_value_floats": [7.0, 8.0, 9.0, 6.0], "replaced_value_float": 0.5}),
    ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": float("nan")}),
    ("Binarizer", {"threshold": 0.5}),
    (
        "LinearRegressor",
        {"coefficients": COEFFICIENTS, "intercepts": [1.0, 2.0, 3.0], "targets": 3},
    ),
    (
        "SVMRegressor",
        {
            "coefficients": [1.0, -2.0, 0.5, 1.5],
            "kernel_params": [0.3, 0.1, 2.0],
            "kernel_type": "RBF",
            "n_supports": 4,
            "rho": [0.7],
            "support_vectors": VECTORS,
        },
    ),
]


@pytest.mark.parametrize(("kind", "attributes"), OF_COLUMNS)
def test_columns(kind: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    same(classical(kind, **attributes), tmp_path, rows())


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_kernels(kernel: str, one_class: int, tmp_path: Path) -> None:
    attributes = {**OF_COLUMNS[-1][1], "kernel_type": kernel, "one_class": one_class}
    same(classical("SVMRegressor", **attributes), tmp_path, rows(1))


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_linear_classifiers(post: str, classes: int, tmp_path: Path) -> None:
    made = classical(
        "LinearClassifier",
        results=2,
        classlabels_ints=[3, 5, 9][: max(2, classes)],
        coefficients=COEFFICIENTS[: 4 * classes],
        intercepts=[0.125, -0.25, 0.5][:classes],
        post_transform=post,
    )
    same(made, tmp_path, rows(2))


def test_probit(tmp_path: Path) -> None:
    """The inverse of the normal distribution, which needs chances between 0 and 1."""
    made = classical(
        "LinearClassifier",
        results=2,
        classlabels_ints=[0, 1],
        coefficients=[0.05, 0.1, -0.05, 0.1, -0.1, 0.05, 0.05, 0.1],
        intercepts=[0.5, 0.5],
        post_transform="PROBIT",
    )
    same(made, tmp_path, rows(3))


@pytest.mark.parametrize("classes", [2, 3])
def test_support_vector_classifiers(classes: int, tmp_path: Path) -> None:
    counts = {2: [2, 2], 3: [2, 1, 1]}[classes]
    made = classical(
        "SVMClassifier",
        results=2,
        classlabels_ints=[4, 2, 7][:classes],
        coefficients=[1.0, -0.5, 0.75, -1.25, 0.3, -0.9, 1.1, 0.4][: 4 * (classes - 1)],
        kernel_params=[0.3, 0.1, 2.0],
        kernel_type="RBF",
        post_transform="NONE",
        rho=[0.1, -0.2, 0.3][: classes * (classes - 1) // 2],
        support_vectors=VECTORS,
        vectors_per_class=counts,
    )
    same(made, tmp_path, rows(4))


@pytest.mark.parametrize("classes", [3, 4])
def test_probabilities_of_several_classes(classes: int, tmp_path: Path) -> None:
    """Qp is equal in all places, as where LIBSVM's iteration would end. ONNX's own evaluator gives
    other probabilities than LIBSVM; ``test_scikit_learn.py`` compares with that."""
    pairs = classes * (classes - 1) // 2
    slopes, offsets = [-1.5, -2.0, -0.75, -1.0, -3.0, -0.5], [0.1, -0.2, 0.3, 0.0, -0.1, 0.4]
    attributes: dict[str, Any] = {
        "classlabels_ints": [4, 2, 7, 5][:classes],
        "coefficients": np.random.default_rng(3).normal(size=4 * (classes - 1)).tolist(),
        "kernel_params": [0.3, 0.1, 2.0],
        "kernel_type": "RBF",
        "post_transform": "NONE",
        "rho": [0.1, -0.2, 0.3, 0.2, 0.0, -0.1][:pairs],
        "support_vectors": VECTORS,
        "vectors_per_class": {3: [2, 1, 1], 4: [1, 1, 1, 1]}[classes],
    }
    of_pairs, x = classical("SVMClassifier", results=2, **attributes), rows(6)
    attributes |= {"prob_a": slopes[:pairs], "prob_b": offsets[:pairs]}
    made = classical("SVMClassifier", results=2, **attributes)
    label, chances = load(made, tmp_path).module(torch.from_numpy(x))
    wanted = ReferenceEvaluator(made).run(None, {"x": x})[0]
    assert label.tolist() == wanted.tolist()
    scores = load(of_pairs, tmp_path).module(torch.from_numpy(x))[1].numpy()
    r = np.zeros((5, classes, classes))
    for at, (one, other) in enumerate(combinations(range(classes), 2)):
        r[:, one, other] = 1 / (1 + np.exp(scores[:, at] * slopes[at] + offsets[at]))
        r[:, other, one] = 1 - r[:, one, other]
    q = -r * r.transpose(0, 2, 1)
    for at in range(classes):
        q[:, at, at] = np.square(r[:, :, at]).sum(1)
    places = np.einsum("bij,bj->bi", q, chances.numpy())
    np.testing.assert_allclose(places, places[:, :1].repeat(classes, 1), atol=1e-5)
    np.testing.assert_allclose(chances.numpy().sum(1), 1, atol=1e-6)


def forest(kind: str, targets: int, seed: int, modes: list[str], trees: int = 3) -> dict[str, Any]:
    """Attributes of random trees, whose leaves lie at different depths."""
    draw = np.random.default_rng(seed)
    names = ["treeids", "nodeids", "featureids", "truenodeids", "falsenodeids", "modes", "values"]
    lists: dict[str, list[Any]] = {name: [] for name in names}
    of: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        waiting, count = [(0, 0)], 1
        while waiting:
            node, depth = waiting.pop(0)
            is_leaf = depth and (depth == 5 or draw.random() < 0.3)
            true, false = (0, 0) if is_leaf else (count, count + 1)
            mode = "LEAF" if is_leaf else str(draw.choice(modes))
            entry = [tree, node, int(draw.integers(4)), true, false, mode]
            for name, value in zip(names, [*entry, float(draw.integers(-4, 5)) / 2], strict=True):
                lists[name].append(value)
            if is_leaf:
                for target in range(targets):
                    values = [tree, node, target, float(draw.integers(-8, 9)) / 8]
                    for name, value in zip(of, values, strict=True):
                        of[name].append(value)
            else:
                waiting += [(true, depth + 1), (false, depth + 1)]
                count += 2
    return {
        **{f"nodes_{name}": each for name, each in lists.items()},
        **{f"{kind}_{name}": each for name, each in of.items()},
    }


@pytest.mark.parametrize("seed", range(6))
def test_regression_trees_of_all_comparisons(seed: int, tmp_path: Path) -> None:
    attributes = forest("target", 2, seed, MODES)
    how = ["SUM", "AVERAGE"][seed % 2]
    made = classical(
        "TreeEnsembleRegressor",
        n_targets=2,
        aggregate_function=how,
        base_values=[0.5, -1.0],
        **attributes,
    )
    same(made, tmp_path, rows(seed))


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_classification_trees(post: str, tmp_path: Path) -> None:
    attributes = forest("class", 3, 7, MODES[:1])
    made = classical(
        "TreeEnsembleClassifier",
        results=2,
        classlabels_int64s=[5, 1, 8],
        post_transform=post,
        base_values=[0.1, 0.2, 0.3],
        **attributes,
    )
    same(made, tmp_path, rows(8))


def test_two_classes_of_one_weight(tmp_path: Path) -> None:
    """A forest's share of one class: the other has the rest."""
    attributes = forest("class", 1, 9, MODES[:1])
    attributes["class_weights"] = [abs(each) / 3 for each in attributes["class_weights"]]
    made = classical("TreeEnsembleClassifier", 3, 2, classlabels_int64s=[0, 1], **attributes)
    same(made, tmp_path, rows(10))


def test_boosted_trees_of_two_classes(tmp_path: Path) -> None:
    attributes = forest("class", 1, 11, MODES[1:2])
    made = classical(
        "TreeEnsembleClassifier",
        3,
        2,
        classlabels_int64s=[0, 1],
        post_transform="LOGISTIC",
        base_values=[0.25],
        **attributes,
    )
    x = rows(12)
    label, chances = load(made, tmp_path).module(torch.from_numpy(x))
    score = ReferenceEvaluator(
        classical(
            "TreeEnsembleRegressor",
            n_targets=1,
            base_values=[0.25],
            **{name.replace("class_", "target_"): each for name, each in attributes.items()},
        )
    ).run(None, {"x": x})[0]
    wanted = 1 / (1 + np.exp(-score))
    np.testing.assert_allclose(chances.numpy(), np.hstack([1 - wanted, wanted]), atol=1e-6)
    assert label.tolist() == (score[:, 0] > 0).astype(int).tolist()


def test_three_classes_of_which_leaves_count_for_one(tmp_path: Path) -> None:
    lists = forest("class", 3, 2, MODES[:1])
    lists["class_ids"] = [2] * len(lists["class_ids"])
    made = classical("TreeEnsembleClassifier", results=2, classlabels_int64s=[4, 5, 6], **lists)
    with pytest.raises(UnsupportedOperatorError, match="leaves count for one of 3 classes"):
        load(made, tmp_path)


def test_trees_of_one_leaf_and_of_many_levels(tmp_path: Path) -> None:
    """A chain of 20 branches, beside a tree that is a leaf."""
    deep = 20
    nodes = [(0, at, 0, at + 1, deep + 1 + at, "BRANCH_LEQ", at / 8 - 1) for at in range(deep)]
    nodes += [(0, at, 0, 0, 0, "LEAF", 0.0) for at in range(deep, 2 * deep + 1)]
    nodes += [(1, 0, 0, 0, 0, "LEAF", 0.0)]
    names = ["treeids", "nodeids", "featureids", "truenodeids", "falsenodeids", "modes", "values"]
    lists = {
        f"nodes_{name}": list(each)
        for name, each in zip(names, zip(*nodes, strict=True), strict=True)
    }
    leaves = [(0, at, 0, float(at)) for at in range(deep, 2 * deep + 1)] + [(1, 0, 0, 0.5)]
    of = ["treeids", "nodeids", "ids", "weights"]
    lists |= {
        f"target_{name}": list(each)
        for name, each in zip(of, zip(*leaves, strict=True), strict=True)
    }
    made = classical("TreeEnsembleRegressor", n_targets=1, **lists)
    same(made, tmp_path, rows(13))
    imported = load(made, tmp_path).module
    held = [name for name, _ in imported.named_parameters()]
    assert sorted(held) == ["node_base", "node_leaves", "node_thresholds"]


def shared(program: Any, weights: Any, x: torch.Tensor) -> Any:
    def shown() -> Any:
        own = weights.values if tacit.session().party == 0 else None
        bound = share_weights(program, own, 0)
        before = tacit.session().meter.total
        found = bound(bound.given(x, owner=1))
        several = found if isinstance(found, tuple) else (found,)
        told = [each.reveal() for each in several]
        return told, (tacit.session().meter.total - before).rounds

    return tacit.launch(shown, **THREE)[0]


@pytest.mark.parametrize("mode", MODES)
def test_secret_trees_decide_at_their_thresholds(mode: str, tmp_path: Path) -> None:
    """Numbers are often equal to a threshold: each comparison decides as in the clear."""
    made = classical("TreeEnsembleRegressor", n_targets=1, **forest("target", 1, 3, [mode]))
    path, x = tmp_path / "model.onnx", torch.from_numpy(rows(5))
    path.write_bytes(made.SerializeToString())
    program, weights = tacit.compile(path)
    (found,), rounds = shared(program, weights, x)
    wanted = ReferenceEvaluator(made).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-4)
    # Sharing in 2, the comparison in 6, paths of up to 8 in 3, leaves in 2 + 1, showing in 1.
    assert rounds <= 16


def test_columns_of_all_magnitudes_are_scaled_at_their_owner(tmp_path: Path) -> None:
    """Salaries, a timestamp, a rate and cents: what 16 fraction bits do not hold together."""
    draw = torch.Generator().manual_seed(0)
    scales = torch.tensor([1e5, 1.7e9, 1e-7, 0.5])
    x = (torch.rand(40, 4, generator=draw) + 0.5) * scales
    lists = forest("target", 1, 4, MODES[:1])
    edges = (torch.rand(len(lists["nodes_values"]), generator=draw) + 0.5).tolist()
    features = lists["nodes_featureids"]
    lists["nodes_values"] = [
        edge * float(scales[at]) for edge, at in zip(edges, features, strict=True)
    ]
    made = classical("TreeEnsembleRegressor", n_targets=1, **lists)
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    program, weights = tacit.compile(path, x[:5], calibrate=x)
    (given,) = program.inputs.values()
    assert given.exponents == (0, -12, 25, 0)
    (found,), _ = shared(program, weights, x[:5])
    wanted = ReferenceEvaluator(made).run(None, {"x": x[:5].numpy()})[0]
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-3)
    with pytest.raises(MisuseError, match="column 1, has numbers outside of"):
        shared(program, weights, torch.where(torch.arange(4) == 1, 9e9, x[:5]))


def test_scaled_columns_reach_linear_models_through_scalers(tmp_path: Path) -> None:
    nodes = [
        helper.make_node(
            "Scaler", ["x"], ["s"], domain=ML, offset=[5e4, 1.6e9], scale=[2e-5, 1e-8]
        ),
        helper.make_node(
            "LinearRegressor", ["s"], ["y"], domain=ML, coefficients=[1.5, -0.5], intercepts=[2.0]
        ),
    ]
    own = [helper.make_opsetid(ML, 3)]
    made = model(nodes, {"x": [5, 2]}, ["y"], opset=18, opset_imports=own)
    draw = torch.Generator().manual_seed(1)
    x = torch.rand(40, 2, generator=draw) * torch.tensor([1e5, 1e8]) + torch.tensor([0.0, 1.6e9])
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    program, weights = tacit.compile(path, x[:5], calibrate=x)
    assert next(iter(program.inputs.values())).exponents == (-14, -28)
    (found,), _ = shared(program, weights, x[:5])
    wanted = ReferenceEvaluator(made).run(None, {"x": x[:5].numpy()})[0]
    np.testing.assert_allclose(found.numpy(), wanted, atol=2e-2)


def test_categories(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ArrayFeatureExtractor", ["x", "at"], ["c"], domain=ML),
        helper.make_node("Cast", ["c"], ["i"], to=7),
        helper.make_node("OneHotEncoder", ["i"], ["o"], domain=ML, cats_int64s=[0, 1, 3], zeros=1),
        helper.make_node("Reshape", ["o", "shape"], ["y"]),
    ]
    own = [helper.make_opsetid(ML, 3)]
    held = {"at": np.int64([2]), "shape": np.int64([-1, 3])}
    made = model(nodes, {"x": [5, 4]}, ["y"], held, opset=18, opset_imports=own)
    same(made, tmp_path, np.abs(rows(6)) * 2)


def test_encoders_of_labels(tmp_path: Path) -> None:
    made = classical(
        "LabelEncoder",
        keys_floats=[0.5, 1.0, -1.0],
        values_floats=[3.0, 4.0, 5.0],
        default_float=-2.0,
    )
    same(made, tmp_path, rows(7))


def test_joined_features(tmp_path: Path) -> None:
    node = helper.make_node(
        "FeatureVectorizer", ["x", "x"], ["y"], domain=ML, inputdimensions=[2, 5]
    )
    own = [helper.make_opsetid(ML, 3)]
    same(model([node], {"x": [5, 4]}, ["y"], opset=18, opset_imports=own), tmp_path, rows())


def numbered(**changes: Any) -> Any:
    """TreeEnsemble of version 5: a tree of two branches."""
    attributes: dict[str, Any] = {
        "n_targets": 1,
        "aggregate_function": 1,
        "nodes_featureids": [0, 2],
        "nodes_modes": helper.make_tensor("m", 2, [2], [0, 1]),
        "nodes_splits": helper.make_tensor("s", 1, [2], [0.5, -0.5]),
        "nodes_truenodeids": [1, 0],
        "nodes_trueleafs": [0, 1],
        "nodes_falsenodeids": [2, 1],
        "nodes_falseleafs": [1, 1],
        "tree_roots": [0],
        "leaf_targetids": [0, 0, 0],
        "leaf_weights": helper.make_tensor("w", 1, [3], [1.0, 2.0, 4.0]),
        **changes,
    }
    return classical("TreeEnsemble", version=5, **attributes)


def test_trees_of_version_5(tmp_path: Path) -> None:
    same(numbered(), tmp_path, rows(14))


@pytest.mark.parametrize("how", ["MIN", "MAX"])
@pytest.mark.parametrize("seed", range(3))
def test_the_least_and_the_greatest_of_trees(how: str, seed: int, tmp_path: Path) -> None:
    """What each tree gives of two targets, of an own forest of that tree."""
    x, made = rows(seed), []
    for alone in (None, 0, 1, 2):
        lists = forest("target", 2, seed, MODES)
        if alone is not None:
            for kind in ("nodes", "target"):
                kept = [at for at, tree in enumerate(lists[f"{kind}_treeids"]) if tree == alone]
                for name in [name for name in lists if name.startswith(f"{kind}_")]:
                    lists[name] = [lists[name][at] for at in kept]
        own = {"aggregate_function": how, "base_values": [0.5, -1.0]} if alone is None else {}
        made.append(classical("TreeEnsembleRegressor", n_targets=2, **own, **lists))
    each = [ReferenceEvaluator(one).run(None, {"x": x})[0] for one in made[1:]]
    wanted = (np.min if how == "MIN" else np.max)(each, 0) + np.array([0.5, -1.0])
    found = load(made[0], tmp_path).module(torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-5)


@pytest.mark.parametrize("how", [2, 3])
def test_extremes_of_trees_for_one_target_each(how: int, tmp_path: Path) -> None:
    """The second target has a tree that is a branch of its own; the first has two."""
    made = numbered(
        n_targets=2,
        aggregate_function=how,
        nodes_featureids=[0, 1, 2],
        nodes_modes=helper.make_tensor("m", 2, [3], [0, 1, 2]),
        nodes_splits=helper.make_tensor("s", 1, [3], [0.5, -0.5, 0.0]),
        nodes_truenodeids=[0, 2, 4],
        nodes_trueleafs=[1, 1, 1],
        nodes_falsenodeids=[1, 3, 5],
        nodes_falseleafs=[1, 1, 1],
        tree_roots=[0, 1, 2],
        leaf_targetids=[0, 0, 0, 0, 1, 1],
        leaf_weights=helper.make_tensor("w", 1, [6], [1.0, 2.0, 1.5, 0.5, -3.0, 4.0]),
    )
    x = rows(16)
    first = np.where(x[:, 0] <= 0.5, 1.0, 2.0), np.where(x[:, 1] < -0.5, 1.5, 0.5)
    least = np.minimum(*first) if how == 2 else np.maximum(*first)
    wanted = np.stack([least, np.where(x[:, 2] >= 0, -3.0, 4.0)], 1)
    found = load(made, tmp_path).module(torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), wanted)


def with_sets(**changes: Any) -> Any:
    """A branch on a set of three members, one on a set of one, and one that compares."""
    nan = float("nan")
    sets = [0.5, -1.0, 2.0, 0.5, nan, 1.5, nan]
    return numbered(
        **{
            "nodes_featureids": [0, 2, 1],
            "nodes_modes": helper.make_tensor("m", 2, [3], [6, 0, 6]),
            "nodes_splits": helper.make_tensor("s", 1, [3], [0.0, -0.5, 0.0]),
            "nodes_truenodeids": [1, 0, 2],
            "nodes_trueleafs": [0, 1, 1],
            "nodes_falsenodeids": [2, 1, 3],
            "nodes_falseleafs": [0, 1, 1],
            "leaf_targetids": [0, 0, 0, 0],
            "leaf_weights": helper.make_tensor("w", 1, [4], [1.0, 2.0, 4.0, 8.0]),
            "membership_values": helper.make_tensor("e", 1, [len(sets)], sets),
            **changes,
        }
    )


def test_members_of_sets(tmp_path: Path) -> None:
    """Sets of different sizes, one with a member twice, in the order of the nodes."""
    x = np.random.default_rng(1).integers(-4, 5, (200, 4)).astype(np.float32) / 2
    made = with_sets()
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 200
    is_first = np.isin(x[:, 0], [0.5, -1.0, 2.0])
    first = np.where(x[:, 2] <= -0.5, 1.0, 2.0)
    wanted = np.where(is_first, first, np.where(x[:, 1] == 1.5, 4.0, 8.0))
    assert 0 < is_first.sum() < 200
    found = load(made, tmp_path).module(torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy()[:, 0], wanted)


def test_members_of_sets_in_secret(tmp_path: Path) -> None:
    made, x = with_sets(), rows(17)
    path = tmp_path / "sets.onnx"
    path.write_bytes(made.SerializeToString())
    program, weights = tacit.compile(path)
    plain = load(made, tmp_path).module(torch.from_numpy(x))
    (found,), _ = shared(program, weights, torch.from_numpy(x))
    assert torch.equal(found, plain)


def test_names_of_classes_are_counted(tmp_path: Path) -> None:
    made = classical(
        "LinearClassifier",
        results=2,
        classlabels_strings=["no", "yes"],
        coefficients=COEFFICIENTS[:4],
        intercepts=[0.0],
    )
    made.graph.output[0].type.tensor_type.elem_type = 8
    x = rows(15)
    label, score = load(made, tmp_path).module(torch.from_numpy(x))
    assert label.tolist() == (score[:, 1] > 0).long().tolist()


@pytest.mark.parametrize(
    ("made", "kind", "told"),
    [
        (numbered(nodes_truenodeids=[0, 0]), SetupError, "its nodes are no trees"),
        (numbered(nodes_featureids=[0, 4]), SetupError, "looks at column 4 of 4"),
        (
            numbered(nodes_modes=helper.make_tensor("m", 2, [2], [0, 6])),
            SetupError,
            "0 sets for 1 nodes that ask for members",
        ),
        (
            numbered(nodes_modes=helper.make_tensor("m", 2, [2], [0, 7])),
            SetupError,
            "the comparison 7 is not known",
        ),
        (numbered(aggregate_function=4), SetupError, "the aggregate 4 is not known"),
        (
            numbered(aggregate_function=2, n_targets=2, leaf_targetids=[0, 1, 0]),
            UnsupportedOperatorError,
            "leaves that count for a target, and others that do not.*; give each leaf a weight for "
            "the same targets, or combine by SUM",
        ),
        (
            numbered(aggregate_function=3, n_targets=2),
            UnsupportedOperatorError,
            "no tree counts for its target 1; leave targets without trees out",
        ),
        (
            classical("OneHotEncoder", cats_strings=["a", "b"]),
            UnsupportedOperatorError,
            "it takes strings, which no secret tensor holds; encode categories by numbers",
        ),
        (
            classical("Normalizer", norm="L7"),
            UnsupportedOperatorError,
            "the norm L7 is not known; use L1, L2 or MAX",
        ),
        (classical("Scaler", offset=[1.0, 2.0]), SetupError, "2 numbers of offset for 4 columns"),
    ],
)
def test_refusals(made: Any, kind: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=told):
        load(made, tmp_path)


def test_results_are_chosen_by_name(tmp_path: Path) -> None:
    made = classical(
        "LinearClassifier",
        results=2,
        classlabels_ints=[0, 1],
        coefficients=COEFFICIENTS[:4],
        intercepts=[0.0],
    )
    assert load(made, tmp_path, results=["y"]).outputs == ["y"]
    with pytest.raises(MisuseError, match="has no output named 'label'; it has 'y', 'z'"):
        load(made, tmp_path, results=["label"])
