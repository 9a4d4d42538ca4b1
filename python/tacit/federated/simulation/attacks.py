"""What malicious clients send: to try out defences.

Attackers know one another and, as the strongest ones of the literature do, the honest clients'
updates. They
stay clients: what they send goes through a client's half of the round, so with a bound it keeps to
that."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from tacit.errors import MisuseError

#: The class that a backdoor leads to, and the brightness of its mark: the first inputs, all set to
#: this.
TARGET, MARK, MARKED = 0, 2.0, 3

#: By how much the scaling attack multiplies.
SCALE = 20.0


@dataclass(frozen=True)
class Attack:
    """A kind of attack, and which part of all clients carries it out."""

    kind: str
    fraction: float

    @staticmethod
    def of(text: str) -> "Attack":
        """``KIND:FRACTION``, such as label-flip:0.25.

        Raises:
            MisuseError: another kind, or no fraction from 0 to 1.
        """
        kind, _, number = text.partition(":")
        try:
            fraction = float(number)
        except ValueError:
            fraction = -1.0
        if kind not in KINDS or not 0 <= fraction <= 1:
            raise MisuseError(
                f"{text!r} is no attack: KIND:FRACTION is wanted, of {', '.join(KINDS)}, and of "
                f"all clients "
                "a part from 0 to 1, such as label-flip:0.25"
            )
        return Attack(kind, fraction)

    @property
    def text(self) -> str:
        """As ``of`` takes it."""
        return f"{self.kind}:{self.fraction:g}"

    def attackers(self, clients: int) -> int:
        """How many; the last ones."""
        return int(self.fraction * clients)

    def data(
        self, inputs: torch.Tensor, labels: torch.Tensor, classes: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What an attacker trains on."""
        if self.kind == "label-flip":
            return inputs, classes - 1 - labels
        if self.kind == "backdoor":
            half = len(labels) // 2
            labels = torch.cat([torch.full_like(labels[:half], TARGET), labels[half:]])
            return torch.cat([marked(inputs[:half]), inputs[half:]]), labels
        return inputs, labels

    def vectors(self, own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:
        """What attackers send, [attackers, parameters], of their own updates and the honest
        clients'."""
        return KINDS[self.kind](own, honest if len(honest) > 1 else own)


def marked(inputs: torch.Tensor) -> torch.Tensor:
    """Inputs with the backdoor's mark."""
    return torch.cat([torch.full_like(inputs[:, :MARKED], MARK), inputs[:, MARKED:]], 1)


def _as_trained(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """The attack is in the data."""
    return own


def _sign_flip(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """The opposite of what was learned."""
    return -own


def _scaled(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Model replacement (Bagdasaryan et al. 2020): a backdoor, and its update made to outweigh all
    others."""
    return own * SCALE


def _little(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:
    """A little is enough (Baruch et al. 2019): as far from the mean, in each coordinate, as hides
    among the others."""
    attackers = len(own)
    count = attackers + len(honest)
    supporters = count // 2 + 1 - attackers
    hidden = torch.tensor((count - attackers - supporters) / max(1, count - attackers)).clamp(
        0.5, 0.999
    )
    distance = float(torch.special.ndtri(hidden.double())) or 0.1
    return (honest.mean(0) - distance * honest.std(0)).expand(attackers, -1)


def _min_max(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:
    """Min-max (Shejwalkar, Houmansadr 2021): as far against the mean as leaves it no farther from
    any honest vector than these are from each other."""
    mean, direction = honest.mean(0), -honest.std(0)
    widest = torch.cdist(honest, honest).max()
    low, high = 0.0, 100.0
    for _ in range(30):
        middle = (low + high) / 2
        far = (mean + middle * direction - honest).norm(dim=1).max()
        low, high = (middle, high) if far <= widest else (low, middle)
    return (mean + low * direction).expand(len(own), -1)


def _fang(own: torch.Tensor, honest: torch.Tensor) -> torch.Tensor:
    """Fang et al. 2020, against trimmed means and medians: in each coordinate just beyond the
    honest extreme that lies against the direction of the mean."""
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
