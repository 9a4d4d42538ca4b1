"""What an experiment has found so far, on disk: whoever is interrupted keeps it."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import cause, setup_error
from tacit.federated.simulation.federation import Row
from tacit.federated.simulation.page import folder

#: What it is called in an experiment's folder.
NAME = "rounds.jsonl"


@dataclass(frozen=True)
class Journal:
    """A file of one JSON object a line. Whatever process measures appends to it, and closes it each
    time."""

    path: Path

    @staticmethod
    def begun(where: Path) -> "Journal":
        """An empty one in a folder, which is made if it is not there.

        Raises:
            SetupError: it cannot be written.
        """
        journal = Journal(folder(where).resolve() / NAME)
        journal._write("w", "")
        return journal

    def add(self, **found: object) -> None:
        """Writes a line. What is not a number, as an accuracy that was not measured, is null.

        Raises:
            SetupError: it cannot be written.
        """
        kept = {name: None if _is_nan(value) else value for name, value in found.items()}
        self._write("a", json.dumps(kept, ensure_ascii=False) + "\n")

    def rounds(self, **of: object) -> Callable[[Row], None]:
        """What writes a line for each round that it is told of, with this before."""
        return lambda row: self.add(**of, **row.as_json())

    def _write(self, mode: str, text: str) -> None:
        try:
            with self.path.open(mode) as file:
                file.write(text)
        except OSError as error:
            raise setup_error(f"cannot write {self.path}: {cause(error)}") from None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
