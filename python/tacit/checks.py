"""The checked mode: what is computed on shares is checked, in secret, to be what the integers
behind them give.

Words hold numbers of −2^63 to 2^63. A sum or a product that needs more is another number, without a
sign of it. In checked mode each operator leaves a *claim*: which products it made of what, and to
how many bits numbers must be *held* for what it did with them (sums, shifts, comparisons of fewer
bits, products by public numbers). A claim has a flag (``flags``), so that it travels with the
operator's results. Claims are settled together, by ``_core.Session.settle``, when something is
opened: until then nothing is sent for them. Where much waits, they are settled before.

What operators compute within proved bounds, such as the series of a function, makes no claims
(``proved``): what goes in is held to the domain of the function instead. What is known to have few
bits, by what made it, is not held again (``Claims.bound``).
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.multiprocessing.reductions import StorageWeakRef

from tacit import _core, fixed
from tacit.buffers import array
from tacit.errors import MisuseError, printable
from tacit.flags import Dependencies
from tacit.modes import is_tracing
from tacit.storage_cache import Geometry, Storages, geometry

Parts = tuple[torch.Tensor, ...]

#: Elements, and operators, that wait for their checks, at most, before an operator of the program
#: begins.
MOST_WAITING = 1 << 25
MOST_CLAIMS = 1024

#: What is held to no fewer bits passes below 2^60: two numbers of that are added, or one is
#: truncated, without a doubt.
WORD = 60

#: Magnitudes of what is truncated are below two to this.
TRUNCATED = 62


class Checked(Protocol):
    """What checks need of a session."""

    core: _core.Session
    parties: int
    protocol: str
    claims: "Claims"
    numerics: fixed.Numerics

    def using(self, **settings: Any) -> AbstractContextManager[None]:
        """Within it, the session computes under these settings."""

    def claimant(self) -> str:
        """What is carried out, and where."""


class Claim:
    """What an operator did."""

    def __init__(self, flag: _core.Flag) -> None:
        self.flag = flag
        self.products: list[Any] = []
        #: Widths, by place, and those that are held just so.
        self.holds: dict[int, int] = {}
        self.exact: dict[int, int] = {}
        self.is_settled = False


class Waiting(NamedTuple):
    """A tensor that is named by claims, as it was when they were made."""

    parts: tuple[torch.Tensor, ...]
    versions: tuple[int | None, ...]
    #: Where its residues are kept, if it is multiplied again and again.
    residues: _core.Residues | None


class Claims:
    """The claims of one party that are still to be settled."""

    def __init__(self, core: _core.Session, dependencies: Dependencies, storages: Storages) -> None:
        self._core = core
        self._dependencies = dependencies
        self._storages = storages
        #: Of storages whose numbers have few bits by what made them, how many.
        self._bounds: dict[int, tuple[StorageWeakRef, int]] = {}
        #: Whether truncations leave the residues of their results.
        self.has_residues = core.lifts_truncated
        #: Storages that are looked through before freed ones are dropped again.
        self._patience = 0
        self._forget()

    def _forget(self) -> None:
        self._claims: list[Claim] = []
        self._waiting: list[Waiting] = []
        self._places: dict[Geometry, int] = {}
        self._elements = 0

    @property
    def is_much(self) -> bool:
        """Whether they are better settled soon."""
        return self._elements > MOST_WAITING or len(self._claims) >= MOST_CLAIMS

    def now(self, label: Callable[[], str]) -> Claim:
        """The claim of the operator that is carried out, which its results depend on."""
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
        """A tensor's place among those that are named.

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
            self._storages.keep_beside(_core.Residues, tensor, residues, of=())

    def _residues(self, tensor: torch.Tensor) -> _core.Residues | None:
        """The residues that are kept of a tensor, or the place to keep them if it will be
        multiplied again, as a weight is. Parts of a storage have none: there may be many."""
        if tensor.nbytes != tensor.untyped_storage().nbytes():
            return None
        found: _core.Residues | None = None
        if tensor.is_contiguous():
            found = self._storages.beside(_core.Residues, tensor)
        if found is not None or self._storages.name(tensor) is None:
            return found
        found = self._storages.derived(_core.Residues, [tensor])
        if found is None:
            found = _core.Residues()
            # Residues depend on nothing that is multiplied by them now. A product depends on the
            # flags of its factors anyway, and checks their ranges again unless they are known.
            with self._dependencies.running(None):
                self._storages.derive(_core.Residues, [tensor], found)
        return found

    def bound(self, parts: Parts) -> int:
        """Magnitudes of these numbers are below 2^this if the claims hold that they depend on."""
        found = self._bounds.get(parts[0].untyped_storage()._cdata) if self._bounds else None
        return fixed.WORD if found is None else found[1]

    def bounded(self, parts: Parts, bits: int) -> None:
        """Numbers that were made just now are below 2^bits."""
        if len(self._bounds) > self._patience:
            for at, (reference, _) in list(self._bounds.items()):
                if reference.expired():  # type: ignore[no-untyped-call]
                    self._bounds.pop(at, None)
            self._patience = 2 * len(self._bounds) + 64
        # As long as it is referred to, no other storage lies where this one does.
        reference = StorageWeakRef(parts[0].untyped_storage())  # type: ignore[no-untyped-call]
        self._bounds[reference.cdata] = reference, bits

    def written(self, parts: Parts) -> None:
        """What shares their storage is about to be written to: claims are of what it was."""
        storage = parts[0].untyped_storage()._cdata
        self._bounds.pop(storage, None)
        if not self._waiting:
            return
        for key in [key for key in self._places if key[0] == storage]:
            place = self._places.pop(key)
            copies = tuple(part.clone() for part in self._waiting[place].parts)
            versions = tuple(map(_version, copies))
            self._waiting[place] = Waiting(copies, versions, self._waiting[place].residues)

    def settle(self) -> None:
        """Finds out whether all claims hold: their flags say it from then on, in secret. Where that
        ends by an error, what depends on them is never opened, and whoever would open it is told
        the error: it cannot be tried again, since the others may have stopped at another step."""
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
    """Whether what is computed now is to be checked."""
    return _keeps(session) and not session.numerics.is_dry


def _keeps(session: Checked) -> bool:
    """Whether truncations keep what their checks need. A dry run asks for the same correlations."""
    return session.numerics.is_checked and not session.numerics.is_proved and not is_tracing()


def proved(session: Checked) -> AbstractContextManager[None]:
    """Within it, only promised widths are checked: the caller has proved that all other values stay
    in range."""
    return session.using(is_proved=True)


def off(session: Checked) -> AbstractContextManager[None]:
    """Within it, nothing is checked: shapes are computed, and no values."""
    return session.using(is_dry=True)


def hold(session: Checked, parts: Parts, bits: float) -> None:
    """Claims that numbers are no greater than what is done with them allows: magnitudes below
    2^bits pass, those from 3·2^bits on do not."""
    if is_on(session) and parts[0].numel():
        _hold(session, parts, bits)


def hold_promised(session: Checked, parts: Parts, width: int) -> None:
    """Claims that numbers are compared rightly in a width that a user promised."""
    numerics = session.numerics
    if numerics.is_checked and not numerics.is_dry and not is_tracing() and parts[0].numel():
        _hold(session, parts, width - 3)


def _hold_compared(session: Checked, parts: Parts, width: int, truncate: int) -> None:
    """Claims that numbers were compared rightly in that width beside their truncation. A truncation
    may be right by luck of what has no word before it, and then its sign is another one's."""
    if isinstance(width, fixed.Promised):
        hold_promised(session, parts, width)
    if width + truncate > fixed.WORD:
        hold(session, parts, WORD + 1 - truncate)


def hold_just(session: Checked, parts: Parts, bits: int) -> None:
    """Claims that numbers are from −2^bits on and below 2^bits, by comparisons: of few."""
    if is_on(session) and parts[0].numel():
        claim, place = session.claims.now(session.claimant), session.claims.place(parts)
        claim.exact[place] = bits + 2


def _hold(session: Checked, parts: Parts, bits: float) -> None:
    if session.claims.bound(parts) <= bits:
        return
    width = max(4, min(int(bits), WORD) + 3)
    claim, place = session.claims.now(session.claimant), session.claims.place(parts)
    claim.holds[place] = min(width, claim.holds.get(place, width))


def hold_summands(session: Checked, parts: Parts, count: int) -> None:
    """Claims that sums of so many numbers have words."""
    if count > 1:
        hold(session, parts, WORD + 1 - math.ceil(math.log2(count)))


def hold_factors(session: Checked, parts: Parts, growth: torch.Tensor) -> None:
    """Claims that numbers which become at most so many times as large can be truncated then.

    Args:
        growth: of each number, or of all.
    """
    # What passes may be three times as large as what must.
    bits = torch.floor(TRUNCATED - torch.log2(3.0 * growth.clamp(min=1.0)))
    lowest, highest = (int(bound) for bound in bits.aminmax())
    if lowest == highest or session.claims.bound(parts) <= lowest:
        hold(session, parts, lowest)
        return
    bits = bits.expand(parts[0].shape)
    for level in range(lowest, highest + 1):
        which = bits == level
        hold(session, tuple(part[which] for part in parts), level)


def hold_truncated(session: Checked, parts: Parts, out: Callable[[], Parts], bits: int) -> Parts:
    """What is truncated by so many bits, of numbers that are held to what can be."""
    if not is_on(session):
        return out()
    bound = session.claims.bound(parts)
    if bound > TRUNCATED:
        hold(session, parts, WORD)
        bound = TRUNCATED
    found = out()
    session.claims.bounded(found, max(1, bound - bits) + 1)
    return found


def known(session: Checked, parts: Parts, bits: int) -> None:
    """Numbers that were made just now are below 2^bits, whatever they are."""
    if is_on(session) and parts[0].numel():
        session.claims.bounded(parts, bits)


def inherit(session: Checked, out: Parts, *given: Parts) -> None:
    """Results that are no greater than what they were made of."""
    if is_on(session):
        bits = max(map(session.claims.bound, given))
        if bits < fixed.WORD:
            session.claims.bounded(out, bits)


def kept(
    session: Checked, shape: Sequence[int], *, has_truncated: bool = False
) -> list[NDArray[np.int64]]:
    """Arrays for what the check of a truncation needs: what it dropped; the residues of its result,
    if the protocol has them; and the result itself, if the operation continues with it."""
    if not _keeps(session):
        return []
    arrays = 1 + session.claims.has_residues + (session.core.parts if has_truncated else 0)
    return [np.empty(tuple(shape) or 1, np.int64) for _ in range(arrays)]


def claim_product(
    session: Checked,
    terms: Sequence[tuple[Parts, Parts, Any]],
    out: Parts,
    *,
    addends: Sequence[tuple[Parts, int]] = (),
    truncate: fixed.Shift = fixed.EXACT,
    just: int | None = None,
    width: int = 0,
    dropped: Sequence[NDArray[np.int64]] = (),
) -> None:
    """Claims that a sum of products gave what it gave.

    Args:
        terms: operands, and the shape of the map; none where it goes element by element.
        addends: what was added before it was truncated, and how many elements in a row take the
            same number.
        just: bits that results of what is not truncated are held to by comparisons, where there are
            few.
        width: of the comparison of what was truncated, if that went on with it.
        dropped: what ``kept`` gave, filled.
    """
    if not is_on(session):
        return
    claims, result = session.claims, out
    claim = claims.now(session.claimant)
    rest, residues, truncated = _of_kept(session, dropped)
    if truncated:
        out = truncated
        _hold_compared(session, out, width, truncate.bits)
    elif residues is not None:
        claims.keep_residues(out[0], residues)
    if just is not None:
        hold_just(session, out, just)
    elif not truncate.bits:
        hold(session, out, WORD)
    for operand in (operand for x, y, _ in terms for operand in (x, y)):
        hold(session, operand, WORD)
    named = [(claims.place(x), claims.place(y), shape) for x, y, shape in terms]
    added = [(claims.place(parts), run) for parts, run in addends]
    claim.products.append((named, added, claims.place(out, residues), truncate, rest))
    if truncate.bits:
        # What is truncated passes below 3·2^62.
        claims.bounded(out, TRUNCATED + 2 - truncate.bits)
        claims.bounded(result, TRUNCATED + 2 - truncate.bits)


def _of_kept(
    session: Checked, kept: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.int64] | None, _core.Residues | None, Parts]:
    """What the arrays of ``kept`` hold: what was dropped, residues, what was truncated."""
    if not kept:
        return None, None, ()
    rest, *others = kept
    residues = _core.Residues(others.pop(0)) if session.claims.has_residues else None
    return rest, residues, tuple(map(torch.from_numpy, others))


def check_available(session: Checked) -> None:
    """Whether a session's protocol has checks.

    Raises:
        MisuseError: not.
    """
    if not session.core.checks:
        raise MisuseError(
            f"checked mode among {session.parties} parties of {session.protocol} sharing takes a "
            f"dealer: "
            'choose source = "dealer", protocol = "replicated", or two parties; or leave checked '
            "out and "
            "rehearse the program with tacit.check"
        )
