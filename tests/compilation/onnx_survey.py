"""Generates tests/compilation/onnx_gaps.py: run as `python tests/compilation/onnx_survey.py`."""

import re
import sys
import tempfile
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

import onnx_nodes

OLD = "Older than opset 13, or of other domains than ONNX's own."

#: Reasons why a test does not pass, by patterns in its failure. The first match counts.
REASONS = [
    (r"uint(16|32|64) (are|is) not imported|type uint(16|32|64)", "Unsigned numbers of 16 bits and more."),
    (r"type (float8|float4|u?int[24])\w*", "Types of less than a byte, and floating-point numbers of one."),
    (r"type string|String|Regex|TfIdf", "Words, which are nothing that is computed on in secret."),
    (r"type complex", "Complex numbers."),
    (r"values are no tensors|Optional|inputs of type (sequence|optional)", "Sequences and optional values."),
    (r"and so would what parties see it do|a Scan is", "Control flow that depends on secret values, and Scan."),
    (r"is of opset|versions of ONNX's operators|test_scan_sum input 'initial'", OLD),
    (r"operators of 'ai.onnx", OLD),
    (r"training", "Training."),
    (r"(NonMaxSuppression|Unique) '|shape of its result depends", "The shape of the result depends on data."),
    (r"(Bernoulli|Random\w+) '", "Random numbers, which each party would draw differently."),
    (r"ImageDecoder '", "Images in files."),
    (r"depends on what the model is given", "What shapes are made of depends on an input."),
    (r"BitCast '", "The bits of floating-point numbers, which secret numbers have not."),
    (r"this operator is not imported", "Operators that are not imported."),
    (r"it makes images of 3", "Blocks of images in other than two dimensions."),
    (r"Not equal to tolerance.*bf|bf16|bfloat16|BFLOAT16|fp16", "Values rounded to 16 bits between steps."),
    (r"top_k_same", "Which of equals comes first is left open by PyTorch's topk."),
    (r"dft_inverse", "Rounding errors near 0 that the test expects."),
]  # fmt: skip


def reason(name: str, error: Exception) -> str:
    """Returns the reason why a test does not pass.

    Raises:
        AssertionError: No known reason matches the failure.
    """
    told = f"{name} {error}"
    for pattern, why in REASONS:
        if re.search(pattern, told, re.DOTALL):
            return why
    raise AssertionError(f"{name} fails for a reason of its own: {told[-500:]}")


HEAD = '''"""ONNX's own tests of nodes that do not pass, by reason; written by
tests/compilation/onnx_survey.py. A test that begins to pass has to leave the list."""

GAPS: dict[str, str] = {
'''


def written(gaps: dict[str, list[str]]) -> str:
    """Returns the list as the text of a module."""
    text = HEAD
    for why, names in sorted(gaps.items()):
        wrapped = textwrap.wrap(
            " ".join(names), 100, break_long_words=False, break_on_hyphens=False
        )
        body = "\n".join(f"        {line}" for line in wrapped)
        text += f'    "{why}": """\n{body}\n    """,\n'
    return text + "}\n"


def survey(cases: list[Any], folder: Path) -> dict[str, list[str]]:
    """Returns the gaps of all tests, by reason."""
    gaps: dict[str, list[str]] = defaultdict(list)
    for name, error in onnx_nodes.failures(cases, cases, folder).items():
        gaps[reason(name, error)].append(name)
    return gaps


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text = written(survey(onnx_nodes.cases(), Path(folder)))
    Path(__file__).with_name("onnx_gaps.py").write_text(text)
    sys.stdout.write(f"{text.count('test_')} gaps\n")
