"""A server of a federation: it takes clients' submissions, and combines them with the other two
servers in secret.

    with Server.open("federation.toml", number=0) as server:
        for _ in range(rounds):
            report = server.round(model)
            model = report.model

All three servers run the same program. Each round has a new number. Its clients submit their
vectors until its deadline. Then the servers compare, over their own links, whose submissions each
of them holds completely, and continue with those that all of them hold.
"""

import json
import logging
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from tacit import _core, errors
from tacit.errors import MisuseError, TacitError
from tacit.federated.messages import counted
from tacit.federated.privacy.account import Account
from tacit.federated.privacy.joint import check_values
from tacit.federated.rounds.adaptive import bound_of, moved
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.round_state import SERVERS_ROOT, Outcome, RoundError
from tacit.federated.rounds.settings import ROOTS
from tacit.federated.rounds.states import State, change_of, in_a_row, layout_of
from tacit.federated.rounds.steps import Round, Rounds
from tacit.federated.service.attesting import attestation_of, check_adapted
from tacit.federated.service.comparing import compared
from tacit.federated.service.config import Federation
from tacit.federated.service.exchange import content_of, part_of, taken
from tacit.federated.service.explanations import (
    DISAGREEMENT,
    STARTED_AGAIN,
    UNCOUNTED,
    lost,
    refusals_of,
)
from tacit.federated.service.memory import Memory
from tacit.federated.service.model_store import Kept, Models, agreed, announcement
from tacit.federated.service.part_store import Part, Parts
from tacit.federated.service.report import Report
from tacit.federated.service.round_store import Latest, check_same
from tacit.federated.service.startup import (
    account_of,
    common_configuration,
    intake_of,
    latest_of,
    parts_of,
    revoke,
)
from tacit.federated.service.terms import Terms, check_size
from tacit.federated.service.waiting import until_ready
from tacit.meter import Meter
from tacit.parties.spawn import LATE
from tacit.parties.warmup import prepare
from tacit.sessions import PATIENCE, Session, running

_log = logging.getLogger(__name__)

#: Seconds in which clients may still ask why a round failed, before its servers end.
PARTING = 5.0


class Server:
    """One of the three servers, in its session with the others."""

    def __init__(
        self,
        federation: Federation,
        number: int,
        session: Session,
        intake: _core.Intake,
        latest: Latest,
        parts: Parts | None,
        account: Account | None,
        rounds: Rounds,
        rules: Round,
    ) -> None:
        """Sets the state up. See :meth:`open`."""
        self.federation = federation
        self.number = number
        self._session = session
        self._intake = intake
        self._latest = latest
        self._parts = parts
        self._account = account
        #: Clients of the last round that may still ask for its result.
        self._waiting: list[int] = []
        self._rounds, self._norm_log = rounds, latest.known.log
        # These are attested, and so not made again.
        self._rules = self._attested = rules
        self._memory = Memory()
        #: A text that stands for the names and shapes of the model, and its number of values.
        self._layout, self._values = "", 0
        self._common_configuration = common_configuration(federation, self._rules)
        #: The number of the federation's rounds that have ended.
        self.ended = latest.known.ended
        #: Whether no round has begun since this process started.
        self._is_new = True
        #: The round whose parts the servers have sent to clients again since they started; 0 if
        #: there is none; ``None`` before they have compared what they keep.
        self._told_again: int | None = None

    @staticmethod
    @contextmanager
    def open(
        config: str | Path,
        number: int,
        threads: int | None = None,
        listeners: tuple[_core.Listener, _core.Listener] | None = None,
        rounds: Rounds = Round.of,
    ) -> Iterator["Server"]:
        """Connects to the other servers, and opens the intake for the clients.

        Args:
            config: path of the file.
            number: this server's.
            threads: of this process's kernels, and of PyTorch's; all cores if not given.
            listeners: for servers and for clients, if they were made before the file was.
            rounds: makes a round's steps from its settings; needed for a user's own steps.

        Raises:
            SetupError: configuration, addresses, certificates or key are wrong; or servers must
                attest, and this machine cannot, or its rules are not those of the policy.
            PeerError: another server does not connect.
        """
        federation = Federation.read(config)
        if threads is not None:
            torch.set_num_threads(threads)
        own = federation.server(number)
        certificates = federation.certificates_of_servers()
        key = _core.read_private_key(str(own.key))
        account = account_of(federation, number)
        latest = latest_of(federation, number)
        latest.check(account)
        parts = parts_of(federation, number)
        # Settings that are impossible are reported before connecting.
        rules = rounds(federation.settings, account, federation.clients)
        attestation = attestation_of(federation, rules, account)
        for_servers, for_clients = listeners or (
            _core.Listener(own.listen),
            _core.Listener(own.listen_for_clients),
        )
        # PyTorch would import these modules within the first round, after the deadline. They are as
        # much again as it has imported by now.
        for late in LATE:
            import_module(late)
        prepare()
        intake = intake_of(federation, number, for_clients, key, attestation)
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
            attestation=attestation,
        )
        with running(core, PATIENCE) as session:
            server = Server(
                federation, number, session, intake, latest, parts, account, rounds, rules
            )
            try:
                yield server
            except TacitError:
                intake.see_off(server._listening, PARTING)
                raise
            intake.see_off(server._listening, federation.timeout)
        # All three have left the session in order, after they wrote the result of the last round.
        if parts is not None:
            parts.remove()
        latest.end(server.ended)

    @property
    def threat_model(self) -> str:
        """States in one sentence what is protected against whom."""
        return self._session.threat_model

    @property
    def _listening(self) -> list[int]:
        """The clients that may still ask for the last round's result."""
        coordinator = self.federation.settings.coordinator
        return self._waiting if coordinator is None else [coordinator]

    @property
    def attestation(self) -> dict[str, Any] | None:
        """What attestation among the servers has done so far: see ``Session.attestation``."""
        return self._session.attestation

    @property
    def meter(self) -> Meter:
        """The meter: what it sent to the other servers, and how long it waited for them."""
        return self._session.meter

    @property
    def address(self) -> str:
        """The address at which clients reach it, if its port differs from the configuration's."""
        return self._intake.address

    def agree_to_begin(self, rounds: int, kept: Sequence[Kept]) -> Kept | None:
        """Agrees with the other servers on the latest model that all three hold.

        To be called before the first round. Takes two exchanges, since the servers compare their
        announcements before they act on them. If only clients learn results, two more exchanges
        tell clients what they still wait for.

        Args:
            rounds: the number of rounds of this federation, the same at all servers.
            kept: the models that this server holds.

        Returns:
            The model; its ``ended`` is the number of rounds before it. ``None`` if servers are not
            to know the model.

        Raises:
            SetupError: servers hold different models, or were started for different numbers of
                rounds.
            MisuseError: a server's part of a result is too large to be sent.
            PeerError: another server failed.
        """
        told = self._session.told_by_all(announcement(rounds, self.ended, kept))
        # A server that made different announcements would have the others begin from different
        # models.
        self._session.core.note_told(b"\n".join(told))
        self._session.core.confirm()
        self.ended, digest = agreed(told)
        chosen = next(
            (each for each in kept if (each.ended, each.digest) == (self.ended, digest)), None
        )
        if chosen is not None:
            self._latest.count_from(chosen.round)
        if self._parts is not None:
            _, base = self._agree_on_number()
            self._tell_again(self._parts, base)
        return chosen

    def evaluate(self, model: State) -> Report:
        """Asks the clients for metrics of a model, and reveals their weighted means.

        It is a round of its own: clients join it and report, and all learn the means. The model
        stays as it is, and ``ended`` does not count it.

        Args:
            model: as for :meth:`round`.

        Raises:
            MisuseError: the rounds have no ``metrics``.
            PeerError: as :meth:`round`.
        """
        if not self.federation.settings.evaluate_every:
            raise MisuseError(
                "an evaluation needs evaluate_every under [round], in all files, and metrics"
            )
        return self._round(model, None, None, is_evaluation=True)

    def round(
        self, model: State, root: State | None = None, *, models: Models | None = None
    ) -> Report:
        """Asks the clients for their vectors and combines them.

        Args:
            model: the parameters that clients begin from, the same at all servers. If a coordinator
                has them, only their number counts. For a module or a state_dict(), clients hear
                names and shapes, and must submit the same. A row of as many values, as in a report,
                keeps the names. With ``include`` or ``exclude``, only what travels of a state
                counts, and a row has only that.
            root: at the server that the setting ``root`` names, what it trained from that model on
                trusted data. It is shared in the session, and validated as the clients' vectors
                are.
            models: keeps the model after the round, before any client hears of it.

        Raises:
            SetupError: the files to keep cannot be written; no client has heard of the round's
                result. If the disk has no room for them, no client is asked.
            MisuseError: the round would overspend the budget, there is no such model, a root is
                given that is not needed, or one is missing; no client is asked.
            PeerError: another server failed, has another configuration or has lost its account, or
                passed on what a client did not sign.
        """
        return self._round(model, root, models, is_evaluation=False)

    def _round(
        self, model: State, root: State | None, models: Models | None, *, is_evaluation: bool
    ) -> Report:
        if self._account is not None:
            self._account.check_next()
        if models is not None:
            models.check_room()
        revoke(self._intake, self.federation)
        settings = self.federation.settings
        model = self._in_a_row(model)
        trusted = None if is_evaluation else self._root(model, root)
        if settings.noise == "joint":
            check_values(model.numel())
        self._session.core.note(self._common_configuration)
        number, base = self._agree_on_number()
        norm = self._adapted()
        is_of_updates = settings.coordinator is not None
        if is_of_updates:
            model = torch.zeros_like(model)
        layout = "" if is_of_updates else self._layout
        clients = self.federation.clients
        terms = Terms(settings, model.numel(), clients, base, layout, norm, is_evaluation)
        rules = Round.of(terms.rules, None, clients) if is_evaluation else self._rules
        terms.check_words()
        # A model that servers are not to know is not sent: clients have it.
        content = content_of(model[:0] if base or is_of_updates else model)
        told = terms.to_bytes()
        self._session.core.note(told)
        self._session.core.note_public("the model of a round", content)
        if self._is_new and number > 1:
            if self._parts is not None:
                self._tell_again(self._parts, base)
            if self._told_again != number - 1:
                # Clients that wait for that round would otherwise wait until this one is over, and
                # miss it.
                self._intake.tell(number - 1, None, STARTED_AGAIN)
        self._is_new = False
        if self._parts is not None:
            self._parts.begin(base)
            self._parts.check_room(model.numel())
        self._latest.keep(number, base, self._account, log=self._norm_log)
        _log.info("server %d: round %d of %d values began", self.number, number, terms.parameters)
        self._intake.begin(
            self._session.core,
            number,
            *terms.taken_as,
            terms.rules.is_sum,
            told,
            content,
            self.federation.seconds,
            settings.coordinator,
        )
        try:
            submissions, is_closed = self._gathered()
            started = time.perf_counter()
            here = submissions.clients
            common = self._waiting = submissions.agree(self._session.core)
            # The next message detects a server that goes on with another list by mistake.
            self._session.core.note(json.dumps(common).encode())
            outcome, failure = self._combined(rules, submissions, common, terms, trusted, is_closed)
            if self._account is not None and self._account.rounds > self._latest.known.spent:
                self._latest.keep(number, base, self._account)
            learned = model
            if outcome is not None and outcome.vector is not None and not is_evaluation:
                learned = model + outcome.vector.to(torch.float32)
            disagreement, tag = compared(self._session, self.number, learned, outcome, failure)
            if disagreement is None:
                model = learned
            else:
                outcome = Outcome(None, None, (), {} if outcome is None else outcome.refused)
                failure = disagreement
            own = refusals_of(outcome)
            part = None
            if outcome is not None and outcome.sealed is not None:
                part = Part(number, tag, common, own, part_of(self._session, outcome.sealed))
            if outcome is not None and outcome.fraction is not None:
                assert settings.quantile is not None
                self._norm_log = moved(
                    self._norm_log, outcome.fraction, settings.quantile, settings.quantile_rate
                )
            if is_evaluation:
                self._session.core.confirm()
            else:
                self._keep(number, base, model, part, models)
            if is_evaluation and outcome is not None and failure is None:
                content = content_of(torch.tensor(outcome.means, dtype=torch.float32))
                self._intake.tell(number, content, own=own)
            elif part is not None:
                self._intake.tell(number, part.content, is_part=True, own=own)
            elif failure is None:
                self._intake.tell(number, content_of(model), own=own)
            else:
                # After a disagreement, all servers send the same text.
                reason = self._reason(failure) if disagreement is None else DISAGREEMENT
                self._intake.tell(number, None, reason, own=own)
        except TacitError as error:
            _log.warning(
                "server %d: round %d failed: %s", self.number, number, type(error).__name__
            )
            # This server's own error text may contain what clients must not read.
            self._intake.tell(number, None, errors.told(error)[0])
            raise
        refused = self._refused(outcome)
        means = () if outcome is None else outcome.means
        report = Report(
            round=number,
            model=model,
            accepted=[] if outcome is None else list(outcome.accepted),
            dropped=[client for client in here if client not in common],
            late=self._late({client for client, *_ in refused}),
            refused=refused,
            failure=failure,
            seconds=time.perf_counter() - started,
            norm=terms.rules.norm,
            fraction=None if outcome is None else outcome.fraction,
            upload=8 * terms.words,
            step=terms.step,
            metrics=dict(zip(settings.metrics, means, strict=True)) if means else {},
            is_evaluation=is_evaluation,
            epsilons=None if self._account is None else self._account.spent,
        )
        level = logging.INFO if report.failure is None else logging.WARNING
        _log.log(level, "server %d: %s", self.number, report.in_a_line())
        return report

    def _in_a_row(self, model: State) -> torch.Tensor:
        """Returns the model's values that travel. Keeps their names for later rounds of a model of
        the same size."""
        travelling = self.federation.settings.travelling
        layout = layout_of(model, travelling)
        row = (
            model.detach().reshape(-1)
            if isinstance(model, torch.Tensor)
            else in_a_row(model, travelling)
        )
        check_size(row.numel())
        if layout or row.numel() != self._values:
            self._layout, self._values = layout, row.numel()
        return row.to(torch.float32)

    def _root(self, model: torch.Tensor, root: State | None) -> Update | None:
        """Returns this server's own update, if this server is the root."""
        is_wanted = self.federation.settings.root == ROOTS[self.number]
        if is_wanted and root is None:
            raise MisuseError(
                f"server {self.number} is the root of this federation: give round(model, root=...) "
                f"what it trained from the model"
            )
        if root is None:
            return None
        if not is_wanted:
            raise MisuseError(
                f"server {self.number} is not the root of this federation, which is "
                f"{self.federation.settings.root!r}: leave root out"
            )
        travelling = self.federation.settings.travelling
        change = change_of(root, model, self._layout, travelling)
        return self._rules.sent(Outgoing(change, 1.0)).update()

    def _keep(
        self,
        number: int,
        base: int,
        model: torch.Tensor,
        part: Part | None,
        models: Models | None,
    ) -> None:
        """Keeps the outcome of a round for servers that start again, before any client has it.

        No round has ended before all servers have confirmed it.
        """
        # If anything fails before the confirmation, the new file stays next to the old one: another
        # server may have replaced its own already.
        if models is not None:
            models.pend(self.ended + 1, number, model)
        if part is not None and self._parts is not None:
            self._parts.pend(part)
            base = number
        self._session.core.confirm()
        if models is not None:
            models.settle()
        self.ended += 1
        self._latest.keep(number, base, self._account, self.ended, self._norm_log)

    def _tell_again(self, parts: Parts, base: int) -> None:
        """Sends clients this server's part of the result that is their model, if the servers ended
        before all clients had it.

        One exchange, the first time. All three tell their parts, or none does.

        Args:
            parts: what this server keeps.
            base: the round whose result all three servers have counted as the clients' model.
        """
        if self._told_again is not None:
            return
        kept = parts.of(base)
        own = b"" if kept is None else kept.announcement()
        told = self._session.told_by_all(own)
        self._session.core.note_told(b"\n".join(told))
        self._session.core.confirm()
        self._told_again = 0
        if not any(told):
            # The rounds ended in order, after all clients had the result; or none has a result.
            return
        self._told_again = base
        self._waiting = [] if kept is None else kept.clients
        if kept is not None and len(set(told)) == 1:
            self._intake.tell(base, kept.content, is_part=True, own=kept.refused)
            return
        lacking = [str(server) for server, each in enumerate(told) if not each]
        _log.warning(
            "server %d: clients that lack the result of round %d do not get it: %s",
            self.number,
            base,
            f"server {' and server '.join(lacking)} does not have its part any more"
            if lacking
            else "the servers' parts are of different rounds of that number",
        )
        self._intake.tell(base, None, lost(base))

    def _reason(self, failure: str) -> str:
        """Returns why a round has no result, as clients hear it: with noise, without a count of
        clients."""
        return failure if self._account is None else UNCOUNTED

    def _agree_on_number(self) -> tuple[int, int]:
        """Agrees on the round's number, and on the base, the round that made the model that only
        clients have.

        The base is 0 for a model that servers know, too. An account that is one round behind, as
        that of a server that ended within the round, catches up.
        """
        own = self._latest.to_bytes(self._account)
        told = self._session.told_by_all(own)
        # The next message detects a server that sent different counts to the others.
        self._session.core.note_told(b"\n".join(told))
        if not self._is_new:
            check_same(told, own)
        bases = None
        if self._parts is not None:
            # Files are replaced, and clients told, by what was compared.
            self._session.core.confirm()
            bases = self._parts.bases(self._latest.known.base)
        known = self._latest.agreed(told, bases)
        if self._account is not None:
            self._account.catch_up(known.spent)
        self._norm_log = known.log
        return known.number, known.base

    def _adapted(self) -> float | None:
        """Gives the round its bound, if that follows a quantile, and returns it."""
        settings = self.federation.settings
        if settings.quantile is None:
            return None
        norm = bound_of(settings.norm, self._norm_log)
        adapted = replace(settings, norm=norm)
        rules = self._rounds(adapted, self._account, self.federation.clients)
        check_adapted(self.federation, adapted, self._account, self._attested, rules)
        self._rules = rules
        return norm

    def _gathered(self) -> tuple[_core.Submissions, bool]:
        """Waits for submissions, then closes the intake, even if a server fails.

        Returns:
            The complete submissions, and whether the coordinator ended the round.
        """
        try:
            is_closed = until_ready(self._session, self._intake, self.federation)
        finally:
            submissions = self._intake.end()
            self._waiting = submissions.clients
        return submissions, is_closed

    def _combined(
        self,
        rules: Round,
        submissions: _core.Submissions,
        clients: list[int],
        terms: Terms,
        root: Update | None,
        is_closed: bool,
    ) -> tuple[Outcome | None, str | None]:
        """Runs the round's steps on the submissions; returns the outcome, or why there is none."""
        minimum = max(1, self.federation.settings.minimum_clients)
        if len(clients) < minimum:
            remedy = (
                "the coordinator says that nobody else comes: it has to ask more clients, and the "
                "logs of those who failed say why"
                if is_closed
                else "give clients more seconds, or rounds a smaller minimum_clients"
            )
            return (
                None,
                f"the vectors of {counted(len(clients), 'client')} are whole at all servers, and "
                f"{minimum} are needed; {remedy}",
            )
        submitted = taken(self._session, submissions, clients, terms, root, self._memory)
        try:
            return rules.secret(submitted), None
        except RoundError as failed:
            return Outcome(None, None, (), failed.refused), str(failed)

    def _late(self, refused: Collection[int | None]) -> list[int]:
        """Returns the clients that submitted nothing; excludes the coordinator, which never
        submits."""
        excused = {*refused, self.federation.settings.coordinator}
        return [client for client in self._intake.missing() if client not in excused]

    def _refused(self, outcome: Outcome | None) -> list[tuple[int | None, str, int]]:
        found = {} if outcome is None else outcome.refused
        # The failure of the round reports the refusal of a server's own vector.
        own = [(client, reason, 1) for client, reason in found.items() if client != SERVERS_ROOT]
        return [*self._intake.refused(), *own]
