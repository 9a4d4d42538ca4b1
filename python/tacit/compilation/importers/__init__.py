"""Importers of models: each file makes a draft, or a module, of one format."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tacit.compilation.graph import Draft
from tacit.compilation.importers import exported, scikit_learn, tensorflow
from tacit.compilation.importers.imported import Imported
from tacit.compilation.importers.scikit_learn import Estimator
from tacit.errors import MisuseError, setup_error
from tacit.rehearsal import subject

#: Formats by the suffix of the file's name. The formats of TensorFlow are recognised by
#: ``tensorflow.format_of``.
ONNX, EXPORTED = ".onnx", ".pt2"

#: All formats, for messages.
FORMATS = (
    f"{ONNX}, or of your own {EXPORTED}, a SavedModel's folder, a frozen graph (.pb), .keras or "
    "FILE.py:callable"
)

#: A shape, and the shapes of data for inputs, in order or by name.
Shape = Sequence[int]
Like = list[Shape] | dict[str, Shape]


def draft_of(
    model: torch.nn.Module | Estimator | str | Path,
    example: Any,
    shapes: Mapping[str, Shape] | None = None,
    calibrate: Any = None,
    secret: Collection[str] = (),
    results: Collection[str] = (),
    public: Mapping[str, Any] | None = None,
) -> Draft:
    """Makes a draft of a module or an estimator with an example, or of a file.

    A file may leave the shapes of its inputs open. They are then those given by name, or the
    example's, or those of one row of the calibration data. Zero-dimensional numbers of a file are
    public, except for those that are named as secret. Values of inputs in ``public`` become part of
    the draft.

    Raises:
        MisuseError: the model is neither a module, an estimator nor such a file, or it cannot be
            compiled.
        SetupError: there is no such file.
    """
    is_module = isinstance(model, torch.nn.Module) or (
        isinstance(model, str | Path) and (".py:" in str(model) or Path(model).suffix == EXPORTED)
    )
    if results and is_module:
        raise MisuseError(
            "results are named outputs of ONNX and TensorFlow files and of estimators; let the "
            "module return these alone"
        )
    if secret and is_module:
        raise MisuseError(
            "secret applies to numbers of ONNX and TensorFlow files; the parameters of a module "
            "are secret anyway"
        )
    if public and (is_module or isinstance(model, Estimator)):
        raise MisuseError(
            "public gives inputs of ONNX and TensorFlow files; let the module hold such a value "
            "itself, as a buffer"
        )
    if isinstance(model, torch.nn.Module):
        return exported.of_module(model, *subject.arguments(example))
    if isinstance(model, Estimator):
        return _of_imported(scikit_learn.load(model, example, secret, results))
    text = str(model)
    if ".py:" in text:
        _has_its_own(example)
        loaded, own = subject.load(text)
        if not isinstance(loaded, torch.nn.Module):
            raise MisuseError(
                f"{text} is a program, but tacit compiles a module with an example of its inputs"
            )
        return exported.of_module(loaded, *subject.arguments(own))
    path = Path(text)
    kind = tensorflow.format_of(path)
    if kind is None and path.suffix not in (ONNX, EXPORTED):
        raise MisuseError(f"{text} is of no format that is compiled: {FORMATS}")
    if kind is None and not path.is_file():
        raise setup_error(f"there is no file {path}")
    if path.suffix == EXPORTED:
        _has_its_own(example)
        return exported.of_file(path)
    like = _like(calibrate, row=True) if example is None else _like(example)
    imported = _imported(
        path, kind, shapes=shapes or {}, like=like, secret=secret, results=results, public=public
    )
    if example is not None:
        _fits(imported, like)
    return _of_imported(imported)


def _imported(path: Path, kind: tensorflow.Format | None, **others: Any) -> Imported:
    if kind is not None:
        return tensorflow.load(path, kind, **others)
    from tacit.compilation.importers import onnx

    return onnx.load(path, **others)


def _has_its_own(example: Any) -> None:
    if example is not None:
        raise MisuseError(
            "an example of inputs belongs to a module, or to a file that leaves shapes open"
        )


def _like(data: Any, row: bool = False) -> Like:
    """Returns the shapes of data for inputs, in order or by name: of all rows, or of one row."""

    def shape(values: torch.Tensor | np.ndarray) -> Shape:
        return (1, *values.shape[1:]) if row and values.ndim else tuple(values.shape)

    kinds = torch.Tensor | np.ndarray
    if isinstance(data, Mapping):
        return {name: shape(each) for name, each in data.items() if isinstance(each, kinds)}
    several = data if isinstance(data, tuple | list) else [data]
    return list(map(shape, several)) if all(isinstance(each, kinds) for each in several) else []


def _fits(imported: Imported, like: Like) -> None:
    wanted = {name: shape for name, _, shape in imported.inputs}
    if not isinstance(like, Mapping):
        like = dict(zip(wanted, like, strict=False)) if len(like) == len(wanted) else {}
    if {name: tuple(shape) for name, shape in like.items()} != wanted:
        shown = ", ".join(f"{name} {shape}" for name, shape in wanted.items())
        raise MisuseError(f"the example is not what the file takes: tensors of {shown}")


def _of_imported(imported: Imported) -> Draft:
    example = tuple(torch.zeros(shape, dtype=dtype) for _, dtype, shape in imported.inputs)
    draft = exported.of_module(imported.module, example, {}, imported.layers)
    draft.public = imported.public
    draft.names = dict(zip(draft.examples, [name for name, _, _ in imported.inputs], strict=True))
    return draft
