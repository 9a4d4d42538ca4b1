"""A program that runs the gradients of PyTorch's operator database on the reference.

It writes the results to python/tacit/commands/gradient_coverage.json, and updates the page
docs/operators.md from them. It writes nothing if a gradient is wrong.
"""

import re
import sys
from dataclasses import asdict
from pathlib import Path

import gradients

from tacit.commands import operators
from tacit.commands.coverage import Coverage, gradient_coverage

ROOT = Path(__file__).resolve().parents[2]

FILE = ROOT / "python" / "tacit" / "commands" / "gradient_coverage.json"


def reason(refusals: list[str]) -> str:
    """Returns the shortest unambiguous form of the most frequent refusal."""
    reasons = []
    for refusal in refusals:
        named = re.match(r"the operator ([\w.:]+) is not supported", refusal)
        short = re.split(r" is not supported|, which|; |: ", refusal)[0][:70]
        reasons.append(named[1].removesuffix(".default") if named else short)
    return max(sorted(set(reasons)), key=reasons.count)


def main() -> int:
    """Runs the survey. Prints wrong gradients and returns 1 if there are any."""
    found = Coverage([], [], {}, {})
    wrong: list[str] = []
    for key in gradients.KEYS:
        verdict = gradients.verdict(key)
        wrong += [f"{key}, {each}" for each in verdict.wrong]
        if verdict.is_empty:
            found.none.append(key)
        elif not verdict.refusals:
            found.whole.append(key)
        else:
            (found.partly if verdict.right else found.refused)[key] = reason(verdict.refusals)
    print(", ".join(f"{name} {len(entries)}" for name, entries in asdict(found).items()))
    print("\n".join(wrong))
    if not wrong:
        FILE.write_text(found.to_json())
        gradient_coverage.cache_clear()
        (ROOT / "docs" / "operators.md").write_text(operators.page())
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
