"""Reductions of values that have the same secret index (``scatter_reduce``).

Each of n values is placed next to each element, by one-hot vectors [batch, n, size]. A selection
takes either the value or a neutral number.

Sums take no more than adding. Means divide by the number of values, in secret. Products are a tree
of log2(n) levels. So are maxima and minima, whose neutral number is the opposite extremum of all
values: they take the rounds of two tournaments.
"""

from collections.abc import Callable

import torch

from tacit.fixed import WHOLE
from tacit.operators.dispatch.operands import rescaled
from tacit.operators.dispatch.table import unsupported
from tacit.operators.extremum import greatest
from tacit.operators.numerics.approximation import divide
from tacit.operators.numerics.compare_words import greater, of_difference, opposite
from tacit.operators.prod import product
from tacit.operators.selection import added
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Changes tables [batch, size, columns] by one-hot vectors and values [batch, n, columns].
Change = Callable[[Session, Parts, Parts, Parts], Parts]


def reducer(x: SecretTensor, reduce: str, include_self: bool) -> Change:
    """Returns the function that reduces values into tables of numbers like x.

    With ``include_self`` the numbers in the tables are reduced too.
    """
    if reduce == "sum" and include_self:
        return added
    if reduce == "mean" and not x.dtype.is_floating_point:
        unsupported("means of integers at indices", "convert them to floats")

    def change(session: Session, table: Parts, hot: Parts, values: Parts) -> Parts:
        if not hot[0].numel():
            return table
        reduced = _reduced(x, reduce, include_self, table, hot, values)
        has_value = tuple(
            bit.unsqueeze(-1).expand(table[0].shape) for bit in _has_value(session, hot)
        )
        return shares.select(session, has_value, reduced, table)

    return change


def _has_value(session: Session, hot: Parts) -> Parts:
    """Returns bits that say whether any value has the index of an element."""
    counts = tuple(part.sum(1) for part in shares.bit_to_ring(session, hot))
    none = shares.equal_zero(session, counts, hot[0].shape[1].bit_length() + 1)
    return shares.complement(session, none)


def _reduced(
    x: SecretTensor, reduce: str, include_self: bool, table: Parts, hot: Parts, values: Parts
) -> Parts:
    """Returns the reduction of the values at each element that has any."""
    session = x._session
    if reduce in ("sum", "mean"):
        chosen = tuple(part.mT for part in shares.bit_to_ring(session, hot))
        sums = bilinear.matmul(session, chosen, values, 0)
        sums = shares.add(sums, table) if include_self else sums
        if reduce == "sum":
            return sums
        counts = tuple(part.sum(-1, keepdim=True) for part in chosen)
        if include_self:
            counts = shares.add(counts, shares.trivial(session, torch.tensor(1)))
        mean = divide(x.like(sums), x.like(counts, WHOLE, torch.int64), bounded=True)
        return rescaled(mean, x._scale)._parts
    if reduce == "prod":
        unit = shares.trivial(session, torch.tensor(1 << x._scale.bits))
        beside = _beside(session, hot, values, tuple(part.expand(values[0].shape) for part in unit))
        if include_self:
            beside = tuple(
                torch.cat([own.unsqueeze(1), part], 1)
                for own, part in zip(table, beside, strict=True)
            )
        return rescaled(
            product(x.like(tuple(part.movedim(1, 0) for part in beside))), x._scale
        )._parts
    if reduce not in ("amax", "amin"):
        unsupported(f"the reduction {reduce!r}", "use sum, mean, prod, amax or amin")
    return _extremum(x, reduce == "amin", include_self, table, hot, values)


def _beside(session: Session, hot: Parts, values: Parts, otherwise: Parts) -> Parts:
    """Returns [batch, n, size, columns]: a value at the element of its index, else another."""
    shape = (*hot[0].shape, values[0].shape[-1])
    bits = tuple(bit.unsqueeze(-1).expand(shape) for bit in hot)
    value, other = (
        tuple(part.unsqueeze(2).expand(shape) for part in each) for each in (values, otherwise)
    )
    return shares.select(session, bits, value, other)


def _extremum(
    x: SecretTensor, is_least: bool, include_self: bool, table: Parts, hot: Parts, values: Parts
) -> Parts:
    session, comparison = x._session, of_difference(x._session, x._scale, x)
    if is_least:
        table, values = opposite(session, table), opposite(session, values)
    last = tuple(part.movedim(1, -1) for part in values)
    least = opposite(session, greatest(session, opposite(session, last), comparison))
    beside = _beside(
        session, hot, values, tuple(part.unsqueeze(1).expand(values[0].shape) for part in least)
    )
    reduced = greatest(session, tuple(part.movedim(1, -1) for part in beside), comparison)
    if include_self:
        reduced = greater(session, reduced, table, comparison)
    return opposite(session, reduced) if is_least else reduced
