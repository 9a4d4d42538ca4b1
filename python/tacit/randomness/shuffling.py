"""Secret permutations that no party knows.

Each party in turn applies a permutation that it drew by itself. It uses a Beneš network whose
switches it shares (V. Beneš 1965; the switches by A. Waksman, J. ACM 15, 1968): 2·log2(n) − 1
stages of at most n/2 switches, each a product of a bit and a difference. So a shuffle is exact,
needs no comparisons and opens no values, and any number of columns shares its rounds. Sorting by
random keys would take four times the rounds, and be off by the probability that two keys are equal.

Why no party knows the permutation: the switches are shared, and everything that is computed with
them uses operations of the protocol, which reveal nothing. The result is permuted by π = π_P ∘ … ∘
π_1, where party i alone drew π_i from its operating system's entropy. Parties that follow the
protocol draw uniformly and independently. To all parties but i together π_i is unknown and uniform,
whatever the other permutations are, and so is π. No party can bias it by itself.

Which switches there are depends on n alone. If n is not a power of two, the network is that of the
next power of two, without the switches that have no elements on one side. Permutations are routed
so that these switches would do nothing.
"""

import os
from functools import lru_cache
from typing import overload

import numpy as np
import torch

from tacit.errors import MisuseError
from tacit.modes import outside_trace
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor


@overload
def shuffle(x: SecretTensor, /, *, dim: int = 0) -> SecretTensor: ...


@overload
def shuffle(
    x: SecretTensor, other: SecretTensor, /, *others: SecretTensor, dim: int = 0
) -> tuple[SecretTensor, ...]: ...


def shuffle(
    x: SecretTensor, /, *others: SecretTensor, dim: int = 0
) -> SecretTensor | tuple[SecretTensor, ...]:
    """Returns copies whose slices along a dimension are in a random order that no party knows.

    The order is the same for all tensors: images and their labels stay together.

    Exact. With P parties and n slices it takes 2·P·(2·log2(n) − 1) + P rounds, and twice as many if
    booleans are shuffled with other tensors.

    Args:
        x: a secret tensor of one dimension or more.
        others: secret tensors of the same size along ``dim``.
        dim: the dimension whose slices change places.

    Returns:
        The copy of ``x``. If there are others, a tuple of all copies, that of ``x`` first.

    Raises:
        MisuseError: an argument is not a secret tensor, sizes along that dimension differ, or
            gradients would have to pass.
    """
    tensors = (x, *others)
    if not all(isinstance(each, SecretTensor) for each in tensors):
        raise MisuseError(
            "shuffle() takes secret tensors, and the dimension by name: shuffle(x, y, dim=0)"
        )
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        raise MisuseError("gradients do not pass through shuffle(): shuffle x.detach()")
    if any(not -each.dim() <= dim < each.dim() for each in tensors):
        raise MisuseError(f"shuffle() along dimension {dim} of a tensor that has no such dimension")
    sizes, session = {each.shape[dim] for each in tensors}, x._session
    if len(sizes) > 1 or any(each._session is not session for each in tensors):
        raise MisuseError(
            "shuffle() takes tensors of one session that have the same size along the dimension"
        )
    kinds = [(each._number, each.shape, each.dtype, each._scale.bits) for each in tensors]
    session.core.note(repr(["tacit.shuffle", dim, kinds]).encode())
    shuffled = _shuffled(
        session, [tuple(part.movedim(dim, 0) for part in each._parts) for each in tensors]
    )
    found = tuple(
        each.like(
            tuple(part.movedim(0, dim) for part in parts), unreduced=each._unreduced
        ).numbered()
        for each, parts in zip(tensors, shuffled, strict=True)
    )
    return found if others else found[0]


def _shuffled(session: Session, tensors: list[Parts]) -> list[Parts]:
    """Returns the rows of each tensor in the same random order.

    Words and bits go through the network separately.
    """
    size = tensors[0][0].shape[0]
    switches = sum(low.numel() for low, _ in columns(size))
    kinds = {parts[0].dtype for parts in tensors}
    joined = {
        kind: _joined([parts for parts in tensors if parts[0].dtype == kind]) for kind in kinds
    }
    for party in range(session.parties):
        own = routed(_drawn(size)) if party == session.party else None
        bits = shares.share_bits(session, own, party, (switches,))
        for kind in sorted(joined, key=str):
            joined[kind] = _switched(session, joined[kind], bits)
    rows = {kind: iter(_taken_apart(joined[kind], tensors, kind)) for kind in kinds}
    return [next(rows[parts[0].dtype]) for parts in tensors]


def _joined(tensors: list[Parts]) -> Parts:
    """Returns all columns of several tensors as one tensor."""
    flat = [
        [part.reshape(part.shape[0], part.shape[1:].numel()) for part in parts] for parts in tensors
    ]
    return tuple(torch.cat(columns, 1) for columns in zip(*flat, strict=True))


def _taken_apart(joined: Parts, tensors: list[Parts], kind: torch.dtype) -> list[Parts]:
    shapes = [parts[0].shape for parts in tensors if parts[0].dtype == kind]
    widths = [shape[1:].numel() for shape in shapes]
    pieces = zip(*(torch.split(part, widths, 1) for part in joined), strict=True)
    return [
        tuple(part.reshape(shape) for part in piece)
        for piece, shape in zip(pieces, shapes, strict=True)
    ]


def _drawn(size: int) -> torch.Tensor:
    """Draws a permutation from the operating system's entropy, uniform up to 2^-128·n²."""
    keys = np.frombuffer(os.urandom(16 * size), np.uint64).reshape(2, size)
    return torch.from_numpy(np.lexsort(keys))


def _switched(session: Session, x: Parts, bits: Parts) -> Parts:
    """Returns the rows after they went through the network."""
    x = tuple(part.clone() for part in x)
    of_bits, at = x[0].dtype == torch.uint8, 0
    for low, high in columns(x[0].shape[0]):
        here = tuple(part[at : at + low.numel(), None].expand(-1, x[0].shape[1]) for part in bits)
        at += low.numel()
        left, right = (tuple(part.index_select(0, places) for part in x) for places in (low, high))
        if of_bits:
            change = shares.and_bits(session, here, shares.xor(left, right))
        else:
            change = shares.bit_multiply(session, here, shares.subtract(right, left))
        for part, one, other, moved in zip(x, left, right, change, strict=True):
            part.index_copy_(0, low, one ^ moved if of_bits else one + moved)
            part.index_copy_(0, high, other ^ moved if of_bits else other - moved)
    return x


@outside_trace
@lru_cache(maxsize=32)
def columns(size: int) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
    """Returns for each stage the pairs of places that a switch may exchange.

    They differ in one bit: the lowest in the first stage, up to the highest, and back.
    """
    width = (size - 1).bit_length() if size > 1 else 0
    found = []
    for bit in [*range(width), *reversed(range(width - 1))]:
        places = torch.arange(size)
        low = places[(places >> bit & 1 == 0) & (places + (1 << bit) < size)]
        found.append((low, low + (1 << bit)))
    return tuple(found)


def routed(target: torch.Tensor) -> torch.Tensor:
    """Returns the switches, stage after stage, that bring the element at i to ``target[i]``.

    A stage and its counterpart on the way back distribute elements to two networks of half the
    size, by one bit of their place. The two elements that meet in a switch, on either side, go to
    different networks: this is a colouring of cycles. In each cycle the greatest element keeps its
    bit. So every element that was added to fill up the network keeps its place throughout.
    """
    size = target.numel()
    width = (size - 1).bit_length() if size > 1 else 0
    places = torch.arange(1 << width)
    target = torch.cat([target, places[size:]])
    outward, back = [], []
    for bit in range(width):
        low = places[(places >> bit & 1 == 0) & (places + (1 << bit) < size)]
        if bit == width - 1:
            outward.append(target[low] >> bit & 1)
            break
        source = torch.empty_like(target)
        source[target] = places
        half = _halves(target, source, bit)
        outward.append(half[low])
        back.append(half[source[low]])
        moved = torch.empty_like(target)
        moved[_with_bit(places, bit, half)] = _with_bit(target, bit, half)
        target = moved
    stages = [*outward, *reversed(back)]
    return torch.cat(stages).to(torch.uint8) if stages else torch.empty(0, dtype=torch.uint8)


def _halves(target: torch.Tensor, source: torch.Tensor, bit: int) -> torch.Tensor:
    """Returns the half to which each element goes."""
    greatest = torch.arange(target.numel())
    # Two steps along the cycle: over the switch at the end, and over the switch at the beginning.
    jump = source[target ^ (1 << bit)] ^ (1 << bit)
    for _ in range((target.numel() >> bit).bit_length()):
        greatest = torch.maximum(greatest, greatest[jump])
        jump = jump[jump]
    mate = greatest[torch.arange(target.numel()) ^ (1 << bit)]
    return torch.where(greatest > mate, greatest >> bit & 1, 1 - (mate >> bit & 1))


def _with_bit(places: torch.Tensor, bit: int, value: torch.Tensor) -> torch.Tensor:
    return places & ~(1 << bit) | value << bit
