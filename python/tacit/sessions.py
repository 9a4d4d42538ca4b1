"""A party's session: who takes part, under which protocol, and what it has cost so far."""

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
from pathlib import Path
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
from tacit.libraries import find_libraries
from tacit.meter import Meter
from tacit.providers import PROTOCOLS
from tacit.storage_cache import Storages

_log = logging.getLogger(__name__)


class RunningModules:
    """The stack of modules that one party currently executes, outermost first.

    ``names`` gives the names of the modules within the outermost one.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.labels: list[str] = []


class Rehearsal(Protocol):
    """Substitute for operations that secret tensors refuse, so that one run finds all of them."""

    def withheld(self, what: str, show: Callable[[torch.Tensor], Any], secret: torch.Tensor) -> Any:
        """Records the refused operation ``what`` and returns ``show`` of the plain tensor."""


class Trace(Protocol):
    """Recorder of a session's activities and of how they nest."""

    def enter(self, name: str, kind: str) -> None:
        """Records that an activity begins."""

    def leave(self) -> None:
        """Records that the innermost open activity ends."""


class Session:
    """One party's part in a computation, as returned by ``tacit.session()``."""

    def __init__(self, core: _core.Session) -> None:
        self.core = core
        #: This party's number, from 0.
        self.party = core.party
        #: The number of parties.
        self.parties = core.parties
        #: The words, singular and plural, that errors use for the parties, which are the servers of
        #: a federation in a federated session.
        self.member, self.members = core.words
        #: The protocol's name: as :func:`tacit.launch` takes it.
        self.protocol = core.protocol
        self.transport = core.transport
        #: The data that this party has sent, and its waiting times, by layer.
        self.meter = Meter(core)
        #: The settings under which the session computes; :meth:`using` changes them.
        self.numerics = fixed.Numerics(is_checked=core.is_checked)
        self.modules = RunningModules()
        #: Tracks which flags of comparisons each value depends on.
        self.dependencies = Dependencies()
        self.storages = Storages(core, self.dependencies)
        #: Whether the session runs concurrently with others, so that no claims can be settled.
        self.is_beside = False
        self.claims = Claims(core, self.dependencies, self.storages)
        #: Whether this process sees the values, which only the reference protocol ("plain") allows.
        self.is_plain = not PROTOCOLS[core.protocol].is_secret
        #: Generates the numbers of secret tensors, in the order in which the program makes them.
        #: The numbers are the same in all parties.
        self.numbers = count(1)
        #: The operator that currently runs, for reports.
        self.operator = ""
        #: The first range report of each place, by operator, module and line.
        self.reported: dict[str, str] = {}
        #: The thread that currently runs an operator, shares or reveals, if any.
        self.thread: int | None = None
        #: The last thread that did so.
        self.latest_thread = get_ident()
        #: Whether several threads did so, one after another.
        self.has_changed_thread = False
        #: The warnings given so far about constants that are lost in rounding.
        self.lost_constants: set[str] = set()
        #: The latest error text of a refused operator. TorchScript's interpreter loses it, so it is
        #: kept here.
        self.refused = ""
        #: The latest of the facts that operators remember about their results, by kind; see
        #: ``operators.numerics.remembered_squares`` and ``remembered_softmax``.
        self.remembered: defaultdict[Any, deque[tuple[Any, ref[Any]]]] = defaultdict(deque)
        #: The bits of range that the largest "value" and the largest "product" of each module leave
        #: unused, by module and kind. Only the reference protocol records it, and only on request.
        self.headroom: dict[tuple[str, str], float] | None = None
        #: The rehearsal of a trial run; only under the reference protocol.
        self.rehearsal: Rehearsal | None = None
        #: The recorder of this session's activities, while there is one.
        self.trace: Trace | None = None

    def enter(self) -> int | None:
        """Marks this thread as the one that performs a step that all parties perform together.

        Returns:
            The thread that was marked before, for :meth:`leave`.

        Raises:
            MisuseError: another thread is in the middle of such a step. This also ends the session,
                because the order in which both threads would continue is not determined.
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
        """Ends the step that :meth:`enter` began; ``before`` is what it returned."""
        self.thread = before

    def operator_label(self) -> str:
        """Names the current operator, its module and its source line, as errors print them."""
        where = f"module {self.modules.labels[-1]!r}" if self.modules.labels else "no module"
        line = source_lines.line()
        return f"{CHECKED}{self.operator or 'tacit'} in {where}{f', {line}' if line else ''}"

    @property
    def scale(self) -> fixed.Scale:
        """The scale of fractions and of truncated products."""
        return self.numerics.scale

    @contextmanager
    def using(self, **settings: Any) -> Iterator[None]:
        """Makes the session compute under the given settings inside the ``with`` block.

        Args:
            settings: fields of :class:`~tacit.fixed.Numerics`; the others keep their values.
        """
        before, self.numerics = self.numerics, replace(self.numerics, **settings)
        try:
            yield
        finally:
            self.numerics = before

    @contextmanager
    def beside(self) -> Iterator["Session"]:
        """Makes a copy of this session current inside the ``with`` block, for concurrent work.

        The copy uses the same links and lasting tensors. Its settings start as this session's
        current ones and change independently. It records no trace, because the spans of concurrent
        work would mix there.
        """
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
        """Sends ``own`` to all parties and returns what each party sent, by its number.

        One round. A party that rejects one of these messages therefore knows that all parties have
        sent theirs.
        """
        return self.core.gather(own)

    @property
    def threat_model(self) -> str:
        """One sentence that says what is protected against whom."""
        return self.core.threat_model

    @property
    def attestation(self) -> dict[str, Any] | None:
        """What attestation has done so far; None if the members have not attested.

        ``kind`` of the evidence; ``verified``, the number of members whose evidence this party
        accepted; ``signatures`` that it made; and ``seconds`` that all this took."""
        found = self.core.attestation()
        names = ("kind", "verified", "signatures", "seconds")
        return None if found is None else dict(zip(names, found, strict=True))

    @property
    def device(self) -> dict[str, Any]:
        """What this party evaluates products on.

        Its ``kind``, the ``products`` that it has computed itself, and the ``bytes_copied`` to it
        and from it."""
        names = ("kind", "products", "bytes_copied")
        return dict(zip(names, self.core.device(), strict=True))

    @property
    def demand(self) -> str | None:
        """The correlations requested from the source so far, as the text that ``tacit correlations
        make`` reads; None if the session does not record them."""
        return self.core.demand()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise MisuseError(
            "a session cannot be copied, because it holds keys and connections: leave it out of "
            "the object that is copied. If torch.compile asks for the copy, do not use it: secret "
            "tensors run without it, and tacit.compile compiles a model"
        )

    def __repr__(self) -> str:
        return f"Session(party {self.party} of {self.parties}, {self.protocol}, {self.transport})"


#: The cause and the remedy of an error, after the words "this program".
TWO_THREADS = (
    "computes on secrets in two threads of one party at once, so the order of its steps is not "
    "determined; call operators, tacit.share and reveal from one thread, and use other threads "
    "only for work that needs no secrets, such as loading data"
)

#: The text added to an error about parties whose programs differ, if several threads of this party
#: used the session.
CHANGED_THREAD = (
    "; this {}'s program computes on secrets in several threads, whose order must be the same in "
    "all "
    "{}: call operators, tacit.share and reveal from one thread"
)

#: The public parameter that parties compare when they enter checked mode.
CHECKED_MODE = b"checked mode"

#: Seconds after which a party whose program has ended reports that it waits for the others.
PATIENCE = 5.0

#: That report.
WAITS = "tacit: this party's program has ended; waiting for the other parties' programs to end"

#: The sessions that are open in this process, in any thread.
_open: set[int] = set()

#: Functions to call before the first session opens and after the last one has ended.
_around: list[tuple[Callable[[], None], Callable[[], None]]] = []
_opening = Lock()


def while_open(begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Registers functions that run when this process gets its first session and loses its last.

    ``begin`` runs at once if a session is open already.
    """
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
    """Returns the session that this code runs in, if any."""
    return _current.get()


def session() -> Session:
    """Returns the session that this code runs in.

    Raises:
        NoSessionError: this code runs in no session.
    """
    current = _current.get()
    if current is None and _open:
        raise NoSessionError(
            "no session in this thread, but one is open in another thread of this process: call "
            "operators, tacit.share and reveal from the thread that opened it, in the same order "
            "in all parties"
        )
    if current is None:
        raise NoSessionError(
            "no session: run this inside tacit.launch(fn), `with tacit.connect(config, party):` "
            "or `tacit run`"
        )
    return current


@contextmanager
def running(core: _core.Session, patience: float | None = None) -> Iterator[Session]:
    """Makes a session current inside the ``with`` block, and ends the session after it.

    If the block raises an exception, this party tells the others that it ends, and as much of the
    reason as ``told`` allows.

    Args:
        core: the native session.
        patience: seconds that this party waits for the other parties' programs to end before it
            prints on standard error that it waits. It keeps waiting as long as they live. None
            prints nothing.
    """
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
        # sys.exit() ends a script, with or without success.
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
        # The log gets no more than the other parties: a program's messages may contain secrets.
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
    """Ends the session in order, once the other parties' programs have ended as well."""
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
    program: bytes | None = None,
    device: str | None = None,
) -> Iterator[Session]:
    """Connects to the other parties as ``party`` and runs the ``with`` block in that session.

    Args:
        config: path of a file such as ``examples/parties.toml``, which describes the session.
        party: this party's number, which is its position in the file, from 0.
        protocol: overrides the protocol in the file.
        source: overrides the source of correlations in the file.
        timeout: longest wait for one message in seconds; overrides the file.
        threads: number of threads for the kernels of this process, including PyTorch's; by default
            all cores.
        record: whether ``Session.demand`` records the correlations that the program requests.
        checked: whether the whole session runs in checked mode, as inside :func:`checked`;
            overrides the file.
        program: content of the program whose digest this party attests, if the file has a table
            ``[attestation]``; by default the file that Python runs.
        device: what this party evaluates products on, "cpu", "cuda" or "simulated"; overrides the
            file. Other parties need not choose alike.

    Raises:
        SetupError: the file, an address or a certificate is wrong; the program is not one that
            the table ``[attestation]`` names; or this machine lacks the device.
        PeerError: a party did not connect within the timeout, or failed later.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    find_libraries()
    core = _core.Session.connect(
        str(config),
        party,
        protocol,
        timeout,
        threads,
        source,
        record,
        checked,
        _main_file() if program is None else program,
        device,
    )
    with running(core, PATIENCE) as current:
        if current.numerics.is_checked:
            check_available(current)
            current.core.note(CHECKED_MODE)
        yield current


def _main_file() -> bytes | None:
    """Returns the content of the file that Python runs, or ``None`` if it runs none."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        return Path(path).read_bytes() if path else None
    except OSError:
        return None


def verify() -> None:
    """Verifies that all parties have followed the program so far. Reveals nothing.

    Under ``protocol="replicated-malicious"`` each party then knows that everything that it has
    computed until now follows from what the parties shared, whatever one of the others sent.
    ``reveal`` and the end of the program do this on their own, so a program needs this only to find
    cheating earlier. It costs nothing if nothing was computed since the last time. It does not
    check what a party shares: that is that party's own choice.

    Under the other protocols parties are assumed to follow the program, and this does nothing. All
    parties call it at the same place.

    Raises:
        CheatingError: one of the other parties cheated. The session has ended in every party.
    """
    current = session()
    before = current.enter()
    try:
        current.core.note(b"verify")
        current.core.verify()
    finally:
        current.leave(before)


@contextmanager
def comparison_width(bits: int) -> Iterator[None]:
    """Makes comparisons (ReLU, maximum, ...) cheaper inside the ``with`` block, for a known range.

    Comparisons then assume that values, and differences of compared values, need at most ``bits``
    bits. The number of bits refers to numbers with 16 fraction bits. For example, 32 bits are a
    sign, 15 bits before the point and 16 after it, so ``comparison_width(32)`` is right for
    \\|x\\| < 2^15. Fractions of another scale, a tensor's or the session's, are compared with the
    same number of bits before the point. Integers are compared with ``bits`` bits.

    Values that need more bits are compared wrongly, so use this only if the range is known. A trial
    run under ``protocol="plain"`` names each operator that compares larger values. A public
    infinity, as in masks, counts as an eighth of the limit.

    Args:
        bits: bits of numbers with 16 fraction bits, 8 to 64.

    Raises:
        MisuseError: ``bits`` is not 8 to 64.
    """
    if not isinstance(bits, int) or not 8 <= bits <= 64:
        raise MisuseError(f"a comparison width is 8 to 64 bits, not {bits!r}")
    with session().using(width=bits):
        yield


@contextmanager
def checked() -> Iterator[None]:
    """Checks all computations inside the ``with`` block, so that every overflow is detected.

    The parties check, in secret and next to the computation, every sum, product, truncation,
    comparison of fewer bits, quotient, and conversion of an integer to a fraction. If one of them
    left its range, there is no result: the parties that were to learn a value that depends on it
    learn instead which operators failed, with their modules and lines. Other parties learn nothing.

    Checked mode works among the parties of replicated sharing, among two parties of additive
    sharing, and among more of them with a dealer. A product of a value below 2^20 and one below 2^8
    is never refused. A larger one may be refused although it is right, if it is within two bits of
    the limit. The messages for checks are sent right before something is revealed, or earlier if
    many checks are pending.

    Raises:
        MisuseError: the session's protocol has no checks.
    """
    current = session()
    check_available(current)
    current.core.note(CHECKED_MODE)
    with current.using(is_checked=True):
        yield


@contextmanager
def fraction_bits(bits: int) -> Iterator[None]:
    """Sets the session's scale inside the ``with`` block: the fraction bits of fractions.

    Fractions are shared with this number of fraction bits, and products are truncated to it. The
    default is 16. More bits are more precise and leave less range: the product of two numbers at
    scale s is right below 2^(62 − 2s), so below 2^30 at 16 bits and below 2^22 at 20.

    Args:
        bits: fraction bits, 1 to 30.

    Raises:
        MisuseError: ``bits`` is not 1 to 30.
    """
    scale = fixed.scale_of(bits)
    if 2 * bits > fixed.RANGE - 2:
        raise MisuseError(
            f"products of two numbers with {bits} fraction bits would have no range: at most 30"
        )
    with session().using(scale=scale):
        yield
