"""A client of a federation. It trains on its own data, and its update stays secret.

    client = tacit.federated.Client("federation.toml", number=7)
    task = client.join()
    receipt = client.submit(train(task.model), weight=len(data))
    model = client.result()         # or go offline, and join the next round

It needs no session and none of the servers' programs: only one outgoing connection to each server.
"""

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from tacit import _core, fixed
from tacit.config_files import threat_model_of
from tacit.errors import MisuseError, SubmissionWarning, peer_error, refused_error
from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.rounds import width
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.metrics import with_metrics
from tacit.federated.rounds.participation import is_drawn, zeroed
from tacit.federated.rounds.round_state import RoundError
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.states import State, change_of, load
from tacit.federated.rounds.steps import Round, Rounds
from tacit.federated.service.config import SERVERS, Federation
from tacit.federated.service.rejoining import Measured, Trained, rounds_of
from tacit.federated.service.remarks import capped, remarks
from tacit.federated.service.terms import Terms
from tacit.federated.validation import UNIT

_log = logging.getLogger(__name__)

#: Default seconds to wait for a round, or for its result.
PATIENCE = 3600.0

Number = TypeVar("Number", np.float32, np.int64)

#: A built-in aggregator that has no client's half.
_NOTHING_TO_DO = "median"


@dataclass(frozen=True)
class Task:
    """A round that a client may take part in."""

    round: int
    #: The values that travel to begin from, in a row. Zeros if a coordinator has the model: then a
    #: submitted state is an update, and so is the result.
    model: torch.Tensor
    settings: Settings
    #: Seconds left for submissions when the client joined.
    deadline: float
    #: All clients of the federation.
    clients: int
    #: Stands for the names and shapes of the model's tensors, if the servers know them.
    layout: str = ""
    #: Whether the round is of metrics of the model alone: :meth:`Client.report` them.
    is_evaluation: bool = False

    @property
    def norm(self) -> float:
        """The norm that an update, the difference from ``model``, may have."""
        return self.settings.norm

    @property
    def bound(self) -> str:
        """The servers' treatment of a longer update: "refuse" it, "clip" it, or "none"."""
        return self.settings.bound

    def load_into(self, module: torch.nn.Module, values: torch.Tensor | None = None) -> None:
        """Writes values into those tensors of a module that travel; the others stay as they are.

        Args:
            module: a module of the servers' model.
            values: ``model``, or what :meth:`Client.result` returned, in a row; ``model`` if not
                given.

        Raises:
            MisuseError: the module has other names or shapes than the servers' model, or a pattern
                of ``include`` or ``exclude`` matches none of its tensors; the error names the
                first.
        """
        values = self.model if values is None else values
        load(values, module, self.layout, self.settings.travelling)


@dataclass(frozen=True)
class Receipt:
    """Proof that all three servers hold a complete submission.

    The submission counts unless the servers find it too long. :attr:`Client.receipt` reports that
    after :meth:`Client.result`.
    """

    round: int
    #: Hash that identifies what the client signed; the servers' reports name it too.
    digest: str
    #: The weight that counts: the given one, or the rounds' ``greatest_weight`` if that is less.
    #: With 16 or 8 bits it is rounded to steps.
    weight: float
    #: The factor that shortened the update, if its norm was above the bound: the bound over that
    #: norm. 1 if it was not above. The servers do not learn it.
    shortened: float = 1.0
    #: With 16 or 8 bits: the factor that shortened the update besides, since rounding to steps made
    #: it longer than the bound. 1 if it did not. The servers do not learn it.
    by_rounding: float = 1.0
    #: Why the servers refused the submission, if they did so in a round that has a result.
    refused: str | None = None


class Client:
    """One of a federation's clients."""

    def __init__(self, config: str | Path, number: int, rounds: Rounds = Round.of) -> None:
        """Reads the configuration. Connects to no server yet.

        Args:
            config: the federation's file.
            number: which client this is.
            rounds: makes a round's steps from its settings; needed for a user's own steps.

        Raises:
            SetupError: configuration, certificates or key are wrong.
            MisuseError: there is no client of that number.
        """
        federation = Federation.read(config)
        certificate, key = federation.identity_of(number)
        addresses = [server.clients for server in federation.servers]
        certificates = federation.certificates_of_servers()
        self.number = number
        self._settings = federation.settings
        judging = federation.judging
        self._core = _core.Client(
            federation.name,
            certificates,
            addresses,
            number,
            certificate,
            key,
            judging,
            federation.authority_text(),
        )
        protected = _core.threat_model(federation.settings.protocol, SERVERS)
        self._threat_model = threat_model_of(protected, judging)
        if judging is not None:
            _log.info("client %d: %s", number, self._threat_model)
        self._rounds = rounds
        self._latest = 0
        #: If servers do not know the model: the round that made the model this client has, and that
        #: model.
        self._base = 0
        self._model: torch.Tensor | None = None
        self._task: tuple[_core.Task, Task] | None = None
        #: The receipt of the latest submission.
        self.receipt: Receipt | None = None
        #: Whether this client counts in the joined round, which only it knows: see
        #: ``participation``.
        self._is_drawn = True

    def join(self, timeout: float = PATIENCE) -> Task:
        """Waits for a round that this client has not joined before.

        Returns:
            The round's task.

        Raises:
            PeerError: a server cannot be reached, or the servers contradict each other; or servers
                must attest, and one has no evidence that this client's policy accepts.
            RefusedError: a server refuses this client.
        """
        told = self._core.join(self._latest, timeout)
        terms = Terms.from_bytes(told.terms)
        self._check(terms.settings)
        if (terms.norm is None) != (terms.settings.quantile is None):
            raise peer_error("the servers sent a bound of the round that its rules do not have")
        if terms.base < self._base and terms.settings.coordinator is None:
            raise peer_error(
                f"the servers go on from the model of round {terms.base}, and this client has that "
                f"of round {self._base}: servers never go back. If all three were begun anew, "
                "start this client's program again; else one of them deviates"
            )
        if terms.settings.coordinator is not None:
            model = torch.zeros(terms.parameters)
        else:
            model = self._known(terms.base) if terms.base else _floats(told.model)
        if told.words != terms.words or len(model) != terms.parameters:
            raise peer_error("the servers sent a model whose size is not the announced one")
        task = Task(
            told.round,
            model,
            terms.rules,
            told.left,
            terms.clients,
            terms.layout,
            terms.is_evaluation,
        )
        self._latest, self._task = told.round, (told, task)
        self._is_drawn = is_drawn(terms.settings.sampling)
        _log.info(
            "client %d joined round %d of %d values", self.number, task.round, terms.parameters
        )
        return task

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes sent to all servers so far, and received from them; TLS is included."""
        return self._core.traffic

    @property
    def threat_model(self) -> str:
        """One sentence that says what is protected against whom."""
        return self._threat_model

    @property
    def verified(self) -> int:
        """How often this client has accepted a server's evidence: once for each connection, if
        servers attest."""
        return self._core.verified

    def _check(self, settings: Settings) -> None:
        """Checks that the servers' rules are those that this client's configuration has."""
        ours = vars(self._settings)
        differing = [name for name, told in vars(settings).items() if told != ours[name]]
        if differing:
            name = differing[0]
            raise peer_error(
                f"the servers' rounds have {name} = {vars(settings)[name]!r}, this client's "
                f"configuration {ours[name]!r}; the table [round] is the same for all"
            )

    def take_up(self, model: torch.Tensor, base: int) -> None:
        """Continues with the model that resulted from a round.

        A client needs this if servers do not know the model (``result_to = "clients"``) and it
        missed a round or was started again: then it cannot get the model from them.

        Args:
            model: what :meth:`result` returned to another client, or to this one before it ended.
            base: that round's number, as in its task and its receipt.
        """
        self._base, self._model = base, model.detach().reshape(-1).to(torch.float32)

    def _known(self, base: int) -> torch.Tensor:
        if self._model is None or self._base != base:
            raise MisuseError(
                f"the model of this round is the result of round {base}, which servers do not "
                "know, and this client was not there: take_up(model, round) it from a client that "
                "was; if no client has it, because the servers ended before they sent it, all "
                f"clients take_up the model that they had before, as that of round {base}"
            )
        return self._model

    def submit(
        self, state: State, weight: float = 1.0, metrics: Mapping[str, float] | None = None
    ) -> Receipt:
        """Submits what was trained: its difference from the task's model, secret-shared with the
        servers.

        Args:
            state: the trained parameters. If servers know the names and shapes of the model, a
                module or its state_dict() must have the same; a row has none. With ``include`` or
                ``exclude``, tensors that do not travel stay here; a row has only the values that
                do.
            weight: the count of examples, if clients have different weights. More than the rounds'
                greatest_weight counts as that; a warning and the receipt report it.
            metrics: what the rounds' ``metrics`` name, such as the accuracy of the task's model on
                this client's own examples. Servers learn means over the clients, weighted as
                updates are. Values beyond ``greatest_metric`` are cut off, with a warning.

        Returns:
            A receipt. If an update is longer than the bound, a warning and the receipt report this
            and the factor that shortened it. A warning also reports if the whole update, or the
            weight, is so small that zeros are sent.

        Raises:
            EncodingError: a value is NaN, infinite or too far from the task's model; the error
                names it and the limit. Or the norm is beyond what float64 holds.
            MisuseError: no round was joined; the state has another size than its model, or other
                names, order or shapes than the servers know of it (the error names the first), or
                holds something else than dense tensors of real numbers; a pattern of ``include`` or
                ``exclude`` matches none of its tensors; the weight is not a positive number, or is
                above 1 while the rounds have no ``greatest_weight``; metrics have other names than
                the rounds'; or this client is the coordinator.
            RefusedError: a server refused it, as too late or against the round's rules.
            PeerError: a server cannot be reached; the submission does not count then.
        """
        if self._task is None:
            raise MisuseError("no round was joined: call join() first")
        core, task = self._task
        if task.settings.coordinator == self.number:
            raise MisuseError(f"client {self.number} is the coordinator, who hands in nothing")
        if not isinstance(weight, Real):
            raise MisuseError(
                f"weight is of type {type(weight).__name__}; it is a number, such as a count"
            )
        if task.is_evaluation:
            raise MisuseError(
                f"round {task.round} is an evaluation of the model: report(metrics) of it instead"
            )
        change = change_of(state, task.model, task.layout, task.settings.travelling)
        rules = self._rounds(_clients_half(task.settings), None, task.clients)
        sent = rules.sent(Outgoing(change, float(weight)))
        counts = min(float(weight), task.settings.greatest_weight or 1.0)
        for remark in remarks(sent, float(weight), counts, task.norm):
            warnings.warn(remark, SubmissionWarning, stacklevel=2)
        return self._send(core, task, sent, counts, metrics)

    def report(self, metrics: Mapping[str, float], weight: float = 1.0) -> Receipt:
        """Reports metrics of the task's model, in a round that is an evaluation.

        Servers and clients learn the means over the clients, weighted by ``weight``, and nothing
        else. :meth:`result` returns them, in the order of the rounds' ``metrics``.

        Args:
            metrics: what the rounds' ``metrics`` name, of this client's own examples.
            weight: as for :meth:`submit`.

        Raises:
            MisuseError: no round was joined, or it is no evaluation; or as :meth:`submit`.
            EncodingError: a metric is NaN or infinite.
            RefusedError: a server refused it, as too late or against the round's rules.
            PeerError: a server cannot be reached; the report does not count then.
        """
        if self._task is None:
            raise MisuseError("no round was joined: call join() first")
        core, task = self._task
        if task.settings.coordinator == self.number:
            raise MisuseError(f"client {self.number} is the coordinator, who hands in nothing")
        if not task.is_evaluation:
            raise MisuseError(
                f"round {task.round} is no evaluation: submit() what was trained, with its metrics"
            )
        if not isinstance(weight, Real):
            raise MisuseError(
                f"weight is of type {type(weight).__name__}; it is a number, such as a count"
            )
        nothing = Update(torch.zeros(1, dtype=torch.float64), float(weight))
        rules = Round.of(_clients_half(task.settings), None, task.clients)
        sent = rules.sent(Outgoing.of(nothing))
        counts = min(float(weight), task.settings.greatest_weight or 1.0)
        if counts < weight:
            warnings.warn(capped(float(weight), counts), SubmissionWarning, stacklevel=2)
        return self._send(core, task, sent, counts, metrics)

    def _send(
        self,
        core: _core.Task,
        task: Task,
        sent: Outgoing,
        counts: float,
        metrics: Mapping[str, float] | None,
    ) -> Receipt:
        """Sends what all steps made, with metrics."""
        receipt = _receipt(task, sent, counts)
        names, greatest = task.settings.metrics, task.settings.greatest_metric
        sent, cut = with_metrics(sent, metrics, names, greatest)
        for name in cut:
            remark = f"the metric {name} is beyond the rounds' greatest_metric of {greatest:g}"
            warnings.warn(f"{remark}, and counts as that", SubmissionWarning, stacklevel=3)
        # After all steps, so that no step can undo it.
        sent = sent if self._is_drawn else zeroed(sent)
        bits, grid = task.settings.word_bits, task.settings.grid(task.clients)
        steps, weight_steps = (UNIT, UNIT) if grid is None else (grid.steps, grid.weight_steps)
        digest = self._core.submit(
            core,
            sent.change.pieces,
            sent.change.from_there,
            factor=sent.factor * steps,
            limit=width.limit(bits, task.clients) * UNIT if grid is None else grid.limit + 1.0,
            weight=round(sent.weight * weight_steps),
            bits=bits,
        )
        self.receipt = replace(receipt, digest=digest.hex())
        # Logs neither weight nor norm, which are private.
        _log.info("client %d handed in a vector for round %d", self.number, task.round)
        return self.receipt

    def close(self, timeout: float = PATIENCE) -> None:
        """Ends the joined round before its deadline, as the coordinator.

        It tells the servers that all clients that it asked have submitted or failed. Complete
        submissions count.

        Raises:
            MisuseError: no round was joined, or this client is not the coordinator.
            RefusedError: a server's rules name another coordinator.
            PeerError: a server cannot be reached; the round ends at its deadline then.
        """
        if self._task is None:
            raise MisuseError("no round was joined: call join() first")
        core, task = self._task
        if task.settings.coordinator != self.number:
            raise MisuseError(
                f"client {self.number} is not the coordinator, who alone ends a round"
            )
        self._core.close(core.round, timeout)

    def refusal(self, task: Task, timeout: float = PATIENCE) -> str | None:
        """Waits until a round is over, and returns why the servers refused this client's
        submission.

        For a client that does not ask for :meth:`result`, or was started again since.

        Args:
            task: the round, as :meth:`join` returned it to this client or to an earlier process of
                the same number.
            timeout: seconds to wait.

        Returns:
            The reason; ``None`` if nothing was refused.

        Raises:
            RefusedError: the round has no result, with the reason; or a later round is over too, so
                that the servers have forgotten this one.
            PeerError: a server cannot be reached, or the servers contradict each other.
        """
        return self._outcome(task, timeout)[2] or None

    def _outcome(
        self, task: Task, timeout: float
    ) -> tuple[NDArray[np.float32], Sequence[_core.Content], str]:
        """Returns the result of a round: one vector, or a part from each server; and why this
        client's submission was refused, or an empty text."""
        is_sealed = task.settings.result_to == "clients"
        size = len(task.settings.metrics) if task.is_evaluation else len(task.model)
        whole = np.empty(0 if is_sealed else size, np.float32)
        parts, refused = self._core.outcome(task.round, timeout, whole.view(np.uint8))
        if bool(parts) != is_sealed:
            raise peer_error(
                "the servers send the result in another form than the round's rules say"
            )
        return whole, parts, refused

    def result(self, timeout: float = PATIENCE) -> torch.Tensor:
        """Waits for the model that results from the joined round.

        If the servers refused this client's submission, a warning and its :attr:`receipt` report
        why.

        Returns:
            The parameters, in a row; the combined update if a coordinator has the model. Of an
            evaluation, the means of the metrics.

        Raises:
            MisuseError: no round was joined.
            RefusedError: the round has no result, with the reason, and with that of the refusal of
                this client's submission, if it was refused.
            PeerError: a server cannot be reached, or the servers contradict each other.
        """
        if self._task is None:
            raise MisuseError("no round was joined: call join() first")
        _, task = self._task
        whole, parts, refused = self._outcome(task, timeout)
        _log.info("client %d has what round %d came to", self.number, task.round)
        if refused and self.receipt is not None and self.receipt.round == task.round:
            self.receipt = replace(self.receipt, refused=refused)
            warnings.warn(f"round {task.round}: {refused}", SubmissionWarning, stacklevel=2)
        if not parts:
            return torch.from_numpy(whole)
        try:
            model = _unsealed(parts, task)
        except RoundError as error:
            # Servers do not see the result and continue from this round, which leaves the model
            # unchanged.
            self.take_up(task.model, task.round)
            raise refused_error(f"round {task.round} came to nothing: {error}") from None
        self.take_up(model, task.round)
        return model

    def take_part(
        self,
        train: Callable[[Task], Trained],
        rounds: int,
        patience: float = PATIENCE,
        evaluate: Callable[[Task], Measured] | None = None,
    ) -> torch.Tensor | None:
        """Joins rounds, submits what ``train`` returns, and waits for results.

        After a break, such as servers that were started again or a round without a result, this
        client joins the next round by itself.

        Args:
            train: trains from a task's model.
            rounds: ends after this number of rounds with a result.
            patience: seconds without any result after which the last error is raised.
            evaluate: measures a task's model, in rounds that are evaluations; without it this
                client waits for the next round of training.

        Returns:
            The result of the last round; ``None`` if ``rounds`` is 0.

        Raises:
            RefusedError: a server does not let this client join.
            PeerError: no round had a result for that long, or the servers contradict each other.
            MisuseError: as :meth:`submit`.
        """
        return rounds_of(self, train, rounds, patience, evaluate)


def _receipt(task: Task, sent: Outgoing, counts: float) -> Receipt:
    """Returns the receipt, without the digest, of what a client sends with the given weight."""
    if task.settings.grid(task.clients) is not None:
        counts = sent.weight * (task.settings.greatest_weight or 1.0)
    return Receipt(task.round, "", counts, sent.shortened, sent.by_rounding)


def _clients_half(settings: Settings) -> Settings:
    """Returns settings of which a client can make its half of the steps.

    Noise is added by the servers, and sampling comes after all steps. A user's own aggregator need
    not be installed here, since it has no client's half. The client's configuration has been
    checked for what hides clients.
    """
    settings = replace(
        settings,
        noise=None,
        sigma=None,
        divisor=None,
        sampling=1.0,
        quantile=None,
        quantile_sigma=None,
        quantile_clients=None,
        reveals_single=True,
    )
    if settings.aggregator not in AGGREGATORS:
        settings = replace(settings, aggregator=_NOTHING_TO_DO)
    return settings


def _floats(told: _core.Content) -> torch.Tensor:
    return torch.from_numpy(_numbers(told, np.float32))


def _numbers(told: _core.Content, kind: type[Number]) -> NDArray[Number]:
    """Reads content as numbers of the given kind; ignores the bytes of an incomplete last one."""
    size = np.dtype(kind).itemsize
    row: NDArray[Number] = np.empty(-(-len(told) // size), kind)
    told.write(row.view(np.uint8)[: len(told)])
    return row[: len(told) // size]


def _unsealed(told: Sequence[_core.Content], task: Task) -> torch.Tensor:
    """Computes the model after a round from the servers' parts.

    Raises:
        PeerError: they are not parts of one vector; ``CheatingError`` if two servers have different
            ones, of which one cheated.
        RoundError: the weights do not add up to more than 0.
    """
    settings, size, grid = task.settings, len(task.model), task.settings.grid(task.clients)
    parts = [_numbers(part, np.int64) for part in told]
    for server, part in enumerate(told):
        if len(part) % 8:
            # An incomplete word makes a part as wrong as one word more does.
            parts[server] = np.append(parts[server], 0)
    words = np.empty(max(map(len, parts)), np.int64)
    found = _core.unseal(settings.protocol, parts, words)
    if found not in (size, size + 1) or any(len(part) % 8 for part in told):
        raise peer_error("the servers sent parts that do not make a model of this size")
    revealed = fixed.decode(
        torch.from_numpy(words[:found]),
        width.scale(settings.word_bits, is_lifted=grid is not None and grid.is_lifted),
        torch.float32,
    )
    unit = settings.norm if settings.noise is None else settings.norm / (settings.divisor or 1.0)
    if grid is not None and not grid.is_lifted:
        unit *= grid.weight_steps / grid.steps
    return task.model + Round((), unit).opened(revealed, size).to(torch.float32)
