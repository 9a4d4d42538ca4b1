"""Rounding of a client's numbers to steps, for numbers that travel in 16 or 8 bits.

A value x of one step is rounded to the next integer below or above, up with the probability x -
floor(x). So its expectation is x (stochastic rounding), and its variance is at most a quarter. A
mean of many clients has far smaller errors than one client's vector.

**Norms.** Rounding lengthens vectors: each of d values adds up to a quarter to the expected square
of the norm. Where servers validate norms, the client draws again until the rounded vector is within
the bound (conditional rounding, P. Kairouz, Z. Liu, T. Steinke 2021, section 4.1), and shortens the
vector by what it is too long if that does not happen in a few draws. Conditions on the draw bias it
slightly. The bound on a rounded vector's norm is exact, so its sensitivity is that of the account,
without a term for rounding. It rests on no randomness of the client's: servers validate the rounded
numbers themselves.
"""

import math
import os
from dataclasses import dataclass, replace

import torch

from tacit.errors import MisuseError
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.round_state import Step
from tacit.federated.rounds.width import Grid

#: Draws before a vector is shortened, and how often it is shortened.
DRAWS, SHORTENED = 8, 16

#: A vector that rounding would make that much shorter is refused: steps are too long for it.
SHORTEST = 0.5


@dataclass(frozen=True)
class Rounding(Step):
    """A client's rounding of its values to steps. The servers' half does nothing."""

    grid: Grid
    #: Whether servers validate norms.
    is_bounded: bool
    #: Whether the bound is that times the weight.
    is_weighted: bool

    def client(self, outgoing: Outgoing) -> Outgoing:
        """Rounds the values. Cuts off those beyond the greatest value.

        Raises:
            MisuseError: the steps are too long for a vector of that many values.
        """
        steps, grid = outgoing.update().vector.mul_(self.grid.steps), self.grid
        cut = int((steps.abs() > grid.limit).sum())
        steps.clamp_(-grid.limit, grid.limit)
        generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        longest = math.inf
        if self.is_bounded:
            longest = grid.steps * (outgoing.weight if self.is_weighted else 1.0)
        found, shortened = within(steps, longest, generator)
        if shortened < SHORTEST:
            raise MisuseError(
                f"rounding to {1 / grid.steps:.3g} of the bound makes a vector of {len(steps)} "
                f"values too long for the bound, or the weight is too small for its steps: agree "
                "on a smaller greatest_value, on more word_bits, or on a smaller greatest_weight"
            )
        # The sum of the greatest steps and a chance just below 1 may round up to one step more.
        found.clamp_(-grid.limit, grid.limit)
        made = Outgoing.of(Update(found.div_(grid.steps), outgoing.weight))
        return replace(made, shortened=outgoing.shortened, cut=cut, by_rounding=shortened)


def rounded(steps: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Rounds to integers, up or down at random, so that expectations stay."""
    chance = torch.rand(steps.shape, generator=generator, dtype=steps.dtype)
    return torch.floor(chance.add_(steps))


def within(
    steps: torch.Tensor, longest: float, generator: torch.Generator
) -> tuple[torch.Tensor, float]:
    """Rounds a vector to integers of at most the given norm.

    Returns:
        The integers, and the factor by which the vector was shortened for that, mostly 1.
    """
    factor = 1.0
    for _ in range(SHORTENED):
        for _ in range(DRAWS):
            found = rounded(steps * factor if factor < 1 else steps, generator)
            norm = float(torch.linalg.vector_norm(found))
            if norm <= longest:
                return found, factor
        factor *= 0.999 * longest / norm
    # Truncation never lengthens a vector.
    return torch.trunc(steps * factor), factor


def rounded_weight(weight: float, steps: int) -> float:
    """Rounds a weight to a multiple of 1 / ``steps``, up or down at random."""
    chance = (int.from_bytes(os.urandom(8), "little") >> 11) * 2.0**-53
    # Their sum may round up, to more than the weight 1.
    return min(math.floor(weight * steps + chance), steps) / steps
