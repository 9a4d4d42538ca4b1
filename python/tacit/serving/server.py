"""A party of a service: it answers clients, session after session, until it is told to leave.

    Server("service.toml", party=0).run()

The requests that wait are kept beyond sessions. When a session ends because a party failed, each
party opens the next one by itself, with longer and longer pauses. It binds the models again, and
goes on with what still waits. A request is used once: see :mod:`tacit.serving.batches`, and
crates/net/src/intake/requests."""

import json
import logging
import time
import uuid
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import torch

from tacit import _core, buffers
from tacit.errors import (
    DesyncError,
    NetworkError,
    PeerError,
    TacitError,
    Terminated,
    setup_error,
    told,
)
from tacit.memory import give_back
from tacit.parties.spawn import LATE
from tacit.parties.warmup import prepare
from tacit.serving.attesting import attestation_of
from tacit.serving.batches import MOST_ASKED, OLD, Notice, Row, digest_of, flags_of, notice_of
from tacit.serving.config import Service
from tacit.serving.description import description_of
from tacit.serving.models import Bound, Loaded, load
from tacit.serving.observed import Observed
from tacit.serving.spans import span
from tacit.sessions import Session, running
from tacit.sharings import shares

_log = logging.getLogger(__name__)

#: Seconds between two notices while no request comes.
TICK = 0.5

#: Seconds after its last batch in which a party keeps the memory that batches use again.
IDLE = 10.0

#: Seconds that a party waits for the requests of a batch that it does not have yet.
LAG = 0.05

#: Seconds before the second and later attempts to open a session: doubled each time.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

#: Seconds in which a party that leaves sends its last answers.
PARTING = 10.0


class Server:
    """One party of a service."""

    def __init__(
        self,
        config: str | Path,
        party: int,
        *,
        threads: int | None = None,
        observed: Observed | None = None,
    ) -> None:
        """Reads all files, and begins to answer clients, who are told to come again until
        :meth:`run` has opened a session.

        Args:
            config: path of the service's file.
            party: this party's number.
            threads: of this process's kernels, and of PyTorch's; all cores if not given.
            observed: where it counts and times; its own if not given.

        Raises:
            SetupError: the configuration, a certificate, the key or another file is wrong.
            MisuseError: there is no such party, or a program is wrong.
        """
        self.service = Service.read(config)
        if threads is not None:
            # Threads of PyTorch that have nothing to do wait actively, and take the processors from
            # other parties on this machine.
            torch.set_num_threads(threads)
        self.party = party
        self.observed = observed or Observed()
        self._own = self.service.party(party)
        self._threads = threads
        self._certificates = self.service.certificates_of_members()
        self._key = _core.read_private_key(str(self._own.key))
        # PyTorch would import these modules within the first batch.
        for late in LATE:
            import_module(late)
        prepare()
        #: The models that this party has read, which are bound once all parties have them.
        self._wanted = [load(model, party) for model in self.service.models]
        #: What this party attests of them, and what its clients are shown.
        self._attestation = self._shown = attestation_of(self.service, self._wanted)
        self._bound: list[Bound] = []
        clients = self.service.clients
        self._requests = _core.Requests(
            _core.Listener(self._own.listen_for_clients),
            self.service.name,
            self.service.protocol,
            self._certificates[: len(self.service.parties)],
            party,
            self._key,
            self.service.certificates_of_clients(),
            [(client.per_minute, client.waiting) for client in clients],
            self.service.limits.queue,
            self.service.limits.deadline,
            self._shown,
        )
        self.observed.follow("queue", lambda: self._requests.open)
        # Signal handlers set these: the lock of an event may be held where the signal comes.
        self._is_leaving = self._is_to_reload = False
        #: Whether it opens a session, which may take as long as the configuration's timeout.
        self.is_opening = False
        #: Whether another party has said that it leaves.
        self._is_over = False
        #: Whether a session has opened, so this party's own files are right.
        self._has_served = False
        #: Requests of others that have ended here, to be told with the next notice.
        self._ended: tuple[Row, ...] = ()
        self._counted = 0, 0, 0
        #: When the last batch ended, until its memory is given back.
        self._last_batch: float | None = None

    @property
    def address(self) -> str:
        """The address at which clients reach it."""
        return self._requests.address

    @property
    def is_ready(self) -> bool:
        """Whether a session is open and all models are bound."""
        return bool(self.observed.value("is_ready"))

    @property
    def is_leaving(self) -> bool:
        """Whether it finishes what waits, and ends."""
        return self._is_leaving

    def leave(self) -> None:
        """Lets :meth:`run` finish the requests that wait, and return. New requests are refused, and
        without a session those that wait too. May be called from any thread, and from a signal
        handler, which raises ``Terminated`` after that if the party ``is_opening`` a session."""
        self._is_leaving = True

    def reload(self) -> None:
        """Lets :meth:`run` read the models of the configuration again. They are switched between
        two batches, once all parties have read the same. May be called as :meth:`leave`."""
        self._is_to_reload = True

    def run(self) -> None:
        """Serves, until this party leaves.

        Before its first session has opened, a party that fits no other ends, so that its operator
        sees it. From then on its own files have proved right: it goes on whatever ends a session,
        since it is another party that was started with another configuration, or one batch that
        failed.

        Raises:
            SetupError: parties have different configurations or programs.
            MisuseError: a model is wrong.
        """
        pause = SHORTEST_PAUSE
        while not self.is_leaving:
            began = time.monotonic()
            if self._is_to_reload:
                # Others may have read their files again, and none is asked between sessions.
                self._read_again()
            try:
                self._session()
                pause = SHORTEST_PAUSE
            except (TacitError, MemoryError) as error:
                self.is_opening = False
                is_usual = isinstance(error, PeerError | NetworkError)
                is_usual = is_usual and not isinstance(error, DesyncError)
                if not is_usual and not self._has_served:
                    raise
                level = logging.WARNING if is_usual else logging.ERROR
                _log.log(level, "party %d: the session ended: %s", self.party, _said(error))
                if time.monotonic() - began > LONGEST_PAUSE:
                    pause = SHORTEST_PAUSE
                self._pause(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except Terminated:
                if not self.is_opening:
                    raise
            finally:
                self.is_opening = False
                self._unready()
        # What waits still had no session to be computed in.
        self._requests.dismiss()
        self._requests.see_off(min(PARTING, self.service.timeout))

    def _pause(self, seconds: float) -> None:
        """Waits, but not much longer than until this party leaves."""
        end = time.monotonic() + seconds
        while not self.is_leaving and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, TICK))

    def _unready(self) -> None:
        """Lets clients come again, and requests of the last batch wait again."""
        self.observed.set("is_ready", 0)
        self.observed.set("correlations_bytes", 0)
        self._requests.serve(None, [])
        self._requests.give_back()
        self._bound = []

    def _session(self) -> None:
        """Opens a session, and serves until it ends."""
        service = self.service
        self.is_opening = True
        core = _core.Session.connect_local(
            _core.Listener(self._own.listen),
            self.party,
            [member.address for member in service.members],
            self._certificates,
            self._key,
            service.protocol,
            service.timeout,
            self._threads,
            service.source,
            attestation=self._attestation,
        )
        self._is_over, self._counted = False, (0, 0, 0)
        with running(core) as session:
            self.observed.count("sessions_opened")
            _log.info("party %d: %s", self.party, session.threat_model)
            self._compare(session)
            self._show()
            self._bind(session)
            self._has_served, self.is_opening = True, False
            # Parts of a result carry a hash of this, so that those of two sessions never mix.
            self._tag = core.public_coin(uuid.uuid4().bytes)
            self._batches = 0
            _log.info("party %d: serves %s", self.party, ", ".join(self._labels()))
            while not self._is_over:
                self._step(session)

    def _show(self) -> None:
        """Lets clients see what this session's parties have attested to each other. If that is
        something new, they bring what waits again."""
        if self._attestation is not None and self._attestation is not self._shown:
            self._requests.attest(self._attestation)
            self._shown = self._attestation

    def _labels(self) -> list[str]:
        return [bound.model.label for bound in self._bound]

    def _compare(self, session: Session) -> None:
        """Compares what all parties must have the same of the configuration. One round."""
        service = self.service
        clients = [
            (client.name, certificate)
            for client, certificate in zip(
                service.clients, service.certificates_of_clients(), strict=True
            )
        ]
        limits = service.limits
        own = json.dumps([service.name, clients, limits.batch, limits.ahead]).encode()
        for party, theirs in enumerate(session.told_by_all(_core.blake3(own).encode())):
            if theirs != _core.blake3(own).encode():
                raise setup_error(
                    f"party {party} has another name of the service, other clients, another ahead "
                    "or another batch in its service.toml: give all parties the same file"
                )

    def _bind(self, session: Session) -> None:
        """Binds the models that this party wants and has not bound. Those that it does not want any
        more are dropped."""
        known = {(bound.model, bound.described.program): bound for bound in self._bound}
        self._bound = [
            known.get((loaded.model, loaded.digest))
            or Bound(session, loaded, self.service.limits.batch)
            for loaded in self._wanted
        ]
        self._serving = _hash_of(self._wanted)
        described = [bound.described for bound in self._bound]
        self._by_digest = {bound.described.digest: bound for bound in self._bound}
        self._requests.serve(
            description_of(described), [(each.digest, each.given) for each in described]
        )
        self.observed.set("is_ready", 1)

    def _read_again(self) -> None:
        """Reads the models of the configuration again. If that fails, the present ones stay."""
        self._is_to_reload = False
        try:
            service = Service.read(self.service.path)
            if service.attestation != self.service.attestation:
                raise setup_error(
                    f"{self.service.path}: the table [attestation] has changed, which all parties "
                    "and clients compare: start all parties again"
                )
            wanted = [load(model, self.party) for model in service.models]
            attestation = attestation_of(service, wanted)
        except TacitError as error:
            _log.error("party %d: keeps its models: %s", self.party, told(error)[0])
        else:
            self._wanted, self._attestation = wanted, attestation

    def _step(self, session: Session) -> None:
        """Agrees with the others on a batch, and computes it."""
        if self._is_to_reload:
            self._read_again()
        if self.is_leaving:
            self._requests.drain()
        proposed: list[Row] = []
        limits = self.service.limits
        if self.party == 0:
            proposed = self._requests.propose(limits.batch, limits.wait / 1000, TICK)
        model = self._requests.model(*proposed[0][:2]) if proposed else None
        own = Notice(
            tuple(proposed) if model else (),
            model or b"",
            self.is_leaving and not self._requests.open,
            _hash_of(self._wanted),
            tuple(self._requests.old(OLD, MOST_ASKED)),
            self._ended,
        )
        started = time.perf_counter()
        heard = session.told_by_all(own.to_bytes())
        notices = [notice_of(party, content) for party, content in enumerate(heard)]
        self._settle(notices)
        self._count_refusals()
        if any(notice.leaves for notice in notices):
            self._is_over = True
            return
        if {notice.wanted for notice in notices} == {own.wanted} != {self._serving}:
            # All parties have read the same new models. What party 0 proposes keeps waiting.
            if self._attestation is not None:
                # The others have accepted evidence of other programs than these.
                self._is_over = True
                return
            self._bind(session)
            _log.info("party %d: now serves %s", self.party, ", ".join(self._labels()))
        elif notices[0].batch:
            self._agree(session, notices[0], started)
            self._last_batch = time.monotonic()
        elif self._last_batch is not None and time.monotonic() - self._last_batch > IDLE:
            give_back()
            self._last_batch = None

    def _settle(self, notices: Sequence[Notice]) -> None:
        """Refuses what waits here and has ended elsewhere, and looks up what others ask about."""
        for party, notice in enumerate(notices):
            if party == self.party or not notice.ended:
                continue
            for row, waits in zip(
                notice.ended, self._requests.hold(list(notice.ended)), strict=True
            ):
                if waits:
                    self._requests.refuse(
                        row[0],
                        row[1],
                        "lost",
                        f"it has ended at party {party}, and this party was started again since; "
                        "ask anew",
                    )
        asked = [
            row for party, notice in enumerate(notices) if party != self.party for row in notice.old
        ][:MOST_ASKED]
        ended = self._requests.have_ended(asked) if asked else []
        self._ended = tuple(row for row, is_ended in zip(asked, ended, strict=True) if is_ended)

    def _agree(self, session: Session, notice: Notice, started: float) -> None:
        """Settles which requests of a proposal wait at all parties, and computes these."""
        rows = list(notice.batch)
        bound = self._by_digest.get(notice.model)
        held = self._requests.promise(rows, LAG)
        heard = session.told_by_all(bytes(map(int, held)))
        flags = [flags_of(party, content, len(rows)) for party, content in enumerate(heard)]
        missing = [row[:2] for row, *at in zip(rows, *flags, strict=True) if not all(at)]
        rows = [row for row, *at in zip(rows, *flags, strict=True) if all(at)]
        if missing:
            self._requests.release(missing)
        # A party that told the others different things is found before anything is opened.
        session.core.note(b"".join(heard) + digest_of(rows))
        self.observed.time("stage_seconds", time.perf_counter() - started, "agree")
        if bound is None:
            # All parties bind the same models, so all refuse these.
            for client, number, _ in rows:
                self._requests.refuse(
                    client,
                    number,
                    "unknown",
                    "party 0 proposed it for a model that is not served; ask for the models again",
                )
        elif rows:
            with span("tacit.service.batch", model=bound.model.label, requests=len(rows)):
                self._compute(session, bound, rows)

    def _compute(self, session: Session, bound: Bound, rows: Sequence[Row]) -> None:
        """Computes a batch, and gives the clients their results."""
        described, stages = bound.described, _Stages(self.observed)
        words, arrays = shares.empty_words(session, (len(rows), described.given))
        keys = [row[:2] for row in rows]
        ages = self._requests.take(session.core, described.digest, keys, described.given, arrays)
        stages.ended("take")
        results = bound.results(words, len(rows))
        stages.ended("compute")
        sealed = _core.Sealed(session.core, len(rows), [buffers.array(part) for part in results])
        # No client hears of a result before all parties stand behind it.
        session.core.confirm()
        stages.ended("seal")
        self._batches += 1
        tag = _core.blake3(self._tag + self._batches.to_bytes(8, "little"))
        self._requests.answer(keys, bytes.fromhex(tag), sealed)
        stages.ended("answer")
        for age in ages:
            self.observed.time("stage_seconds", age, "queue")
        label = bound.model.name, bound.model.version
        self.observed.count("batches", 1, *label)
        self.observed.count("requests", len(rows), *label, "answered")
        bound.announce(self.service.limits.ahead)
        self._count_traffic(session)

    def _count_refusals(self) -> None:
        for _, cause, times in self._requests.refused():
            self.observed.count("requests", times, "", "", f"refused: {cause}")

    def _count_traffic(self, session: Session) -> None:
        total = session.meter.total
        now = total.bytes_sent, total.bytes_received, total.rounds
        names = "bytes_sent", "bytes_received", "rounds"
        for name, after, before in zip(names, now, self._counted, strict=True):
            self.observed.count(name, after - before)
        self._counted = now
        self.observed.set("correlations_bytes", session.core.correlations()[2])


class _Stages:
    """Times the stages of a batch, one after another."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._since = time.perf_counter()

    def ended(self, stage: str) -> None:
        now = time.perf_counter()
        self._observed.time("stage_seconds", now - self._since, stage)
        self._since = now


def _said(error: TacitError | MemoryError) -> str:
    """Returns what is logged of the error that ended a session: no value of a computation."""
    if isinstance(error, MemoryError):
        return "MemoryError: a batch needs more than this machine has; lower batch in service.toml"
    return f"{type(error).__name__}: {told(error)[0]}"


def _hash_of(loaded: Sequence[Loaded]) -> str:
    """Returns a hash of models that is the same in all parties."""
    return _core.blake3(
        json.dumps([[each.model.label, each.model.owner, each.digest] for each in loaded]).encode()
    )
