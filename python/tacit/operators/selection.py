"""Kernels that read, add and write at secret indices, by one-hot vectors, for ``indexing``.

An index becomes one bit for each of its possible values (``one_hot_bits``). Its low bits are
multiplied with each other in halves, so that a value takes one AND instead of a comparison. Another
bit says whether the index is in range. The bits are converted to ring elements and multiplied with
the table, which is exact. If an index is out of range, zeros are read and nothing is written:
PyTorch's error would reveal it.
"""

from typing import Any

import torch

from tacit import checks, fixed
from tacit.fixed import WHOLE
from tacit.operators.dispatch.operands import (
    as_words,
    bits_of,
    compared,
    lifted,
    lifted_bits,
    operand_scale,
    placed,
    public,
    session_of,
)
from tacit.operators.dispatch.table import unsupported
from tacit.operators.ordering import restored
from tacit.randomness import one_hot_bits
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Most elements of one-hot vectors, as ring elements, that are held at a time.
ENTRIES = 1 << 24


def one_hot(index: SecretTensor, classes: int) -> SecretTensor:
    """Returns booleans that say which of 0 to ``classes`` − 1 an index is.

    They are along a new last dimension. All are false for an index out of range. At most 6 rounds,
    those of decomposing the index into bits, and one round for each doubling of the number of bits.
    """
    return bits_of(index._session, positions(index, classes))


def positions(index: Any, size: int, *, wraps: bool = False) -> Parts:
    """Returns one-hot vectors of indices along a new last dimension, as components of bits.

    With ``wraps`` −1 is the last position, and so on down to −size.
    """
    if index.dtype == torch.bool or index.dtype.is_floating_point:
        unsupported(
            f"an index of dtype {index.dtype}", "index by integers; torch.where chooses by booleans"
        )
    session, words = index._session, as_words(index)._parts
    count = 2 * size if wraps else size
    words = shares.add(words, shares.trivial(session, torch.tensor(count - size)))
    # An index in range is not negative and less than the count. Both are tested, since for an index
    # far below zero the difference wraps around.
    ends = shares.trivial(session, torch.tensor([0, count]).reshape(2, *[1] * index.dim()))
    signs = shares.sign(session, shares.subtract(words, ends), compared(session, WHOLE))
    negative, less = shares.unstacked(signs)
    bits = shares.binary(session, words, max(1, (count - 1).bit_length()))
    hot = one_hot_bits.one_hot(session, bits, count, shares.complement(session, negative), less)
    return tuple(part[..., :size] ^ part[..., size:] for part in hot) if wraps else hot


def read(session: Session, hot: Parts, table: Any) -> Parts:
    """Returns those rows of tables that one-hot vectors select, as words.

    Tables are [batch, size, columns], one-hot vectors [batch, n, size]. The tables are components
    of a secret tensor, or public words. Public words need no interaction except for converting the
    vectors to ring elements. At most three rounds for every 2^24 elements of the vectors.
    """
    batch, count, size = hot[0].shape
    step = max(1, ENTRIES // max(1, batch * size))
    blocks = [
        _read(session, tuple(part[:, at : at + step] for part in hot), table)
        for at in range(0, max(1, count), step)
    ]
    return tuple(torch.cat(parts, 1) for parts in zip(*blocks, strict=True))


def _read(session: Session, hot: Parts, table: Any) -> Parts:
    chosen = shares.bit_to_ring(session, hot)
    if isinstance(table, torch.Tensor):
        return tuple(bilinear.ring_product(part, table) for part in chosen)
    return bilinear.matmul(session, chosen, table, 0)


def added(session: Session, table: Parts, hot: Parts, values: Parts) -> Parts:
    """Returns tables with values [batch, n, columns] added where one-hot vectors say.

    At most three rounds.
    """
    for operand in (table, values):
        checks.hold_summands(session, operand, hot[0].shape[1] + 1)
    chosen = tuple(part.mT for part in shares.bit_to_ring(session, hot))
    return shares.add(table, bilinear.matmul(session, chosen, values, 0))


def written(session: Session, table: Parts, hot: Parts, values: Parts) -> Parts:
    """Returns tables with values written where one-hot vectors say.

    If a place repeats, the last value counts. At most four rounds, and one for each of log2(n)
    levels that find the last.
    """
    chosen = tuple(part.mT for part in shares.bit_to_ring(session, _last(session, hot)))
    is_written = tuple(part.sum(-1, keepdim=True).expand(table[0].shape) for part in chosen)
    kept = shares.subtract(table, bilinear.multiply(session, is_written, table, 0))
    return shares.add(kept, bilinear.matmul(session, chosen, values, 0))


def _last(session: Session, hot: Parts) -> Parts:
    """Clears those one-hot vectors that a later one repeats."""
    size = hot[0].shape[1]
    # Whether any of the next vectors has this bit, for twice as many vectors in each pass.
    any_of, distance = hot, 1
    while distance < size:
        early, late = (
            tuple(part[:, rows] for part in any_of)
            for rows in (slice(-distance), slice(distance, None))
        )
        either = shares.xor(shares.xor(early, late), shares.and_bits(session, early, late))
        any_of = tuple(
            torch.cat([bit, part[:, -distance:]], 1)
            for bit, part in zip(either, any_of, strict=True)
        )
        distance *= 2
    if size < 2:
        return hot
    repeated = shares.and_bits(
        session, tuple(part[:, :-1] for part in hot), tuple(part[:, 1:] for part in any_of)
    )
    return tuple(
        torch.cat([part[:, :-1] ^ again, part[:, -1:]], 1)
        for part, again in zip(hot, repeated, strict=True)
    )


# Operands of reads and writes
# ----------------------------------------------------------------------------------


def table_of(x: Any, session: Session) -> Any:
    """Returns a table to be read, as components of words or as public words."""
    if isinstance(x, SecretTensor):
        return as_words(x)._parts if x.dtype == torch.bool else x._parts
    plain = public(x)
    return fixed.encode(plain, fixed.of_dtype(session.scale, plain.dtype))


def found(x: Any, session: Session, words: Parts) -> SecretTensor:
    """Returns words that were read from x as a secret tensor of its kind."""
    if not isinstance(x, SecretTensor):
        x = target(x.reshape(-1)[:0], session)
    return restored(x, words) if x.dtype == torch.bool else x.like(words, unreduced=x._unreduced)


def target(x: Any, session: Session, *, bounds: bool = False) -> SecretTensor:
    """Returns a tensor to be copied and written to, as a secret tensor.

    With ``bounds`` large public numbers count as infinite.
    """
    if isinstance(x, SecretTensor):
        return x
    if x.dtype == torch.bool:
        return bits_of(session, lifted_bits(session, x))
    scale = operand_scale(x, session.scale)
    words = placed(session, x, scale, scale) if bounds else lifted(session, x, scale)
    return SecretTensor(words, scale, session, x.dtype)


def session_of_all(*operands: Any) -> Session:
    """Returns the session of the secret operands, including those in lists."""
    flat = [
        each
        for operand in operands
        for each in (operand if isinstance(operand, list | tuple) else [operand])
    ]
    return session_of(*flat)
