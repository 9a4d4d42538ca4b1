"""Where models come from: each file makes a draft, or a module, of one format."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tacit.compile.draft import Draft
from tacit.compile.importers import exported
from tacit.errors import MisuseError, SetupError
from tacit.rehearsal import subject

#: Formats by the end of the file's name.
ONNX, EXPORTED = ".onnx", ".pt2"


def draft_of(
    model: torch.nn.Module | str | Path, example: Any, shapes: Mapping[str, Sequence[int]] | None
) -> Draft:
    """The draft of a module with an example, or of a file that has its own.

    Raises:
        MisuseError: it is neither, or what it holds cannot be compiled.
        SetupError: there is no such file.
    """
    if isinstance(model, torch.nn.Module):
        return exported.of_module(model, *subject.arguments(example))
    if example is not None:
        raise MisuseError("an example of inputs belongs to a module; a file has its own")
    text = str(model)
    if ".py:" in text:
        loaded, own = subject.load(text)
        if not isinstance(loaded, torch.nn.Module):
            raise MisuseError(
                f"{text} is a program; what is compiled is a module with an example of its inputs"
            )
        return exported.of_module(loaded, *subject.arguments(own))
    path = Path(text)
    if path.suffix not in (ONNX, EXPORTED):
        raise MisuseError(
            f"{text} is of no format that is compiled: {ONNX}, {EXPORTED} (one's own), or FILE.py:callable"
        )
    if not path.is_file():
        raise SetupError(f"there is no file {path}")
    return exported.of_file(path) if path.suffix == EXPORTED else _of_onnx(path, shapes)


def _of_onnx(path: Path, shapes: Mapping[str, Sequence[int]] | None) -> Draft:
    from tacit.compile.importers import onnx

    imported = onnx.load(path, shapes=shapes) if shapes else onnx.load(path)
    example = tuple(torch.zeros(shape, dtype=dtype) for _, dtype, shape in imported.inputs)
    draft = exported.of_module(imported.module, example, {})
    draft.names = dict(zip(draft.examples, [name for name, _, _ in imported.inputs], strict=True))
    return draft
