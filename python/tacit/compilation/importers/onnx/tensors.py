"""Tensors from a file, or from files next to it.

Every length is checked against the declared shape before a tensor is made, and nothing outside the
model's folder is read.

All floating-point types become float32: secret numbers are fixed point, so a type of half the bytes
would gain nothing."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tacit.compilation.importers.onnx.problems import quoted
from tacit.errors import printable, setup_error

#: PyTorch's dtype for each ONNX type, by its number in ONNX, with the bytes that an element takes
#: in a file.
DTYPES: dict[int, tuple[torch.dtype, int]] = {
    1: (torch.float32, 4),
    2: (torch.uint8, 1),
    3: (torch.int8, 1),
    5: (torch.int16, 2),
    6: (torch.int32, 4),
    7: (torch.int64, 8),
    9: (torch.bool, 1),
    10: (torch.float32, 2),
    11: (torch.float32, 8),
    16: (torch.float32, 2),
}

#: Field that holds a tensor's elements if they are not raw bytes.
FIELDS = {1: "float_data", 7: "int64_data", 11: "double_data"}

#: Greatest number of elements of a value.
MOST_ELEMENTS = 1 << 31

#: Names of ONNX types that are not imported.
OTHERS = {
    0: "undefined", 4: "uint16", 8: "string", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip


def dtype_of(number: int) -> torch.dtype | None:
    """Returns PyTorch's dtype for an ONNX type, or ``None`` if that is not imported."""
    return DTYPES[number][0] if number in DTYPES else None


def type_name(number: int) -> str:
    """Returns ONNX's name for a type that is not imported."""
    return OTHERS.get(number, f"type {number}")


def read(tensor: Any, folder: Path) -> torch.Tensor:
    """Reads a tensor of a file into its own memory.

    Raises:
        SetupError: the tensor is not what it declares, or lies elsewhere.
    """
    import onnx
    from onnx import numpy_helper

    name = quoted(tensor.name)
    if tensor.data_type not in DTYPES:
        raise setup_error(
            f"tensor {name} has type {type_name(tensor.data_type)}, which is not imported"
        )
    dims = list(tensor.dims)
    if any(dim < 0 for dim in dims) or math.prod(dims) > MOST_ELEMENTS:
        raise setup_error(f"tensor {name} declares the shape {dims[:8]}, which no tensor has")
    dtype, width = DTYPES[tensor.data_type]
    elements = math.prod(dims)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raw = _external(tensor, folder, elements * width)
        tensor = onnx.TensorProto(data_type=tensor.data_type, dims=dims, raw_data=raw)
    field = (
        "raw_data" if tensor.HasField("raw_data") else FIELDS.get(tensor.data_type, "int32_data")
    )
    present, wanted = len(getattr(tensor, field)), elements * (width if field == "raw_data" else 1)
    if present != wanted:
        raise setup_error(
            f"tensor {name} declares the shape {dims} and holds {present} of {wanted} in {field}"
        )
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError) as error:
        raise setup_error(f"tensor {name} cannot be read: {printable(error)}") from None
    if dtype == torch.float32:
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    # The array is copied, because protobuf's memory can be neither written nor kept.
    return torch.from_numpy(np.array(array, copy=True)).reshape(dims)


def _external(tensor: Any, folder: Path, length: int) -> bytes:
    """Reads the bytes of a tensor that lies in a file next to the model's."""
    name = quoted(tensor.name)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not location or "\0" in location:
        raise setup_error(f"tensor {name} lies in another file and does not say in which")
    path = (folder / location).resolve()
    if Path(location).is_absolute() or not path.is_relative_to(folder.resolve()):
        raise setup_error(
            f"tensor {name} lies in {quoted(location)}, outside of the model's folder, where "
            f"nothing is read"
        )
    if not path.is_file():
        raise setup_error(
            f"tensor {name} lies in {quoted(location)}, which is not beside the model"
        )
    try:
        offset = int(entries.get("offset") or 0)
        declared = int(entries.get("length") or length)
    except ValueError:
        raise setup_error(
            f"tensor {name} gives no numbers for its place in {quoted(location)}"
        ) from None
    if offset < 0 or declared != length or offset + length > path.stat().st_size:
        raise setup_error(
            f"tensor {name} needs {length} bytes at {offset} of {quoted(location)}, which has "
            f"{path.stat().st_size} (the file says {declared})"
        )
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)
