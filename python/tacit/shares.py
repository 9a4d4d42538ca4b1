"""The protocol's operations on the components of sharings.

A sharing is a tuple of tensors of one shape: int64 words that add up to the value modulo 2^64, or uint8
bits (0 or 1) that XOR to it. What only adds or moves data is torch's own operation on each component;
what is here needs the protocol.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from tacit._core import Convolution
from tacit.session import Session

Parts = tuple[torch.Tensor, ...]


def _arrays(parts: Parts) -> list[NDArray[np.int64]]:
    return [part.contiguous().view(-1).numpy() for part in parts]


def _bit_arrays(parts: Parts) -> list[NDArray[np.uint8]]:
    return [part.contiguous().view(-1).numpy() for part in parts]


def _names(session: Session, x: Parts, y: Parts) -> tuple[int | None, int | None]:
    return session.lasting.name(x[0]), session.lasting.name(y[0])


def _empty(session: Session, shape: Sequence[int], dtype: torch.dtype = torch.int64) -> Parts:
    return tuple(torch.empty(tuple(shape), dtype=dtype) for _ in range(session.core.parts))


def share(session: Session, words: torch.Tensor | None, owner: int, shape: Sequence[int]) -> Parts:
    """Shares the owner's words."""
    out = _empty(session, shape)
    if out[0].numel():
        values = None if words is None else words.contiguous().view(-1).numpy()
        session.core.share(values, owner, _arrays(out))
    return out


def share_bits(session: Session, bits: torch.Tensor | None, owner: int, shape: Sequence[int]) -> Parts:
    """Shares the owner's bits."""
    out = _empty(session, shape, torch.uint8)
    if out[0].numel():
        values = None if bits is None else bits.contiguous().view(-1).numpy()
        session.core.share_bits(values, owner, _bit_arrays(out))
    return out


def trivial(session: Session, words: torch.Tensor) -> Parts:
    """Public words as a sharing; no interaction."""
    out = _empty(session, words.shape)
    if words.numel():
        session.core.trivial(words.contiguous().view(-1).numpy(), _arrays(out))
    return out


def trivial_bits(session: Session, bits: torch.Tensor) -> Parts:
    """Public bits as a sharing; no interaction."""
    out = _empty(session, bits.shape, torch.uint8)
    if bits.numel():
        session.core.trivial_bits(bits.contiguous().view(-1).numpy(), _bit_arrays(out))
    return out


def reveal(session: Session, x: Parts, to: int | None) -> torch.Tensor | None:
    """Opens to all or to one. One round."""
    learns = to is None or to == session.party
    out = torch.empty(x[0].shape, dtype=x[0].dtype) if learns else None
    if x[0].numel() and x[0].dtype == torch.uint8:
        session.core.reveal_bits(_bit_arrays(x), to, None if out is None else out.view(-1).numpy())
    elif x[0].numel():
        session.core.reveal(_arrays(x), to, None if out is None else out.view(-1).numpy())
    return out


def multiply(session: Session, x: Parts, y: Parts, truncate: int) -> Parts:
    """x·y / 2^truncate of equal shapes."""
    out = _empty(session, x[0].shape)
    if out[0].numel():
        session.core.multiply(_arrays(x), _arrays(y), _arrays(out), truncate, _names(session, x, y))
    return out


def matmul(session: Session, x: Parts, y: Parts, truncate: int) -> Parts:
    """(batch, m, k) by (batch, k, n), each / 2^truncate."""
    (batch, m, k), n = x[0].shape, y[0].shape[2]
    out = _empty(session, (batch, m, n))
    if out[0].numel() and not k:
        return tuple(part.zero_() for part in out)
    if out[0].numel():
        names = _names(session, x, y)
        session.core.matmul(_arrays(x), _arrays(y), _arrays(out), batch, m, k, n, truncate, names)
    return out


def convolution(
    session: Session, x: Parts, w: Parts, geometry: Convolution, shape: Sequence[int], truncate: int
) -> Parts:
    """Images by weights, each / 2^truncate, in the output's shape."""
    out = _empty(session, shape)
    if out[0].numel():
        names = _names(session, x, w)
        session.core.convolution(_arrays(x), _arrays(w), _arrays(out), geometry, truncate, names)
    return out


def truncate(session: Session, x: Parts, bits: int) -> Parts:
    """x / 2^bits, at most one unit off."""
    if bits == 0:
        return x
    out = _empty(session, x[0].shape)
    if out[0].numel():
        session.core.truncate(_arrays(x), _arrays(out), bits)
    return out


def sign(session: Session, x: Parts) -> Parts:
    """Bits: whether x < 0."""
    out = _empty(session, x[0].shape, torch.uint8)
    if out[0].numel():
        session.core.sign(_arrays(x), session.width, _bit_arrays(out))
    return out


def equal_zero(session: Session, x: Parts) -> Parts:
    """Bits: whether x = 0."""
    out = _empty(session, x[0].shape, torch.uint8)
    if out[0].numel():
        session.core.equal_zero(_arrays(x), session.width, _bit_arrays(out))
    return out


def relu(session: Session, x: Parts) -> Parts:
    """max(x, 0)."""
    out = _empty(session, x[0].shape)
    if out[0].numel():
        session.core.relu(_arrays(x), session.width, _arrays(out))
    return out


def maximum(session: Session, x: Parts, y: Parts) -> Parts:
    """The greater of x and y, of equal shapes."""
    out = _empty(session, x[0].shape)
    if out[0].numel():
        session.core.maximum(_arrays(x), _arrays(y), session.width, _arrays(out))
    return out


def and_bits(session: Session, x: Parts, y: Parts) -> Parts:
    """x AND y, of equal shapes."""
    out = _empty(session, x[0].shape, torch.uint8)
    if out[0].numel():
        session.core.and_bits(_bit_arrays(x), _bit_arrays(y), _bit_arrays(out))
    return out


def bit_multiply(session: Session, bits: Parts, x: Parts) -> Parts:
    """bit·x, of equal shapes."""
    out = _empty(session, x[0].shape)
    if out[0].numel():
        session.core.bit_multiply(_bit_arrays(bits), _arrays(x), _arrays(out))
    return out


def bit_to_ring(session: Session, bits: Parts) -> Parts:
    """Each bit as the ring element 0 or 1."""
    out = _empty(session, bits[0].shape)
    if out[0].numel():
        session.core.bit_to_ring(_bit_arrays(bits), _arrays(out))
    return out


def complement(session: Session, bits: Parts) -> Parts:
    """NOT; no interaction."""
    one = trivial_bits(session, torch.ones((), dtype=torch.uint8))
    return tuple(part ^ flip for part, flip in zip(bits, one, strict=True))


def add(x: Parts, y: Parts) -> Parts:
    """x + y; no interaction."""
    return tuple(a + b for a, b in zip(x, y, strict=True))


def subtract(x: Parts, y: Parts) -> Parts:
    """x − y; no interaction."""
    return tuple(a - b for a, b in zip(x, y, strict=True))
