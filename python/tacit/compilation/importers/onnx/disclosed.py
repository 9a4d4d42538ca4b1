"""What becomes public of the numbers that a file holds, by their names in the file.

The parties see the graph, its shapes and its constants. So they learn a number that is one of these
constants, and something about all numbers from which a constant, a shape, or the course of an If or
a Loop follows. What may have been learned is reported here, or refused if it is to stay secret."""

from collections.abc import Collection

import torch

from tacit.compilation.importers.onnx.problems import NotImportedError, quoted

#: Names in a file.
Names = frozenset[str]

NONE: Names = frozenset()

#: Types of shapes, places and masks. Other whole numbers may be quantised weights.
NEVER_LEARNED = (torch.int64, torch.int32, torch.bool)


class Disclosed:
    """Names of the numbers that may have been learned and become public."""

    def __init__(self, secret: Collection[str]) -> None:
        """Takes the names of those that are to stay secret."""
        self._secret = frozenset(secret)
        self._numbers: set[str] = set()
        self._by: dict[str, str] = {}

    def hidden(self, learned: Names) -> Names:
        """Returns which of these names are to stay secret."""
        return learned & self._secret

    def of(self, name: str, tensor: torch.Tensor, is_public: bool) -> tuple[bool, Names]:
        """Returns whether a tensor of the file is public, and the names to report of it.

        Args:
            name: what the file calls it.
            tensor: its value.
            is_public: whether it is, unless it is named as secret or consists of small integers.
        """
        if name in self._secret:
            return False, frozenset([name])
        if tensor.is_floating_point():
            is_mask = is_public and tensor.numel() != 1
            if is_public and not is_mask:
                self._numbers.add(name)
            return is_public, NONE if is_mask else frozenset([name])
        if tensor.numel() == 1 or tensor.dtype in NEVER_LEARNED:
            return True, NONE
        return False, frozenset([name])

    def add(self, learned: Names, by: str) -> None:
        """Notes that something which follows from these becomes public, and by what.

        Raises:
            NotImportedError: one of them is to stay secret.
        """
        if hidden := sorted(self.hidden(learned)):
            raise NotImportedError(
                f"what it takes of {quoted(hidden[0])} would become public, and that is named as "
                "secret",
                "do not name it, or export a model that computes with it, as Min, Max and Where do",
            )
        for name in sorted(learned):
            self._by.setdefault(name, by)

    def told(self) -> list[str]:
        """Returns the names, and of all but a formula's numbers also by what something of them
        becomes public."""
        return [
            name if name in self._numbers else f"{name} (by {by})" for name, by in self._by.items()
        ]
