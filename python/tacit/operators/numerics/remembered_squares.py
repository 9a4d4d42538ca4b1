"""Squares remember their numbers, so that roots of their means are computed from the numbers.

Models write root mean squares by hand, ``x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)``,
in many spellings. In fixed point the squares of small rows lose their bits, and so does the root of
their mean. So a square remembers its number. A sum or a mean of squares along dimensions remembers
its numbers, its divisor and the ε that was added. ``inverse_roots`` computes a root or an inverse
root from these. The root in turn remembers the inverse root with all of its bits, and products and
quotients take that. The values of the means themselves stay the same, and so do other results that
are computed from them.

In a backward pass, powers of inverse roots are deferred (``deferred_powers``).

All of this is kept with the storage of the result (``storage_cache``), and forgotten when that
storage, or that of the numbers, is written to. It follows from the program alone, so all parties do
the same, and a traced program computes the same results.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import torch

from tacit import fixed
from tacit.fixed import Scale
from tacit.modes import is_backward, tracers
from tacit.operators.dispatch.operands import (
    fraction,
    number,
    rescaled,
    result_dtype,
    shifted,
    times_public,
)
from tacit.operators.dispatch.table import on_write
from tacit.operators.numerics.approximation import reciprocal
from tacit.operators.numerics.averages import last, reduced
from tacit.operators.numerics.deferred_powers import Powers, place, powers_of
from tacit.operators.numerics.digits import Digit, digits, times_secret
from tacit.operators.numerics.digits import times_public as by_word
from tacit.operators.numerics.inverse_roots import InverseRoots, inverse_roots
from tacit.operators.numerics.remembered_softmax import is_whole, seen_as
from tacit.sessions import Session
from tacit.sharings import bilinear
from tacit.storage_cache import geometry
from tacit.tensor import SecretTensor

#: Keys under which the storage cache keeps facts about results; the last is for sums whose roots
#: have been computed.
_SQUARES, _SUMS_OF_SQUARES, _ROOTS, _SUMS_WITH_ROOTS = (
    "squares",
    "sums of squares",
    "roots of sums of squares",
    "rooted sums",
)

#: Largest divisor of sums of squares, and of roots. With a larger one, too few bits of the root
#: would be left.
_MOST = 2.0**20

#: Largest ratio of an addend to the root that it is added to. A larger one would leave too few bits
#: of 1 / (1 + more / root).
_MOST_TIMES = 2.0**11

#: Number of results of a kind that remember their numbers at a time, and keep these in memory. A
#: program takes roots of squares at once, but may keep means of many batches. Roots that gradients
#: pass through have their own limit, as many as a deep model has.
MOST, MOST_FOR_GRADIENTS = 32, 512

#: Scale of inverse roots as operands. They multiply numbers that may be as large as the root.
_FACTOR = fixed.FEWER


@dataclass(frozen=True)
class Sums:
    """A sum Σ x² / count + ε along dimensions."""

    x: SecretTensor
    dims: list[int]
    count: float = 1.0
    eps: float = 0.0

    def times(self, factor: float) -> "Sums | None":
        """Multiplies the sum by a public number; ``None`` unless that is positive and finite."""
        if not 0.0 < factor < math.inf:
            return None
        return replace(self, count=self.count / factor, eps=self.eps * factor)

    def roots(self) -> InverseRoots | None:
        """Computes the inverse root of each row; ``None`` if the divisor is out of range."""
        if not 1.0 <= self.count <= _MOST:
            return None
        return inverse_roots(_rows(rescaled(self.x, self._scale), self.dims), self.eps, self.count)

    @property
    def greatest(self) -> float:
        """Upper bound of the inverse root: that of the least sum, which is four units or ε."""
        most = 0.5 * math.sqrt(self.count) / self._scale.unit
        return min(most, 1.0 / math.sqrt(self.eps)) if self.eps else most

    @property
    def _scale(self) -> Scale:
        """Scale of the numbers when they are squared. Roots have no more bits than these."""
        return Scale(min(max(self.x._scale.bits, self.x._session.scale.bits), _FACTOR.bits))


@dataclass(frozen=True)
class Roots:
    """A multiple factor · r of an inverse root, or factor / r + more of a root.

    ``inverse`` is r = 1 / √sums, (rows, 1), with all of its bits."""

    sums: Sums
    inverse: SecretTensor
    is_inverse: bool
    factor: float = 1.0
    #: Number that was added to a root.
    more: float = 0.0

    def seen_as(self, y: SecretTensor) -> SecretTensor:
        """Returns the factor that corresponds to y, element by element.

        It is an inverse root itself, or the inverse of a root to which nothing was added."""
        factor = self.factor if self.is_inverse else 1.0 / self.factor
        # The power of two is taken out of the factor before bits are dropped.
        shift = max(-_FACTOR.bits, math.ceil(math.log2(abs(factor))))
        inverse = rescaled(self.inverse.beside(y._session), Scale(_FACTOR.bits + shift))
        found = _times(inverse.like(inverse._parts, _FACTOR), factor * 2.0**-shift)
        return seen_as(found, y)

    def divisor(self, session: Session) -> list[Digit]:
        """Returns the inverse of the root, in digits: products by it divide by the root."""
        inverse, first = self.inverse.beside(session), session.scale.bits
        parts, bits = inverse._parts, inverse._scale.bits
        # A power of two moves the binary point; the rest is from 1/2 to 1.
        shift = math.ceil(math.log2(1.0 / abs(self.factor)))
        rest = 2.0**-shift / self.factor
        if self.more:
            # 1 / (factor · root + more)
            with session.using(scale=_FACTOR):
                raised = _times(rescaled(inverse, _FACTOR), self.more / self.factor) + 1.0
                weight = _times(reciprocal(raised, positive=True), rest)
            parts, bits = times_secret(session, weight._parts, digits(session, parts, bits, first))
            bits += _FACTOR.bits
        elif rest != 1.0:
            word = fixed.word(rest, _FACTOR.bits)
            parts, bits = by_word(session, word, digits(session, parts, bits, first))
            bits += _FACTOR.bits
        return digits(session, parts, bits - shift, first)

    @property
    def is_plain(self) -> bool:
        """Whether this is a root or an inverse root itself, neither multiplied nor added to."""
        return self.factor == 1.0 and not self.more

    @property
    def least(self) -> float:
        """Lower bound of the root of numbers that are not all 0."""
        if self.factor < 0.0:
            return -math.inf
        return (
            0.0
            if self.is_inverse
            else self.factor * self.sums.x._scale.unit / math.sqrt(self.sums.count)
        )


# Facts that are remembered
# --------------------------------------------------------------------------------------


def _remember(
    kind: str, result: SecretTensor, known: Any, x: SecretTensor, *, for_gradients: bool = False
) -> SecretTensor:
    y, session = result._parts[0], result._session
    if known is None or not y.numel() or not is_whole(y) or not result.dtype.is_floating_point:
        return result
    kept = session.storages.keep_with_storage((kind, *tracers()), y, known, of=x._parts[:1])
    latest = session.remembered[kind, for_gradients]
    latest.append((kept, ref(known)))
    # What is forgotten must follow from the program alone: parties free memory at different times.
    if len(latest) > (MOST_FOR_GRADIENTS if for_gradients else MOST):
        kept, oldest = latest.popleft()
        if (found := oldest()) is not None:
            session.storages.evict(kept, found)
    return result


def _remember_root(result: SecretTensor, roots: "Roots", x: SecretTensor) -> SecretTensor:
    """Makes a result remember its root, for x that is squares, sums of squares or a root."""
    return _remember(_ROOTS, result, roots, roots.sums.x, for_gradients=x.requires_grad)


def _known(kind: str, y: Any) -> Any:
    """Returns the remembered fact about the base of the view y."""
    if not isinstance(y, SecretTensor) or not y.dtype.is_floating_point or not y.is_computed:
        return None
    return y._session.storages.kept_with_storage((kind, *tracers()), y._parts[0])


def _known_wholly(kind: str, y: Any) -> Any:
    """Returns the remembered fact about y, if y is its whole storage, in order."""
    return None if (known := _known(kind, y)) is None or not is_whole(y._parts[0]) else known


def is_remembered(y: Any) -> bool:
    """Whether y is remembered as sums of squares or roots of such, with the exact ε."""
    return _known_wholly(_SUMS_OF_SQUARES, y) is not None or _known_wholly(_ROOTS, y) is not None


def remember_squares(result: SecretTensor, x: Any) -> SecretTensor:
    """Makes the squares of x remember x."""
    if not isinstance(x, SecretTensor) or not x.dtype.is_floating_point:
        return result
    return _remember(_SQUARES, result, x.like(x._parts), x)


def remember_sums(
    result: SecretTensor, y: Any, dims: Sequence[int], count: float = 1.0
) -> SecretTensor:
    """Makes sums of y along dimensions, divided by ``count``, remember x if y is x²."""
    if not dims or (x := _known(_SQUARES, y)) is None:
        return result
    # A copy in another order of elements would not be recognised later.
    seen = x if x.shape == y.shape and is_whole(y._parts[0]) else seen_as(x, y)
    return remember_sums_of_squares(result, seen, dims, count)


def remember_sums_of_squares(
    result: SecretTensor, x: SecretTensor, dims: Sequence[int], count: float
) -> SecretTensor:
    """Makes sums of x² along dimensions, divided by ``count``, remember x until x is written to.

    The sums keep x in memory. Otherwise each party might free it at a different moment."""
    return _remember(_SUMS_OF_SQUARES, result, Sums(x, list(dims), count), x)


def remember_sum(result: SecretTensor, x: Any, y: Any) -> SecretTensor:
    """Makes x + y remember its numbers, if one is sums of squares or a root and the other an ε."""
    for one, other in ((x, y), (y, x)):
        eps = None if isinstance(other, SecretTensor) else number(other)
        if eps is None or not 0.0 <= eps < math.inf or result.shape != one.shape:
            continue
        if (sums := _known_wholly(_SUMS_OF_SQUARES, one)) is not None:
            return _remember(_SUMS_OF_SQUARES, result, replace(sums, eps=sums.eps + eps), sums.x)
        roots = _known_wholly(_ROOTS, one)
        if roots is not None and not roots.is_inverse and roots.factor > 0.0:
            more = roots.more + eps
            if more > _MOST_TIMES * roots.factor / roots.sums.greatest:
                return result
            return _remember_root(result, replace(roots, more=more), one)
    return result


def remember_clamped(result: SecretTensor, x: Any, low: Any) -> SecretTensor:
    """Makes a root x that was clamped from below remember its numbers.

    The bound must be below all roots of numbers that are not all 0. If they are all 0, products are
    0 anyway. A bound of more than one unit does not count: other numbers are divided by it where x
    is clamped."""
    roots, bound = _known_wholly(_ROOTS, x), number(low)
    if roots is None or bound is None or result.shape != x.shape:
        return result
    if bound <= min(roots.least, result._scale.unit):
        return _remember_root(result, roots, x)
    return result


def remember_multiple(
    result: SecretTensor, x: Any, factor: Any, *, divided: bool = False
) -> SecretTensor:
    """Makes x times or divided by a public number remember x, for sums of squares or roots x."""
    by = number(factor)
    if not by or result.shape != x.shape:
        return result
    by = 1.0 / by if divided else by
    if (sums := _known_wholly(_SUMS_OF_SQUARES, x)) is not None:
        return _remember(_SUMS_OF_SQUARES, result, sums.times(by), sums.x)
    if (roots := _known_wholly(_ROOTS, x)) is not None and 1 / _MOST <= abs(
        roots.factor * by
    ) <= _MOST:
        changed = replace(roots, factor=roots.factor * by, more=roots.more * by)
        return _remember_root(result, changed, x)
    return result


@on_write
def carry(target: SecretTensor, value: Any) -> None:
    """Makes a target remember the facts about the value that was written into it."""
    for kind in (_SUMS_OF_SQUARES, _ROOTS):
        if (known := _known_wholly(kind, value)) is not None and value.shape == target.shape:
            _remember(kind, target, known, known.x if kind == _SUMS_OF_SQUARES else known.sums.x)


# Roots, products and quotients
# ----------------------------------------------------------------------------


def root(x: Any) -> SecretTensor | None:
    """Returns √x for sums of squares; ``None`` for other tensors."""
    return _root(x, is_inverse=False)


def inverse_root(x: Any, scale: Scale) -> SecretTensor | None:
    """Returns 1 / √x at the given scale for sums of squares; ``None`` for other tensors."""
    return _root(x, is_inverse=True, scale=scale)


def _root(x: Any, *, is_inverse: bool, scale: Scale | None = None) -> SecretTensor | None:
    sums = _known_wholly(_SUMS_OF_SQUARES, x)
    if sums is None or (found := replace(sums, x=sums.x.beside(x._session)).roots()) is None:
        return None
    values = rescaled(found.found, scale) if scale else found.roots()
    result = x.like(tuple(part.reshape(x.shape) for part in values._parts), values._scale)
    if x.requires_grad:
        _remember(
            _SUMS_WITH_ROOTS,
            x,
            Roots(sums, found.found, is_inverse=True),
            sums.x,
            for_gradients=True,
        )
    return _remember_root(result, Roots(sums, found.found, is_inverse), x)


def norm(x: SecretTensor, dims: Sequence[int], keepdim: bool, count: float = 1.0) -> SecretTensor:
    """Returns √(Σ x² / count) along dimensions; see ``inverse_roots``."""
    sums, shape = Sums(x, list(dims), count), reduced(x.shape, dims, keepdim)
    if not x.numel():
        return x.like(tuple(part.new_zeros(shape) for part in x._parts), x._session.scale)
    found = inverse_roots(_rows(x, dims), 0.0, count)
    root = found.roots()
    result = root.like(tuple(part.reshape(shape) for part in root._parts))
    return _remember_root(result, Roots(sums, found.found, is_inverse=False), x)


def inverse(y: Any) -> SecretTensor | None:
    """Returns 1 / y for a root y of sums of squares, which remembers that it is an inverse root.

    Returns ``None`` for other tensors."""
    roots = _known_wholly(_ROOTS, y)
    if roots is None or roots.is_inverse or roots.more:
        return None
    found = rescaled(roots.seen_as(y), y._session.scale)
    return _remember_root(found, replace(roots, is_inverse=True, factor=1.0 / roots.factor), y)


def product(x: Any, y: Any) -> SecretTensor | None:
    """Returns x·y if one is an inverse root, of which it takes all bits, and the other is not.

    Returns ``None`` for other tensors."""
    for one, other in ((x, y), (y, x)):
        if (powers := powers_of(one)) is not None:
            return powers.times(one, other)
    for one, other in ((x, y), (y, x)):
        roots = _known(_ROOTS, one)
        if roots is not None and roots.is_inverse and isinstance(other, SecretTensor):
            if x is y and is_backward():
                return _left(one, 2, roots)
            return None if _known(_ROOTS, other) is not None else _by_inverse(other, one, roots)
    return None


def quotient(x: Any, y: Any) -> SecretTensor | None:
    """Returns x / y for a root y of sums of squares; ``None`` for other tensors."""
    roots = _known(_ROOTS, y)
    if roots is None or roots.is_inverse or not isinstance(x, SecretTensor):
        return None
    powers = powers_of(x)
    if is_backward() and x.shape == y.shape and x.dtype == y.dtype and not roots.more:
        if powers is None:
            return _left(y, 1, roots, x)
        if powers.is_beside(y, roots.inverse):
            return powers.scaled(1.0 / roots.factor, x.shape, powers.power + 1)
    return _by_inverse(x, y, roots)


def power(y: Any, exponent: Any) -> SecretTensor | None:
    """Defers y^n in a backward pass, if y is an inverse root or sums whose root was computed.

    Returns ``None`` otherwise."""
    if not is_backward():
        return None
    if (roots := _known_wholly(_ROOTS, y)) is not None and roots.is_inverse and exponent in (2, 3):
        return _left(y, int(exponent), roots)
    if (roots := _known_wholly(_SUMS_WITH_ROOTS, y)) is not None and exponent in (-0.5, -1.5):
        return _left(y, round(-2 * exponent), roots)
    return None


def _by_inverse(x: Any, y: SecretTensor, roots: Roots) -> SecretTensor:
    """Multiplies x by the inverse root y, or divides it by the root y."""
    if roots.is_plain and _is_of(x, y, roots):
        return _by_rows(x, roots)
    if roots.is_inverse or (powers_of(x) is not None and not roots.more):
        found: SecretTensor = x * roots.seen_as(y)
        return found
    return _divided(x, y, roots)


def _divided(x: SecretTensor, y: SecretTensor, roots: Roots) -> SecretTensor:
    """Returns x / y for a root y.

    Domain: x, y and quotients below 2^30. Error: 2^−12 relative and two units."""
    session, dtype = x._session, result_dtype(x, y)
    x = fraction(x)
    x = x if x._scale.bits <= _FACTOR.bits else rescaled(x, _FACTOR)
    seen = [
        Digit(seen_as(y.like(digit.parts, session.scale), y)._parts, digit.bits)
        for digit in roots.divisor(session)
    ]
    parts, bits = times_secret(session, x._parts, seen)
    parts = shifted(session, parts, x._scale.bits + bits, session.scale.bits)
    return x.like(parts, session.scale, dtype)


def _is_of(x: SecretTensor, y: SecretTensor, roots: Roots) -> bool:
    """Whether each number of x is combined with the root of its own row."""
    sums = roots.sums
    if geometry(x._parts[0]) != geometry(sums.x._parts[0]):
        return False
    strides = torch.empty(reduced(x.shape, sums.dims, True), device="meta").expand(x.shape).stride()
    part = y._parts[0]
    if part.storage_offset() or torch.broadcast_shapes(part.shape, x.shape) != x.shape:  # type: ignore[no-untyped-call]
        return False
    mine = part.expand(x.shape).stride()
    return all(a == b for a, b, size in zip(mine, strides, x.shape, strict=True) if size > 1)


def _by_rows(x: SecretTensor, roots: Roots) -> SecretTensor:
    """Multiplies x by the inverse roots of its own rows, with all of their bits.

    The products are at most √count."""
    session, dims = x._session, roots.sums.dims
    rows, by = _rows(x, dims), roots.inverse
    drop, scale = fixed.of_product(x._scale, by._scale, session.scale)
    # A matrix product masks each inverse root once.
    parts = bilinear.matmul(
        session,
        tuple(part.unsqueeze(2) for part in rows._parts),
        tuple(part.unsqueeze(2) for part in by._parts),
        drop,
    )
    shape = [*reduced(x.shape, dims, False), *(x.shape[dim] for dim in dims)]
    back = tuple(range(-len(dims), 0))
    return x.like(tuple(part.reshape(shape).movedim(back, tuple(dims)) for part in parts), scale)


def _rows(x: SecretTensor, dims: Sequence[int]) -> SecretTensor:
    count = math.prod(x.shape[dim] for dim in dims)
    return x.like(tuple(last(part, dims).reshape(-1, count) for part in x._parts))


def _times(x: SecretTensor, factor: float) -> SecretTensor:
    """Multiplies x by a public number, at the scale of x."""
    if factor == 1.0:
        return x
    with x._session.using(scale=x._scale):
        return times_public(x, torch.tensor(factor, dtype=torch.float64), x.dtype)


# Backward passes
# ----------------------------------------------------------------------------


def _left(
    y: SecretTensor, power: int, roots: Roots, weight: SecretTensor | None = None
) -> SecretTensor:
    """Defers a power of the inverse root that is, or corresponds to, y, times a weight if given."""
    factor = roots.factor if roots.is_inverse else 1.0 / roots.factor
    inverse = rescaled(roots.inverse.beside(y._session), _FACTOR)
    seen = seen_as(inverse, y)
    seen = seen.like(seen._parts, dtype=y.dtype)
    of = roots.inverse, place(y)
    later = Powers(seen, power, factor**power, None, y._session.scale, y.shape, of)
    if weight is not None:
        return later.weighted(weight, y.shape)
    return later.scaled(1.0, y.shape)
