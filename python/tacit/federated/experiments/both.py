"""The same federations in secret and in the clear."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import tacit
from tacit.federated.experiments.journal import Journal
from tacit.federated.simulation.federation import HOST, Federation, Row, in_secret, in_the_clear

#: Longest wait for one message, in seconds: the host trains all clients.
TIMEOUT = 3600.0

#: The transport between the servers, which are processes.
TRANSPORT = "tcp"


@dataclass(frozen=True)
class Learned:
    """The rows of all rounds, by seed."""

    secret: Sequence[list[Row]]
    plain: Sequence[list[Row]]

    @staticmethod
    def accuracies(tried: Sequence[Sequence[Row]]) -> list[float]:
        """Returns the accuracies after the last round, by seed."""
        return [rows[-1].accuracy for rows in tried]

    @property
    def difference(self) -> float:
        """The difference between the means over the seeds, in percentage points."""
        return 100 * abs(mean(self.accuracies(self.secret)) - mean(self.accuracies(self.plain)))


def learned(federations: list[Federation], journal: Journal) -> list[list[Row]]:
    """Runs one federation after the other, at every server. The host records each round."""
    found = []
    for each in federations:
        with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
            found.append(
                in_secret(each, folder, journal.rounds(**round_fields(each, in_secret=True)))[0]
            )
    return found


def learned_plain(federations: list[Federation], journal: Journal) -> list[list[Row]]:
    """Runs the same federations in the clear."""
    return [
        in_the_clear(each, journal.rounds(**round_fields(each, in_secret=False)))[0]
        for each in federations
    ]


def round_fields(federation: Federation, *, in_secret: bool) -> dict[str, object]:
    """Returns the fields with which a federation's rounds are recorded."""
    return {
        "data": federation.data,
        "partition": federation.partition,
        "clients": federation.clients,
        "aggregator": federation.settings.aggregator,
        "attack": None if federation.attack is None else federation.attack.text,
        "sigma": federation.settings.sigma,
        "seed": federation.seed,
        "in_secret": in_secret,
    }


def both(
    federations: list[Federation], journal: Journal, attestation: str | None = None
) -> Learned:
    """Runs federations, whose servers have one protocol, in secret, between three processes, and in
    the clear. The processes may attest."""
    secret = tacit.launch(
        learned,
        federations,
        journal,
        protocol=federations[0].settings.protocol,
        transport=TRANSPORT,
        timeout=TIMEOUT,
        attestation=attestation,
    )[HOST]
    return Learned(secret, learned_plain(federations, journal))
