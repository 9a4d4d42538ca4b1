"""The input of a round: the clients' vectors, in secret."""

from typing import NamedTuple

from tacit.tensor import SecretTensor


class Submitted(NamedTuple):
    """The vectors of all clients that every server holds completely, one row for each client.

    The servers agree on ``clients`` before they compute, so the rows have the same order at each of
    them. Vectors and weights have the session's scale. Weights are between 0 and 1: fractions of
    the greatest weight that the round counts. Vectors are as clients sent them, not multiplied by
    their weights."""

    clients: list[int]
    #: [clients, parameters]
    vectors: SecretTensor
    #: [clients]
    weights: SecretTensor
    #: [clients, metrics]: what clients report, multiplied by their weights, in units of the
    #: greatest metric; ``None`` if they report nothing.
    metrics: SecretTensor | None = None
