"""A client of a federation: one that trains on its own data, and shows nobody what it has learned.

    client = tacit.federated.Client("federation.toml", number=7)
    task = client.join()
    receipt = client.submit(train(task.model), weight=len(data))
    model = client.result()                                    # or go offline, and join the next
    round

It needs no program of the servers' and no session: one connection out to each of them.
"""

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from tacit import _core, fixed
from tacit.errors import MisuseError, SubmissionWarning, peer_error, refused_error
from tacit.federated.aggregators import AGGREGATORS
from tacit.federated.rounds import width
from tacit.federated.rounds.client_update import Outgoing
from tacit.federated.rounds.participation import is_drawn, withheld
from tacit.federated.rounds.round_state import RoundError
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.states import State, change_of
from tacit.federated.rounds.steps import Round, Rounds
from tacit.federated.service.config import Federation
from tacit.federated.service.terms import Terms
from tacit.federated.validation import VECTOR_BITS

_log = logging.getLogger(__name__)

#: Seconds to wait for a round, or for its result, where nobody says otherwise.
PATIENCE = 3600.0

Number = TypeVar("Number", np.float32, np.int64)

#: An aggregator for which clients do nothing.
_NOTHING_TO_DO = "median"


@dataclass(frozen=True)
class Task:
    """A round that a client may take part in."""

    round: int
    #: The parameters to begin from, in a row. Zeros where a coordinator has them: a state that is
    #: handed in is an update then, and so is the result.
    model: torch.Tensor
    settings: Settings
    #: Seconds that were left for submissions when the client joined.
    deadline: float
    #: All of the federation.
    clients: int
    #: What stands for the names and shapes of the model's tensors, where the servers know them.
    layout: str = ""

    @property
    def norm(self) -> float:
        """What an update, the difference from ``model``, may have."""
        return self.settings.norm

    @property
    def bound(self) -> str:
        """What the servers do about a longer one: "refuse" it, "clip" it, or "none"."""
        return self.settings.bound


@dataclass(frozen=True)
class Receipt:
    """All three servers have a submission whole. It counts unless they find it too long, of which
    :attr:`Client.receipt` tells after :meth:`Client.result`."""

    round: int
    #: Stands for what the client signed; the servers' reports name it too.
    digest: str
    #: The one that counts: what was given, or the rounds' ``greatest_weight`` if that is less.
    weight: float
    #: What the update was multiplied by since its norm was above the bound: the bound over that
    #: norm. 1 if it was not. It stays with the client.
    shortened: float = 1.0
    #: Why the servers refused it, where they did in a round that came to something.
    refused: str | None = None


class Client:
    """One of a federation's clients."""

    def __init__(self, config: str | Path, number: int, rounds: Rounds = Round.of) -> None:
        """Reads the configuration, and calls nobody yet.

        Args:
            config: the federation's file.
            number: which client this is.
            rounds: what makes the steps of a round of its settings, where some are one's own.

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
        self._core = _core.Client(
            federation.name, certificates, addresses, number, certificate, key
        )
        self._rounds = rounds
        self._latest = 0
        #: Where servers do not know the model: what this client knows of it, and which round made
        #: it.
        self._base = 0
        self._model: torch.Tensor | None = None
        self._task: tuple[_core.Task, Task] | None = None
        #: What was handed in last, as far as is known of it.
        self.receipt: Receipt | None = None
        #: Whether this client counts in the joined round, which nobody is told: see
        #: ``participation``.
        self._is_drawn = True

    def join(self, timeout: float = PATIENCE) -> Task:
        """Waits for a round that this client has not joined before.

        Raises:
            PeerError: a server is not reached, or tells something else than the others.
            RefusedError: a server does not want this client.
        """
        told = self._core.join(self._latest, timeout)
        terms = Terms.from_bytes(told.terms)
        self._check(terms.settings)
        if terms.settings.coordinator is not None:
            model = torch.zeros(terms.parameters)
        else:
            model = self._known(terms.base) if terms.base else _floats(told.model)
        if told.words != terms.words or len(model) != terms.parameters:
            raise peer_error("the servers told of a model that does not fit its own size")
        task = Task(told.round, model, terms.settings, told.left, terms.clients, terms.layout)
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

    def _check(self, settings: Settings) -> None:
        """The rules are those that this client has agreed to."""
        ours = vars(self._settings)
        differing = [name for name, told in vars(settings).items() if told != ours[name]]
        if differing:
            name = differing[0]
            raise peer_error(
                f"the servers' rounds have {name} = {vars(settings)[name]!r}, this client's "
                f"configuration "
                f"{ours[name]!r}; the table [round] is the same for all"
            )

    def take_up(self, model: torch.Tensor, base: int) -> None:
        """Goes on with the model that a round came to: where servers do not know the model
        (``result_to = "clients"``), a client that missed a round, or began anew, cannot have it
        from them.

        Args:
            model: what :meth:`result` returned to another client, or to this one before it ended.
            base: that round, as its task and its receipt have it.
        """
        self._base, self._model = base, model.detach().reshape(-1).to(torch.float32)

    def _known(self, base: int) -> torch.Tensor:
        if self._model is None or self._base != base:
            raise MisuseError(
                f"the model of this round is what round {base} came to, which servers do not know, "
                f"and this "
                "client was not there: take_up(model, round) it from a client that was; if no "
                "client has it, "
                "as the servers ended before they told it, all clients take_up the model that they "
                "had "
                f"before, as that of round {base}"
            )
        return self._model

    def submit(self, state: State, weight: float = 1.0) -> Receipt:
        """Hands in what was trained: its difference from the task's model goes to the servers, in
        secret.

        Args:
            state: the trained parameters. Where servers know the names and shapes of the model, a
                module or its state_dict() has the same; a row has none.
            weight: the count of examples, where clients weigh unlike. More than the rounds'
                greatest_weight counts as that, of which a warning and the receipt tell.

        A warning and the receipt also tell where an update is longer than the bound, and by what it
        was shortened; a warning tells where all of it, or the weight, is so small that zeros are
        sent.

        Raises:
            EncodingError: a value is NaN, infinite or too far from the task's model, named with the
                limit; or the norm is beyond what float64 holds.
            MisuseError: no round was joined; the state has another size than its model, or other
                names, order or shapes than the servers know of it (the first is named), or holds
                what is no dense tensor of real numbers; the weight is none, or above 1 where the
                rounds have no ``greatest_weight``; or this client is the coordinator.
            RefusedError: a server did not take it: late, or against the round's rules.
            PeerError: a server was not reached; the submission does not count then.
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
        change = change_of(state, task.model, task.layout)
        rules = self._rounds(_clients_half(task.settings), None, task.clients)
        sent = rules.sent(Outgoing(change, float(weight)))
        counts = min(float(weight), task.settings.greatest_weight or 1.0)
        for remark in _remarks(sent, float(weight), counts, task.norm):
            warnings.warn(remark, SubmissionWarning, stacklevel=2)
        shortened = sent.shortened
        # After all steps, so that none can undo it.
        sent = sent if self._is_drawn else withheld(sent)
        scale, bits = fixed.Scale(VECTOR_BITS), task.settings.word_bits
        digest = self._core.submit(
            core,
            sent.change.pieces,
            sent.change.from_there,
            factor=sent.factor * 2.0**scale.bits,
            limit=width.limit(bits, task.clients) * 2.0**scale.bits,
            weight=int(fixed.encode(torch.tensor(sent.weight, dtype=torch.float64), scale)),
            bits=bits,
        )
        self.receipt = Receipt(task.round, digest.hex(), counts, shortened)
        # Neither weight nor norm: they are the client's own.
        _log.info("client %d handed in a vector for round %d", self.number, task.round)
        return self.receipt

    def close(self, timeout: float = PATIENCE) -> None:
        """Tells the servers, as the coordinator, that all whom it asked in the joined round have
        handed in or
        failed: the round ends then, and not at its deadline. What is whole by then counts.

        Raises:
            MisuseError: no round was joined, or this client is not the coordinator.
            RefusedError: a server's rules name another coordinator.
            PeerError: a server was not reached; the round ends at its deadline then.
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
        """Waits until a round is over, and asks why the servers refused what this client handed in
        there. For who does not ask for :meth:`result`, or has begun anew since.

        Args:
            task: the round, as :meth:`join` told it, of this client or of one of its number before.
            timeout: seconds to wait.

        Returns:
            The reason; ``None`` where nothing was refused.

        Raises:
            RefusedError: the round came to nothing, and why, or a later one is over too, and it is
                forgotten.
            PeerError: a server is not reached, or tells something else than the others.
        """
        return self._outcome(task, timeout)[2] or None

    def _outcome(
        self, task: Task, timeout: float
    ) -> tuple[NDArray[np.float32], Sequence[_core.Content], str]:
        """What a round came to: one vector, or a part of each server, and why this client's was
        refused."""
        is_sealed = task.settings.result_to == "clients"
        whole = np.empty(0 if is_sealed else len(task.model), np.float32)
        parts, refused = self._core.outcome(task.round, timeout, whole.view(np.uint8))
        if bool(parts) != is_sealed:
            raise peer_error(
                "the servers tell the result in another way than the round's rules say"
            )
        return whole, parts, refused

    def result(self, timeout: float = PATIENCE) -> torch.Tensor:
        """Waits for the model that the joined round came to. Where the servers refused what this
        client handed in, a warning and its :attr:`receipt` tell why.

        Raises:
            MisuseError: no round was joined.
            RefusedError: the round came to nothing, and why; and that what this client handed in
                was refused, if it was.
            PeerError: a server is not reached, or tells something else than the others.
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
            # The servers, who do not see it, go on from this round: it leaves the model as it was.
            self.take_up(task.model, task.round)
            raise refused_error(f"round {task.round} came to nothing: {error}") from None
        self.take_up(model, task.round)
        return model


def capped(weight: float, counts: float) -> str:
    """What is told of a weight that counts for less."""
    return f"a weight of {weight:g} counts as {counts:g}, the rounds' greatest_weight"


def shorter(shortened: float, norm: float) -> str:
    """What is told of an update that was longer than the bound."""
    return (
        f"an update of norm {norm / shortened:.6g} is longer than the rounds' bound of {norm:g}: "
        f"it was "
        f"multiplied by {shortened:.3g}, and counts as one of that norm"
    )


def _remarks(sent: Outgoing, weight: float, counts: float, norm: float) -> list[str]:
    """What a client should know of what is sent for it, beside what it handed in."""
    found = []
    if counts < weight:
        found.append(capped(weight, counts))
    if sent.shortened < 1:
        found.append(shorter(sent.shortened, norm))
    least = 2.0 ** -(VECTOR_BITS + 1)
    if 0 <= sent.weight < least:
        found.append(
            f"a weight of {weight:g} is so small a part of the rounds' greatest_weight that it "
            f"counts as "
            "nothing: agree on a smaller greatest_weight"
        )
    if 0 < sent.greatest < least:
        found.append(
            f"no value of the update, times its weight, is above 2^-{VECTOR_BITS + 1} of the "
            f"rounds' bound "
            f"of {norm:g}, so that zeros are sent: agree on a smaller norm"
        )
    return found


def _clients_half(settings: Settings) -> Settings:
    """What makes the steps that a client has a half of. Noise is the servers', chance comes after
    all steps; and an aggregator of one's own need not be here, since clients do nothing for it.
    What hides them was looked at in the client's configuration."""
    settings = replace(
        settings, noise=None, sigma=None, divisor=None, sampling=1.0, reveals_single=True
    )
    if settings.aggregator not in AGGREGATORS:
        settings = replace(settings, aggregator=_NOTHING_TO_DO)
    return settings


def _floats(told: _core.Content) -> torch.Tensor:
    return torch.from_numpy(_numbers(told, np.float32))


def _numbers(told: _core.Content, kind: type[Number]) -> NDArray[Number]:
    """Of that kind, as they lie in what was told; what is no number more at
    its end does not count."""
    size = np.dtype(kind).itemsize
    row: NDArray[Number] = np.empty(-(-len(told) // size), kind)
    told.write(row.view(np.uint8)[: len(told)])
    return row[: len(told) // size]


def _unsealed(told: Sequence[_core.Content], task: Task) -> torch.Tensor:
    """The model after a round of which each server told a part.

    Raises:
        PeerError: the parts are no parts of one vector.
        RoundError: the weights add up to nothing.
    """
    parts = [torch.from_numpy(_numbers(part, np.int64)) for part in told if len(part) % 8 == 0]
    parts = [part for part in parts if len(part)]
    size = len(task.model)
    if len(parts) != 2 or len(parts[0]) != len(parts[1]) or len(parts[0]) not in (size, size + 1):
        raise peer_error("the servers sent parts of what is no model of this size")
    settings = task.settings
    revealed = fixed.decode(parts[0] + parts[1], width.scale(settings.word_bits), torch.float32)
    unit = settings.norm if settings.noise is None else settings.norm / (settings.divisor or 1.0)
    return task.model + Round((), unit).opened(revealed, size).to(torch.float32)
