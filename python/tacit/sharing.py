"""How a party's data become secret tensors."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from tacit import fixed, paths, shares, tracing
from tacit.errors import DeviationError, MisuseError
from tacit.fixed import Scale
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

#: Words of small tensors that are shared in one message, so that these cost no rounds of their own.
GROUP = 1 << 22


@paths.step("share")
def share(tensor: torch.Tensor | None, *, owner: int, scale: int | None = None) -> SecretTensor:
    """Makes ``owner``'s tensor secret: every party gets a ``SecretTensor``, none but the owner knows more
    than its shape and dtype. At most two rounds and 64 bits an element (1 for
    booleans); with additive sharing nothing but the shape travels.

    Args:
        tensor: the owner's plain tensor; ``None`` in the others. A tensor that another party passes is
            not sent; its shape must be the same.
        owner: the party whose data they are.
        scale: fraction bits of fractions, the same in every party; those of the session if not given. More
            are more exact and leave less range: magnitudes stay below 2^(46 − scale).

    Raises:
        EncodingError: a value is NaN, infinite or too large; the message says what is allowed.
        MisuseError: the owner passes nothing, the owner does not exist, or shapes or scales differ.
    """
    tracing.refuse("sharing")
    current = session()
    check_party(current, owner, "owner")
    if isinstance(tensor, SecretTensor):
        raise MisuseError("this tensor is secret already")
    fractions = current.scale if scale is None else fixed.scale_of(scale)
    words = None
    if current.party == owner:
        if tensor is None:
            raise MisuseError(f"party {owner} owns the data and must pass a tensor, not None")
        words = _words(tensor, fractions)
    shape, dtype, theirs = _announce(current, owner, tensor, fractions)
    if tensor is not None and tensor.shape != shape:
        raise MisuseError(
            f"this party's tensor has shape {tuple(tensor.shape)}, but party {owner} shares {tuple(shape)}; "
            "pass None, or the same shape in every party"
        )
    if theirs != fractions.bits:
        raise MisuseError(
            f"this party shares with {fractions.bits} fraction bits, party {owner} with {theirs}; "
            "pass the same scale in every party"
        )
    return _shared(current, words, owner, shape, dtype, fractions)


def share_as(
    tensor: torch.Tensor | None, shape: Sequence[int], dtype: torch.dtype, *, owner: int, scale: Scale
) -> SecretTensor:
    """The same, of what all parties know the shape and dtype of: nothing is announced, which saves a round.
    The owner's tensor has that shape, and is of that kind of numbers.

    Raises:
        EncodingError: as of ``share``.
    """
    current = session()
    words = None
    if current.party == owner:
        assert tensor is not None
        assert tensor.shape == torch.Size(shape)
        words = _words(tensor, scale)
    return _shared(current, words, owner, shape, dtype, scale)


def _shared(
    current: Session,
    words: torch.Tensor | None,
    owner: int,
    shape: Sequence[int],
    dtype: torch.dtype,
    fractions: Scale,
) -> SecretTensor:
    if dtype == torch.bool:
        bits = shares.share_bits(current, words, owner, shape)
        return SecretTensor(bits, fixed.WHOLE, current, dtype).numbered()
    parts = shares.share(current, words, owner, shape)
    return SecretTensor(parts, fixed.of_dtype(fractions, dtype), current, dtype).numbered()


def _words(tensor: torch.Tensor, scale: Scale) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise MisuseError(
            f"share() takes a torch.Tensor, not {type(tensor).__name__}; torch.as_tensor makes one"
        )
    if tensor.dtype not in DTYPES.values():
        raise MisuseError(f"tensors of dtype {tensor.dtype} cannot be shared; these can: {', '.join(DTYPES)}")
    if tensor.layout != torch.strided:
        raise MisuseError("a sparse tensor shows where its values are; share what to_dense() makes of it")
    if tensor.device.type == "meta":
        raise MisuseError("a tensor on the device meta has no values to share: make it on the CPU")
    if not _is_small(tensor.shape):
        raise MisuseError(
            f"a tensor of shape {tuple(tensor.shape)}; at most {MOST_ELEMENTS} elements are shared at once"
        )
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bool:
        return tensor.to(torch.uint8)
    return fixed.encode(tensor, fixed.of_dtype(scale, tensor.dtype))


def _is_small(sizes: Sequence[int]) -> bool:
    """Whether a tensor of these sizes may be shared; an empty one's strides must be possible too."""
    return math.prod(max(size, 1) for size in sizes) <= MOST_ELEMENTS


def grouped(sizes: Sequence[int]) -> Iterator[slice]:
    """Tensors of these sizes in groups of neighbours, each for one message."""
    start = together = 0
    for at, size in enumerate(sizes):
        if at > start and together + size > GROUP:
            yield slice(start, at)
            start, together = at, 0
        together += size
    if sizes:
        yield slice(start, len(sizes))


def _announce(
    current: Session, owner: int, tensor: torch.Tensor | None, scale: Scale
) -> tuple[torch.Size, torch.dtype, int]:
    payload = None
    if current.party == owner and tensor is not None:
        dtype = str(tensor.dtype).removeprefix("torch.")
        entries = {"shape": list(tensor.shape), "dtype": dtype, "scale": scale.bits}
        payload = json.dumps(entries).encode()
    return _announced(announcement(current.core.broadcast(owner, payload), owner), owner)


def announcement(payload: bytes, owner: int) -> Any:
    """JSON of another party, which may be anything.

    Raises:
        PeerError: it is not JSON.
    """
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        raise DeviationError.of(owner, "announced what is not a description of a tensor") from None


def _announced(entries: Any, owner: int) -> tuple[torch.Size, torch.dtype, int]:
    match entries:
        case {"shape": [*sizes], "dtype": str(dtype), "scale": int(scale)} if (
            dtype in DTYPES
            and len(sizes) <= MOST_DIMENSIONS
            and all(type(size) is int and 0 <= size <= MOST_ELEMENTS for size in sizes)
            and _is_small(sizes)
            and 1 <= scale <= fixed.MOST_FRACTION_BITS
        ):
            return torch.Size(sizes), DTYPES[dtype], scale
    raise DeviationError.of(owner, "announced a tensor that cannot be: wrong shape, dtype or scale")
