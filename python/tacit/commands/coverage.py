"""Coverage: which of PyTorch's operators work on secret tensors, as the surveys of the tests found
it.

The findings are data next to this module: operator_coverage.json, which tests/operators/survey.py
writes, and gradient_coverage.json, which survey_gradients.py writes. An operator is named as in
PyTorch's database: name/variant.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache


@dataclass(frozen=True)
class Coverage:
    """Operators by the outcome of their samples, each list in order."""

    #: Operators without a gradient of real numbers in PyTorch, or without samples.
    none: list[str]
    #: Operators of which every sample works.
    whole: list[str]
    #: Operators of which some samples work, with the errors that refuse the others.
    partly: dict[str, str]
    #: Operators of which no sample works, with the errors that refuse them.
    refused: dict[str, str]

    @property
    def names(self) -> list[str]:
        """Operators that have samples, in order."""
        return sorted([*self.whole, *self.partly, *self.refused])

    def to_json(self) -> str:
        """Returns the content of the file, whatever the order of the lists."""
        content = {
            name: dict(sorted(found.items())) if isinstance(found, dict) else sorted(found)
            for name, found in asdict(self).items()
        }
        return json.dumps(content, indent=2) + "\n"


@cache
def operator_coverage() -> Coverage:
    """Returns which operators work in the forward pass."""
    return _read("operator_coverage.json")


@cache
def gradient_coverage() -> Coverage:
    """Returns which operators have a gradient."""
    return _read("gradient_coverage.json")


def _read(name: str) -> Coverage:
    # Every command imports this module, but only `tacit operators` reads the data.
    from importlib.resources import files

    return Coverage(
        **json.loads(files("tacit.commands").joinpath(name).read_text(encoding="utf-8"))
    )
