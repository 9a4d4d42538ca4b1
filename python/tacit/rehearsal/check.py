"""Finds every operation of a program that secret tensors do not support, before any run."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tacit.parties.launch import launch
from tacit.providers import REFERENCE
from tacit.rehearsal.lenient import Gap, Lenient
from tacit.rehearsal.subject import Subject, program_of
from tacit.sessions import session

#: Default number of parties of a program.
PARTIES = 3


@dataclass(frozen=True)
class Check:
    """Result of ``tacit.check``."""

    #: What is missing, by module and line, and how often it was used.
    gaps: dict[Gap, int]
    #: Number of different operators that the program used on secret tensors.
    operators: int
    #: Error that ended the program early; empty if none did. Nothing after it is checked.
    ended: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is missing."""
        return not self.gaps and not self.ended

    def as_json(self) -> dict[str, Any]:
        """Returns all results by name."""
        gaps = [{**asdict(gap), "times": times} for gap, times in self.gaps.items()]
        return {
            "passed": self.passed,
            "operators": self.operators,
            "gaps": gaps,
            "ended": self.ended,
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def check(subject: Subject, example: Any = None, *, parties: int = PARTIES) -> Check:
    """Runs a program once and finds every operator that secret tensors do not have.

    Use it before any real run. A missing operator is recorded. Then PyTorch computes its result
    from the plain values, and the run continues. The run is on this machine, under the reference
    protocol, in which nothing is secret.

    If a program puts a secret into a plain tensor by a missing operator, or decides by a secret
    value, everything after that is checked for that value alone.

    Args:
        subject: a module (in its present mode, training or evaluation), or a function that every
            party runs.
        example: inputs of a module: a tensor, a tuple of the arguments, or a mapping of them by
            name. All tensors in it count as secret, and so do all weights.
        parties: number of parties of a program.
    """
    found = launch(
        _checked,
        program_of(subject, example),
        parties=parties if example is None else 2,
        protocol=REFERENCE,
    )
    return found[0]


def _checked(program: Callable[[], Any]) -> Check:
    lenient = Lenient(session())
    ended = ""
    try:
        with lenient:
            program()
    except Exception as error:
        ended = f"{type(error).__name__}: {error}"
    return Check(lenient.gaps, len(lenient.operators), ended)


def _lines(found: Check) -> list[str]:
    if found.passed:
        return [f"All {found.operators} operators that it uses are there."]
    lines = []
    kinds = dict.fromkeys((gap.what, gap.remedy) for gap in found.gaps)
    for what, remedy in kinds:
        lines += [what, f"    instead: {remedy}"]
        gaps = [gap for gap in found.gaps if (gap.what, gap.remedy) == (what, remedy)]
        for line in dict.fromkeys(gap.line for gap in gaps):
            modules = [gap.module for gap in gaps if gap.line == line]
            more = f" and {len(modules) - 1} more" if len(modules) > 1 else ""
            lines.append(
                f"    in {modules[0] or 'no module'}{more}" + (f", {line}" if line else "")
            )
    count = len({what for what, _ in kinds})
    lines.append(f"Missing: {count} of the {found.operators} operators and forms that it uses.")
    if found.ended:
        lines.append(f"What comes after this was not checked: {found.ended}")
    return lines
