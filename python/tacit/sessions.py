"""The session of a party: who takes part, under which protocol, and what it has cost so far."""

import logging
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from itertools import count
from threading import Lock, Timer, get_ident
from typing import Any, NoReturn, Protocol
from weakref import ref

import torch

from tacit import _core, fixed
from tacit.checks import Claims, check_available
from tacit.errors import (
    CHECKED,
    DesyncError,
    MisuseError,
    NoSessionError,
    advise,
    source_lines,
    told,
)
from tacit.flags import Dependencies
from tacit.meter import Meter
from tacit.providers import PROTOCOLS
from tacit.storage_cache import Storages

_log = logging.getLogger(__name__)


class RunningModules:
    """The modules of a model under way in one party, outermost first, with the names in the
    outermost."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.labels: list[str] = []


class Rehearsal(Protocol):
    """What a session does in the place of what a secret tensor refuses, to
    find all of it at once."""

    def withheld(self, what: str, show: Callable[[torch.Tensor], Any], secret: torch.Tensor) -> Any:
        """What ``show`` gives of the plain tensor; ``what`` is for the record."""


class Trace(Protocol):
    """What takes note of what a session does, and of how that nests."""

    def enter(self, name: str, kind: str) -> None:
        """Something begins."""

    def leave(self) -> None:
        """What began last ends."""


class Session:
    """One party's part in a computation; what ``tacit.session()`` returns."""

    def __init__(self, core: _core.Session) -> None:
        self.core = core
        #: This party's number, from 0.
        self.party = core.party
        #: How many parties there are.
        self.parties = core.parties
        #: What errors call one of them, and several: parties, or the servers of a federation.
        self.member, self.members = core.words
        #: The protocol's name: "replicated", "additive" or "plain".
        self.protocol = core.protocol
        self.transport = core.transport
        #: What this party has sent, and how long it has waited, by layer.
        self.meter = Meter(core)
        #: The settings under which it computes; :meth:`using` changes them.
        self.numerics = fixed.Numerics(is_checked=core.is_checked)
        self.modules = RunningModules()
        #: Which flags of comparisons its values depend on.
        self.dependencies = Dependencies()
        self.storages = Storages(core, self.dependencies)
        #: Whether it goes side by side with others, so that nothing can be settled.
        self.is_beside = False
        self.claims = Claims(core, self.dependencies, self.storages)
        #: Whether values can be looked at: under the reference alone.
        self.is_plain = not PROTOCOLS[core.protocol].is_secret
        #: Numbers of secret tensors, in the order in which a program makes them: the same in all
        #: parties.
        self.numbers = count(1)
        #: The operator that is carried out, for reports; and what was reported of each in each
        #: module.
        self.operator = ""
        self.reported: dict[str, str] = {}
        #: The thread that is in an operator, shares or reveals; which was so last, and whether
        #: several were.
        self.thread: int | None = None
        self.latest_thread = get_ident()
        self.has_changed_thread = False
        #: What was said of constants that rounding loses.
        self.lost: set[str] = set()
        #: What an operator was refused with last: PyTorch's interpreter of scripts loses it.
        self.refused = ""
        #: Of what operators remember of their results, the latest, by kind; see
        #: ``operators.roots``.
        self.remembered: defaultdict[Any, deque[tuple[Any, ref[Any]]]] = defaultdict(deque)
        #: Under the reference alone, where it is wanted: the bits that the largest value and the
        #: largest product of each module leave of their range, by module and by which of the two.
        self.headroom: dict[tuple[str, str], float] | None = None
        #: Under the reference alone, where a program is tried out.
        self.rehearsal: Rehearsal | None = None
        #: While what it does is recorded.
        self.trace: Trace | None = None

    def enter(self) -> int | None:
        """This thread begins what all parties do together; which one was in it before, for
        :meth:`leave`.

        Raises:
            MisuseError: another one is in the middle of it. The session ends by that: in which
                order both would go on is chance.
        """
        before, me = self.thread, get_ident()
        if before is not None and before != me:
            self.core.abort(f"its program {TWO_THREADS}")
            raise MisuseError(f"this program {TWO_THREADS}")
        if me != self.latest_thread:
            self.latest_thread, self.has_changed_thread = me, True
        self.thread = me
        return before

    def leave(self, before: int | None) -> None:
        """It has ended."""
        self.thread = before

    def claimant(self) -> str:
        """What is carried out, and where, as errors say it."""
        where = f"module {self.modules.labels[-1]!r}" if self.modules.labels else "no module"
        line = source_lines.line()
        return f"{CHECKED}{self.operator or 'tacit'} in {where}{f', {line}' if line else ''}"

    @property
    def scale(self) -> fixed.Scale:
        """The scale of fractions, and of products once they are truncated."""
        return self.numerics.scale

    @contextmanager
    def using(self, **settings: Any) -> Iterator[None]:
        """Within it, the session computes under these settings.

        Args:
            settings: fields of :class:`~tacit.fixed.Numerics`; the others stay as they are.
        """
        before, self.numerics = self.numerics, replace(self.numerics, **settings)
        try:
            yield
        finally:
            self.numerics = before

    @contextmanager
    def beside(self) -> Iterator["Session"]:
        """Within it, the current session is another object over the same links and lasting tensors,
        with settings of its own that begin as these are now: for work side by side with other work.
        It has no trace, in which spans of both would mix."""
        own = copy(self)
        own.modules = RunningModules()
        own.modules.names = self.modules.names
        own.modules.labels = list(self.modules.labels)
        own.trace = None
        own.thread = None
        own.is_beside = True
        own.remembered = defaultdict(deque)
        token = _current.set(own)
        try:
            yield own
        finally:
            _current.reset(token)

    def told_by_all(self, own: bytes) -> list[bytes]:
        """What each party tells all others, this one ``own``. One round; whoever finds fault with
        what one has told knows by then that all have told."""
        return self.core.gather(own)

    @property
    def threat_model(self) -> str:
        """In one sentence, what is protected against whom."""
        return self.core.threat_model

    @property
    def demand(self) -> str | None:
        """What was asked of the source of correlations so far, where the session records it: the
        text that ``tacit correlations make`` reads."""
        return self.core.demand()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise MisuseError(
            "a session is not copied, as it holds keys and connections: leave it out of what is. "
            "Where "
            "torch.compile asks for a copy, leave that out: secret tensors run without it, and "
            "tacit.compile "
            "compiles a model"
        )

    def __repr__(self) -> str:
        return f"Session(party {self.party} of {self.parties}, {self.protocol}, {self.transport})"


#: What a program does, and is to do.
TWO_THREADS = (
    "computes on secrets in two threads of one party at once, so that the order of its steps is "
    "chance; call "
    "operators, tacit.share and reveal from one thread, and leave to others what needs no secrets, "
    "such as "
    "loading data"
)

#: What is said besides of programs that differ where a session went from thread to thread.
CHANGED_THREAD = (
    "; this {}'s program computes on secrets in several threads, whose order must be the same in "
    "all "
    "{}: call operators, tacit.share and reveal from one thread"
)

#: What all parties say alike where they begin to check.
CHECKED_MODE = b"checked mode"

#: After how many seconds a party whose program has ended says so that it waits, and how.
PATIENCE = 5.0
WAITS = "tacit: this party's program has ended, and waits for the other parties' to end"

#: Sessions that are open in this process, whatever thread they run in.
_open: set[int] = set()

#: What is done before the first of them opens, and after the last has ended.
_around: list[tuple[Callable[[], None], Callable[[], None]]] = []
_opening = Lock()


def while_open(begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Has this be done whenever a session opens in this process while there is none, and whenever
    there is none any more."""
    with _opening:
        _around.append((begin, end))
        if _open:
            begin()


def _opened(current: "Session") -> None:
    with _opening:
        if not _open:
            for begin, _ in _around:
                begin()
        _open.add(id(current))


def _ended(current: "Session") -> None:
    with _opening:
        _open.discard(id(current))
        if not _open:
            for _, end in _around:
                end()


_current: ContextVar[Session | None] = ContextVar("tacit_session", default=None)


def current_session() -> Session | None:
    """The session that this code runs in, if any."""
    return _current.get()


def session() -> Session:
    """The session that this code runs in.

    Raises:
        NoSessionError: outside of any.
    """
    current = _current.get()
    if current is None and _open:
        raise NoSessionError(
            "no session in this thread, and one is open in another thread of this process: call "
            "operators, "
            "tacit.share and reveal from the thread that opened it, in the same order in all "
            "parties"
        )
    if current is None:
        raise NoSessionError(
            "no session: run this inside tacit.launch(fn), `with tacit.connect(config, party):`, "
            "`tacit run`"
        )
    return current


@contextmanager
def running(core: _core.Session, patience: float | None = None) -> Iterator[Session]:
    """Makes a session the current one. At an exception the other parties are told that this one
    ends, and as much of the reason as ``told`` gives. Where this party's program has ended and the
    others' have not for so many seconds, that is said on standard error; the wait goes on as long
    as they live."""
    current = Session(core)
    token = _current.set(current)
    _opened(current)
    started = time.monotonic()
    try:
        _log.info(
            "party %d of %d opened a session: %s sharing, transport %s",
            core.party,
            core.parties,
            core.protocol,
            core.transport,
        )
        yield current
        _close(core, patience)
        _log_end(current, started)
    except SystemExit as leaving:
        # As a script ends that has done its work, or has not.
        if leaving.code in (None, 0):
            _close(core, patience)
            _log_end(current, started)
        else:
            core.abort("its program ended with an exit code; see its own output")
            _log.warning(
                "party %d ended its session: its program ended with an exit code", core.party
            )
        raise
    except BaseException as error:
        advise(error)
        said, blamed = told(error)
        core.abort(said, blamed)
        # No more than what the others are told: messages of a program may hold what is secret.
        _log.warning("party %d ended its session: %s: %s", core.party, type(error).__name__, said)
        if isinstance(error, DesyncError) and current.has_changed_thread:
            error.args = (f"{error}{CHANGED_THREAD.format(current.member, current.members)}",)
        raise
    finally:
        _ended(current)
        _current.reset(token)


def _log_end(current: Session, started: float) -> None:
    if _log.isEnabledFor(logging.INFO):
        spent = current.meter.total
        _log.info(
            "party %d ended its session in order: %.3f s, %d rounds, %d bytes sent, %d received",
            current.party,
            time.monotonic() - started,
            spent.rounds,
            spent.bytes_sent,
            spent.bytes_received,
        )


def _close(core: _core.Session, patience: float | None) -> None:
    """The orderly end."""
    if patience is None:
        core.close()
        return
    saying = Timer(patience, print, (WAITS,), {"file": sys.stderr, "flush": True})
    saying.daemon = True
    saying.start()
    try:
        core.close()
    finally:
        saying.cancel()


@contextmanager
def connect(
    config: str,
    party: int,
    *,
    protocol: str | None = None,
    source: str | None = None,
    timeout: float | None = None,
    threads: int | None = None,
    record: bool = False,
    checked: bool | None = None,
) -> Iterator[Session]:
    """Takes part as ``party`` in the session that a file such as ``examples/parties.toml``
    describes.

    Args:
        config: path of the file.
        party: this party's number, its place in the file, from 0.
        protocol: instead of the file's.
        source: of correlations, instead of the file's.
        timeout: longest wait for one message in seconds, instead of the file's.
        threads: threads of this process's kernels, PyTorch's among them; all cores if not given.
        record: whether ``Session.demand`` keeps what is asked of the source of correlations.
        checked: whether all is computed in checked mode, as within :func:`checked`, instead of what
            the file says.

    Raises:
        SetupError: file, address or certificates are wrong.
        PeerError: a party did not come within the timeout, or failed later.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    core = _core.Session.connect(
        str(config), party, protocol, timeout, threads, source, record, checked
    )
    with running(core, PATIENCE) as current:
        if current.numerics.is_checked:
            check_available(current)
            current.core.note(CHECKED_MODE)
        yield current


@contextmanager
def comparison_width(bits: int) -> Iterator[None]:
    """Within it, comparisons (ReLU, maximum, ...) assume that values, and differences of what is
    compared, need at most that many bits, and cost less.

    The bits are those of numbers with 16 fraction bits: with these and a sign, 32 bits leave 15
    bits before the point, and ``comparison_width(32)`` is right for \\|x\\| < 2^15. Fractions of
    another scale, be it a tensor's or the session's, are compared with as many bits before the
    point, integers with ``bits`` bits. Values that need more are compared wrongly, so choose it
    only where the range is known: under ``protocol="plain"`` each operator that compares more is
    named. A public infinity, as masks have it, counts as an eighth of the limit.

    Args:
        bits: of numbers with 16 fraction bits, 8 to 64.

    Raises:
        MisuseError: not 8 to 64.
    """
    if not isinstance(bits, int) or not 8 <= bits <= 64:
        raise MisuseError(f"a comparison width is 8 to 64 bits, not {bits!r}")
    with session().using(width=bits):
        yield


@contextmanager
def checked() -> Iterator[None]:
    """Within it, what is computed is checked: no overflow goes unseen.

    Every sum, product, truncation, comparison of fewer bits, fraction made of an integer and
    quotient is checked, in secret, beside the computation. If one left its range there is no
    result: whoever was to learn what depends on it is told which operators failed, with their
    modules and lines, and nobody else is.

    Parties of replicated sharing can check, two of additive sharing, and more with a dealer. No
    value below 2^20 times one below 2^8 is refused; greater ones may be, where they are within two
    bits of what is wrong. Messages for checks are sent right before something is revealed, or where
    much waits for them.

    Raises:
        MisuseError: a session that has no checks.
    """
    current = session()
    check_available(current)
    current.core.note(CHECKED_MODE)
    with current.using(is_checked=True):
        yield


@contextmanager
def fraction_bits(bits: int) -> Iterator[None]:
    """Within it, fractions are shared with that many fraction bits, and products return to as many:
    the session's scale, which is 16 otherwise.

    More bits are more exact and leave less range: the product of two numbers at scale s is right
    below 2^(62 − 2s), so below 2^30 at 16 bits and below 2^22 at 20.

    Args:
        bits: fraction bits, 1 to 30.

    Raises:
        MisuseError: not 1 to 30.
    """
    scale = fixed.scale_of(bits)
    if 2 * bits > fixed.RANGE - 2:
        raise MisuseError(
            f"products of two numbers with {bits} fraction bits would have no range: at most 30"
        )
    with session().using(scale=scale):
        yield
