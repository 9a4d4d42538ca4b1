"""NumPy operators and functions on secret tensors and arrays.

An operator is computed by PyTorch, with the array as a public tensor. A function that returns an
array is refused, since the array would show values."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tacit.errors import TacitError, UnsupportedOperatorError
from tacit.tensor import SecretTensor, refuse
from tacit.trace import module_paths

#: NumPy functions that have another name in PyTorch.
_NAMES = {
    "conjugate": "conj",
    "degrees": "rad2deg",
    "equal": "eq",
    "fabs": "abs",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "radians": "deg2rad",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}

#: Functions that accept numbers as operands in PyTorch. For all others, numbers become tensors.
_WITH_NUMBERS = {"add", "subtract", "multiply", "divide", "true_divide", "power", "float_power"}

#: Functions that PyTorch has for floating point alone, while NumPy converts integers.
_OF_FRACTIONS = {"hypot", "logaddexp", "logaddexp2"}


def _torch(name: str) -> Any:
    """Returns PyTorch's function for a NumPy name, or ``None``."""
    return getattr(torch, _NAMES.get(name, name), None)


def _tensors(name: str, operands: Sequence[Any]) -> list[Any]:
    """Converts the operands to those that PyTorch's function accepts."""
    secret = next(each for each in operands if isinstance(each, SecretTensor))
    tensors: list[Any] = []
    for each in operands:
        tensor = torch.as_tensor(each) if isinstance(each, np.ndarray | np.generic) else each
        if isinstance(tensor, bool | int | float) and name not in _WITH_NUMBERS:
            tensor = torch.scalar_tensor(tensor, dtype=torch.result_type(secret, tensor))
        if isinstance(tensor, torch.Tensor):
            if name in _OF_FRACTIONS and not tensor.is_floating_point():
                tensor = tensor.to(torch.get_default_dtype())
            if name == "matmul" and tensor is not secret and secret.is_floating_point():
                # NumPy's default dtype differs from PyTorch's, and matmul takes only one dtype.
                tensor = tensor.to(secret.dtype)
        tensors.append(tensor)
    return tensors


def array_ufunc(
    _self: SecretTensor, ufunc: Any, method: str, *operands: Any, **options: Any
) -> Any:
    """Computes ``array * x`` or ``np.exp(x)`` by PyTorch on the same tensors.

    Raises:
        MisuseError: the call is not elementwise, or writes into an array.
        UnsupportedOperatorError: PyTorch has no such function, or not for these dtypes.
    """
    name, function = ufunc.__name__, _torch(ufunc.__name__)
    if function is None and not options.get("out"):
        remedy = "write it of functions that torch has, which has none of that name"
        raise UnsupportedOperatorError.of(f"np.{name}", module_paths.current(), remedy)
    if method != "__call__" or options:
        _refuse(f"np.{name}", name, options.get("out"))
    try:
        return function(*_tensors(name, operands))
    except TacitError:
        raise
    except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
        if isinstance(error, RuntimeError) and not _BY_DTYPE.search(str(error)):
            # An error such as shapes that do not fit, which PyTorch's message names.
            raise
        dtypes = ", ".join(str(getattr(each, "dtype", type(each).__name__)) for each in operands)
        remedy = "make numbers of truth values, x.long(), and fractions of integers, x.float()"
        raise UnsupportedOperatorError.of(
            f"np.{name} of {dtypes}", module_paths.current(), remedy
        ) from error


def array_function(
    _self: SecretTensor, function: Any, _types: Any, _args: Sequence[Any], _named: Any
) -> Any:
    """Refuses NumPy's own functions, which read memory.

    Raises:
        MisuseError: always.
    """
    _refuse(f"np.{function.__name__}", function.__name__, None)


#: Messages of PyTorch for a function that it has for other dtypes only.
_BY_DTYPE = re.compile("not implemented for|not supported")


def _refuse(what: str, name: str, out: Any) -> None:
    if out:
        refuse(
            f"{what} into an array", "what is written into is a tensor: torch.as_tensor(array) + x"
        )
    known = (
        f"torch.{_NAMES.get(name, name)} takes it"
        if _torch(name) is not None
        else "PyTorch's functions take it"
    )
    refuse(what, f"{known}, with torch.as_tensor(array) for each array")


SecretTensor.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
SecretTensor.__array_function__ = array_function  # type: ignore[attr-defined]
