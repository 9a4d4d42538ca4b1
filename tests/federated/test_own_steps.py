"""A user-defined step in rounds between servers and clients over real links."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from worlds import LONG, Servers, written

from tacit.federated import Client
from tacit.federated.privacy.account import Account
from tacit.federated.rounds.client_update import Outgoing
from tacit.federated.rounds.round_state import Held, Step
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round

START, STEP = torch.zeros(4), 0.25


@dataclass(frozen=True)
class Signs(Step):
    """Reduces an update to its signs. The servers scale it by their own rate."""

    rate: float

    def client(self, outgoing: Outgoing) -> Outgoing:
        update = outgoing.update()
        return Outgoing.of(update._replace(vector=update.vector.sign() * STEP))

    def secret(self, held: Held) -> Held:
        return replace(held, vectors=held.vectors * self.rate)


def rounds(settings: Settings, account: Account | None = None, clients: int = 1) -> Round:
    usual = Round.of(settings, account, clients)
    return replace(usual, steps=(Signs(0.5), *usual.steps))


def test_a_federation_takes_a_step_of_ones_own(tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules="norm = 2.0")
    updates = torch.tensor([[1.0, -2.0, 0.1, 0.0], [0.5, 3.0, -1.0, 0.0], [0.7, -0.1, -0.3, 9.0]])

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number, rounds=rounds)
        client.submit(client.join(LONG).model + updates[number])
        return client.result(LONG)

    servers = Servers(config, lambda server: server.round(START), rounds=rounds)
    with ThreadPoolExecutor(3) as pool:
        learned = list(pool.map(learn, range(3)))
    expected = updates.sign().mean(0) * STEP / 2
    assert all(torch.allclose(model, expected, atol=1e-5) for model in learned)
    assert all(torch.equal(report.model, learned[0]) for report in servers.ended())
    # The reference gives the same result.
    own = rounds(Settings(norm=2.0))
    sent = [own.client(update) for update in updates]
    vectors = torch.stack([each.vector for each in sent])
    plain = own.plain(range(3), vectors, torch.ones(3, dtype=torch.float64)).vector
    assert plain is not None
    assert torch.allclose(plain.float(), expected, atol=1e-5)
