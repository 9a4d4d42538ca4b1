"""A program: runs the gradients of PyTorch's operator database on the reference, and writes what came out:
python/tacit/commands/gradient_coverage.py, and with it the page docs/operators.md. Nothing is written if
anything is wrong."""

import importlib
import json
import re
import sys
from pathlib import Path

import gradients

from tacit.commands import gradient_coverage, operators

ROOT = Path(__file__).resolve().parents[2]

HEAD = '''"""Of which operators in PyTorch's database secret tensors have gradients, written by
tests/operators/survey_gradients.py and held against a run by the tests."""
'''

KINDS = (
    ("NONE", "PyTorch has no gradient of real numbers here, or no samples."),
    ("WHOLE", "All forms that the database has work."),
    ("PARTLY", "Some forms work; the others say this."),
    ("REFUSED", "No form works; all say this."),
)


def reason(refusals: list[str]) -> str:
    """What most refusals say, as short as it is unmistakable."""
    reasons = []
    for refusal in refusals:
        named = re.match(r"the operator ([\w.:]+) is not supported", refusal)
        short = re.split(r" is not supported|, which|; |: ", refusal)[0][:70]
        reasons.append(named[1].removesuffix(".default") if named else short)
    return max(sorted(set(reasons)), key=reasons.count)


def written(found: dict[str, dict[str, str]]) -> str:
    """The module of that contents."""
    lines = [HEAD]
    for name, about in KINDS:
        entries = sorted(found[name].items())
        lines.append(f"#: {about}")
        if name in ("NONE", "WHOLE"):
            lines += [
                f"{name}: tuple[str, ...] = (",
                *(f"    {json.dumps(key)}," for key, _ in entries),
                ")",
                "",
            ]
        else:
            rows = (f"    {json.dumps(key)}: {json.dumps(why)}," for key, why in entries)
            lines += [f"{name}: dict[str, str] = {{", *rows, "}", ""]
    return "\n".join(lines)


def main() -> int:
    """1 if anything is wrong, which is printed."""
    found: dict[str, dict[str, str]] = {name: {} for name, _ in KINDS}
    wrong: list[str] = []
    for key in gradients.KEYS:
        verdict = gradients.verdict(key)
        wrong += [f"{key}, {each}" for each in verdict.wrong]
        kind = "WHOLE" if not verdict.refusals else "PARTLY" if verdict.right else "REFUSED"
        if verdict.is_empty:
            kind = "NONE"
        found[kind][key] = reason(verdict.refusals) if verdict.refusals else ""
    print(", ".join(f"{name} {len(entries)}" for name, entries in found.items()))
    print("\n".join(wrong))
    if not wrong:
        (ROOT / "python" / "tacit" / "commands" / "gradient_coverage.py").write_text(written(found))
        importlib.reload(gradient_coverage)
        (ROOT / "docs" / "operators.md").write_text(operators.page())
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
