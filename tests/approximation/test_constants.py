"""Encodings of the constants of approximations."""

import re
from pathlib import Path

import torch

import tacit
from tacit import fixed


def test_what_a_constant_is_as_a_word_stands_in_one_place() -> None:
    """Operators encode constants with fixed.word alone.

    A rounded product of a number and a power of two in an operator would be a second rule.
    """
    numbers = torch.randn(1000, dtype=torch.float64) * 10
    for bits in (1, 16, 39):
        words = torch.tensor([fixed.word(number, bits) for number in numbers.tolist()])
        assert torch.equal(words, fixed.encode(numbers, fixed.Scale(bits)))
    operators = Path(tacit.__file__).parent / "operators"
    scaled = re.compile(r"\bround\(.*(\*\*|<<)")
    found = [path.name for path in operators.rglob("*.py") if scaled.search(path.read_text())]
    assert not found, "use fixed.word"
