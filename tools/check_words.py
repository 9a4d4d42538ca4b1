"""Checks that words that were replaced by the field's own terms do not come back."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Retired words, as patterns, and what to write instead.
RETIRED = {
    r"\b(call_)?aside\(|@aside\b": "outside_trace",
    r"\b(is_|_)loose\b|\bloose=": "unreduced",
    r"\bhow manieth\b": "an index",
    r"\bwanted no more\b": "no longer needed",
    r"\bwork(s|ed)? out\b|\b_worked_out\b": "compute",
    r"\bthe other way round\b": "in the opposite order, or conversely",
    r"\blooks_at_sides\b": "compares_with_cutoffs",
    r"\bclaimant\b": "operator_label",
    r"\bhold_just\b": "hold_exactly",
    r"\bkeep_beside\b": "keep_with_storage",
    r"\b_?given_back\b": "scatter_add",
    r"\b(OF_THREE|BELIEVED|UNLIKE|_MOST_USUAL)\b": "what the constant is, as PyTorch names it",
    r"\b_bent\b": "the activation's name",
    r"\b(Add|Subtract|Multiply|Divide|Remainder|Shift\w*|Rotate\w*)Half\b": "the ISA's AddW and so "
    "on",
    r"\b(Load|Add)Upper\b": "Lui or Auipc",
    r"\bnet::memory\b|\bnet::door\b|\b_core\.Door\b": "net::in_process, net::intake, _core.Intake",
    r"\bclients' door\b": "the clients' intake",
    r"\b([Aa]cquaintances?|ACQUAINTANCES?)\b": "LenientConfig",
    r"\b([Hh]earsay|HEARSAY)\b": "relayed",
    r"\b[Rr]iders?\b|_RIDER\b": "piggyback",
}

#: Files that are checked.
PATTERNS = (
    "python/**/*.py",
    "crates/**/*.rs",
    "tests/**/*.py",
    "tools/*.py",
    "docs/**/*.md",
    "*.md",
)


def found(root: Path) -> Iterator[str]:
    """Yields each line that has a retired word."""
    retired = {re.compile(pattern): instead for pattern, instead in RETIRED.items()}
    own = {Path(__file__), ROOT / "tests" / "test_check_words.py"}
    for path in sorted({path for pattern in PATTERNS for path in root.glob(pattern)} - own):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, instead in retired.items():
                if word := pattern.search(line):
                    yield f"{path.relative_to(root)}:{number}: {word[0]!r}: write {instead!r}"


def main(root: Path = ROOT) -> int:
    """Prints what is wrong, and returns 1 if anything is."""
    wrong = list(found(root))
    print("\n".join(wrong) or "words: none is retired")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
