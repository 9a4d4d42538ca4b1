"""Checks that words that were replaced by the field's own terms do not come back."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Retired words, as patterns, and what to write instead. The key is a part of all that the pattern
#: finds: most files do not have it, and a plain text is found twenty times as fast as a pattern.
RETIRED = {
    "aside": (r"\b(call_)?aside\(|@aside\b", "outside_trace"),
    "loose": (r"\b(is_|_)loose\b|\bloose=", "unreduced"),
    "manieth": (r"\bhow manieth\b", "an index"),
    "wanted no more": (r"\bwanted no more\b", "no longer needed"),
    "works out": (r"\bworks out\b", "compute"),
    "worked out": (r"\bworked out\b", "compute"),
    "work out": (r"\bwork out\b", "compute"),
    "_worked_out": (r"\b_worked_out\b", "compute"),
    "the other way round": (
        r"\bthe other way round\b",
        "in the opposite order, or conversely",
    ),
    "looks_at_sides": (r"\blooks_at_sides\b", "compares_with_cutoffs"),
    "claimant": (r"\bclaimant\b", "operator_label"),
    "hold_just": (r"\bhold_just\b", "hold_exactly"),
    "keep_beside": (r"\bkeep_beside\b", "keep_with_storage"),
    "given_back": (r"\b_?given_back\b", "scatter_add"),
    "OF_THREE": (r"\bOF_THREE\b", "what the constant is, as PyTorch names it"),
    "BELIEVED": (r"\bBELIEVED\b", "what the constant is, as PyTorch names it"),
    "UNLIKE": (r"\bUNLIKE\b", "what the constant is, as PyTorch names it"),
    "_MOST_USUAL": (r"\b_MOST_USUAL\b", "what the constant is, as PyTorch names it"),
    "_bent": (r"\b_bent\b", "the activation's name"),
    "Half": (
        r"\b(Add|Subtract|Multiply|Divide|Remainder|Shift\w*|Rotate\w*)Half\b",
        "the ISA's AddW and so on",
    ),
    "Upper": (r"\b(Load|Add)Upper\b", "Lui or Auipc"),
    "net::memory": (r"\bnet::memory\b", "net::in_process"),
    "net::door": (r"\bnet::door\b", "net::intake"),
    "_core.Door": (r"\b_core\.Door\b", "_core.Intake"),
    "clients' door": (r"\bclients' door\b", "the clients' intake"),
    "cquaintance": (r"\b[Aa]cquaintances?\b", "LenientConfig"),
    "ACQUAINTANCE": (r"\bACQUAINTANCES?\b", "LENIENT_CONFIG"),
    "earsay": (r"\b[Hh]earsay\b", "relayed"),
    "HEARSAY": (r"\bHEARSAY\b", "RELAYED"),
    "ider": (r"\b[Rr]iders?\b", "piggyback"),
    "_RIDER": (r"_RIDER\b", "_PIGGYBACK"),
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
    own = {Path(__file__), ROOT / "tests" / "test_check_words.py"}
    for path in sorted({path for pattern in PATTERNS for path in root.glob(pattern)} - own):
        text = path.read_text()
        for part, (pattern, instead) in RETIRED.items():
            if part not in text:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if word := re.search(pattern, line):
                    yield f"{path.relative_to(root)}:{number}: {word[0]!r}: write {instead!r}"


def main(root: Path = ROOT) -> int:
    """Prints what is wrong, and returns 1 if anything is."""
    wrong = list(found(root))
    print("\n".join(wrong) or "words: none is retired")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
