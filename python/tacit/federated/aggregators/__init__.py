"""Aggregators: how a round's vectors become one.

Each is PyTorch on a tensor [clients, parameters], secret or plain; on plain tensors it is its own
reference. Vectors are in units of the bound on their norm, see ``steps.Clip``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from tacit.errors import MisuseError
from tacit.federated.aggregators.coordinates import median, trimmed_mean
from tacit.federated.aggregators.geometric_median import geometric_median
from tacit.federated.aggregators.krum import krum, multi_krum
from tacit.federated.aggregators.mean import mean, norm_clipping
from tacit.federated.aggregators.quotient import Quotient
from tacit.federated.aggregators.trust import fltrust
from tacit.rehearsal.subject import function_of
from tacit.tensor import SecretTensor

__all__ = [
    "AGGREGATORS",
    "ARGUMENTS",
    "Aggregator",
    "Quotient",
    "aggregator",
    "described",
    "fltrust",
    "geometric_median",
    "krum",
    "mean",
    "median",
    "multi_krum",
    "norm_clipping",
    "trimmed_mean",
]

#: A function of vectors and weights, and of the root's vector where there is one.
Combine = Callable[..., torch.Tensor | Quotient]


@dataclass(frozen=True)
class Aggregator:
    """A function that combines vectors, and what a round must know of it."""

    name: str
    combine: Combine
    #: Whether only the sum of the vectors counts, which clients multiply by their weights.
    is_sum: bool = False
    #: Whether it is right only for norms up to 1, so that these have to be validated.
    needs_bound: bool = True
    #: Whether it takes the vector of somebody who is trusted.
    needs_root: bool = False
    #: By how many bounds at most its numerator changes when a client comes or leaves; ``None``
    #: where that is not proven.
    sensitivity: float | None = None
    #: Of how many vectors at most its numbers stay in their range, a root aside; ``None`` for any
    #: number.
    most_clients: int | None = None
    #: The settings that its function takes by name: how many are supposed to attack, and the like.
    takes: tuple[str, ...] = ()

    def having(self, **given: float | None) -> "Aggregator":
        """The same with those of these settings that it takes and that are given."""
        known = {name: given[name] for name in self.takes if given.get(name) is not None}
        return replace(self, combine=partial(self.combine, **known)) if known else self

    def of(
        self, vectors: torch.Tensor, weights: torch.Tensor, *root: torch.Tensor
    ) -> torch.Tensor | Quotient:
        """What it makes of vectors and weights.

        Raises:
            MisuseError: it is one's own, and that is no vector of their size, or not secret where
                they are.
        """
        combined, size = self.combine(vectors, weights, *root), vectors.shape[1]
        found: object = combined.numerator if isinstance(combined, Quotient) else combined
        wanted = f"a tensor of shape [{size}] is wanted"
        if not isinstance(found, torch.Tensor):
            raise MisuseError(f"{self.name} returned a {type(found).__name__}; {wanted}")
        if tuple(found.shape) != (size,):
            raise MisuseError(
                f"{self.name} returned a tensor of shape {list(found.shape)}; {wanted}"
            )
        if isinstance(vectors, SecretTensor) and not isinstance(found, SecretTensor):
            raise MisuseError(
                f"{self.name} returned what is not secret: a round reveals its result itself, last "
                f"of all"
            )
        return combined

    def check_count(self, clients: int) -> None:
        """Whether it can combine so many vectors.

        Raises:
            MisuseError: they are too many.
        """
        if self.most_clients is not None and clients > self.most_clients:
            raise MisuseError(
                f"{self.name} of {clients} clients: its ranges hold for {self.most_clients} at most"
            )


#: Vectors of which the sums that some aggregators make are known to stay in their range.
MOST = 64

#: Those that come with tacit, by name.
AGGREGATORS = {
    each.name: each
    for each in (
        Aggregator("fedavg", mean, is_sum=True, needs_bound=False, sensitivity=1.0),
        Aggregator("fltrust", fltrust, needs_root=True, most_clients=MOST),
        Aggregator("krum", krum, most_clients=MOST, takes=("attackers",)),
        Aggregator("multi-krum", multi_krum, most_clients=MOST, takes=("attackers", "chosen")),
        Aggregator("geometric-median", geometric_median, most_clients=MOST, takes=("steps",)),
        Aggregator("norm-clipping", norm_clipping),
        Aggregator("median", median),
        Aggregator("trimmed-mean", trimmed_mean, takes=("trimmed",)),
    )
}

#: All settings that some of them take.
ARGUMENTS = tuple(dict.fromkeys(name for each in AGGREGATORS.values() for name in each.takes))


def aggregator(name: str) -> Aggregator:
    """The aggregator of that name, or the function that ``FILE:FUNCTION`` names. Such a function
    takes vectors and weights.

    Args:
        name: such as ``"krum"``, or ``"mine.py:combine"``.

    Raises:
        MisuseError: there is none.
    """
    known = described(name)
    return known if name in AGGREGATORS else replace(known, combine=function_of(name))


def described(name: str) -> Aggregator:
    """What a round must know of the aggregator of that name. A function of one's own is not looked
    for: it need not be where nothing is combined.

    Args:
        name: such as ``"krum"``, or ``"mine.py:combine"``.

    Raises:
        MisuseError: the name is neither that of an aggregator nor ``FILE:FUNCTION``.
    """
    if name in AGGREGATORS:
        return AGGREGATORS[name]
    if ":" not in name:
        known = ", ".join(AGGREGATORS)
        raise MisuseError(f"no aggregator is called {name!r}; known are {known}, and FILE:FUNCTION")
    return Aggregator(name, _elsewhere)


def _elsewhere(*_: torch.Tensor) -> torch.Tensor:
    raise AssertionError("this aggregator was only described")
