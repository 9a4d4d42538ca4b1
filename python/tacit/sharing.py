"""Sharing of a party's data as secret tensors."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tacit import checks, fixed, refusals
from tacit.errors import DeviationError, MisuseError
from tacit.fixed import DTYPES, Scale
from tacit.sessions import Session, session
from tacit.sharings import shares, tracing
from tacit.tensor import SecretTensor, check_party
from tacit.trace import module_paths

#: Most elements of one tensor.
MOST_ELEMENTS = 1 << 27

#: Most dimensions of a tensor, as in PyTorch.
MOST_DIMENSIONS = 64

#: Error for a tensor that is already secret.
SECRET_ALREADY = "this tensor is secret already"

#: Most words of small tensors that are shared in one message, so that each costs no extra rounds.
GROUP = 1 << 22


@module_paths.step("share")
def share(tensor: torch.Tensor | None, *, owner: int, scale: int | None = None) -> SecretTensor:
    """Secret-shares a tensor of party ``owner``.

    Every party gets a ``SecretTensor``. The other parties learn only its shape and dtype, and
    whether it requires gradients. Takes at most two rounds and 64 bits for each element (1 bit for
    booleans). With additive sharing, only the shape is sent. If the owner's tensor cannot be
    shared, every party raises an error, and only the owner's message contains values. The session
    then continues.

    Args:
        tensor: the owner's plain tensor; ``None`` in the other parties. A tensor that another party
            passes is not sent, but must have the same shape. If the owner's tensor is a leaf that
            requires gradients, the secret tensor requires them too. A tensor that was computed from
            such a leaf is shared without: gradients do not pass through sharing.
        owner: the number of the party that owns the data.
        scale: the fraction bits of a floating-point tensor, the same in every party; the session's
            if not given. More bits are more exact and leave less range: magnitudes must be below
            2^(46 − scale).

    Returns:
        A secret tensor of the owner's shape and dtype, in every party.

    Raises:
        EncodingError: a value is NaN, infinite or too large; the message says what is allowed.
        MisuseError: the owner passes ``None``, there is no party ``owner``, or shapes or scales
            differ between parties.
    """
    tracing.refuse("sharing")
    current = session()
    check_party(current, owner, "owner")
    fractions = current.scale if scale is None else fixed.scale_of(scale)
    words = None

    def description() -> dict[str, Any]:
        nonlocal words
        if tensor is None:
            raise refusals.misuse(
                "nothing", f"party {owner} owns the data and must pass a tensor, not None"
            )
        words = _words(tensor, fractions)
        dtype = str(tensor.dtype).removeprefix("torch.")
        # Gradients do not pass through sharing, so only a leaf requires them afterwards.
        is_wanted = tensor.requires_grad and tensor.is_leaf
        return {
            "shape": list(tensor.shape),
            "dtype": dtype,
            "scale": fractions.bits,
            "gradient": is_wanted,
        }

    told = refusals.announced(current, owner, "tacit.share of its tensor", description)
    shape, dtype, theirs, is_wanted = _announced(told, owner, current.member)
    if isinstance(tensor, SecretTensor):
        raise MisuseError(SECRET_ALREADY)
    if tensor is not None and tensor.shape != shape:
        raise MisuseError(
            f"this party's tensor has shape {tuple(tensor.shape)}, but party {owner} shares "
            f"{tuple(shape)}; "
            "pass None, or the same shape in every party"
        )
    if theirs != fractions.bits:
        raise MisuseError(
            f"this party shares with {fractions.bits} fraction bits, party {owner} with {theirs}; "
            "pass the same scale in every party"
        )
    return _shared(current, words, owner, shape, dtype, fractions, is_wanted)


def share_as(
    tensor: torch.Tensor | None,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    owner: int,
    scale: Scale,
    what: str,
    check: Callable[[], None],
) -> SecretTensor:
    """Secret-shares a tensor whose shape and dtype all parties know.

    Args:
        tensor: the owner's plain tensor; ``None`` in the other parties.
        shape: the shape of the tensor.
        dtype: the dtype of the tensor.
        owner: the number of the party that owns the data.
        scale: the scale of fractions.
        what: name, in errors, of the step that is not done if the owner refuses.
        check: called in the owner alone; raises if the tensor has another shape or kind of numbers.

    Raises:
        EncodingError: as for ``share``.
        MisuseError: the owner's check raises; in every party.
    """
    current = session()
    words = None

    def sound() -> bool:
        nonlocal words
        check()
        assert tensor is not None
        assert tensor.shape == torch.Size(shape)
        words = _words(tensor, scale)
        return True

    refusals.announced(current, owner, what, sound)
    return _shared(current, words, owner, shape, dtype, scale)


def share_bits(bits: torch.Tensor | None, count: int, *, owner: int) -> SecretTensor:
    """Secret-shares ``count`` booleans. The owner's cannot be wrong, so nothing is announced."""
    current = session()
    words = None
    if current.party == owner:
        assert bits is not None
        assert bits.dtype == torch.bool
        words = _words(bits, fixed.WHOLE)
    return _shared(current, words, owner, (count,), torch.bool, fixed.WHOLE)


def _shared(
    current: Session,
    words: torch.Tensor | None,
    owner: int,
    shape: Sequence[int],
    dtype: torch.dtype,
    fractions: Scale,
    is_wanted: bool = False,
) -> SecretTensor:
    if dtype == torch.bool:
        bits = shares.share_bits(current, words, owner, shape)
        return SecretTensor(bits, fixed.WHOLE, current, dtype).numbered()
    parts = shares.share(current, words, owner, shape)
    width = fixed.ENCODED if dtype.is_floating_point else torch.iinfo(dtype).bits
    checks.known(current, parts, width)
    secret = SecretTensor(parts, fixed.of_dtype(fractions, dtype), current, dtype).numbered()
    if is_wanted:
        secret.requires_grad_()
    return secret


def _words(tensor: torch.Tensor, scale: Scale) -> torch.Tensor:
    if isinstance(tensor, SecretTensor):
        raise refusals.misuse("type", SECRET_ALREADY)
    if not isinstance(tensor, torch.Tensor):
        raise refusals.misuse(
            "type", f"share() takes a torch.Tensor, not {type(tensor).__name__}; {_instead(tensor)}"
        )
    if tensor.dtype not in DTYPES.values():
        raise refusals.misuse(
            "kind",
            f"tensors of dtype {tensor.dtype} cannot be shared; these can: {', '.join(DTYPES)}",
        )
    if tensor.layout != torch.strided:
        raise refusals.misuse(
            "kind", "a sparse tensor shows where its values are; share what to_dense() makes of it"
        )
    if tensor.device.type == "meta":
        raise refusals.misuse(
            "kind", "a tensor on the device meta has no values to share: make it on the CPU"
        )
    if not _is_small(tensor.shape):
        raise refusals.misuse(
            "kind",
            f"a tensor of shape {tuple(tensor.shape)}; at most {MOST_ELEMENTS} elements are shared "
            f"at once",
        )
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bool:
        return tensor.to(torch.uint8)
    return fixed.encode(tensor, fixed.of_dtype(scale, tensor.dtype))


def _instead(value: Any) -> str:
    """Returns a remedy for a value that is not a tensor."""
    if isinstance(value, torch.nn.Module):
        return "tacit.share_module(module, owner=...) shares a module"
    several = (
        value.values()
        if isinstance(value, Mapping)
        else value
        if isinstance(value, list | tuple)
        else ()
    )
    if any(isinstance(each, torch.Tensor) for each in several):
        return (
            "share its tensors one by one, as many in every party: tacit.share(tensor, owner=...) "
            "each, "
            "with None where they are another party's; torch.stack makes one of tensors of one "
            "shape"
        )
    if isinstance(value, int | float | list | tuple | np.ndarray | np.generic):
        return "torch.as_tensor makes one"
    return "share the tensors that it holds one by one"


def _is_small(sizes: Sequence[int]) -> bool:
    """Whether a tensor of these sizes may be shared. An empty one must have valid strides too."""
    return math.prod(max(size, 1) for size in sizes) <= MOST_ELEMENTS


def grouped(sizes: Sequence[int]) -> Iterator[slice]:
    """Groups neighbouring tensors of the given sizes, one group for each message."""
    start = together = 0
    for at, size in enumerate(sizes):
        if at > start and together + size > GROUP:
            yield slice(start, at)
            start, together = at, 0
        together += size
    if sizes:
        yield slice(start, len(sizes))


def _announced(entries: Any, owner: int, member: str) -> tuple[torch.Size, torch.dtype, int, bool]:
    match entries:
        case {
            "shape": [*sizes],
            "dtype": str(dtype),
            "scale": int(scale),
            "gradient": bool(is_wanted),
        } if (
            dtype in DTYPES
            and is_wanted <= DTYPES[dtype].is_floating_point
            and len(sizes) <= MOST_DIMENSIONS
            and all(type(size) is int and 0 <= size <= MOST_ELEMENTS for size in sizes)
            and _is_small(sizes)
            and 1 <= scale <= fixed.MOST_FRACTION_BITS
        ):
            return torch.Size(sizes), DTYPES[dtype], scale, is_wanted
    raise DeviationError.of(
        owner, "announced a tensor that cannot be: wrong shape, dtype or scale", member
    )
