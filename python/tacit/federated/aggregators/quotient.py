"""What an aggregator may return in the place of a vector."""

from typing import NamedTuple

import torch


class Quotient(NamedTuple):
    """A vector and what it is to be divided by. Both are revealed, and divided then: that costs no product
    for each element, and is exact."""

    numerator: torch.Tensor
    denominator: torch.Tensor

    def divided(self) -> torch.Tensor:
        """The vector, once both are plain; zeros where nothing was added up."""
        if not bool(self.denominator > 0):
            return torch.zeros_like(self.numerator)
        return self.numerator / self.denominator
