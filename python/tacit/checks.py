"""Checked mode: the parties check in secret that no computation on shares overflowed.

Words hold integers from −2^63 to 2^63. A sum or a product that needs more bits silently wraps
around to another number. In checked mode each operator therefore leaves a *claim*. A claim lists
the products that the operator computed, with their operands. It also lists *holds*: tensors whose
numbers must have at most a given number of bits, for sums, shifts, comparisons of fewer bits and
products by public numbers. A claim has a flag (``flags``), on which the operator's results depend.
Claims are settled together, by ``_core.Session.settle``, when something is opened. Until then
nothing is sent for them. They are settled earlier if many are pending.

Operators make no claims for computations within proved bounds, such as the series of a function
(``proved``). They hold the arguments to the function's domain instead.

The *limit* of a tensor is public (``Claims.limit``). It follows from how the tensor was computed.
For example, shared fractions are encoded in few bits, and truncated numbers have few. Tensors whose
limit is low enough are not held.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tacit import _core, fixed
from tacit.buffers import array
from tacit.errors import MisuseError, printable
from tacit.flags import Dependencies, is_all_of_its_storage
from tacit.modes import is_tracing
from tacit.storage_cache import Geometry, Storages, geometry

Parts = tuple[torch.Tensor, ...]

#: Elements that may wait for their checks. If more wait when an operator of the program begins,
#: the claims are settled first.
MOST_WAITING = 1 << 25

#: Claims that may wait, likewise.
MOST_CLAIMS = 1024

#: Bits of numbers that any operator may use: the default hold. Numbers below 2^60 always pass it;
#: two of them can be added, and each can be truncated.
WORD = 60

#: Magnitudes of numbers to be truncated are below 2^TRUNCATED.
TRUNCATED = 62

#: Limit of numbers of which nothing is known.
UNKNOWN = 1 << fixed.WORD


class Checked(Protocol):
    """The part of a session that checks use."""

    core: _core.Session
    parties: int
    protocol: str
    claims: "Claims"
    numerics: fixed.Numerics

    def using(self, **settings: Any) -> AbstractContextManager[None]:
        """Makes the session compute under the given settings inside the ``with`` block."""

    def operator_label(self) -> str:
        """Names the current operator, its module and its source line."""


class Claim:
    """One operator's claim: its products, and the bits of its numbers, to be checked later."""

    def __init__(self, flag: _core.Flag) -> None:
        self.flag = flag
        self.products: list[Any] = []
        #: The width to which each tensor is held, by the tensor's place.
        self.holds: dict[int, int] = {}
        #: The width of each exact hold, by the tensor's place.
        self.exact: dict[int, int] = {}
        self.is_settled = False


class Waiting(NamedTuple):
    """A tensor that claims refer to, with the contents that it had when they were made."""

    parts: tuple[torch.Tensor, ...]
    versions: tuple[int | None, ...]
    #: The cache of its residues, if it is a lasting tensor that is multiplied repeatedly.
    residues: _core.Residues | None


class Claims:
    """One party's pending claims."""

    def __init__(self, core: _core.Session, dependencies: Dependencies, storages: Storages) -> None:
        self._core = core
        self._dependencies = dependencies
        self._storages = storages
        #: Limits of the numbers in a storage, by its address.
        self._limits: dict[int, tuple[StorageWeakRef, int]] = {}
        #: Number of entries in ``_limits`` above which entries of freed storages are dropped.
        self._cleanup_threshold = 0
        self._forget()

    def _forget(self) -> None:
        self._claims: list[Claim] = []
        self._waiting: list[Waiting] = []
        self._places: dict[Geometry, int] = {}
        self._elements = 0

    @property
    def is_much(self) -> bool:
        """Whether so many checks are pending that they should be settled soon."""
        return self._elements > MOST_WAITING or len(self._claims) >= MOST_CLAIMS

    def now(self, label: Callable[[], str]) -> Claim:
        """Returns the current operator's claim, and makes its results depend on the claim."""
        running = self._dependencies.current
        if running is not None and running.claim is not None and not running.claim.is_settled:
            return running.claim
        claim = Claim(_core.Flag.promised(label()))
        self._claims.append(claim)
        self._dependencies.add(claim.flag)
        if running is not None:
            running.claim = claim
        return claim

    def place(self, parts: Parts, residues: _core.Residues | None = None) -> int:
        """Returns the tensor's place among the tensors that claims refer to; adds it if new.

        Args:
            residues: those of the tensor, if they are known.
        """
        key = geometry(parts[0])
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = len(self._waiting)
            residues = residues or self._residues(parts[0])
            self._waiting.append(Waiting(tuple(parts), tuple(map(_version, parts)), residues))
            self._elements += parts[0].numel()
        return found

    def keep_residues(self, tensor: torch.Tensor, residues: _core.Residues) -> None:
        """Keeps the residues of a tensor, in the order of its storage, until it is written to or
        freed."""
        with self._dependencies.running(None):
            self._storages.keep_with_storage(_core.Residues, tensor, residues, of=())

    def _residues(self, tensor: torch.Tensor) -> _core.Residues | None:
        """Returns the residues that are kept of a tensor, or the cache for those of a lasting one.

        They are kept until the tensor is written to or freed. Only tensors that fill their storage
        have any, because a storage may have many views.
        """
        if tensor.nbytes != tensor.untyped_storage().nbytes():
            return None
        found: _core.Residues | None = None
        if tensor.is_contiguous():
            found = self._storages.kept_with_storage(_core.Residues, tensor)
        if found is not None or self._storages.name(tensor) is None:
            return found
        found = self._storages.derived(_core.Residues, [tensor])
        if found is None:
            found = _core.Residues()
            # The residues do not depend on the operand that the tensor is multiplied by now. A
            # product with the tensor depends on the tensor's flags anyway, and holds the tensor
            # again if these flags do not bound its bits.
            with self._dependencies.running(None):
                self._storages.derive(_core.Residues, [tensor], found)
        return found

    def limit(self, parts: Parts) -> int:
        """Returns a number that all magnitudes are below if the claims that they depend on hold."""
        found = self._limits.get(parts[0].untyped_storage()._cdata) if self._limits else None
        return UNKNOWN if found is None else found[1]

    def limited(self, parts: Parts, limit: int) -> None:
        """Records the limit of numbers that have just been computed."""
        if limit < UNKNOWN and not is_all_of_its_storage(parts[0]):
            # The storage has other numbers too.
            limit = max(limit, self.limit(parts))
        if limit >= UNKNOWN:
            return
        if len(self._limits) > self._cleanup_threshold:
            for at, (reference, _) in list(self._limits.items()):
                if reference.expired():  # type: ignore[no-untyped-call]
                    self._limits.pop(at, None)
            self._cleanup_threshold = 2 * len(self._limits) + 64
        # While this reference exists, no other storage gets the same address.
        reference = StorageWeakRef(parts[0].untyped_storage())  # type: ignore[no-untyped-call]
        self._limits[reference.cdata] = reference, limit

    def written(self, parts: Parts) -> None:
        """Copies the contents that pending claims refer to before a write to their storage."""
        storage = parts[0].untyped_storage()._cdata
        self._limits.pop(storage, None)
        if not self._waiting:
            return
        for key in [key for key in self._places if key[0] == storage]:
            place = self._places.pop(key)
            copies = tuple(part.clone() for part in self._waiting[place].parts)
            versions = tuple(map(_version, copies))
            self._waiting[place] = Waiting(copies, versions, self._waiting[place].residues)

    def settle(self) -> None:
        """Computes, in secret, whether each pending claim holds, and stores the bits in the flags.

        If an error ends this, no value that depends on these claims is ever opened, and an attempt
        to open one reports the error. Settling cannot be repeated, because the other parties may
        have stopped at another step.
        """
        if not self._claims:
            return
        claims, waiting = self._claims, self._waiting
        self._forget()
        for claim in claims:
            claim.is_settled = True
        try:
            self._settle(claims, waiting)
        except BaseException as error:
            for claim in claims:
                claim.flag.abandon(f"{type(error).__name__}: {printable(error)}")
            raise

    def _settle(self, claims: Sequence[Claim], waiting: Sequence[Waiting]) -> None:
        for each in waiting:
            assert each.versions == tuple(map(_version, each.parts)), (
                "a tensor was written to unseen"
            )
        tensors = [(list(map(array, each.parts)), each.residues) for each in waiting]
        before = self._core.set_label("checks")
        try:
            self._core.settle(
                tensors,
                [
                    (
                        claim.flag,
                        claim.products,
                        list(claim.holds.items()),
                        list(claim.exact.items()),
                    )
                    for claim in claims
                ],
            )
        finally:
            self._core.set_label(before)


def _version(part: torch.Tensor) -> int | None:
    return None if part.is_inference() else part._version


def is_on(session: Checked) -> bool:
    """Returns whether the computations that follow are to be checked."""
    return keeps(session) and not session.numerics.is_dry


def keeps(session: Checked) -> bool:
    """Returns whether truncations keep what their checks need: as :func:`is_on`, and in a dry run
    as well, which finds the same correlations."""
    return session.numerics.is_checked and not session.numerics.is_proved and not is_tracing()


def proved(session: Checked) -> AbstractContextManager[None]:
    """Checks only promised widths inside the ``with`` block.

    The caller has proved that all other values stay in range.
    """
    return session.using(is_proved=True)


def dry(session: Checked) -> AbstractContextManager[None]:
    """Checks nothing inside the ``with`` block, which computes shapes and no values."""
    return session.using(is_dry=True)


def hold(session: Checked, parts: Parts, bits: float) -> None:
    """Claims that numbers have at most ``bits`` bits without their sign.

    Magnitudes below 2^bits pass. Magnitudes from 3·2^bits on do not. Those in between may do
    either.
    """
    if is_on(session) and parts[0].numel():
        _hold(session, parts, bits)


def hold_operand(session: Checked, parts: Parts) -> None:
    """Claims that two such numbers can be added and compared, and that their product is checked.

    All numbers below 2^TRUNCATED can, so those with such a limit are not held.
    """
    if is_on(session) and session.claims.limit(parts) > 1 << TRUNCATED:
        hold(session, parts, WORD)


def hold_result(session: Checked, out: Parts, bits: int) -> None:
    """Holds the results of the current operator, as ``hold`` does.

    They depend on this claim, so the bound that they must pass is recorded with them.
    """
    hold(session, out, bits)
    if is_on(session) and out[0].numel():
        limit = 3 << min(bits, WORD)
        session.claims.limited(out, min(limit, session.claims.limit(out)))


def hold_promised(session: Checked, parts: Parts, width: int) -> None:
    """Claims that a comparison in ``width`` bits, as promised by the user, is right for numbers."""
    numerics = session.numerics
    if numerics.is_checked and not numerics.is_dry and not is_tracing() and parts[0].numel():
        _hold(session, parts, width - 3)


def _hold_compared(session: Checked, parts: Parts, width: int, truncate: int) -> None:
    """Claims that a comparison that ran together with a truncation was right.

    The comparison looks at the number before its truncation. If that number overflows the word, the
    truncated result may still be right by chance, but the sign is that of another number.
    """
    if isinstance(width, fixed.Promised):
        hold_promised(session, parts, width)
    if width + truncate > fixed.WORD:
        hold(session, parts, WORD + 1 - truncate)


def hold_exactly(session: Checked, parts: Parts, bits: int) -> None:
    """Claims that exactly −2^bits ≤ x < 2^bits; takes comparisons, so it is for few numbers."""
    if is_on(session) and parts[0].numel():
        claim, place = session.claims.now(session.operator_label), session.claims.place(parts)
        claim.exact[place] = bits + 2


def _hold(session: Checked, parts: Parts, bits: float) -> None:
    # The hold would pass all of these numbers.
    if session.claims.limit(parts) <= 3 << int(bits):
        return
    width = max(4, min(int(bits), WORD) + 3)
    claim = session.claims.now(session.operator_label)
    place = session.claims.place(tuple(map(_without_repetitions, parts)))
    claim.holds[place] = min(width, claim.holds.get(place, width))


def _without_repetitions(part: torch.Tensor) -> torch.Tensor:
    """Returns a view that has the elements of an expanded tensor once."""
    for dim, (stride, size) in enumerate(zip(part.stride(), part.shape, strict=True)):
        if stride == 0 and size > 1:
            part = part.narrow(dim, 0, 1)
    return part


def hold_summands(session: Checked, parts: Parts, count: int) -> None:
    """Claims that sums of ``count`` of the numbers fit a word."""
    if count > 1:
        hold(session, parts, WORD + 1 - math.ceil(math.log2(count)))


def hold_factors(session: Checked, parts: Parts, growth: torch.Tensor) -> None:
    """Claims that numbers can be truncated after they have grown by the given factors.

    Args:
        growth: largest factor by which each number, or all of them, grow.
    """
    # A hold may pass numbers up to three times as large as its limit.
    bits = torch.floor(TRUNCATED - torch.log2(3.0 * growth.clamp(min=1.0)))
    lowest, highest = (int(bound) for bound in bits.aminmax())
    if lowest == highest or session.claims.limit(parts) <= 3 << lowest:
        hold(session, parts, lowest)
        return
    bits = bits.expand(parts[0].shape)
    for level in range(lowest, highest + 1):
        which = bits == level
        hold(session, tuple(part[which] for part in parts), level)


def hold_truncated(session: Checked, parts: Parts, out: Callable[[], Parts], bits: int) -> Parts:
    """Returns ``out()``, which truncates numbers by ``bits`` bits, and claims that it may do so.

    The operands are held to the range of truncation, and the results get the bound that follows.
    """
    if not is_on(session):
        return out()
    limit = session.claims.limit(parts)
    if limit > 1 << TRUNCATED:
        hold(session, parts, WORD)
        limit = 1 << TRUNCATED
    found = out()
    session.claims.limited(found, _truncated(limit, bits))
    return found


def known(session: Checked, parts: Parts, bits: int) -> None:
    """Records that numbers that have just been computed are below 2^bits without any claim."""
    if is_on(session) and parts[0].numel():
        session.claims.limited(parts, 1 << bits)


def inherit(session: Checked, out: Parts, *given: Parts) -> None:
    """Records that results are no larger than their operands, so they have the same limit."""
    if is_on(session) and out[0].numel():
        session.claims.limited(out, max(map(session.claims.limit, given)))


def added(session: Checked, out: Parts, *given: Parts) -> None:
    """Records the limit of a sum or difference of the operands."""
    if is_on(session) and out[0].numel():
        session.claims.limited(out, sum(map(session.claims.limit, given)))


def summed(session: Checked, out: Parts, x: Parts, count: int) -> None:
    """Records the limit of sums of at most ``count`` of the numbers."""
    if is_on(session) and out[0].numel():
        session.claims.limited(out, session.claims.limit(x) * max(1, count))


def multiplied(session: Checked, out: Parts, x: Parts, growth: torch.Tensor) -> None:
    """Records the limit of numbers that ``hold_factors`` has let grow by the given factors."""
    limit = session.claims.limit(x) * math.ceil(max(1.0, float(growth.max())))
    session.claims.limited(out, min(limit, 1 << TRUNCATED))


def truncated(session: Checked, out: Parts, x: Parts, bits: int) -> None:
    """Records the limit of numbers after a truncation by ``bits`` bits, if they were in range."""
    if is_on(session) and (limit := session.claims.limit(x)) <= 1 << TRUNCATED:
        session.claims.limited(out, _truncated(limit, bits))


def _truncated(limit: int, bits: int) -> int:
    # A truncation may round away from zero.
    return (limit >> bits) + 2


def kept(session: Checked) -> _core.Kept | None:
    """Returns an object in which an operation leaves the data for its check, if checks are on."""
    return _core.Kept() if keeps(session) else None


def claim_product(
    session: Checked,
    terms: Sequence[tuple[Parts, Parts, Any]],
    out: Parts,
    *,
    addends: Sequence[tuple[Parts, int]] = (),
    truncate: fixed.Shift = fixed.EXACT,
    exact: int | None = None,
    width: int = 0,
    kept: _core.Kept | None = None,
) -> None:
    """Claims that a sum of products has the right result.

    Args:
        session: this party's session.
        terms: the operands of each product and the shape of its bilinear map; None for products
            element by element.
        out: the result.
        addends: the numbers added before the truncation, each with the number of consecutive
            elements of the result that take the same one.
        truncate: the truncation of the sum.
        exact: bits to which a result without truncation is held exactly, by comparisons; for small
            results.
        width: width of the comparison of the truncated sum, if the operation compared it.
        kept: what the operation left.
    """
    if not is_on(session):
        return
    claims, result = session.claims, out
    claim = claims.now(session.operator_label)
    residues = kept.residues if kept else None
    is_continued = kept is not None and kept.has_truncated
    if kept is not None and is_continued:
        out = tuple(torch.empty_like(part) for part in out)
        kept.truncated(list(map(array, out)))
    place = claims.place(out, residues)
    if is_continued:
        _hold_compared(session, out, width, truncate.bits)
    elif residues is not None:
        claims.keep_residues(out[0], residues)
    if exact is not None:
        hold_exactly(session, out, exact)
    elif not truncate.bits:
        hold_result(session, out, WORD)
    operands = (operand for x, y, _ in terms for operand in (x, y))
    for operand in (*operands, *(parts for parts, _ in addends)):
        hold_operand(session, operand)
    named = [(claims.place(x), claims.place(y), shape) for x, y, shape in terms]
    added = [(claims.place(parts), run) for parts, run in addends]
    claim.products.append((named, added, place, truncate, kept))
    if truncate.bits:
        # The check of a truncation may pass numbers up to 3·2^62 before it.
        for each in (out, result):
            claims.limited(each, _truncated(3 << TRUNCATED, truncate.bits))


def check_available(session: Checked) -> None:
    """Checks that the session's protocol supports checked mode.

    Raises:
        MisuseError: the protocol, with its source and number of parties, has no checks.
    """
    if session.core.checks:
        return
    raise MisuseError(
        f"checked mode among {session.parties} parties of {session.protocol} sharing needs a "
        'dealer: choose source = "dealer", protocol = "replicated", or two parties; or do not '
        "use checked mode, and rehearse the program with tacit.check"
    )
