"""NumPy's operators and functions where secret tensors meet arrays: operators are PyTorch's, with
the array as a public tensor; what gives arrays is refused, since these would show values."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tacit.errors import TacitError, UnsupportedOperatorError
from tacit.tensor import SecretTensor, refuse
from tacit.trace import module_paths

#: What PyTorch calls otherwise.
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

#: What PyTorch has numbers in, on either side; in all else they are tensors.
_WITH_NUMBERS = {"add", "subtract", "multiply", "divide", "true_divide", "power", "float_power"}

#: What PyTorch has of fractions alone, where NumPy makes fractions of integers.
_OF_FRACTIONS = {"hypot", "logaddexp", "logaddexp2"}


def _torch(name: str) -> Any:
    """PyTorch's function of that name, if there is one."""
    return getattr(torch, _NAMES.get(name, name), None)


def _tensors(name: str, operands: Sequence[Any]) -> list[Any]:
    """The operands as PyTorch's function takes them."""
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
                # NumPy's fractions are of another dtype by default, and PyTorch's products of one.
                tensor = tensor.to(secret.dtype)
        tensors.append(tensor)
    return tensors


def array_ufunc(
    _self: SecretTensor, ufunc: Any, method: str, *operands: Any, **options: Any
) -> Any:
    """``array * x``, ``np.exp(x)``: what PyTorch gives of the same tensors.

    Raises:
        MisuseError: it is not element by element, or goes into an array.
        UnsupportedOperatorError: PyTorch has nothing of the kind, or not for these dtypes.
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
            # Such as shapes that do not fit, which PyTorch names.
            raise
        dtypes = ", ".join(str(getattr(each, "dtype", type(each).__name__)) for each in operands)
        remedy = "make numbers of truth values, x.long(), and fractions of integers, x.float()"
        raise UnsupportedOperatorError.of(
            f"np.{name} of {dtypes}", module_paths.current(), remedy
        ) from error


def array_function(
    _self: SecretTensor, function: Any, _types: Any, _args: Sequence[Any], _named: Any
) -> Any:
    """Refused: NumPy's own functions take memory.

    Raises:
        MisuseError: always.
    """
    _refuse(f"np.{function.__name__}", function.__name__, None)


#: What PyTorch says where it has a function for other dtypes alone.
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
