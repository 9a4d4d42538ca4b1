"""A quotient: what an aggregator may return instead of a vector."""

from typing import NamedTuple

import torch

from tacit.tensor import SecretTensor


class Quotient(NamedTuple):
    """A vector and the number that divides it.

    Both are revealed and divided afterwards. That is exact, and needs no product for each element.
    """

    numerator: torch.Tensor
    denominator: torch.Tensor

    def divided(self) -> torch.Tensor:
        """Divides the vector, once both are plain.

        A round checks first that the denominator is not zero.
        """
        return self.numerator / self.denominator

    def row(self) -> torch.Tensor:
        """Joins numerator and denominator into one vector.

        Makes no copy if they are adjacent in memory, as clients send them.
        """
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
