"""A server of a federation: it takes what clients hand in, and combines it with the other two, in
secret.

    with Server.open("federation.toml", number=0) as server:
        for _ in range(rounds):
            report = server.round(model)
            model = report.model

All three run the same. A round has a number that was never there before; its clients hand in their
vectors until its deadline. Then the servers compare, over their own links, whom each has whole, and
go on with those whom all have.
"""

import json
import logging
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch

from tacit import _core, errors
from tacit.errors import DeviationError, MisuseError, TacitError
from tacit.federated.messages import counted
from tacit.federated.privacy.account import Account, Epsilons
from tacit.federated.privacy.joint import check_values
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.round_state import Outcome, RoundError
from tacit.federated.rounds.settings import ROOTS
from tacit.federated.rounds.states import State, change_of, in_a_row, layout_of
from tacit.federated.rounds.steps import SERVERS_ROOT, TOO_LONG, Round, Rounds
from tacit.federated.service.config import SERVERS, Federation
from tacit.federated.service.exchange import content_of, is_sum, part_of, taken
from tacit.federated.service.memory import Memory
from tacit.federated.service.model_store import Kept, Models, agreed, announcement
from tacit.federated.service.round_store import Latest
from tacit.federated.service.startup import account_of, alike, latest_of
from tacit.federated.service.terms import Terms, check_size
from tacit.meter import Meter
from tacit.parties.spawn import LATE
from tacit.parties.warmup import prepare
from tacit.sessions import PATIENCE, Session, running

_log = logging.getLogger(__name__)

#: Seconds after which servers that wait for clients tell each other that they still do.
TOGETHER = 5.0

#: What servers that wait for clients tell each other: whether there is somebody to wait for, or the
#: coordinator says that there is not.
WAITING, READY, CLOSED = b"waiting", b"ready", b"closed"

#: Why a round with noise comes to nothing, as clients hear it.
UNCOUNTED = "too few clients count in this round"

#: Why a round comes to nothing where a server deviated.
UNLIKE = "the servers came to different results"

#: Why a client's submission does not count, as it alone is told; by the reason in the reports,
#: which is told as it is where a step of one's own gives another.
OWN = {
    TOO_LONG: (
        "its norm is above the bound, or above the part of it that its weight allows, or its "
        "weight is not "
        "from 0 to 1 (or a server deviates)"
    )
}

#: Seconds in which clients may ask why a round failed that ends its servers.
PARTING = 5.0

#: What a client hears that still waits for a round from before its servers started again.
STARTED_AGAIN = (
    "the servers have started again since this round; what it came to, if it ended, is in the "
    "model that the "
    "next round tells: join that one"
)


@dataclass(frozen=True)
class Report:
    """What a round came to."""

    round: int
    #: The parameters after it; those before it, where it came to nothing or only clients learn the
    #: result. Where a coordinator has the model, what the updates were combined to, or zeros.
    model: torch.Tensor
    #: The clients that count.
    accepted: list[int]
    #: Those whom this server has whole and another one has not.
    dropped: list[int]
    #: Those who were told of the round, and were silent until its end.
    late: list[int]
    #: Who was refused since the last report, why, and how often. A client that is not known is
    #: None.
    refused: list[tuple[int | None, str, int]]
    #: Why it came to nothing, if it did.
    failure: str | None
    seconds: float
    #: What has been spent so far, this round included; ``None`` where there is no noise and no
    #: account.
    epsilons: Epsilons | None


class Server:
    """One of the three, in its session with the others."""

    def __init__(
        self,
        federation: Federation,
        number: int,
        session: Session,
        intake: _core.Intake,
        latest: Latest,
        account: Account | None,
        rules: Round,
    ) -> None:
        """See :meth:`open`."""
        self.federation = federation
        self.number = number
        self._session = session
        self._intake = intake
        self._latest = latest
        self._account = account
        #: Clients whom the last round took, and who may still ask for its result.
        self._waiting: list[int] = []
        self._rules = rules
        self._memory = Memory()
        #: What stands for the names and shapes of the model, and how many values it has.
        self._layout, self._values = "", 0
        self._alike = alike(federation, rules)
        #: Rounds of the federation that came to an end.
        self.ended = latest.known.ended
        #: Whether no round has begun since it started.
        self._is_new = True

    @staticmethod
    @contextmanager
    def open(
        config: str | Path,
        number: int,
        threads: int | None = None,
        listeners: tuple[_core.Listener, _core.Listener] | None = None,
        rounds: Rounds = Round.of,
    ) -> Iterator["Server"]:
        """Meets the other servers, and opens the intake to the clients.

        Args:
            config: path of the file.
            number: this server's.
            threads: of this process's kernels; all cores if not given.
            listeners: for servers and for clients, where they were made before the file was.
            rounds: what makes the steps of a round of its settings, where some are one's own.

        Raises:
            SetupError: configuration, addresses, certificates or key are wrong.
            PeerError: another server does not come.
        """
        federation = Federation.read(config)
        own = federation.server(number)
        certificates = federation.certificates_of_servers()
        key = _core.read_private_key(str(own.key))
        account = account_of(federation, number)
        latest = latest_of(federation, number)
        latest.check(account)
        # What cannot be done is known before anybody is met.
        rules = rounds(federation.settings, account, federation.clients)
        for_servers, for_clients = listeners or (
            _core.Listener(own.listen),
            _core.Listener(own.listen_for_clients),
        )
        clients = federation.certificates_of_clients()
        # Else PyTorch would import as much again as it is within the first round, after the
        # deadline.
        for late in LATE:
            import_module(late)
        prepare()
        intake = _core.Intake(for_clients, federation.name, certificates, number, key, clients)
        core = _core.Session.connect_local(
            for_servers,
            number,
            [server.address for server in federation.servers],
            certificates,
            key,
            federation.settings.protocol,
            federation.timeout,
            threads,
            servers=True,
        )
        with running(core, PATIENCE) as session:
            server = Server(federation, number, session, intake, latest, account, rules)
            yield server
            intake.see_off(server._listening, federation.timeout)
        # All three have left the session in order, after they wrote what the last round came to.
        latest.end(server.ended)

    @property
    def threat_model(self) -> str:
        """In one sentence, what is protected against whom."""
        return self._session.threat_model

    @property
    def _listening(self) -> list[int]:
        """Clients who may still ask for the last round's result."""
        coordinator = self.federation.settings.coordinator
        return self._waiting if coordinator is None else [coordinator]

    @property
    def meter(self) -> Meter:
        """What it sent to the other servers, and how long it waited for them."""
        return self._session.meter

    @property
    def address(self) -> str:
        """Where clients reach it, if at another port than the configuration's."""
        return self._intake.address

    def agree_to_begin(self, rounds: int, kept: Sequence[Kept]) -> Kept | None:
        """The latest model that all three servers hold, of those that this one does; ``ended`` is
        how many rounds came before it. Nothing of models that servers are not to know. Before the
        first round; two
        exchanges: what each told is compared before anything follows from it.

        Args:
            rounds: how many of this federation are to be, the same at all servers.
            kept: what this server holds.

        Raises:
            SetupError: servers hold different models, or are to do unlike numbers of rounds.
            PeerError: another server failed.
        """
        told = self._session.told_by_all(announcement(rounds, self.ended, kept))
        # One that told the others unlike things would have them begin from unlike models.
        self._session.core.note_told(b"\n".join(told))
        self._session.core.confirm()
        self.ended, digest = agreed(told)
        chosen = next(
            (each for each in kept if (each.ended, each.digest) == (self.ended, digest)), None
        )
        if chosen is not None:
            self._latest.count_from(chosen.round)
        return chosen

    def round(
        self, model: State, root: State | None = None, *, models: Models | None = None
    ) -> Report:
        """Asks the clients for their vectors and combines them.

        Args:
            model: the parameters that clients begin from, the same at all servers; where a
                coordinator has them, no more than their number counts. Of a module or a
                state_dict() clients hear names and shapes, to hand in the same; a row of as many
                values, as a report has it, keeps them.
            root: at the server that the setting ``root`` names, what it trained from that model on
                data that are trusted. It is shared in the session, and validated as the vectors of
                clients are.
            models: where the model after the round is kept, before any client hears of it.

        Raises:
            SetupError: what is to be kept cannot be written; no client has heard of the round's
                result. If there is no room for it, no client is asked.
            MisuseError: the round would overspend the budget, there is no such model, or a root
                that is not wanted, or none that is; no client is asked.
            PeerError: another server failed, has another configuration or has lost its account, or
                passed on what a client did not sign.
        """
        if self._account is not None:
            self._account.check_next()
        if models is not None:
            models.check_room()
        model = self._in_a_row(model)
        trusted = self._root(model, root)
        if self.federation.settings.noise == "joint":
            check_values(model.numel())
        self._session.core.note(self._alike)
        number, base = self._agree_on_number()
        is_of_updates = self.federation.settings.coordinator is not None
        if is_of_updates:
            model = torch.zeros_like(model)
        layout = "" if is_of_updates else self._layout
        terms = Terms(
            self.federation.settings, model.numel(), self.federation.clients, base, layout
        )
        # What servers are not to know, clients have.
        content = content_of(model[:0] if base or is_of_updates else model)
        told = terms.to_bytes()
        self._session.core.note(told)
        self._session.core.note_public("the model of a round", content)
        self._latest.keep(number, base, self._account)
        if self._is_new and number > 1:
            # Else whoever waits for that one would wait until this one is over, and be missed in
            # it.
            self._intake.tell(number - 1, None, STARTED_AGAIN)
        self._is_new = False
        _log.info("server %d: round %d of %d values began", self.number, number, terms.parameters)
        self._intake.begin(
            self._session.core,
            number,
            terms.numbers,
            terms.settings.word_bits,
            is_sum(terms.settings),
            told,
            content,
            self.federation.seconds,
            self.federation.settings.coordinator,
        )
        try:
            submissions, is_closed = self._gathered()
            started = time.perf_counter()
            here = submissions.clients
            common = self._waiting = submissions.agree(self._session.core)
            # One that told the others unlike lists is found out by the next message.
            self._session.core.note(json.dumps(common).encode())
            outcome, failure = self._combined(submissions, common, terms, trusted, is_closed)
            if self._account is not None and self._account.rounds > self._latest.known.spent:
                self._latest.keep(number, base, self._account)
            learned = model
            if outcome is not None and outcome.vector is not None:
                learned = model + outcome.vector.to(torch.float32)
            unlike = self._unlike(learned, outcome, failure)
            if unlike is None:
                model = learned
            else:
                outcome, failure = (
                    Outcome(None, None, (), {} if outcome is None else outcome.refused),
                    unlike,
                )
            self._keep(number, base, model, outcome, models)
            self._tell(number, model, outcome, failure, is_unlike=unlike is not None)
        except TacitError as error:
            _log.warning(
                "server %d: round %d failed: %s", self.number, number, type(error).__name__
            )
            # A text of this server's own may quote what clients are not to read.
            self._intake.tell(number, None, errors.told(error)[0])
            self._intake.see_off(self._listening, PARTING)
            raise
        refused = self._refused(outcome)
        report = Report(
            round=number,
            model=model,
            accepted=[] if outcome is None else list(outcome.accepted),
            dropped=[client for client in here if client not in common],
            late=self._late({client for client, *_ in refused}),
            refused=refused,
            failure=failure,
            seconds=time.perf_counter() - started,
            epsilons=None if self._account is None else self._account.spent,
        )
        self._log_end(report)
        return report

    def _log_end(self, report: Report) -> None:
        _log.log(
            logging.INFO if report.failure is None else logging.WARNING,
            "server %d: round %d %s after %.3f s: %d clients count, %d dropped, %d late, %d refused",
            self.number,
            report.round,
            "ended" if report.failure is None else "came to nothing",
            report.seconds,
            len(report.accepted),
            len(report.dropped),
            len(report.late),
            len(report.refused),
        )

    def _in_a_row(self, model: State) -> torch.Tensor:
        """The values; what they are called is kept for the rounds to come, of as many."""
        layout = layout_of(model)
        row = model.detach().reshape(-1) if isinstance(model, torch.Tensor) else in_a_row(model)
        check_size(row.numel())
        if layout or row.numel() != self._values:
            self._layout, self._values = layout, row.numel()
        return row.to(torch.float32)

    def _root(self, model: torch.Tensor, root: State | None) -> Update | None:
        """What this server hands in itself, if it is the one that is trusted."""
        is_wanted = self.federation.settings.root == ROOTS[self.number]
        if is_wanted and root is None:
            raise MisuseError(
                f"server {self.number} is the root of this federation: give round(model, root=...) "
                f"what it "
                "trained from the model"
            )
        if root is None:
            return None
        if not is_wanted:
            raise MisuseError(
                f"server {self.number} is not the root of this federation, which is "
                f"{self.federation.settings.root!r}: leave root out"
            )
        return self._rules.sent(Outgoing(change_of(root, model, self._layout), 1.0)).update()

    def _keep(
        self,
        number: int,
        base: int,
        model: torch.Tensor,
        outcome: Outcome | None,
        models: Models | None,
    ) -> None:
        """What a round came to, for servers that start again: before any client has it. No round
        has ended before all servers stand behind it."""
        # Whatever goes wrong in the meantime, it stays beside: another server may have given it its
        # place.
        if models is not None:
            models.pend(self.ended + 1, number, model)
        self._session.core.confirm()
        if models is not None:
            models.settle()
        self.ended += 1
        is_for_clients = outcome is not None and outcome.sealed is not None
        if is_for_clients and self.federation.settings.coordinator is None:
            base = number
        self._latest.keep(number, base, self._account, self.ended)

    def _unlike(
        self, learned: torch.Tensor, outcome: Outcome | None, failure: str | None
    ) -> str | None:
        """Why no server goes on from what it came to, where these are not the same; what only
        clients see cannot be compared. One round.

        Where one of three deviates, nobody can say which: what one sends wrong to another may be
        right at the third, and at itself. But each knows that it is not itself.
        """
        if outcome is None or failure is not None:
            own = b"nothing"
        elif outcome.sealed is not None:
            own = b"sealed"
        else:
            own = _core.blake3(content_of(learned).tobytes()).encode()
        told = self._session.told_by_all(own)
        # One that told the others unlike things makes steps differ, which ``confirm`` finds.
        self._session.core.note(b",".join(told))
        if len(set(told)) == 1:
            return None
        others = " or ".join(f"server {other}" for other in range(SERVERS) if other != self.number)
        return (
            f"{UNLIKE}: {others} deviates, and which of these cannot be told. No server goes on "
            f"from what it "
            "came to"
        )

    def _tell(
        self,
        number: int,
        model: torch.Tensor,
        outcome: Outcome | None,
        failure: str | None,
        *,
        is_unlike: bool = False,
    ) -> None:
        """What a round came to, to its clients, and to each whether its own
        submission was refused."""
        refused = {} if outcome is None else outcome.refused
        own = {
            client: f"what this client handed in was refused and does not count: "
            f"{OWN.get(reason, reason)}"
            for client, reason in refused.items()
            if client != SERVERS_ROOT
        }
        if is_unlike:
            # The same at all.
            self._intake.tell(number, None, UNLIKE, own=own)
        elif outcome is None or failure is not None:
            self._intake.tell(number, None, self._reason(failure or ""), own=own)
        elif outcome.sealed is None:
            self._intake.tell(number, content_of(model), own=own)
        else:
            self._intake.tell(number, part_of(self._session, outcome.sealed), is_part=True, own=own)

    def _reason(self, failure: str) -> str:
        """Why a round came to nothing, as clients hear it: where there is noise, no count of
        clients is told."""
        return failure if self._account is None else UNCOUNTED

    def _agree_on_number(self) -> tuple[int, int]:
        """The round's number, and which round made the model that only clients have; 0 for what all
        know. An account that is one round behind, as of a server that ended within it, catches
        up."""
        own = self._latest.to_bytes(self._account)
        told = self._session.told_by_all(own)
        # One that told the others unlike things is found out by the next message.
        self._session.core.note_told(b"\n".join(told))
        known = self._latest.agreed(told)
        if self._account is not None:
            self._account.catch_up(known.spent)
        return known.number, known.base

    def _gathered(self) -> tuple[_core.Submissions, bool]:
        """What is whole here in the end, and whether the coordinator ended the round. It is closed
        for clients then, also where a server fails."""
        try:
            is_closed = self._wait()
        finally:
            submissions = self._intake.end()
            self._waiting = submissions.clients
        return submissions, is_closed

    def _wait(self) -> bool:
        """Until every server has all clients whole, or its deadline is over, or the coordinator has
        told it that nobody else comes; they hear of each other. Whether the last was the reason at
        one of them.

        A coordinator that tells servers unlike things changes when the round ends, and nothing
        else: who counts they compare afterwards.

        Raises:
            PeerError: a server is not ready long after the deadline.
        """
        until = time.monotonic() + self.federation.seconds + self.federation.timeout
        is_past = False
        while True:
            # What the others say may be from before their deadline, however late it is now: on a
            # machine that was busy, or slept. Unless it is past before the last exchange, which
            # they answer after it.
            was_past, is_past = is_past, time.monotonic() > until
            ready = self._intake.wait(
                self.federation.submitting, min(TOGETHER, self.federation.timeout / 4)
            )
            own = WAITING if not ready else CLOSED if self._intake.is_closed() else READY
            told = self._session.told_by_all(own)
            late = [server for server, each in enumerate(told) if each not in (READY, CLOSED)]
            if not late:
                return CLOSED in told
            if was_past:
                raise DeviationError.of(
                    late[0], "was not ready after the deadline of the round", "server"
                )

    def _combined(
        self,
        submissions: _core.Submissions,
        clients: list[int],
        terms: Terms,
        root: Update | None,
        is_closed: bool,
    ) -> tuple[Outcome | None, str | None]:
        """What the round's steps make of it, or why there is nothing."""
        minimum = max(1, self.federation.settings.minimum_clients)
        if len(clients) < minimum:
            remedy = (
                "the coordinator says that nobody else comes: it has to ask more clients, and the "
                "logs of "
                "those who failed say why"
                if is_closed
                else "give clients more seconds, or rounds a smaller minimum_clients"
            )
            return (
                None,
                f"the vectors of {counted(len(clients), 'client')} are whole at all servers, and "
                f"{minimum} "
                f"are needed; {remedy}",
            )
        submitted = taken(self._session, submissions, clients, terms, root, self._memory)
        try:
            return self._rules.secret(submitted), None
        except RoundError as failed:
            return Outcome(None, None, (), failed.refused), str(failed)

    def _late(self, refused: Collection[int | None]) -> list[int]:
        """Who was silent; the coordinator always is."""
        excused = {*refused, self.federation.settings.coordinator}
        return [client for client in self._intake.missing() if client not in excused]

    def _refused(self, outcome: Outcome | None) -> list[tuple[int | None, str, int]]:
        found = {} if outcome is None else outcome.refused
        # That a server's own vector is refused the failure says.
        own = [(client, reason, 1) for client, reason in found.items() if client != SERVERS_ROOT]
        return [*self._intake.refused(), *own]
