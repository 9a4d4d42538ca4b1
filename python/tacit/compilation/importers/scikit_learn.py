"""Importer of fitted estimators and pipelines of scikit-learn, and of those of XGBoost and LightGBM
within them.

skl2onnx makes ONNX of them, and onnxmltools of the latter; the result is read like any ONNX file.
It is written to a folder of its own, which is removed afterwards."""

import importlib
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from tacit.compilation.importers.imported import Imported
from tacit.errors import MisuseError, UnsupportedOperatorError, printable, setup_error

#: Extra that has what this needs.
EXTRA = "pip install 'tacit-mpc[sklearn]'"

#: Versions of operators that are asked for: the newest that all of skl2onnx's converters give.
OPSETS = {"": 18, "ai.onnx.ml": 3}

#: Greatest number of characters of another library's error.
MOST_TOLD = 500

#: Libraries whose estimators onnxmltools converts, with their estimators' names, by whether they
#: classify, and where their converter is.
OTHERS = {
    "xgboost": (
        {"XGBClassifier": True, "XGBRegressor": False},
        "onnxmltools.convert.xgboost.operator_converters.XGBoost",
        "convert_xgboost",
    ),
    "lightgbm": (
        {"LGBMClassifier": True, "LGBMRegressor": False},
        "onnxmltools.convert.lightgbm.operator_converters.LightGbm",
        "convert_lightgbm",
    ),
}


@runtime_checkable
class Estimator(Protocol):
    """An estimator or a pipeline with the interface of scikit-learn."""

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """Returns the parameters that it was made with."""


def load(
    model: Estimator, example: Any, secret: Collection[str] = (), results: Collection[str] = ()
) -> Imported:
    """Loads a fitted estimator, for inputs like the example.

    Raises:
        SetupError: skl2onnx, or what else it needs, is not installed.
        MisuseError: the example is no matrix of numbers, or the estimator was not fitted.
        UnsupportedOperatorError: skl2onnx does not convert it, or a part of it is not imported.
    """
    try:
        import skl2onnx
        from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted
    except ImportError as error:
        raise setup_error(
            f"estimators of scikit-learn are read by skl2onnx ({error.name} is missing): {EXTRA}"
        ) from None
    rows = _matrix(example)
    for library in sorted(_libraries(model)):
        _register(library)
    name = type(model).__name__
    try:
        check_is_fitted(model)
        made = skl2onnx.to_onnx(model, rows[:1], target_opset=OPSETS)
    except NotFittedError:
        raise MisuseError(f"{name} is not fitted: call fit before tacit.compile") from None
    except (MissingConverter, MissingShapeCalculator, NotImplementedError) as error:
        raise UnsupportedOperatorError(
            f"skl2onnx does not convert {name}: {printable(error, MOST_TOLD)}; compute that step "
            "before sharing, or use another estimator"
        ) from None
    except Exception as error:
        raise MisuseError(
            f"skl2onnx does not convert {name} with this example: {type(error).__name__}: "
            f"{printable(error, MOST_TOLD)}"
        ) from None
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(made.SerializeToString())
        return _read(path, name, made.graph.input[0].name, rows.shape, secret, results)


def _read(
    path: Path,
    name: str,
    given: str,
    shape: tuple[int, ...],
    secret: Collection[str],
    results: Collection[str],
) -> Imported:
    from tacit.compilation.importers import onnx

    try:
        return onnx.load(path, {given: shape}, secret, results=results)
    except UnsupportedOperatorError as error:
        raise UnsupportedOperatorError(str(error).replace(str(path), name)) from None


def _matrix(example: Any) -> Any:
    """Returns the example as a matrix of float32."""
    if isinstance(example, torch.Tensor):
        example = example.numpy(force=True)
    try:
        rows = np.asarray(example, dtype=np.float32)
    except (TypeError, ValueError):
        raise MisuseError(
            "the example of an estimator is a matrix of numbers; encode categories by numbers "
            "before the model, with an OrdinalEncoder outside of it"
        ) from None
    if rows.ndim != 2 or not rows.size:
        raise MisuseError(
            f"the example of an estimator is a matrix (rows, columns), not of shape {rows.shape}"
        )
    return rows


def _libraries(model: Any) -> set[str]:
    """Returns which other libraries the parts of a model come from."""
    return {
        module
        for part in _parts(model, set())
        if (module := type(part).__module__.split(".")[0]) in OTHERS
    }


def _parts(model: Any, seen: set[int]) -> Iterator[Any]:
    """Yields a model and all that its parameters hold."""
    if id(model) in seen:
        return
    seen.add(id(model))
    if isinstance(model, Estimator) and not isinstance(model, type):
        yield model
        for each in model.get_params(deep=False).values():
            yield from _parts(each, seen)
    elif isinstance(model, list | tuple):
        for each in model:
            yield from _parts(each, seen)


def _register(library: str) -> None:
    """Tells skl2onnx how onnxmltools converts the estimators of a library."""
    from skl2onnx import update_registered_converter
    from skl2onnx.common import shape_calculator

    names, module, converter = OTHERS[library]
    try:
        convert = getattr(importlib.import_module(module), converter)
    except ImportError as error:
        raise setup_error(
            f"estimators of {library} are read by onnxmltools ({error.name} is missing): {EXTRA}"
        ) from None
    for name, classifies in names.items():
        kind = "classifier" if classifies else "regressor"
        options: dict[str, Any] = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
        update_registered_converter(
            getattr(importlib.import_module(library), name),
            f"{library}{name}",
            getattr(shape_calculator, f"calculate_linear_{kind}_output_shapes"),
            convert,
            options=options if classifies else {"split": None} if library == "lightgbm" else None,
        )
