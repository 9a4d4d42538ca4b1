"""What an aggregator may return in the place of a vector."""

from typing import NamedTuple

import torch

from tacit.tensor import SecretTensor


class Quotient(NamedTuple):
    """A vector and what it is to be divided by. Both are revealed, and divided then: that costs no
    product for each element, and is exact."""

    numerator: torch.Tensor
    denominator: torch.Tensor

    def divided(self) -> torch.Tensor:
        """The vector, once both are plain. A round looks first whether there is anything to divide
        by."""
        return self.numerator / self.denominator

    def row(self) -> torch.Tensor:
        """Both, one after the other; without a copy where they lie so in memory, as clients send
        them."""
        first, second = self.numerator, self.denominator.reshape(1)
        if isinstance(first, SecretTensor) and isinstance(second, SecretTensor):
            pairs = list(zip(first._parts, second._parts, strict=True))
            if all(_is_followed(*pair) for pair in pairs):
                length = first.numel() + 1
                return first.like(tuple(part.as_strided((length,), (1,)) for part, _ in pairs))
        return torch.cat([first, second])


def _is_followed(first: torch.Tensor, second: torch.Tensor) -> bool:
    is_one = first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    end = int(first.storage_offset()) + first.numel()
    return bool(is_one and first.is_contiguous() and second.storage_offset() == end)
