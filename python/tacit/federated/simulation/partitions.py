"""Partitions of examples among clients.

Each list has the indices of one client's examples. No index is in two lists."""

from collections.abc import Callable

import torch

from tacit.errors import MisuseError

Partition = list[torch.Tensor]


def skewed(
    labels: torch.Tensor, clients: int, skew: float, generator: torch.Generator
) -> Partition:
    """Gives each client mostly examples of its own label, as in PPPFL (Akhtar 2024, 4.5.2).

    About the fraction ``skew`` of every client's examples has the client's own label, or one of
    several labels if there are more labels than clients. Labels are assigned to clients cyclically.
    The other examples have any label. For each label, that fraction of its examples goes to the
    clients that own it, in equal shares. The remaining examples of all labels go to all clients. So
    no label is used up before the others."""
    classes = int(labels.max()) + 1
    found: list[list[torch.Tensor]] = [[] for _ in range(clients)]
    rest = []
    for label in range(classes):
        places = (labels == label).nonzero().flatten()
        places = places[torch.randperm(len(places), generator=generator)]
        owners = list(range(label, clients, classes)) or [label % clients]
        own, others = places.tensor_split([round(skew * len(places))])
        rest.append(others)
        for owner, piece in zip(owners, own.tensor_split(len(owners)), strict=True):
            found[owner].append(piece)
    left = torch.cat(rest)
    left = left[torch.randperm(len(left), generator=generator)]
    for client, piece in enumerate(left.tensor_split(clients)):
        found[client].append(piece)
    return [torch.cat(pieces) for pieces in found]


def shards(
    labels: torch.Tensor, clients: int, each: float, generator: torch.Generator
) -> Partition:
    """Sorts examples by label, cuts them, and gives every client ``each`` pieces, as in McMahan et
    al. 2017."""
    pieces = labels.argsort(stable=True).tensor_split(clients * int(each))
    order = torch.randperm(len(pieces), generator=generator).tolist()
    return [
        torch.cat([pieces[place] for place in order[client::clients]]) for client in range(clients)
    ]


def dirichlet(
    labels: torch.Tensor, clients: int, alpha: float, generator: torch.Generator
) -> Partition:
    """Draws the clients' fractions of each label from Dirichlet's distribution, as in Hsu et al.
    2019.

    No client is left without an example.
    """
    found: list[list[torch.Tensor]] = [[] for _ in range(clients)]
    for label in range(int(labels.max()) + 1):
        places = (labels == label).nonzero().flatten()
        places = places[torch.randperm(len(places), generator=generator)]
        concentration = torch.full((clients,), alpha, dtype=torch.float64)
        parts = torch._sample_dirichlet(concentration, generator=generator)
        ends = (parts.cumsum(0)[:-1] * len(places)).round().long()
        for client, piece in enumerate(places.tensor_split(ends)):
            found[client].append(piece)
    joined = [torch.cat(pieces) for pieces in found]
    for client, places in enumerate(joined):
        if not len(places):
            richest = max(range(clients), key=lambda other: len(joined[other]))
            joined[client], joined[richest] = joined[richest].tensor_split([1])
    return joined


#: The partitions by name: each takes labels, clients, a number, and a generator.
PARTITIONS: dict[str, Callable[[torch.Tensor, int, float, torch.Generator], Partition]] = {
    "skew": skewed,
    "shards": shards,
    "dirichlet": dirichlet,
}


def partition(
    how: str, labels: torch.Tensor, clients: int, generator: torch.Generator
) -> Partition:
    """Makes the partition that ``KIND:NUMBER`` names, such as "skew:0.9", "shards:2",
    "dirichlet:0.1".

    Raises:
        MisuseError: another kind, or more clients than examples.
    """
    kind, _, number = how.partition(":")
    if kind not in PARTITIONS:
        raise MisuseError(f"no partition is called {kind!r}; known are {', '.join(PARTITIONS)}")
    if not 1 <= clients <= len(labels):
        raise MisuseError(
            f"{clients} clients for {len(labels)} examples: each has one at least, so have 1 to "
            f"{len(labels)} clients"
        )
    return PARTITIONS[kind](labels, clients, float(number), generator)
