"""The service of ``tacit init service`` and of its demo: LeNet-5 with weights that are drawn."""

import io
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tacit import _core
from tacit.atomic_write import write

#: The file with the model, among those of ``tacit init``.
PROGRAM = "lenet.py"

#: The function in it that returns the module.
CALLABLE = "build"

#: The file with its weights.
WEIGHTS = "lenet.pt"

#: The folder of keys and certificates.
CERTIFICATES = "certificates"

#: The shape of one request.
SHAPE = (1, 1, 28, 28)


def module() -> nn.Module:
    """Returns the module with the weights that :func:`make` writes."""
    made: Any = {}
    exec(files("tacit.commands").joinpath("starter", PROGRAM).read_text("utf-8"), made)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        built: nn.Module = made[CALLABLE]()
    return built.eval()


def make(folder: Path, parties: int, clients: Sequence[str], *, has_dealer: bool = False) -> None:
    """Writes the model, its weights, keys and certificates.

    Raises:
        SetupError: the folder cannot be written to.
    """
    write(folder / PROGRAM, files("tacit.commands").joinpath("starter", PROGRAM).read_text("utf-8"))
    names = [f"party-{party}" for party in range(parties)]
    names += [f"client-{client}" for client in clients] + ["dealer"] * has_dealer
    _core.write_certificates(names, str(folder / CERTIFICATES))
    # Weights are written whole or not at all.
    buffer = io.BytesIO()
    torch.save(module().state_dict(), buffer)
    write(folder / WEIGHTS, buffer.getvalue())
