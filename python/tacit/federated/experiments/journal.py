"""The results of an experiment so far, on disk, so that an interrupted experiment keeps them."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import cause, setup_error
from tacit.federated.simulation.federation import Row
from tacit.federated.simulation.page import folder

#: The journal's name in an experiment's folder.
NAME = "rounds.jsonl"


@dataclass(frozen=True)
class Journal:
    """A file with one JSON object a line.

    Every process that measures appends to it, and closes it each time.
    """

    path: Path

    @staticmethod
    def begun(where: Path) -> "Journal":
        """Starts an empty journal in a folder, which is made if it does not exist.

        Raises:
            SetupError: it cannot be written.
        """
        journal = Journal(folder(where).resolve() / NAME)
        journal._write("w", "")
        return journal

    def add(self, **found: object) -> None:
        """Writes a line. NaN, such as an accuracy that was not measured, becomes null.

        Raises:
            SetupError: it cannot be written.
        """
        kept = {name: None if _is_nan(value) else value for name, value in found.items()}
        self._write("a", json.dumps(kept, ensure_ascii=False) + "\n")

    def rounds(self, **of: object) -> Callable[[Row], None]:
        """Returns a function that writes a line for each round, beginning with the given fields."""
        return lambda row: self.add(**of, **row.as_json())

    def _write(self, mode: str, text: str) -> None:
        try:
            with self.path.open(mode) as file:
                file.write(text)
        except OSError as error:
            raise setup_error(f"cannot write {self.path}: {cause(error)}") from None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
