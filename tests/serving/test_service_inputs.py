"""What a client takes as the input of a model: arrays and tensors as users have them."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from tacit.client import _rows
from tacit.errors import EncodingError, MisuseError
from tacit.serving.description import Tensor

#: Inputs of one request: two numbers.
FLOATS = Tensor("x", "float32", (1, 2), 16)
WHOLE, SMALL, BOOLS = (Tensor("x", dtype, (1, 2), 0) for dtype in ("int64", "uint8", "bool"))

_ROWS = np.arange(6.0, dtype=np.float32).reshape(3, 2)


def words(wanted: Tensor, values: Any) -> list[list[int]]:
    """Encodes an input. Warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [row.tolist() for row in _rows(wanted, values)]


def frozen(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    "values",
    [
        _ROWS,
        _ROWS.astype(np.float16),
        _ROWS.astype(np.longdouble),
        _ROWS.astype(">f4"),
        _ROWS[::-1].copy()[::-1],
        np.asfortranarray(_ROWS),
        np.repeat(_ROWS, 2, axis=1)[:, ::2],
        frozen(_ROWS.copy()),
        _ROWS.view(np.matrix),
        torch.from_numpy(_ROWS),
        torch.from_numpy(_ROWS).bfloat16(),
        torch.from_numpy(_ROWS).to(torch.float8_e4m3fn),
        torch.from_numpy(_ROWS).requires_grad_(),
        torch.complex(torch.zeros(3, 2), torch.from_numpy(-_ROWS)).conj().imag,
    ],
)
def test_floats_of_any_layout_are_encoded(values: Any) -> None:
    assert words(FLOATS, values) == (_ROWS.astype(int) << 16).tolist()


@pytest.mark.parametrize(
    "dtype", ["i1", "u1", ">i2", "u2", "u4", ">u8", "u8", "i8", torch.uint16, torch.uint64]
)
def test_integers_of_any_kind_are_encoded(dtype: Any) -> None:
    whole = _ROWS.astype(np.int64)
    values = whole.astype(dtype) if isinstance(dtype, str) else torch.from_numpy(whole).to(dtype)
    assert words(WHOLE, values) == whole.tolist()
    assert words(SMALL, values) == whole.tolist()


def test_bounds_of_integers_are_those_of_the_model() -> None:
    assert words(WHOLE, np.array([2**63 - 1, 0], np.uint64)) == [[2**63 - 1, 0]]
    assert words(BOOLS, torch.tensor([True, False])) == [[1, 0]]
    for wanted, dtype, number in (
        (WHOLE, np.uint64, 2**63),
        (SMALL, np.int16, -1),
        (SMALL, np.uint16, 256),
        (BOOLS, np.int64, 2),
    ):
        with pytest.raises(MisuseError, match="numbers that are no"):
            words(wanted, np.array([number, 0], dtype))
    with pytest.raises(MisuseError, match="numbers that are no int64"):
        words(WHOLE, torch.tensor([2**63, 0], dtype=torch.uint64))


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (torch.eye(2).to_sparse(), MisuseError, "no dense tensor"),
        (torch.eye(2, device="meta"), MisuseError, "no dense tensor"),
        (torch.zeros(1, 2, dtype=torch.complex64), MisuseError, "dtype complex64"),
        (np.zeros((1, 2), np.complex64), MisuseError, "dtype complex64"),
        (np.zeros((1, 2), "M8[s]"), MisuseError, "dtype datetime64"),
        (np.zeros((1, 2), object), MisuseError, "dtype object"),
        (np.ma.masked_array(_ROWS, _ROWS > 2), MisuseError, "masked array"),
        (np.zeros(()), MisuseError, r"shape \(\)"),
        (np.array([[1, np.longdouble("1e4000")]]), EncodingError, "infinite"),
        (np.array([[1, -np.inf]], ">f8"), EncodingError, "infinite"),
    ],
)
def test_what_has_no_encoding_is_named(values: Any, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said):
        words(FLOATS, values)
