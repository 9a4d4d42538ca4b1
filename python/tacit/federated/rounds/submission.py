"""What a round starts from: the clients' vectors, in secret."""

from typing import NamedTuple

from tacit.tensor import SecretTensor


class Submitted(NamedTuple):
    """The vectors of all clients that every server has whole, one row a client.

    The servers agree on ``clients`` before they compute, so the rows are in the same order in each.
    Vectors have the session's scale, and so have weights, which are between 0 and 1: a client's
    share of the greatest weight that the round counts. Vectors are as clients sent them, not
    multiplied by their weights."""

    clients: list[int]
    #: [clients, parameters]
    vectors: SecretTensor
    #: [clients]
    weights: SecretTensor
