"""Aggregators: functions that combine the vectors of a round into one.

Each is PyTorch code on a tensor [clients, parameters], secret or plain. On plain tensors it is its
own reference. Vectors are in units of the bound on their norm; see ``rounds.clipping``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from tacit import _core
from tacit.errors import MisuseError
from tacit.federated.aggregators.coordinates import median, trimmed_mean
from tacit.federated.aggregators.geometric_median import geometric_median
from tacit.federated.aggregators.krum import krum, multi_krum
from tacit.federated.aggregators.mean import mean, norm_clipping
from tacit.federated.aggregators.quotient import Quotient
from tacit.federated.aggregators.trust import fltrust
from tacit.rehearsal.subject import function_with_source
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

#: A function of vectors and weights, and of the root's vector if the aggregator has a root.
Combine = Callable[..., torch.Tensor | Quotient]


@dataclass(frozen=True)
class Aggregator:
    """A function that combines vectors, and the properties of it that a round depends on."""

    name: str
    combine: Combine
    #: Whether it needs only the sum of the vectors, which clients have multiplied by their weights.
    is_sum: bool = False
    #: Whether it is correct only for norms up to 1, so that norms must be validated.
    needs_bound: bool = True
    #: Whether it takes the vector of a trusted party, the root.
    needs_root: bool = False
    #: By how many bounds at most its numerator changes when a client joins or leaves; ``None`` if
    #: no such limit is proven.
    sensitivity: float | None = None
    #: The most vectors for which its numbers stay in range, not counting the root; ``None`` for any
    #: number.
    most_clients: int | None = None
    #: Settings that its function takes by name, such as the assumed number of attackers.
    takes: tuple[str, ...] = ()
    #: Digest of the file with a user's own function, as it was run; ``None`` for tacit's own.
    content: str | None = None

    def having(self, **given: float | None) -> "Aggregator":
        """Returns the aggregator with those of the given settings that it takes.

        Args:
            given: settings by name; ``None`` leaves a setting as it is.
        """
        known = {name: given[name] for name in self.takes if given.get(name) is not None}
        return replace(self, combine=partial(self.combine, **known)) if known else self

    def of(
        self, vectors: torch.Tensor, weights: torch.Tensor, *root: torch.Tensor
    ) -> torch.Tensor | Quotient:
        """Combines vectors with weights.

        Args:
            vectors: [clients, parameters].
            weights: [clients].
            root: the root's vector [parameters], if the aggregator has a root.

        Returns:
            A tensor [parameters], or a ``Quotient`` with such a numerator.

        Raises:
            MisuseError: a user's own function returned something else than a tensor of that shape,
                or a plain tensor for secret vectors.
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
                f"{self.name} returned a tensor that is not secret: a round reveals its result "
                f"itself, as its last step"
            )
        return combined

    def check_count(self, clients: int) -> None:
        """Checks that the aggregator can combine the given number of vectors.

        Raises:
            MisuseError: there are too many.
        """
        if self.most_clients is not None and clients > self.most_clients:
            raise MisuseError(
                f"{self.name} of {clients} clients: its ranges hold for {self.most_clients} at most"
            )


#: The most vectors for which the sums of some aggregators are known to stay in range.
MOST = 64

#: The aggregators that come with tacit, by name.
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

#: All settings that any of them takes.
ARGUMENTS = tuple(dict.fromkeys(name for each in AGGREGATORS.values() for name in each.takes))


def aggregator(name: str) -> Aggregator:
    """Returns the aggregator of the given name, or one for the function that ``FILE:FUNCTION``
    names.

    Such a function takes vectors and weights.

    Args:
        name: such as ``"krum"``, or ``"mine.py:combine"``.

    Raises:
        MisuseError: there is no such aggregator or function.
    """
    known = described(name)
    if name in AGGREGATORS:
        return known
    function, source = function_with_source(name)
    return replace(known, combine=function, content=_core.blake3(source))


def described(name: str) -> Aggregator:
    """Returns the properties of the aggregator of the given name.

    A user's own function is not loaded: a party that combines nothing need not have it.

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
