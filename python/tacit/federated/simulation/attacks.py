"""Updates of malicious clients, to try out defences.

Attackers know one another and, like the strongest attackers in the literature, the honest clients'
updates. They remain clients: their updates go through a client's half of the round, so with a bound
they keep to it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from tacit.errors import MisuseError

#: The class that a backdoor leads to, the brightness of its mark, and the number of inputs, the
#: first ones, that are set to it.
TARGET, MARK, MARKED = 0, 2.0, 3

#: The factor of the scaling attack.
SCALE = 20.0


@dataclass(frozen=True)
class Attack:
    """A kind of attack, and the fraction of all clients that carries it out."""

    kind: str
    fraction: float

    @staticmethod
    def of(text: str) -> "Attack":
        """Parses ``KIND:FRACTION``, such as label-flip:0.25.

        Raises:
            MisuseError: another kind, or not a fraction from 0 to 1.
        """
        kind, _, number = text.partition(":")
        try:
            fraction = float(number)
        except ValueError:
            fraction = -1.0
        if kind not in KINDS or not 0 <= fraction <= 1:
            raise MisuseError(
                f"{text!r} is no attack: KIND:FRACTION is wanted, of {', '.join(KINDS)}, and of "
                "all clients a part from 0 to 1, such as label-flip:0.25"
            )
        return Attack(kind, fraction)

    @property
    def text(self) -> str:
        """The attack as a text that ``of`` parses."""
        return f"{self.kind}:{self.fraction:g}"

    def attackers(self, clients: int) -> int:
        """Returns the number of attackers, which are the last clients."""
        return int(self.fraction * clients)

    def data(
        self, inputs: torch.Tensor, labels: torch.Tensor, classes: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the examples that an attacker trains on."""
        if self.kind == "label-flip":
            return inputs, classes - 1 - labels
        if self.kind == "backdoor":
            half = len(labels) // 2
            labels = torch.cat([torch.full_like(labels[:half], TARGET), labels[half:]])
            return torch.cat([marked(inputs[:half]), inputs[half:]]), labels
        return inputs, labels

    def vectors(self, own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:
        """Computes what attackers send, [attackers, parameters], from their own updates and the
        honest clients'."""
        return KINDS[self.kind](own, honest if len(honest) > 1 else own)


def marked(inputs: torch.Tensor) -> torch.Tensor:
    """Puts the backdoor's mark on inputs."""
    return torch.cat([torch.full_like(inputs[:, :MARKED], MARK), inputs[:, MARKED:]], 1)


def _as_trained(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Sends the update as trained: the attack is in the data."""
    return own


def _sign_flip(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Sends the negated update."""
    return -own


def _scaled(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Scales a backdoor's update so that it outweighs all others: model replacement (Bagdasaryan et
    al. 2020)."""
    return own * SCALE


def _little(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:
    """Moves away from the mean, in each coordinate, as far as is still hidden among the others: a
    little is enough (Baruch et al. 2019)."""
    attackers = len(own)
    count = attackers + len(honest)
    supporters = count // 2 + 1 - attackers
    hidden = torch.tensor((count - attackers - supporters) / max(1, count - attackers)).clamp(
        0.5, 0.999
    )
    distance = float(torch.special.ndtri(hidden.double())) or 0.1
    return (honest.mean(0) - distance * honest.std(0)).expand(attackers, -1)


def _min_max(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:
    """Moves against the mean as far as no honest vector is then farther away than honest vectors
    are from each other: min-max (Shejwalkar, Houmansadr 2021)."""
    mean, direction = honest.mean(0), -honest.std(0)
    widest = torch.cdist(honest, honest).max()
    low, high = 0.0, 100.0
    for _ in range(30):
        middle = (low + high) / 2
        far = (mean + middle * direction - honest).norm(dim=1).max()
        low, high = (middle, high) if far <= widest else (low, middle)
    return (mean + low * direction).expand(len(own), -1)


def _fang(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:
    """Sends, in each coordinate, a value just beyond the honest extreme on the side against the
    mean: Fang et al. 2020, against trimmed means and medians."""
    mean = honest.mean(0)
    low, high = honest.amin(0), honest.amax(0)
    span = (high - low).clamp(min=1e-6)
    generator = torch.Generator().manual_seed(len(own))
    beyond = torch.rand(own.shape, generator=generator, dtype=torch.float64).to(own.dtype) * span
    return torch.where(mean > 0, low - beyond, high + beyond)


KINDS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "label-flip": _as_trained,
    "sign-flip": _sign_flip,
    "backdoor": _scaled,
    "little-is-enough": _little,
    "min-max": _min_max,
    "fang": _fang,
}
