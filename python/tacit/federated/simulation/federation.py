"""A whole federation on this machine: clients, rounds, and the same in the clear.

All clients live in one process, which is also the first server's, with their data. ``hand_in``
brings their updates to the servers. From then on, everything is as if clients had sent them over a
network."""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch
from torch.nn.utils import parameters_to_vector

from tacit.federated.privacy.account import Account, Epsilons
from tacit.federated.rounds.client_update import Update
from tacit.federated.rounds.round_state import Outcome
from tacit.federated.rounds.settings import Settings, mechanism_of
from tacit.federated.rounds.steps import Round
from tacit.federated.rounds.submission import Submitted
from tacit.federated.simulation.attacks import TARGET, Attack, marked
from tacit.federated.simulation.data import dataset
from tacit.federated.simulation.partitions import partition
from tacit.federated.simulation.training import Training, accuracy, threads, update_of
from tacit.federated.validation import VECTOR_BITS
from tacit.fixed import Scale
from tacit.sessions import session
from tacit.sharing import share

#: The number of examples of a trusted client, the root.
ROOT_EXAMPLES = 100

#: The number of classes from which on the accuracy among the five most likely is measured, too.
MANY_CLASSES = 20

#: The party whose process hosts the clients.
HOST = 0


@dataclass(frozen=True)
class Federation:
    """The parameters of a simulation, the same everywhere, so that all parties compute the same."""

    data: str = "digits"
    partition: str = "skew:0.9"
    clients: int = 16
    rounds: int = 10
    settings: Settings = field(default_factory=Settings)
    training: Training = field(default_factory=Training)
    attack: Attack | None = None
    #: The probability with which a client takes part in a round.
    sampling: float = 1.0
    delta: float = 1e-5
    seed: int = 0
    #: The folder of data that do not come with a package.
    folder: str | None = None
    #: The model is evaluated after every such number of rounds, and always after the last one.
    evaluated: int = 1

    @property
    def rules(self) -> Settings:
        """The settings of a round, including the sampling that is accounted for if there is
        noise."""
        if self.settings.noise is None:
            return self.settings
        return replace(self.settings, sampling=self.sampling)


@dataclass(frozen=True)
class Row:
    """The report of a round."""

    number: int
    accepted: int
    late: int
    refused: dict[str, int]
    #: NaN if the model is not evaluated, or is evaluated by another party.
    accuracy: float
    backdoor: float | None
    seconds: float
    #: To the other servers.
    bytes_sent: int
    rounds: int
    #: Of all clients to the servers, and back; ``None`` if clients have no connections.
    bytes_up: int | None = None
    bytes_down: int | None = None
    epsilons: Epsilons | None = None
    #: The fraction of held-out examples whose label is among the five most likely, for many
    #: classes.
    among_five: float | None = None

    def as_json(self) -> dict[str, object]:
        """Returns all fields by name."""
        return asdict(self)


class Clients:
    """All clients and their data, and the model that they train."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        self.data = dataset(federation.data, federation.folder)
        generator = torch.Generator().manual_seed(federation.seed)
        self.parts = partition(
            federation.partition, self.data.labels, federation.clients, generator
        )
        # The root comes after the clients, and has a few examples of all kinds.
        self.parts.append(
            torch.randperm(len(self.data.labels), generator=generator)[:ROOT_EXAMPLES]
        )
        with torch.random.fork_rng():
            torch.manual_seed(federation.seed)
            self.model = self.data.model()
        self.start = parameters_to_vector(self.model.parameters()).detach().clone()

    def taking_part(self, number: int) -> list[int]:
        """Returns the clients in a round: all, or each with the sampling probability; always the
        root."""
        federation = self.federation
        chance = torch.rand(federation.clients, generator=self._generator(number, 0))
        root = federation.settings.root
        chosen = [
            client for client in range(federation.clients) if chance[client] < federation.sampling
        ]
        return [*chosen, root] if isinstance(root, int) else chosen

    def updates(self, number: int, parameters: torch.Tensor) -> dict[int, torch.Tensor]:
        """Returns what each client in a round has learned, or what its attack sends instead."""
        taking_part = self.taking_part(number)
        attack, count = self.federation.attack, self.federation.clients
        attackers: Sequence[int] = (
            [] if attack is None else range(count - attack.attackers(count), count)
        )
        found = {
            client: self._update(client, number, parameters, client in attackers)
            for client in taking_part
        }
        attackers = [client for client in taking_part if client in attackers]
        if attack is not None and attackers:
            own = torch.stack([found[client] for client in attackers])
            honest = [
                found[client]
                for client in taking_part
                if client < count and client not in attackers
            ]
            sent = attack.vectors(own, torch.stack(honest) if honest else own)
            found |= dict(zip(attackers, sent, strict=True))
        return found

    def _update(
        self, client: int, number: int, parameters: torch.Tensor, attacks: bool
    ) -> torch.Tensor:
        places, attack = self.parts[client], self.federation.attack
        examples = self.data.inputs[places], self.data.labels[places]
        if attacks and attack is not None:
            examples = attack.data(*examples, self.data.classes)
        generator = self._generator(number, client + 1)
        return update_of(self.model, parameters, examples, self.federation.training, generator)

    def _generator(self, number: int, who: int) -> torch.Generator:
        """Returns the generator of a client in a round, which does not depend on earlier rounds."""
        return torch.Generator().manual_seed(hash((self.federation.seed, number, who)) % 2**31)

    def sent(self, round_: Round, found: dict[int, torch.Tensor]) -> dict[int, Update]:
        """Returns what each client sends of its update."""
        return {
            client: round_.client(vector, len(self.parts[client]))
            for client, vector in found.items()
        }

    def accuracy(self, parameters: torch.Tensor, among: int = 1) -> float:
        """Computes the accuracy on held-out examples."""
        data, device = self.data, self.federation.training.device
        return accuracy(
            self.model, parameters, data.test_inputs, data.test_labels, among=among, device=device
        )

    def is_evaluated(self, number: int) -> bool:
        """Tells whether the model is evaluated after this round."""
        return number + 1 == self.federation.rounds or (number + 1) % self.federation.evaluated == 0

    def backdoor(self, parameters: torch.Tensor) -> float | None:
        """Computes the fraction of held-out examples of other classes that the mark leads to the
        attackers' class."""
        if self.federation.attack is None or self.federation.attack.kind != "backdoor":
            return None
        others = self.data.test_labels != TARGET
        inputs = marked(self.data.test_inputs[others])
        return accuracy(self.model, parameters, inputs, torch.full((len(inputs),), TARGET))


def hand_in(updates: dict[int, Update] | None, parameters: int) -> Submitted:
    """Shares what clients send from their host process with all servers; it is secret from then on.

    This replaces the clients' own connections to the servers, so its communication is not
    counted."""
    current = session()
    with current.using(scale=Scale(VECTOR_BITS)):
        names = json.dumps(list(updates)).encode() if updates is not None else None
        clients = json.loads(current.core.broadcast(HOST, names))
        vectors, weights = (None, None) if updates is None else stacked(updates, parameters)
        return Submitted(clients, share(vectors, owner=HOST), share(weights, owner=HOST))


def in_secret(
    federation: Federation, folder: str, on_row: Callable[[Row], None] | None = None
) -> tuple[list[Row], torch.Tensor]:
    """Runs all rounds, at every server; returns their rows and the final parameters.

    The host's rows contain the model's accuracy.

    Args:
        federation: what is simulated.
        folder: for the servers' accounts.
        on_row: called with every row, at the host.
    """
    with threads(federation.training.threads):
        return _rounds(federation, folder, on_row)


def _rounds(
    federation: Federation, folder: str, on_row: Callable[[Row], None] | None
) -> tuple[list[Row], torch.Tensor]:
    current = session()
    is_host = current.party == HOST
    account = account_of(
        federation, Path(folder) / f"account-{current.party}.json", current.parties
    )
    round_ = Round.of(federation.rules, account, federation.clients, current.parties)
    clients = Clients(federation)
    parameters, rows = clients.start, []
    for number in range(federation.rounds):
        updates = clients.sent(round_, clients.updates(number, parameters)) if is_host else None
        submitted = hand_in(updates, len(parameters))
        started, before = time.perf_counter(), current.meter.total
        outcome = round_.secret(submitted)
        seconds, cost = time.perf_counter() - started, current.meter.total - before
        parameters = after(parameters, outcome)
        row = _row(clients if is_host else None, number, outcome, parameters)
        spent = account.spent if account is not None and is_host else None
        row = replace(
            row, seconds=seconds, bytes_sent=cost.bytes_sent, rounds=cost.rounds, epsilons=spent
        )
        rows.append(row)
        if on_row is not None and is_host:
            on_row(row)
    return rows, parameters


def in_the_clear(
    federation: Federation, on_row: Callable[[Row], None] | None = None
) -> tuple[list[Row], torch.Tensor]:
    """Runs the reference: the same clients, rounds and steps on plain vectors, without noise."""
    with threads(federation.training.threads):
        clients = Clients(federation)
        # The reference spends nothing, so the account's file is never written.
        account = account_of(federation, Path("account-of-nobody"), 3)
        round_ = Round.of(federation.rules, account, federation.clients)
        parameters, rows = clients.start, []
        for number in range(federation.rounds):
            started = time.perf_counter()
            updates = clients.sent(round_, clients.updates(number, parameters))
            outcome = round_.plain(list(updates), *stacked(updates, len(parameters)))
            parameters = after(parameters, outcome)
            rows.append(_row(clients, number, outcome, parameters))
            rows[-1] = replace(rows[-1], seconds=time.perf_counter() - started)
            if on_row is not None:
                on_row(rows[-1])
        return rows, parameters


def after(parameters: torch.Tensor, outcome: Outcome) -> torch.Tensor:
    """Returns the model's parameters after a round."""
    assert outcome.vector is not None
    return parameters + outcome.vector.to(parameters.dtype)


def stacked(updates: dict[int, Update], parameters: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Stacks vectors [clients, parameters] and weights [clients]."""
    vectors = torch.zeros(len(updates), parameters, dtype=torch.float64)
    weights = torch.zeros(len(updates), dtype=torch.float64)
    for row, update in enumerate(updates.values()):
        vectors[row], weights[row] = update
    return vectors, weights


def account_of(federation: Federation, path: Path, parties: int) -> Account | None:
    """Opens a server's account; ``None`` if there is no noise."""
    if federation.settings.noise is None:
        return None
    return Account(path, mechanism_of(federation.rules, federation.delta, parties))


def _row(clients: Clients | None, number: int, outcome: Outcome, parameters: torch.Tensor) -> Row:
    reasons = list(outcome.refused.values())
    if clients is not None and not clients.is_evaluated(number):
        clients = None
    has_many = clients is not None and clients.data.classes >= MANY_CLASSES
    return Row(
        number=number,
        accepted=len(outcome.accepted),
        late=0,
        refused={reason: reasons.count(reason) for reason in sorted(set(reasons))},
        accuracy=clients.accuracy(parameters) if clients is not None else math.nan,
        backdoor=clients.backdoor(parameters) if clients is not None else None,
        seconds=0.0,
        bytes_sent=0,
        rounds=0,
        among_five=clients.accuracy(parameters, 5) if clients is not None and has_many else None,
    )
