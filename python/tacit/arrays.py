"""NumPy's operators and functions where secret tensors meet arrays: operators are PyTorch's, with the array
as a public tensor; what gives arrays is refused, since these would show values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tacit.tensor import SecretTensor, refuse

#: What PyTorch calls otherwise.
_NAMES = {"equal": "eq", "power": "pow", "invert": "bitwise_not", "left_shift": "bitwise_left_shift"}


def _torch(name: str) -> Any:
    """PyTorch's function of that name, if there is one."""
    return getattr(torch, _NAMES.get(name, name), None)


def _tensor(value: Any) -> Any:
    return torch.as_tensor(value) if isinstance(value, np.ndarray | np.generic) else value


def array_ufunc(_self: SecretTensor, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
    """``array * x``, ``np.exp(x)``: what PyTorch gives of the same tensors.

    Raises:
        MisuseError: it is not element by element, or goes into an array.
    """
    function = _torch(ufunc.__name__)
    if method != "__call__" or options or function is None:
        _refuse(f"np.{ufunc.__name__}", ufunc.__name__, options.get("out"))
    return function(*map(_tensor, operands))


def array_function(_self: SecretTensor, function: Any, _types: Any, _args: Sequence[Any], _named: Any) -> Any:
    """Refused: NumPy's own functions take memory.

    Raises:
        MisuseError: always.
    """
    _refuse(f"np.{function.__name__}", function.__name__, None)


def _refuse(what: str, name: str, out: Any) -> None:
    if out:
        refuse(f"{what} into an array", "what is written into is a tensor: torch.as_tensor(array) + x")
    known = (
        f"torch.{_NAMES.get(name, name)} takes it"
        if _torch(name) is not None
        else "PyTorch's functions take it"
    )
    refuse(what, f"{known}, with torch.as_tensor(array) for each array")


SecretTensor.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
SecretTensor.__array_function__ = array_function  # type: ignore[attr-defined]
