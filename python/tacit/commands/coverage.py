"""Which of PyTorch's operators work on secret tensors, as the surveys of the tests found it.

The findings are data beside this module: operator_coverage.json, which tests/operators/survey.py
writes, and gradient_coverage.json, which survey_gradients.py writes. An operator is named as in
PyTorch's database: name/variant.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache


@dataclass(frozen=True)
class Coverage:
    """The operators by what their samples gave, each list in order."""

    #: Operators without a gradient of real numbers in PyTorch, or without samples.
    none: list[str]
    #: Operators of which every sample works.
    whole: list[str]
    #: Operators of which some samples work, with what the others are refused with.
    partly: dict[str, str]
    #: Operators of which no sample works, with what they are refused with.
    refused: dict[str, str]

    @property
    def names(self) -> list[str]:
        """The operators that have samples, in order."""
        return sorted([*self.whole, *self.partly, *self.refused])

    def to_json(self) -> str:
        """The content of the file, whatever the order of the lists."""
        content = {
            name: dict(sorted(found.items())) if isinstance(found, dict) else sorted(found)
            for name, found in asdict(self).items()
        }
        return json.dumps(content, indent=2) + "\n"


@cache
def operator_coverage() -> Coverage:
    """What works forward."""
    return _read("operator_coverage.json")


@cache
def gradient_coverage() -> Coverage:
    """What has a gradient."""
    return _read("gradient_coverage.json")


def _read(name: str) -> Coverage:
    # Every command imports this module, and only `tacit operators` reads.
    from importlib.resources import files

    return Coverage(
        **json.loads(files("tacit.commands").joinpath(name).read_text(encoding="utf-8"))
    )
