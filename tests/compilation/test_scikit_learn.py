"""Estimators and pipelines of scikit-learn, compiled and run on shares."""

import builtins
from typing import Any

import numpy as np
import pytest
import torch
from ran import THREE

import tacit
from tacit.compilation.execute import share_weights
from tacit.errors import EncodingError, MisuseError, SetupError, UnsupportedOperatorError

pytest.importorskip("skl2onnx")

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC


def people(count: int = 400) -> tuple[Any, Any, Any]:
    """Ages, salaries, departments and amounts in cents; what they decide, and a sum of them."""
    draw = np.random.default_rng(0)
    age, salary = draw.integers(18, 70, count), np.exp(draw.normal(10.8, 0.6, count)).round(2)
    department, amount = draw.integers(0, 4, count), draw.integers(0, 5000, count) / 100
    score = 0.05 * (age - 40) + (np.log(salary) - 10.8) * 2 + (department == 2) + 0.01 * amount
    x = np.stack([age, salary, department, amount], 1).astype(np.float32)
    return x, (score > 0.5).astype(int), 1000 * score


X, CLASSES, SUMS = people()
COLUMNS = ColumnTransformer(
    [("kinds", OneHotEncoder(), [2]), ("numbers", StandardScaler(), [0, 1, 3])]
)

CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "vectors": make_pipeline(MinMaxScaler(), SVC()),
    "columns": make_pipeline(COLUMNS, LogisticRegression()),
    "boosted": GradientBoostingClassifier(n_estimators=10),
}


def run(program: Any, weights: Any, x: torch.Tensor) -> list[torch.Tensor]:
    def shown() -> Any:
        own = weights.values if tacit.session().party == 0 else None
        found = share_weights(program, own, 0)
        results = found(found.given(x, owner=1))
        several = results if isinstance(results, tuple) else (results,)
        return [each.reveal() for each in several]

    told: list[torch.Tensor] = tacit.launch(shown, **THREE)[0]
    return told


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str) -> None:
    fitted = CLASSIFIERS[name].fit(X, CLASSES)
    program, weights = tacit.compile(fitted, X[:50], calibrate=X)
    label, chances = run(program, weights, torch.from_numpy(X[:50]))
    assert (label.numpy() == fitted.predict(X[:50])).mean() >= 0.98
    if hasattr(fitted, "predict_proba"):
        wanted = fitted.predict_proba(X[:50])
        np.testing.assert_allclose(chances.numpy(), wanted, atol=0.02)


@pytest.mark.parametrize("name", ["ridge", "forest"])
def test_regressors(name: str) -> None:
    model = make_pipeline(StandardScaler(), Ridge())
    model = model if name == "ridge" else RandomForestRegressor(10, max_depth=5)
    fitted = model.fit(X, SUMS)
    program, weights = tacit.compile(fitted, X[:50], calibrate=X)
    (found,) = run(program, weights, torch.from_numpy(X[:50]))
    wanted = fitted.predict(X[:50])
    error = np.square(found.numpy().ravel() - wanted).sum() / np.square(wanted).sum()
    assert error < 1e-4


def test_results_are_chosen() -> None:
    fitted = CLASSIFIERS["logistic"].fit(X, CLASSES)
    program, weights = tacit.compile(fitted, X[:50], calibrate=X, results=["output_label"])
    (label,) = run(program, weights, torch.from_numpy(X[:50]))
    assert label.tolist() == fitted.predict(X[:50]).tolist()


def test_missing_values_are_numbers_that_the_imputer_replaces() -> None:
    """The remedy of the refusal of NaN is followed."""
    x, missing = X.copy(), np.random.default_rng(1).random(X.shape) < 0.2
    x[missing] = -1.0
    model = make_pipeline(
        SimpleImputer(missing_values=-1.0), StandardScaler(), LogisticRegression()
    )
    fitted = model.fit(x, CLASSES)
    program, weights = tacit.compile(fitted, x[:50], calibrate=x, results=["output_label"])
    with pytest.raises(EncodingError, match=r"SimpleImputer\(missing_values=\.\.\.\)"):
        run(program, weights, torch.from_numpy(np.where(missing, np.nan, X)[:50]))
    (label,) = run(program, weights, torch.from_numpy(x[:50]))
    assert missing[:50].any()
    assert label.tolist() == fitted.predict(x[:50]).tolist()


def test_probabilities_of_support_vector_machines_of_several_classes() -> None:
    """Those of scikit-learn come from an iteration that ends when it is close."""
    classes = np.digitize(SUMS, np.quantile(SUMS, [1 / 3, 2 / 3]))
    fitted = make_pipeline(MinMaxScaler(), SVC(probability=True, random_state=0)).fit(X, classes)
    program, weights = tacit.compile(fitted, X[:50], calibrate=X)
    label, chances = run(program, weights, torch.from_numpy(X[:50]))
    assert (label.numpy() == fitted.predict(X[:50])).mean() >= 0.98
    np.testing.assert_allclose(chances.numpy(), fitted.predict_proba(X[:50]), atol=0.02)


def test_refusals() -> None:
    with pytest.raises(MisuseError, match="LogisticRegression is not fitted: call fit before"):
        tacit.compile(LogisticRegression(), X[:5])
    fitted = CLASSIFIERS["logistic"].fit(X, CLASSES)
    with pytest.raises(MisuseError, match="is a matrix of numbers; encode categories"):
        tacit.compile(fitted, [["a", "b", "c", "d"]])
    with pytest.raises(MisuseError, match="is a matrix \\(rows, columns\\), not of shape"):
        tacit.compile(fitted, X[0])
    with pytest.raises(UnsupportedOperatorError, match="KNeighborsClassifier cannot be imported"):
        tacit.compile(KNeighborsClassifier().fit(X, CLASSES), X[:5])


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *others: Any, **more: Any) -> Any:
        if name.split(".")[0] == "skl2onnx":
            raise ModuleNotFoundError("no skl2onnx", name="skl2onnx")
        return real(name, *others, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        SetupError, match=r"skl2onnx is missing\): pip install 'tacit-mpc\[sklearn\]'"
    ):
        tacit.compile(LogisticRegression(), X[:5])
