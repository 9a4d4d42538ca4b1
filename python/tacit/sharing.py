"""How a party's data become secret tensors."""

import json
import math
from typing import Any

import torch

from tacit import encoding, shares
from tacit.errors import MisuseError, PeerError
from tacit.session import Session, session
from tacit.tensor import SecretTensor, check_party

#: Dtypes by the name that is announced.
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    )
}

#: Elements of one tensor at most.
MOST_ELEMENTS = 1 << 27

#: Dimensions at most, as in PyTorch.
MOST_DIMENSIONS = 64


def share(tensor: torch.Tensor | None, *, owner: int) -> SecretTensor:
    """Makes ``owner``'s tensor secret: every party gets a ``SecretTensor``, none but the owner knows more
    than its shape and dtype. At most two rounds and 64 bits an element (1 for
    booleans); with additive sharing nothing but the shape travels.

    Args:
        tensor: the owner's plain tensor; ``None`` in the others. A tensor that another party passes is
            not sent; its shape must be the same.
        owner: the party whose data they are.

    Raises:
        EncodingError: a value is NaN, infinite or too large; the message says what is allowed.
        MisuseError: the owner passes nothing, the owner does not exist, or shapes differ.
    """
    current = session()
    check_party(current, owner, "owner")
    if isinstance(tensor, SecretTensor):
        raise MisuseError("this tensor is secret already")
    words = None
    if current.party == owner:
        if tensor is None:
            raise MisuseError(f"party {owner} owns the data and must pass a tensor, not None")
        words = _words(tensor, current.scale)
    shape, dtype = _announce(current, owner, tensor)
    if tensor is not None and tensor.shape != shape:
        raise MisuseError(
            f"this party's tensor has shape {tuple(tensor.shape)}, but party {owner} shares {tuple(shape)}; "
            "pass None, or the same shape in every party"
        )
    if dtype == torch.bool:
        return SecretTensor(shares.share_bits(current, words, owner, shape), 0, current, dtype)
    scale = current.scale if dtype.is_floating_point else 0
    return SecretTensor(shares.share(current, words, owner, shape), scale, current, dtype)


def _words(tensor: torch.Tensor, scale: int) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise MisuseError(
            f"share() takes a torch.Tensor, not {type(tensor).__name__}; torch.as_tensor makes one"
        )
    if tensor.dtype not in DTYPES.values():
        raise MisuseError(f"tensors of dtype {tensor.dtype} cannot be shared; these can: {', '.join(DTYPES)}")
    if tensor.numel() > MOST_ELEMENTS:
        raise MisuseError(
            f"a tensor of {tensor.numel()} elements; at most {MOST_ELEMENTS} are shared at once"
        )
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bool:
        return tensor.to(torch.uint8)
    return encoding.encode(tensor, scale if tensor.is_floating_point() else 0)


def _announce(current: Session, owner: int, tensor: torch.Tensor | None) -> tuple[torch.Size, torch.dtype]:
    payload = None
    if current.party == owner and tensor is not None:
        dtype = str(tensor.dtype).removeprefix("torch.")
        payload = json.dumps({"shape": list(tensor.shape), "dtype": dtype}).encode()
    return _announced(announcement(current.core.broadcast(owner, payload), owner), owner)


def announcement(payload: bytes, owner: int) -> Any:
    """JSON of another party, which may be anything.

    Raises:
        PeerError: it is not JSON.
    """
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        raise PeerError(f"party {owner} announced what is not a description of a tensor") from None


def _announced(entries: Any, owner: int) -> tuple[torch.Size, torch.dtype]:
    match entries:
        case {"shape": [*sizes], "dtype": str(dtype)} if (
            dtype in DTYPES
            and len(sizes) <= MOST_DIMENSIONS
            and all(type(size) is int and 0 <= size <= MOST_ELEMENTS for size in sizes)
            and math.prod(sizes) <= MOST_ELEMENTS
        ):
            return torch.Size(sizes), DTYPES[dtype]
    raise PeerError(f"party {owner} announced a tensor that cannot be: wrong shape or dtype")
