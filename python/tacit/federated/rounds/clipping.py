"""Clipping: a client's update in units of the bound on its norm, shortened to the bound."""

import math
import sys
from dataclasses import dataclass, replace

from tacit import fixed
from tacit.errors import EncodingError, MisuseError
from tacit.federated.rounds.client_update import Outgoing
from tacit.federated.rounds.round_state import Step
from tacit.federated.rounds.rounding import rounded_weight
from tacit.federated.validation import VECTOR_BITS


@dataclass(frozen=True)
class Clip(Step):
    """A client's conversion of its vector to units of the bound, and of its weight to 0..1.

    It also shortens the vector to the bound.
    """

    norm: float
    #: The weight that counts in full; without it weights are at most 1.
    greatest_weight: float | None = None
    #: Whether longer vectors are shortened; if not, the bound is only the unit.
    shortens: bool = True
    #: The limit, in units, below which every number must be.
    limit: float = fixed.Scale(VECTOR_BITS).limit
    #: Steps of the weight 1, to which weights are rounded; ``None`` for words.
    weight_steps: int | None = None

    def client(self, outgoing: Outgoing) -> Outgoing:
        """Scales the vector and the weight. A shortened norm leaves room for rounding.

        Raises:
            EncodingError: a value is NaN, infinite or too large to be sent, or the norm exceeds
                float64.
            MisuseError: the weight is not positive, or it is above 1 and there is no
                ``greatest_weight``.
        """
        found = outgoing.norm
        if math.isinf(found):
            raise EncodingError(
                f"the norm of what was learned is above {sys.float_info.max:.3g}, so that nothing "
                f"can be sent: check whether training diverged"
            )
        if not 0 < outgoing.weight < math.inf:
            raise MisuseError(f"an update of weight {outgoing.weight}: weights are positive")
        if self.greatest_weight is None and outgoing.weight > 1.0:
            raise MisuseError(
                f"an update of weight {outgoing.weight:g}, and the rounds have no greatest_weight: "
                f"in the federation's file, under [round], set greatest_weight = the examples of a "
                "client that count at most; or leave the weight out, so that all weigh the same"
            )
        room = 1.0 - math.sqrt(len(outgoing.change)) * 2.0 ** -(VECTOR_BITS + 1)
        sent = outgoing.by(
            room / max(found, self.norm * room) if self.shortens else 1.0 / self.norm
        )
        self._check_range(sent)
        greatest = self.greatest_weight or 1.0
        shortened = self.norm / found if self.shortens and found > self.norm else 1.0
        weight = min(outgoing.weight, greatest) / greatest
        if self.weight_steps is not None:
            # Before the vector is multiplied by it, so that both stay in proportion.
            weight = rounded_weight(weight, self.weight_steps)
        return replace(sent, weight=weight, shortened=shortened)

    def _check_range(self, sent: Outgoing) -> None:
        if sent.greatest >= self.limit:
            values = sent.change.values()
            place = int(values.abs().argmax())
            raise EncodingError(
                f"{sent.change.called(place)} is {float(values[place]):g}; with a bound of "
                f"{self.norm:g}, magnitudes below {self.limit * self.norm:g} are sent"
            )
