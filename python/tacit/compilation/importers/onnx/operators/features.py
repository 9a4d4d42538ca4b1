"""Operators of classical models that prepare features: scaling, encoding, and choice of columns."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import CLASSICAL, Node, Part, implements

#: Greatest number of columns and categories of an encoder, and of entries of a table.
MOST_CATEGORIES = 1 << 16


def columns(x: torch.Tensor) -> int:
    """Returns the number of columns; a vector is a column."""
    return int(x.shape[-1]) if x.ndim > 1 else 1


def _row(node: Node, name: str, size: int, default: float) -> torch.Tensor:
    """Returns a number for each column, which the file gives for all or for each."""
    given = node.numbers(name) or [default]
    if len(given) not in (1, size):
        raise ValueError(f"{len(given)} numbers of {name} for {size} columns")
    return torch.tensor(given, dtype=torch.float32).expand(size).clone()


def _scaler_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    size = columns(given[0])
    offset, scale = _row(node, "offset", size, 0.0), _row(node, "scale", size, 1.0)
    return [Part("offset", offset), Part("scale", scale)]


@implements("Scaler", domain=CLASSICAL, parts=_scaler_parts)
def scaler(_: Node, x: torch.Tensor, offset: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Returns (x − offset) · scale, column by column."""
    return (x.to(torch.float32) - offset) * scale


@implements("Normalizer", domain=CLASSICAL)
def normalizer(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Divides each row by its norm; a row of zeros stays zeros."""
    x, norm = x.to(torch.float32), node.text("norm", "MAX")
    if norm == "L2":
        size = torch.linalg.vector_norm(x, 2, dim=-1, keepdim=True)
    elif norm in ("L1", "MAX"):
        size = x.abs()
        size = size.sum(-1, keepdim=True) if norm == "L1" else size.amax(-1, keepdim=True)
    else:
        raise NotImportedError(f"the norm {norm[:40]} is not known", "use L1, L2 or MAX")
    return torch.where(size == 0, torch.zeros_like(x), x / size)


def _imputer_parts(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    size = columns(given[0])
    if given[0].is_floating_point():
        return [Part("imputed", _row(node, "imputed_value_floats", size, 0.0))]
    values = node.integers("imputed_value_int64s") or [0]
    if len(values) not in (1, size):
        raise ValueError(f"{len(values)} imputed values for {size} columns")
    return [Part("imputed", torch.tensor(values).expand(size).clone())]


@implements("Imputer", domain=CLASSICAL, parts=_imputer_parts)
def imputer(node: Node, x: torch.Tensor, imputed: torch.Tensor) -> torch.Tensor:
    """Puts a column's own value in the place of the one that stands for a missing value.

    No secret number is NaN. So if NaN stands for missing values, none are missing."""
    name = "replaced_value_float" if x.is_floating_point() else "replaced_value_int64"
    missing = node.number(name)
    if math.isnan(missing):
        return x.clone()
    return torch.where(x == (missing if x.is_floating_point() else int(missing)), imputed, x)


@implements("Binarizer", domain=CLASSICAL)
def binarizer(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns 1 above a public threshold, and 0 elsewhere."""
    return (x > node.number("threshold")).to(x.dtype)


@implements("ArrayFeatureExtractor", domain=CLASSICAL)
def array_feature_extractor(_: Node, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Takes elements along the last dimension; those of a vector make one row."""
    index = index.reshape(-1).to(torch.int64)
    found = torch.index_select(x, x.ndim - 1, index)
    return found.reshape(1, -1) if x.ndim == 1 else found


@implements("FeatureVectorizer", domain=CLASSICAL)
def feature_vectorizer(node: Node, *inputs: torch.Tensor) -> torch.Tensor:
    """Joins columns, of each input as many as the file says."""
    sizes = node.integers("inputdimensions") or [columns(each) for each in inputs]
    if len(sizes) != len(inputs) or any(not 0 <= size <= MOST_CATEGORIES for size in sizes):
        raise ValueError(f"{len(sizes)} sizes for {len(inputs)} inputs")
    parts = []
    for x, size in zip(inputs, sizes, strict=True):
        matrix = x.reshape(-1, 1) if x.ndim == 1 else x
        matrix = matrix.to(torch.float32)[:, :size]
        parts.append(functional.pad(matrix, (0, size - matrix.shape[1])))
    return torch.cat(parts, 1)


def _categories(node: Node, given: Sequence[torch.Tensor]) -> list[Part]:
    if node.words("cats_strings"):
        raise _strings()
    found = node.integers("cats_int64s") or []
    if not 0 < len(found) <= MOST_CATEGORIES:
        raise ValueError(f"{len(found)} categories")
    kind = torch.float32 if given[0].is_floating_point() else torch.int64
    return [Part("categories", torch.tensor(found, dtype=kind), public=True)]


@implements("OneHotEncoder", domain=CLASSICAL, parts=_categories)
def one_hot_encoder(_: Node, x: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
    """Returns 1 at the category of each element, and 0 elsewhere.

    An element of no category gives zeros only, also where the file asks for an error: which
    elements these are is secret."""
    if x.is_floating_point():
        # ONNX takes the whole part of a fraction.
        x = torch.trunc(x)
    return (x.unsqueeze(-1) == categories.to(x.dtype)).to(torch.float32)


def _strings() -> NotImportedError:
    return NotImportedError(
        "it takes strings, which no secret tensor holds",
        "encode categories by numbers before the model, with an OrdinalEncoder outside of it",
    )


def _table(node: Node, _: Sequence[torch.Tensor]) -> list[Part]:
    """Returns the keys of an encoder, its values, and the value of everything else."""
    if node.words("keys_strings") or node.words("values_strings") or node.words("classes_strings"):
        raise _strings()
    keys, values = (_entries(node, name) for name in ("keys", "values"))
    if keys.numel() != values.numel() or not 0 < keys.numel() <= MOST_CATEGORIES:
        raise ValueError(f"{keys.numel()} keys and {values.numel()} values")
    # Of several entries of one key the last one counts, as in a dictionary.
    last = {key: at for at, key in enumerate(keys.tolist())}
    keys, values = (each[list(last.values())] for each in (keys, values))
    default = node.tensor("default_tensor")
    if default is None:
        whole = not values.is_floating_point()
        number = node.integer("default_int64", -1) if whole else node.number("default_float")
        default = torch.tensor([number], dtype=values.dtype)
    return [
        Part("keys", keys, public=True),
        Part("values", values),
        Part("default", default.reshape(1).to(values.dtype)),
    ]


def _entries(node: Node, name: str) -> torch.Tensor:
    if (found := node.tensor(f"{name}_tensor")) is not None:
        return found.reshape(-1)
    if (whole := node.integers(f"{name}_int64s")) is not None:
        return torch.tensor(whole, dtype=torch.int64)
    return torch.tensor(node.numbers(f"{name}_floats") or [], dtype=torch.float32)


@implements("LabelEncoder", domain=CLASSICAL, parts=_table)
def label_encoder(
    _: Node, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, default: torch.Tensor
) -> torch.Tensor:
    """Replaces each key by its value, and everything else by a default. Keys are public."""
    found = x.unsqueeze(-1) == keys.to(x.dtype)
    chosen = torch.where(found, values - default, torch.zeros_like(values))
    return chosen.sum(-1, dtype=values.dtype) + default


@implements("ZipMap", domain=CLASSICAL)
def zip_map(_: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the matrix of which a map for each row would be made; columns are in its order."""
    return x


def decided(position: torch.Tensor, labels: Any) -> torch.Tensor:
    """Returns the public label at a position."""
    if labels == list(range(len(labels))):
        return position
    table = torch.tensor(labels, dtype=torch.int64)
    return torch.index_select(table, 0, position.reshape(-1)).reshape(position.shape)
