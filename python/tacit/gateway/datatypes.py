"""Tensors of the Open Inference Protocol: names of datatypes, JSON numbers and raw bytes.

Everything here comes from an application that may be faulty or hostile. Shapes are multiplied as
Python's whole numbers, so that no product overflows, and are compared with the bytes that came
before anything of their size is allocated."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.gateway.backend import Array
from tacit.gateway.json_numbers import Numbers
from tacit.serving.http_messages import Refused

#: NumPy's types, by the protocol's names. Raw bytes are little-endian.
DTYPES = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}

_NAMES = {dtype: name for name, dtype in DTYPES.items()}

#: Names of the types that models declare. NumPy has no bfloat16: inputs come as FP32, which a
#: client rounds to the model's numbers, and results go as FP32.
_DECLARED = {"bfloat16": "FP32", **{str(dtype): name for name, dtype in DTYPES.items()}}

#: The most dimensions of a tensor.
MOST_DIMENSIONS = 32

#: The greatest dimension, which every index of an array has room for.
_GREATEST = 2**40

#: Python's types of JSON's values that a datatype takes, by NumPy's kind.
_TAKEN: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}}


def declared(dtype: str) -> str:
    """Returns the protocol's name of a type that a model declares, such as ``float32``."""
    return _DECLARED[dtype]


def datatype(dtype: np.dtype[Any]) -> str:
    """Returns the protocol's name of an array's type."""
    return _NAMES[dtype.newbyteorder("<")]


def dtype_of(name: Any, tensor: str) -> np.dtype[Any]:
    """Returns NumPy's type for a datatype that a request names.

    Raises:
        Refused: it is none, or none that can be shared.
    """
    if not isinstance(name, str) or name not in DTYPES:
        known = ", ".join(DTYPES)
        raise Refused(400, f"{tensor}: its datatype must be one of {known}")
    return DTYPES[name]


def shape_of(shape: Any, tensor: str) -> tuple[int, ...]:
    """Returns the shape that a request names.

    Raises:
        Refused: it is no list of positive whole numbers.
    """
    if (
        not isinstance(shape, list)
        or len(shape) > MOST_DIMENSIONS
        or not all(type(each) is int and 1 <= each <= _GREATEST for each in shape)
    ):
        raise Refused(
            400,
            f"{tensor}: its shape must be a list of at most {MOST_DIMENSIONS} whole numbers from 1",
        )
    return tuple(shape)


def from_bytes(raw: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...], tensor: str) -> Array:
    """Returns the tensor of raw little-endian bytes.

    Raises:
        Refused: there are more or fewer bytes, or a value is none that can be shared.
    """
    needed = math.prod(shape) * dtype.itemsize
    if len(raw) != needed:
        raise Refused(
            400, f"{tensor}: its shape and datatype need {needed} bytes, and {len(raw)} came"
        )
    if dtype.kind == "b" and np.frombuffer(raw, np.uint8).max(initial=0) > 1:
        raise Refused(400, f"{tensor}: a BOOL is a byte of 0 or 1")
    # A copy of its own is aligned, and may be written to.
    return _finite(np.frombuffer(raw, dtype).reshape(shape).copy(), tensor)


def from_json(data: Any, dtype: np.dtype[Any], shape: tuple[int, ...], tensor: str) -> Array:
    """Returns the tensor of JSON's numbers, in one list or nested like the shape.

    Raises:
        Refused: there are more or fewer, or one is none of this datatype.
    """
    if isinstance(data, list):
        # It has texts or objects.
        raise _of_other_values(dtype, tensor)
    if not isinstance(data, Numbers):
        raise Refused(400, f"{tensor}: its data must be a list")
    found, begin = np.empty(0, dtype), 0
    for values in data.pieces(shape, tensor):
        if not set(map(type, values)) <= _TAKEN[dtype.kind]:
            raise _of_other_values(dtype, tensor)
        if not begin:
            # Nothing of the tensor's size is made before as many numbers have come.
            found = np.empty(math.prod(shape), dtype)
        try:
            with np.errstate(over="ignore"):
                # Whole numbers of any length are floats of the same value, or infinite.
                found[begin : begin + len(values)] = np.array(values, dtype)
        except OverflowError:
            raise Refused(400, f"{tensor}: a number is outside of {datatype(dtype)}") from None
        begin += len(values)
    return _finite(found.reshape(shape), tensor)


def _of_other_values(dtype: np.dtype[Any], tensor: str) -> Refused:
    return Refused(400, f"{tensor}: its data has values that are no {datatype(dtype)}")


def _finite(found: Array, tensor: str) -> Array:
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise Refused(400, f"{tensor}: a number is infinite or not a number")
    return found


def to_bytes(tensor: Array) -> bytes:
    """Returns the raw little-endian bytes of a tensor in row-major order."""
    return np.ascontiguousarray(tensor, DTYPES[datatype(tensor.dtype)]).tobytes()


def fits(shape: Sequence[int], one: Sequence[int]) -> bool:
    """Returns whether a shape is that of one request, or of several in the first dimension."""
    return (
        len(shape) == len(one)
        and all(mine == its for mine, its in zip(shape[1:], one[1:], strict=True))
        and (not one or shape[0] % one[0] == 0)
    )
