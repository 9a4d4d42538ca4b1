"""The owner's weights of a program, ``model.weights``: a safetensors file, which stays with the
owner.

The weights are folded as the program needs them. The file also holds the model as it was before any
pass, so that the effect of the passes can be checked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from tacit import atomic_write, checksums
from tacit.compilation.graph import Draft, of_dtype
from tacit.compilation.program import Program
from tacit.errors import MisuseError, cause, printable, setup_error

#: Kind of the checksum.
KIND = "weights"

#: Remedy for a file that is not as it was written.
REMEDY = "copy it again from where tacit compile wrote it, or compile the model anew"

#: Prefix of the names of the weights of the model before all passes.
BEFORE = "before/"


@dataclass(frozen=True)
class Weights:
    """Weights of a program, and of the model that it was compiled from."""

    #: Weights of the program by placeholder, float32 or Boolean.
    values: Mapping[str, torch.Tensor] = field(repr=False)
    #: Hash of the program that the weights belong to.
    program: str
    #: The model before all passes, as a program.
    model: Program = field(repr=False)
    #: Weights of the model before all passes; empty if they were not read.
    of_model: Mapping[str, torch.Tensor] = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Writes the weights to a file.

        Raises:
            SetupError: the file cannot be written.
            MisuseError: the weights of the model before all passes are missing. A file without them
                could not be read.
        """
        if self.of_model.keys() != self.model.weights.keys():
            raise MisuseError(
                "these weights were read without those of the model as it was, which their file "
                "holds too: "
                "read them by load_weights(path) and save these, or copy the file"
            )
        own = {name: value.contiguous() for name, value in self.values.items()}
        before = {BEFORE + name: value.contiguous() for name, value in self.of_model.items()}
        metadata = {
            "program": self.program,
            "model": self.model.text.decode("ascii"),
            "checksum": checksums.field(KIND),
        }

        def make(at: Path) -> None:
            try:
                safetensors.torch.save_file({**own, **before}, at, metadata)
            except SafetensorError as error:
                raise atomic_write.WritingError(printable(error)) from None
            checksums.fill(at, KIND)

        atomic_write.write(path, make)

    def as_it_was(self) -> "Weights":
        """Returns the weights of the model before all passes, for that model as a program."""
        return Weights(self.of_model, self.model.digest, self.model, self.of_model)

    def check(self, program: Program) -> None:
        """Checks that the weights belong to a program.

        Raises:
            MisuseError: they belong to another program.
        """
        if self.program != program.digest:
            raise MisuseError(
                "these weights belong to another program: theirs has the hash "
                f"{printable(self.program, 16)}…, this one {program.digest[:16]}…; tacit compile "
                f"writes both "
                "together"
            )
        _check_shapes(program, self.values)


def of_draft(draft: Draft) -> dict[str, torch.Tensor]:
    """Returns a draft's weights with the dtypes that files have."""
    return {name: of_dtype(value, torch.float32) for name, value in draft.weights.items()}


def load_weights(path: str | Path, *, with_model: bool = True) -> Weights:
    """Reads weights from a file.

    Args:
        path: file that ``Weights.save`` or ``tacit compile`` wrote.
        with_model: whether the weights of the model before all passes are read too. They are as
            large again, and a party that only runs the program needs no memory for them.

    Raises:
        SetupError: the file cannot be read.
        MisuseError: the file holds no weights of a program.
    """
    try:
        wrong = checksums.wrong_with(Path(path), KIND)
    except OSError as error:
        raise setup_error(f"cannot read {path}: {cause(error)}") from None
    if wrong == checksums.DAMAGED:
        raise MisuseError(f"{path} holds no weights to rely on: {wrong}; {REMEDY}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            names = [name for name in file.keys() if with_model or not name.startswith(BEFORE)]  # noqa: SIM118
            values = {name: file.get_tensor(name) for name in names}
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise MisuseError(
            f"{path} holds no weights of a program: {printable(error)}; {REMEDY}"
        ) from None
    if not {"program", "model"} <= metadata.keys():
        raise MisuseError(f"{path} holds no weights of a program: tacit compile writes them")
    if wrong is not None:
        raise MisuseError(f"{path} holds no weights to rely on: {wrong}; {REMEDY}")
    model = Program.parsed(metadata["model"].encode(), f"{path}, the model before compilation")
    before = {
        name.removeprefix(BEFORE): value
        for name, value in values.items()
        if name.startswith(BEFORE)
    }
    own = {name: value for name, value in values.items() if not name.startswith(BEFORE)}
    if with_model:
        _check_shapes(model, before)
    return Weights(own, metadata["program"], model, before)


def _check_shapes(program: Program, values: Mapping[str, torch.Tensor]) -> None:
    wanted = {name: weight.shape for name, weight in program.weights.items()}
    given = {name: tuple(value.shape) for name, value in values.items()}
    if wanted != given:
        name = next(
            iter({*wanted, *given} - {name for name in wanted if given.get(name) == wanted[name]})
        )
        raise MisuseError(
            f"these weights are another program's: {printable(name)} has shape {given.get(name)}, "
            f"not "
            f"{wanted.get(name)}"
        )
    for name, value in values.items():
        if value.dtype != program.weights[name].dtype or not bool(value.isfinite().all()):
            raise MisuseError(
                f"the weight {name} is not valid: weights are float32 without NaN and infinity, or "
                "booleans where the program has them"
            )
