"""How examples are spread over clients: each list has the places of one client's examples, none of
them twice."""

from collections.abc import Callable

import torch

from tacit.errors import MisuseError

Partition = list[torch.Tensor]


def skewed(
    labels: torch.Tensor, clients: int, skew: float, generator: torch.Generator
) -> Partition:
    """As in PPPFL (Akhtar 2024, 4.5.2): about that part of every client's examples has the label
    that is its own, or one of several where there are more labels than clients; labels go round
    over the clients. The other examples are any. That part of each label's examples goes to the
    clients that it belongs to, in equal shares, and what is left of all labels to everybody: so no
    label is used up before the others."""
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
    """As in McMahan et al. 2017: sorted by label and cut, every client gets
    that number of pieces."""
    pieces = labels.argsort(stable=True).tensor_split(clients * int(each))
    order = torch.randperm(len(pieces), generator=generator).tolist()
    return [
        torch.cat([pieces[place] for place in order[client::clients]]) for client in range(clients)
    ]


def dirichlet(
    labels: torch.Tensor, clients: int, alpha: float, generator: torch.Generator
) -> Partition:
    """As in Hsu et al. 2019: the parts of each label that clients have are drawn from Dirichlet's
    distribution. Nobody is left without an example."""
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


#: By name: each takes labels, clients, a number, and a generator.
PARTITIONS: dict[str, Callable[[torch.Tensor, int, float, torch.Generator], Partition]] = {
    "skew": skewed,
    "shards": shards,
    "dirichlet": dirichlet,
}


def partition(
    how: str, labels: torch.Tensor, clients: int, generator: torch.Generator
) -> Partition:
    """``KIND:NUMBER``, such as "skew:0.9", "shards:2", "dirichlet:0.1".

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
